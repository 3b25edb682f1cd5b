# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""host-config: root's own configuration of a host, and the record of its join.

No unit of a section: only root says who may sign for a machine, what it may join, and whether it is ours at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Union

from ..core.errors import Refused
from ..core.plan import Field, Past, Plan, Todo
from ..core.state import JOIN_RECORD
from ..core.step import Effect, File, command_line, run
from .allowed_clusters import clusters
from .files import AGAIN, drop, is_as, keep
from .installed import CONFIG, GROUP
from .pins import JOIN_KEY, ROOTS, Pins, pins
from .settings import strict

NAME = "host-config"
KEPT = "# Kept by bettercompute.bcd (host_config): root's own values stay until it is given others, comments do not.\n"
FOLDER = CONFIG.rpartition("/")[0]
RECORD = JOIN_RECORD
SIGNING_KEY = "signing_key"
FOLDER_MODE, MODE = 0o750, 0o640

FIELDS = (
    Field("allowedClusters", "allowed_clusters", (list,)),
    Field("hostUnits", "host_units", (bool,)),
    Field("commandRoots", "command_roots", (list,)),
    Field("joinPin", "join_pin", (str,)),
    Field("signingKey", "signing_key", (str,)),
    Field("joinRecord", "join_record", (str,)),
    Field("group", "group", (str,)),
)
Scalar = Union[str, int, bool]
Tables = Mapping[str, Mapping[str, Scalar]]
GROUP_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


class Settings(NamedTuple):
    """What the configuration is to say; None keeps what it says now, and an empty text or list takes it out.

    `join_record` is the text of the record, which was verified before it comes here.
    """

    allowed_clusters: str | None = None
    host_units: bool | None = None
    command_roots: str | None = None
    join_pin: str | None = None
    signing_key: str | None = None
    join_record: str | None = None
    group: str = GROUP


class Now(NamedTuple):
    """What is there: the tables of the configuration, its file, the record's; what `asks_owner` says of each path.

    `has_group`: there is a group of the name.
    """

    tables: Tables
    file: File | None = None
    record: File | None = None
    folder_owner: str = ""
    file_owner: str = ""
    has_group: bool = False


def check(given: Mapping[str, Any]) -> Settings:
    """The settings; raises Refused for what no configuration may say."""
    found = strict(NAME, FIELDS, given)
    group = found.get("group", GROUP)
    if not GROUP_NAME.fullmatch(group):
        raise Refused(f"{NAME}: group is {group!r}, which is no name of a group: correct it")
    key = found.get("signingKey")
    if key and (not key.startswith("/") or "/../" in f"{key}/" or not key.isprintable()):
        raise Refused(f"{NAME}: signing_key is {key!r}: give the whole path of the key on the host, from /")
    return Settings(
        _listed("allowed_clusters", found.get("allowedClusters")),
        found.get("hostUnits"),
        _listed("command_roots", found.get("commandRoots")),
        found.get("joinPin"),
        key,
        found.get("joinRecord"),
        group,
    )


def _listed(option: str, items: Iterable[Any] | None) -> str | None:
    """The entries as the configuration has them, with commas."""
    if items is None:
        return None
    entries = list(items)
    wrong = [entry for entry in entries if not isinstance(entry, str) or not entry.strip() or "," in entry]
    if wrong:
        raise Refused(f"{NAME}: {option} has the entry {wrong[0]!r}: give one text each, without a comma")
    return ",".join(entry.strip() for entry in entries)


# -- the configuration


def wanted(tables: Tables, want: Settings) -> dict[str, dict[str, Scalar]]:
    """The tables as they are to be; raises Refused where root would then refuse to work by them."""
    found = {name: dict(table) for name, table in tables.items()}
    for key, value in ((ROOTS, want.command_roots), (JOIN_KEY, want.join_pin)):
        if value is not None:
            for table in found.values():  # a pin counts in whichever table it stands
                table.pop(key, None)
            _put(found, "", key, value)
    _put(found, "", SIGNING_KEY, want.signing_key)
    _put(found, "host", "units", want.host_units)
    _put(found, "kubernetes", "allowed_clusters", want.allowed_clusters)
    try:
        pins(found)
        clusters(found.get("kubernetes", {}).get("allowed_clusters", ""))
    except Refused as fault:
        raise Refused(
            f"{NAME} leaves {CONFIG} as it is, since with this it would be refused: {fault.message}"
        ) from None
    return found


def pinned(tables: Tables, want: Settings) -> Pins:
    """Who may sign for the host once the configuration is as it is to be."""
    return pins(wanted(tables, want))


def _put(tables: dict[str, dict[str, Scalar]], table: str, key: str, value: Scalar | None) -> None:
    if value is None:
        return
    if value == "":
        tables.get(table, {}).pop(key, None)
    else:
        tables.setdefault(table, {})[key] = value


def render(tables: Tables) -> str:
    """The text of the configuration: keys before the first table, then each table that has some."""
    parts = [KEPT]
    for name in sorted(tables):
        lines = [f"{key} = {_value(value)}\n" for key, value in sorted(tables[name].items())]
        if lines:
            parts += [f"\n[{name}]\n"] * bool(name) + lines
    return "".join(parts)


def _value(value: Scalar) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return json.dumps(value)


# -- the plan


def asks_owner(path: str) -> tuple[str, ...]:
    """The question for a path's permissions and its group: "750 bcd"."""
    return ("stat", "-c", "%a %G", path)


def asks_group(name: str) -> tuple[str, ...]:
    """The question for a group, which exits 0 where there is one."""
    return ("getent", "group", name)


def plan(want: Settings, now: Now, _past: Past) -> Plan:
    """The record before the pin that makes it count: a pin without its record would take the first node's spec."""
    todo = Todo()
    tables = wanted(now.tables, want)
    text = render(tables)
    if want.join_record:
        keep(todo, RECORD, want.join_record, now.record, mode=0o600)
    if not now.has_group:
        known = Effect("answers", command_line(asks_group(want.group)), f"{want.group}:x:\n")
        todo.add(run(("groupadd", "--system", want.group), f"make the group {want.group}", effects=(known,)))
    _plan_folder(todo, want.group, now)
    keep(todo, CONFIG, text, now.file, mode=MODE)
    if not is_as(now.file, text, MODE) or now.file_owner.partition(" ")[2] != want.group:
        effect = _owned(CONFIG, MODE, want.group)
        action = f"let the group {want.group} read {CONFIG}"
        todo.add(run(("chgrp", "--no-dereference", want.group, CONFIG), action, effects=(effect,)))
    found = pins(tables)
    if want.join_record == "" or not found.join_key:  # nobody can verify a record without the pin, and it stops all
        drop(todo, RECORD, now.record)
    todo.found("pins", {"command_roots": sorted(found.roots), "join_pin": found.join_key})
    return todo.plan()


def _plan_folder(todo: Todo, group: str, now: Now) -> None:
    if now.folder_owner == f"{FOLDER_MODE:o} {group}":
        return
    argv = ("install", "--directory", f"--mode={FOLDER_MODE:04o}", "--owner=root", f"--group={group}", FOLDER)
    action = f"make {FOLDER} root's, for the group {group} to read{AGAIN if now.folder_owner else ''}"
    todo.add(run(argv, action, effects=(_owned(FOLDER, FOLDER_MODE, group),)))


def _owned(path: str, mode: int, group: str) -> Effect:
    return Effect("answers", command_line(asks_owner(path)), f"{mode:o} {group}\n")


def absent(_now: Now, _past: Past) -> Plan:
    """There is no removal: what an administrator wants gone is given empty, by its name."""
    raise Refused(f"{NAME} is not removed: give what is to go as an empty value")
