# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a part of the tests has to say: how much passed, failed and was left out.

Each part leaves it in .build/results/, as <part>.json (written by save) or, where pytest ran, as <part>*.xml (JUnit).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / ".build" / "results"
HOME = TOP / ".build" / "home"  # of programs that write to it


class Result(NamedTuple):
    passed: int
    failed: tuple[str, ...]  # names of what failed
    left_out: tuple[str, ...]  # a sentence each: what, and why


EMPTY = Result(0, (), ())


def add(one: Result, other: Result) -> Result:
    """Both together."""
    return Result(one.passed + other.passed, one.failed + other.failed, one.left_out + other.left_out)


def save(part: str, result: Result) -> None:
    """Leave the result of a part where make test finds it."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{part}.json").write_text(json.dumps(result._asdict()), encoding="utf-8")


def forget(part: str) -> None:
    """Remove what an earlier run of the part left."""
    for path in files(part):
        path.unlink()


def files(part: str) -> list[Path]:
    """The result files of a part: <part>.json, <part>.xml, <part>-<anything>.xml."""
    return [path for path in RESULTS.glob(f"{part}*") if path.stem == part or path.stem.startswith(part + "-")]


def load(part: str) -> Result:
    """The result that a part left; EMPTY where it left none."""
    result = EMPTY
    for path in sorted(files(part)):
        result = add(result, from_json(path) if path.suffix == ".json" else from_junit(path))
    return result


def from_json(path: Path) -> Result:
    """Read what save wrote."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    return Result(fields["passed"], tuple(fields["failed"]), tuple(fields["left_out"]))


def from_junit(path: Path) -> Result:
    """Count the cases of a JUnit file as pytest writes it."""
    passed, failed, left_out = 0, [], []
    for case in ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}".lstrip(":")
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif skipped is not None:
            left_out.append(f"{name}: {skipped.get('message', 'skipped')}")
        else:
            passed += 1
    return Result(passed, tuple(failed), tuple(left_out))
