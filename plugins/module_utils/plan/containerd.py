# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration: a drop-in of ours that loses nothing of anyone's.

containerd 1.x takes the whole table of a plugin from the last file that has one: a drop-in with nothing but our keys
would take the registry mirrors, the cgroup driver and even the runtime runc away. There ours carries the table as it is
without us, with our keys in it, and is read last. containerd 2.x merges key by key, and our keys are enough. containerd
itself says what files mean: `containerd config dump` over the candidate, before anything is written. So drop-ins of
other units and of others keep their say: ours is made anew from what they hold, on each pass.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import Refused
from ..core.plan import Past, Todo
from ..core.step import File, remove
from . import toml
from .container_runtime import debt, edit, refuse_link, restart, without_cdi
from .containerd_merge import (
    NEW_CRI,
    OLD_CRI,
    Table,
    changes,
    cri_of,
    is_modern,
    lost,
    merged,
    shows,
    strings,
    systemd_runc,
)
from .files import HEADER, keep
from .toml_text import render, with_key
from .unit_names import CONTAINER_TOOLKIT as UNIT

CONFIG = "/etc/containerd/config.toml"
FOLDER = "/etc/containerd/conf.d"
IMPORT = f"{FOLDER}/*.toml"
NAME = "99-zz-bcd-nvidia.toml"  # read after what nvidia-ctk and other tools write
CTK = "99-nvidia.toml"
DISABLED = frozenset(("cri", OLD_CRI, NEW_CRI))
SERVICE = "containerd"
CREATED = "# Created by bettercompute.bcd, which edits nothing in it but imports: the rest is yours.\n"


class DropIn(NamedTuple):
    """A file that the configuration imports, as read."""

    path: str
    text: str


class Containerd(NamedTuple):
    """What containerd reads on this host.

    `config` is config.toml (None: there is none), `text` what it holds. `imports` are the files that it names itself,
    in their order, with ours in its place at `path` whether or not it exists; `read` are all that exist without ours,
    those that an import imports too, in the order in which containerd reads them. `imported`: config.toml imports
    `path` as it is. `newly`: files that nothing imports yet and that an import of ours brings along. `ours` is ours at
    `path`, `stale` ours in other places.
    """

    config: File | None
    text: str
    path: str
    imports: tuple[str, ...]
    read: tuple[DropIn, ...] = ()
    imported: bool = True
    newly: tuple[str, ...] = ()
    ours: File | None = None
    stale: tuple[str, ...] = ()
    systemd: bool = True


def plan(todo: Todo, now: Containerd, cdi: bool, named: bool, past: Past) -> None:
    """Plan our drop-in, its import, and the restart, as far as the effective configuration lacks what we want.

    `named`: the settings name containerd. Raises Refused, with the file, for a configuration that cannot be read or
    extended.
    """
    main = toml.parse(now.text, CONFIG)
    if DISABLED & {*strings(main.get("disabled_plugins"))}:
        todo.note(f"containerd's CRI plugin is off in {CONFIG} (disabled_plugins): nothing of it is configured")
        return
    _refuse_version_1(main)
    base = effective(now, "", past)
    cri = cri_of(base)
    if cri is None or DISABLED & {*strings(base.get("disabled_plugins"))}:
        todo.note("this containerd has no CRI plugin, or it is off: nothing of it is configured")
    elif cdi and "enable_cdi" not in cri:
        without_cdi(todo, "containerd", "1.7", named)
    elif now.ours is None and not now.stale and main and shows(cri, cdi):
        _note_hidden(todo, now, is_modern(base))
        restart(todo, SERVICE, False, past)
    else:
        _note_hidden(todo, now, is_modern(base))
        _plan_drop_in(todo, now, base, cdi, past)


def _plan_drop_in(todo: Todo, seen: Containerd, base: Table, cdi: bool, past: Past) -> None:
    """The files as they have to be, asked of containerd where they differ from what is there."""
    now, before, fresh = seen, base, not toml.parse(seen.text, CONFIG)
    if fresh:
        now = seen._replace(text=_first(seen, base), imported=True)
        base = effective(now, "", past)
    elif seen.newly:
        before = effective(seen, "", past, newly=False)
    config = _config(now)
    text = _drop_in(now, base, cdi)
    if seen.ours is None or seen.ours.text != text or config != seen.text:
        after = effective(now, text, past)
        _refuse_idle(now, after, cdi)
        _refuse_lost(now, lost(before, after, fresh))
    _write(todo, seen, text, config, past)


def _write(todo: Todo, now: Containerd, text: str, config: str, past: Past) -> None:
    """The drop-in before its import: a pass that dies between them leaves a file that nobody reads."""
    owes = (debt(SERVICE),)
    changed = now.ours is None or now.ours.text != text
    refuse_link(now.path, now.ours)
    keep(todo, now.path, text, now.ours, owes=owes if changed else ())
    if config != now.text:
        action = f"import {now.path.rpartition('/')[0]}/*.toml in {CONFIG}" if now.text else f"write a first {CONFIG}"
        edit(todo, CONFIG, config, now.config, action, owes)
    for path in now.stale:
        todo.add(remove(path, f"remove {path}, which is ours and in another place now", owes=owes))
    restart(todo, SERVICE, changed or config != now.text or bool(now.stale), past)


def effective(now: Containerd, ours: str, past: Past, newly: bool = True) -> Table:
    """`containerd config dump` with `ours` as our drop-in ("": without one) and all other files as they are.

    `newly`: with the files that nothing imports yet. Raises Refused for what containerd does not read.
    """
    left_out = {*now.stale, *(() if ours else (now.path,)), *(() if newly else now.newly)}
    imports = ["ours.toml" if path == now.path else path for path in now.imports if path not in left_out]
    text = with_key(_versioned(now.text), "imports", imports, CONFIG)
    files = (("main.toml", text), *((("ours.toml", ours),) if ours else ()))
    answer = past.ask(("containerd", "-c", "{main.toml}", "config", "dump"), files)
    if answer.rc != 0:
        said = " ".join((answer.err or answer.out).split())[-400:]
        raise Refused(f"{UNIT}: containerd does not read {CONFIG} with what it imports ({said}): correct it")
    return toml.parse(answer.out, "what containerd config dump prints,")


# -- what we write


def _drop_in(now: Containerd, base: Table, cdi: bool) -> str:
    cri = cri_of(base) or {}
    ours = changes(cri, cdi)
    given = toml.parse(now.text, CONFIG).get("version", 2)
    version = min(3, given) if is_modern(base) else 2
    table = ours if is_modern(base) else merged(_last_table(now), ours, cri)
    return HEADER + render({"version": version, "plugins": {NEW_CRI if version >= 3 else OLD_CRI: table}})


def _last_table(now: Containerd) -> Table:
    """The CRI table that containerd 1.x takes without us: the last one that it reads, whole."""
    found: Table = {}
    for path, text in (DropIn(CONFIG, now.text), *now.read):
        table = toml.parse(text, path).get("plugins", {}).get(OLD_CRI)
        found = table if isinstance(table, dict) else found
    return found


def _first(now: Containerd, base: Table) -> str:
    """A first config.toml: containerd's own defaults, our import, and systemd's cgroup driver where systemd runs."""
    modern = is_modern(base)
    table: Table = {"version": 3 if modern else 2, "imports": [IMPORT]}
    if now.systemd:
        table["plugins"] = {NEW_CRI if modern else OLD_CRI: systemd_runc(cri_of(base) or {})}
    start = now.text if now.text.endswith("\n") or not now.text else now.text + "\n"
    return (start or CREATED) + render(table)


def _config(now: Containerd) -> str:
    """config.toml with an import of our folder, as it is where it has one."""
    text = _versioned(now.text)
    if now.imported:
        return text
    imports = strings(toml.parse(text, CONFIG).get("imports"))
    return with_key(text, "imports", [*imports, IMPORT], CONFIG)


def _versioned(text: str) -> str:
    return text if "version" in toml.parse(text, CONFIG) else with_key(text, "version", 2, CONFIG)


# -- what is refused, and said


def _refuse_version_1(main: Table) -> None:
    """Version 1 names plugins otherwise, and cannot be mixed with drop-ins of a later one."""
    version = main.get("version", 1)
    plain = "version" not in main and not {"plugins", "disabled_plugins", "required_plugins"} & main.keys()
    if not plain and (not isinstance(version, int) or version < 2):
        raise Refused(
            f"{UNIT}: {CONFIG} is of version {version}, which no drop-in can extend: convert it (containerd config "
            "migrate prints it in a later version), or take containerd off runtimes"
        )


def _refuse_idle(now: Containerd, after: Table, cdi: bool) -> None:
    cri = cri_of(after)
    if cri is None or not shows(cri, cdi):
        behind = (_having(now) or [CONFIG])[-1]
        raise Refused(
            f"{UNIT}: {now.path} comes to nothing, as {behind} is read after it and has a table of the CRI plugin too: "
            f"merge that table into {CONFIG}"
        )


def _having(now: Containerd) -> list[str]:
    """The drop-ins of others that have a table of the CRI plugin, in the order of reading."""
    names = {OLD_CRI, NEW_CRI}
    return [path for path, text in now.read if names & toml.parse(text, path).get("plugins", {}).keys()]


def _refuse_lost(now: Containerd, names: list[str]) -> None:
    if names:
        brings = f" with {', '.join(now.newly)}, which nothing imports yet," if now.newly else ""
        raise Refused(
            f"{UNIT}: {now.path}{brings} would change {', '.join(names[:3])} of containerd's configuration: move what "
            f"sets it into {CONFIG}, or take the other file out of {FOLDER}"
        )


def _note_hidden(todo: Todo, now: Containerd, modern: bool) -> None:
    """Name nvidia-ctk's drop-in where it hides what others wrote before it."""
    having = _having(now)
    if not modern and len(having) > 1 and having[-1].endswith(f"/{CTK}"):
        todo.note(
            f"{having[-1]}, which nvidia-ctk runtime configure wrote, replaces what {', '.join(having[:-1])} says "
            "of the CRI plugin: remove it, and the next pass carries what they say"
        )
