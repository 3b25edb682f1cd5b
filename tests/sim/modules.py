# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules of a simulated host: a catalogue, what modprobe.d says, loading and unloading."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import NamedTuple

from . import gpu
from .machine import MODULE_USERS, Machine, at, drop, keep, load, names, need, put, read, state, there

MODPROBE_D = ("/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d")


class Module(NamedTuple):
    """A module of the catalogue."""

    place: str  # below /lib/modules/<release>/kernel
    needs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str, str], ...] = ()  # name, type (bool, int, charp), default as the kernel shows it
    sysctls: tuple[tuple[str, str], ...] = ()
    vendor: str = ""  # loads only on a CPU of this vendor
    version: str = ""


DKMS = "../updates/dkms"  # of the driver's modules, which are there when its packages are
BRIDGE_KEYS = ("arptables", "ip6tables", "iptables")
CATALOGUE = {
    "br_netfilter": Module(
        "net/bridge", ("bridge",), (), tuple((f"net/bridge/bridge-nf-call-{key}", "1") for key in BRIDGE_KEYS)
    ),
    "bridge": Module("net/bridge", ("stp", "llc")),
    "dummy": Module("drivers/net", (), (("numdummies", "int", "1"),)),
    "ib_umad": Module("drivers/infiniband/core"),
    "kvm": Module("arch/x86/kvm", (), (("halt_poll_ns", "int", "200000"), ("ignore_msrs", "bool", "N"))),
    "kvm_amd": Module("arch/x86/kvm", ("kvm",), (("nested", "int", "1"), ("avic", "bool", "N")), (), "amd"),
    "kvm_intel": Module("arch/x86/kvm", ("kvm",), (("nested", "bool", "Y"), ("ept", "bool", "Y")), (), "intel"),
    "llc": Module("net/llc"),
    "loop": Module("drivers/block", (), (("max_loop", "int", "0"),)),
    "nf_conntrack": Module(
        "net/netfilter", (), (("hashsize", "int", "65536"),), (("net/netfilter/nf_conntrack_max", "262144"),)
    ),
    "nouveau": Module("drivers/gpu/drm/nouveau", (), (("modeset", "int", "-1"),)),
    "nvidia": Module(DKMS, (), (("NVreg_OpenRmEnableUnsupportedGpus", "int", "1"),)),
    "nvidia_drm": Module(DKMS, ("nvidia_modeset",), (("modeset", "bool", "N"),)),
    "nvidia_modeset": Module(DKMS, ("nvidia",)),
    "nvidia_uvm": Module(DKMS, ("nvidia",)),
    "nvme": Module("drivers/nvme/host", (), (("poll_queues", "int", "0"), ("write_queues", "int", "0"))),
    "overlay": Module("fs/overlayfs", (), (("metacopy", "bool", "N"),)),
    "pcspkr": Module("drivers/input/misc"),
    "softdog": Module("drivers/watchdog", (), (("soft_margin", "int", "60"),)),
    "stp": Module("net/802"),
    "tap": Module("drivers/net"),
    "tun": Module("drivers/net"),
    "vfio": Module("drivers/vfio", (), (("enable_unsafe_noiommu_mode", "bool", "N"),)),
    "vfio_iommu_type1": Module("drivers/vfio", ("vfio",), (("allow_unsafe_interrupts", "bool", "N"),)),
    "vfio_pci": Module("drivers/vfio/pci", ("vfio_pci_core",), (("ids", "charp", ""), ("disable_vga", "bool", "N"))),
    "vfio_pci_core": Module("drivers/vfio/pci", ("vfio",)),
    "vhost": Module("drivers/vhost", ("vhost_iotlb",)),
    "vhost_iotlb": Module("drivers/vhost"),
    "vhost_net": Module("drivers/vhost", ("tun", "vhost", "tap"), (("experimental_zcopytx", "int", "0"),)),
    "zram": Module("drivers/block/zram", (), (("num_devices", "int", "1"),)),
}
BUILTIN = {"configfs": Module("fs/configfs"), "ext4": Module("fs/ext4"), "tcp_cubic": Module("net/ipv4")}
BOOLS = {**dict.fromkeys(("1", "y", "Y", "yes", "on"), "Y"), **dict.fromkeys(("0", "n", "N", "no", "off"), "N")}


class Refused(Exception):
    """What the tool prints; it exits with 1."""


def plain(name: str) -> str:
    """A module's name as the kernel writes it."""
    return name.replace("-", "_")


def directory(root: str) -> str:
    """The running kernel's modules, as the tools name it."""
    return "/lib/modules/" + release(root)


def release(root: str) -> str:
    """The running kernel's release."""
    return need(root, "/proc/sys/kernel/osrelease").strip()


def modules_files(kernel: str) -> dict[str, str]:
    """The index files below /usr/lib/modules/<release>, by name."""
    paths = {
        name: f"kernel/{module.place}/{name.replace('_', '-')}.ko"
        for name, module in CATALOGUE.items()
        if module.place != DKMS
    }
    dependencies = "".join(
        f"{path}:{''.join(' ' + paths[need] for need in _closure(name)[1:])}\n" for name, path in sorted(paths.items())
    )
    builtin = "".join(f"kernel/{module.place}/{name}.ko\n" for name, module in sorted(BUILTIN.items()))
    order = "".join(path + "\n" for path in sorted(paths.values()))
    return {
        "modules.dep": dependencies,
        "modules.builtin": builtin,
        "modules.order": order,
        "modules.alias": "",
        "modules.softdep": "",
    }


def available(root: str) -> set[str]:
    """Modules that the running kernel's modules.dep lists; a test may take lines out of it, or put some in."""
    listed = read(root, f"/usr/lib/modules/{release(root)}/modules.dep") or ""
    return {plain(os.path.basename(line.split(":")[0]).split(".ko")[0]) for line in listed.splitlines() if line}


def loaded(root: str, name: str) -> bool:
    """Whether the module is loaded (or live by other means)."""
    return there(root, f"/sys/module/{plain(name)}")


def builtin(root: str, name: str) -> bool:
    """Whether it is built into the running kernel."""
    listed = read(root, f"/usr/lib/modules/{release(root)}/modules.builtin") or ""
    return any(plain(os.path.basename(line)[: -len(".ko")]) == plain(name) for line in listed.splitlines())


def _closure(name: str) -> list[str]:
    """The module and all that it needs, itself first."""
    found = [name]
    for one in found:
        found += [need for need in CATALOGUE.get(one, Module("")).needs if need not in found]
    return found


class Rules(NamedTuple):
    """What modprobe.d says: options, programs instead of loading, blacklisted names."""

    options: dict[str, list[str]]
    install: dict[str, str]
    blacklist: set[str]


def rules(root: str) -> Rules:
    """Read modprobe.d in its order: by file name, a name in an earlier directory hiding the later ones."""
    files: dict[str, str] = {}
    for folder in MODPROBE_D:
        for name in names(root, folder):
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    return parse_rules("\n".join(read(root, files[name]) or "" for name in sorted(files)))


def parse_rules(text: str) -> Rules:
    """The lines of modprobe.d files; a backslash joins a line to the next."""
    found = Rules({}, {}, set())
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split(None, 2)
        if len(words) >= 2 and words[0] == "blacklist":
            found.blacklist.add(plain(words[1]))
        elif len(words) == 3 and words[0] == "options":
            found.options.setdefault(plain(words[1]), []).extend(words[2].split())
        elif len(words) == 3 and words[0] == "install":
            found.install[plain(words[1])] = words[2]
    return found


def insert(root: str, name: str, given: tuple[str, ...] = (), said: Rules | None = None) -> None:
    """Load a module and what it needs, as modprobe does; raises Refused with what modprobe prints."""
    name = plain(name)
    said = rules(root) if said is None else said
    if name in said.install:
        _install(root, name, said.install[name])
        return
    if loaded(root, name) or builtin(root, name):
        return
    if name not in available(root):
        raise Refused(f"modprobe: FATAL: Module {name} not found in directory {directory(root)}")
    module = CATALOGUE.get(name, Module("extra"))
    for needed in module.needs:
        insert(root, needed, (), said)
    machine = load(root)
    if module.vendor and machine.vendor != module.vendor and (module.vendor, machine.vendor) != ("amd", "hygon"):
        raise Refused(f"modprobe: ERROR: could not insert '{name}': Operation not supported")
    values = _parameters(name, module, (*said.options.get(name, ()), *given))
    if name == "nvidia" and not gpu.any_of(root):
        raise Refused("modprobe: ERROR: could not insert 'nvidia': No such device")
    _appear(root, name, module, values)


def _install(root: str, name: str, command: str) -> None:
    line = command.replace("$CMDLINE_OPTS", "").strip()
    done = subprocess.run(["/bin/sh", "-c", line], check=False, cwd=at(root, "/"))
    if done.returncode:
        raise Refused(
            "modprobe: ERROR: ../libkmod/libkmod-module.c:1047 command_do() "
            f"Error running install command '{line}' for module {name}: retcode {done.returncode}\n"
            f"modprobe: ERROR: could not insert '{name}': Invalid argument"
        )


def _parameters(name: str, module: Module, given: tuple[str, ...]) -> dict[str, str]:
    """The parameters as the kernel will show them; one that it does not know is ignored, as the kernel does."""
    kinds = {parameter: kind for parameter, kind, _unused in module.parameters}
    values = {parameter: default for parameter, _unused, default in module.parameters}
    for word in given:
        parameter, equals, value = word.partition("=")
        parameter = plain(parameter)
        if parameter not in kinds:
            continue
        shown = value.strip('"') if equals else "1"
        if kinds[parameter] == "bool":
            shown = BOOLS.get(shown, "")
        elif kinds[parameter] == "int":
            shown = shown if re.fullmatch(r"-?\d+", shown) else ""
        if shown == "" and kinds[parameter] != "charp":
            raise Refused(f"modprobe: ERROR: could not insert '{name}': Invalid argument")
        values[parameter] = shown
    return values


def _appear(root: str, name: str, module: Module, values: dict[str, str]) -> None:
    base = f"/sys/module/{name}"
    put(root, f"{base}/initstate", "live\n", 0o444)
    put(root, f"{base}/refcnt", "0\n", 0o444)
    for parameter, value in values.items():
        put(root, f"{base}/parameters/{parameter}", value + "\n", 0o444)
    for needed in module.needs:
        if there(root, f"/sys/module/{needed}/refcnt"):
            os.makedirs(at(root, f"/sys/module/{needed}/holders/{name}"), exist_ok=True)
    for key, value in module.sysctls:
        put(root, f"/proc/sys/{key}", value + "\n")
    refresh(root)
    if name in gpu.MODULES:
        gpu.module_came(root, name)


def remove(root: str, name: str) -> None:
    """Unload a module, and what it alone needed; raises Refused with what modprobe prints."""
    name = plain(name)
    if not loaded(root, name) or not there(root, f"/sys/module/{name}/refcnt"):
        if builtin(root, name):
            raise Refused(f"modprobe: FATAL: Module {name} is builtin.")
        if name not in available(root):
            raise Refused(f"modprobe: FATAL: Module {name} not found in directory {directory(root)}")
        return
    if users(root, name):
        raise Refused(f"modprobe: FATAL: Module {name} is in use.")
    vanish(root, name)
    for needed in CATALOGUE.get(name, Module("")).needs:
        if there(root, f"/sys/module/{needed}/refcnt") and not users(root, needed):
            remove(root, needed)


def vanish(root: str, name: str) -> None:
    """Take a module out of the kernel, with the keys that it brought."""
    module = CATALOGUE.get(name, Module(""))
    shutil.rmtree(at(root, f"/sys/module/{name}"))
    for needed in module.needs:
        shutil.rmtree(at(root, f"/sys/module/{needed}/holders/{name}"), ignore_errors=True)
    for key, _unused in module.sysctls:
        drop(root, f"/proc/sys/{key}")
        folder = at(root, os.path.dirname(f"/proc/sys/{key}"))
        if os.path.isdir(folder) and not os.listdir(folder):
            os.rmdir(folder)
    refresh(root)
    if name in gpu.MODULES:
        gpu.module_went(root, name)


def users(root: str, name: str) -> int:
    """A module's reference count: the modules on it, and what else uses it."""
    return len(names(root, f"/sys/module/{name}/holders")) + int(state(root, MODULE_USERS).get(name, 0))


def hold(root: str, name: str, count: int) -> None:
    """Let something, such as running machines on kvm_intel, hold a module so many times; 0 lets it go."""
    held = state(root, MODULE_USERS)
    held[plain(name)] = count
    keep(root, MODULE_USERS, {each: number for each, number in held.items() if number})
    refresh(root)


def refresh(root: str) -> None:
    """/proc/modules and the reference counts, from what /sys/module shows."""
    lines = []
    for name in reversed(names(root, "/sys/module")):
        if there(root, f"/sys/module/{name}/refcnt"):
            count = users(root, name)
            put(root, f"/sys/module/{name}/refcnt", f"{count}\n", 0o444)
            holders = "".join(holder + "," for holder in names(root, f"/sys/module/{name}/holders")) or "-"
            lines.append(f"{name} 16384 {count} {holders} Live 0x0000000000000000\n")
    put(root, "/proc/modules", "".join(lines), 0o444)


def forget_all(root: str) -> None:
    """What a reboot leaves loaded: nothing but what is built in."""
    for name in names(root, "/sys/module"):
        if there(root, f"/sys/module/{name}/refcnt"):
            shutil.rmtree(at(root, f"/sys/module/{name}"))
    for module in CATALOGUE.values():
        for key, _unused in module.sysctls:
            drop(root, f"/proc/sys/{key}")
            folder = at(root, os.path.dirname(f"/proc/sys/{key}"))
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
    keep(root, MODULE_USERS, {})
    refresh(root)


def autoload(root: str, machine: Machine, said: Rules) -> None:
    """What the hardware announces is loaded by alias, so blacklisted names are left out."""
    for name in (*machine.boot_modules, *(gpu.AT_BOOT if machine.gpus else ())):
        if name not in said.blacklist:
            try:
                insert(root, name, (), said)
            except Refused:
                continue
