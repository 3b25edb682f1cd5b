# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The measurement of passes over holds: what it counts is there, and what grows too fast is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import holds
from tests.bench.holds import Cost, Row


def row(size: int, cpu: float, what: str = "binds") -> Row:
    return Row("devices only", what, size, Cost(cpu, 9.0, 0, 0, 0, 0, 0, size, 0))


def test_what_grows_with_the_square_is_told_and_what_grows_linearly_is_not() -> None:
    linear = [row(10, 1.0, "releases"), row(100, 12.0, "releases")]
    square = [row(10, 1.0), row(100, 100.0)]
    assert holds.steep(linear) == []
    (told,) = holds.steep([*linear, *square])
    assert told.startswith("devices only, the pass that binds: one of 100 assignments costs 10.0 times")


def test_a_pass_that_grows_too_fast_ends_the_measurement_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(holds, "warm", lambda: None)
    for cpu, status in ((20.0, 0), (21.0, 1)):
        found = [row(10, 1.0), row(100, cpu)]
        monkeypatch.setattr(holds, "measure", lambda *_folder, found=found, **_turns: found)
        assert holds.main([]) == status
        assert ("one of 100 assignments costs 2.1 times" in capsys.readouterr().out) == bool(status)


def test_every_kind_is_measured_in_every_pass(tmp_path: Path) -> None:
    """Four assignments, of which one overlaps, on a host of three slots."""
    holds.warm()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(holds, "GPUS", 1)
        patched.setattr(holds, "SLOTS", 3)
        rows = holds.measure(tmp_path, sizes=(2, 4), turns=1)
    assert [(one.kind, one.size, one.what) for one in rows] == [
        (kind, size, what) for kind in holds.KINDS for size in (2, 4) for what in holds.PASSES
    ]
    ended = [(one.cost.held, one.cost.failed) for one in rows if one.size == 4]
    assert ended == [(3, 1), (3, 1), (3, 1), (0, 0), (0, 0)] * 3
    changes = {one.what: one.cost.changes for one in rows if one[:1] == ("devices only",) and one.size == 2}
    # of each a record, a specification, an env file, an event and the record again; what is asked, and what is reached
    assert (changes["is to bind"], changes["binds"], changes["changes nothing"]) == (0, 12, 0)
    assert all(one.cost.cpu > 0 and one.cost.read > 0 for one in rows)
    assert [path.name for path in tmp_path.iterdir()] == []
    assert len(holds.table(rows).splitlines()) == 1 + len(rows)
