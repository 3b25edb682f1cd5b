# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initramfs: what it carries, and its rebuild by the distribution's own tool."""

from __future__ import annotations

from typing import NamedTuple

from ..core.plan import Past
from ..core.step import Step, run

DEBT = "initramfs"


class Initramfs(NamedTuple):
    """How this host makes its initramfs: the tool ("" when there is none) and the running kernel's release."""

    tool: str
    release: str


# Every installed kernel is rebuilt: the next boot may take another one than the running.
REBUILD = {
    "update-initramfs": ("update-initramfs", "-u", "-k", "all"),
    "dracut": ("dracut", "--regenerate-all", "--force"),
    "rpm-ostree": ("rpm-ostree", "initramfs-etc", "--force-sync"),
}


def rebuild(now: Initramfs, tracked: str) -> Step | None:
    """The step that rebuilds it and settles the debt; None where no tool is known. `tracked`: our file that goes in."""
    if now.tool not in REBUILD:
        return None
    argv = REBUILD[now.tool] + ((f"--track={tracked}",) if now.tool == "rpm-ostree" else ())
    return run(argv, f"rebuild the initramfs with {now.tool}", lane=DEBT, pays=(DEBT,))


def carries(now: Initramfs, modules: tuple[str, ...], past: Past) -> bool:
    """Whether one of the modules is in the running kernel's initramfs; true when that cannot be read."""
    if not modules:
        return False
    if now.tool == "update-initramfs":
        listing = past.ask(("lsinitramfs", f"/boot/initrd.img-{now.release}"))
    elif now.tool == "dracut":
        listing = past.ask(("lsinitrd", "--kver", now.release))
    else:
        return True
    if listing.rc != 0:
        return True
    wanted = {module.replace("-", "_") for module in modules}
    files = [line.split()[-1].rpartition("/")[2] for line in listing.out.splitlines() if line.strip()]
    return any(name.partition(".ko")[0].replace("-", "_") in wanted for name in files if ".ko" in name)
