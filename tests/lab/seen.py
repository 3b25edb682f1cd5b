# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab's machine shows, read from its kernel and its files: nothing here asks the collection."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import testinfra
from labvm.machine import Machine

# Runs in the guest as root. What the file systems have is asked of programs in C: a Python that walks tens of thousands
# of files is slow under emulation. Two lists, ten fields a file and one line a digest, and the digest's ends in a NUL.
TREES = "/etc /boot /usr /opt /srv /var/lib"
OWN = ("/var/lib/systemd", "/var/lib/dhcp", "/var/lib/dhcpcd", "/var/lib/NetworkManager")
FIELDS = ("%p", "%y", "%m", "%U", "%G", "%l", "%s", "%T@", "%C@", "%i")
PRUNED = r"\( " + " -o ".join(f"-path {path}" for path in OWN) + r" \) -prune -o"
LISTED = f"find {TREES} {PRUNED} -printf '{''.join(field + chr(92) + '0' for field in FIELDS)}'"
# The half GiB of /usr is not read: whoever writes there moves the times.
DIGESTS = f"find {TREES.replace(' /usr', '')} {PRUNED} -type f -print0 | sort -z | xargs -0 sha1sum -z --"
# Runs there too, with nothing but the standard library.
VALUES = r"""
import json, os
VOLATILE = ("/proc/sys/kernel/random/", "/proc/sys/fs/", "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/pty/nr")
values = {}

def value(path):
    if path.startswith(VOLATILE):
        return
    try:
        with open(path) as source:
            values[path] = source.read()
    except OSError as fault:
        values[path] = fault.strerror

for top in ("/proc/sys", "/sys/kernel/mm", "/sys/devices/system/cpu", "/sys/module"):
    for folder, below, names in os.walk(top):
        if top == "/proc/sys":
            for name in names:
                value(os.path.join(folder, name))
        else:
            wanted = ("nr_hugepages", "enabled", "isolated", "nohz_full", "online", "scaling_governor")
            for name in names:
                if name in wanted or os.path.basename(folder) == "parameters":
                    value(os.path.join(folder, name))
for folder in ("/sys/devices/system/node",):
    for node in sorted(os.listdir(folder)):
        pools = os.path.join(folder, node, "hugepages")
        for pool in os.listdir(pools) if os.path.isdir(pools) else ():
            value(os.path.join(pools, pool, "nr_hugepages"))
for path in ("/proc/cmdline", "/proc/mounts", "/proc/swaps"):
    value(path)
values.update({f"/sys/module/{line.split()[0]}/": "loaded" for line in open("/proc/modules")})
values["iommu"] = sorted(os.listdir("/sys/class/iommu"))
print(json.dumps(values))
"""

STATE = "/var/lib/bcd-hostconfig"
DEVICE_MAPPER = "/sys/module/dm_mod/"  # update-grub asks for its devices
M2, G1 = "hugepages-2048kB", "hugepages-1048576kB"


class Fingerprint(NamedTuple):
    """Every file's mode, owner and digest below the system's directories, its times, and the kernel's values."""

    files: dict[str, Any]
    times: dict[str, Any]
    values: dict[str, Any]

    def changed_since(self, earlier: Fingerprint) -> list[str]:
        """The files and kernel values that came, went or differ, but for our own records and what GRUB's tools load."""
        moved = _moved(earlier.files, self.files) | _moved(earlier.values, self.values)
        return sorted(path for path in moved if not path.startswith((STATE, DEVICE_MAPPER)))

    def touched_since(self, earlier: Fingerprint) -> list[str]:
        """The same, with what was written and came out as it was, and with our own records."""
        return sorted(set().union(*(_moved(one, other) for one, other in zip(earlier, self))))


def _moved(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def fingerprint(machine: Machine) -> Fingerprint:
    """The machine's fingerprint, now."""
    digests = {}
    for line in machine.ssh(f"set -o pipefail; {DIGESTS}", timeout=300).out.split("\0")[:-1]:
        digest, _spaces, path = line.partition("  ")
        digests[path] = digest
    fields = machine.ssh(LISTED, timeout=300).out.split("\0")[:-1]
    files: dict[str, Any] = {}
    times: dict[str, Any] = {}
    for place in range(0, len(fields), len(FIELDS)):
        path, kind, mode, user, group, target, size, modified, changed, inode = fields[place : place + len(FIELDS)]
        files[path] = [kind, mode, user, group, target]
        if kind == "f":
            files[path] += [size, modified] if path.startswith("/usr/") else [digests[path]]
        times[path] = [modified, changed, inode]
    values = json.loads(machine.run(("python3", "-I", "-c", VALUES), timeout=300).out)
    return Fingerprint(files, times, values)


class Eyes:
    """The machine by testinfra, over ssh as root."""

    def __init__(self, machine: Machine) -> None:
        # It goes through the connection that the machine holds open, where there is one, and never becomes that one
        # itself: what stays open in the background would hold testinfra's pipes open.
        machine.run(("true",))
        self.host = testinfra.get_host(
            f"ssh://lab-root?ssh_config={machine.ssh_config}", timeout=60, ssh_extra_args="-o ControlMaster=no"
        )

    def text(self, path: str) -> str:
        """A file."""
        return str(self.host.file(path).content_string)

    def exists(self, path: str) -> bool:
        """Whether it is there."""
        return bool(self.host.file(path).exists)

    def lines(self, path: str) -> list[str]:
        """A file of ours without its header, which has to be there."""
        header, *rest = self.text(path).splitlines()
        assert header.startswith("#"), f"{path} begins with {header!r}"
        assert "local edits are replaced" in header, f"{path} begins with {header!r}"
        return rest

    def parameter(self, module: str, name: str) -> bool:
        """A boolean parameter of a loaded module."""
        return {"Y": True, "1": True, "N": False, "0": False}[
            self.text(f"/sys/module/{module}/parameters/{name}").strip()
        ]

    def loaded(self, *modules: str) -> bool:
        """Whether all of them are loaded."""
        return all(self.host.file(f"/sys/module/{module}").is_directory for module in modules)

    def sysctl(self, name: str) -> int | str:
        """A kernel parameter."""
        found: int | str = self.host.sysctl(name)
        return found

    def pools(self, size: str, nodes: int = 2) -> list[int]:
        """The pages of one size on each NUMA node."""
        place = "/sys/devices/system/node/node{}/hugepages/{}/nr_hugepages"
        return [int(self.text(place.format(node, size))) for node in range(nodes)]

    def command_line(self) -> list[str]:
        """The words that the kernel was booted with."""
        return self.text("/proc/cmdline").split()

    def menu_lines(self) -> list[list[str]]:
        """The words of each line of GRUB's menu that boots a Linux."""
        found = [
            line.split() for line in self.text("/boot/grub/grub.cfg").splitlines() if re.match(r"\s*linux\s", line)
        ]
        assert found, "the menu boots nothing"
        return found

    def boot_id(self) -> str:
        """The id of the running boot."""
        return self.text("/proc/sys/kernel/random/boot_id").strip()
