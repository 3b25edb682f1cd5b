# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The strikes of the lab meet the collection wherever it runs: without them its stories wait for a kill in vain."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils import carried
from tests.sim import controller

MODULE = "ansible_collections.bettercompute.bcd.plugins.module_utils"
TRIED = """
from {package}.core import lock
from {package}.core.host import Host
from {package}.core.step import Step
print(lock.only_pass(None, "test")._wait, flush=True)
for place in ("true", "/usr/bin/env"):
    Host().apply(Step(kind="run", action="call it", argv=(place,)))
    print("past", place, flush=True)
"""


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The hook, with orders to kill after `/usr/bin/env`."""
    monkeypatch.syspath_prepend(str(Path(controller.CHECKOUT) / "tests" / "lab"))
    import strikes

    orders = tmp_path / "orders.json"
    orders.write_text(json.dumps([["SIGKILL", "/usr/bin/*"]]), encoding="utf-8")
    assert strikes.ORDERS in strikes.HOOK
    return str(strikes.HOOK).replace(strikes.ORDERS, str(orders))


def run(program: str, given: bytes = b"") -> None:
    """Both passes of the door are struck in this program, the second one to its death."""
    done = subprocess.run((sys.executable, "-I", "-c", program), input=given, capture_output=True, check=False)
    assert done.stdout.decode().splitlines() == ["3.0", "past true"], done.stderr.decode()
    assert done.returncode == -signal.SIGKILL


def test_a_pass_of_the_program_that_is_carried_is_struck(hook: str) -> None:
    run(f"exec({hook!r})\n{carried.START}\n{TRIED.format(package='bcd')}", carried.payload())


def test_a_pass_of_a_module_is_struck(hook: str) -> None:
    place = str(Path(controller.CHECKOUT) / ".build")
    run(f"import sys; sys.path.insert(0, {place!r})\nexec({hook!r})\n{TRIED.format(package=MODULE)}")
