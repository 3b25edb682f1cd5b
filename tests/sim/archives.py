# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the archives that Ansible builds of modules from one run to the next, while no file has changed.

Ansible puts a module and all of module_utils that it needs into one archive, keeps it in a directory of the run's own
for further tasks, and throws that away at the end. To build one costs more than all the rest of a playbook on a
simulated host. An archive follows from files of the collection and of Ansible alone: so what a run has built is put
into the next one's directory, as long as these files are the same. All else is Ansible's own doing: it looks for the
archive there, as in the second task of a run, and builds what it does not find.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import sys

FOLDERS = ("plugins/modules", "plugins/module_utils", "meta")
VARIABLES = ("ANSIBLE_LIBRARY", "ANSIBLE_MODULE_UTILS", "ANSIBLE_CONFIG")
STORES = 8  # so many states of the files are kept: two versions of Ansible, a checkout that is being worked on


def lend(cache: str, stores: str) -> None:
    """Put what former runs built into this run's directory, and keep what it adds when it ends."""
    before = signature()
    store = os.path.join(stores, before)
    lent = archives(store)
    for name in lent:
        put(os.path.join(store, name), os.path.join(cache, name))
    # Before Ansible removes its directory: what is registered last runs first.
    atexit.register(keep, cache, stores, before, lent)


def keep(cache: str, stores: str, before: str, lent: set[str]) -> None:
    """Keep the archives that a run has built; none of them when somebody has changed a file since it began."""
    new = archives(cache) - lent
    if not new or signature() != before:
        return
    for name in new:
        put(os.path.join(cache, name), os.path.join(stores, before, name))
    with contextlib.suppress(OSError):  # another run removes them too
        places = sorted((entry.stat().st_mtime, entry.path) for entry in os.scandir(stores))
        for _time, place in places[:-STORES]:
            shutil.rmtree(place, ignore_errors=True)


def signature() -> str:
    """What an archive follows from: this Python and Ansible, and each file of a collection that may go into one."""
    import ansible.release

    words = [sys.version, ansible.release.__file__, ansible.release.__version__]
    words += [os.environ.get(name, "") for name in VARIABLES]
    for place in os.environ.get("ANSIBLE_COLLECTIONS_PATH", "").split(":"):
        top = os.path.join(place, "ansible_collections")
        for collection in (f"{space}/{name}" for space in names(top) for name in names(f"{top}/{space}")):
            for folder in FOLDERS:
                words += files(f"{top}/{collection}/{folder}", f"{collection}/{folder}")
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]


def names(place: str) -> list[str]:
    """What a directory holds; nothing of what is none."""
    return sorted(os.listdir(place)) if os.path.isdir(place) else []


def files(place: str, name: str) -> list[str]:
    """A line for each file below a place: its name, and what it holds."""
    found: list[str] = []
    if os.path.isdir(place):
        with os.scandir(place) as entries:
            for entry in entries:
                below = f"{name}/{entry.name}"
                if entry.is_dir():
                    found += files(entry.path, below) if entry.name != "__pycache__" else []
                else:
                    with open(entry.path, "rb") as source:
                        found.append(f"{below} {hashlib.sha256(source.read()).hexdigest()}")
    return sorted(found)


def archives(place: str) -> set[str]:
    """The archives in a directory: no lock, and none that is still being written."""
    return {name for name in names(place) if not name.endswith((".lock", "-part"))}


def put(source: str, target: str) -> None:
    """Have a file at another place too, whole or not at all; who comes second, or may not write there, leaves it."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError:
            return
        except OSError:  # another file system
            part = f"{target}.{os.getpid()}-part"
            shutil.copyfile(source, part)
            os.rename(part, target)
