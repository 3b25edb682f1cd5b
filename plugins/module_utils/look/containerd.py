# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that containerd reads, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from ..core.host import Host
from ..plan import toml
from ..plan.containerd import CONFIG, FOLDER, IMPORT, NAME, Containerd, DropIn
from ..plan.systemd import RUNNING


def containerd_files(host: Host) -> Containerd:
    """containerd's configuration with everything that it imports; raises Refused for TOML that cannot be read."""
    text = host.read(CONFIG) or ""
    patterns = _imports(toml.parse(text, CONFIG))
    path = _place(patterns)
    imported = path is not None
    path = path or f"{FOLDER}/{NAME}"
    direct = _resolved(host, CONFIG, patterns if imported else [*patterns, IMPORT], path)
    before = direct if imported else _resolved(host, CONFIG, patterns, "")
    return Containerd(
        config=host.file(CONFIG),
        text=text,
        path=path,
        imports=direct,
        read=_read(host, direct, path),
        imported=imported,
        newly=tuple(name for name in direct if name not in before and name != path),
        ours=host.file(path),
        stale=_stale(host, path),
        systemd=host.exists(RUNNING),
    )


def _imports(table: dict[str, Any]) -> list[str]:
    imports = table.get("imports")
    return [word for word in imports if isinstance(word, str)] if isinstance(imports, list) else []


def _place(patterns: Iterable[str]) -> str | None:
    """Where our drop-in is imported: our own folder if it is, else the first that is; None where none is."""
    places = []
    for pattern in patterns:
        folder, _slash, last = pattern.rpartition("/")
        if folder.startswith("/") and "*" not in folder and "*" in last and fnmatchcase(NAME, last):
            places.append(f"{folder}/{NAME}")
    ours = f"{FOLDER}/{NAME}"
    return ours if ours in places else places[0] if places else None


def _resolved(host: Host, parent: str, patterns: Iterable[str], ours: str) -> tuple[str, ...]:
    """The files that imports name, in order, each once; `ours` in its place although it may not be there."""
    found: list[str] = []
    for given in patterns:
        pattern = given if given.startswith("/") else f"{parent.rpartition('/')[0]}/{given}"
        if "*" in pattern:
            match = ours if ours and fnmatchcase(ours, pattern) and ours.count("/") == pattern.count("/") else ""
            found += sorted({*_globbed(host, pattern), *([match] if match else [])})
        else:
            found.append(pattern)
    return tuple(dict.fromkeys(found))


def _globbed(host: Host, pattern: str) -> list[str]:
    """The paths that a pattern matches, component by component, as filepath.Glob of Go does."""
    paths = [""]
    for part in pattern.strip("/").split("/"):
        if any(mark in part for mark in "*?["):
            paths = [f"{path}/{name}" for path in paths for name in host.names(path or "/") if fnmatchcase(name, part)]
        else:
            paths = [f"{path}/{part}" for path in paths]
    return [path for path in paths if host.exists(path)]


def _read(host: Host, direct: tuple[str, ...], ours: str) -> tuple[DropIn, ...]:
    """Every file but config.toml and ours, in the order of reading: imports of imports come after their parents."""
    found: dict[str, str] = {}
    pending = list(direct)
    while pending:
        path = pending.pop(0)
        text = None if path in found or path in (ours, CONFIG) else host.read(path)
        if text is not None:
            found[path] = text
            pending += _resolved(host, path, _imports(toml.parse(text, path)), "")
    return tuple(DropIn(path, text) for path, text in found.items())


def _stale(host: Host, path: str) -> tuple[str, ...]:
    """Ours in our folder, after its import moved to another one."""
    other = f"{FOLDER}/{NAME}"
    return (other,) if other != path and host.exists(other) else ()
