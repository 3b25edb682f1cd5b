# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated kernel's files: what a write to /proc/sys or /sys does, and what it refuses."""

from __future__ import annotations

import errno
import os
import re

from . import pages
from .machine import at, load, need, put, read, there

# Sysctl keys that every simulated kernel has, with the value that it boots with. A tab stands between several values.
SYSCTLS = {
    "kernel/core_pattern": "core",
    "kernel/dmesg_restrict": "1",
    "kernel/hostname": "",
    "kernel/kptr_restrict": "1",
    "kernel/modprobe": "/sbin/modprobe",
    "kernel/numa_balancing": "1",
    "kernel/osrelease": "",
    "kernel/panic": "0",
    "kernel/perf_event_paranoid": "3",
    "kernel/pid_max": "4194304",
    "kernel/printk": "4\t4\t1\t7",
    "kernel/randomize_va_space": "2",
    "kernel/sched_rt_runtime_us": "950000",
    "kernel/sysrq": "438",
    "kernel/threads-max": "63000",
    "kernel/unprivileged_bpf_disabled": "2",
    "kernel/yama/ptrace_scope": "1",
    "fs/aio-max-nr": "65536",
    "fs/file-max": "9223372036854775807",
    "fs/inotify/max_user_instances": "128",
    "fs/inotify/max_user_watches": "60000",
    "fs/pipe-max-size": "1048576",
    "fs/protected_hardlinks": "1",
    "fs/protected_symlinks": "1",
    "fs/suid_dumpable": "0",
    "net/core/bpf_jit_harden": "0",
    "net/core/default_qdisc": "fq_codel",
    "net/core/rmem_max": "212992",
    "net/core/somaxconn": "4096",
    "net/ipv4/conf/all/accept_redirects": "0",
    "net/ipv4/conf/all/accept_source_route": "0",
    "net/ipv4/conf/all/forwarding": "0",
    "net/ipv4/conf/all/rp_filter": "2",
    "net/ipv4/conf/default/forwarding": "0",
    "net/ipv4/conf/eth0/forwarding": "0",
    "net/ipv4/conf/eth0.100/forwarding": "0",
    "net/ipv4/ip_forward": "0",
    "net/ipv4/ip_local_port_range": "32768\t60999",
    "net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "net/ipv4/tcp_wmem": "4096\t16384\t4194304",
    "net/ipv6/conf/all/accept_redirects": "0",
    "net/ipv6/conf/all/forwarding": "0",
    "vm/dirty_ratio": "20",
    "vm/max_map_count": "65530",
    "vm/min_free_kbytes": "67584",
    "vm/mmap_min_addr": "65536",
    "vm/mmap_rnd_bits": "28",
    "vm/nr_hugepages": "0",
    "vm/overcommit_memory": "0",
    "vm/swappiness": "60",
}
READONLY = frozenset(("kernel/osrelease",))
TEXT = frozenset(("kernel/core_pattern", "kernel/hostname", "kernel/modprobe", "net/core/default_qdisc"))
# Lowest and highest value that the kernel takes; outside of them a write fails with EINVAL.
RANGES = {
    "kernel/pid_max": (301, 4194304),
    "kernel/randomize_va_space": (0, 2),
    "kernel/yama/ptrace_scope": (0, 3),
    "kernel/unprivileged_bpf_disabled": (0, 2),
    "net/core/rmem_max": (2304, 2147483647),
    "vm/dirty_ratio": (0, 100),
    "vm/mmap_rnd_bits": (28, 32),
    "vm/overcommit_memory": (0, 2),
    "vm/swappiness": (0, 200),
    "net/bridge/bridge-nf-call-iptables": (-2147483648, 2147483647),
}
POOL_FILE = re.compile(r"(?:/sys/kernel/mm|/sys/devices/system/node/node(\d+))/hugepages/hugepages-(\d+kB)/(\w+)")
GOVERNOR_FILE = re.compile(r"/sys/devices/system/cpu/(?:cpu\d+/cpufreq|cpufreq/policy\d+)/scaling_governor")
CHOICE_FILE = re.compile(r"/sys/kernel/mm/transparent_hugepage/(enabled|defrag)")
SYS_WRITABLE = re.compile(r"/sys/module/\w+/parameters/\w+")


def plays(path: str) -> bool:
    """Whether the path is a kernel file, whose writes the simulated kernel answers."""
    return path.startswith(("/proc/sys/", "/sys/"))


def write(root: str, path: str, value: str) -> None:
    """Write to a kernel file; raises the OSError that the kernel would answer with."""
    path = os.path.normpath(path)
    if not there(root, path):
        raise _fault(errno.ENOENT, path)
    if os.path.isdir(at(root, path)):
        raise _fault(errno.EISDIR, path)
    found = POOL_FILE.fullmatch(path)
    if found and found.group(3) == "nr_hugepages":
        pages.resize(root, found.group(2), _whole(value, path), None if found.group(1) is None else int(found.group(1)))
    elif GOVERNOR_FILE.fullmatch(path):
        _governor(root, path, value.strip())
    elif CHOICE_FILE.fullmatch(path):
        _choose(root, path, value.strip())
    elif path.startswith("/proc/sys/"):
        _sysctl(root, path, value)
    elif SYS_WRITABLE.fullmatch(path) and os.stat(at(root, path)).st_mode & 0o200:
        put(root, path, value.strip() + "\n")
    else:
        raise _fault(errno.EACCES, path)


def _fault(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


def _whole(value: str, path: str) -> int:
    try:
        number = int(value.strip(), 0)
    except ValueError:
        raise _fault(errno.EINVAL, path) from None
    if number < 0:
        raise _fault(errno.EINVAL, path)
    return number


def _governor(root: str, path: str, value: str) -> None:
    listed = need(root, os.path.dirname(path) + "/scaling_available_governors").split()
    if value not in listed:
        raise _fault(errno.EINVAL, path)
    put(root, path, value + "\n")


def choice(words: tuple[str, ...], chosen: str) -> str:
    """How the kernel shows one of several words: `always [madvise] never`."""
    return " ".join(f"[{word}]" if word == chosen else word for word in words) + "\n"


def _choose(root: str, path: str, value: str) -> None:
    words = tuple(need(root, path).replace("[", "").replace("]", "").split())
    if value not in words:
        raise _fault(errno.EINVAL, path)
    put(root, path, choice(words, value))


def _sysctl(root: str, path: str, value: str) -> None:
    machine, key = load(root), path[len("/proc/sys/") :]
    if key in READONLY or key in machine.readonly_sysctl or not os.stat(at(root, path)).st_mode & 0o200:
        raise _fault(errno.EACCES, path)
    if (key, value.strip()) in machine.einval_sysctl:
        raise _fault(errno.EINVAL, path)
    if key == "vm/nr_hugepages":
        pages.resize(root, pages.default_size(root), _whole(value, path), None)
        return
    put(root, path, _shown(key, value, (read(root, path) or "").rstrip("\n"), path) + "\n")
    if key in ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"):
        for name in ("ip_forward", "conf/all/forwarding", "conf/default/forwarding", "conf/eth0/forwarding"):
            if there(root, f"/proc/sys/net/ipv4/{name}"):
                put(root, f"/proc/sys/net/ipv4/{name}", value.strip() + "\n")


def _shown(key: str, value: str, before: str, path: str) -> str:
    """What the key shows after the write; raises EINVAL for what the kernel does not take."""
    if key in TEXT or not re.fullmatch(r"[-\d\t]*", before):
        return value.rstrip("\n")
    fields = value.split()
    if not fields or any(re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+|0[0-7]+", field) is None for field in fields):
        raise _fault(errno.EINVAL, path)
    numbers = [int(field, 8) if re.fullmatch(r"0[0-7]+", field) else int(field, 0) for field in fields]
    count = len(before.split())
    if len(numbers) > count:
        raise _fault(errno.EINVAL, path)
    low, high = RANGES.get(key, (-9223372036854775808, 9223372036854775807))
    if any(not low <= number <= high for number in numbers):
        raise _fault(errno.EINVAL, path)
    if key == "fs/pipe-max-size":  # rounded up to a power of two pages
        numbers = [1 << max(12, (number - 1).bit_length()) for number in numbers]
    kept = [int(field) for field in before.split()][len(numbers) :]  # fewer values leave the rest as they are
    return "\t".join(str(number) for number in [*numbers, *kept])


def watched(root: str) -> dict[str, str]:
    """What the files show now whose writes have an outcome of their own; for `settle`."""
    found = {}
    pools = [(node, size) for node in (None, *range(len(load(root).nodes))) for size in pages.PAGE_KB]
    paths = [f"{pages.pool_of(root, node, size)}/nr_hugepages" for node, size in pools]
    paths += ["/proc/sys/vm/nr_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"]
    for path in paths:
        text = read(root, path)
        if text is not None:
            found[path] = text
    return found


def settle(root: str, before: dict[str, str]) -> None:
    """Give plain writes, which a boot service's shell made since `before`, the outcome of the real kernel."""
    asked = {path: text for path in before if (text := read(root, path)) not in (None, before[path])}
    for path in asked:
        put(root, path, before[path])
    for path, text in asked.items():
        try:
            write(root, path, text or "")
        except OSError:
            continue
