# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compiles what the image needs, in a tree of its own that holds a compiler and the headers of the image's kernel.

Nothing of the compiler comes into the image. The packages are unpacked, not installed: that takes seconds.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from .errors import LabError

SOURCES = Path(__file__).parent.parent / "gpu"
DRIVER = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm")
SLOTS = ("lab_gpus",)
PROPRIETARY, OPEN = "proprietary", "open"
TOOLS = (
    *("busybox-static", "coreutils", "dash", "findutils", "gcc", "grep", "kubernetes-client", "libc6-dev", "make"),
    *("mawk", "sed"),
)
# The links of a merged /usr, which a package's script would make.
MERGED = ("bin", "lib", "lib64", "sbin")


class Driver(NamedTuple):
    """One build of the driver's modules: the full version and "open" or "proprietary"."""

    version: str
    flavour: str


class Workshop:
    """A tree with a compiler, and what is made in it."""

    def __init__(self, tree: Path, kernel: str, suite: str, mirror: str | None) -> None:
        self.tree, self.kernel = tree, kernel
        packages = (f"linux-headers-{kernel}", *TOOLS)
        argv = ["mmdebstrap", "--mode=root", "--variant=extract", "--format=directory", "--quiet"]
        argv += [f"--include={','.join(packages)}", suite, str(tree), *([mirror] if mirror else [])]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
        if done.returncode != 0:
            raise LabError(f"mmdebstrap exited {done.returncode} for {', '.join(packages)}: see its output above")
        for name in MERGED:
            (tree / "usr" / name).mkdir(exist_ok=True)
            if not (tree / name).exists():
                (tree / name).symlink_to(f"usr/{name}")
        (tree / "usr/bin/awk").symlink_to("mawk")

    @property
    def busybox(self) -> Path:
        """A busybox that needs no library."""
        return self.tree / "usr/bin/busybox"

    @property
    def kubectl(self) -> Path:
        """Debian's build of the real one."""
        return self.tree / "usr/bin/kubectl"

    def modules(self, drivers: tuple[Driver, ...]) -> dict[Driver, dict[str, Path]]:
        """The modules of each driver by name; they are built side by side."""
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(drivers, pool.map(self._driver, drivers)))

    def slots(self) -> Path:
        """The module that puts GPUs on a PCI bus."""
        return self._build("slots", SLOTS, Driver("1", OPEN))[SLOTS[0]]

    def program(self, source: str) -> Path:
        """A program of programs/, linked with everything that it needs."""
        return self._compile(source, "-static")

    def library(self, source: str, soname: str) -> Path:
        """A shared library of programs/."""
        return self._compile(source, "-shared", "-nostdlib", f"-Wl,-soname,{soname}")

    def _compile(self, source: str, *flags: str) -> Path:
        result = self.tree / "tmp" / f"{source}.out"
        shutil.copy(SOURCES / "programs" / source, self.tree / "tmp" / source)
        self._run("gcc", "-O1", "-Wall", *flags, "-o", f"/tmp/{result.name}", f"/tmp/{source}")
        return result

    def _driver(self, driver: Driver) -> dict[str, Path]:
        return self._build(f"{driver.flavour}-{driver.version}", DRIVER, driver)

    def _build(self, name: str, modules: tuple[str, ...], driver: Driver) -> dict[str, Path]:
        folder = self.tree / "tmp" / name
        shutil.copytree(SOURCES / "kernel", folder)
        self._run(
            "make",
            "-s",
            "-C",
            f"/usr/src/linux-headers-{self.kernel}",
            f"M=/tmp/{name}",
            f"LAB_MODULES={' '.join(modules)}",
            f"LAB_VERSION={driver.version}",
            f"LAB_OPEN={int(driver.flavour == OPEN)}",
            "modules",
        )
        return {module: folder / f"{module}.ko" for module in modules}

    def _run(self, *argv: str) -> None:
        done = subprocess.run(
            ("chroot", str(self.tree), *argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"PATH": "/usr/sbin:/usr/bin", "LC_ALL": "C"},
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LabError(f"`{' '.join(argv[:3])} ...` exited {done.returncode} for the lab's image:\n{done.stdout}")
