# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd for container-toolkit: the runtime nvidia, and CDI, as a part of our drop-in (see containerd_drop_in)."""

from __future__ import annotations

from . import toml
from .containerd_drop_in import all_parts, effective, finish, go_on, is_off, keep, note_hidden, refuse_version_1
from .containerd_merge import cri_of, is_modern, knows_cdi, shows_cdi, shows_nvidia, takes_systemd
from .containerd_seen import CONFIG
from .unit_names import CONTAINER_TOOLKIT as UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.plan import Past, Todo
    from .containerd_seen import Containerd


def plan(todo: Todo, now: Containerd, cdi: bool, named: bool, past: Past) -> None:
    """Plan our part of the drop-in, its import, and the restart, as far as the effective configuration lacks it.

    `named`: the settings name containerd. Raises Refused, with the file, for a configuration that cannot be read or
    extended.
    """
    if not go_on(todo, UNIT, now, past):
        return
    main = toml.parse(now.text, CONFIG)
    if is_off(main):
        todo.note(f"containerd's CRI plugin is off in {CONFIG} (disabled_plugins): nothing of it is configured")
        return
    refuse_version_1(UNIT, main, ", or take containerd off runtimes")
    base = effective(UNIT, now, "", past)
    cri = cri_of(base)
    parts = all_parts(now)
    if cri is None or is_off(base):
        todo.note("this containerd has no CRI plugin, or it is off: nothing of it is configured")
        return
    if cdi and not knows_cdi(cri):
        from .container_runtime_change import without_cdi

        without_cdi(todo, "containerd", "1.7", named)
        return
    note_hidden(todo, now, is_modern(base))
    shown = bool(main) and shows_nvidia(cri, takes_systemd(cri)) and (not cdi or shows_cdi(cri, kube=False))
    if parts.toolkit or not shown:
        keep(todo, UNIT, now, base, parts._replace(toolkit=True, cdi=cdi), past)
    else:
        finish(todo, UNIT, now, past)
