# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name of the code that runs: by a zip's directory, by the record of an installed program, none for sources."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import code_id

FILES = ("__init__", "core/__init__", "core/code_id", "core/question", "core/errors", "core/json_text", "core/named")
ROOM = Path(str(code_id.__file__)).parents[1]
SHOW = "import sys; sys.path.insert(0, sys.argv[1]); from {}.core.code_id import code_id; print(code_id())"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


def texts(more: Mapping[str, str] | None = None) -> dict[str, str]:
    found = {f"{name}.py": (ROOM / f"{name}.py") for name in FILES}
    return {**{name: path.read_text("utf-8") if path.exists() else "" for name, path in found.items()}, **(more or {})}


def zipped(path: Path, package: str, inside: Mapping[str, str], minute: int = 0) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for above in Path(package).parents:
            if above.name:
                out.writestr(f"{above}/__init__.py", "")
        for name, text in inside.items():
            out.writestr(zipfile.ZipInfo(f"{package}/{name}", (2026, 1, 1, 0, minute, 0)), text)
    return path


def named(place: Path, package: str = "bcd") -> str:
    """What the code in a place says of itself, in an interpreter of its own."""
    program = [sys.executable, "-ISBc", SHOW.format(package.replace("/", ".")), str(place)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("package", ["bcd", "ansible_collections/bettercompute/bcd/plugins/module_utils"])
def test_a_zip_is_named_by_its_code_alone(tmp_path: Path, package: str) -> None:
    first = named(zipped(tmp_path / "a", package, texts()), package)
    assert len(first) == 32
    assert named(zipped(tmp_path / "b", package, texts(), minute=5), package) == first
    assert named(zipped(tmp_path / "c", package, texts({"core/named.py": "X = 1\n"})), package) != first
    assert named(zipped(tmp_path / "d", package, texts({"core/named.py": "X = 2\n"})), package) not in ("", first)


def test_an_installed_program_is_named_by_its_record(tmp_path: Path) -> None:
    for name, text in texts().items():
        path = tmp_path / "bcd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert named(tmp_path) == ""
    for text, want in (
        (f"{DIGEST}\n", DIGEST),
        ("", ""),
        (DIGEST[:40], ""),
        (DIGEST + "0", ""),
        ("Z" * 64, ""),
        ("é", ""),
    ):
        (tmp_path / code_id.RECORD).write_text(text, encoding="utf-8")
        assert named(tmp_path) == want


def test_a_tree_of_sources_has_no_name() -> None:
    assert code_id.code_id() == ""


def test_the_record_has_the_name_by_which_it_is_installed() -> None:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import RECORD

    assert code_id.RECORD == RECORD
