# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Converge a small simulated fleet twice and plan it once, with the real playbooks, and check what they say. One host
takes signed specs alone, and is then given one that somebody has edited.

usage: python -m tests.sim.demo

Exit status 0 when everything went as EXPECTED says, the refused setting included; 1 with the whole output otherwise.
"""

from __future__ import annotations

import base64
import fcntl
import json
import re
import shutil
import sys
from typing import Any, NamedTuple

from tests import pki
from tests.sim import controller, fleet, gpu, mode
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.tree import PROFILES
from tests.tools.results import TOP

SCRATCH = TOP / ".build" / "demo"
BRIDGE = {"net.bridge.bridge-nf-call-iptables": 0, "net.bridge.bridge-nf-call-ip6tables": 0}
# A host for virtual machines: modules with their sysctl keys, pages of 1 GiB, CPUs of its own for guests, an IOMMU.
SANDBOX: dict[str, Any] = {
    "kernel-modules": {
        "load": ["kvm_intel", "vhost_net", "tun", "br_netfilter"],
        "options": {"kvm_intel": "nested=1"},
    },
    "sysctl": BRIDGE,
    "hugepages": {"pages1g": 3, "perNuma": True},
    "cpu": {"governor": "performance", "isolate": "2-3,6-7"},
    "iommu": {},
}


DRIVER: dict[str, Any] = {"nvidia-driver": {"branch": "580"}}


class Host(NamedTuple):
    """A host of the demo: what it is, the section that it gets, and what both passes must say of it.

    `busy` is the GPU on which a process computes. Root of a host that is `pinned` pins who may sign for it, and its
    section comes signed.
    """

    profile: str
    what: str
    section: dict[str, Any]
    state: str
    waits: str = "-"
    failed: str = "-"
    busy: int | None = None
    pinned: bool = False


REBOOT = "RebootRequired: hugepages, cpu, iommu"
HOSTS = {
    "debian": Host("debian", "Debian on GRUB, a sandbox host", SANDBOX, "progressing", REBOOT),
    "rocky": Host("rocky", "Rocky Linux with grubby, the same", SANDBOX, "progressing", REBOOT),
    "systemd-boot": Host("systemd-boot", "Debian on systemd-boot, the same", SANDBOX, "progressing", REBOOT),
    "refused": Host(
        "debian",
        "asks for kernel.core_pattern, which can run a program as root",
        {"kernel-modules": {"load": ["tun"]}, "sysctl": {"kernel.core_pattern": "|/usr/bin/dump"}},
        "failed",
        failed="Refused: sysctl",
    ),
    "waiting": Host(
        "debian",
        "asks for keys whose module nobody loads",
        {"sysctl": {"vm.swappiness": 10, **BRIDGE}},
        "progressing",
        "NotReady: sysctl",
    ),
    "vm": Host(
        "vm",
        "a virtual machine that takes signed specs alone",
        {"sysctl": {"vm.swappiness": 10}, "hugepages": {"pages2m": 64}, "cpu": {"governor": "performance"}},
        "converged",
        pinned=True,
    ),
    "h100": Host(
        "h100",
        "two H100 that MIG divides, with a power limit",
        {
            **DRIVER,
            "gpu-settings": {"powerLimitWatts": 500},
            "mig-layout": {"layout": "3g.40gb,2g.20gb,1g.10gb:2"},
            "container-toolkit": {},
        },
        "converged",
    ),
    "a100": Host(
        "a100",
        "two A100 for MIG, on one of which a process computes",
        {**DRIVER, "mig-layout": {"layout": "all-1g.5gb"}, "container-toolkit": {}},
        "progressing",
        "Busy: mig-layout",
        busy=0,
    ),
    "rtx": Host(
        "rtx",
        "two L40S, each shared by four clients through MPS",
        {**DRIVER, "gpu-sharing": {"mode": "mps", "replicas": 4}, "container-toolkit": {}},
        "converged",
    ),
    "nvswitch": Host(
        "nvswitch",
        "four H100 behind NVSwitches, without Fabric Manager so far",
        {**DRIVER, "fabric-manager": {}},
        "converged",
    ),
}
RECAP = re.compile(r"^(\S+) +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", re.MULTILINE)


class Surprise(Exception):
    """The demo did not go as it must."""


def signed(plane: pki.ControlPlane, name: str) -> dict[str, Any]:
    """What the control plane signed for a host: its section."""
    return plane.desired_state(node_id=f"{name}-01", generation=1, host=HOSTS[name].section)


def tree(name: str) -> str:
    """Where a host is."""
    return str(SCRATCH / "trees" / f"{name}-01")


def build(plane: pki.ControlPlane) -> str:
    """The fleet, anew; returns the path of its inventory."""
    shutil.rmtree(SCRATCH, ignore_errors=True)
    kinds = [fleet.Hosts(name, PROFILES[host.profile]) for name, host in HOSTS.items()]
    variables = {
        f"{name}-01": {"bcd_converge_signed_spec": signed(plane, name)}
        if host.pinned
        else {"bcd_converge_units": host.section}
        for name, host in HOSTS.items()
    }
    inventory = fleet.make(str(SCRATCH), kinds, hostvars=variables)
    for name, host in HOSTS.items():
        if host.pinned:
            SimulatedHost(tree(name)).write("/etc/bcd/config.toml", plane.config(), 0o640)
        if host.busy is not None:
            with gpu.editing(tree(name)) as gpus:
                gpus.occupy(host.busy)
    return inventory


def play(inventory: str, name: str, *arguments: str) -> Played:
    """Run a shipped playbook on the fleet, with the pass report."""
    report = {"ANSIBLE_CALLBACKS_ENABLED": "bettercompute.bcd.pass_report"}
    return controller.playbook(str(SCRATCH), inventory, f"bettercompute.bcd.{name}", *arguments, variables=report)


def pass_report(played: Played) -> list[str]:
    """The lines at the end of the output: the table, and the reasons below it."""
    _unused, found, report = played.out.partition("PASS REPORT")
    expect(bool(found), "a pass report at the end", "none", played)
    return report.partition("\n")[2].strip().splitlines()


def new_lines(played: Played, told: set[str]) -> str:
    """The table, and of the reasons those that were not told yet; `told` grows by them."""
    lines = pass_report(played)
    table, reasons = lines[: len(HOSTS) + 1], lines[len(HOSTS) + 1 :]
    fresh = [line for line in reasons if line not in told]
    told.update(reasons)
    same = len(reasons) - len(fresh)
    return "\n".join([*table, *fresh, *([f"({same} reasons and notes as before)"] if same else [])])


def expect(holds: bool, wanted: object, seen: object, played: Played) -> None:
    """Stop the demo, with all of the output, unless it holds."""
    if not holds:
        raise Surprise(f"{played.out}\n{played.err}\nexpected: {wanted}\nseen:     {seen}")


def check(played: Played) -> dict[str, str]:
    """Hold a pass to what HOSTS expects; returns by host what has changed there."""
    recap = {name: tuple(map(int, counts)) for name, *counts in RECAP.findall(played.out)}
    rows = {row[0]: row for row in (re.split(r" {2,}", line) for line in pass_report(played))}
    changed = {}
    for name, host in HOSTS.items():
        wanted = (f"{name}-01", host.state, host.waits, host.failed)
        _unused, state, changed[name], waits, failed = rows.get(wanted[0], ["", "", "", "", ""])
        expect((wanted[0], state, waits, failed) == wanted, wanted, rows.get(wanted[0]), played)
        failures = (0, int(host.failed != "-"))
        expect(recap[wanted[0]][1:] == failures, f"{wanted[0]}: unreachable, failed {failures}", recap, played)
        if host.failed == "-":  # Ansible counts no change in a task that failed
            expect(bool(recap[wanted[0]][0]) == (changed[name] != "-"), "the recap to say the same", recap, played)
    expect(played.rc == 2, "exit status 2, as a setting was refused", played.rc, played)
    return changed


def attack(plane: pki.ControlPlane, inventory: str) -> str:
    """Give a pinned host its spec with another value under the same signature; returns what the host says to that.

    As who took over the controller would: with the right to do anything as root there, and without the signer's key.
    """
    name = next(name for name, host in HOSTS.items() if host.pinned)
    spec = signed(plane, name)
    body = base64.b64decode(spec["body"]).replace(rb'"vm.swappiness\":10', rb'"vm.swappiness\":99')
    edited = {**spec, "body": base64.b64encode(body).decode()}
    before = SimulatedHost(tree(name)).changes()
    given = json.dumps({"bcd_converge_signed_spec": edited})
    played = play(inventory, "converge", "--limit", f"{name}-01", "-e", given)
    host = SimulatedHost(tree(name))
    expect(played.rc == 2 and host.changes() == before, "a refusal, and no change", host.changes(), played)
    expect(host.read("/proc/sys/vm/swappiness") == "10\n", "vm.swappiness 10", "another", played)
    lines = [line for line in pass_report(played) if line.startswith(f"{name}-01: ")]
    expect(len(lines) == 1 and "does not verify" in lines[0], "one reason, the signature", lines, played)
    return lines[0]


def show(title: str, text: str) -> None:
    """A heading and what belongs to it."""
    print(f"\n{title}\n{'-' * len(title)}\n{text}", flush=True)


def demo() -> None:
    """The show."""
    print(mode.sentence())
    show("The fleet", "\n".join(f"{name}-01".ljust(17) + host.what for name, host in HOSTS.items()))
    plane = pki.ControlPlane()
    inventory = build(plane)
    told: set[str] = set()
    first = play(inventory, "converge")
    changed = check(first)
    show("First pass: bettercompute.bcd.converge", new_lines(first, told))
    expect(all(units != "-" for units in changed.values()), "changes on every host", changed, first)

    second = play(inventory, "converge")
    changed = check(second)
    show("Second pass: nothing changes, and it still says what it waits for", new_lines(second, told))
    expect(set(changed.values()) == {"-"}, "no change anywhere", changed, second)

    show("A signed spec that somebody edited is refused, and changes nothing", attack(plane, inventory))

    planned = play(inventory, "plan")
    check(planned)
    show("Plan: bettercompute.bcd.plan finds no drift, and writes the fleet report", new_lines(planned, told))
    report = SCRATCH / "bcd-report"
    summary = json.loads((report / "fleet.json").read_text(encoding="utf-8"))["summary"]
    states = [host.state for host in HOSTS.values()]
    wanted: dict[str, Any] = {state: states.count(state) for state in ("converged", "progressing", "failed")}
    wanted.update(hosts=len(HOSTS), unreachable=0, unknown=0)
    wanted.update(drifted=0, failing=sum(host.failed != "-" for host in HOSTS.values()))
    wanted.update(reboot_required=sum(host.waits == REBOOT for host in HOSTS.values()), reboot_later=0)
    wanted.update(pools={})  # the demo's hosts are in none
    expect(summary == wanted, wanted, summary, planned)
    print(f"\nThe refused setting is part of the show. The fleet report:\n{report / 'fleet.html'}")


def main(argv: list[str]) -> int:
    """The command."""
    if argv:
        print(__doc__, file=sys.stderr)
        return 64
    SCRATCH.parent.mkdir(exist_ok=True)
    with (SCRATCH.parent / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print(f"demo: another one runs in {SCRATCH}: wait for its end", file=sys.stderr)
            return 1
        return _told()


def _told() -> int:
    try:
        demo()
    except Surprise as surprise:
        print(surprise, file=sys.stderr)
        print("demo: it did not go as it must", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
