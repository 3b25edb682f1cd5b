# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in memory with swap: util-linux and systemd as they treat it, and a boot that turns on what it is told to."""

from __future__ import annotations

import re

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from tests.unit.fake_host import FakeHost
from tests.unit.shown_units import shown_units

TITLES = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
SWAPS, FSTAB, ETC = "/proc/swaps", "/etc/fstab", "/etc/systemd/system"
USR, GENERATOR, LATE = "/usr/lib/systemd/system", "/run/systemd/generator", "/run/systemd/generator.late"
WANTS = f"{ETC}/swap.target.wants"
OVERRIDE = "/etc/systemd/zram-generator.conf.d/zz-bcd-k8s.conf"


class SwapHost(FakeHost):
    """`sizes` has the areas that can be on, in KiB by path; `used` what is in use of them, in KiB.

    `by_service` maps a service to the area that it turns on; `active` are the units that are up. What systemd has in
    memory of masks, it learns by a daemon-reload only: `known`.
    """

    def __init__(self, sizes: dict[str, int], files: dict[str, str] | None = None) -> None:
        super().__init__(files or {})
        self.sizes, self.used = sizes, dict.fromkeys(sizes, 0)
        self.by_service: dict[str, str] = {}
        self.active: set[str] = set()
        self.known: set[str] = set()  # masked, as the manager has it
        self.reloads = 0
        self.put("/run/systemd/system/x", "")
        self.put(SWAPS, TITLES)
        self.put("/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 100 kB\nMemAvailable:  4194304 kB\n")
        self.programs.update({"systemctl": systemctl, "swapoff": swapoff, "swapon": swapon, "grep": grep})
        for path in sizes:
            self.put(path, "")

    # -- what is on

    def on(self) -> list[str]:
        """The paths of the areas that are on."""
        return [line.split()[0] for line in (self.text(SWAPS) or "").splitlines()[1:]]

    def turn_on(self, path: str, priority: int = -2) -> None:
        """As the kernel does."""
        kind = "partition" if path.startswith("/dev/") else "file"
        shown = f"{path}\t\t{kind}\t\t{self.sizes[path]}\t\t{self.used[path]}\t\t{priority}\n"
        self.put(SWAPS, (self.text(SWAPS) or TITLES) + shown)

    def turn_off(self, path: str) -> None:
        """As the kernel does."""
        lines = (self.text(SWAPS) or TITLES).splitlines(keepends=True)
        self.put(SWAPS, "".join(line for line in lines if line.split()[0] != path))

    # -- units

    def masked(self, name: str) -> bool:
        """By /etc, as the next boot or daemon-reload sees it."""
        return self.links.get(f"{ETC}/{name}") == "/dev/null"

    def place(self, name: str) -> str:
        """The path of a unit's file; empty where there is none."""
        return next((f"{f}/{name}" for f in (ETC, USR, GENERATOR, LATE) if f"{f}/{name}" in self.files), "")

    def enabled(self, name: str) -> str:
        """What is-enabled prints."""
        if self.masked(name):
            return "masked"
        path = self.place(name)
        if path.startswith("/run/"):
            return "generated"
        linked = any(link.endswith(f".wants/{name}") for link in (*self.links, *self.files))
        return ("enabled" if linked else "disabled") if path else "not-found"

    def boot(self) -> None:
        """A boot, by what is on disk: generators, then swap.target with what it wants, then services."""
        self.reboot()
        self.put(SWAPS, TITLES)
        self.active.clear()
        self.known = {path.rpartition("/")[2] for path, target in self.links.items() if target == "/dev/null"}
        self.generate()
        names = {path.rpartition("/")[2] for path in self.files if path.endswith(".swap")}
        if "swap.target" not in self.known:
            for name in sorted(names - self.known):
                if self.enabled(name) in ("enabled", "generated"):
                    self.start(name)
        for name in self.by_service:
            if self.enabled(name) == "enabled":
                self.start(name)

    def generate(self) -> None:
        """What the generators for fstab and zram leave in /run."""
        for path in [path for path in self.files if path.startswith(f"{GENERATOR}/")]:
            del self.files[path]
        for line in (self.text(FSTAB) or "").split("\n"):
            fields = line.split()
            if len(fields) > 2 and fields[2] == "swap" and not fields[0].startswith("#"):
                what = self.links.get(fields[0], fields[0])
                self.put(f"{GENERATOR}/{unit_of(what)}", f"[Unit]\nSourcePath={FSTAB}\n[Swap]\nWhat={what}\n")
        limited = self.text(OVERRIDE) or ""
        for device in re.findall(r"(?m)^\[(zram\d+)\]", self.text("/usr/lib/systemd/zram-generator.conf") or ""):
            self.files.pop(f"/dev/{device}", None)
            if f"[{device}]\nhost-memory-limit = 1\n" not in limited:
                self.put(f"{GENERATOR}/dev-{device}.swap", f"[Swap]\nWhat=/dev/{device}\n")
                self.put(f"/dev/{device}", "")

    def start(self, name: str) -> bool:
        """Start a unit, unless it is masked or what it names is not there."""
        if name in self.known or not self.place(name):
            return False
        area = self.by_service.get(name) or dict(
            re.findall(r"(?m)^(What)=(.*)$", self.files[self.place(name)].text)
        ).get("What", "")
        if area not in self.files:
            return False
        if area not in self.on():
            self.turn_on(area)
        self.active.add(name)
        return True


def unit_of(path: str) -> str:
    """The name of the swap unit for a path of plain letters."""
    return path.strip("/").replace("/", "-") + ".swap"


def systemctl(fake: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert isinstance(fake, SwapHost)
    host, verb, name = fake, argv[1], argv[-1]
    if verb == "show":
        return shown_units(argv, lambda one: "active" if one in host.active else "inactive")
    if verb == "is-enabled":
        shown = host.enabled(name)
        return Answer(0 if shown in ("enabled", "generated") else 1, shown + "\n")
    if verb == "is-active":
        return Answer(0, "active\n") if name in host.active else Answer(3, "inactive\n")
    if verb == "daemon-reload":
        host.reloads += 1
        host.known = {path.rpartition("/")[2] for path, target in host.links.items() if target == "/dev/null"}
        host.generate()
        return Answer(0, "")
    if verb == "start":
        return Answer(0, "") if host.start(name) else Answer(1, "", f"Failed to start {name}: Unit {name} is masked.")
    if verb == "stop":
        host.active.discard(name)
        if name not in host.known:  # one that is masked has no ExecStop any more
            host.turn_off(host.by_service.get(name, ""))
        return Answer(0, "")
    assert "--no-reload" in argv, argv
    return _next_boot(host, verb, name)


def _next_boot(host: SwapHost, verb: str, name: str) -> Answer:
    path, link = f"{ETC}/{name}", f"{WANTS}/{name}"
    if verb == "mask":
        if path in host.files:
            return Answer(1, "", f"Failed to mask unit: File {path} already exists.")
        host.links[path] = "/dev/null"
    elif verb == "unmask":
        assert host.links.pop(path) == "/dev/null"
    elif verb == "disable":
        host.links.pop(link, None)
    elif verb == "enable":
        host.links[link] = path
    else:
        return Answer(1, "", f"Unknown command verb {verb}.")
    return Answer(0, "")


def swapoff(fake: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert isinstance(fake, SwapHost)
    assert argv == ("swapoff", "-a")
    fake.put(SWAPS, TITLES)
    return Answer(0, "")


def swapon(fake: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert isinstance(fake, SwapHost)
    path = argv[-1]
    priority = int(argv[argv.index("-p") + 1]) if "-p" in argv else -2
    if path not in fake.files:
        return Answer(255, "", f"swapon: cannot open {path}: No such file or directory")
    if path in fake.on():
        return Answer(255, "", f"swapon: {path}: swapon failed: Device or resource busy")
    fake.turn_on(path, priority)
    return Answer(0, "")


def grep(fake: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert argv == ("grep", "-c", "\r", FSTAB)
    count = (fake.text(FSTAB) or "").count("\r")
    return Answer(0 if count else 1, f"{count}\n")


def with_mode(host: SwapHost, path: str, mode: int) -> None:
    """Give a file another mode."""
    host.files[path] = File(host.files[path].text, mode)
