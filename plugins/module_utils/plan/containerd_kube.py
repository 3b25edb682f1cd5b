# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd for the kubelet: systemd's cgroups in every runtime of runc's kind, CDI, and a CRI that answers."""

from __future__ import annotations

from ..core.plan import Past, Todo
from . import toml
from .containerd_drop_in import (
    all_parts,
    effective,
    finish,
    go_on,
    is_off,
    keep,
    may_look_in_debians,
    note_hidden,
    refuse_version_1,
    texts_of,
)
from .containerd_merge import Table, cri_of, is_modern, knows_cdi, shows_cdi, without_systemd
from .containerd_seen import CNI, CONFIG, DEBIAN_CNI, SOCKET, Containerd
from .systemd_asks import RUNS
from .unit_names import K8S_JOIN as UNIT


def plan(todo: Todo, now: Containerd, past: Past, cgroupfs: bool = False) -> None:
    """Plan our part of the drop-in, and a containerd that is enabled, runs and answers.

    `cgroupfs`: this is a member whose kubelet is configured for other cgroups than systemd's; containerd 2.x tells it.
    Raises Refused, with the file, for a configuration that cannot be read or extended, or has no CRI.
    """
    if not go_on(todo, UNIT, now, past):
        return
    main = toml.parse(now.text, CONFIG)
    if any(is_off(toml.parse(text, path)) for path, text in texts_of(now)) or (main and "version" not in main):
        from .containerd_kube_unfit import refuse_files

        refuse_files(now, main)
    refuse_version_1(UNIT, main, " and run again")
    base = effective(UNIT, now, "", past)
    cri = cri_of(base)
    if cri is None or is_off(base) or now.address != SOCKET:
        from .containerd_kube_unfit import without_cri

        raise without_cri(now, cri is not None and not is_off(base))
    if cgroupfs and not is_modern(base):
        from .kubelet_cgroups import left

        todo.add(left())
        return
    if main and base.get("version") == 3:
        from .containerd_kube_unfit import refuse_mixed

        refuse_mixed(now, main)
    note_hidden(todo, now, is_modern(base))
    _note(todo, now, base, cri)
    _plan_up(todo, now, base, cri, past)


def _plan_up(todo: Todo, now: Containerd, base: Table, cri: Table, past: Past) -> None:
    """Have it started at boot, then its files as they should be, then have it running."""
    daemon = now.daemon
    if daemon.load == "not-found" or daemon.enabled == "disabled" or daemon.enabled.startswith("masked"):
        from .containerd_kube_service import enable

        enable(todo, daemon)
    if _plan_files(todo, now, base, cri, past) and (daemon.active not in RUNS or daemon.silent):
        from .containerd_kube_service import start

        start(todo, daemon)


def _plan_files(todo: Todo, now: Containerd, base: Table, cri: Table, past: Past) -> bool:
    """Our part, where it is there or something is missing without it; whether nothing is due."""
    parts = all_parts(now)
    shown = not without_systemd(cri) and (not knows_cdi(cri) or shows_cdi(cri, kube=True))
    if parts.kube or not shown or _moves(now, base) or not toml.parse(now.text, CONFIG):
        return keep(todo, UNIT, now, base, parts._replace(kube=True), past, start=True)
    return finish(todo, UNIT, now, past, start=True)


def _moves(now: Containerd, base: Table) -> bool:
    """Whether CNI's plugins are in the one folder, and containerd looks in the other alone."""
    if CNI not in now.cni or DEBIAN_CNI in now.cni or not may_look_in_debians(now):
        return False
    from .containerd_cni import alone

    return bool(alone(now, base)[0])


def _note(todo: Todo, now: Containerd, base: Table, cri: Table) -> None:
    if not knows_cdi(cri) or ({DEBIAN_CNI, CNI} <= {*now.cni} and may_look_in_debians(now)):
        from .containerd_kube_unfit import note

        note(todo, now, base, cri)
