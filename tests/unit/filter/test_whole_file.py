# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are seen whole, and by nobody who may not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.whole_file import PRIVATE, PUBLIC, as_json, write_whole


@pytest.mark.parametrize(("mode", "mask"), [(PRIVATE, 0o000), (PRIVATE, 0o022), (PUBLIC, 0o022), (PUBLIC, 0o077)])
def test_the_file_has_its_mode_whatever_the_callers_mask_and_whatever_was_there(
    tmp_path: Path, mode: int, mask: int
) -> None:
    path = tmp_path / "pass.json"
    path.write_text("earlier", encoding="utf-8")
    path.chmod(0o666)
    before = os.umask(mask)
    try:
        write_whole(path, "later ö", mode)
    finally:
        os.umask(before)
    assert path.read_text(encoding="utf-8") == "later ö"
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert os.listdir(tmp_path) == ["pass.json"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_was_there_stays_and_nothing_else_is_left_where_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    path = tmp_path / "pass.json"
    path.write_text("earlier", encoding="utf-8")

    def interrupted(*_given: object) -> None:
        raise fault

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(type(fault)):
        write_whole(path, "later", PRIVATE)
    assert path.read_text(encoding="utf-8") == "earlier"
    assert os.listdir(tmp_path) == ["pass.json"]


def test_the_same_value_is_the_same_bytes() -> None:
    assert (
        as_json({"b": "ö", "a": [1]})
        == as_json({"a": [1], "b": "ö"})
        == '{\n  "a": [\n    1\n  ],\n  "b": "\\u00f6"\n}\n'
    )
