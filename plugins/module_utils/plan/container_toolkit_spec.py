# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vendor's CDI specification: made by nvidia-ctk, checked whole, then put in place of the old one.

It describes the driver, the GPUs and MIG devices, the toolkit and the device nodes of one moment. A digest of these is
kept beside it, and another digest, or a path in it that is gone, makes it anew. The old one stays until then.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ..core.errors import NotReady, StepFailed
from ..core.plan import Answer, Past, Todo
from ..core.state import STATE
from ..core.step import File, remove, write
from . import cdi
from .container_runtime import refuse_link
from .container_toolkit_config import ENVIRONMENT, OUTPUT, settings_of
from .files import is_as
from .gpu import Listed
from .nvidia_driver_version import Loaded
from .unit_names import CONTAINER_TOOLKIT as UNIT

STAMP = f"{STATE}/cdi-nvidia.stamp"
VERSION = 1  # of the stamp
OLD = "/etc/cdi/nvidia.yaml"  # what versions before wrote
GENERATE = ("nvidia-ctk", "cdi", "generate", "--format=json", "--device-name-strategy=uuid")
LEVEL = re.compile(r'level=error msg="((?:[^"\\]|\\.)*)"')
SANDBOX_OFF = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=disable-nvsandboxutils"  # which some drivers fail in
NO_DEVICE = "empty device edits"
NOT_LOADED = "DRIVER_NOT_LOADED"
MISMATCH = "LIB_RM_VERSION_MISMATCH"


class Found(NamedTuple):
    """A specification of kind nvidia.com/gpu that a runtime reads. `fault`: why it is none, "" for a sound one."""

    path: str
    devices: tuple[str, ...] = ()
    fault: str = ""


class Described(NamedTuple):
    """What the specification depends on, and what is there of it.

    `listing` is the text of nvidia-smi -L, and `gpus` what it lists; `toolkit` is the text of nvidia-ctk --version,
    `nodes` are device nodes and sockets, `modes` the GPUs' MIG modes: one in MIG mode without instances is listed, and
    is no device. `gone` are the paths that our file names and the host lacks. `refresh`: nvidia-cdi-refresh is
    installed, with `environment` as its environment file; `runtime_folder` is where it writes unless it is steered.
    `broken` are files of others that are no specification of any kind, each with why.
    """

    driver: Loaded | None
    listing: str
    gpus: tuple[Listed, ...]
    toolkit: str
    nodes: tuple[str, ...]
    modes: tuple[str, ...]
    file: File | None
    gone: tuple[str, ...]
    stamp: File | None
    found: tuple[Found, ...]
    refresh: bool
    environment: str
    runtime_folder: str = "/run/cdi"
    broken: tuple[tuple[str, str], ...] = ()


def plan(todo: Todo, now: Described, past: Past) -> str:
    """Plan a new specification where the old one is none, or describes another state of the host.

    Returns the cdiVersion of the one that is then there, "" where it was said why there is none.
    """
    if now.driver is None:
        raise NotReady(
            f"{UNIT}: no NVIDIA driver is loaded: {OUTPUT}, which describes what it brings, is made once it is"
        )
    stamp = json.dumps({"digest": digest(now), "version": VERSION}) + "\n"
    spec = read_file(now.file)
    if _describes(spec, now, stamp):
        _refuse_twice(now, spec)
    else:
        spec = _generate(todo, now, past)
        if spec is None:
            return ""
        _refuse_twice(now, spec)
        text = json.dumps(spec, indent=4) + "\n"
        refuse_link(OUTPUT, now.file)
        if not is_as(now.file, text):
            todo.add(write(OUTPUT, text, f"describe {listed(spec)} of this host in {OUTPUT}"))
        if not is_as(now.stamp, stamp):
            todo.add(write(STAMP, stamp, f"record what {OUTPUT} describes"))
    if any(found.path == OLD for found in now.found):
        todo.add(remove(OLD, f"remove {OLD}, since two files of a folder would define the devices of {OUTPUT} twice"))
    _plan_outranking(todo, now)
    for path, fault in now.broken:
        todo.note(f"{path} is no CDI specification ({fault}), and no runtime has a device by it: mend or remove it")
    return str(spec["cdiVersion"])


def digest(now: Described) -> str:
    """Of what the specification describes: driver, devices, MIG modes, toolkit, device nodes."""
    import hashlib

    version = now.driver.version if now.driver else ""
    whole = json.dumps([version, now.listing, now.toolkit, list(now.nodes), list(now.modes)])
    return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()


def _describes(spec: Any, now: Described, stamp: str) -> bool:
    """Whether the file there is sound and describes the host as it is."""
    if spec is None or cdi.faults(spec) or now.gone or _unnamed(spec, now):
        return False
    return now.stamp is not None and now.stamp.text == stamp


def listed(spec: cdi.Spec) -> str:
    """How many devices a specification names, without the one that stands for all."""
    count = len(set(cdi.device_names(spec)) - {"all"})
    return f"{count} device{'' if count == 1 else 's'}"


def read_file(file: File | None) -> Any:
    """Our specification in its file, where it is as we keep it; None else."""
    if file is None or not file.regular or file.uid != 0 or file.mode != 0o644:
        return None
    try:
        spec = json.loads(file.text)
    except (ValueError, RecursionError):
        return None
    return spec if isinstance(spec, dict) and spec.get("kind") == cdi.VENDOR_KIND else None


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


def _generate(todo: Todo, now: Described, past: Past) -> Any:
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
    unnamed = _unnamed(spec, now) or _whole_unnamed(spec, now)
    if unnamed:
        raise StepFailed(
            f"nvidia-ctk leaves out {', '.join(unnamed[:3])}, which nvidia-smi -L lists: the old specification stays, "
            "and the next pass tries again"
        )
    return spec


def _missing(spec: cdi.Spec, past: Past) -> tuple[str, ...]:
    """The paths that the specification names and the host lacks; stat -L prints those that are there."""
    paths = cdi.host_paths(spec)
    there = past.ask(("stat", "-L", "--format=%n", "--", *paths)).out.splitlines() if paths else []
    return tuple(path for path in paths if path not in there)


def _unnamed(spec: cdi.Spec, now: Described) -> tuple[str, ...]:
    """MIG devices that nvidia-smi lists and the specification does not name.

    UUIDs of R450 and R460, with slashes, are no names of CDI.
    """
    names = set(cdi.device_names(spec))
    listed = (device.uuid for gpu in now.gpus for device in gpu.devices)
    return tuple(uuid for uuid in listed if uuid not in names and "/" not in uuid)


def _whole_unnamed(spec: cdi.Spec, now: Described) -> tuple[str, ...]:
    """GPUs that nvidia-smi lists and the specification does not name, those in MIG mode aside."""
    names = set(cdi.device_names(spec))
    missing = tuple(gpu.uuid for gpu in now.gpus if gpu.uuid not in names)
    if not missing:
        return ()
    divided = {uuid for uuid, _space, mode in (shown.partition(" ") for shown in now.modes) if mode == "Enabled"}
    return tuple(uuid for uuid in missing if uuid not in divided)


def _refuse_twice(now: Described, spec: Any) -> None:
    """A device that two files of one directory define is dropped by every runtime, from both."""
    names = set(cdi.device_names(spec))
    for path, devices, _fault in now.found:
        twice = sorted(names & {*devices})
        if twice and path.startswith("/etc/cdi/") and path not in (OUTPUT, OLD):
            raise StepFailed(
                f"{path} defines {cdi.VENDOR_KIND}={twice[0]} as {OUTPUT} does, and runtimes take a device from "
                f"neither of two files of a folder: remove {path}",
                retryable=False,
            )


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


def _plan_outranking(todo: Todo, now: Described) -> None:
    """What nvidia-cdi-refresh wrote before it was steered goes; another's is named."""
    for path, _devices, fault in now.found:
        if path == f"{now.runtime_folder}/nvidia.yaml" and now.refresh:
            todo.add(remove(path, f"remove {path}, which would outrank {OUTPUT}"))
        elif path.startswith(f"{now.runtime_folder}/"):
            odd = f" (it is not read here: {fault})" if fault else ""
            said = f"{path} describes {cdi.VENDOR_KIND} too and outranks {OUTPUT}{odd}"
            todo.note(f"{said}: let what writes it do so no more")
        elif fault and path not in (OUTPUT, OLD):
            todo.note(f"{path} names {cdi.VENDOR_KIND}, and is not read here ({fault})")
