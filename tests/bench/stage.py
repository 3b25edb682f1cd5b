# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated hosts for the bench: converged once by the simulator, then measured without it.

A kind of hosts is a seed and its twins. The seed is converged through the simulator (tests/sim), its programs are
recorded while each case runs once, and then all of the kind have programs that answer what was recorded.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import stubs, work
from tests.sim import controller
from tests.sim.few_hosts import twin
from tests.sim.host import SimulatedHost
from tests.sim.machine import Machine, put
from tests.sim.profiles import machine
from tests.sim.tree import build

PYTHON = os.path.realpath(sys.executable)  # of the hosts: no environment, and none of its packages
CHANGED = ["boot", "etc", "proc", "run", "sys", "var"]  # below these, a run may change files


class Kind(NamedTuple):
    """Hosts alike: their trees by name, the first of which is the seed, and the variables of all, their group's."""

    name: str
    trees: dict[str, str]
    variables: dict[str, Any]

    @property
    def seed(self) -> str:
        """The first tree."""
        return next(iter(self.trees.values()))


def play(scratch: Path, tree: str, what: str, variables: dict[str, Any], collections: str = "") -> None:
    """Run a playbook on one host through the simulator; raises RuntimeError where it fails."""
    name = os.path.basename(tree)
    shared = {"ansible_connection": "sim", "ansible_python_interpreter": sys.executable}
    inventory = scratch / f"{name}-by-sim.yml"
    hosts = {name: {"sim_tree": tree, **variables}}
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": shared}}), encoding="utf-8")
    more = {"ANSIBLE_COLLECTIONS_PATH": os.pathsep.join([controller.collections(str(scratch)), collections])}
    played = controller.playbook(str(scratch), str(inventory), what, variables=more if collections else None)
    if played.rc:
        raise RuntimeError(f"{what} failed on {name}:\n{played.out[-3000:]}{played.err[-2000:]}")


def fresh(tree: str, name: str) -> str:
    """A host on which none of the work is done, on a real kernel's release."""
    build(tree, work_machine(), name)
    for key, (_wanted, before) in work.SYSCTLS.items():
        put(tree, "/proc/sys/" + key.replace(".", "/"), before + "\n")
    put(tree, f"/usr/lib/modules/{os.uname().release}/modules.builtin", "")  # community.general.modprobe reads it
    descriptors(tree)
    return tree


def descriptors(tree: str) -> None:
    """What a process sees of its own descriptors: else each program that a Python starts costs it hundreds of calls."""
    for one in range(3):
        put(tree, f"/proc/self/fd/{one}", "")


def work_machine() -> Machine:
    """A machine for all of the work: pages of 1 GiB enough, an IOMMU that wants its argument."""
    return machine("debian", runtime_1g=4)


def twins(scratch: Path, name: str, seed: str, number: int) -> dict[str, str]:
    """So many hosts like a seed, by name."""
    found = {}
    for one in range(1, number + 1):
        host = f"{name}-{one:03}"
        found[host] = str(scratch / "trees" / host)
        twin(seed, found[host], host)
        put(found[host], "/etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {host}\n")
    return found


def keep(tree: str) -> None:
    """A copy of what a run may change in a tree, for `restore`."""
    kept = Path(tree + ".kept")
    shutil.rmtree(kept, ignore_errors=True)
    for top in CHANGED:
        shutil.copytree(f"{tree}/{top}", kept / top, symlinks=True)


def restore(tree: str) -> None:
    """Bring a tree back to what `keep` kept: files in their place, since a namespace is open over it."""
    kept = Path(tree + ".kept")
    for folder, folders, names in os.walk(tree):
        if folder == tree:
            folders[:] = CHANGED
            continue
        inside = os.path.relpath(folder, tree)
        folders[:] = [one for one in folders if f"/{inside}/{one}" != stubs.FOLDER]
        for one in (*names, *folders):
            if not os.path.lexists(kept / inside / one):
                path = Path(folder, one)
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        folders[:] = [one for one in folders if os.path.isdir(os.path.join(folder, one))]
    for folder, _folders, names in os.walk(kept):
        target = Path(tree) / Path(folder).relative_to(kept)
        target.mkdir(exist_ok=True)
        for one in names:
            _same(Path(folder) / one, target / one)


def _same(source: Path, target: Path) -> None:
    if source.is_symlink():
        if not target.is_symlink() or os.readlink(source) != os.readlink(target):
            target.unlink(missing_ok=True)
            target.symlink_to(os.readlink(source))
    elif not target.is_file() or source.read_bytes() != target.read_bytes():
        shutil.copy2(source, target)


def converged_work(scratch: Path, trees: Path, name: str, sections: dict[str, Any]) -> str:
    """A host on which the work of these sections is done by us."""
    tree = fresh(str(trees / name), name)
    variables = {"bcd_converge_units": sections}
    play(scratch, tree, "bettercompute.bcd.converge", variables)
    SimulatedHost(tree).reboot()
    play(scratch, tree, "bettercompute.bcd.converge", variables)
    return tree


def peers_work(scratch: Path, trees: Path, collections: str, books: tuple[str, ...]) -> str:
    """A host on which the work of these plays is done as people write it."""
    tree = fresh(str(trees / "theirs"), "theirs")
    for book in books:
        play(scratch, tree, book, {}, collections)
    return tree


def hostvars(kind: Kind, holders: dict[str, int]) -> dict[str, dict[str, Any]]:
    """The way into each of the hosts of a kind."""
    return {name: {"room_tree": tree, "room_holder": holders[tree]} for name, tree in kind.trees.items()}
