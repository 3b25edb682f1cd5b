# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container runtimes of this host, and the files that each of them reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from ..core.host import Host
from ..plan import containerd as planner
from ..plan import crio, docker, toml
from ..plan.container_runtime import PROGRAMS, RUNTIMES
from ..plan.containerd import Containerd, DropIn
from ..plan.crio import Crio
from ..plan.docker import Docker
from ..plan.systemd import RUNNING

VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+\S*)")


def installed(host: Host) -> tuple[str, ...]:
    """The names of the runtimes whose program is there: containerd, docker, crio, podman."""
    return tuple(name for name in RUNTIMES if host.which(PROGRAMS[name]) is not None)


def versions(host: Host) -> dict[str, str]:
    """The version of each installed runtime, "" where it does not say one; a program each is asked."""
    found = {}
    for name in installed(host):
        said = VERSION.search(host.ask((PROGRAMS[name], "--version")).out)
        found[name] = said.group(1).rstrip(",") if said else ""
    return found


def docker_files(host: Host) -> Docker:
    """Docker's configuration."""
    return Docker(host.file(docker.CONFIG), host.read(docker.CONFIG) or "")


def crio_files(host: Host) -> Crio:
    """CRI-O's configuration: its file, then its drop-ins by name."""
    paths = [crio.CONFIG, *(f"{crio.FOLDER}/{name}" for name in host.names(crio.FOLDER))]
    texts = [(path, host.read(path)) for path in paths if path != crio.PATH]
    return Crio(tuple((path, text) for path, text in texts if text is not None), host.file(crio.PATH))


# -- containerd


def containerd_files(host: Host) -> Containerd:
    """containerd's configuration with everything that it imports; raises Refused for TOML that cannot be read."""
    text = host.read(planner.CONFIG) or ""
    patterns = _imports(toml.parse(text, planner.CONFIG))
    path = _place(patterns)
    imported = path is not None
    path = path or f"{planner.FOLDER}/{planner.NAME}"
    direct = _resolved(host, planner.CONFIG, patterns if imported else [*patterns, planner.IMPORT], path)
    before = direct if imported else _resolved(host, planner.CONFIG, patterns, "")
    return Containerd(
        config=host.file(planner.CONFIG),
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
        if folder.startswith("/") and "*" not in folder and "*" in last and fnmatchcase(planner.NAME, last):
            places.append(f"{folder}/{planner.NAME}")
    ours = f"{planner.FOLDER}/{planner.NAME}"
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
        text = None if path in found or path in (ours, planner.CONFIG) else host.read(path)
        if text is not None:
            found[path] = text
            pending += _resolved(host, path, _imports(toml.parse(text, path)), "")
    return tuple(DropIn(path, text) for path, text in found.items())


def _stale(host: Host, path: str) -> tuple[str, ...]:
    """Ours in our folder, after its import moved to another one."""
    other = f"{planner.FOLDER}/{planner.NAME}"
    return (other,) if other != path and host.exists(other) else ()
