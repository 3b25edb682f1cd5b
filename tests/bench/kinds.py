# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of hosts that the cases are run on, and the plays for them, made below a scratch directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER
from tests.bench import figures, stage, whole, work
from tests.bench.cases import Case
from tests.bench.medians import Spread
from tests.bench.plays import Plays
from tests.bench.stage import PYTHON, Kind
from tests.kubelet.grpc_server import Server
from tests.sim import controller
from tests.sim.host import SimulatedHost
from tests.sim.machine import put, read

PROGRAM = ("/usr/lib/bcd", "/usr/local/sbin/bcd")
OF_WHOLE = ("whole", "program", "drift")
# Each with its sections alone: a section that goes is a change.
OF_WORK = {
    "ours": work.SECTIONS,
    "parameters": {"sysctl": work.SECTIONS["sysctl"]},
    "argument": work.ARGUMENT_SECTION,
}
CRI = "/run/containerd/containerd.sock"
GPUS = 8


@contextmanager
def made(
    scratch: Path, cases: tuple[Case, ...], peers: str, told: Callable[[str], None], least: dict[str, int]
) -> Iterator[tuple[Plays, dict[str, Kind]]]:
    """The plays, and the kinds that the cases want, converged; `least`: how many hosts of a kind there are anyway.

    The cluster of some is served within the context.
    """
    wanted: dict[str, int] = dict(least)
    for case in cases:
        wanted[case.kind] = max(case.hosts, wanted.get(case.kind, 0))
    (scratch / "trees").mkdir()
    told("converge hosts by the simulator: a minute or two")
    with ExitStack() as served:
        found: dict[str, Kind] = {}
        units: dict[str, Any] = {}
        if set(OF_WHOLE) & set(wanted):
            units = _whole(served, scratch, wanted, found)
        else:
            controller.freeze(str(scratch))
        plays = Plays(scratch, peers)
        plays.units("units", units, ORDER)
        if "program" in found:
            _install(scratch, found["program"], plays)
        found.update(_work(scratch, wanted, plays))
        yield plays, found


def _whole(served: ExitStack, scratch: Path, wanted: dict[str, int], found: dict[str, Kind]) -> dict[str, Any]:
    """Put the kinds that have all twelve units into `found`; the units. What hosts ask is served in the stack."""
    names = [f"{kind}-{one:03}" for kind in OF_WHOLE for one in range(1, wanted.get(kind, 0) + 1)]
    hosts = served.enter_context(whole.build(scratch, names))
    for tree in hosts.trees.values():
        _databases(tree)
        stage.descriptors(tree)
        served.enter_context(containerd(tree))
    given = {"bcd_converge_units": hosts.units}
    for kind in OF_WHOLE:
        trees = {name: hosts.trees[name] for name in names if name.startswith(f"{kind}-")}
        if trees:
            found[kind] = Kind(kind, trees, given)
    return hosts.units


def _databases(tree: str) -> None:
    """What every Debian has and the simulator's do not: the files of which dpkg-query and modinfo tell."""
    release = (read(tree, "/proc/sys/kernel/osrelease") or "").strip()
    for path in ("/var/lib/dpkg/status", f"/usr/lib/modules/{release}/modules.dep.bin"):
        put(tree, path, "Their answers are those of the simulator, recorded.\n")


@contextmanager
def containerd(tree: str) -> Iterator[None]:
    """Its daemon, as far as it is asked whether its CRI answers: by this process, in no time of the host's."""
    path = Path(tree + CRI)
    path.parent.mkdir(parents=True, exist_ok=True)
    server = Server(path, lambda _method, _request: b"")
    try:
        yield
    finally:
        server.close()


def _work(scratch: Path, wanted: dict[str, int], plays: Plays) -> dict[str, Kind]:
    """Hosts of the work that is done twice, by us and by others."""
    found, trees = {}, scratch / "trees"
    given = {"bcd_converge_units": work.SECTIONS}
    for name, sections in OF_WORK.items():
        if name in wanted:
            tree = stage.converged_work(scratch, trees, name, sections)
            found[name] = Kind(name, {name: tree}, {"bcd_converge_units": sections})
    if "theirs" in wanted:
        books = (plays.path("peer_work"), plays.path("peer_argument"))
        done = stage.peers_work(scratch, trees, plays.peers, books)
        found["theirs"] = Kind("theirs", {"theirs": done}, {})
    for name in ("first", "first-theirs"):
        if name in wanted:
            tree = stage.fresh(str(trees / name), name)
            stage.keep(tree)
            found[name] = Kind(name, {name: tree}, given)
    return found


def _install(scratch: Path, kind: Kind, plays: Plays) -> None:
    """The program by the shipped role on the first host, and its files on the others."""
    book = plays.role("program", "bettercompute.bcd.bcd_program", {"bcd_program_python": PYTHON})
    stage.play(scratch, kind.seed, book, {})
    for tree in list(kind.trees.values())[1:]:
        for path in PROGRAM:
            _copy(kind.seed + path, tree + path)


def _copy(source: str, target: str) -> None:
    if os.path.isdir(source) and not os.path.islink(source):
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def eight_gpus(folder: Path | None, told: Callable[[str], None]) -> figures.Result:
    """How many processes of nvidia-smi a converged pass starts on a host with eight GPUs: the simulator counts them."""
    told(f"count processes of nvidia-smi with {GPUS} GPUs")
    counts = []
    with tempfile.TemporaryDirectory(prefix="bcd-bench-", dir=folder) as scratch, ExitStack() as held:
        hosts = held.enter_context(whole.build(Path(scratch), ["eight"], gpus=GPUS))
        host = SimulatedHost(hosts.trees["eight"])
        for _turn in ("makes all turns", "knows what it can of them again"):  # the one that asks more counts
            host.forget_calls()
            played = hosts.converge()
            if played.rc:
                raise RuntimeError(played.out[-2000:] + played.err[-2000:])
            counts.append(len(host.calls("nvidia-smi")))
    return figures.Result(figures.EIGHT_GPUS, Spread(max(counts), min(counts), max(counts)))
