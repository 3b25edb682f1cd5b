# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The truth table of the loader detection, and the texts that evidence is read from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.look.boot import evidence, parse_family, parse_variable
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.loader import Evidence, Loader, detect
from tests.unit.boot_machines import LOADERS, firmware, machine

ALL = frozenset(
    ("update-grub", "grubby", "grub2-mkconfig", "grub-mkconfig", "rpm-ostree", "kernel-install", "mkinitcpio", "dracut")
)
DEBIAN = frozenset(("update-grub", "grub-mkconfig"))
RHEL = frozenset(("grubby", "grub2-mkconfig", "kernel-install", "dracut"))
SUSE = frozenset(("grub2-mkconfig", "dracut"))

TABLE = [
    # what booted the machine said so: nothing else counts
    (Evidence(ostree=True, programs=ALL, stub_info="systemd-stub 257"), Loader("ostree", "rpm-ostree")),
    (Evidence(ostree=True, programs=DEBIAN), Loader("ostree", "")),
    (Evidence(loader_info="systemd-boot 257", entries=True, programs=DEBIAN), Loader("systemd-boot", "entries")),
    (
        Evidence(loader_info="systemd-boot 257", entries=True, programs=ALL, grub_cfg=True),
        Loader("systemd-boot", "entries"),
    ),
    (Evidence(loader_info="systemd-boot 257", programs=ALL), Loader("systemd-boot", "")),
    (
        Evidence(loader_info="systemd-boot 252", proxmox=True, programs=frozenset(("proxmox-boot-tool", *DEBIAN))),
        Loader("systemd-boot", "proxmox-boot-tool"),
    ),
    (Evidence(loader_info="systemd-boot 257", images=True, programs=RHEL), Loader("uki", "dracut")),
    (
        Evidence(
            stub_info="systemd-stub 257", loader_info="systemd-boot 257", entries=True, uki_layout=True, programs=RHEL
        ),
        Loader("uki", "kernel-install"),
    ),
    (
        Evidence(stub_info="systemd-stub 257", programs=frozenset(("mkinitcpio", "kernel-install"))),
        Loader("uki", "mkinitcpio"),
    ),
    (Evidence(stub_info="systemd-stub 257"), Loader("uki", "")),
    (
        Evidence(loader_info="GRUB 2.12", entries=True, kernel_cmdline=True, programs=DEBIAN),
        Loader("grub", "update-grub"),
    ),
    # GRUB began the command line
    (
        Evidence(
            boot_image=True, entries=True, kernel_cmdline=True, family="rhel", programs=RHEL, bls=True, grub_cfg=True
        ),
        Loader("grubby", "grubby"),
    ),
    (Evidence(boot_image=True, family="rhel", programs=RHEL | {"update-grub"}), Loader("grubby", "grubby")),
    (
        Evidence(boot_image=True, family="debian", programs=DEBIAN | {"grubby"}, grub_cfg=True),
        Loader("grub", "update-grub"),
    ),
    (
        Evidence(boot_image=True, family="debian", kernel_cmdline=True, programs=DEBIAN, grub_cfg=True),
        Loader("grub", "update-grub"),
    ),
    (Evidence(boot_image=True, family="suse", programs=SUSE, grub_cfg=True), Loader("grub", "grub2-mkconfig")),
    (Evidence(boot_image=True, family="suse", programs=SUSE | {"update-grub"}), Loader("grub", "grub2-mkconfig")),
    (Evidence(boot_image=True, programs=frozenset(("grub-mkconfig",)), grub_cfg=True), Loader("grub", "grub-mkconfig")),
    (Evidence(boot_image=True), Loader("grub", "")),
    # nothing said so: what lies on the disk
    (Evidence(entries=True, kernel_cmdline=True, programs=DEBIAN), Loader("systemd-boot", "entries")),
    (Evidence(entries=True, kernel_cmdline=True, programs=DEBIAN, grub_cfg=True), Loader("systemd-boot", "entries")),
    (Evidence(entries=True, programs=DEBIAN), Loader("systemd-boot", "entries")),
    (Evidence(entries=True, programs=DEBIAN, grub_cfg=True), Loader("grub", "update-grub")),
    (
        Evidence(kernel_cmdline=True, family="rhel", programs=RHEL, grub_cfg=True, bls=True, entries=True),
        Loader("grubby", "grubby"),
    ),
    (Evidence(images=True, kernel_cmdline=True, uki_layout=True, programs=RHEL), Loader("uki", "kernel-install")),
    (Evidence(images=True, programs=DEBIAN, grub_cfg=True), Loader("grub", "update-grub")),
    (Evidence(kernel_cmdline=True, programs=frozenset(("kernel-install",))), Loader("systemd-boot", "")),
    # nothing but a tool
    (Evidence(family="debian", programs=DEBIAN), Loader("grub", "update-grub")),
    (Evidence(family="rhel", programs=RHEL), Loader("grubby", "grubby")),
    (Evidence(kernel_cmdline=True, programs=frozenset(("update-grub",))), Loader("grub", "update-grub")),
    (Evidence(programs=frozenset(("dracut", "kernel-install"))), Loader("none", "")),
    (Evidence(), Loader("none", "")),
]


@pytest.mark.parametrize(("seen", "expected"), TABLE)
def test_the_loader_that_the_machine_really_boots_by(seen: Evidence, expected: Loader) -> None:
    assert detect(seen) == expected


TOOLS = {"none": frozenset[str](), "debian": DEBIAN, "rhel": RHEL, "suse": SUSE, "all": ALL}


def disks(programs: frozenset[str]) -> Iterator[Evidence]:
    """Everything that may lie on a disk, in every combination."""
    for image, menu, bls, entries, images, cmdline, layout in itertools.product((False, True), repeat=7):
        yield Evidence(
            boot_image=image,
            grub_cfg=menu,
            bls=bls,
            entries=entries,
            images=images,
            kernel_cmdline=cmdline,
            uki_layout=layout,
            programs=programs,
        )


@pytest.mark.parametrize("tools", TOOLS)
def test_what_the_firmware_says_outweighs_every_file_and_tool(tools: str) -> None:
    for seen in disks(TOOLS[tools]):
        assert detect(seen._replace(stub_info="systemd-stub 257")).kind == "uki", seen
        by_systemd = detect(seen._replace(loader_info="systemd-boot 257"))
        assert by_systemd.kind in ("systemd-boot", "uki"), seen
        assert "grub" not in by_systemd.tool, seen
        assert detect(seen._replace(loader_info="GRUB 2.12")).kind in ("grub", "grubby"), seen
        assert detect(seen._replace(stub_info="systemd-stub 257", ostree=True)).kind == "ostree", seen


@pytest.mark.parametrize("tools", TOOLS)
def test_a_tool_is_named_only_when_it_is_there(tools: str) -> None:
    for seen in disks(TOOLS[tools]):
        for family in ("", "debian", "rhel", "suse"):
            found = detect(seen._replace(family=family))
            assert found.tool in ("", "entries") or found.tool in seen.programs, seen
            assert found.tool != "entries" or seen.entries, seen


@pytest.mark.parametrize("name", LOADERS)
def test_the_evidence_of_whole_machines(name: str) -> None:
    kind = "grub" if name == "suse" else name
    assert detect(evidence(machine(name))).kind == kind


def test_a_firmware_variable_is_utf_16_after_four_bytes() -> None:
    assert parse_variable(firmware("systemd-boot 257.8-1~deb13u2")) == "systemd-boot 257.8-1~deb13u2"
    assert parse_variable(None) == ""
    assert parse_variable("\x06\x00\x00\x00") == ""


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "rhel"),
        ("ID=fedora\n", "rhel"),
        ("ID=ubuntu\nID_LIKE=debian\n", "debian"),
        ("ID=debian\n", "debian"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "suse"),
        ('ID="sles"\n', "suse"),
        ("ID=arch\nVERSION_ID=rhel\n", ""),
    ],
)
def test_the_family_by_os_release(text: str, family: str) -> None:
    assert parse_family(text) == family
