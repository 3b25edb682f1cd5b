# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The packages that a Debian host has NVIDIA's software from: their true names, with the lab's stand-ins in them.

Two repositories, as there are in the world: NVIDIA's own, and the non-free part of Debian's archive. What differs
between them differs here: names, where the modules and the library lie, what is a package of its own. Their
dependencies are as strict as the true ones, so that apt has to solve what it has to solve there. The modules come
built, where the true packages have DKMS build them at their installation.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .archive import File, Package
from .workshop import DRIVER, OPEN, PROPRIETARY, SOURCES, Driver

PROGRAMS = SOURCES / "programs"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
SONAME = "libnvidia-ml.so.1"
DEBIANS_VERSION = "550.163.01"
NVIDIAS_VERSIONS = ("580.95.05", "580.105.08")
DRIVERS = tuple(
    Driver(version, flavour) for version in (DEBIANS_VERSION, *NVIDIAS_VERSIONS) for flavour in (PROPRIETARY, OPEN)
)
TOOLKIT_VERSION = "1.18.1-1"


class Parts(NamedTuple):
    """What was compiled: each driver's modules, the process that opens devices, a library; and the kernel's release."""

    modules: dict[Driver, dict[str, Path]]
    client: Path
    library: Path
    kernel: str


def nvidias(parts: Parts) -> list[Package]:
    """NVIDIA's own repository for Debian."""
    found: list[Package] = []
    for version in NVIDIAS_VERSIONS:
        full = f"{version}-1"
        kernels = {PROPRIETARY: "nvidia-kernel-dkms", OPEN: "nvidia-kernel-open-dkms"}
        for flavour, name in kernels.items():
            other = kernels[OPEN if flavour == PROPRIETARY else PROPRIETARY]
            found.append(_kernel(parts, name, full, Driver(version, flavour), "updates/dkms/{}.ko", other))
        base = f"nvidia-driver (= {full}), nvidia-driver-cuda (= {full})"
        found += [
            _meta("nvidia-driver", full, f"nvidia-driver-cuda (= {full}), {_either(kernels, full)}"),
            _meta("nvidia-open", full, f"{base}, nvidia-kernel-open-dkms (= {full})"),
            _meta("cuda-drivers", full, f"{base}, nvidia-kernel-dkms (= {full})"),
            Package(
                "nvidia-driver-cuda",
                full,
                (_program("nvidia-smi"),),
                {
                    "Depends": f"libnvidia-ml1 (= {full}), nvidia-persistenced (= {full}), nvidia-modprobe (= {full})",
                    "Conflicts": "nvidia-smi",
                    "Replaces": "nvidia-smi",
                    "Provides": "nvidia-smi",
                },
            ),
            _library(parts, full, version, LIBRARIES),
            _persistenced(parts, full),
            Package("nvidia-modprobe", full, (_program("nvidia-modprobe"),)),
            _fabric_manager(parts, full),
        ]
    branch = NVIDIAS_VERSIONS[-1].partition(".")[0]
    pin = "Package: *nvidia* cuda-drivers*\nPin: version {}*\nPin-Priority: 1000\n"
    found.append(
        Package(
            f"nvidia-driver-pinning-{branch}",
            branch,
            (File(f"/etc/apt/preferences.d/nvidia-driver-pinning-{branch}", text=pin.format(f"{branch}.")),),
        )
    )
    found.append(_toolkit())
    return found


def debians(parts: Parts) -> list[Package]:
    """The non-free part of Debian's archive."""
    full = f"{DEBIANS_VERSION}-2"
    kernels = {PROPRIETARY: "nvidia-kernel-dkms", OPEN: "nvidia-open-kernel-dkms"}
    place = "updates/dkms/nvidia-current{}.ko"
    folder = f"{LIBRARIES}/nvidia/current"
    return [
        *(
            _kernel(
                parts,
                name,
                full,
                Driver(DEBIANS_VERSION, flavour),
                place,
                kernels[OPEN if flavour == PROPRIETARY else PROPRIETARY],
            )
            for flavour, name in kernels.items()
        ),
        _meta(
            "nvidia-driver",
            full,
            f"nvidia-smi (= {full}), libnvidia-ml1 (= {full}), nvidia-kernel-support (= {full}), "
            f"{_either(kernels, full)}, nvidia-persistenced, nvidia-modprobe",
        ),
        Package(
            "nvidia-kernel-support",
            full,
            (File("/etc/modprobe.d/nvidia.conf", text=_aliases()),),
        ),
        Package("nvidia-smi", full, (_program("nvidia-smi"),), {"Depends": f"libnvidia-ml1 (= {full})"}),
        _library(parts, full, DEBIANS_VERSION, folder, File(f"{LIBRARIES}/{SONAME}", link=f"nvidia/current/{SONAME}")),
        _persistenced(parts, f"{DEBIANS_VERSION}-1"),
        Package("nvidia-modprobe", f"{DEBIANS_VERSION}-1", (_program("nvidia-modprobe"),)),
    ]


def _either(kernels: dict[str, str], full: str) -> str:
    return " | ".join(f"{name} (= {full})" for name in kernels.values())


def _meta(name: str, full: str, depends: str) -> Package:
    return Package(name, full, fields={"Depends": depends})


def _program(name: str, at: str = "/usr/bin") -> File:
    return File(f"{at}/{name}", PROGRAMS / name, mode=0o755)


def _kernel(parts: Parts, name: str, full: str, driver: Driver, place: str, other: str) -> Package:
    """The modules of one flavour, which cannot lie beside those of the other."""
    current = "current" in place
    files = tuple(
        File(
            f"/usr/lib/modules/{parts.kernel}/{place.format(module.removeprefix('nvidia') if current else module)}",
            parts.modules[driver][module],
        )
        for module in DRIVER
    )
    depmod = f"#!/bin/sh\nset -e\ndepmod {parts.kernel}\n"
    fields = {"Conflicts": other, "Replaces": other}
    return Package(name, full, files, fields, {"postinst": depmod, "postrm": depmod})


def _aliases() -> str:
    """How Debian has modprobe take the modules that it calls nvidia-current."""
    lines = ["install nvidia modprobe -i nvidia-current $CMDLINE_OPTS"]
    lines += [
        f"install {module} modprobe {below}; modprobe -i nvidia-current{module.removeprefix('nvidia')} $CMDLINE_OPTS"
        for module, below in (("nvidia-uvm", "nvidia"), ("nvidia-modeset", "nvidia"), ("nvidia-drm", "nvidia-modeset"))
    ]
    lines.append(f"remove nvidia modprobe -r -i {' '.join(reversed(DRIVER))}")
    return "".join(f"{line}\n" for line in lines)


def _library(parts: Parts, full: str, version: str, folder: str, *more: File) -> Package:
    real = f"libnvidia-ml.so.{version}"
    files = (File(f"{folder}/{real}", parts.library), File(f"{folder}/{SONAME}", link=real), *more)
    return Package("libnvidia-ml1", full, files)


def _service(name: str, program: str, description: str) -> File:
    text = (
        f"[Unit]\nDescription={description}\n\n[Service]\nExecStart={program}\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    return File(f"/usr/lib/systemd/system/{name}.service", text=text)


def _persistenced(parts: Parts, full: str) -> Package:
    """Its installation enables and starts the service, as Debian's helpers have it done."""
    start = (
        '#!/bin/sh\nset -e\n[ "$1" = configure ] || exit 0\n'
        "systemctl --quiet enable nvidia-persistenced.service\n"
        "systemctl daemon-reload\n"
        "systemctl restart nvidia-persistenced.service || true\n"
    )
    stop = (
        '#!/bin/sh\nset -e\n[ "$1" = remove ] || exit 0\nsystemctl --quiet disable --now nvidia-persistenced.service\n'
    )
    program = "/usr/bin/nvidia-persistenced"
    return Package(
        "nvidia-persistenced",
        full,
        (
            File(program, parts.client, mode=0o755),
            _service("nvidia-persistenced", program, "The lab's stand-in for NVIDIA's persistence daemon"),
        ),
        scripts={"postinst": start, "prerm": stop},
    )


def _fabric_manager(parts: Parts, full: str) -> Package:
    program = "/usr/bin/nv-fabricmanager"
    return Package(
        "nvidia-fabricmanager",
        full,
        (
            File(program, parts.client, mode=0o755),
            _service("nvidia-fabricmanager", program, "The lab's stand-in for NVIDIA's Fabric Manager"),
        ),
    )


def _toolkit() -> Package:
    return Package(
        "nvidia-container-toolkit",
        TOOLKIT_VERSION,
        (
            *(_program(name) for name in ("nvidia-cdi-hook", "nvidia-container-runtime", "nvidia-ctk")),
            File("/etc/nvidia-container-runtime/config.toml", PROGRAMS / "toolkit-config.toml"),
        ),
    )
