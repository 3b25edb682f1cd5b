# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the package sources of a simulated host offer: the driver by several names, Fabric Manager, the toolkit.

Only what matters of a package stands here: its name and version, what it needs and what it cannot live with, and what
it brings: "module:open", "module:proprietary", "library", a program, a service.
"""

from __future__ import annotations

from typing import NamedTuple

DRIVERS = ("535.261.03", "550.163.01", "580.95.05", "580.105.08")
TOOLKIT = "1.17.8"
PERSISTENCED = ("program:nvidia-persistenced", "service:nvidia-persistenced.service")
MPS = ("program:nvidia-cuda-mps-control",)
IPTABLES, CONNTRACK = ("file:/usr/local/sbin/iptables",), ("file:/usr/local/sbin/conntrack",)  # asked for, not run
CONTAINERD = ("program:containerd", "service:containerd.service")
FABRIC = ("program:nv-fabricmanager", "service:nvidia-fabricmanager.service")


class Offered(NamedTuple):
    """A package in the index. `needs` are names, or `name=version`; `not_with` are globs; `stream` of a module."""

    name: str
    version: str
    needs: tuple[str, ...] = ()
    not_with: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    origin: str = ""
    stream: str = ""


def offered(distribution: str, kernel: str) -> tuple[Offered, ...]:
    """The index of a distribution with the sources that NVIDIA names for it."""
    if distribution == "ubuntu":
        return (*_ubuntu(kernel), *_nvidia_tools("deb"))
    if distribution == "rocky":
        return (*_rocky(kernel), *_nvidia_tools("rpm"))
    return ()


def _nvidia_tools(kind: str) -> tuple[Offered, ...]:
    version = f"{TOOLKIT}-1"
    origin = "https://packages.example/stable/deb/amd64  Packages" if kind == "deb" else "nvidia-container-toolkit"
    return (
        Offered(
            "nvidia-container-toolkit-base",
            version,
            brings=("program:nvidia-ctk", "program:nvidia-cdi-hook"),
            origin=origin,
        ),
        Offered("nvidia-container-toolkit", version, (f"nvidia-container-toolkit-base={version}",), origin=origin),
    )


def _ubuntu(kernel: str) -> tuple[Offered, ...]:
    """Ubuntu's archive, the server branches."""
    found = [Offered(f"linux-headers-{kernel}", kernel.rpartition("-")[0], origin=_archive("linux"))]
    version = "1.7.27-0ubuntu1~24.04.1"
    found.append(Offered("containerd", version, brings=CONTAINERD, origin=_archive("linux")))
    found.append(Offered("iptables", "1.8.10-3ubuntu2", brings=IPTABLES, origin=_archive("linux")))
    found.append(Offered("conntrack", "1:1.4.8-1ubuntu1", brings=CONNTRACK, origin=_archive("linux")))
    for driver in DRIVERS:
        branch = f"{driver.split('.', maxsplit=1)[0]}-server"
        version = f"{driver}-0ubuntu0.24.04.1"
        library = f"libnvidia-compute-{branch}"

        def add(name: str, *needs: str, brings: tuple[str, ...] = (), one_of: str = "", at: str = version) -> None:
            """`one_of`: the glob of those of which a host has one."""
            exact = tuple(one if "=" in one else f"{one}={at}" for one in needs)
            clash = (one_of,) if one_of else ()
            found.append(Offered(name, at, exact, clash, brings, _archive(name)))

        add(library, brings=("library",), one_of="libnvidia-compute-*")
        add(f"nvidia-utils-{branch}", library, brings=("program:nvidia-smi",), one_of="nvidia-utils-*")
        add(f"nvidia-compute-utils-{branch}", library, brings=(*MPS, *PERSISTENCED), one_of="nvidia-compute-utils-*")
        for suffix, flavour in (("", "proprietary"), ("-open", "open")):
            dkms = f"nvidia-dkms-{branch}{suffix}"
            built = f"linux-modules-nvidia-{branch}{suffix}-{kernel}"
            add(dkms, brings=(f"module:{flavour}",), one_of="nvidia-dkms-*")
            add(built, brings=(f"module:{flavour}",), one_of="linux-modules-nvidia-*")
            add(f"nvidia-headless-{branch}{suffix}", dkms, library, one_of="nvidia-headless-*")
            add(f"nvidia-headless-no-dkms-{branch}{suffix}", library, one_of="nvidia-headless-*")
        add(f"nvidia-fabricmanager-{driver.split('.', maxsplit=1)[0]}", brings=FABRIC, one_of="nvidia-fabricmanager-*")
    return tuple(found)


def _archive(name: str) -> str:
    component = "main" if name.startswith("linux") else "restricted"
    return f"http://archive.example/ubuntu noble-updates/{component} amd64 Packages"


def _rocky(kernel: str) -> tuple[Offered, ...]:
    """NVIDIA's repository for the ninth release, with its module streams; and Docker's."""
    found = [
        Offered("containerd.io", "1.7.27-3.1.el9", brings=CONTAINERD, origin="docker-ce-stable"),
        Offered("iptables-nft", "1.8.10-11.el9", brings=IPTABLES, origin="baseos"),
        Offered("conntrack-tools", "1.4.7-4.el9_5", brings=CONNTRACK, origin="appstream"),
        Offered("kernel-devel", kernel.rpartition(".")[0], origin="baseos"),
        Offered("python3-dnf-plugin-versionlock", "4.3.0-13.el9", origin="baseos"),
    ]
    for driver in DRIVERS:
        branch, version = driver.split(".", maxsplit=1)[0], f"3:{driver}-1.el9"
        for flavour, name, stream in (
            ("open", "kmod-nvidia-open-dkms", f"{branch}-open"),
            ("proprietary", "kmod-nvidia-latest-dkms", f"{branch}-dkms"),
        ):
            common = (
                Offered("nvidia-driver-cuda-libs", version, brings=("library",)),
                Offered(
                    "nvidia-driver-cuda",
                    version,
                    (f"nvidia-driver-cuda-libs={version}", f"nvidia-persistenced={version}"),
                    brings=("program:nvidia-smi", *MPS),
                ),
                Offered("nvidia-persistenced", version, brings=PERSISTENCED),
                Offered(name, version, not_with=("kmod-nvidia-*",), brings=(f"module:{flavour}",)),
                Offered("nvidia-fabric-manager", f"{driver}-1", brings=FABRIC),
                Offered("nvidia-fabricmanager", f"{driver}-1", brings=FABRIC),
            )
            new = int(branch) >= 580
            skipped = "nvidia-fabric-manager" if new else "nvidia-fabricmanager"
            found += [one._replace(origin="cuda-rhel9", stream=stream) for one in common if one.name != skipped]
    return tuple(found)
