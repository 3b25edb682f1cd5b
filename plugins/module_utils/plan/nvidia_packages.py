# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's package names, by distribution, release, and the repository that offers them.

Which repository serves a host is never guessed: of several sets of names, the first that the host's own index offers
at the wanted version is taken, and what is installed already is kept to. The sets are of a GPU server: what only a
desktop needs is left out where the names allow it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .distribution import Distribution
from .packages import Offer, Packages, Wanted, upstream, version_key

TOOLKIT = ("nvidia-container-toolkit",)
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


class PackageSet(NamedTuple):
    """The packages of one driver flavour and branch, as one kind of repository names them.

    `driver` packages carry the driver's version, `beside` have versions of their own (headers, prebuilt modules).
    `first` is installed before the others (a pinning package), `stream` a module stream that has to be enabled.
    `prebuilt`: the kernel module is built and signed by the distribution. `hold`: nothing but a hold keeps the branch.
    `rivals`: packages of the other flavour that go in the same transaction, where they are installed.
    """

    repository: str
    driver: tuple[str, ...]
    beside: tuple[str, ...] = ()
    first: str = ""
    stream: str = ""
    prebuilt: bool = False
    hold: bool = False
    rivals: tuple[str, ...] = ()


class Choice(NamedTuple):
    """A set that the index can serve: its packages with exact versions, and the driver's version, "580.95.05"."""

    set: PackageSet
    wanted: tuple[Wanted, ...]
    version: str


def driver_globs(distribution: Distribution) -> tuple[str, ...]:
    """Names and globs of everything that belongs to an installed driver, for the look."""
    if distribution.family == "debian":
        return ("nvidia-*", "libnvidia-*", "cuda-drivers*", "linux-modules-nvidia-*", "libcuda1", "firmware-nvidia-*")
    if distribution.family == "suse":
        return ("nvidia-*", "nv-prefer-*")
    return ("nvidia-*", "kmod-nvidia*", "libnvidia-*", "cuda-drivers*")


def driver_sets(
    distribution: Distribution, branch: str, is_open: bool, kernel: str, signed: bool
) -> tuple[PackageSet, ...]:
    """The sets of a branch and flavour in order of preference.

    `kernel` is the running kernel's release; `signed`: Secure Boot is on, prebuilt and signed modules come first.
    """
    if distribution.id == "ubuntu" or "ubuntu" in distribution.like:
        return (*_ubuntu(branch, is_open, kernel, signed), *_nvidia_metas(branch, is_open))
    if distribution.family == "debian":
        return (*_nvidia_debian(branch, is_open), *_nvidia_metas(branch, is_open), _debian(is_open))
    if distribution.family == "suse":
        return _suse(branch, is_open, kernel)
    return (_red_hat(distribution, branch, is_open),)


def _ubuntu(branch: str, is_open: bool, kernel: str, signed: bool) -> tuple[PackageSet, ...]:
    """Ubuntu's archive: the server branch, with a module built here or Ubuntu's own; then the desktop's branch.

    The names without -server are NVIDIA's repository's too, up to 580.
    """
    flavour = "-open" if is_open else ""
    server = f"{branch}-server"
    tools = (f"nvidia-utils-{server}", f"nvidia-compute-utils-{server}")
    built = PackageSet("Ubuntu's archive", (f"nvidia-headless-{server}{flavour}", *tools))
    prebuilt = PackageSet(
        "Ubuntu's archive, with its signed modules",
        (f"nvidia-headless-no-dkms-{server}{flavour}", *tools),
        (f"linux-modules-nvidia-{server}{flavour}-{kernel}",),
        prebuilt=True,
    )
    plain = PackageSet(
        "Ubuntu's archive or NVIDIA's repository for it",
        (f"nvidia-headless-{branch}{flavour}", f"nvidia-utils-{branch}", f"nvidia-compute-utils-{branch}"),
    )
    return (prebuilt, built, plain) if signed else (built, prebuilt, plain)


def _nvidia_debian(branch: str, is_open: bool) -> tuple[PackageSet, ...]:
    """NVIDIA's repository for Debian, without the desktop; a pinning package keeps the branch."""
    kernel = "nvidia-kernel-open-dkms" if is_open else "nvidia-kernel-dkms"
    driver = ("nvidia-driver-cuda", kernel)
    return (
        PackageSet("NVIDIA's repository", driver, ("nvidia-persistenced",), first=f"nvidia-driver-pinning-{branch}"),
    )


def _nvidia_metas(branch: str, is_open: bool) -> tuple[PackageSet, ...]:
    """The metapackages of NVIDIA's repositories for Debian and Ubuntu: with the branch in the name, then without."""
    name = "nvidia-open" if is_open else "cuda-drivers"
    return (
        PackageSet("NVIDIA's repository", (f"{name}-{branch}",)),
        PackageSet("NVIDIA's repository", (name,), first=f"nvidia-driver-pinning-{branch}"),
    )


def _debian(is_open: bool) -> PackageSet:
    """Debian's own archive, which carries one branch a release and keeps to it; nvidia-smi and MPS stand apart."""
    kernel = ("nvidia-open-kernel-dkms", "firmware-nvidia-gsp") if is_open else ("nvidia-kernel-dkms",)
    tools = ("nvidia-smi", "libcuda1", "libnvidia-ml1", "nvidia-cuda-mps")
    return PackageSet("Debian's archive", (*kernel, *tools), ("nvidia-persistenced",))


def _red_hat(distribution: Distribution, branch: str, is_open: bool) -> PackageSet:
    """NVIDIA's repository: by streams for RHEL 8 and 9 and Amazon 2023, plain for RHEL 10 and Fedora."""
    ours, other = ("kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms")
    if not is_open:
        ours, other = other, ours
    streams = distribution.has_streams
    return PackageSet(
        "NVIDIA's repository",
        ("nvidia-driver-cuda", ours),
        ("nvidia-persistenced",),
        stream=f"{branch}-{'open' if is_open else 'dkms'}" if streams else "",
        hold=not streams,
        rivals=(other, "nvidia-open") if not is_open else (other, "cuda-drivers"),
    )


def _suse(branch: str, is_open: bool, kernel: str) -> tuple[PackageSet, ...]:
    """SUSE's kernel module packages, by generation and kernel flavour; their names do not carry the branch."""
    generation = "G06" if int(branch) < 590 else "G07"
    flavour = kernel.rpartition("-")[2] if "-" in kernel else "default"
    utils = f"nvidia-compute-utils-{generation}"
    opened = (f"nvidia-open-driver-{generation}-signed-kmp", f"nvidia-open-driver-{generation}-signed-cuda-kmp")
    closed = f"nvidia-driver-{generation}-kmp"
    if not is_open:
        rivals = tuple(f"{name}-{flavour}" for name in opened)
        return (PackageSet("NVIDIA's repository", (f"{closed}-{flavour}", utils), hold=True, rivals=rivals),)
    rivals = (f"{closed}-{flavour}",)
    repositories = ("SUSE's or NVIDIA's repository", "NVIDIA's CUDA repository")
    return tuple(
        PackageSet(where, (f"{name}-{flavour}", utils), prebuilt=True, hold=True, rivals=rivals)
        for name, where in zip(opened, repositories)
    )


def headers(distribution: Distribution, kernel: str) -> Wanted | None:
    """The package with which dkms builds for the running kernel; None where modules come built (SUSE)."""
    if distribution.family == "debian":
        return Wanted(f"linux-headers-{kernel}")
    if distribution.family == "suse":
        return None
    return Wanted("kernel-devel", re.sub(r"\.(x86_64|aarch64)$", "", kernel))


# -- the choice


def names_of(sets: tuple[PackageSet, ...]) -> tuple[str, ...]:
    """All names of the sets, to ask the index for."""
    names = [name for one in sets for name in (*one.driver, *one.beside, one.first) if name]
    return tuple(dict.fromkeys(names))


def choose(
    sets: tuple[PackageSet, ...], offered: tuple[Offer, ...], now: Packages, branch: str, version: str = ""
) -> Choice | None:
    """The set to install, at the exact driver version or at the branch's newest; None when no set can be served.

    A set of which packages are installed already comes before others. Packages `beside` that are not offered are
    left out, except a prebuilt module, without which its set is none; so is the pinning package.
    """
    for one in sorted(sets, key=lambda one: _missing(one, now)):
        served = _served(one, offered, branch, version)
        if not served:
            continue
        newest = max(served, key=version_key)
        beside = _beside(one, offered, newest)
        if one.prebuilt and one.beside and len(beside) < len(one.beside):
            continue
        wanted = (*(_pick(name, offered, newest) for name in one.driver), *beside)
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
