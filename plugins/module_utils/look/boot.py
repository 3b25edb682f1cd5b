# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boot loader: which one it is, and what its arguments are written in."""

from __future__ import annotations

import re

from ..core.errors import SEEN_AS_ROOT, NotKnownYet, StepFailed
from ..core.host import Host
from ..core.plan import Answer
from ..core.step import File
from ..core.unknown import later
from ..plan.bootargs import RECORDS, parse_record, record_path
from ..plan.loader import (
    DROP_INS,
    GRUB,
    GRUBBY,
    OSTREE,
    PROGRAMS,
    SYSTEMD_BOOT,
    UKI,
    Boot,
    Evidence,
    Loader,
    detect,
    drop_in,
)

EFIVARS = "/sys/firmware/efi/efivars"
VENDOR = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
ROOTS = ("/efi", "/boot", "/boot/efi")
MENUS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
DEFAULT_GRUB = "/etc/default/grub"
# Beside the entries: the variables that they name, the arguments of future ones, and what is mounted for them.
GRUBBY_READS = (
    "/boot",
    "/boot/grub2/grubenv",
    "/boot/grub2/grub.cfg",
    "/etc/grub2.cfg",
    "/etc/grub2-efi.cfg",
    "/etc/default/grub",
    "/etc/kernel/cmdline",
    "/etc/machine-id",
)
KERNEL_CMDLINE, VENDOR_CMDLINE = "/etc/kernel/cmdline", "/usr/lib/kernel/cmdline"


def boot(host: Host, unit: str) -> Boot:
    """All that the boot arguments of one unit need; unknown as a whole where only root can look, for a lane to say."""
    return later(_boot, host, unit)


def loader(host: Host) -> Loader:
    """The loader that this machine really boots by."""
    return detect(evidence(host))


def evidence(host: Host) -> Evidence:
    """What tells one loader from another."""
    running = running_line(host)
    menu = _menu(host)
    return Evidence(
        ostree=host.exists("/run/ostree-booted"),
        loader_info=parse_variable(host.read(f"{EFIVARS}/LoaderInfo-{VENDOR}")),
        stub_info=parse_variable(host.read(f"{EFIVARS}/StubInfo-{VENDOR}")),
        boot_image=running.startswith("BOOT_IMAGE="),
        grub_cfg=bool(re.search(r"^\s*(?:menuentry|linux|blscfg)\b", menu, re.MULTILINE)),
        bls=bool(re.search(r"^\s*blscfg\b", menu, re.MULTILINE)),
        entries=bool(entries(host)),
        images=any(name.endswith(".efi") for root in _roots(host) for name in host.names(f"{root}/EFI/Linux")),
        kernel_cmdline=host.exists(KERNEL_CMDLINE),
        proxmox=host.exists("/etc/kernel/proxmox-boot-uuids"),
        uki_layout=_uki_layout(host),
        family=parse_family(host.read("/etc/os-release") or host.read("/usr/lib/os-release") or ""),
        programs=frozenset(program for program in PROGRAMS if host.which(program)),
    )


def running_line(host: Host) -> str:
    """The running kernel's command line."""
    return (host.read("/proc/cmdline") or "").strip()


def parse_variable(text: str | None) -> str:
    """A firmware variable as efivarfs shows it: four bytes of attributes, then UTF-16 up to a zero."""
    if text is None:
        return ""
    raw = text.encode("utf-8", "surrogateescape")[4:]
    return raw.decode("utf-16-le", "replace").partition("\0")[0]


def parse_family(text: str) -> str:
    """os-release's family: "rhel", "debian", "suse" or ""."""
    found = dict(re.findall(r"""^(ID|ID_LIKE)=["']?([^"'\n]*)""", text, re.MULTILINE))
    names = set(f"{found.get('ID', '')} {found.get('ID_LIKE', '')}".lower().split())
    if names & {"rhel", "fedora", "centos"}:
        return "rhel"
    if names & {"debian", "ubuntu"}:
        return "debian"
    return "suse" if any(name.startswith(("suse", "opensuse", "sles")) for name in names) else ""


def entries(host: Host) -> dict[str, File]:
    """Loader entries that boot a Linux of this system, by path."""
    machine = machine_id(host)
    found: dict[str, File] = {}
    for root in _roots(host):
        folder = f"{root}/loader/entries"
        for name in host.names(folder):
            file = host.file(f"{folder}/{name}") if name.endswith(".conf") else None
            if (
                file
                and file.regular
                and re.search(r"^linux\s", file.text, re.MULTILINE)
                and _is_ours(file.text, machine)
            ):
                found[f"{folder}/{name}"] = file
    return found


def _is_ours(entry: str, machine: str) -> bool:
    named = re.search(r"^machine-id\s+(\S+)", entry, re.MULTILINE)
    options = re.search(r"^options\s", entry, re.MULTILINE)
    return options is not None and (named is None or named.group(1) == machine)


def machine_id(host: Host) -> str:
    """/etc/machine-id."""
    return (host.read("/etc/machine-id") or "").strip()


def _roots(host: Host) -> tuple[str, ...]:
    """Where boot partitions are mounted; one that is a link is another name of one that is not."""
    return tuple(root for root in ROOTS if host.link(root) is None)


def _menu(host: Host) -> str:
    return "".join(host.read(path) or "" for path in MENUS)


def _uki_layout(host: Host) -> bool:
    for path in ("/etc/kernel/install.conf", "/run/kernel/install.conf", "/usr/lib/kernel/install.conf"):
        text = host.read(path)
        if text is not None:
            return bool(re.search(r"^\s*layout\s*=\s*uki\b", text, re.MULTILINE))
    return False


def _boot(host: Host, unit: str) -> Boot:
    found = loader(host)
    base = Boot(
        unit,
        found,
        running=running_line(host),
        record=host.file(record_path(unit)),
        machine_id=machine_id(host),
        beginning=_beginning(host, unit),
    )
    own = drop_in(unit)
    if found.kind == GRUB:
        drop_ins = [f"{DROP_INS}/{name}" for name in host.names(DROP_INS) if name.endswith(".cfg")]
        menu = _generated(host, found.tool)
        return base._replace(files=_files(host, (DEFAULT_GRUB, own, *drop_ins)), made={menu: host.read(menu) or ""})
    if found.kind == GRUBBY:
        return base._replace(
            files=_files(host, (DEFAULT_GRUB, KERNEL_CMDLINE, own)),
            answers=_ask(host, "grubby --info=ALL", _grubby_reads(host)),
        )
    if found.kind == OSTREE and found.tool:
        return base._replace(files=_files(host, (own,)), answers=_ask(host, "rpm-ostree kargs"))
    if found.kind in (SYSTEMD_BOOT, UKI):
        files: dict[str, File | None] = dict(_files(host, (KERNEL_CMDLINE, VENDOR_CMDLINE, own)))
        if found.tool == "entries":
            files.update(entries(host))
        answers = {} if found.kind == SYSTEMD_BOOT else _ask(host, "bootctl list --json=short")
        return base._replace(files=files, answers=answers, kernels=kernels(host) if found.kind == UKI else {})
    return base


def _beginning(host: Host, unit: str) -> str | None:
    """How a file began that another unit made: the last of the units to leave removes it."""
    for name in host.names(RECORDS):
        if name != unit:
            path = record_path(name)
            try:
                record = parse_record(path, host.read(path))
            except StepFailed:  # the unit that it belongs to says so
                continue
            if record and record.created is not None:
                return record.created
    return None


def _generated(host: Host, tool: str) -> str:
    """The menu that the tool writes."""
    first, second = MENUS if tool != "grub2-mkconfig" else tuple(reversed(MENUS))
    return second if tool == "update-grub" and not host.exists(first) and host.exists(second) else first


def _files(host: Host, paths: tuple[str, ...]) -> dict[str, File | None]:
    return {path: host.file(path) for path in paths}


def _ask(host: Host, line: str, reads: tuple[str, ...] = ()) -> dict[str, Answer]:
    """A tool's list of entries; it may need root to read them. `reads`: all that it makes the list of, if known."""
    argv = tuple(line.split())
    said = host.follows(argv, reads) if reads else host.ask(argv)
    if said.rc not in (0, 127) and host.uid() != 0:
        raise NotKnownYet(SEEN_AS_ROOT)
    return {line: said}


def _grubby_reads(host: Host) -> tuple[str, ...]:
    """What grubby makes its list of where entries are files of their own; () where they are not.

    It is a script over these files then, which starts many programs.
    """
    folder = "/boot/loader/entries"
    found = host.names(folder)
    if not found:
        return ()
    program = host.which("grubby") or ""
    return (program, folder, *(f"{folder}/{name}" for name in found), *GRUBBY_READS)


def kernels(host: Host) -> dict[str, str]:
    """Installed kernels: release to image, where kernel packages put them."""
    found = {}
    for release in host.names("/lib/modules"):
        for image in (f"/lib/modules/{release}/vmlinuz", f"/boot/vmlinuz-{release}"):
            if host.exists(image):
                found[release] = image
                break
    return found
