# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd without the kubelet's part, which is handed back."""

from __future__ import annotations

from ..core.plan import Past, Todo
from .containerd_drop_in import all_parts, carry_out, effective, finish, go_on, keep
from .containerd_edits import Edit
from .containerd_seen import CONFIG, Containerd
from .unit_names import K8S_JOIN as UNIT


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
