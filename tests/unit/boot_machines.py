# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts in memory that boot, each by another loader, whose tools behave as the real ones do.

`next_line` is what the loader would hand to the kernel; `reboot` makes it the running one, with the CPUs isolated that
it names. Tools are written from their manuals, not from what our planners expect.
"""

from __future__ import annotations

import json
import re
import shlex

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.unit.fake_host import FakeHost

LINUX = "root=UUID=5b0c ro"
SECOND, FIRST = "6.12.9", "6.12.1"
MACHINE = "0123456789abcdef0123456789abcdef"
CLOUD = 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0"\n'
DEFAULT_GRUB = 'GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="quiet  dyndbg=\\"file a +p\\""\n# end\n'
VARIABLE = "/sys/firmware/efi/efivars/{}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
LOADERS = ("grub", "suse", "grubby", "systemd-boot", "uki", "ostree")


def firmware(text: str) -> str:
    """A variable as Host.read gives it."""
    raw = b"\x06\x00\x00\x00" + (text + "\0").encode("utf-16-le")
    return raw.decode("utf-8", "surrogateescape")


def machine(loader: str) -> FakeHost:
    """A booted host of eight CPUs."""
    host = FakeHost({"/etc/machine-id": MACHINE + "\n", "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\n"})
    for release in (FIRST, SECOND):
        host.put(f"/boot/vmlinuz-{release}", "image")
        host.put(f"/lib/modules/{release}/modules.dep", "")
    for name in ("present", "online", "possible"):
        host.put(f"/sys/devices/system/cpu/{name}", "0-7\n")
    {
        "grub": _debian,
        "suse": _suse,
        "grubby": _rhel,
        "systemd-boot": _systemd_boot,
        "uki": _unified,
        "ostree": _ostree,
    }[loader](host)
    host.put("/proc/cmdline", next_line(host) + "\n")
    show_cpus(host)
    return host


def reboot(host: FakeHost, boot_id: str = "next-boot", line: str | None = None) -> None:
    """Boot again: by the loader, or with a command line that came from elsewhere."""
    host.reboot(boot_id)
    host.put("/proc/cmdline", (next_line(host) if line is None else line) + "\n")
    show_cpus(host)


def show_cpus(host: FakeHost) -> None:
    """What the kernel makes of its command line."""
    words = dict(word.partition("=")[::2] for word in (host.text("/proc/cmdline") or "").split())
    isolated = words.get("isolcpus", "").replace("managed_irq,", "").replace("domain,", "")
    host.put("/sys/devices/system/cpu/isolated", isolated + "\n")
    host.put("/sys/devices/system/cpu/nohz_full", words.get("nohz_full", "(null)") + "\n")


def next_line(host: FakeHost) -> str:
    """The command line of the next boot."""
    menu = host.text("/boot/grub/grub.cfg") or host.text("/boot/grub2/grub.cfg") or ""
    found = re.search(r"^\s*linux\s+(\S+) (.*)$", menu, re.MULTILINE)
    if found:
        return f"BOOT_IMAGE={found.group(1)} {found.group(2)}"
    entries = sorted(path for path in host.files if path.endswith(f"{SECOND}.conf"))
    if entries:
        options = re.search(r"^options\s+(.*)$", host.text(entries[-1]) or "", re.MULTILINE)
        line = options.group(1) if options else ""
        return f"BOOT_IMAGE=(hd0,gpt2)/vmlinuz-{SECOND} {line}" if entries[-1].startswith("/boot") else line
    return (host.text(f"/efi/EFI/Linux/{SECOND}.efi") or "").partition("\n")[2]


def entries(host: FakeHost) -> list[str]:
    """Every command line that the machine may boot with, however it keeps them."""
    found = []
    for path, file in sorted(host.files.items()):
        if path.endswith("grub.cfg"):
            found += re.findall(
                r"^\s*linux\s+\S+ (.*)$", file.text.partition("### BEGIN /etc/grub.d/30")[0], re.MULTILINE
            )
        elif path.endswith(".conf") and "/entries/" in path and MACHINE in file.text:
            found += re.findall(r"^options\s+(.*)$", file.text, re.MULTILINE)
        elif path.endswith(".efi"):
            found.append(file.text.partition("\n")[2])
    return found


# -- GRUB


def shell_variable(files: list[str], name: str) -> str:
    """The variable after sh has read the files: later ones go on from it, or replace it."""
    value = ""
    for text in files:
        for assigned in re.findall(rf"^{name}=(.*)$", text, re.MULTILINE):
            parsed = shlex.split(assigned, comments=True)
            value = (parsed[0] if parsed else "").replace(f"${name}", value)
    return value


def menu(linux: str, default: str) -> str:
    """A menu with recovery entries, and the entry of another system found by os-prober."""
    lines = ["### BEGIN /etc/grub.d/10_linux ###"]
    for release in (SECOND, FIRST):
        lines += [f"menuentry 'Linux {release}' {{", f"\tlinux\t/boot/vmlinuz-{release} {LINUX} {linux} {default}", "}"]
        lines += [f"menuentry 'recovery {release}' {{", f"\tlinux\t/boot/vmlinuz-{release} {LINUX} single {linux}", "}"]
    lines += ["### END /etc/grub.d/10_linux ###", "### BEGIN /etc/grub.d/30_os-prober ###"]
    lines += ["menuentry 'another system' {", "\tlinux /vmlinuz root=/dev/sdb1 ro", "}"]
    return "\n".join([*lines, "### END /etc/grub.d/30_os-prober ###"]) + "\n"


def update_grub(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    names = sorted(path for path in host.files if re.match(r"/etc/default/grub\.d/.*\.cfg$", path))
    read = [host.text(path) or "" for path in ("/etc/default/grub", *names)]
    default = shell_variable(read, "GRUB_CMDLINE_LINUX_DEFAULT")
    host.put("/boot/grub/grub.cfg", menu(shell_variable(read, "GRUB_CMDLINE_LINUX"), default))
    return Answer(0, "")


def mkconfig(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert argv[1] == "-o", argv
    read = [host.text("/etc/default/grub") or ""]
    default = shell_variable(read, "GRUB_CMDLINE_LINUX_DEFAULT") or "splash"
    host.put(argv[2], menu(shell_variable(read, "GRUB_CMDLINE_LINUX"), default))
    return Answer(0, "")


def _debian(host: FakeHost) -> None:
    host.put("/etc/os-release", "ID=debian\n")
    host.put("/etc/default/grub", DEFAULT_GRUB)
    host.put("/etc/default/grub.d/50-cloudimg-settings.cfg", CLOUD)
    host.programs["update-grub"] = update_grub
    update_grub(host, ())


def _suse(host: FakeHost) -> None:
    host.put("/etc/os-release", 'ID="sles"\nID_LIKE="suse"\n')
    host.put("/etc/default/grub", DEFAULT_GRUB)
    host.programs["grub2-mkconfig"] = mkconfig
    mkconfig(host, ("grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"))


# -- grubby


def _entry(host: FakeHost, folder: str, release: str, line: str) -> None:
    text = f"title Linux\nversion {release}\nmachine-id {MACHINE}\noptions {line}\nlinux /vmlinuz-{release}\n"
    host.put(f"{folder}/{MACHINE}-{release}.conf", text)


def _rhel(host: FakeHost) -> None:
    host.put("/etc/os-release", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n')
    host.put("/etc/default/grub", 'GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="crashkernel=1G console=tty0 console=ttyS0"\n')
    host.put("/etc/kernel/cmdline", f"{LINUX} crashkernel=1G console=tty0 console=ttyS0\n")
    host.put("/boot/grub2/grub.cfg", "### BEGIN /etc/grub.d/10_linux ###\ninsmod blscfg\nblscfg\n")
    for release in (FIRST, SECOND):
        _entry(
            host, "/boot/loader/entries", release, f"{LINUX} crashkernel=1G console=tty0 console=ttyS0 $tuned_params"
        )
    host.programs["grubby"] = grubby


def grubby(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """Each --remove-args word goes once when it has a value; each --args word replaces all of its name."""
    given = dict(word.partition("=")[::2] for word in argv[1:])
    paths = sorted((path for path in host.files if "/loader/entries/" in path), reverse=True)
    out = ""
    for number, path in enumerate(paths):
        text = host.text(path) or ""
        found = re.search(r"^options (.*)$", text, re.MULTILINE)
        assert found
        if "--info" in given:
            out += f'index={number}\nkernel="/boot/vmlinuz"\nargs="{found.group(1)}"\ntitle="Linux"\n'
        elif given["--update-kernel"] in ("ALL", str(number)):
            line = regrubbed(found.group(1), given.get("--remove-args", ""), given.get("--args", ""))
            host.put(path, text.replace(found.group(0), f"options {line}"))
    return Answer(0, out)


def regrubbed(line: str, remove: str, add: str) -> str:
    words = line.split()
    for word in remove.split():
        if "=" in word and word in words:
            words.remove(word)
        elif "=" not in word:
            words = [held for held in words if held.partition("=")[0] != word]
    names = {word.partition("=")[0] for word in add.split()}
    return " ".join([word for word in words if word.partition("=")[0] not in names] + add.split())


# -- systemd-boot, unified images


def _systemd_boot(host: FakeHost) -> None:
    host.put(VARIABLE.format("LoaderInfo"), firmware("systemd-boot 257.8"))
    for release in (FIRST, SECOND):
        _entry(host, "/efi/loader/entries", release, f"{LINUX} quiet")
    other = "title Other\nmachine-id ffff\noptions root=/dev/sdb1\nlinux /other\n"
    host.put("/efi/loader/entries/other.conf", other)
    host.programs["update-grub"] = update_grub  # a left-over: nothing here boots by GRUB


def _unified(host: FakeHost) -> None:
    host.put(VARIABLE.format("LoaderInfo"), firmware("systemd-boot 257.8"))
    host.put(VARIABLE.format("StubInfo"), firmware("systemd-stub 257.8"))
    host.put("/etc/kernel/install.conf", "layout=uki\n")
    host.put("/etc/kernel/cmdline", f"{LINUX} quiet\n")
    host.programs.update({"kernel-install": kernel_install, "bootctl": bootctl})
    for release in (FIRST, SECOND):
        kernel_install(host, ("kernel-install", "add", release, f"/boot/vmlinuz-{release}"))


def kernel_install(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    verb, release, image = argv[1:]
    assert verb == "add"
    assert host.exists(image)
    line = host.text("/etc/kernel/cmdline")
    if line is None:
        line = host.text("/proc/cmdline") or ""  # what kernel-install takes where there is no such file
    host.put(f"/efi/EFI/Linux/{release}.efi", "MZ\n" + line.strip())
    return Answer(0, "")


def bootctl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert argv[1:] == ("list", "--json=short")
    listed = [
        {"type": "type2", "id": path, "options": (host.text(path) or "").partition("\n")[2], "machineId": MACHINE}
        for path in sorted(host.files)
        if path.endswith(".efi")
    ]
    return Answer(0, json.dumps([*listed, {"type": "auto", "id": "auto-reboot-to-firmware-setup"}]))


# -- ostree


def _ostree(host: FakeHost) -> None:
    host.put("/run/ostree-booted", "")
    _entry(host, "/boot/loader/entries", SECOND, f"{LINUX} quiet console=tty0 console=ttyS0")
    host.programs["rpm-ostree"] = rpm_ostree


def rpm_ostree(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    path = next(path for path in host.files if "/loader/entries/" in path)
    text = host.text(path) or ""
    found = re.search(r"^options (.*)$", text, re.MULTILINE)
    assert found
    words = found.group(1).split()
    for option in argv[2:]:
        name, _unused, word = option.partition("=")
        if name == "--append" or (name == "--append-if-missing" and word not in words):
            words.append(word)
        elif name == "--delete-if-present" and word in words:
            words.remove(word)
    host.put(path, text.replace(found.group(0), f"options {' '.join(words)}"))
    return Answer(0, " ".join(words) + "\n")
