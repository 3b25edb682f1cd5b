# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A driver's packages, chosen by what the host's own index offers.

Which repository serves a host is never guessed: of several sets of names, the first that the index offers at the wanted
version is taken, and what is installed already is kept to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from .distribution import Distribution
from .nvidia_names import PackageSet
from .package_rows import upstream
from .packages import Offer, Wanted, version_key
from .packages_seen import Packages

# What apt may take away or change when one driver follows another: the driver's own packages of any branch, and
# nothing of the container toolkit, which has the same first names.
MAY_GO = (
    *(f"nvidia-{part}*" for part in ("headless", "dkms", "kernel", "utils", "compute-utils", "driver", "firmware")),
    *(f"nvidia-{part}*" for part in ("open", "fabricmanager", "fabric-manager", "settings", "prime", "modprobe")),
    *(f"nvidia-{part}*" for part in ("persistenced", "smi", "cuda-mps", "alternative", "egl", "vulkan", "vdpau")),
    *(f"nvidia-{part}*" for part in ("imex", "opencl", "libopencl", "xconfig", "legacy", "installer", "support")),
    *(
        f"libnvidia-{part}*"
        for part in ("cfg", "common", "compute", "decode", "encode", "extra", "fbc", "gl", "gpucomp")
    ),
    *(f"libnvidia-{part}*" for part in ("egl", "ml", "nscq", "nvvm", "ptx", "rtcore", "allocator", "api", "vksc")),
    *(f"libnvidia-{part}*" for part in ("opencl", "opticalflow", "ngx", "sandboxutils", "pkcs", "glcore", "tls")),
    *("libnvsdm*", "libcuda1", "libcudadebugger1", "libnvcuvid1", "libnvoptix1", "libxnvctrl*"),
    *("linux-modules-nvidia-*", "linux-objects-nvidia-*", "linux-signatures-nvidia-*", "firmware-nvidia-*"),
    *("cuda-drivers*", "xserver-xorg-video-nvidia*", "libgl1-nvidia*", "libglx-nvidia*", "libegl-nvidia*"),
)


class Choice(NamedTuple):
    """A set that the index can serve: its packages with exact versions, and the driver's version, "580.95.05"."""

    set: PackageSet
    wanted: tuple[Wanted, ...]
    version: str


def headers(distribution: Distribution, kernel: str) -> Wanted | None:
    """The package with which dkms builds for the running kernel; None where modules come built (SUSE)."""
    if distribution.family == "debian":
        return Wanted(f"linux-headers-{kernel}")
    if distribution.family == "suse":
        return None
    return Wanted("kernel-devel", re.sub(r"\.(x86_64|aarch64)$", "", kernel))


def kernel_images(now: Packages) -> dict[str, str]:
    """The installed metapackages of Ubuntu's kernels, "generic" or "aws-6.8", with their versions.

    The modules' metapackages have the same names behind their own; a virtual machine's kernel is the generic one. A
    kernel that is held is left out: its modules' metapackage would bring the next.
    """
    found = {}
    for name, package in now.installed.items():
        image = re.fullmatch(r"linux-image-([a-z][a-z0-9.-]*)", name)
        if image and not (package.held or image.group(1).startswith("unsigned-")):
            found[re.sub(r"^virtual(?=-|$)", "generic", image.group(1))] = package.version
    return found


def names_of(sets: tuple[PackageSet, ...], images: Iterable[str] = ()) -> tuple[str, ...]:
    """All names of the sets, to ask the index for. `images`: the kernels that are followed, of `kernel_images`."""
    names = [name for one in sets for name in (*one.driver, *one.beside, one.first) if name]
    names += [f"{one.follows}-{image}" for one in sets if one.follows for image in images]
    return tuple(dict.fromkeys(names))


def choose(
    sets: tuple[PackageSet, ...], offered: tuple[Offer, ...], now: Packages, branch: str, version: str = ""
) -> Choice | None:
    """The set to install, at the exact driver version or at the branch's newest; None when no set can be served.

    A set of which packages are installed already comes before others. Packages `beside` that are not offered are
    left out, except a prebuilt module, without which its set is none; so are the pinning package and what follows the
    kernel.
    """
    for one in sorted(sets, key=lambda one: _missing(one, now)):
        served = _served(one, offered, branch, version)
        if not served:
            continue
        newest = max(served, key=version_key)
        beside = _beside(one, offered, newest)
        if one.prebuilt and one.beside and len(beside) < len(one.beside):
            continue
        follows = _following(one, offered, now, newest)
        wanted = (*(_pick(name, offered, newest) for name in one.driver), *beside, *follows)
        offers = {offer.name for offer in offered}
        return Choice(one if one.first in offers else one._replace(first=""), wanted, newest)
    return None


def _missing(one: PackageSet, now: Packages) -> int:
    """0 for the set that is installed, 1 for one that is so in part, 2 for one that is not."""
    here = [name in now.installed for name in one.driver]
    return 0 if all(here) else 1 if any(here) else 2


def _served(one: PackageSet, offered: tuple[Offer, ...], branch: str, version: str) -> set[str]:
    """The driver versions of the branch that every driver package of the set is offered at."""
    each = [{upstream(offer.version) for offer in offered if offer.name == name} for name in one.driver]
    common = set.intersection(*each)
    return {found for found in common if found.split(".")[0] == branch and version in ("", found)}


def _pick(name: str, offered: tuple[Offer, ...], version: str) -> Wanted:
    """The newest build of a package at the driver's version."""
    builds = [offer.version for offer in offered if offer.name == name and upstream(offer.version) == version]
    return Wanted(name, max(builds, key=version_key))


def _beside(one: PackageSet, offered: tuple[Offer, ...], version: str) -> tuple[Wanted, ...]:
    """What goes along, as far as it is offered: at the driver's version where it has that, at any where it has not."""
    found = []
    for name in one.beside:
        versions = {upstream(offer.version) for offer in offered if offer.name == name}
        if version in versions:
            found.append(_pick(name, offered, version))
        elif versions:
            found.append(Wanted(name))
    return tuple(found)


def _following(one: PackageSet, offered: tuple[Offer, ...], now: Packages, version: str) -> tuple[Wanted, ...]:
    """The metapackages that bring the module of each kernel to come, as far as they bring nothing else now.

    They stand on the newest driver, and on the newest kernel's image without the rest of that kernel: only where both
    are the ones here do they come along.
    """
    newest = [max((offer.version for offer in offered if offer.name == name), key=version_key) for name in one.driver]
    if not one.follows or any(upstream(found) != version for found in newest):
        return ()
    found = []
    for image, installed in kernel_images(now).items():
        name = f"{one.follows}-{image}"
        builds = [offer.version for offer in offered if offer.name == name]
        if builds and _abi(max(builds, key=version_key)) == _abi(installed):
            found.append(Wanted(name))
    return tuple(found)


def _abi(version: str) -> list[str]:
    """Which kernel a metapackage is of: the first four numbers of "6.8.0-88.89~22.04.1+1" or of "5.15.0.161.156"."""
    return re.findall(r"\d+", version)[:4]


def unserved(
    sets: tuple[PackageSet, ...], offered: tuple[Offer, ...], distribution: Distribution, branch: str, version: str = ""
) -> str:
    """The sentence for a driver that no repository of the host offers: packages, version, and what is there instead.

    A transitional package, which has the branch in its name and another in its version, is said to be one.
    """
    what = f"the driver {version}" if version else f"a driver of branch {branch}"
    for offer in offered:
        is_of_it = re.search(rf"-{branch}(-|$)", offer.name)
        if (
            is_of_it
            and not upstream(offer.version).startswith(f"{branch}.")
            and re.match(r"\d+\.\d", upstream(offer.version))
        ):
            return (
                f"no package source of this host ({distribution.words}) offers {what}: {offer.name} is a transitional "
                f"package there and would install {upstream(offer.version)}: ask for the branch "
                f"{upstream(offer.version).split('.')[0]}, or add a source that still carries {branch}"
            )
    names = " or ".join(dict.fromkeys(f"{one.driver[0]} ({one.repository})" for one in sets))
    drivers = {name for one in sets for name in one.driver}
    there = sorted({upstream(offer.version) for offer in offered if offer.name in drivers}, key=version_key)
    have = f"; they offer {', '.join(there[-4:])}" if there else ""
    return (
        f"no package source of this host ({distribution.words}) offers {what}, as {names}{have}: add the repository "
        "that carries it to the host's image"
    )


# -- Fabric Manager


def fabric_manager_names(distribution: Distribution, branch: str) -> tuple[str, ...]:
    """Names that Fabric Manager of a branch may have, in order of preference.

    From 580 on it is nvidia-fabricmanager in NVIDIA's repositories; Ubuntu's archive keeps the branch in the name.
    """
    if distribution.family == "debian":
        names = ("nvidia-fabricmanager", f"nvidia-fabricmanager-{branch}")
    else:
        names = ("nvidia-fabricmanager", "nvidia-fabric-manager")
    return names if int(branch) >= 580 else names[::-1]
