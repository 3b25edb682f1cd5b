# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd for the kubelet: systemd's cgroups in every runtime of runc's kind, CDI, and a CRI that answers."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.plan import Past, Todo
from ..core.step import Effect, fail
from . import systemd, systemd_asks, toml
from .containerd_cni import alone
from .containerd_drop_in import (
    all_parts,
    carry_out,
    effective,
    finish,
    go_on,
    is_off,
    keep,
    note_hidden,
    refuse_version_1,
)
from .containerd_merge import Table, cri_of, having, is_modern, knows_cdi, shows_cdi, without_systemd
from .containerd_seen import CALL, CNI, CONFIG, DEBIAN_CNI, SOCKET, UNIT_FILE, Containerd, Edit
from .unit_names import K8S_JOIN as UNIT


def plan(todo: Todo, now: Containerd, past: Past, cgroupfs: bool = False) -> None:
    """Plan our part of the drop-in, and a containerd that is enabled, runs and answers.

    `cgroupfs`: this is a member whose kubelet is configured for other cgroups than systemd's; containerd 2.x tells it.
    Raises Refused, with the file, for a configuration that cannot be read or extended, or has no CRI.
    """
    if not go_on(todo, UNIT, now, past):
        return
    main = toml.parse(now.text, CONFIG)
    for path, text in ((CONFIG, now.text), *((one.path, one.text) for one in now.read)):
        _refuse_off(path, text)
    if main and "version" not in main:
        raise Refused(
            f"{UNIT}: {CONFIG} has settings and no version, which makes it one of version 1, that no drop-in can "
            "extend: convert it (containerd config migrate prints it in a later version) and run again"
        )
    refuse_version_1(UNIT, main, " and run again")
    base = effective(UNIT, now, "", past)
    cri = cri_of(base)
    if cri is None or is_off(base):
        raise Refused(f"{UNIT}: this containerd has no CRI plugin, which the kubelet needs: install one that has it")
    if now.address != SOCKET:
        raise Refused(
            f"{UNIT}: containerd listens at {now.address}, and the kubelet is told {SOCKET}: set address in [grpc] of "
            f"{CONFIG} to that, and run again"
        )
    if cgroupfs and not is_modern(base):
        from .kubelet_cgroups import left

        todo.add(left())
        return
    _refuse_mixed(now, main, base)
    _note(todo, now, base, cri)
    _plan_enabled(todo, now)
    if _plan_files(todo, now, base, cri, past):
        _plan_running(todo, now)


def absent(todo: Todo, now: Containerd, past: Past) -> None:
    """Plan the removal of our part; what another unit has in the drop-in stays, and so does containerd."""
    if not go_on(todo, UNIT, now, past):
        return
    parts = all_parts(now)
    if not parts.toolkit:
        _drop(todo, now, past)
    elif parts.kube and now.daemon.load != "not-found":
        keep(todo, UNIT, now, effective(UNIT, now, "", past), parts._replace(kube=False), past)
    else:
        finish(todo, UNIT, now, past)
    if now.config is not None:
        todo.note(f"{CONFIG} stays as it is, and containerd installed and enabled")


def _drop(todo: Todo, seen: Containerd, past: Past) -> None:
    """Plan the removal of our drop-in, and the restart."""
    paths = [*([seen.path] if seen.ours is not None else []), *seen.stale]
    carry_out(todo, UNIT, seen, [Edit(path, None, f"remove {path}") for path in paths], (seen.text, ""), past, False)


def _plan_files(todo: Todo, now: Containerd, base: Table, cri: Table, past: Past) -> bool:
    """Our part, where it is there or something is missing without it; whether nothing is due."""
    parts = all_parts(now)
    shown = not without_systemd(cri) and (not knows_cdi(cri) or shows_cdi(cri, kube=True))
    moves = alone(now, base)[0] and CNI in now.cni and DEBIAN_CNI not in now.cni
    if parts.kube or not shown or moves or not toml.parse(now.text, CONFIG):
        return keep(todo, UNIT, now, base, parts._replace(kube=True), past, start=True)
    return finish(todo, UNIT, now, past, start=True)


def _plan_enabled(todo: Todo, now: Containerd) -> None:
    """Have it started at boot; a step fails where it can never run."""
    load, enabled = now.daemon.load, now.daemon.enabled
    message = ""
    if load == "not-found":
        message = f"{UNIT}: there is no {UNIT_FILE}, by which containerd is run: install containerd as a package"
    elif enabled.startswith("masked"):
        message = f"{UNIT}: {UNIT_FILE} is masked: unmask it (systemctl unmask containerd) and run again"
    if message:
        todo.add(fail("start containerd", message, retryable=False))
    elif enabled == "disabled":
        todo.add(systemd.control("enable", UNIT_FILE, "have containerd started at boot"))


def _plan_running(todo: Todo, now: Containerd) -> None:
    """Have it running; what runs has to answer."""
    if now.daemon.active not in systemd_asks.RUNS:
        effects = (Effect("answers", CALL),)
        todo.add(systemd.control("start", UNIT_FILE, "start containerd", barrier=True, effects=effects))
    elif now.daemon.silent:
        message = (
            f"{UNIT}: containerd runs and its CRI does not answer ({now.daemon.silent}), which the kubelet needs: see "
            "journalctl -u containerd for why, and run again"
        )
        todo.add(fail("ask containerd for its version", message))


def _refuse_off(path: str, text: str) -> None:
    """A file that turns the CRI plugin off, as Docker's packaged one does, with the line that does."""
    if not is_off(toml.parse(text, path)):
        return
    span = toml.document(text, path).values[("disabled_plugins",)]
    line = text.count("\n", 0, span[0]) + 1
    raise Refused(
        f"{UNIT}: {path} line {line} turns containerd's CRI plugin off, which the kubelet needs "
        f"({' '.join(text.splitlines()[line - 1].split())}): take the plugin out of that list, or the line out of the "
        "file where it lists nothing else, and run again"
    )


def _refuse_mixed(now: Containerd, main: Table, base: Table) -> None:
    """containerd 2.0 to 2.2 reads tables of version 2 only where no file has those of version 3; later ones each."""
    if base.get("version") != 3:
        return
    mine = main.get("version", 2)
    for path in having(now):
        other = next(toml.parse(one.text, one.path).get("version", 1) for one in now.read if one.path == path)
        if main and (mine >= 3) != (other >= 3):
            raise Refused(
                f"{UNIT}: {path} is of version {other} and {CONFIG} of version {mine}, and this containerd reads the "
                f"tables of one of them alone: write it in version {mine}, or make it anew by the tool that did"
            )


def _note(todo: Todo, now: Containerd, base: Table, cri: Table) -> None:
    note_hidden(todo, now, is_modern(base))
    if not knows_cdi(cri):
        todo.note(
            "this containerd has no CDI, which came with 1.7: pods get GPUs by the runtime nvidia alone, and by no "
            "driver or plugin that hands them out by CDI"
        )
    if alone(now, base)[0] and {DEBIAN_CNI, CNI} <= {*now.cni}:
        todo.note(
            f"{CONFIG} has containerd look for CNI plugins in {DEBIAN_CNI} alone, and there are some in {CNI} too, "
            f"where networks of clusters put theirs: set bin_dir to the folder of yours"
        )
