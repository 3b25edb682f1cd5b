# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that starts from one file of compiled code: the same modules, and Python's own way where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import compiled, program_tree

TEXTS = {
    "__init__.py": "",
    "core/__init__.py": "",
    "core/compiled.py": Path(str(compiled.__file__)).read_text(encoding="utf-8"),
    "front/__init__.py": 'ABOVE = "front"\n',
    "front/word.py": "from . import ABOVE\nfrom .deep import told\n\n\ndef fail():\n    raise ValueError(ABOVE)\n",
    "front/deep/__init__.py": "from .told import told\n",
    "front/deep/told.py": 'told = __name__ + " told"\n',
}
START = """
import json, sys, traceback
sys.path.insert(0, sys.argv[1])
from bcd.core import compiled
{before}
compiled.take()
from bcd.front import deep, word
try:
    word.fail()
except ValueError:
    said = traceback.format_exc()
try:
    import bcd.front.nothing
except ModuleNotFoundError as fault:
    missing = str(fault)
print(json.dumps({{
    "loader": type(word.__loader__).__name__,
    "file": word.__file__,
    "path": [*deep.__path__],
    "told": word.told,
    "said": said,
    "missing": missing,
    "beside": word.__loader__.get_data(sys.argv[1] + "/digest").decode(),
}}))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of a program, compiled."""
    for name, text in TEXTS.items():
        path = tmp_path / "bcd" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "digest").write_text("1\n", encoding="utf-8")
    program_tree.compile_all(str(tmp_path), str(tmp_path))
    return tmp_path


def started(place: Path, before: str = "") -> Any:
    """What a program says of itself that starts from there."""
    command = [sys.executable, "-ISB", "-c", START.format(before=before), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("before", ["", "compiled.AT_ONCE = 8"], ids=["", "an index that is longer than a read"])
def test_modules_come_out_of_the_file(place: Path, before: str) -> None:
    for own in place.glob("bcd/front/**/*.pyc"):
        own.unlink()
    said = started(place, before)
    assert said["loader"] == "_Compiled"
    assert said["file"] == f"{place}/bcd/front/word.py"
    assert said["path"] == [f"{place}/bcd/front/deep"]
    assert said["told"] == "bcd.front.deep.told told"
    assert f'File "{place}/bcd/front/word.py", line 6, in fail\n    raise ValueError(ABOVE)\n' in said["said"]
    assert said["missing"] == "No module named 'bcd.front.nothing'"
    assert said["beside"] == "1\n"


def of_another_python(place: Path) -> None:
    file = Path(compiled.file_of(str(place)))
    file.write_bytes(b"\0\0\r\n" + file.read_bytes()[4:])


def gone(place: Path) -> None:
    Path(compiled.file_of(str(place))).unlink()


@pytest.mark.parametrize("spoil", [of_another_python, gone])
def test_without_a_file_for_this_python_they_come_as_ever(place: Path, spoil: Any) -> None:
    whole = started(place)
    spoil(place)
    assert started(place) == {**whole, "loader": "SourceFileLoader"}
