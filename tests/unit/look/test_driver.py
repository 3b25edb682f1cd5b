# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver as the host shows it, in the texts of its files and of modinfo."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import driver, driver_library, kernel
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.driver_file import on_disk
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_target import (
    OnDisk,
    branch_of,
    parse_modinfo,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.nvidia_driver_version import Loaded, parse_nvrm
from tests.unit.fake_host import FakeHost

GCC = "GCC version:  gcc version 14.2.1 20240801 (Red Hat 14.2.1-1) (GCC) \n"
NVRM = (
    (
        (
            "NVIDIA UNIX Open Kernel Module for x86_64  555.58.02  Release Build  (dvs-builder@U16-I3-B03-4-3)  "
            "Tue Jun 25 01:26:03 UTC 2024"
        ),
        Loaded("555.58.02", "open"),
    ),
    (
        (
            "NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3-B17-02-5)  "
            "Tue Sep 23 09:55:41 UTC 2025"
        ),
        Loaded("580.95.05", "open"),
    ),
    (
        (
            "NVIDIA UNIX Open Kernel Module for aarch64  TempVersion  Release Build  (bugfix_main)  (buildbrain@x)  "
            "Tue Dec 30 15:54:35 PST 2025"
        ),
        Loaded("TempVersion", "open"),
    ),
    ("NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025", Loaded("580.95.05", "proprietary")),
    (
        "NVIDIA UNIX x86_64 Kernel Module  550.127.05  Tue Oct  8 16:30:26 UTC 2024",
        Loaded("550.127.05", "proprietary"),
    ),
    ("NVIDIA UNIX aarch64 Kernel Module  575.51.03  Thu Apr 17 2025", Loaded("575.51.03", "proprietary")),
)
MODINFO = (
    "filename:       /lib/modules/6.8.0-88-generic/updates/dkms/nvidia.ko.zst\n"
    "alias:          char-major-195-*\n"
    "version:        580.95.05\n"
    "supported:      external\n"
    "license:        {licence}\n"
)
WHERE = "/lib/modules/6.8.0-88-generic/updates/dkms/nvidia.ko.zst"
SIGNED = "sig_id:         PKCS#7\nsigner:         Canonical Ltd. Kernel Module Signing\nsig_hashalgo:   sha512\n"
TRIPLET = "/usr/lib/x86_64-linux-gnu"


@pytest.mark.parametrize(("line", "expected"), NVRM)
def test_the_loaded_driver_is_read_from_its_own_words(line: str, expected: Loaded) -> None:
    assert parse_nvrm(f"NVRM version: {line}\n{GCC}") == expected


@pytest.mark.parametrize("text", ["", GCC, "NVRM version: something else\n", "NVRM version: NVIDIA UNIX x86_64\n"])
def test_a_text_that_names_no_driver_is_a_fault(text: str) -> None:
    with pytest.raises(StepFailed, match="names no driver"):
        parse_nvrm(text)


def test_no_driver_is_loaded_where_the_kernel_shows_none() -> None:
    assert driver.loaded(FakeHost({})) is None


def test_the_licence_tells_the_flavour() -> None:
    assert parse_modinfo(MODINFO.format(licence="NVIDIA")) == OnDisk("580.95.05", "proprietary", WHERE, "")
    assert parse_modinfo(MODINFO.format(licence="Dual MIT/GPL")) == OnDisk("580.95.05", "open", WHERE, "")
    signed = parse_modinfo(MODINFO.format(licence="NVIDIA") + SIGNED)
    assert signed is not None
    assert signed.signer == "Canonical Ltd. Kernel Module Signing"
    with pytest.raises(StepFailed, match="'GPL'"):
        parse_modinfo(MODINFO.format(licence="GPL"))


def modinfo_host(*names: str) -> FakeHost:
    """A host whose modinfo knows these modules, for the kernel 6.8.0-88-generic alone."""

    def modinfo(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        if argv[:3] == ("modinfo", "-k", "6.8.0-88-generic") and argv[3] in names:
            return Answer(0, MODINFO.format(licence="Dual MIT/GPL"))
        return Answer(1, "", f"modinfo: ERROR: Module {argv[-1]} not found.\n")

    return FakeHost({"/proc/sys/kernel/osrelease": "6.8.0-88-generic\n"}, {"modinfo": modinfo})


def test_the_module_file_is_that_of_the_running_kernel() -> None:
    expected = OnDisk("580.95.05", "open", WHERE, "")
    assert on_disk(modinfo_host("nvidia")) == expected
    assert on_disk(modinfo_host("nvidia-current")) == expected  # Debian's own packages
    assert on_disk(modinfo_host()) is None
    other = modinfo_host("nvidia")
    other.put("/proc/sys/kernel/osrelease", "6.8.0-90-generic\n")
    assert on_disk(other) is None


def test_a_host_without_modinfo_is_not_one_without_the_module() -> None:
    with pytest.raises(StepFailed, match="install kmod"):
        on_disk(FakeHost({"/proc/sys/kernel/osrelease": "6.8.0-88-generic\n"}))


class Links(FakeHost):
    """A host with symbolic links."""

    def __init__(self, files: dict[str, str], pointing: dict[str, str]) -> None:
        super().__init__({**files, **dict.fromkeys(pointing, "")})
        self.pointing = pointing

    def link(self, path: str) -> str | None:
        return self.pointing.get(path)


def test_the_library_is_the_one_that_programs_load() -> None:
    assert driver_library.library(FakeHost({})) is None
    stale = {f"{TRIPLET}/libnvidia-ml.so.{version}": "" for version in ("550.90.07", "550.107.02")}
    host = Links(stale, {f"{TRIPLET}/libnvidia-ml.so.1": "libnvidia-ml.so.550.90.07"})
    assert driver_library.library(host) == "550.90.07"
    host = Links(
        {},
        {
            f"{TRIPLET}/libnvidia-ml.so.1": "/etc/alternatives/nvidia--libnvidia-ml.so.1-x86_64-linux-gnu",
            "/etc/alternatives/nvidia--libnvidia-ml.so.1-x86_64-linux-gnu": (
                f"{TRIPLET}/nvidia/current/libnvidia-ml.so.1"
            ),
            f"{TRIPLET}/nvidia/current/libnvidia-ml.so.1": "libnvidia-ml.so.550.163.01",
        },
    )
    assert driver_library.library(host) == "550.163.01"
    copied = Links({f"{TRIPLET}/libnvidia-ml.so.1": "", **stale}, {})
    assert driver_library.library(copied) == "550.107.02"  # by number, not as text
    assert driver_library.library(Links(stale, {})) is None  # without the name that programs ask for
    endless = Links({}, {f"{TRIPLET}/libnvidia-ml.so.1": "libnvidia-ml.so.1"})
    assert driver_library.library(endless) is None


@pytest.mark.parametrize(("text", "count"), [("3\n", 3), ("0\n", 0), ("-1\n", -1), ("\n", 0), (None, None)], ids=repr)
def test_the_kernel_counts_who_refers_to_a_module(text: str | None, count: int | None) -> None:
    host = FakeHost({} if text is None else {"/sys/module/nvidia/refcnt": text})
    assert kernel.refcnt(host, "nvidia") == count


@pytest.mark.parametrize("text", ["yes\n", "3\n3\n", "9" * 5000, "\udcff"])
def test_a_count_of_references_that_is_none_is_a_fault(text: str) -> None:
    with pytest.raises(StepFailed, match=r"/sys/module/nvidia/refcnt reads .*, which is no number of references"):
        kernel.refcnt(FakeHost({"/sys/module/nvidia/refcnt": text}), "nvidia")


def test_the_branch_is_what_comes_before_the_first_dot() -> None:
    assert branch_of("580.95.05") == "580"
