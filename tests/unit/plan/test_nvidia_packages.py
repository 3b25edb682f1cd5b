# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's package names by distribution and repository, and the choice by what the index offers."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.distribution import Distribution, parse_os_release
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_names import (
    driver_sets,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_packages import (
    MAY_GO,
    Choice,
    choose,
    fabric_manager_names,
    headers,
    kernel_images,
    names_of,
    unserved,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.package_rows import Package
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages import Offer, Wanted
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_seen import Packages
from tests.unit.package_machine import OS_RELEASE

UBUNTU_KERNEL, SUSE_KERNEL, EL_KERNEL = "6.8.0-88-generic", "6.4.0-150600.23.65-default", "5.14.0-503.11.1.el9_5.x86_64"
B = "-0ubuntu0.24.04.1"  # what Ubuntu's archive puts behind NVIDIA's version


def distribution(name: str) -> Distribution:
    return parse_os_release(OS_RELEASE[name])


def chosen(
    name: str,
    carried: dict[str, list[str]],
    branch: str,
    *,
    is_open: bool = True,
    version: str = "",
    kernel: str = UBUNTU_KERNEL,
    signed: bool = False,
    installed: dict[str, str] | None = None,
    held: tuple[str, ...] = (),
) -> Choice | None:
    sets = driver_sets(distribution(name), branch, is_open, kernel, signed)
    here = {one: Package(one, found, held=one in held) for one, found in (installed or {}).items()}
    now = Packages("x", distribution(name), installed=here)
    names = names_of(sets, kernel_images(now))
    offered = tuple(Offer(one, found) for one in names for found in carried.get(one, []))
    return choose(sets, offered, now, branch, version)


def specs(choice: Choice | None) -> list[str]:
    assert choice is not None
    return [f"{name}={version}" for name, version in choice.wanted]


def archive(branch: str, *versions: str, flavour: str = "-open") -> dict[str, list[str]]:
    """Ubuntu's archive: the server branch, without its prebuilt modules."""
    server = f"{branch}-server"
    names = (f"nvidia-headless-{server}{flavour}", f"nvidia-utils-{server}", f"nvidia-compute-utils-{server}")
    return {name: [version + B for version in versions] for name in names}


def test_ubuntu_s_archive_has_the_server_branch_with_its_tools() -> None:
    """nvidia-compute-utils has MPS and persistenced, nvidia-utils has nvidia-smi."""
    found = chosen("ubuntu", archive("580", "580.82.07", "580.95.05"), "580")
    assert specs(found) == [
        f"nvidia-headless-580-server-open=580.95.05{B}",
        f"nvidia-utils-580-server=580.95.05{B}",
        f"nvidia-compute-utils-580-server=580.95.05{B}",
    ]
    assert found is not None
    assert (found.version, found.set.hold, found.set.stream, found.set.first) == ("580.95.05", False, "", "")


def test_the_proprietary_flavour_has_no_suffix() -> None:
    found = chosen("ubuntu", archive("535", "535.261.03", flavour=""), "535", is_open=False)
    assert specs(found)[0] == f"nvidia-headless-535-server=535.261.03{B}"


def test_an_exact_version_is_taken_even_where_a_newer_one_is_offered() -> None:
    found = chosen("ubuntu", archive("580", "580.82.07", "580.95.05"), "580", version="580.82.07")
    assert found is not None
    assert found.version == "580.82.07"
    assert chosen("ubuntu", archive("580", "580.95.05"), "580", version="580.82.07") is None


def test_with_secure_boot_the_signed_modules_of_the_running_kernel_come_first() -> None:
    carried = archive("580", "580.95.05")
    carried["nvidia-headless-no-dkms-580-server-open"] = [f"580.95.05{B}"]
    carried[f"linux-modules-nvidia-580-server-open-{UBUNTU_KERNEL}"] = ["6.8.0-88.89+1"]
    signed = chosen("ubuntu", carried, "580", signed=True)
    assert specs(signed)[0] == f"nvidia-headless-no-dkms-580-server-open=580.95.05{B}"
    assert specs(signed)[-1] == f"linux-modules-nvidia-580-server-open-{UBUNTU_KERNEL}="
    assert signed is not None
    assert signed.set.prebuilt
    assert specs(chosen("ubuntu", carried, "580"))[0] == f"nvidia-headless-580-server-open=580.95.05{B}"


def test_without_a_signed_module_for_this_kernel_it_is_built_here() -> None:
    carried = archive("580", "580.95.05")
    carried["nvidia-headless-no-dkms-580-server-open"] = [f"580.95.05{B}"]
    carried["linux-modules-nvidia-580-server-open-6.8.0-90-generic"] = ["6.8.0-90.91+1"]
    found = chosen("ubuntu", carried, "580", signed=True)
    assert found is not None
    assert not found.set.prebuilt


MODULES = "linux-modules-nvidia-580-server-open"


def restricted(*kernels: str, **metas: str) -> dict[str, list[str]]:
    """Ubuntu's archive with the signed modules of kernels, and metapackages of flavours at versions."""
    carried = archive("580", "580.82.07", "580.95.05")
    carried["nvidia-headless-no-dkms-580-server-open"] = [f"580.82.07{B}", f"580.95.05{B}"]
    modules = {f"{MODULES}-{kernel}": ["6.8.0-88.89+1"] for kernel in kernels}
    return {**carried, **modules, **{f"{MODULES}-{flavour}": [found] for flavour, found in metas.items()}}


FLAVOURS = {"generic": "6.8.0-88.89+1", "generic-hwe-24.04": "6.17.0-40.40~24.04.1", "aws": "6.8.0-1042.44"}


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"linux-image-generic": "6.8.0-88.89"}, ["generic"]),
        ({"linux-image-generic": "6.8.0.88.89"}, ["generic"]),  # as of 22.04 and before
        ({"linux-image-generic-hwe-24.04": "6.17.0-40.40~24.04.1"}, ["generic-hwe-24.04"]),
        ({"linux-image-virtual": "6.8.0-88.89"}, ["generic"]),
        ({"linux-image-aws": "6.8.0-1042.44"}, ["aws"]),
        ({"linux-image-generic": "6.8.0-88.89", "linux-image-aws": "6.8.0-1042.44"}, ["generic", "aws"]),
        ({"linux-image-generic": "6.8.0-85.85"}, []),  # the archive has a newer kernel
        ({"linux-image-lowlatency": "6.8.0-88.89"}, []),  # for which there are no modules
        ({"linux-image-6.8.0-88-generic": "6.8.0-88.89", "linux-image-unsigned-6.8.0-88-generic": "6.8.0-88.89"}, []),
    ],
)
def test_signed_modules_follow_the_kernel_s_metapackage(installed: dict[str, str], expected: list[str]) -> None:
    carried = restricted(UBUNTU_KERNEL, **FLAVOURS)
    found = chosen("ubuntu", carried, "580", signed=True, installed=installed)
    assert specs(found)[4:] == [f"{MODULES}-{flavour}=" for flavour in expected]
    assert specs(chosen("ubuntu", carried, "580", signed=True, installed=installed, held=(*installed,)))[4:] == []


def test_an_older_driver_has_no_metapackage_that_stands_on_the_newest() -> None:
    carried = restricted(UBUNTU_KERNEL, **FLAVOURS)
    found = chosen(
        "ubuntu", carried, "580", version="580.82.07", signed=True, installed={"linux-image-generic": "6.8.0-88.89"}
    )
    assert found is not None
    assert found.version == "580.82.07"
    assert specs(found)[4:] == []


def test_nvidia_s_repository_for_ubuntu_is_taken_where_it_alone_has_the_branch() -> None:
    carried = {
        **archive("580", "580.95.05"),
        "nvidia-open": ["580.95.05-1", "590.44.01-1", "595.71.05-1"],
        "nvidia-driver-pinning-590": ["590-1"],
    }
    found = chosen("ubuntu", carried, "590")
    assert specs(found) == ["nvidia-open=590.44.01-1"]
    assert found is not None
    assert found.set.first == "nvidia-driver-pinning-590"


def test_what_is_installed_from_one_repository_stays_with_it() -> None:
    """Both repositories offer the branch; one driver over another's packages ends in broken ones."""
    carried = {**archive("580", "580.95.05"), "nvidia-open-580": ["580.95.05-1"]}
    assert specs(chosen("ubuntu", carried, "580"))[0].startswith("nvidia-headless-580-server-open=")
    installed = {"nvidia-open-580": "580.82.07-1"}
    assert specs(chosen("ubuntu", carried, "580", installed=installed)) == ["nvidia-open-580=580.95.05-1"]


def test_a_transitional_package_is_no_driver_of_its_branch() -> None:
    """nvidia-headless-570-server-open of 26.04 brings 580.126.20: a branch is what its version says."""
    carried = archive("570", "580.126.20")
    assert chosen("ubuntu", carried, "570") is None
    sets = driver_sets(distribution("ubuntu"), "570", True, UBUNTU_KERNEL, False)
    offered = tuple(Offer(name, version) for name, versions in carried.items() for version in versions)
    sentence = unserved(sets, offered, distribution("ubuntu"), "570")
    assert "is a transitional package there and would install 580.126.20" in sentence
    assert "ask for the branch 580" in sentence


def test_packages_of_which_one_is_missing_are_no_driver() -> None:
    carried = archive("580", "580.95.05")
    del carried["nvidia-utils-580-server"]
    assert chosen("ubuntu", carried, "580") is None


def test_what_no_source_offers_is_named_with_what_is_there() -> None:
    sets = driver_sets(distribution("ubuntu"), "580", True, UBUNTU_KERNEL, False)
    offered = tuple(Offer(name, found[0]) for name, found in archive("580", "580.95.05").items())
    sentence = unserved(sets, offered, distribution("ubuntu"), "580", "580.82.07")
    assert "ubuntu 24.04" in sentence
    assert "offers the driver 580.82.07" in sentence
    assert "nvidia-headless-580-server-open (Ubuntu's archive)" in sentence
    assert "they offer 580.95.05" in sentence


# -- Debian

DEBIAN = {
    name: ["535.261.03-1~deb12u1"]
    for name in (
        *("nvidia-kernel-dkms", "nvidia-open-kernel-dkms", "firmware-nvidia-gsp"),
        *("nvidia-smi", "libcuda1", "libnvidia-ml1", "nvidia-cuda-mps"),
    )
}


def test_debian_s_archive_has_nvidia_smi_and_mps_apart() -> None:
    found = chosen("debian", {**DEBIAN, "nvidia-persistenced": ["535.171.04-1~deb12u1"]}, "535", is_open=False)
    assert [spec.partition("=")[0] for spec in specs(found)] == [
        *("nvidia-kernel-dkms", "nvidia-smi", "libcuda1", "libnvidia-ml1", "nvidia-cuda-mps", "nvidia-persistenced")
    ]
    assert specs(found)[-1] == "nvidia-persistenced="  # of a version of its own
    assert found is not None
    assert found.set.repository == "Debian's archive"


def test_debian_s_open_flavour_needs_its_firmware() -> None:
    found = chosen("debian", DEBIAN, "535", is_open=True)
    assert {"nvidia-open-kernel-dkms=535.261.03-1~deb12u1", "firmware-nvidia-gsp=535.261.03-1~deb12u1"} <= {
        *specs(found)
    }


@pytest.mark.parametrize(("is_open", "kernel"), [(True, "nvidia-kernel-open-dkms"), (False, "nvidia-kernel-dkms")])
def test_nvidia_s_repository_for_debian_pins_the_branch_and_leaves_the_desktop_out(is_open: bool, kernel: str) -> None:
    carried = {
        "nvidia-driver-cuda": ["580.95.05-1", "590.44.01-1"],
        kernel: ["580.95.05-1", "590.44.01-1"],
        "nvidia-persistenced": ["580.95.05-1", "590.44.01-1"],
        "nvidia-driver-pinning-580": ["580-1"],
    }
    found = chosen("debian", {**DEBIAN, **carried}, "580", is_open=is_open)
    assert specs(found) == [
        "nvidia-driver-cuda=580.95.05-1",
        f"{kernel}=580.95.05-1",
        "nvidia-persistenced=580.95.05-1",
    ]
    assert found is not None
    assert found.set.first == "nvidia-driver-pinning-580"


def test_older_branches_of_nvidia_s_repository_have_metapackages_with_their_names() -> None:
    found = chosen("debian", {"cuda-drivers-550": ["550.163.01-1"]}, "550", is_open=False)
    assert specs(found) == ["cuda-drivers-550=550.163.01-1"]


# -- Red Hat


@pytest.mark.parametrize(
    ("name", "is_open", "stream", "kmod", "hold"),
    [
        ("rocky9", True, "580-open", "kmod-nvidia-open-dkms", False),
        ("rocky9", False, "580-dkms", "kmod-nvidia-latest-dkms", False),
        ("rocky10", True, "", "kmod-nvidia-open-dkms", True),
        ("fedora", True, "", "kmod-nvidia-open-dkms", True),
        ("fedora", False, "", "kmod-nvidia-latest-dkms", True),
    ],
)
def test_red_hat_has_streams_up_to_9_and_holds_after(
    name: str, is_open: bool, stream: str, kmod: str, hold: bool
) -> None:
    rpms = ["3:570.195.03-1.el9", "3:580.82.07-1.el9", "3:580.95.05-1.el9", "3:590.44.01-1.el9"]
    found = chosen(name, {"nvidia-driver-cuda": rpms, kmod: rpms}, "580", is_open=is_open, kernel=EL_KERNEL)
    assert specs(found) == ["nvidia-driver-cuda=3:580.95.05-1.el9", f"{kmod}=3:580.95.05-1.el9"]
    assert found is not None
    assert (found.set.stream, found.set.hold) == (stream, hold)
    assert ({"kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"} - {kmod}) <= {*found.set.rivals}


# -- SUSE


@pytest.mark.parametrize(
    ("branch", "generation", "version"),
    [("570", "G06", "570.195.03"), ("580", "G06", "580.95.05"), ("590", "G07", "590.44.01")],
)
@pytest.mark.parametrize("repository", ["signed-kmp", "signed-cuda-kmp"])
def test_suse_has_generations_and_a_branch_only_by_its_version(
    branch: str, generation: str, version: str, repository: str
) -> None:
    kmp, utils = f"nvidia-open-driver-{generation}-{repository}-default", f"nvidia-compute-utils-{generation}"
    carried = {
        kmp: [f"{version}_k6.4.0_150600.21-150600.3.63.1", "600.10.01_k6.4.0_150600.21-150600.3.63.1"],
        utils: [f"{version}-150600.1.1", "600.10.01-150600.1.1"],
    }
    found = chosen("leap", carried, branch, kernel=SUSE_KERNEL)
    assert specs(found) == [f"{kmp}={carried[kmp][0]}", f"{utils}={carried[utils][0]}"]
    assert found is not None
    assert (found.set.hold, found.version) == (True, version)


def test_suse_s_proprietary_flavour_takes_the_place_of_the_open_one() -> None:
    carried = {
        "nvidia-driver-G06-kmp-default": ["580.95.05_k6.4.0_150600.21-lp156.41.1"],
        "nvidia-compute-utils-G06": ["580.95.05-lp156.41.1"],
    }
    found = chosen("leap", carried, "580", is_open=False, kernel=SUSE_KERNEL)
    assert found is not None
    assert "nvidia-open-driver-G06-signed-kmp-default" in found.set.rivals


# -- the rest


def test_headers_are_of_the_running_kernel() -> None:
    assert headers(distribution("ubuntu"), UBUNTU_KERNEL) == Wanted("linux-headers-6.8.0-88-generic")
    assert headers(distribution("rocky9"), EL_KERNEL) == Wanted("kernel-devel", "5.14.0-503.11.1.el9_5")
    assert headers(distribution("leap"), SUSE_KERNEL) is None


@pytest.mark.parametrize(
    ("name", "branch", "names"),
    [
        ("ubuntu", "580", ("nvidia-fabricmanager", "nvidia-fabricmanager-580")),
        ("ubuntu", "570", ("nvidia-fabricmanager-570", "nvidia-fabricmanager")),
        ("rocky9", "580", ("nvidia-fabricmanager", "nvidia-fabric-manager")),
        ("rocky9", "570", ("nvidia-fabric-manager", "nvidia-fabricmanager")),
        ("leap", "590", ("nvidia-fabricmanager", "nvidia-fabric-manager")),
    ],
)
def test_fabric_manager_has_lost_its_branch_and_its_hyphen(name: str, branch: str, names: tuple[str, ...]) -> None:
    assert fabric_manager_names(distribution(name), branch) == names


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("nvidia-headless-550-server-open", True),
        ("nvidia-fabricmanager-550", True),
        ("libnvidia-compute-550-server", True),
        ("linux-modules-nvidia-550-server-open-6.8.0-88-generic", True),
        ("cuda-drivers-550", True),
        ("nvidia-container-toolkit", False),
        ("nvidia-container-toolkit-base", False),
        ("libnvidia-container1", False),
        ("cuda-toolkit-12-8", False),
        ("linux-image-6.8.0-88-generic", False),
    ],
)
def test_a_swap_may_take_the_driver_s_packages_away_and_nothing_else(name: str, ours: bool) -> None:
    assert any(fnmatchcase(name, glob) for glob in MAY_GO) is ours
