# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loaders' tools against what they are documented to do, and what boots after them."""

from __future__ import annotations

import os
import re

import pytest

from tests.sim import bls, grub, standins

from .conftest import Maker


def cmdline(text: str | None) -> list[str]:
    return (text or "").split()


def test_update_grub_lets_sh_read_the_settings(make: Maker) -> None:
    host = make()
    host.write(
        "/etc/default/grub",
        'GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\nGRUB_CMDLINE_LINUX=\'a="b c"\'\n',
    )
    host.write("/etc/default/grub.d/50-cloud.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty0 console=ttyS0"\n')
    host.write("/etc/default/grub.d/90-x.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt"\n')
    host.write("/etc/default/grub.d/99-not.txt", 'GRUB_CMDLINE_LINUX="never"\n')
    assert host.run("update-grub").returncode == 0
    text = host.read("/boot/grub/grub.cfg") or ""
    lines = re.findall(r"^\s*linux\s+(.*)$", text, re.MULTILINE)
    assert len(lines) == 3
    assert lines[0].endswith('ro a="b c" iommu=pt console=tty0 console=ttyS0')
    assert lines[1] == lines[0]
    assert lines[2].endswith('ro single a="b c" iommu=pt')  # recovery: without GRUB_CMDLINE_LINUX_DEFAULT
    host.reboot()
    assert cmdline(host.read("/proc/cmdline"))[-3:] == ["iommu=pt", "console=tty0", "console=ttyS0"]


def test_a_setting_that_sh_cannot_read_leaves_grub_cfg_alone(make: Maker) -> None:
    host = make()
    before = host.read("/boot/grub/grub.cfg")
    host.write("/etc/default/grub.d/90-x.cfg", 'GRUB_CMDLINE_LINUX="open\n')
    assert host.run("update-grub").returncode != 0
    assert host.read("/boot/grub/grub.cfg") == before


def test_a_dropin_alone_does_not_boot(make: Maker) -> None:
    host = make()
    host.write("/etc/default/grub.d/90-x.cfg", 'GRUB_CMDLINE_LINUX="iommu=pt"\n')
    host.reboot()
    assert "iommu=pt" not in cmdline(host.read("/proc/cmdline"))


def test_suse_reads_no_dropins(make: Maker) -> None:
    host = make("suse")
    host.write("/etc/default/grub.d/90-x.cfg", 'GRUB_CMDLINE_LINUX="dropped=1"\n')
    host.write("/etc/default/grub", 'GRUB_CMDLINE_LINUX="kept=1"\n')
    assert host.run("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg").returncode == 0
    host.reboot()
    assert "kept=1" in cmdline(host.read("/proc/cmdline"))
    assert "dropped=1" not in cmdline(host.read("/proc/cmdline"))
    assert host.run("sh", "-c", "command -v grubby update-grub").returncode != 0


def test_grub_default_names_the_entry_that_boots() -> None:
    text = (
        "set default=\"Advanced>Old\"\nmenuentry 'New' {\n\tlinux\t/boot/vmlinuz-2 new\n}\n"
        "submenu 'Advanced' {\nmenuentry 'Old' {\n\tlinux\t/boot/vmlinuz-1 old\n}\n}\n"
    )
    assert grub.grub_default(text) == "old"
    assert grub.grub_default(text.replace("Advanced>Old", "0")) == "new"
    assert grub.grub_default('set default="0"\n') is None


@pytest.mark.parametrize(
    ("arguments", "removed", "added", "left"),
    [
        ("ro quiet a=1 a=2", "a", "", "ro quiet"),
        ("ro a=1 a=2 a=1", "a=1", "", "ro a=2 a=1"),  # with a value, one word at a time
        ("ro a=1 b", "", "a=3 c", "ro b a=3 c"),
        ("ro hugepagesz=2M hugepages=8", "", "hugepagesz=1G hugepages=4", "ro hugepagesz=1G hugepages=4"),
        ("ro", "", "console=tty0 console=ttyS0", "ro console=tty0 console=ttyS0"),
        ("ro isolcpus=1-3 xisolcpus=9", "isolcpus", "", "ro xisolcpus=9"),
    ],
)
def test_how_grubby_edits_arguments(arguments: str, removed: str, added: str, left: str) -> None:
    assert bls.edited(arguments, removed, added) == left


def test_grubby_changes_every_entry_and_what_later_kernels_read(make: Maker) -> None:
    host = make("rocky")
    entries = bls.entries(host.tree, bls.ENTRIES)
    host.write(
        entries[0].replace(".conf", "-old.conf").replace("5.14", "5.13"), bls.bls_entry("5.13", "root=/dev/x ro")
    )
    done = host.run("grubby", "--update-kernel=ALL", "--args=iommu=pt isolcpus=1-3", "--remove-args", "quiet")
    assert (done.returncode, done.stderr) == (0, "")
    info = host.run("grubby", "--info=ALL").stdout
    assert info.count('args="ro iommu=pt isolcpus=1-3"') == 2
    assert re.findall(r"^index=(\d)", info, re.MULTILINE) == ["0", "1"]
    assert 'GRUB_CMDLINE_LINUX="iommu=pt isolcpus=1-3"' in (host.read("/etc/default/grub") or "")
    assert (host.read("/etc/kernel/cmdline") or "").endswith("ro iommu=pt isolcpus=1-3\n")
    host.reboot()
    assert host.read("/sys/devices/system/cpu/isolated") == "1-3\n"


def test_grubby_for_one_entry_or_told_so_leaves_the_file(make: Maker) -> None:
    host = make("rocky")
    host.run("grubby", "--update-kernel=DEFAULT", "--args=a=1")
    host.run("grubby", "--update-kernel=ALL", "--args=b=1", "--no-etc-grub-update")
    assert 'GRUB_CMDLINE_LINUX="quiet"' in (host.read("/etc/default/grub") or "")
    assert host.run("grubby", "--info=DEFAULT").stdout.splitlines()[2] == 'args="ro quiet a=1 b=1"'
    assert host.run("grubby", "--update-kernel=/boot/vmlinuz-0", "--args=c").returncode == 1
    assert host.run("grubby", "--default-kernel").stdout == "/boot/vmlinuz-5.14.0-427.13.1.el9_4.x86_64\n"


def test_an_old_grubby_changes_the_entries_only(make: Maker) -> None:
    host = make("rocky", old_grubby=True)
    host.run("grubby", "--update-kernel=ALL", "--args=a=1")
    assert "a=1" in host.run("grubby", "--info=ALL").stdout
    assert "a=1" not in (host.read("/etc/default/grub") or "") + (host.read("/etc/kernel/cmdline") or "")


def test_grub2_mkconfig_does_not_touch_bls_entries_unless_told(make: Maker) -> None:
    host = make("rocky")
    host.write("/etc/default/grub", 'GRUB_CMDLINE_LINUX="a=1"\nGRUB_ENABLE_BLSCFG=true\n')
    host.run("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg")
    assert "a=1" not in host.run("grubby", "--info=ALL").stdout
    host.run("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg", "--update-bls-cmdline")
    assert "a=1" in host.run("grubby", "--info=ALL").stdout


def test_the_environment_block_is_1024_bytes(make: Maker) -> None:
    host = make("rocky")
    assert host.run("grub2-editenv", "-", "set", "kernelopts=" + "a" * 900).returncode == 0
    assert len(host.read("/boot/grub2/grubenv") or "") == 1024
    assert host.run("grub2-editenv", "-", "set", "kernelopts=" + "a" * 1000).returncode == 1
    assert "kernelopts=" + "a" * 900 in host.run("grub2-editenv", "-", "list").stdout


@pytest.mark.parametrize("profile", ["systemd-boot", "uki", "systemd-boot-grub"])
def test_kernel_install_takes_etc_kernel_cmdline(make: Maker, profile: str) -> None:
    host = make(profile)
    line = (host.read("/etc/kernel/cmdline") or "").strip()
    host.write("/etc/kernel/cmdline", line + " nohz_full=2-3 isolcpus=2-3\n")
    host.reboot()
    assert "isolcpus=2-3" not in cmdline(host.read("/proc/cmdline"))  # the file alone is not what boots
    kernel = "6.1.0-18-amd64"
    assert host.run("kernel-install", "add", kernel, f"/boot/vmlinuz-{kernel}").returncode == 0
    host.reboot()
    assert host.read("/sys/devices/system/cpu/isolated") == "2-3\n"
    assert host.read("/sys/devices/system/cpu/nohz_full") == "2-3\n"
    assert host.run("bootctl", "is-installed").returncode == 0
    assert host.run("kernel-install", "add", "0.0", "/boot/vmlinuz-0.0").returncode != 0


def test_update_grub_does_not_boot_a_machine_of_systemd_boot(make: Maker) -> None:
    host = make("systemd-boot-grub")
    host.write("/etc/default/grub.d/90-x.cfg", 'GRUB_CMDLINE_LINUX="iommu=pt"\n')
    assert host.run("update-grub").returncode == 0
    assert "iommu=pt" in (host.read("/boot/grub/grub.cfg") or "")
    host.reboot()
    assert "iommu=pt" not in cmdline(host.read("/proc/cmdline"))


def test_proxmox_boot_tool_refreshes_what_is_not_mounted(make: Maker) -> None:
    host = make("proxmox")
    host.write("/etc/kernel/cmdline", "root=ZFS=rpool/ROOT/pve-1 boot=zfs iommu=pt\n")
    assert host.run("sh", "-c", "ls -d /efi /boot/efi /boot/loader").returncode != 0
    host.reboot()
    assert "iommu=pt" not in cmdline(host.read("/proc/cmdline"))
    assert host.run("proxmox-boot-tool", "refresh").returncode == 0
    host.reboot()
    assert cmdline(host.read("/proc/cmdline"))[-2:] == ["boot=zfs", "iommu=pt"]


def test_mkinitcpio_makes_unified_images(make: Maker) -> None:
    host = make("uki")
    assert host.run("mkinitcpio", "-P").returncode == 127  # Debian has none
    standins.install(host.tree, ("mkinitcpio",))
    host.write("/etc/kernel/cmdline", "root=/dev/vda1 ro iommu=pt\n")
    assert host.run("mkinitcpio", "-P").returncode == 0
    host.reboot()
    assert host.read("/proc/cmdline") == "root=/dev/vda1 ro iommu=pt\n"


def test_the_firmware_shows_systemd_boot(make: Maker) -> None:
    host = make("uki")
    path = f"{host.tree}/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
    with open(path, "rb") as variable:
        assert variable.read()[4:].decode("utf-16-le").startswith("systemd-boot 252")


def test_rpm_ostree_kargs(make: Maker) -> None:
    host = make("ostree")
    host.run("rpm-ostree", "kargs", "--append-if-missing=iommu=pt", "--append-if-missing=quiet")
    assert host.run("rpm-ostree", "kargs").stdout.split().count("quiet") == 1
    host.run("rpm-ostree", "kargs", "--append=hugepagesz=1G", "--append=hugepages=2", "--delete-if-present=absent")
    assert host.run("rpm-ostree", "kargs", "--delete=absent").returncode == 1
    host.reboot()
    assert cmdline(host.read("/proc/cmdline"))[-3:] == ["iommu=pt", "hugepagesz=1G", "hugepages=2"]
    assert host.read("/run/ostree-booted") == ""
    assert host.run("rpm-ostree", "kargs", "--delete-if-present=iommu=pt").returncode == 0
    assert "iommu=pt" not in host.run("rpm-ostree", "kargs").stdout


def test_rpm_ostree_tracks_files_of_etc_that_are_there(make: Maker) -> None:
    host = make("ostree")
    command = ("rpm-ostree", "initramfs-etc")
    assert host.run(*command).stdout == "No tracked files.\n"
    assert host.run(*command, "--track=/usr/lib/x").stderr == "error: Path outside /etc forbidden: /usr/lib/x\n"
    missing = host.run(*command, "--track=/etc/modprobe.d/a.conf")
    assert (missing.returncode, missing.stderr) == (
        1,
        "error: fstatat(etc/modprobe.d/a.conf): No such file or directory\n",
    )
    host.write("/etc/modprobe.d/a.conf", "blacklist nouveau\n")
    assert host.run(*command, "--track", "/etc/modprobe.d/a.conf").returncode == 0
    assert host.run(*command, "--track=/etc/modprobe.d/a.conf", "--unchanged-exit-77").returncode == 77
    os.unlink(f"{host.tree}/etc/modprobe.d/a.conf")
    assert host.run(*command, "--force-sync").returncode == 1
    assert host.run(*command, "--untrack=/etc/modprobe.d/a.conf").returncode == 0
    assert host.run(*command).stdout == "No tracked files.\n"


def test_an_initramfs_holds_the_rules_of_the_day_it_was_made(make: Maker) -> None:
    host = make()
    host.write("/etc/modprobe.d/nvme.conf", "options nvme poll_queues=4\nblacklist overlay\n")
    host.reboot()
    assert (
        host.read("/sys/module/nvme/parameters/poll_queues") == "0\n"
    )  # loaded from an image that knows nothing of it
    assert host.run("update-initramfs", "-u", "-k", "all").returncode == 0
    assert "etc/modprobe.d/nvme.conf" in host.run("lsinitramfs", "/boot/initrd.img-6.1.0-18-amd64").stdout.splitlines()
    host.reboot()
    assert host.read("/sys/module/nvme/parameters/poll_queues") == "4\n"


def test_dracut_wants_force(make: Maker) -> None:
    host = make("rocky")
    assert host.run("dracut").returncode == 1
    host.write("/etc/modprobe.d/x.conf", "options loop max_loop=1\n")
    assert host.run("dracut", "-f", "--regenerate-all").returncode == 0
    assert "etc/modprobe.d/x.conf" in host.run("lsinitrd").stdout
