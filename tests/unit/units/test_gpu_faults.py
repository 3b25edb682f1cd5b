# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault at each call of NVIDIA's programs in a pass over all GPU units: nothing is called converged that is not.

The calls are those that a pass really makes, each struck in its place: with an exit status and a text of the real
program, with a hang, with a lie (exit 0, the usual text, nothing done). What a unit then calls converged, the machine
must show; and the next pass, without the fault, must bring all of them there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from tests.gpu import tools
from tests.gpu.fake import GpuHost
from tests.gpu.model import Fault, Machine
from tests.unit.container_host import ContainerHost

pytestmark = pytest.mark.exhaustive

SPEC = "/etc/cdi/nvidia.json"
HANG, LIE = Fault("", do="hang"), Fault("", do="lie")
IN_USE = "In use by another client\n"
# What the real program prints and exits with when it fails, whatever it was asked.
SAYINGS = (
    Fault("", rc=255, text="Failed to initialize NVML: Unknown Error\n"),
    Fault("", rc=15, text="Failed to initialize NVML: GPU is lost\n"),
    Fault("", rc=9, text="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n\n"),
    Fault("", rc=0),
)
MORE = (
    Fault("", rc=4, text="Failed to initialize NVML: Insufficient Permissions\n"),
    Fault("", rc=18, text="Failed to initialize NVML: Driver/library version mismatch\n"),
    Fault("", rc=139),
)
# What only a command that changes something says: refused, or passed over with an exit status of success.
REFUSALS = (
    Fault("", rc=19, text=f"Unable to do that: {IN_USE}Terminating early due to previous errors.\n"),
    Fault("", rc=23, text="Failed to create GPU instances: Insufficient Resources\n"),
    Fault("", rc=0, text="No MIG-enabled devices found.\n"),
    Fault("", rc=0, text="Unable to enable MIG Mode: Not Supported\nTreating as warning and moving on.\nAll done.\n"),
    Fault("", do="done", rc=255, text="Failed to initialize NVML: Unknown Error\n"),
)
CHANGES = (
    "-pl",
    "-e",
    "-mig",
    "-c",
    "-r",
    "--gpu-reset",
    "-cgi",
    "-cci",
    "-dgi",
    "-dci",
    "-d",
    "set_",
    "quit",
    "generate",
    "create-dev-char-symlinks",
)


class Case(NamedTuple):
    """A machine, its section, and what it shows when a unit is converged."""

    machine: Callable[[], Machine]
    units: dict[str, Any]
    truths: dict[str, Callable[[GpuHost], bool]]


def described(host: GpuHost) -> bool:
    """Whether the vendor's specification names what nvidia-ctk would name now, and each device node has its link."""
    linked = all(
        host.links.get(link) == node for link, node in tools.char_links(host.machine).items() if host.exists(node)
    )
    spec = json.loads(host.text(SPEC) or "{}")
    rc, out, _err = tools.ctk(host.machine, ("cdi", "generate", "--device-name-strategy=uuid"))
    wanted = {one["name"] for one in json.loads(out)["devices"]} if rc == 0 else set()
    return linked and {one["name"] for one in spec.get("devices", ())} == wanted


def hoppers() -> Machine:
    return Machine.from_products(["H100-80GB"] * 2, "550.163.01")


def amperes() -> Machine:
    """One with instances that have to go, one without; their mode changes by a reset."""
    machine = Machine.from_products(["A100-40GB"] * 2, "535.261.03", clients=["nvidia-persistenced"])
    machine.cards[0].mig = machine.cards[0].mig_pending = True
    machine.smi(("mig", "-i", "0", "-cgi", "3g.20gb,3g.20gb", "-C"))
    machine.calls.clear()
    return machine


def shared(host: GpuHost) -> bool:
    """Whether the daemon runs with a quarter for each client, on the GPU that has no MIG."""
    if len(host.machine.mps) != 1:
        return False
    [daemon] = host.machine.mps.values()
    second = host.machine.cards[1]
    return (
        daemon["percentage"] == "25.0"
        and daemon["visible"] == [second.uuid]
        and second.compute_mode == "EXCLUSIVE_PROCESS"
        and host.machine.cards[0].compute_mode == "DEFAULT"
    )


def layouts(*wanted: list[str]) -> Callable[[GpuHost], bool]:
    """Whether each GPU has these instances, and MIG mode only where it has some."""

    def right(host: GpuHost) -> bool:
        cards = host.machine.cards
        return all(
            (card.mig, host.machine.instances(index)) == (bool(wanted[index]), wanted[index])
            for index, card in enumerate(cards)
        )

    return right


CASES = {
    "hopper": Case(
        hoppers,
        {
            "gpu-settings": {"powerLimitWatts": 500, "gpus": [{"select": {"index": 1}, "powerLimitWatts": 400}]},
            "mig-layout": {
                "layout": "off",
                "gpus": [{"select": {"index": 0}, "layout": "1c.3g.40gb:1,2c.3g.40gb:1,1g.10gb+me,1g.10gb"}],
            },
            "gpu-sharing": {"mode": "mps", "replicas": 4},
            "container-toolkit": {},
        },
        {
            "gpu-settings": lambda host: [card.power for card in host.machine.cards] == [500, 400],
            "mig-layout": layouts(["1g.10gb", "1g.10gb+me", "3g.40gb: 2c 1c"], []),
            "gpu-sharing": shared,
            "container-toolkit": described,
        },
    ),
    "ampere": Case(
        amperes,
        {"mig-layout": {"layout": "2g.10gb:2,3g.20gb"}, "container-toolkit": {}},
        {
            "mig-layout": layouts(*[["2g.10gb", "2g.10gb", "3g.20gb"]] * 2),
            "container-toolkit": described,
        },
    ),
}


def passed(host: GpuHost, units: dict[str, Any]) -> dict[str, Any]:
    """A pass over the section; the outcome of each unit."""
    records = Records(host)
    return take_turns(section.turns(units, {*records.applied()}), catalog.unit, host, records, "gpu")


def host_of(case: Case) -> GpuHost:
    return ContainerHost(case.machine())


def untrue(case: Case, host: GpuHost, outcomes: dict[str, Any]) -> list[str]:
    """The units that say they are converged, and are not."""
    return [
        name
        for name, outcome in outcomes.items()
        if outcome.state == "converged" and name in case.truths and not case.truths[name](host)
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_pass_without_faults_converges(name: str) -> None:
    case = CASES[name]
    host = host_of(case)
    outcomes = passed(host, case.units)
    assert {unit: outcome.state for unit, outcome in outcomes.items()} == dict.fromkeys(case.units, "converged")
    assert [unit for unit, truth in case.truths.items() if not truth(host)] == []
    assert [unit for unit, outcome in passed(host, case.units).items() if outcome.changed] == []


@cache
def calls_of(name: str) -> tuple[tuple[str, ...], ...]:
    """The calls of a pass and of the quiet one behind it."""
    case = CASES[name]
    host = host_of(case)
    passed(host, case.units)
    passed(host, case.units)
    return tuple(host.machine.calls)


def faults_at(words: tuple[str, ...]) -> tuple[Fault, ...]:
    """What may go wrong at this call."""
    changing = any(word.startswith(CHANGES) for word in words)
    return (HANG, LIE, *SAYINGS, *MORE, *REFUSALS) if changing else (HANG, *SAYINGS)


PLACES = [(name, number) for name in CASES for number in range(len(calls_of(name)))]


@pytest.mark.parametrize(("name", "number"), PLACES)
def test_a_fault_at_any_call_makes_nothing_converged_that_is_not(name: str, number: int) -> None:
    case = CASES[name]
    words = calls_of(name)[number]
    for kind in faults_at(words):
        host = host_of(case)
        fault = Fault("", kind.do, kind.rc, kind.text, after=number, times=1)
        host.machine.faults = [fault]
        outcomes = passed(host, case.units)
        told = f"{' '.join(words)}: {kind.do} {kind.rc} {kind.text!r}"
        assert untrue(case, host, outcomes) == [], told
        if fault.seen <= number:  # it is a call of the next pass
            again = passed(host, case.units)
            assert untrue(case, host, again) == [], told
        assert fault.seen > number, told
        host.machine.faults = []
        clean = passed(host, case.units)
        if "--gpu-reset" in words and any(
            wait.reason == "RebootRequired" for one in clean.values() for wait in one.pending
        ):
            host.boot()  # a reset that failed is not tried again in the same boot, and nothing else needs one
            clean = passed(host, case.units)
        assert {unit: outcome.state for unit, outcome in clean.items()} == dict.fromkeys(case.units, "converged"), (
            told,
            [(outcome.unit, outcome.failure, outcome.pending) for outcome in clean.values()],
        )
        assert [unit for unit, truth in case.truths.items() if not truth(host)] == [], told
        assert [unit for unit, outcome in passed(host, case.units).items() if outcome.changed] == [], told
