# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new vendor's CDI specification: what nvidia-ctk makes, checked whole. Imported only where one is due."""

from __future__ import annotations

import json
import re

from ..core.errors import StepFailed
from ..core.step import write
from . import cdi
from .container_runtime_change import refuse_link
from .container_toolkit_config import ENVIRONMENT, OUTPUT, STEERED, assignment
from .container_toolkit_spec import STAMP, unnamed
from .files import is_as
from .unit_names import CONTAINER_TOOLKIT as UNIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..core.plan import Answer, Past, Todo
    from .container_toolkit_spec import Described

GENERATE = ("nvidia-ctk", "cdi", "generate", "--format=json", "--device-name-strategy=uuid")
LEVEL = re.compile(r'level=error msg="((?:[^"\\]|\\.)*)"')
SANDBOX_OFF = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=disable-nvsandboxutils"  # which some drivers fail in
NO_DEVICE = "empty device edits"
NOT_LOADED = "DRIVER_NOT_LOADED"
MISMATCH = "LIB_RM_VERSION_MISMATCH"


def generate(todo: Todo, now: Described, past: Past) -> Any:
    """A new specification, checked whole; None when it was said why there is none."""
    given = settings_of(now.environment)
    answer = past.ask(("env", *given, *GENERATE) if given else GENERATE)
    if answer.rc != 0:
        _say_failed(todo, now, answer)
        return None
    spec = read(answer.out)
    if spec is None:
        raise StepFailed(f"{' '.join(GENERATE)} prints no CDI specification of {cdi.VENDOR_KIND}: run it by hand")
    problems = cdi.faults(spec)
    if problems:
        raise StepFailed(
            f"no runtime takes the specification that nvidia-ctk makes ({'; '.join(problems[:3])}): the old one stays: "
            "install a newer nvidia-container-toolkit"
        )
    missing = _missing(spec, past)
    if missing:
        raise StepFailed(
            f"the specification that nvidia-ctk makes names {', '.join(missing[:3])}, which this host lacks: the old "
            "one stays: see whether the driver's packages are whole"
        )
    left_out = unnamed(spec, now) or _whole_unnamed(spec, now)
    if left_out:
        raise StepFailed(
            f"nvidia-ctk leaves out {', '.join(left_out[:3])}, which nvidia-smi -L lists: the old specification stays, "
            "and the next pass tries again"
        )
    return spec


def put(todo: Todo, now: Described, spec: Any, stamp: str) -> None:
    """Plan the new specification in its place, and the stamp of what it describes beside it."""
    text = json.dumps(spec, indent=4) + "\n"
    refuse_link(OUTPUT, now.file)
    if not is_as(now.file, text):
        todo.add(write(OUTPUT, text, f"describe {listed(spec)} of this host in {OUTPUT}"))
    if not is_as(now.stamp, stamp):
        todo.add(write(STAMP, stamp, f"record what {OUTPUT} describes"))


def listed(spec: cdi.Spec) -> str:
    """How many devices a specification names, without the one that stands for all."""
    count = len(set(cdi.device_names(spec)) - {"all"})
    return f"{count} device{'' if count == 1 else 's'}"


def read(text: str) -> Any:
    """The specification in what nvidia-ctk printed, None when it is no JSON.

    On hosts with coherent GPUs it prints specifications of other kinds behind it, for the same devices.
    """
    decoder = json.JSONDecoder()
    at = 0
    found = []
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            spec, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        found.append(spec)
    ours = [spec for spec in found if isinstance(spec, dict) and spec.get("kind") == cdi.VENDOR_KIND]
    return ours[0] if len(ours) == 1 else None


def settings_of(text: str) -> tuple[str, ...]:
    """What others set for nvidia-ctk in the environment file, NAME=value each: our own calls heed it too."""
    found = dict(assignment(line) for line in text.splitlines())
    return tuple(
        f"{key}={value}"
        for key, value in sorted(found.items())
        if key.startswith("NVIDIA_CTK_") and key not in STEERED and value.isprintable()
    )


def _missing(spec: cdi.Spec, past: Past) -> tuple[str, ...]:
    """The paths that the specification names and the host lacks; stat -L prints those that are there."""
    paths = cdi.host_paths(spec)
    there = past.ask(("stat", "-L", "--format=%n", "--", *paths)).out.splitlines() if paths else []
    return tuple(path for path in paths if path not in there)


def _whole_unnamed(spec: cdi.Spec, now: Described) -> tuple[str, ...]:
    """GPUs that nvidia-smi lists and the specification does not name, those in MIG mode aside."""
    names = set(cdi.device_names(spec))
    missing = tuple(gpu.uuid for gpu in now.gpus if gpu.uuid not in names)
    if not missing:
        return ()
    divided = {uuid for uuid, _space, mode in (shown.partition(" ") for shown in now.modes) if mode == "Enabled"}
    return tuple(uuid for uuid in missing if uuid not in divided)


def _say_failed(todo: Todo, now: Described, answer: Answer) -> None:
    whole = answer.err + answer.out
    said = (LEVEL.findall(whole) or [" ".join(whole.split())[-300:] or "it said nothing"])[-1]
    stays = f"{OUTPUT} stays as it is" if now.file else f"{OUTPUT} is written when there is one"
    if NO_DEVICE in whole:
        todo.wait(
            "NotReady",
            f"{UNIT}: nvidia-ctk finds no device: no GPU, or only GPUs in MIG mode without instances: {stays}",
        )
    elif NOT_LOADED in whole:
        todo.wait("NotReady", f"{UNIT}: nvidia-ctk finds no driver loaded: {stays}")
    elif MISMATCH in whole:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: the loaded driver and its library are of different versions, so nvidia-ctk makes no "
            "specification: reboot the node",
        )
    else:
        raise StepFailed(
            f"{' '.join(GENERATE)} exited with {answer.rc}: {said}: the old specification stays; variables of "
            f"nvidia-ctk in {ENVIRONMENT} are heeded, such as {SANDBOX_OFF}"
        )
