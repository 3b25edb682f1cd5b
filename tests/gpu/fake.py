# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in memory over a simulated machine with GPUs: its programs work on the machine, its files show it.

host = gpu_host(Machine.from_products(["H100-80GB"]))
run_unit(host, unit, {"layout": "all-1g.10gb"})
host.machine.instances(0)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Hung
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from tests.unit.fake_host import FakeHost

from . import nodes, tools
from .fake_systemd import Services, systemctl
from .model import Hang, Machine
from .not_played import NotPlayed

Argv = tuple[str, ...]
Seen = tuple[object, ...]
RELEASE = "6.8.0-88-generic"
HERE = {
    "/run/systemd/system": "",
    "/proc/sys/kernel/osrelease": RELEASE + "\n",
    "/usr/bin/nvidia-smi": "",
    "/usr/bin/nvidia-cdi-hook": "",
}
TRIES = re.compile(r"for \w+ in ([^;]+); do (.+?) && exit 0; sleep \d+; done; exit 1")
# Modules of the driver, leaf first.
MODULES = ("nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia")


class GpuHost(FakeHost):
    """A FakeHost whose files of the kernel and of the driver are the machine's, whatever changed it."""

    def __init__(self, machine: Machine, files: Mapping[str, str] | None = None) -> None:
        super().__init__({**HERE, **(files or {})}, dict(PROGRAMS))
        self.machine = machine
        self.services = Services(self)
        self._own: set[str] = set()
        self._shown: Seen = ()
        self.sync()

    def sync(self) -> None:
        """Show the machine as it is now."""
        machine = self.machine
        seen: Seen = (
            machine.loaded, machine.library, machine.flavour, machine.uvm, machine.modeset, machine.drm,
            tuple(machine.clients),
            *(
                (card.dead, card.minor, card.mig, len(card.processes), [process.pid for process in card.processes],
                 [(gi.id, [ci.id for ci in gi.cis]) for gi in card.instances])
                for card in machine.cards
            ),
        )  # fmt: skip
        if seen == self._shown:
            return
        self._shown = seen
        for path in self._own:
            self.files.pop(path, None)
            self.links.pop(path, None)
        shown, links = nodes.files(machine), nodes.links(machine)
        self._own = {*shown, *links}
        self.files.update({path: File(text) for path, text in shown.items()})
        self.links.update(links)

    def boot(self) -> None:
        """Reboot: a new boot id, what the machine loses, and the enabled services started in their order."""
        self.machine.reboot()
        self.reboot(f"boot-after-{self.files['/proc/sys/kernel/random/boot_id'].text.strip()}")
        self.links = {path: target for path, target in self.links.items() if not path.startswith("/dev/char/")}
        self.coldplug()
        self.services.boot()

    def coldplug(self) -> None:
        """udev at boot: what its rules run when the driver and the module of unified memory are there."""
        machine = self.machine
        events = {'DEVPATH=="/bus/pci/drivers/nvidia"': machine.loaded, 'KERNEL=="nvidia_uvm"': machine.uvm}
        for path in sorted(self.files):
            for line in self.files[path].text.splitlines() if path.startswith("/etc/udev/rules.d/") else ():
                if not line.startswith("#") and any(key in line and there for key, there in events.items()):
                    self.play(tuple(shlex.split(line.partition('RUN+="')[2].rstrip('"'))))

    def read(self, path: str) -> str | None:
        self.sync()
        return super().read(path)

    def file(self, path: str) -> File | None:
        self.sync()
        return super().file(path)

    def names(self, path: str) -> tuple[str, ...]:
        self.sync()
        return super().names(path)

    def exists(self, path: str) -> bool:
        self.sync()
        return super().exists(path)

    def link(self, path: str) -> str | None:
        self.sync()
        return super().link(path)

    def play(self, argv: Argv, stdin: str = "", environment: Mapping[str, str] | None = None) -> Answer:
        """Run a program with what it reads and its environment, as a service does."""
        name = argv[0].rpartition("/")[2]
        given = dict(environment or {})
        if name == "env":
            at = next(at for at, word in enumerate(argv[1:], 1) if "=" not in word)
            given.update(pair.partition("=")[::2] for pair in argv[1:at])
            return self.play(argv[at:], stdin, given)
        if name == "nvidia-cuda-mps-control" and name in self.programs:
            return _mps(self, argv, stdin, given)
        if name in ("sh", "bash") and argv[1] == "-c":
            return self._shell(argv[2], given)
        if name in ("true", "false"):
            return Answer(int(name == "false"), "", "")
        program = self.programs.get(name)
        return program(self, (name, *argv[1:])) if program else Answer(127, "", f"{argv[0]}: no such program")

    def _shell(self, line: str, environment: Mapping[str, str]) -> Answer:
        """`echo WORDS | PROGRAM`, several joined by `;` or `&&`; a loop that tries one until it succeeds."""
        answer = Answer(0, "", "")
        loop = TRIES.fullmatch(line)
        if loop:
            for _try in loop.group(1).split():
                answer = self._shell(loop.group(2), environment)
                if answer.rc == 0:
                    break
            return answer
        for part in line.replace("&&", ";").split(";"):
            left, pipe, right = part.partition("|")
            words = shlex.split(left)
            if pipe and words[0] in ("echo", "printf"):
                answer = self.play(tuple(shlex.split(right)), " ".join(words[1:]) + "\n", environment)
            elif not pipe:
                answer = self.play(tuple(words), "", environment)
            else:
                raise NotPlayed(line)
            if answer.rc:
                return answer
        return answer

    def _call(self, argv: Argv) -> Answer:
        if argv[0].rpartition("/")[2] not in (*self.programs, "env"):
            return Answer(127, "", f"{argv[0]}: no such program")
        try:
            return self.play(argv, self.stdin)
        except Hang:
            raise Hung(f"{' '.join(argv)} did not end within 60 seconds: see what it waits for") from None


def gpu_host(machine: Machine, files: Mapping[str, str] | None = None) -> GpuHost:
    """A host over the machine, with further files."""
    return GpuHost(machine, files)


def _machine(host: FakeHost) -> Machine:
    assert isinstance(host, GpuHost)
    return host.machine


def nvidia_smi(host: FakeHost, argv: Argv) -> Answer:
    """nvidia-smi."""
    rc, text = _machine(host).smi(argv)
    return Answer(rc, text, "")


def nvidia_ctk(host: FakeHost, argv: Argv) -> Answer:
    """nvidia-ctk; with --output it writes the file."""
    machine, words = _machine(host), argv[1:]
    errors = []

    def run(on: Machine) -> tuple[int, str]:
        rc, out, err = tools.ctk(on, words)
        errors.append(err)
        if "create-dev-char-symlinks" in words and rc == 0 and on is machine:
            host.links = {**tools.char_links(machine), **host.links}  # what is there stays
        return rc, out

    rc, out = machine.struck(argv, run)
    where = tools.output_of(words)
    if rc == 0 and where and errors:
        host.files[where] = File(out)
        out = ""
    return Answer(rc, out, "".join(errors))


def _mps(host: GpuHost, argv: Argv, stdin: str, environment: dict[str, str]) -> Answer:
    def run(on: Machine) -> tuple[int, str]:
        rc, out, _err = tools.mps(on, argv[1:], stdin, environment)
        return rc, out

    rc, out = host.machine.struck((*argv, *stdin.split()), run)
    return Answer(rc, out, "")


def ln(host: FakeHost, argv: Argv) -> Answer:
    """ln -sfn TARGET LINK."""
    assert argv[1] == "-sfn", argv
    host.files.pop(argv[3], None)
    host.links[argv[3]] = argv[2]
    return Answer(0, "")


def modprobe(host: FakeHost, argv: Argv) -> Answer:
    """modprobe and rmmod of the driver's modules; another module is not found."""
    machine = _machine(host)
    names = [word.replace("-", "_") for word in argv[1:] if not word.startswith("-") and "=" not in word]
    names = ["nvidia" if name == "nvidia_current" else name for name in names]
    if argv[0] == "rmmod" or "-r" in argv or "--remove" in argv:
        return _unload(machine, names)
    for name in names:
        if name not in MODULES or not (machine.disk or machine.loaded):
            return Answer(1, "", f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{RELEASE}\n")
        if machine.loaded is None:
            if not machine.cards:
                return Answer(1, "", "modprobe: ERROR: could not insert 'nvidia': No such device\n")
            machine.loaded, machine.flavour = machine.disk, machine.disk_flavour
        machine.uvm = machine.uvm or name == "nvidia_uvm"
        machine.modeset = machine.modeset or name in ("nvidia_modeset", "nvidia_drm")
        machine.drm = machine.drm or name == "nvidia_drm"
    return Answer(0, "", "")


def _unload(machine: Machine, names: list[str]) -> Answer:
    for name in names:
        shown = nodes.files(machine)
        if f"/sys/module/{name}/refcnt" not in shown:
            return Answer(1, "", f"modprobe: FATAL: Module {name} not found.\n")
        if shown[f"/sys/module/{name}/refcnt"] != "0\n":
            return Answer(1, "", f"modprobe: FATAL: Module {name} is in use.\n")
        if name == "nvidia":
            machine.unload()
        elif name == "nvidia_drm":
            machine.drm = False
        elif name == "nvidia_modeset":
            machine.modeset = False
        else:
            machine.uvm = False
    return Answer(0, "", "")


def modinfo(host: FakeHost, argv: Argv) -> Answer:
    """modinfo of nvidia."""
    machine = _machine(host)
    if argv[-1] != "nvidia" or machine.disk is None:
        return Answer(1, "", f"modinfo: ERROR: Module {argv[-1]} not found.\n")
    licence = "Dual MIT/GPL" if machine.disk_flavour == "open" else "NVIDIA"
    return Answer(
        0,
        f"filename:       /lib/modules/{RELEASE}/updates/dkms/nvidia.ko.zst\nalias:          char-major-195-*\n"
        f"version:        {machine.disk}\nsupported:      external\nlicense:        {licence}\n",
        "",
    )


PROGRAMS = {
    "nvidia-smi": nvidia_smi,
    "nvidia-ctk": nvidia_ctk,
    "ln": ln,
    "nvidia-cuda-mps-control": lambda host, argv: Answer(0, "", ""),  # `play` sees to it, with what it reads
    "modprobe": modprobe,
    "rmmod": modprobe,
    "modinfo": modinfo,
    "systemctl": systemctl,
}
