# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our one drop-in for containerd: the parts of several units in one file, which loses nothing of anyone's.

containerd 1.x takes the whole table of a plugin from the last file that has one: two drop-ins would take each other's
keys away, and one with nothing but our keys the registry mirrors and even the runtime runc. There ours carries the
table as it is without us, with our keys in it, and is read last. containerd 2.x merges key by key, and our keys are
enough. containerd itself says what files mean: `containerd config dump` over the candidate, before anything is written.
So drop-ins of others keep their say: ours is made anew from what they hold, on each pass.
"""

from __future__ import annotations

from ..core.errors import Refused
from . import toml
from .containerd_merge import (
    NEW_CRI,
    OLD_CRI,
    Table,
    changes,
    cri_of,
    is_modern,
    lay,
    merged,
    strings,
)
from .containerd_seen import CONFIG, DEBIAN_CNI, DEBT, IMPORT, Parts, parts_of
from .files import HEADER, is_as
from .toml_text import render, with_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.plan import Past, Todo
    from .containerd_edits import Edit
    from .containerd_seen import Containerd

DISABLED = frozenset(("cri", OLD_CRI, NEW_CRI))


def keep(todo: Todo, unit: str, seen: Containerd, base: Table, parts: Parts, past: Past, start: bool = False) -> bool:
    """Plan our drop-in with these parts, its import, and the restart; whether containerd is up to date without a step.

    `base` is what containerd makes of its files without us. `start`: a containerd that does not run is started. Raises
    Refused where a value of someone else would change, or ours would come to nothing.
    """
    now, before, fresh = seen, base, not toml.parse(seen.text, CONFIG)
    if fresh:
        from .containerd_check import first

        now = seen._replace(text=first(seen, base, parts), imported=True)
        base = effective(unit, now, "", past)
    if seen.newly:
        before = effective(unit, seen, "", past, newly=False)
    config, text = _config(now), _drop_in(now, base, parts)
    mode = _mode(now, is_modern(base))
    if is_as(seen.ours, text, mode) and config == seen.text and not seen.stale:
        return carry_out(todo, unit, seen, [], (config, text), past, start)
    from .containerd_edits import edits

    if seen.ours is None or seen.ours.text != text or config != seen.text:
        from .containerd_check import judge

        judge(unit, now, (before, base, effective(unit, now, text, past)), parts, fresh, bool(_cni(now, base, parts)))
    return carry_out(todo, unit, seen, edits(unit, seen, text, config, mode), (config, text), past, start)


def effective(unit: str, now: Containerd, ours: str, past: Past, newly: bool = True) -> Table:
    """`containerd config dump` with `ours` as our drop-in ("": without one) and all other files as they are.

    `newly`: with the files that nothing imports yet. Raises Refused for what containerd does not read.
    """
    if now.around:  # what it reads without ours could not be told
        raise Refused(
            f"{unit}: {now.around} imports {CONFIG} or {now.path.rpartition('/')[0]} itself: take that out of its "
            f"imports, or have it in those of {CONFIG} alone"
        )
    left_out = {*now.stale, *(() if ours else (now.path,)), *(() if newly else now.newly)}
    imports = ["ours.toml" if path == now.path else path for path in now.imports if path not in left_out]
    text = with_key(_versioned(now.text), "imports", imports, CONFIG)
    files = (("main.toml", text), *((("ours.toml", ours),) if ours else ()))
    follows = (now.program, *(one.path for one in now.read)) if now.program else ()
    answer = past.ask(("containerd", "-c", "{main.toml}", "config", "dump"), files, follows)
    if answer.rc != 0:
        said = " ".join((answer.err or answer.out).split())[-400:]
        raise Refused(f"{unit}: containerd does not read {CONFIG} with what it imports ({said}): correct it")
    return toml.parse(answer.out, "what containerd config dump prints,")


def is_off(table: Table) -> bool:
    """Whether a file or a dump turns the CRI plugin off."""
    return bool(DISABLED & {*strings(table.get("disabled_plugins"))})


def go_on(todo: Todo, unit: str, now: Containerd, past: Past) -> bool:
    """Whether files may be planned: a change that is not through comes first (see containerd_change)."""
    if now.record is None:
        return True
    from .containerd_change import go_on as see_through

    return see_through(todo, unit, now, past)


def finish(todo: Todo, unit: str, now: Containerd, past: Past, start: bool = False) -> bool:
    """Plan the restart that a killed pass owes, the files being as they should; whether none is due."""
    ours = now.ours.text if now.ours is not None else ""
    return carry_out(todo, unit, now, [], (now.text, ours), past, start)


def carry_out(
    todo: Todo, unit: str, now: Containerd, edits: list[Edit], candidate: tuple[str, str], past: Past, start: bool
) -> bool:
    """Plan edits and the restart, which most passes have none of; whether neither is due."""
    if not edits and now.record is None and DEBT not in past.owed:
        return True
    from .containerd_change import carry_out as change

    return change(todo, unit, now, edits, candidate, past, start)


# -- what we write


def _mode(now: Containerd, modern: bool) -> int:
    """What carries a table that not everyone may read is not open either: it may hold the credentials of registries."""
    hidden = now.config is not None and not now.config.mode & 0o004
    return 0o600 if not modern and (hidden or any(not one.open for one in now.read)) else 0o644


def _drop_in(now: Containerd, base: Table, parts: Parts) -> str:
    cri = cri_of(base) or {}
    ours = changes(cri, parts)
    lay(ours, _cni(now, base, parts))
    given = toml.parse(now.text, CONFIG).get("version", 2)
    version = min(3, given) if is_modern(base) else 2
    table = ours if is_modern(base) else merged(_last_table(now), ours, cri)
    return HEADER + parts.line + render({"version": version, "plugins": {NEW_CRI if version >= 3 else OLD_CRI: table}})


def _cni(now: Containerd, base: Table, parts: Parts) -> Table:
    """Where CNI's plugins are, which only a kubelet needs to be right."""
    if not (parts.kube and may_look_in_debians(now)):
        return {}
    from .containerd_cni import moved

    return moved(now, base)


def _last_table(now: Containerd) -> Table:
    """The CRI table that containerd 1.x takes without us: the last one that it reads, whole."""
    found: Table = {}
    for path, text in texts_of(now):
        table = toml.parse(text, path).get("plugins", {}).get(OLD_CRI)
        found = table if isinstance(table, dict) else found
    return found


def texts_of(now: Containerd) -> list[tuple[str, str]]:
    """Every file but ours, with its text, in the order of reading."""
    return [(CONFIG, now.text), *((one.path, one.text) for one in now.read)]


def may_look_in_debians(now: Containerd) -> bool:
    """Whether a file may name Debian's folder of CNI's plugins, so that it may be the only one that counts."""
    return any(DEBIAN_CNI in text or "\\u" in text.lower() for _path, text in texts_of(now))  # or spells it by numbers


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


def refuse_version_1(unit: str, main: Table, instead: str = "") -> None:
    """Version 1 names plugins otherwise, and cannot be mixed with drop-ins of a later one."""
    version = main.get("version", 1)
    if not isinstance(version, int) or version < 2:
        from .containerd_unfit import refuse_version

        refuse_version(unit, main, instead)


def note_hidden(todo: Todo, now: Containerd, modern: bool) -> None:
    """Name nvidia-ctk's drop-in where it hides what others wrote before it."""
    if not modern and len(now.read) > 1:
        from .containerd_unfit import note_hidden as note

        note(todo, now)


def all_parts(now: Containerd) -> Parts:
    """Whom our drop-in is for, also where it lies in another place."""
    found = [parts_of(now.ours), *(parts_of(file) for file in now.stale.values())]
    return Parts(any(one.toolkit for one in found), any(one.cdi for one in found), any(one.kube for one in found))
