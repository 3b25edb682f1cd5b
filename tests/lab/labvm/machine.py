# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lab's machine: up, commands, reboot, snapshot, revert, down."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from . import emulator, guest, image, process, qmp, recipe
from .errors import LabError, LabUnavailable
from .guest import Done

# Ten times what a quiet machine needs under emulation: a busy one is slow, not broken.
BOOT_LIMIT = 600.0
RESUME_LIMIT = 120.0
CLEAN = "clean"
PORT_ATTEMPTS = 5


class Blueprint(NamedTuple):
    """Which image and which machine. accelerator: QEMU's arguments for it."""

    image: Path
    accelerator: tuple[str, ...]

    @property
    def ready(self) -> Path:
        """The disk of the booted machine; its memory lies beside it, in `.state`."""
        return self.image / f"ready-{emulator.key(self.accelerator)}.qcow2"


class Machine:
    """One running machine, in a room (a directory of the cache) of its own."""

    def __init__(self, room: Path) -> None:
        known = process.recall(room)
        if known is None:
            raise LabError(f"no lab machine is known in {room}: start one with `python3 tests/lab/lab.py up`")
        self.room = room
        self.process, self.facts = known
        self.port = int(self.facts["port"])
        self.ssh_config = room / "ssh_config"
        self.ansible_inventory = room / "inventory.yml"

    @property
    def alive(self) -> bool:
        return process.alive(self.process)

    @property
    def accelerator(self) -> str:
        return self.facts["accelerator"]

    # commands in the guest

    def ssh(self, command: str, user: str = "root", timeout: float = 120, check: bool = True, stdin: str = "") -> Done:
        """Runs a shell command in the guest; with `check`, a non-zero exit raises LabError with what it printed."""
        done = guest.run(self.ssh_config, command, user, timeout, stdin)
        if check and done.rc != 0:
            raise LabError(f"`{command}` exited {done.rc} in the lab's machine: {(done.err or done.out).strip()}")
        return done

    def run(
        self,
        argv: tuple[str, ...] | list[str],
        user: str = "root",
        timeout: float = 120,
        check: bool = True,
        stdin: str = "",
    ) -> Done:
        """Like ssh(), for an argv: each word arrives as it is."""
        return self.ssh(guest.quote(tuple(argv)), user, timeout, check, stdin)

    def read(self, path: str) -> str:
        """A file of the guest, as root sees it."""
        return self.run(("cat", path)).out

    def boot_id(self) -> str:
        return self.read("/proc/sys/kernel/random/boot_id").strip()

    # boot, snapshot, revert

    def reboot(self, limit: float = BOOT_LIMIT) -> str:
        """Reboots the guest from inside and returns the new boot id; raises LabError when it does not come back."""
        before = self.boot_id()
        self.ssh("systemctl --no-block reboot", check=False)
        guest.hang_up(self.ssh_config)
        end = time.monotonic() + limit
        while True:
            self.wait_for_ssh(end - time.monotonic())
            try:
                now = self.boot_id()
            except LabError:
                now = before  # caught on its way down
            if now != before:
                return now
            guest.hang_up(self.ssh_config)
            if not guest.sleep_until(end, 1):
                raise LabError(f"the lab's machine still shows boot id {before} after {limit:g} s: see its console")

    def wait_for_ssh(self, limit: float = BOOT_LIMIT) -> None:
        """Waits until the guest answers over ssh, at most `limit` seconds."""
        end = time.monotonic() + limit
        while not guest.answers(self.port):
            if not self.alive:
                raise LabError(f"QEMU ended: {self.log()}\n{self.console_tail()}")
            if not guest.sleep_until(end):
                raise LabError(
                    f"no ssh from the lab's machine within {limit:.0f} s; its console ends:\n{self.console_tail()}"
                )

    def snapshot(self, name: str) -> None:
        """Keeps disk and memory under a name, as they are now; an older one of that name is replaced."""
        self.ssh("sync")
        self._monitor(f"savevm {name}")
        self.set_clock()

    def revert(self, name: str = CLEAN) -> None:
        """Brings disk and memory back to a snapshot, in seconds and without a boot, and puts the clock right."""
        guest.hang_up(self.ssh_config)
        self._monitor(f"loadvm {name}")
        self.wait_for_ssh(RESUME_LIMIT)
        self.set_clock()

    def snapshots(self) -> tuple[str, ...]:
        with qmp.Qmp(self.room / "qmp") as connection:
            devices = connection.command("query-block")
        found = (device["inserted"]["image"].get("snapshots", []) for device in devices if device.get("inserted"))
        return tuple(snapshot["name"] for snapshots in found for snapshot in snapshots)

    def set_clock(self) -> None:
        """A machine that was brought back lives in the past, and one that was saved stood still for a moment."""
        self.ssh("true")  # opens the connection, so that the time does not grow old on its way
        self.ssh(f"date --utc --set=@{time.time():.3f} >/dev/null")

    def _monitor(self, line: str) -> None:
        with qmp.Qmp(self.room / "qmp") as connection:
            answer = connection.monitor(line)
        if answer:
            raise LabError(f"QEMU could not do `{line}`: {answer}")

    # what is kept for failures

    def console_tail(self, lines: int = 60) -> str:
        path = self.room / "console.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def journal(self) -> str:
        """The journal of the current boot; when the guest does not answer, a sentence that says so."""
        try:
            return self.ssh("journalctl --boot --no-pager", timeout=60).out
        except LabError as error:
            return f"{error}\n"

    def save_artifacts(self, folder: Path) -> None:
        """Console, QEMU's own words and the journal, for a failed test."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("console.log", "qemu.log"):
            if (self.room / name).exists():
                shutil.copy(self.room / name, folder / name)
        (folder / "journal.log").write_text(self.journal())

    def down(self) -> None:
        """Ends the machine and removes all of it: process, port, connections, files."""
        if self.ssh_config.exists():
            guest.hang_up(self.ssh_config)
        process.end(self.process, self.room / "qmp")
        shutil.rmtree(self.room, ignore_errors=True)

    def log(self) -> str:
        """What QEMU itself said."""
        path = self.room / "qemu.log"
        return path.read_text(errors="replace").strip() if path.exists() else ""


def room_of(name: str) -> Path:
    return recipe.cache() / "run" / name


def all_running() -> list[Machine]:
    """The machines that run; what dead ones left is removed."""
    machines = (running(room.name) for room in room_of("").glob("*"))
    return [machine for machine in machines if machine is not None]


def images_in_use() -> set[Path]:
    """The images under the machines that run."""
    return {Path(machine.facts["image"]) for machine in all_running()}


def running(name: str) -> Machine | None:
    """The machine of that name when it runs; what a dead one left is removed."""
    room = room_of(name)
    if not (room / "machine.json").exists():
        return None
    machine = Machine(room)
    if machine.alive:
        return machine
    machine.down()
    return None


def up(
    name: str,
    variant: recipe.Variant = recipe.VARIANTS[recipe.BASE],
    tied: bool = False,
    prepare_guest: Callable[[Machine], None] | None = None,
) -> Machine:
    """Brings a machine up in its clean state: builds the image and boots it once where that was not done before.

    tied: the machine ends with the process that called. prepare_guest: what belongs to its clean state too. Raises
    LabUnavailable when this machine cannot run the lab, LabError when one of that name runs already or the guest does
    not come up.
    """
    if name in [machine.room.name for machine in all_running()]:
        raise LabError(f"the lab machine {name} runs already: use it, or end it with `python3 tests/lab/lab.py down`")
    reason = image.unavailable(variant)
    if reason:
        raise LabUnavailable(reason)
    with locked("image"):
        blueprint = prepare(variant)
    room = room_of(name)
    disk = _new_disk(room, blueprint.ready)
    machine = _start(room, disk, blueprint, tied, state=blueprint.ready.with_suffix(".state"))
    try:
        machine.wait_for_ssh(RESUME_LIMIT)
        if prepare_guest is not None:
            prepare_guest(machine)
        machine.snapshot(CLEAN)
    except BaseException:
        machine.down()
        raise
    return machine


def prepare(variant: recipe.Variant) -> Blueprint:
    """The image, and the booted machine that each `up` resumes; each is made once. The caller holds the lock."""
    folder = image.build(variant)
    blueprint = Blueprint(folder, emulator.accelerator(folder / "vmlinuz"))
    if not blueprint.ready.exists():
        _first_boot(blueprint)
    return blueprint


def _first_boot(blueprint: Blueprint) -> None:
    """Boots the disk for the first time, lets the guest write its own GRUB menu, and saves disk and memory."""
    room = room_of(f"first-boot-{os.getpid()}")
    disk = _new_disk(room, blueprint.image / "disk.img", backing="raw")
    state = room / "state"
    machine = _start(room, disk, blueprint, tied=True)
    try:
        machine.wait_for_ssh()
        machine.ssh("systemctl is-system-running --wait", timeout=BOOT_LIMIT)
        machine.ssh("update-grub && sync", timeout=300)
        guest.hang_up(machine.ssh_config)
        _save_memory(machine, state)
        process.end(machine.process, room / "qmp")
        state.rename(blueprint.ready.with_suffix(".state"))
        disk.rename(blueprint.ready)
    finally:
        machine.down()


def _save_memory(machine: Machine, state: Path, limit: float = 120) -> None:
    """Stops the machine and writes its memory and devices to a file, from which another QEMU can go on."""
    with qmp.Qmp(machine.room / "qmp") as connection:
        connection.command("migrate-set-parameters", max_bandwidth=10 * 1024**3)
        connection.command("migrate", uri=f"exec:cat >{state}")
        end = time.monotonic() + limit
        while (status := connection.command("query-migrate").get("status")) != "completed":
            if status in ("failed", "cancelled") or not guest.sleep_until(end, 0.1):
                raise LabError(
                    f"the memory of the lab's machine was not saved within {limit:g} s "
                    f"(QEMU says {status}): {machine.log()}"
                )


def _new_disk(room: Path, base: Path, backing: str = "qcow2") -> Path:
    """A room for a machine with an overlay over `base` in it; what was there goes."""
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True, mode=0o700)
    disk = room / "disk.qcow2"
    subprocess.run(
        ("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(base), "-F", backing, str(disk)),
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return disk


def _start(room: Path, disk: Path, blueprint: Blueprint, tied: bool, state: Path | None = None) -> Machine:
    """Starts QEMU and returns when its processors run. state: go on from this memory instead of booting.

    Another process may take the free port before QEMU does; then the next one is tried.
    """
    incoming = ("-incoming", f"exec:cat {state}") if state else ()
    for attempt in range(1, PORT_ATTEMPTS + 1):
        port = guest.free_port()
        argv = (
            emulator.QEMU,
            *blueprint.accelerator,
            *emulator.shape(),
            *emulator.devices(disk, port, room / "console.log", room / "qmp"),
            *incoming,
        )
        log = room / "qemu.log"
        log.unlink(missing_ok=True)
        started = process.spawn(argv, log, tied)
        try:
            facts = {
                "port": str(port),
                "accelerator": blueprint.accelerator[1].partition(",")[0],
                "image": str(blueprint.image),
            }
            process.remember(room, started, facts)
            guest.write_inventory(room, guest.write_config(room, blueprint.image, port))
            _wait_until_running(room, started)
            return Machine(room)
        except qmp.QmpError as error:
            process.end(started, room / "qmp")
            words = log.read_text(errors="replace").strip()
            if "Could not set up host forwarding" not in words or attempt == PORT_ATTEMPTS:
                shutil.rmtree(room, ignore_errors=True)
                raise LabError(f"{error}: {words}") from None
        except BaseException:
            process.end(started, room / "qmp")
            shutil.rmtree(room, ignore_errors=True)
            raise
    raise AssertionError("the loop returns or raises")


def _wait_until_running(room: Path, started: process.Process) -> None:
    end = time.monotonic() + RESUME_LIMIT
    with qmp.connect(room / "qmp", lambda: process.alive(started)) as connection:
        while (status := connection.status()) != "running":
            if status in ("paused", "postmigrate"):
                connection.command("cont")
            elif not guest.sleep_until(end, 0.05):
                raise qmp.QmpError(f"QEMU stays in the state {status}")


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Only one process of this machine at a time builds; the others wait for it."""
    recipe.cache().mkdir(parents=True, exist_ok=True)
    with (recipe.cache() / f"{name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
