# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs ansible-playbook against simulated hosts, with this checkout's collection and nothing of the caller's own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

HERE = os.path.dirname(os.path.realpath(__file__))
CHECKOUT = os.path.dirname(os.path.dirname(HERE))
FOREIGN = ("ANSIBLE_", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")


class Played(NamedTuple):
    """What a run of ansible-playbook left."""

    rc: int
    out: str
    err: str

    def events(self) -> dict[str, Any]:
        """What `as_json` prints: "tasks" (host, task, action, status, result), "stats" by host, "custom"."""
        found: dict[str, Any] = json.loads(self.out[self.out.index('{"tasks": ') :])
        return found


def environment(scratch: str, **more: str) -> dict[str, str]:
    """The variables for ansible: its files below `scratch`, the sim connection, this checkout's collection."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {
        **kept,
        "ANSIBLE_CONFIG": os.path.join(CHECKOUT, "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": collections(scratch),
        "ANSIBLE_CONNECTION_PLUGINS": os.path.join(HERE, "connection_plugins"),
        "ANSIBLE_HOME": os.path.join(scratch, "ansible"),
        "ANSIBLE_LOCAL_TEMP": os.path.join(scratch, "ansible", "tmp"),
        "ANSIBLE_RETRY_FILES_ENABLED": "false",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_HOST_KEY_CHECKING": "false",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_DEPRECATION_WARNINGS": "false",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": os.path.join(HERE, "controller_hook"),
        **more,
    }


def collections(scratch: str) -> str:
    """A directory that holds this checkout as ansible_collections/bettercompute/bcd."""
    place = os.path.join(scratch, "collections")
    folder = os.path.join(place, "ansible_collections", "bettercompute")
    os.makedirs(folder, exist_ok=True)
    if not os.path.islink(os.path.join(folder, "bcd")):
        os.symlink(CHECKOUT, os.path.join(folder, "bcd"))
    return place


def freeze(scratch: str) -> None:
    """Have the runs below `scratch` take a copy of the collection as it is now, while somebody edits the checkout."""
    copy = os.path.join(scratch, "bcd")
    for folder in ("meta", "playbooks", "plugins", "roles"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(os.path.join(CHECKOUT, folder), os.path.join(copy, folder), ignore=ignored)
    place = os.path.join(scratch, "collections", "ansible_collections", "bettercompute")
    os.makedirs(place)
    os.symlink(copy, os.path.join(place, "bcd"))


def playbook(
    scratch: str,
    inventory: str,
    what: str,
    *arguments: str,
    python: str = sys.executable,
    as_json: bool = False,
    timeout: float = 600,
    variables: dict[str, str] | None = None,
    within: tuple[str, ...] = (),
) -> Played:
    """Run a playbook, a path or bettercompute.bcd.<name>, with the ansible of `python`.

    `within` are words put before the command, such as a program that takes namespaces away.
    """
    more: dict[str, str] = {}
    if as_json:  # ansible-core has no JSON callback of its own: this one stands beside the connection plugin
        more = {
            "ANSIBLE_STDOUT_CALLBACK": "sim_json",
            "ANSIBLE_CALLBACK_PLUGINS": os.path.join(HERE, "callback_plugins"),
        }
    command = [*within, python, "-m", "ansible", "playbook", "-i", inventory, what, *arguments]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=scratch,
        env=environment(scratch, **{**more, **(variables or {})}),
        stdin=subprocess.DEVNULL,
    )
    return Played(done.returncode, done.stdout, done.stderr)
