# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every program has a function that plays it, and a call loads no more than that takes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import plain
from tests.sim import controller, standins
from tests.sim.host import SimulatedHost

COVERED = (Path(controller.HERE) / "programs.txt").read_text(encoding="utf-8").split()


def test_what_plays_a_program_is_there_and_covers_the_machine_s_own() -> None:
    for table in standins.TABLES:
        for name in table:
            assert callable(standins.stand_in(name)), name
            assert name in COVERED
    assert sum(map(len, standins.TABLES)) == len({name for table in standins.TABLES for name in table})
    assert standins.stand_in("zypper") is None


def test_a_call_loads_nothing_that_is_not_for_it(tmp_path: Path) -> None:
    tree = SimulatedHost.of(str(tmp_path / "node"), "h100").tree
    program = (
        f"import sys; sys.path.insert(0, {controller.CHECKOUT!r}); from tests.sim import standins\n"
        f"print(standins.play({tree!r}, 'nvidia-smi', ['-L'])[0], *sorted(sys.modules))"
    )
    done = subprocess.run((sys.executable, "-IS", "-c", program), capture_output=True, text=True, check=True)
    rc, *loaded = done.stdout.split()
    assert rc == "0"
    assert "tests.gpu.smi" in loaded
    assert set(loaded) & {"dataclasses", "inspect", "pathlib", "tests.sim.packages", "tests.cluster.worker"} == set()


def sample(origin: Any) -> tuple[type, type]:
    """Two classes as the GPUs' state has them, one a part of the other."""

    @origin.dataclass
    class Part:
        number: int
        name: str = ""

    @origin.dataclass
    class Whole:
        parts: list[Part] = origin.field(default_factory=list)
        more: dict[str, int] = origin.field(default_factory=dict)

    return Part, Whole


@pytest.mark.parametrize("origin", [plain, dataclasses], ids=["plain", "dataclasses"])
def test_values_are_as_the_real_ones(origin: Any) -> None:
    part, whole = sample(origin)
    one = whole([part(1), part(2, name="b")])
    assert one == whole([part(1, ""), part(2, "b")])
    assert one != whole()
    assert whole().parts is not whole().parts
    assert origin.asdict(one) == {"parts": [{"number": 1, "name": ""}, {"number": 2, "name": "b"}], "more": {}}
    assert origin.asdict(one)["more"] is not one.more
    assert repr(part(2, "b")).endswith("Part(number=2, name='b')")
    for given, named in (((), {}), ((1, "a", 2), {}), ((1,), {"number": 1}), ((1,), {"other": 1})):
        with pytest.raises(TypeError):
            part(*given, **named)
    with pytest.raises(TypeError):
        hash(one)
