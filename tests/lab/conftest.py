# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab for pytest: a real Debian machine in QEMU, the same for all tests of a session.

Fixtures (each gives a labvm.machine.Machine):

``lab``          for one test: the machine in its clean state (disk, memory, clock), whatever ran before.
``lab_story``    for a module: the machine in its clean state when the module's first test asks for it; the module's
                 tests then share what they do to it, in their order. Do not mix it with ``lab`` in one module.
``lab_machine``  for the session: the machine as it is; for tests that change nothing.

The machine: ``.ssh("shell command", user="root" | "operator", check=True, timeout=, stdin=) -> Done(rc, out, err)``,
``.run(argv, ...)`` the same for an argv, ``.read(path)``, ``.boot_id()``, ``.reboot()`` (returns the new boot id),
``.snapshot(name)``, ``.revert(name="clean")``, ``.console_tail()``, ``.journal()``, ``.ssh_config`` (hosts ``lab`` and
``lab-root``) and ``.ansible_inventory`` (host ``lab``, the ordinary user ``operator`` with sudo: set ``become: true``).
A failed command raises LabError unless ``check=False``.

On a failed test, console and journal are kept in .build/lab-artifacts/TEST/.

Environment: BCD_LAB_MACHINE=NAME uses the machine that `lab.py --name NAME up` started, and leaves it running (quick,
for work on a test).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from labvm import image, machine, quick, recipe
from labvm.machine import Machine

HERE = Path(__file__).parent
ARTIFACTS = HERE.parent.parent / ".build" / "lab-artifacts"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lab: needs the real machine of tests/lab")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def lab_machine() -> Iterator[Machine]:
    borrowed = os.environ.get("BCD_LAB_MACHINE")
    if borrowed:
        found = machine.running(borrowed)
        if found is None:
            pytest.fail(
                f"BCD_LAB_MACHINE={borrowed}: no such lab machine runs; start it with "
                f"`python3 tests/lab/lab.py --name {borrowed} up`"
            )
        yield found
        return
    reason = image.unavailable(recipe.VARIANTS[recipe.BASE])
    if reason:  # make test names it in its table, and .ci/run counts it as a failure
        pytest.skip(reason)
    started = machine.up(f"pytest-{os.getpid()}", tied=True, prepare_guest=quick.prepare)
    try:
        yield started
    finally:
        started.down()


@pytest.fixture
def lab(lab_machine: Machine) -> Machine:
    lab_machine.revert()
    return lab_machine


@pytest.fixture(scope="module")
def lab_story(lab_machine: Machine) -> Machine:
    lab_machine.revert()
    return lab_machine


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Keeps what the machine said when a test failed, before anything reverts it."""
    report = yield
    used = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Machine)]
    if report.failed and used and used[0].alive:
        folder = ARTIFACTS / re.sub(r"[^\w.-]+", "_", item.nodeid).strip("_")
        used[0].save_artifacts(folder)
        report.sections.append(("the lab's console", f"{used[0].console_tail(30)}\n(kept in {folder})"))
    return report
