# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling reboot of 200 simulated hosts in 4 pools: `python -m tests.sim.rolling OUT --due 50`.

OUT is a directory that does not hold a fleet yet. So many hosts of each pool wait for a reboot, all 50 of them on
request; every host is looked at. One pool goes well. Of each of the others one host fails in its own way: it never
comes back, comes back as the same boot, or still waits for its reboot; and in one, two hosts were down before. The run
is killed while hosts are down, and started again. What then has to hold is in `faults`: the trees' timelines tell when
hosts were down, their records what they wait for, and of what the playbook says of itself only the names are taken.

Exit status 0 when all of it held. Prints what it cost.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import uuid
from typing import Any, NamedTuple

from . import boot, controller, fleet, timeline
from .controller import Played
from .few_hosts import BOOT_ID, RECORDS, twin
from .host import SimulatedHost
from .tree import PROFILES

SIZE, PERCENT = 50, 10
BUDGET = SIZE * PERCENT // 100
DOWN = (
    8.0  # seconds that a reboot takes: longer than it takes to begin the next one, so that too many are seen together
)
TIMEOUT = 60  # seconds after which a host is one that did not come back
POLICY = {"cpu": {"isolate": "2-3"}}  # waits for a reboot


class Pool(NamedTuple):
    """A pool: where it is, how the host of it that fails misboots, how many of its hosts are down before."""

    site: str
    misboot: str = ""
    down: int = 0


POOLS = {
    "sandbox-fra": Pool("fra"),
    "sandbox-ams": Pool("ams", "never-back", 2),
    "builds-fra": Pool("fra", "same-boot-id"),
    "builds-ams": Pool("ams", "other-loader"),
}
STEADY = "sandbox-fra"


class Story(NamedTuple):
    """A fleet in a directory: so many hosts of each pool are due, and the one of the number `fails` fails."""

    scratch: str
    inventory: str
    due: int
    fails: int

    def host(self, name: str) -> SimulatedHost:
        """One of its hosts."""
        return SimulatedHost(os.path.join(self.scratch, "trees", name))

    def boots(self, name: str) -> int:
        """How often it was started since it was built, that included."""
        return int(self.host(name).read("/var/lib/sim/boots") or "0") - 1

    def down(self, pool: str) -> timeline.Most:
        """The most hosts of a pool that were down together, at any instant."""
        return timeline.most_down((name, timeline.spans(self.host(name).tree)) for name in names(pool))


def names(pool: str) -> list[str]:
    """The hosts of a pool; the first ones are due."""
    return [f"{pool}-{number:02d}" for number in range(1, SIZE + 1)]


def make(scratch: str, due: int, fails: int) -> Story:
    """Build the fleet: its trees, and the FleetConfig that is its inventory. One host is converged, and copied."""
    seeds = os.path.join(scratch, "seeds")
    kinds = [fleet.Hosts("idle", PROFILES["debian"]), fleet.Hosts("due", PROFILES["debian"])]
    inventory = fleet.make(seeds, kinds, hostvars={"due-01": {"bcd_converge_units": POLICY}})
    converged = controller.playbook(seeds, inventory, "bettercompute.bcd.converge", "--limit", "due")
    if converged.rc:
        raise RuntimeError(converged.out + converged.err)
    for pool, kind in POOLS.items():
        for number, name in enumerate(names(pool), 1):
            host = SimulatedHost(os.path.join(scratch, "trees", name))
            twin(os.path.join(seeds, "trees", "due-01" if number <= due else "idle-01"), host.tree, name)
            host.change(down_seconds=DOWN, misboot=kind.misboot if number == fails else "")
            if number > SIZE - kind.down:
                host.change(misboot="never-back")
                boot.reboot(host.tree)
    shutil.rmtree(os.path.join(seeds, "trees"))
    return Story(scratch, _document(scratch), due, fails)


def _document(scratch: str) -> str:
    """The FleetConfig that names the hosts; its path."""
    document: dict[str, Any] = {"version": 1, "pools": []}
    for pool, kind in POOLS.items():
        hosts = {
            name: {
                "ansible_connection": "sim",
                "ansible_python_interpreter": sys.executable,
                "sim_tree": os.path.join(scratch, "trees", name),
            }
            for name in names(pool)
        }
        document["pools"].append(
            {"name": pool, "site": kind.site, "class": "vps-host", "policy": POLICY, "hosts": hosts}
        )
    path = os.path.join(scratch, "fleet.json")
    with open(path, "w", encoding="utf-8") as target:
        json.dump(document, target, indent=1)
    return path


# -- the run


def command(story: Story, *arguments: str) -> list[str]:
    """The words of the rolling reboot."""
    options = [f"-ebcd_reboot_max_unavailable={PERCENT}%", f"-ebcd_reboot_timeout={TIMEOUT}", *arguments]
    return [sys.executable, "-m", "ansible", "playbook", "-i", story.inventory, "bettercompute.bcd.reboot", *options]


def begin_and_kill(story: Story, *arguments: str, downs: int = 3, seconds: float = 900) -> None:
    """Begin, kill the controller once so many hosts of the steady pool have gone down, and wait until they are back."""
    mark = uuid.uuid4().hex
    log = os.path.join(story.scratch, "killed.log")
    with open(log, "wb") as output:
        running = subprocess.Popen(
            command(story, *arguments),
            cwd=story.scratch,
            env=controller.environment(story.scratch, SIM_STORY=mark),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    end = time.monotonic() + seconds
    try:
        while sum(bool(timeline.spans(story.host(name).tree)) for name in names(STEADY)[: story.due]) < downs:
            if running.poll() is not None or time.monotonic() > end:
                with open(log, encoding="utf-8", errors="replace") as said:
                    raise RuntimeError(f"it ended before it could be killed:\n{said.read()[-3000:]}")
            time.sleep(0.2)
    finally:
        _kill(running.pid, mark)
        running.wait()
    time.sleep(DOWN + 2)


def _kill(leader: int, mark: str) -> None:
    """SIGKILL to the run's process group, and to its workers, each of which has a group of its own.

    What runs inside a simulated host goes on: a machine that goes down does not stop for its controller.
    """
    killed = {leader}
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
    while True:
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_worker(pid, mark)]
        fresh = set(found) - killed
        if not fresh:
            return
        for pid in fresh:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        killed |= fresh


def _is_worker(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environment, open(f"/proc/{pid}/cmdline", "rb") as words:
            return f"SIM_STORY={mark}".encode() in environment.read() and b"ansible\0playbook\0" in words.read()
    except OSError:
        return False


def finish(story: Story) -> Played:
    """Start it again, to its end."""
    return controller.playbook(
        story.scratch,
        story.inventory,
        "bettercompute.bcd.reboot",
        *command(story)[7:],
        as_json=True,
        timeout=7200,
    )


def look(story: Story) -> Played:
    """A dry run: the look at every host, and the waves."""
    return controller.playbook(
        story.scratch, story.inventory, "bettercompute.bcd.reboot", *command(story, "--check")[7:], as_json=True
    )


# -- what has to hold


def faults(story: Story, played: Played) -> list[str]:
    """All that does not hold after the run that was started again; [] when all does."""
    found = []
    end = played.events()["custom"].get("_run", {}).get("bcd_reboot", {})
    for pool, kind in POOLS.items():
        most = story.down(pool)
        if most.number > BUDGET:
            found.append(f"{pool}: {most.number} hosts were down at {most.at}, of at most {BUDGET}: {most.hosts}")
        for number, name in enumerate(names(pool), 1):
            if number <= story.due:
                found += [
                    f"{name}: {said}"
                    for said in _host_faults(story, name, kind if number == story.fails else None, end)
                ]
            elif story.boots(name):
                found.append(f"{name}: it was rebooted, and waited for none")
    if played.rc == 0:
        found.append("the run ended well, with hosts that failed")
    if story.down(STEADY).number < 2:
        found.append(f"{STEADY}: no two hosts were down together, so nothing was tried of the budget")
    behind = [name for name in names(STEADY)[: story.due] if story.boots(name) != 1]
    return [*found, *(f"{name}: it was not rebooted, and nothing failed in its pool" for name in behind)]


def _host_faults(story: Story, name: str, kind: Pool | None, end: dict[str, Any]) -> list[str]:
    """Rebooted once and waits for nothing more, or not at all and named; a host that fails is named for what it is."""
    boots, waits = story.boots(name), _waits(story.host(name))
    failed, left_out = end.get("failed", {}), end.get("left_out", {})
    if kind is not None and kind.misboot:
        wanted = 1 if kind.misboot == "other-loader" else 0
        why = {
            "never-back": "cannot be looked at",
            "same-boot-id": "did not reboot",
            "other-loader": "still required after the reboot",
        }[kind.misboot]
        said = failed.get(name, left_out.get(name, "nothing"))
        is_named = why in said or (kind.misboot != "other-loader" and name in failed)
        return [f"rebooted {boots} times, and said of it: {said}"] * (boots != wanted or not is_named)
    if boots == 1:
        return ["it was rebooted, and still waits for a reboot"] * waits
    if boots > 1:
        return [f"it was rebooted {boots} times"]
    return [] if name in failed or name in left_out else ["it was not rebooted, and nobody says so"]


def _waits(host: SimulatedHost) -> bool:
    """Whether a reboot is still due or unproved by root's record."""
    text = host.read(f"{RECORDS}/reboot.json")
    if text is None:
        return False
    record = json.loads(text)
    return bool(record.get("units")) and record["boot_id"] == (host.read(BOOT_ID) or "").strip()


def processor_seconds() -> float:
    """Of all children that have ended so far."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim.rolling", description=__doc__)
    parser.add_argument("out", help="a directory that does not hold a fleet yet")
    parser.add_argument("--due", type=int, default=SIZE, help="hosts of each pool that wait for a reboot")
    given = parser.parse_args(argv)
    at, spent = time.monotonic(), processor_seconds()

    def tell(what: str) -> None:
        nonlocal at, spent
        now, used = time.monotonic(), processor_seconds()
        print(f"{what}: {now - at:.0f} s, {used - spent:.0f} s of processors", flush=True)
        at, spent = now, used

    story = make(os.path.abspath(given.out), given.due, min(given.due, given.due // 2 + 2))
    tell(f"{SIZE * len(POOLS)} hosts built")
    played = look(story)
    tell(f"all looked at, exit status {played.rc}")
    begin_and_kill(story)
    tell("begun and killed")
    played = finish(story)
    tell(f"started again, exit status {played.rc}")
    end = played.events()["custom"].get("_run", {}).get("bcd_reboot", {})
    print(json.dumps({key: len(value) for key, value in end.items()}), json.dumps(end.get("failed"), indent=1))
    for pool in POOLS:
        most = story.down(pool)
        print(f"{pool}: {sum(map(story.boots, names(pool)))} reboots, at most {most.number} down of {BUDGET}")
    found = faults(story, played)
    print("\n".join(found) or "all of it held")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
