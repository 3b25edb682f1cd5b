# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which boot loader a machine really boots by, and what a look at it finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..core.plan import Answer
from ..core.step import File, Step, fail, remove, write
from .cmdline import Group, edited, lacking

GRUB, GRUBBY, SYSTEMD_BOOT, UKI, OSTREE, NONE = "grub", "grubby", "systemd-boot", "uki", "ostree", "none"


DROP_INS = "/etc/default/grub.d"


def drop_in(unit: str) -> str:
    """The unit's drop-in for update-grub; it sorts after what cloud images bring (50-cloudimg-settings.cfg)."""
    return f"{DROP_INS}/90-bcd-{unit}.cfg"


class Loader(NamedTuple):
    """The loader, and the tool that changes its arguments here; "" when that tool is missing."""

    kind: str
    tool: str


class Evidence(NamedTuple):
    """What tells one loader from another.

    `loader_info` and `stub_info` are what the loader and a unified image's stub told the firmware's variables;
    `boot_image` says that the running command line begins as GRUB begins one; `grub_cfg` that GRUB's menu has entries,
    `bls` that it takes them from /boot/loader/entries; `entries` that there are loader entries with options;
    `images` that there are unified images; `family` is "rhel", "debian", "suse" or "" by os-release.
    """

    ostree: bool = False
    loader_info: str = ""
    stub_info: str = ""
    boot_image: bool = False
    grub_cfg: bool = False
    bls: bool = False
    entries: bool = False
    images: bool = False
    kernel_cmdline: bool = False
    proxmox: bool = False
    uki_layout: bool = False
    family: str = ""
    programs: frozenset[str] = frozenset()


PROGRAMS = (
    "update-grub",
    "grubby",
    "grub2-mkconfig",
    "grub-mkconfig",
    "rpm-ostree",
    "kernel-install",
    "mkinitcpio",
    "dracut",
    "proxmox-boot-tool",
)


def detect(seen: Evidence) -> Loader:
    """The loader by the strongest evidence: what booted the machine said so, then what its disk holds, then tools."""
    if seen.ostree:
        return Loader(OSTREE, _first(seen, "rpm-ostree"))
    if seen.stub_info:
        return _unified(seen)
    if seen.loader_info.startswith("systemd-boot"):
        return _systemd_boot(seen)
    if seen.loader_info.upper().startswith("GRUB") or seen.boot_image:
        return _grub(seen)
    return _by_disk(seen)


def _by_disk(seen: Evidence) -> Loader:
    """Without a word from the firmware or at the beginning of the command line, a menu of GRUB's may be a left-over."""
    if seen.entries and not seen.bls and (seen.kernel_cmdline or not seen.grub_cfg):
        return _systemd_boot(seen)
    if seen.grub_cfg or seen.bls:
        return _grub(seen)
    if seen.images:
        return _unified(seen)
    if seen.kernel_cmdline and not seen.programs & {"update-grub", "grubby"}:
        return _systemd_boot(seen)
    guess = _grub(seen)
    return guess if guess.tool else Loader(NONE, "")


def _grub(seen: Evidence) -> Loader:
    """grubby where entries are files of their own, update-grub where drop-ins are read, mkconfig elsewhere."""
    reads_drop_ins = "update-grub" in seen.programs and not seen.bls and seen.family not in ("rhel", "suse")
    if "grubby" in seen.programs and not reads_drop_ins:
        return Loader(GRUBBY, "grubby")
    if reads_drop_ins:
        return Loader(GRUB, "update-grub")
    return Loader(GRUB, _first(seen, "grub2-mkconfig", "grub-mkconfig"))


def _systemd_boot(seen: Evidence) -> Loader:
    """Entries are files that we edit; Proxmox keeps them on partitions that it mounts only while it refreshes them."""
    if seen.proxmox:
        return Loader(SYSTEMD_BOOT, _first(seen, "proxmox-boot-tool"))
    if seen.images and not seen.entries:
        return _unified(seen)
    return Loader(SYSTEMD_BOOT, "entries" if seen.entries else "")


def _unified(seen: Evidence) -> Loader:
    if seen.uki_layout and "kernel-install" in seen.programs:
        return Loader(UKI, "kernel-install")
    return Loader(UKI, _first(seen, "mkinitcpio", "dracut", "kernel-install"))


def _first(seen: Evidence, *programs: str) -> str:
    return next((program for program in programs if program in seen.programs), "")


class Boot(NamedTuple):
    """Everything that the boot arguments of one unit need to know.

    `files` holds what arguments are written in, by path (None: absent); `made`, by path, texts that a tool makes of
    them; `answers`, by command line, what a tool says of its entries; `kernels` maps a release to its image;
    `beginning` is the text with which another unit made a file that was absent.
    """

    unit: str
    loader: Loader
    running: str = ""
    record: File | None = None
    files: Mapping[str, File | None] = {}
    made: Mapping[str, str] = {}
    answers: Mapping[str, Answer] = {}
    kernels: Mapping[str, str] = {}
    machine_id: str = ""
    beginning: str | None = None


class Change(NamedTuple):
    """What a loader's file is asked for: groups that must be there, and groups of ours that must not."""

    unit: str
    wanted: tuple[Group, ...]
    stale: tuple[Group, ...]
    created: str | None  # the text with which we once made a file that was absent
    owed: frozenset[str]
    owned: tuple[Group, ...] = ()  # what is ours by the record

    def foreign(self, lines: Iterable[str]) -> tuple[Group, ...]:
        """The wanted groups that every line has and that are not ours: they were there before us, and stay after us."""
        had = tuple(lines)
        mine = self.owned
        return tuple(
            group
            for group in self.wanted
            if had and group not in mine and all(not lacking(line, (group,)) for line in had)
        )


class Work(NamedTuple):
    """A loader's answer: the steps that are due, groups that others have there, and how a new file begins."""

    steps: tuple[Step, ...]
    foreign: tuple[Group, ...] = ()
    created: str | None = None
    notes: tuple[str, ...] = ()


def edit(
    path: str, now: File | None, text: str, created: str | None = None, owes: tuple[str, ...] = ()
) -> tuple[Step, ...]:
    """Rewrite a file that is not ours alone, with its own mode; one that we made goes when no more is left of it."""
    if now is not None and not now.regular:
        return (fail(f"write {path}", f"{path} is not a regular file: replace it by one, and run again"),)
    if now is not None and created is not None and text == created:
        return (remove(path, f"remove {path}, which held our arguments", owes=owes),)
    if text == (now.text if now else None):
        return ()
    return (write(path, text, f"write {path}", mode=now.mode if now else 0o644, owes=owes),)


def edited_lines(lines: tuple[str, ...], drop: tuple[Group, ...], add: tuple[Group, ...]) -> tuple[str, ...]:
    """One command line that stands on several: groups go from wherever they are, and are added to the last."""
    left = [edited(line, drop, ()) for line in lines]
    missing = lacking(" ".join(left), add)
    if missing and left:
        left[-1] = edited(left[-1], (), missing)
    return tuple(left)
