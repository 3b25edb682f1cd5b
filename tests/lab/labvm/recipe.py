# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The recipe of the lab's images: data only, so that its hash names the image that it makes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

SUITE = "trixie"
USER = "operator"
HOSTNAME = "lab"

# The fixed address of QEMU's user network: nothing waits for DHCP.
ADDRESS = "10.0.2.15/24"

DISK_BYTES = 6 * 1024**3
PARTITION_START = 1024**2

# `nokaslr` keeps the kernel out of the gigabytes that a boot reservation is to find; `mitigations=off` and
# `no_timer_check` save time under emulation; `net.ifnames=0` lets one unit file name the interface.
KERNEL_ARGUMENTS = (
    "console=ttyS0 loglevel=6 nokaslr mitigations=off no_timer_check random.trust_cpu=on 8250.nr_uarts=1 net.ifnames=0"
)

PACKAGES = (
    "ca-certificates",
    "containerd",
    "dbus",
    "grub-pc",
    "initramfs-tools",
    "iproute2",
    "kmod",
    "linux-image-amd64",
    "openssh-server",
    "podman",
    "procps",
    "python3",
    "python3-apt",
    "python3-cryptography",
    "python3-yaml",
    "sudo",
    "systemd-sysv",
    "udev",
)

# Documentation and translations: a third of the files, none of which a test reads.
EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")

# The parts of an initramfs that this machine boots without; each costs seconds, under emulation, whenever one is made.
# Without udev there is nobody in it who knows a file system by its UUID: the kernel's root is named by its device.
ROOT_DEVICE = "/dev/vda1"
NOT_IN_INITRAMFS = (
    *(f"hooks/{name}" for name in ("dmsetup", "fsck", "keymap", "resume", "thermal", "udev")),
    *("scripts/init-bottom/udev", "scripts/init-top/keymap", "scripts/init-top/udev", "scripts/local-premount/resume"),
)

# Modules of devices that the machine has not: depmod, which each installation of a module runs, reads all there are.
NO_MODULES = ("sound", "net/wireless", "net/mac80211", "net/bluetooth")
NO_DRIVERS = (
    *("accessibility", "ata", "atm", "bluetooth", "comedi", "firewire", "hid", "hwmon", "iio", "infiniband", "input"),
    *("isdn", "leds", "media/common", "media/dvb-core", "media/dvb-frontends", "media/i2c", "media/pci", "media/radio"),
    *("media/tuners", "media/usb", "media/v4l2-core", "message", "mfd", "mmc", "mtd", "net/can", "net/ethernet"),
    *("net/phy", "net/usb", "net/wireless", "nfc", "power", "scsi", "staging", "thermal", "usb", "w1", "watchdog"),
    *("gpu/drm/amd", "gpu/drm/i915", "gpu/drm/radeon", "gpu/drm/xe"),
)

# An initramfs with what this machine's disk needs and nothing else.
INITRAMFS_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "ext4")

# Units that cost time at boot, or that change the disk or the clock at a moment of their own choice.
MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "dev-mqueue.mount",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "grub-common.service",
    "ldconfig.service",
    "modprobe@configfs.service",
    "modprobe@dm_mod.service",
    "modprobe@drm.service",
    "modprobe@efi_pstore.service",
    "modprobe@fuse.service",
    "modprobe@loop.service",
    "podman-auto-update.timer",
    "podman-clean-transient.service",
    "podman-restart.service",
    "proc-sys-fs-binfmt_misc.automount",
    "serial-getty@ttyS0.service",
    "sshd-unix-local.socket",
    "sshd-vsock.socket",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-binfmt.service",
    "systemd-firstboot.service",
    "systemd-hwdb-update.service",
    "systemd-journal-catalog-update.service",
    "systemd-networkd-wait-online.service",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-pcrmachine.service",
    "systemd-pcrphase-sysinit.service",
    "systemd-pcrphase.service",
    "systemd-pstore.service",
    "systemd-random-seed.service",
    "systemd-sysusers.service",
    "systemd-timesyncd.service",
    "systemd-tpm2-setup-early.service",
    "systemd-tpm2-setup.service",
    "systemd-udev-load-credentials.service",
    "systemd-update-done.service",
    "systemd-update-utmp.service",
)

# Units that a test starts when it wants them.
DISABLED = ("containerd.service", "podman.socket")

# Where the image has what only some tests take: a job that opens devices, a small root for containers, repositories of
# NVIDIA's software and of Kubernetes. No source names them before a test does, nor any other: the guest reaches nothing
# outside.
STORE = "/srv/lab"
REPOSITORIES = {"nvidia": "NVIDIA", "debian": "Debian"}

NETWORK_UNIT = f"""\
[Unit]
Description=The lab's one fixed address
BindsTo=sys-subsystem-net-devices-eth0.device
After=sys-subsystem-net-devices-eth0.device
Before=network.target
Wants=network.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/ip address replace {ADDRESS} dev eth0
ExecStart=/usr/sbin/ip link set eth0 up

[Install]
WantedBy=multi-user.target
"""

GRUB_DEFAULTS = f"""\
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT=""
GRUB_CMDLINE_LINUX="{KERNEL_ARGUMENTS}"
GRUB_TERMINAL=serial
GRUB_SERIAL_COMMAND="serial --unit=0 --speed=115200"
GRUB_DISABLE_RECOVERY=true
GRUB_DISABLE_OS_PROBER=true
GRUB_DISABLE_LINUX_UUID=true
"""

FILES = {
    "/etc/hostname": f"{HOSTNAME}\n",
    "/etc/hosts": f"127.0.0.1 localhost\n127.0.1.1 {HOSTNAME}\n::1 localhost ip6-localhost ip6-loopback\n",
    "/etc/systemd/system/lab-network.service": NETWORK_UNIT,
    "/etc/default/grub": GRUB_DEFAULTS,
    "/etc/ssh/sshd_config.d/10-lab.conf": (
        "UseDNS no\nPasswordAuthentication no\nPrintLastLog no\nPrintMotd no\nMaxStartups 100\nMaxSessions 100\n"
    ),
    f"/etc/sudoers.d/{USER}": f"{USER} ALL=(ALL:ALL) NOPASSWD: ALL\n",
}


class Variant(NamedTuple):
    """One image: the base and what its layer adds to it."""

    name: str
    packages: tuple[str, ...]


BASE = "base"
VARIANTS = {BASE: Variant(BASE, PACKAGES)}


def digest(variant: Variant) -> str:
    """Twelve hex digits that change with anything that shapes the image, the code of its builder included."""
    here = Path(__file__).parent
    state = hashlib.sha256()
    state.update(repr(variant).encode())
    names = ("recipe", "image", "grub", "gpus", "workshop", "archive", "nvidia", "kubernetes")
    sources = (path for path in (here.parent / "gpu").rglob("*") if path.is_file())
    for path in (*(here / f"{name}.py" for name in names), *sorted(sources)):
        state.update(path.read_bytes())
    return state.hexdigest()[:12]


def cache() -> Path:
    """The machine-wide directory that keeps images and running machines."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "bcd-lab"
