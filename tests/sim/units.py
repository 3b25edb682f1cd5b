# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unit files of a simulated host: where they are, what they say, what is enabled or masked."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable

from .machine import at, drop, names, put, read

PLACES = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
OWN = "/etc/systemd/system"
SUFFIXES = (".service", ".mount", ".socket", ".target", ".timer", ".swap", ".slice", ".path")


class Failed(Exception):
    """What systemctl prints; with its exit status."""

    def __init__(self, rc: int, text: str) -> None:
        super().__init__(text)
        self.rc = rc


def full(name: str) -> str:
    """A unit's whole name: `ssh` is `ssh.service`."""
    return name if name.endswith(SUFFIXES) else name + ".service"


def path_of(root: str, unit: str) -> str | None:
    """The unit's file, the first of the places that has it; None when there is none."""
    for place in PLACES:
        if os.path.lexists(at(root, f"{place}/{unit}")):
            return f"{place}/{unit}"
    return None


def masked(root: str, unit: str) -> bool:
    """Whether the unit is a link to /dev/null."""
    path = path_of(root, unit)
    return path is not None and os.path.islink(at(root, path)) and os.readlink(at(root, path)) == "/dev/null"


def sections(text: str) -> dict[str, dict[str, list[str]]]:
    """A unit file's settings: {section: {key: [values]}}; an empty value takes back those before it."""
    found: dict[str, dict[str, list[str]]] = {}
    here: dict[str, list[str]] = {}
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            here = found.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith(("#", ";")):
            key, _unused, value = line.partition("=")
            if value.strip():
                here.setdefault(key.strip(), []).append(value.strip())
            else:
                here[key.strip()] = []
    return found


def settings(root: str, unit: str) -> dict[str, dict[str, list[str]]]:
    """The unit's settings with its drop-ins; empty when it has no file or is masked."""
    path = path_of(root, unit)
    if path is None or masked(root, unit):
        return {}
    return sections("\n".join(text for _unused, text in texts(root, unit)))


def texts(root: str, unit: str) -> list[tuple[str, str]]:
    """The unit file and its drop-ins, with their paths."""
    path = path_of(root, unit)
    found = [(path, read(root, path) or "")] if path and not masked(root, unit) else []
    dropins = {
        name: f"{place}/{unit}.d/{name}" for place in reversed(PLACES) for name in names(root, f"{place}/{unit}.d")
    }
    return found + [
        (dropins[name], read(root, dropins[name]) or "") for name in sorted(dropins) if name.endswith(".conf")
    ]


def digest(root: str, unit: str) -> str:
    """Of the unit file and its drop-ins, as they are on disk."""
    return hashlib.sha256(repr(texts(root, unit)).encode()).hexdigest()


def conditions(root: str, unit: dict[str, list[str]]) -> bool:
    """Conditions on paths; one that does not hold skips the unit without failing it."""
    tests: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("ConditionPathExists", os.path.exists),
        ("ConditionPathExistsGlob", glob.glob),
        ("ConditionPathIsDirectory", os.path.isdir),
    )
    for key, test in tests:
        for path in unit.get(key, ()):
            if bool(test(at(root, path.lstrip("!|")))) == path.startswith("!"):
                return False
    return True


def enabled(root: str, unit: str) -> str:
    """enabled, disabled, static, masked, or empty for a unit without a file."""
    if path_of(root, unit) is None:
        return ""
    if masked(root, unit):
        return "masked"
    if _links(root, unit):
        return "enabled"
    return "disabled" if settings(root, unit).get("Install") else "static"


def _links(root: str, unit: str) -> list[str]:
    """The links that enable it."""
    found = []
    for place in PLACES:
        for folder in names(root, place):
            if folder.endswith((".wants", ".requires")) and os.path.islink(at(root, f"{place}/{folder}/{unit}")):
                found.append(f"{place}/{folder}/{unit}")
    return found


def enable(root: str, unit: str) -> list[str]:
    """Make its links; what systemctl prints of it."""
    path = path_of(root, unit)
    if path is None:
        raise Failed(1, f"Failed to enable unit: Unit file {unit} does not exist.")
    if masked(root, unit):
        raise Failed(1, f"Failed to enable unit: Unit file {path} is masked.")
    install = settings(root, unit).get("Install", {})
    printed = []
    for key, suffix in (("WantedBy", "wants"), ("RequiredBy", "requires")):
        for target in " ".join(install.get(key, ())).split():
            link = f"{OWN}/{target}.{suffix}/{unit}"
            if not os.path.islink(at(root, link)):
                os.makedirs(at(root, os.path.dirname(link)), exist_ok=True)
                os.symlink(path, at(root, link))
                printed.append(f"Created symlink {link} → {path}.")
    return printed


def disable(root: str, unit: str) -> list[str]:
    """Take its links away."""
    links = [link for link in _links(root, unit) if link.startswith(OWN)]
    if path_of(root, unit) is None and not links:
        raise Failed(1, f"Failed to disable unit: Unit file {unit} does not exist.")
    for link in links:
        drop(root, link)
    return [f'Removed "{link}".' for link in links]


def mask(root: str, unit: str, on: bool) -> None:
    """Mask or unmask it."""
    link = f"{OWN}/{unit}"
    if on:
        if os.path.lexists(at(root, link)) and not os.path.islink(at(root, link)):
            raise Failed(1, f"Failed to mask unit: File {link} already exists.")
        drop(root, link)
        os.symlink("/dev/null", at(root, link))
    elif masked(root, unit):
        drop(root, link)


def unit_file(root: str, name: str, text: str, started: bool = False) -> None:
    """Give the machine a packaged unit; when `started`, enabled too, so that it runs from the next boot."""
    put(root, f"/usr/lib/systemd/system/{name}", text)
    if started:
        enable(root, name)
