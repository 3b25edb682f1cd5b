# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small stand-ins of the simulated host: sysctl, sudo, reboot and their like."""

from __future__ import annotations

import os
import sys

from . import boot, kernel
from .machine import load, need, read, there

Answer = tuple[int, str, str]


def quiet(root: str, argv: list[str]) -> Answer:
    """Nothing to do, nothing to say."""
    return 0, "", ""


def sysctl(root: str, argv: list[str]) -> Answer:
    """sysctl [-n] [-w] NAME[=VALUE] ..., --system, -p FILE."""
    if "--system" in argv or "-p" in argv:
        boot.apply_sysctls(root)
        return 0, "", ""
    out, err = "", ""
    for word in [word for word in argv if not word.startswith("-")]:
        name, equals, value = word.partition("=")
        path = "/proc/sys/" + boot.sysctl_path(name)
        if not there(root, path):
            err += f"sysctl: cannot stat {path}: No such file or directory\n"
            continue
        if equals:
            try:
                kernel.write(root, path, value)
            except OSError as fault:
                err += f'sysctl: setting key "{name}": {fault.strerror}\n'
                continue
        shown = need(root, path).rstrip("\n")
        out += shown + "\n" if "-n" in argv else f"{name} = {shown}\n"
    return (255 if err else 0), out, err


def detect_virt(root: str, argv: list[str]) -> Answer:
    """systemd-detect-virt: a machine without cpufreq is a virtual one."""
    if {"-c", "--container"} & set(argv) or load(root).cpufreq:
        return 1, "none\n", ""
    return 0, "kvm\n", ""


def hostname(root: str, argv: list[str]) -> Answer:
    """hostname."""
    return 0, (read(root, "/etc/hostname") or "localhost\n"), ""


def uname(root: str, argv: list[str]) -> Answer:
    """uname, with the release of the simulated kernel."""
    machine = load(root)
    parts = {
        "s": "Linux",
        "n": (read(root, "/etc/hostname") or "localhost").strip(),
        "r": need(root, "/proc/sys/kernel/osrelease").strip(),
        "v": "#1 SMP PREEMPT_DYNAMIC",
        "m": "aarch64" if machine.vendor == "arm" else "x86_64",
        "o": "GNU/Linux",
    }
    long = {"--kernel-release": "r", "--machine": "m", "--nodename": "n", "--all": "a", "--kernel-name": "s"}
    asked = "".join(long.get(word, word.lstrip("-")) for word in argv) or "s"
    shown = [value for letter, value in parts.items() if letter in asked or "a" in asked]
    return 0, " ".join(shown) + "\n", ""


def reboot(root: str, argv: list[str]) -> Answer:
    """reboot."""
    boot.reboot(root)
    return 0, "", ""


def shutdown(root: str, argv: list[str]) -> Answer:
    """shutdown -r [now | +0 | 0]: a reboot at once; -c takes back nothing."""
    if {"-r", "--reboot"} & set(argv) or any(
        word.startswith("-") and "r" in word and not word.startswith("--") for word in argv
    ):
        boot.reboot(root)
    return 0, "", ""


def sudo(root: str, argv: list[str]) -> int:
    """sudo [-H] [-S] [-n] [-k] [-E] [-p PROMPT] [-u USER] PROGRAM ...: becomes the program.

    An account that is not root was let in as root already, by the connection that saw the request.
    """
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word in ("-p", "-u", "-g", "-r", "-t", "-h", "-C") and rest:
            rest.pop(0)
        if word == "--":
            break
    while rest and "=" in rest[0] and "/" not in rest[0].split("=")[0]:
        name, _unused, value = rest.pop(0).partition("=")
        os.environ[name] = value
    if os.getuid() != 0 and "SIM_ROOT" not in os.environ:
        sys.stderr.write("sudo: a password is required\n")
        return 1
    if rest:
        os.execvp(rest[0], rest)
    return 0
