# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of a run for the next one, with each ansible-core: the archives of modules, and no older ones."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sim import archives, controller, fleet
from tests.sim.tree import PROFILES

STORES = Path(controller.CHECKOUT) / ".build" / "archives"
# Passes through modules: one through the program builds no archive.
UNITS = '{"bcd_converge_units": {"sysctl": {"vm.swappiness": 10}}, "bcd_program_pass": false}'


class Copy:
    """A copy of the collection in which files are edited, one host that it converges, what is stored of it."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        controller.freeze(str(scratch))
        self.file = scratch / "bcd" / "plugins" / "module_utils" / "front" / "module.py"
        self.text = self.file.read_text(encoding="utf-8")
        self.inventory = fleet.make(str(scratch), [fleet.Hosts("node", PROFILES["debian"])])
        self.edit(f"# {uuid.uuid4()}\n")  # whatever was stored before is of other files
        self.place = self.store()

    def edit(self, end: str) -> None:
        """Write a file of module_utils anew, with this at its end."""
        self.file.write_text(self.text + end, encoding="utf-8")

    def store(self) -> Path:
        """Where its archives are stored, as its files are now; other tests store theirs meanwhile."""
        given = controller.environment(str(self.scratch))
        with pytest.MonkeyPatch.context() as patched:
            for name in ("ANSIBLE_COLLECTIONS_PATH", *archives.VARIABLES):
                patched.setenv(name, given.get(name, ""))
            return STORES / archives.signature()

    def converge(self) -> controller.Played:
        """One pass."""
        return controller.playbook(
            str(self.scratch), self.inventory, "bettercompute.bcd.converge", "--extra-vars", UNITS
        )


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    made = Copy(tmp_path)
    yield made
    for place in (made.place, made.store()):
        shutil.rmtree(place, ignore_errors=True)


def test_the_next_run_takes_what_one_has_built_until_a_file_changes(copy: Copy) -> None:
    built = copy.converge()
    assert built.rc == 0, built.out
    [archive] = [
        path for path in copy.place.iterdir() if path.name.startswith("ansible_collections.bettercompute.bcd.")
    ]
    assert ".host_section-" in archive.name

    archive.unlink()
    archive.write_bytes(b"")  # a run that takes it cannot go well
    assert copy.converge().rc != 0

    copy.edit("raise SystemExit('edited')\n")
    edited = copy.converge()
    assert edited.rc != 0
    assert "edited" in edited.out
