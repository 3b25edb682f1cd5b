# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that containerd reads, in its order, and whether its daemon answers."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ..plan import toml
from ..plan.containerd_seen import (
    CNI,
    CONFIG,
    DEBIAN_CNI,
    FOLDER,
    IMPORT,
    NAME,
    RECORD,
    SERVICE,
    SOCKET,
    Containerd,
    DropIn,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..core.host import Host
    from ..core.seen import File


def containerd_files(host: Host, daemon: bool = True) -> Containerd:
    """containerd's configuration with everything that it imports; raises Refused for TOML that cannot be read.

    `daemon`: with what its daemon says, which is looked at anyway where a change of its files is not through.
    """
    text = host.read(CONFIG) or ""
    table = toml.parse(text, CONFIG)
    patterns = _imports(table)
    path = _place(patterns)
    imported = path is not None
    path = path or f"{FOLDER}/{NAME}"
    direct = _resolved(host, CONFIG, patterns if imported else [*patterns, IMPORT], path)
    before = direct if imported else _resolved(host, CONFIG, patterns, "")
    direct = tuple(name for name in direct if name != CONFIG)  # which is read by then
    record = host.read(RECORD)
    read, around = _read(host, direct, path)
    address = _address([(CONFIG, text), *((one.path, one.text) for one in read)])
    seen = Containerd(
        config=host.file(CONFIG),
        text=text,
        path=path,
        imports=direct,
        read=read,
        imported=imported,
        around=around,
        newly=tuple(name for name in direct if name not in before and name != path),
        ours=host.file(path),
        stale=_stale(host, path),
        systemd=bool(table) or _has_systemd(host),
        cni=tuple(folder for folder in (DEBIAN_CNI, CNI) if host.exists(f"{folder}/loopback")),
        address=address,
        record=record,
        program=host.which(SERVICE) or "",
    )
    if not daemon and record is None:
        return seen
    from .containerd_daemon import with_daemon

    return with_daemon(host, seen)


def _has_systemd(host: Host) -> bool:
    from ..plan.systemd_asks import RUNNING

    return host.exists(RUNNING)


def _address(texts: Iterable[tuple[str, str]]) -> str:
    """Where the files have containerd listen."""
    found = SOCKET
    for path, text in texts:
        grpc = toml.parse(text, path).get("grpc")
        given = grpc.get("address") if isinstance(grpc, dict) else None
        found = given if isinstance(given, str) and given else found
    return f"/run/{found[len('/var/run/') :]}" if found.startswith("/var/run/") else found


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


def _read(host: Host, direct: tuple[str, ...], ours: str) -> tuple[tuple[DropIn, ...], str]:
    """Every file but config.toml and ours, in the order of reading: imports of imports come after their parents.

    And the first of them that imports config.toml or ours itself; "" where none does.
    """
    found: dict[str, str] = {}
    around = ""
    pending = list(direct)
    while pending:
        path = pending.pop(0)
        text = None if path in found or path in (ours, CONFIG) else host.read(path)
        if text is not None:
            found[path] = text
            below = _resolved(host, path, _imports(toml.parse(text, path)), ours)
            around = around or (path if {ours, CONFIG} & {*below} else "")
            pending += below
    return tuple(DropIn(path, text, _is_open(host, path)) for path, text in found.items()), around


def _is_open(host: Host, path: str) -> bool:
    """Whether everyone may read the file; of what is a link it is not asked."""
    seen = host.file(path)
    return seen is None or not seen.regular or bool(seen.mode & 0o004)


def _stale(host: Host, path: str) -> dict[str, File]:
    """Ours in our folder, after its import moved to another one."""
    other = f"{FOLDER}/{NAME}"
    seen = host.file(other) if other != path else None
    return {} if seen is None else {other: seen}
