# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the image has for the tests of the GPU units and of k8s-join; they are about it, all others pass it by."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from . import archive, kubernetes, nvidia, recipe
from .errors import LabError
from .workshop import Workshop

# Shows what a container was given; `sh` and the rest come from busybox.
APPLETS = ("cat", "env", "ls", "sh", "sleep")


def stock(root: Path, kernel: str, work: Path) -> None:
    """Puts the stand-ins into the image's tree: the bus with GPUs as a module, the rest in the store.

    work: a directory that does not exist yet, for a compiler.
    """
    workshop = Workshop(work, kernel, recipe.SUITE, os.environ.get("BCD_LAB_MIRROR"))
    place = root / "usr/lib/modules" / kernel / "extra"
    place.mkdir()
    shutil.copy(workshop.slots(), place)
    depmod = subprocess.run(
        ("chroot", str(root), "depmod", kernel), stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False
    )
    if depmod.returncode != 0:
        raise LabError(f"depmod exited {depmod.returncode} in the lab's tree: see its output above")
    store = root / recipe.STORE.lstrip("/")
    store.mkdir(parents=True)
    parts = nvidia.Parts(
        workshop.modules(nvidia.DRIVERS),
        workshop.program("client.c"),
        workshop.library("library.c", nvidia.SONAME),
        kernel,
    )
    shutil.copy(parts.client, store / "job")
    _container_root(workshop.busybox, store / "root.tar")
    packages = {"nvidia": nvidia.nvidias(parts), "debian": nvidia.debians(parts)}
    for name, origin in recipe.REPOSITORIES.items():
        archive.publish(packages[name], store / name, origin, work / "tmp" / f"packages-{name}")
    kubernetes.stock(root, workshop.kubectl, work / "tmp" / "kubernetes")
    (root / "etc/apt/sources.list").unlink(missing_ok=True)
    shutil.rmtree(work)


def _container_root(busybox: Path, target: Path) -> None:
    """A root file system for containers, with nothing but a busybox."""
    with tarfile.open(target, "w") as out:
        out.add(busybox, "bin/busybox")
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            out.addfile(link)
        for folder in ("dev", "etc", "proc", "run", "sys", "tmp", "usr/bin"):
            place = tarfile.TarInfo(folder)
            place.type, place.mode = tarfile.DIRTYPE, 0o755
            out.addfile(place)
