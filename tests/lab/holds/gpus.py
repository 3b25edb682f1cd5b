# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine as one that has three GPUs, as far as a container can see: no driver, and nodes that nothing answers.

GPU 0 is whole, GPU 1 has two MIG devices, GPU 2 is shared by slots. nvidia-smi is the simulated one that is held to
every capture (tests/gpu); nodes are made by systemd at each boot; the vendor specification has what NVIDIA's has.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from labvm import recipe
from labvm.machine import Machine

from tests.gpu import model
from tests.gpu.cards import Ci, Gi

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "gpu"
PARTS = sorted(path.stem for path in MODEL.glob("*.py"))  # all of it, so that none which one imports is forgotten
STORE = f"{recipe.STORE}/smi"
WHOLE, PARTED, SHARED = (f"GPU-5f1c2a90-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
HOOK = "/usr/bin/nvidia-cdi-hook"
GID = 44
HOOKED = "/run/lab-hooks"
CONTROL, MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
NODES = {WHOLE: "/dev/nvidia0", PARTED: "/dev/nvidia1", SHARED: "/dev/nvidia2"}
CAPABILITIES = {1: "/dev/nvidia-caps/nvidia-cap12", 2: "/dev/nvidia-caps/nvidia-cap21"}  # by GPU instance
NUMBERS = {
    **{path: (195, number) for number, path in enumerate(NODES.values())},
    CONTROL: (195, 255),
    MEMORY: (511, 0),
    **{path: (510, int(path[-2:])) for path in CAPABILITIES.values()},
}


def inventory(parted: bool = True) -> model.Machine:
    """The GPUs. parted: the MIG devices are there, which a boot takes away from a Hopper."""
    found = model.Machine.from_products(["H100-80GB"] * 3, driver="580.65.06")
    for card, uuid in zip(found.cards, (WHOLE, PARTED, SHARED)):
        card.uuid = uuid
    second = found.cards[1]
    second.mig = second.mig_pending = True
    profile = next(one for one in second.kind.profiles if one.name == "3g.40gb")
    if parted:
        second.instances = [
            Gi(number, profile.id, start, [Ci(0, profile.compute, 0)]) for number, start in ((1, 0), (2, 4))
        ]
    return found


def mig_uuid(instance: int) -> str:
    """The UUID of a MIG device, which is all of its GPU instance."""
    found = inventory()
    card = found.cards[1]
    return next(card.device_uuid(gi, ci, found.branch) for gi, ci in card.devices() if gi.id == instance)


def vendor_spec() -> dict[str, Any]:
    """What NVIDIA's toolkit writes, with device names by UUID."""
    devices = {uuid: [path] for uuid, path in NODES.items() if uuid != PARTED}
    devices.update({mig_uuid(number): [NODES[PARTED], path] for number, path in CAPABILITIES.items()})
    return {
        "cdiVersion": "0.7.0",
        "kind": "nvidia.com/gpu",
        "devices": [
            {"name": name, "containerEdits": {"deviceNodes": [{"path": path} for path in paths]}}
            for name, paths in devices.items()
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": CONTROL}, {"path": MEMORY}],
            "mounts": [
                {"hostPath": LIBRARY, "containerPath": LIBRARY, "options": ["ro", "nosuid", "nodev", "bind"]},
            ],
            "hooks": [
                {"hookName": "createContainer", "path": HOOK, "args": ["nvidia-cdi-hook", "update-ldcache"]},
            ],
            "additionalGids": [GID],
        },
    }


def install(machine: Machine) -> None:
    """All of it onto the machine, now and for each boot, and an image for podman."""
    nodes = "".join(f"c {path} 0666 root root - {major}:{minor}\n" for path, (major, minor) in NUMBERS.items())
    files = {
        "usr/bin/nvidia-smi": (HERE / "nvidia-smi").read_text(),
        HOOK.lstrip("/"): (HERE / "nvidia-cdi-hook").read_text(),
        **{f"{STORE}/gpu/{part}.py".lstrip("/"): (MODEL / f"{part}.py").read_text() for part in PARTS},
        f"{STORE}/gpu/mig_profiles.json".lstrip("/"): (MODEL / "mig_profiles.json").read_text(),
        f"{STORE}/machine.json".lstrip("/"): inventory().dump(),
        LIBRARY.lstrip("/"): "not a library\n",
        "etc/tmpfiles.d/lab-gpus.conf": nodes,
        "etc/cdi/nvidia.json": json.dumps(vendor_spec(), indent=2),
    }
    machine.ssh("base64 -d | tar -xz -C / && systemd-tmpfiles --create lab-gpus.conf", stdin=_packed(files))
    machine.ssh(f"podman import -q {recipe.STORE}/root.tar lab:latest", timeout=300)


def lose_instances(machine: Machine) -> None:
    """What a boot does to the MIG devices of a Hopper."""
    machine.ssh(f"cat >{STORE}/machine.json", stdin=inventory(parted=False).dump())


def _packed(files: dict[str, str]) -> str:
    """A compressed archive of the files by path, programs executable, as text."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as out:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(text.encode()), 0o755 if path.startswith("usr/bin/") else 0o644
            out.addfile(member, io.BytesIO(text.encode()))
    return base64.encodebytes(packed.getvalue()).decode()
