# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel parameters that are never set, and those that are set only in the direction of more defense.

Data and its two questions, for the hosts and for the controller's check of a profile or a pool. A pattern is a path
below /proc/sys; `*` stands for what is left of one part. Parts are compared without regard to case, and `-` as `_`.
"""

from __future__ import annotations

import re

# What they do, by pattern; whatever is below such a path is refused with it.
REFUSED = (
    ("kernel/core_pattern", "it can name a program that the kernel runs as root"),
    ("kernel/core_pipe_limit", "it belongs to the program that the kernel runs as root on a crash"),
    ("kernel/modprobe", "it names a program that the kernel runs as root"),
    ("kernel/hotplug", "it names a program that the kernel runs as root"),
    ("kernel/poweroff_cmd", "it names a program that the kernel runs as root"),
    ("kernel/usermodehelper", "it decides what the programs that the kernel starts may do"),
    ("fs/binfmt_misc", "it names programs that run in place of others"),
    ("kernel/modules_disabled", "no module could be loaded any more until a reboot"),
    ("kernel/kexec_*", "it can let another kernel take over the host (kernel.kexec_load_disabled = 1 turns that off)"),
)

# The kernel's own arithmetic ends here for most parameters; a larger number could wrap around to a low one.
MOST = 2**31 - 1

# The least and the greatest value that does not lower the host's defenses, whatever the live value is.
ONE_WAY = (
    ("kernel/kptr_restrict", 1, MOST),
    ("kernel/dmesg_restrict", 1, 1),
    ("kernel/randomize_va_space", 2, 2),
    ("kernel/yama/ptrace_scope", 1, MOST),
    ("kernel/unprivileged_bpf_disabled", 1, MOST),
    ("kernel/perf_event_paranoid", 2, MOST),
    ("kernel/kexec_load_disabled", 1, 1),
    ("fs/protected_hardlinks", 1, 1),
    ("fs/protected_symlinks", 1, 1),
    ("fs/protected_fifos", 1, MOST),
    ("fs/protected_regular", 1, MOST),
    ("fs/suid_dumpable", 0, 0),
    ("net/core/bpf_jit_harden", 1, MOST),
    ("vm/mmap_min_addr", 65536, MOST),
    ("net/ipv4/conf/*/accept_source_route", 0, 0),
    ("net/ipv6/conf/*/accept_source_route", 0, 0),
    ("net/ipv4/conf/*/accept_redirects", 0, 0),
    ("net/ipv6/conf/*/accept_redirects", 0, 0),
)

# Not 0x0, 00 or +0: what this code reads and what the kernel reads must be the same number.
DECIMAL = re.compile(r"0|[1-9][0-9]{0,9}")


def why_refused(parts: tuple[str, ...]) -> str | None:
    """Why the parameter with these path parts is never set; None when it may be."""
    for readings in _readings(parts):
        if any(_matches(pattern, readings, whole=True) for pattern, _least, _most in ONE_WAY):
            continue
        for pattern, reason in REFUSED:
            if _matches(pattern, readings, whole=False):
                return reason
    return None


def lowers(parts: tuple[str, ...], value: str) -> bool:
    """Whether the value, as text, would lower the host's defenses; anything but a plain decimal integer would."""
    for readings in _readings(parts):
        for pattern, least, most in ONE_WAY:
            if _matches(pattern, readings, whole=True):
                return not (DECIMAL.fullmatch(value) and least <= int(value) <= most)
    return False


def _readings(parts: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The path, and the same with every dot in a part taken as a separator, as another reader of the name may."""
    plain = tuple(part.lower().replace("-", "_") for part in parts)
    return plain, tuple(word for part in plain for word in part.split("."))


def _matches(pattern: str, parts: tuple[str, ...], whole: bool) -> bool:
    wanted = pattern.split("/")
    if len(parts) < len(wanted) or (whole and len(parts) > len(wanted)):
        return False
    return all(part.startswith(want[:-1]) if want.endswith("*") else part == want for want, part in zip(wanted, parts))
