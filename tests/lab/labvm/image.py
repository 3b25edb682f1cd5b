# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds the disk of an image: Debian's packages by mmdebstrap, a file system by `mke2fs -d`, GRUB by our own hand.

Needs root, no loop device, no mount of a partition. What a directory of images/ holds when it is complete:
disk.img, id_root, id_operator, known_hosts, vmlinuz; `ready.*` is added by the first boot (ready.py).
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

from . import gpus, grub, recipe
from .errors import LabError, LabUnavailable

HOST_KEY_ALIAS = "bcd-lab"
USERS = ("root", recipe.USER)

# program -> Debian package
BUILD_PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "chroot": "coreutils",
    "dpkg-deb": "dpkg",
    "ssh-keygen": "openssh-client",
    "gpg": "gnupg",
    "openssl": "openssl",
}
RUN_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "ssh": "openssh-client",
    "setpriv": "util-linux",
}
SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))


def missing(programs: dict[str, str]) -> tuple[str, ...]:
    """The Debian packages of those programs that this machine does not have."""
    return tuple(
        sorted({package for program, package in programs.items() if shutil.which(program, path=SYSTEM_PATH) is None})
    )


def directory(variant: recipe.Variant) -> Path:
    """Where this recipe's image is, or will be."""
    return recipe.cache() / "images" / f"{variant.name}-{recipe.digest(variant)}"


def built(variant: recipe.Variant) -> bool:
    return (directory(variant) / "disk.img").exists()


def unavailable(variant: recipe.Variant) -> str:
    """Why this machine cannot run the lab now, in one sentence; empty when it can."""
    programs = dict(RUN_PROGRAMS)
    if not built(variant):
        programs.update(BUILD_PROGRAMS)
    absent = missing(programs)
    if absent:
        return (
            f"the lab needs the packages {', '.join(absent)}: run `python3 tests/lab/lab.py prerequisites` "
            "as root, or install them by hand"
        )
    if not built(variant) and os.geteuid() != 0:
        return (
            f"the lab's image is not in {directory(variant)} and only root can build it: "
            "run `python3 tests/lab/lab.py build` as root"
        )
    return ""


def build(variant: recipe.Variant) -> Path:
    """Makes the image unless it is there; returns its directory. The caller holds the cache's lock."""
    target = directory(variant)
    if built(variant):
        return target
    reason = unavailable(variant)
    if reason:
        raise LabUnavailable(reason)
    work = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        _build_in(variant, work)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _build_in(variant: recipe.Variant, work: Path) -> None:
    root = work / "root"
    _bootstrap(variant, root)
    kernel = _kernel(root)
    gpus.stock(root, kernel, work / "workshop")
    root_uuid = str(uuid.uuid4())
    _configure(root, root_uuid)
    _keys(root, work)
    (root / "boot/grub").mkdir(parents=True, exist_ok=True)
    (root / "boot/grub/grub.cfg").write_text(grub.first_menu(kernel, recipe.ROOT_DEVICE, recipe.KERNEL_ARGUMENTS))
    grub.install_modules(root)
    core = grub.core_image(root)
    boot = (root / "usr/lib/grub" / grub.PLATFORM / "boot.img").read_bytes()
    shutil.copy(root / "boot" / f"vmlinuz-{kernel}", work / "vmlinuz")
    disk = work / "disk.img"
    size = recipe.DISK_BYTES - recipe.PARTITION_START
    with disk.open("wb") as stream:
        stream.truncate(recipe.DISK_BYTES)
    _run(
        "mke2fs",
        "-q",
        "-F",
        "-t",
        "ext4",
        "-U",
        root_uuid,
        "-L",
        "root",
        "-m",
        "0",
        "-E",
        f"offset={recipe.PARTITION_START},lazy_itable_init=0",
        "-d",
        str(root),
        str(disk),
        f"{size // 1024}k",
    )
    grub.write_loader(disk, boot, core, recipe.PARTITION_START, size)
    shutil.rmtree(root)


def _bootstrap(variant: recipe.Variant, root: Path) -> None:
    """Installs the packages. The initramfs is configured first, so that it is made once."""
    wanted = "\\n".join(recipe.INITRAMFS_MODULES)
    hook = (
        'mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d" && '
        'echo MODULES=list >"$1/etc/initramfs-tools/conf.d/lab" && '
        f'printf "{wanted}\\n" >"$1/usr/share/initramfs-tools/modules.d/lab"'
    )
    argv = [
        "mmdebstrap",
        "--mode=root",
        "--variant=apt",
        "--format=directory",
        "--quiet",
        '--aptopt=Acquire::Languages "none"',
        "--dpkgopt=force-unsafe-io",
        f"--essential-hook={hook}",
    ]
    modules = (*recipe.NO_MODULES, *(f"drivers/{name}" for name in recipe.NO_DRIVERS))
    excluded = (
        *recipe.EXCLUDED,
        *(f"/usr/lib/modules/*/kernel/{name}/*" for name in modules),
        *(f"/usr/share/initramfs-tools/{name}" for name in recipe.NOT_IN_INITRAMFS),
    )
    argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in excluded]
    argv += [f"--include={','.join(variant.packages)}", recipe.SUITE, str(root)]
    mirror = os.environ.get("BCD_LAB_MIRROR")
    _run(*argv, *([mirror] if mirror else []))


def _kernel(root: Path) -> str:
    kernels = sorted(path.name.partition("-")[2] for path in (root / "boot").glob("vmlinuz-*"))
    if len(kernels) != 1:
        raise LabError(
            f"the lab's tree should hold one kernel and holds {len(kernels)} ({', '.join(kernels)}): "
            "check the package list in labvm/recipe.py"
        )
    return kernels[0]


def _configure(root: Path, root_uuid: str) -> None:
    for name, text in recipe.FILES.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
    (root / "etc/sudoers.d" / recipe.USER).chmod(0o440)
    (root / "etc/fstab").write_text(f"UUID={root_uuid} / ext4 defaults 0 0\n")
    # A machine with an id is past its first boot: systemd neither asks nor presets anything.
    (root / "etc/machine-id").write_text(f"{secrets.token_hex(16)}\n")
    _run("chroot", str(root), "useradd", "--create-home", "--gid", "users", "--shell", "/bin/bash", recipe.USER)
    _run("chroot", str(root), "systemctl", "enable", "--quiet", "lab-network.service", "ssh.service")
    _run("chroot", str(root), "systemctl", "disable", "--quiet", *recipe.DISABLED)
    _run("chroot", str(root), "systemctl", "mask", "--quiet", *recipe.MASKED)


def _keys(root: Path, work: Path) -> None:
    """A key pair for each user, and the guest's host key as a known one."""
    for user in USERS:
        key = work / f"id_{user}"
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"{user}@{recipe.HOSTNAME}", "-f", str(key))
        home = root / ("root" if user == "root" else f"home/{user}")
        folder = home / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(f"{key}.pub", folder / "authorized_keys")
        name = f"/{folder.relative_to(root)}"
        _run("chroot", str(root), "chown", "-R", f"{user}:", name)
        _run("chroot", str(root), "chmod", "-R", "go-rwx", name)
    kind, public = (root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    (work / "known_hosts").write_text(f"{HOST_KEY_ALIAS} {kind} {public}\n")


def _run(*argv: str) -> None:
    """A command of the build: its words go to our stderr, and its failure is ours."""
    environment = dict(os.environ, PATH=SYSTEM_PATH, LC_ALL="C", DEBIAN_FRONTEND="noninteractive")
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    if done.returncode != 0:
        raise LabError(
            f"`{' '.join(argv[:3])} ...` exited {done.returncode} while the lab's image was built: see its output above"
        )
