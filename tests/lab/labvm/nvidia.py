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
DEBIANS_DRIVER = Driver("550.163.01", PROPRIETARY)
NVIDIAS_DRIVERS = (
    Driver("580.95.05", PROPRIETARY),
    Driver("580.95.05", OPEN),
    Driver("580.105.08", PROPRIETARY),
    Driver("580.105.08", OPEN),
    Driver("590.44.01", OPEN),
)
DRIVERS = (DEBIANS_DRIVER, *NVIDIAS_DRIVERS)
TOOLKIT_VERSION = "1.18.1-1"


class Parts(NamedTuple):
    """What was compiled: each driver's modules, the process that opens devices, a library; and the kernel's release."""

    modules: dict[Driver, dict[str, Path]]
    client: Path
    library: Path
    kernel: str


def nvidias(parts: Parts) -> list[Package]:
    """NVIDIA's own repository for Debian."""
    kernels = {PROPRIETARY: "nvidia-kernel-dkms", OPEN: "nvidia-kernel-open-dkms"}
    found = [_headers(parts), _toolkit()]
    for driver in NVIDIAS_DRIVERS:
        other = kernels[OPEN if driver.flavour == PROPRIETARY else PROPRIETARY]
        found.append(_kernel(parts, kernels[driver.flavour], driver, "-1", "nvidia", other))
    for version in sorted({driver.version for driver in NVIDIAS_DRIVERS}):
        full = f"{version}-1"
        either = " | ".join(f"{name} (= {full})" for name in kernels.values())
        whole = f"nvidia-driver (= {full}), nvidia-driver-cuda (= {full})"
        tools = ", ".join(f"{name} (= {full})" for name in ("libnvidia-ml1", "nvidia-persistenced", "nvidia-modprobe"))
        found += [
            _meta("nvidia-driver", full, f"nvidia-driver-cuda (= {full}), {either}"),
            _meta("nvidia-open", full, f"{whole}, {kernels[OPEN]} (= {full})"),
            _meta("cuda-drivers", full, f"{whole}, {kernels[PROPRIETARY]} (= {full})"),
            Package(
                "nvidia-driver-cuda", full, (_program("nvidia-smi"),), {"Depends": tools, **_instead("nvidia-smi")}
            ),
            _library(parts, full, version, LIBRARIES),
            _aliases(full, "nvidia"),
            _persistenced(parts, full),
            Package("nvidia-modprobe", full, (_program("nvidia-modprobe"),)),
            _fabric_manager(parts, full),
        ]
    return found + [_pin(branch) for branch in sorted({version.split(".")[0] for version, _flavour in NVIDIAS_DRIVERS})]


def debians(parts: Parts) -> list[Package]:
    """Debian's non-free archive: its module is called nvidia-current, and nvidia-smi is a package of its own."""
    version = DEBIANS_DRIVER.version
    full, folder = f"{version}-2", f"{LIBRARIES}/nvidia/current"
    link = File(f"{LIBRARIES}/{SONAME}", link=f"nvidia/current/{SONAME}")
    needs = {"Depends": f"libnvidia-ml1 (= {full})"}
    return [
        _headers(parts),
        _kernel(parts, "nvidia-kernel-dkms", DEBIANS_DRIVER, "-2", "nvidia-current", "nvidia-open-kernel-dkms"),
        _meta("nvidia-driver", full, f"nvidia-smi (= {full}), nvidia-kernel-dkms (= {full}), nvidia-persistenced"),
        _aliases(full, "nvidia-current"),
        Package("nvidia-smi", full, (_program("nvidia-smi"),), {**needs, **_instead("nvidia-driver-cuda")}),
        Package("nvidia-cuda-mps", full, fields=needs),
        Package("libcuda1", full),
        _library(parts, full, version, folder, link),
        _persistenced(parts, f"{version}-1"),
        Package("nvidia-modprobe", f"{version}-1", (_program("nvidia-modprobe"),)),
    ]


def _meta(name: str, full: str, depends: str) -> Package:
    return Package(name, full, fields={"Depends": depends})


def _instead(name: str) -> dict[str, str]:
    return {"Conflicts": name, "Replaces": name}


def _pin(branch: str) -> Package:
    """Keeps apt to one branch; two branches cannot be kept at once."""
    text = f"Package: *nvidia* cuda-drivers*\nPin: version {branch}.*\nPin-Priority: 1000\n"
    name = "nvidia-driver-pinning"
    file = File(f"/etc/apt/preferences.d/{name}-{branch}", text=text)
    return Package(f"{name}-{branch}", f"{branch}-1", (file,), {"Provides": name, **_instead(name)})


def _headers(parts: Parts) -> Package:
    """What DKMS would build with; here it only has to be there."""
    folder = f"/usr/src/linux-headers-{parts.kernel}"
    files = (
        File(f"{folder}/Makefile", text="# The lab's modules come built.\n"),
        File(f"/usr/lib/modules/{parts.kernel}/build", link=folder),
    )
    return Package(f"linux-headers-{parts.kernel}", "1", files)


def _program(name: str, at: str = "/usr/bin") -> File:
    return File(f"{at}/{name}", PROGRAMS / name, mode=0o755)


def _kernel(parts: Parts, name: str, driver: Driver, revision: str, module: str, other: str) -> Package:
    """The modules of one flavour, which cannot lie beside those of the other. `module`: what the first is called."""
    full = f"{driver.version}{revision}"
    folder = f"/usr/lib/modules/{parts.kernel}/updates/dkms"
    files = tuple(File(f"{folder}/{each.replace('nvidia', module)}.ko", parts.modules[driver][each]) for each in DRIVER)
    index = f"#!/bin/sh\nset -e\ndepmod {parts.kernel}\n"
    removal = f'#!/bin/sh\nset -e\n[ "$1" != remove ] || depmod {parts.kernel}\n'
    fields = {"Depends": f"nvidia-kernel-support (= {full}), nvidia-modprobe", **_instead(other)}
    return Package(name, full, files, fields, {"postinst": index, "postrm": removal})


def _aliases(full: str, module: str) -> Package:
    """What modprobe has to know where the modules have other names than they are asked for by."""
    lines = [f"# The modules are called {module}.\n"]
    if module != "nvidia":
        below = {"nvidia-uvm": "nvidia", "nvidia-modeset": "nvidia", "nvidia-drm": "nvidia-modeset"}
        lines.append(f"install nvidia modprobe -i {module} $CMDLINE_OPTS\n")
        lines += [
            f"install {each} modprobe {first}; modprobe -i {each.replace('nvidia', module)} $CMDLINE_OPTS\n"
            for each, first in below.items()
        ]
        lines.append(f"remove nvidia modprobe -r -i {' '.join(reversed(DRIVER))}\n")
    return Package("nvidia-kernel-support", full, (File("/usr/lib/modprobe.d/nvidia.conf", text="".join(lines)),))


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
