# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's daemon.json: the runtime nvidia and CDI in it, every other key as it was."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Past, Todo
from ..core.step import File, fail
from .container_runtime import BINARY, NVIDIA, runs_nvidia, with_spec_folder
from .container_runtime_change import debt, edit, restart, without_cdi
from .program_version import release_in
from .unit_names import CONTAINER_TOOLKIT as UNIT
from .wire import once

CONFIG = "/etc/docker/daemon.json"
SERVICE = "docker"
CDI_SINCE = (25,)  # with features.cdi, on by default from 28.2 on
VALIDATES_SINCE = (23,)  # dockerd --validate
VERDICT = "unable to configure"  # how dockerd begins what it says of a configuration


class Docker(NamedTuple):
    """Docker's configuration: the file, None where there is none, and what it holds."""

    file: File | None
    text: str


def plan(todo: Todo, now: Docker, cdi: bool, named: bool, past: Past) -> None:
    """Plan daemon.json and the restart; raises Refused, naming the line, for a file that is no JSON object."""
    config = parse(now.text)
    wanted = with_nvidia(config, cdi)
    if wanted == config:
        restart(todo, SERVICE, False, past)
        return
    release = release_in(past.ask(("dockerd", "--version")).out)
    if cdi and release and release < CDI_SINCE:
        without_cdi(todo, "docker", str(CDI_SINCE[0]), named)
        return
    text = json.dumps(wanted, indent=4, ensure_ascii=False) + "\n"
    wrong = _validated(text, past) if not release or release >= VALIDATES_SINCE else ""
    if wrong and (VERDICT not in wrong or wrong != _validated("{}\n", past)):  # else its command line is at fault here
        message = f"dockerd would not start with {CONFIG} as it has to be ({wrong}): correct the file and run again"
        todo.add(fail(f"write {CONFIG}", message))
        return
    means = " and CDI" if cdi else ""
    edit(todo, CONFIG, text, now.file, f"give Docker the runtime {NVIDIA}{means} in {CONFIG}", (debt(SERVICE),))
    restart(todo, SERVICE, True, past)


def _validated(text: str, past: Past) -> str:
    """What dockerd says of a configuration that it does not take, "" for one that it takes."""
    said = past.ask(("dockerd", "--validate", "--config-file={daemon.json}"), (("daemon.json", text),))
    words = re.sub(r"/\S*/daemon\.json", "daemon.json", " ".join((said.err or said.out).split()))
    return "" if said.rc == 0 else words[-400:] or f"it exited with {said.rc}"


def parse(text: str) -> dict[str, Any]:
    """daemon.json; a file with nothing in it is as good as none."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as fault:
        raise Refused(f"{UNIT}: {CONFIG} line {fault.lineno}: {fault.msg}: correct it") from None
    except (ValueError, RecursionError) as fault:
        raise Refused(f"{UNIT}: {CONFIG}: {fault}: correct it") from None
    if not isinstance(found, dict):
        raise Refused(f"{UNIT}: {CONFIG} line 1: it holds no JSON object: correct it")
    return found


def with_nvidia(config: dict[str, Any], cdi: bool) -> dict[str, Any]:
    """The configuration with our keys; those of others stay, and ours as they are where they serve."""
    runtimes = _mapping(config, "runtimes")
    runtime = runtimes.get(NVIDIA)
    wanted = dict(config)
    if not isinstance(runtime, dict) or not runs_nvidia(runtime.get("path")):
        wanted["runtimes"] = {**runtimes, NVIDIA: {"args": [], "path": BINARY.rpartition("/")[2]}}
    if cdi:
        features = _mapping(config, "features")
        if features.get("cdi") is not True:
            wanted["features"] = {**features, "cdi": True}
        folders = with_spec_folder(config["cdi-spec-dirs"]) if "cdi-spec-dirs" in config else None
        if folders:
            wanted["cdi-spec-dirs"] = folders
    return wanted


def _mapping(config: dict[str, Any], key: str) -> dict[str, Any]:
    found = config.get(key, {})
    if not isinstance(found, dict):
        raise Refused(f"{UNIT}: {CONFIG}: {key} is no mapping: correct it")
    return found
