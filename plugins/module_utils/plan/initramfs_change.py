# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initramfs where a file of ours reaches into it: what it carries, and its rebuild by this host's own tool."""

from __future__ import annotations

from ..core.errors import SEEN_AS_ROOT, NotKnownYet, StepFailed
from ..core.plan import Past
from ..core.step import Step, run
from .initramfs import DEBT, TOOLS, Initramfs

# Every installed kernel is rebuilt: the next boot may take another one than the running.
REBUILD = {
    "update-initramfs": ("update-initramfs", "-u", "-k", "all"),
    "dracut": ("dracut", "--regenerate-all", "--force"),
    "rpm-ostree": ("rpm-ostree", "initramfs-etc"),
}


def rebuild(now: Initramfs, path: str, kept: bool) -> Step:
    """The step that rebuilds it by a tool that is known, and settles the debt.

    `path`: our file that goes in, or out where it is not `kept`: rpm-ostree is told, and looks at each that it tracks.
    """
    argv = REBUILD[now.tool]
    if now.tool == "rpm-ostree":
        argv += ("--force-sync", f"--track={path}") if kept else (f"--untrack={path}",)
    return run(argv, f"rebuild the initramfs with {now.tool}", lane=DEBT, pays=(DEBT,))


def missing(path: str) -> str:
    """The note for a host where no tool is known."""
    return (
        f"the initramfs is left as it is, since none of {', '.join(sorted(TOOLS))} is there: where this host boots "
        f"with one, rebuild it by hand after each change of {path}"
    )


def carries(now: Initramfs, modules: tuple[str, ...], past: Past) -> bool:
    """Whether one of the modules is in the running kernel's initramfs; true when that cannot be read.

    Raises NotKnownYet where another account than root could not read it.
    """
    if not modules:
        return False
    if now.tool == "update-initramfs":
        listing = past.ask(("lsinitramfs", f"/boot/initrd.img-{now.release}"))
    elif now.tool == "dracut":
        listing = past.ask(("lsinitrd", "--kver", now.release))
    else:
        return True
    try:
        readable = listing.rc == 0
    except StepFailed:  # it did not end
        readable = False
    if not readable and not now.root:
        raise NotKnownYet(SEEN_AS_ROOT)
    if not readable:
        return True
    wanted = {module.replace("-", "_") for module in modules}
    files = [line.split()[-1].rpartition("/")[2] for line in listing.out.splitlines() if line.strip()]
    return any(name.partition(".ko")[0].replace("-", "_") in wanted for name in files if ".ko" in name)
