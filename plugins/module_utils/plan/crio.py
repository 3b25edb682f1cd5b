# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O: a drop-in with the runtime nvidia.

CRI-O takes its files key by key, a later one over an earlier one. CDI is always on there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Past, Todo
from ..core.step import File
from . import toml
from .container_runtime import BINARY, NVIDIA, runs_nvidia, with_spec_folder
from .container_runtime_change import debt, refuse_link, restart
from .files import HEADER, keep
from .toml_text import render
from .unit_names import CONTAINER_TOOLKIT as UNIT

CONFIG = "/etc/crio/crio.conf"
FOLDER = "/etc/crio/crio.conf.d"
NAME = "99-zz-bcd-nvidia.conf"
PATH = f"{FOLDER}/{NAME}"
SERVICE = "crio"


class Crio(NamedTuple):
    """CRI-O's configuration: (path, text) of every file that it reads but ours, in its order, and ours."""

    files: tuple[tuple[str, str], ...]
    ours: File | None


def plan(todo: Todo, now: Crio, cdi: bool, past: Past) -> None:
    """Plan our drop-in and the restart, as far as the other files lack what we want."""
    runtime, folders = _effective(now.files)
    wanted: dict[str, Any] = {}
    missing = with_spec_folder(folders) if cdi and folders is not None else None
    if missing:
        wanted["cdi_spec_dirs"] = missing
    if now.ours is None and runs_nvidia(runtime.get("runtime_path")) and not wanted:
        restart(todo, SERVICE, False, past)
        return
    wanted["runtimes"] = {NVIDIA: {"runtime_path": BINARY, "runtime_type": "oci"}}
    text = HEADER + render({"crio": {"runtime": wanted}})
    _refuse_idle(now.files)
    refuse_link(PATH, now.ours)
    changed = now.ours is None or now.ours.text != text
    keep(todo, PATH, text, now.ours, owes=(debt(SERVICE),) if changed else ())
    restart(todo, SERVICE, changed, past)


def _effective(files: tuple[tuple[str, str], ...]) -> tuple[dict[str, Any], Any]:
    """The runtime nvidia ({}: there is none) and where CDI is read (None: where CRI-O reads it by itself)."""
    runtime: dict[str, Any] = {}
    folders = None
    for path, text in files:
        found = _runtime(path, text)
        folders = found.get("cdi_spec_dirs", folders)
        runtimes = found.get("runtimes", {})
        mine = runtimes.get(NVIDIA) if isinstance(runtimes, dict) else None
        runtime = mine if isinstance(mine, dict) else runtime
    return runtime, folders


def _runtime(path: str, text: str) -> dict[str, Any]:
    crio = toml.parse(text, path).get("crio", {})
    found = crio.get("runtime", {}) if isinstance(crio, dict) else {}
    return found if isinstance(found, dict) else {}


def _refuse_idle(files: tuple[tuple[str, str], ...]) -> None:
    """Refuse where a file that is read after ours says otherwise."""
    behind = tuple((path, text) for path, text in files if path > PATH and path.startswith(FOLDER))
    runtime, folders = _effective(behind)
    if ("runtime_path" in runtime and not runs_nvidia(runtime["runtime_path"])) or (
        folders is not None and with_spec_folder(folders)
    ):
        raise Refused(
            f"{UNIT}: {PATH} comes to nothing, since {behind[-1][0]} is read after it: take the runtime {NVIDIA} and "
            "cdi_spec_dirs out there"
        )
