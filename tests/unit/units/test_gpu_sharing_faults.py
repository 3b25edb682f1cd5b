# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fault at each program that gpu-sharing runs: no pass converges on what is not so, and the next puts it right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.gpu_sharing import UNIT
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Fault, Machine
from tests.unit.promises import go

FILE = "/etc/systemd/system/bcd-mps.service"
PIPE = "/run/nvidia-mps"
BEFORE = {"mode": "mps", "replicas": 2}
MPS = {"mode": "mps", "replicas": 8}
TIMESLICE = {"mode": "timeslice"}

NO_DRIVER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure ...\n\n"
QUERIES = (
    Fault("", do="hang"),
    Fault("", rc=2, text='Field "compute_mode" is not a valid field to query.\n\n'),
    Fault("", rc=4, text="Failed to initialize NVML: Insufficient Permissions\n"),
    Fault("", rc=6, text="No devices were found\n"),
    Fault("", rc=9, text=NO_DRIVER),
    Fault("", rc=12, text="NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"),
    Fault("", rc=15, text="Failed to initialize NVML: GPU is lost\n"),
    Fault("", rc=17, text="Failed to initialize NVML: GPU access blocked by the operating system\n"),
    Fault(
        "", rc=18, text="Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.163\n"
    ),
    Fault("", rc=255, text="Failed to initialize NVML: Unknown Error\n"),
    Fault("", rc=0, text="0, GPU-00000000-0000-4000-8000-000000000000\n"),
    Fault("", rc=139),
)
SETTERS = (
    Fault("", do="hang"),
    Fault("", do="lie"),
    Fault("", rc=4, text="Unable to set the compute mode for GPU 00000000:17:00.0: Insufficient Permissions\n"),
    Fault("", rc=6, text="No devices were found\n"),
    Fault("", rc=9, text=NO_DRIVER),
    Fault(
        "",
        rc=0,
        text="Unable to set the compute mode for GPU 00000000:17:00.0: Not Supported\n"
        "Treating as warning and moving on.\nAll done.\n",
    ),
)
CONTROLS = (
    Fault("", do="hang"),
    Fault("", do="lie"),
    Fault("", rc=1, text="Cannot find MPS control daemon process\n"),
    Fault("", rc=1, text="An instance of this daemon is already running\n"),
    Fault("", rc=0, text=""),
    Fault("", rc=0, text="100.0\n"),
    Fault("", rc=127, text=""),
)


class Case(NamedTuple):
    """A pass: from a host to settings."""

    name: str
    before: dict[str, Any] | None
    settings: dict[str, Any] | None

    def host(self) -> GpuHost:
        host = gpu_host(Machine.from_products(["L40S", "T4"]))
        if self.before:
            assert go(UNIT, host, self.before).state == "converged"
        host.machine.calls.clear()
        return host


CASES = (
    Case("first", None, MPS),
    Case("changed", BEFORE, MPS),
    Case("sliced", BEFORE, TIMESLICE),
    Case("gone", BEFORE, None),
)


def is_so(host: GpuHost, settings: dict[str, Any] | None) -> bool:
    """Whether the machine shows what the settings ask for: by the model's state, not by what its programs print."""
    machine = host.machine
    modes = {card.compute_mode for card in machine.cards}
    active = host.services.state.get("bcd-mps.service") == "active"
    if settings is None or settings["mode"] != "mps":
        return (modes, active, host.text(FILE), machine.mps) == ({"DEFAULT"}, False, None, {})
    daemon = machine.mps.get(PIPE, {})
    limits = {str(at): f"{card.kind.memory_mib // 8}M" for at, card in enumerate(machine.cards)}
    right = (daemon.get("percentage"), daemon.get("limits")) == ("12.0", limits)
    return active and right and modes == {"EXCLUSIVE_PROCESS"}


def is_loaded(host: GpuHost) -> bool:
    """Whether the manager runs what our file says; one that was removed is nothing that could run."""
    return host.text(FILE) is None or host.services.loaded.get("bcd-mps.service") == host.text(FILE)


def faults() -> list[Any]:
    """Every program of an undisturbed pass, once, with each fault of its kind."""
    found = []
    for case in CASES[:-1]:  # a removal runs what the end of the daemon runs
        host = case.host()
        go(UNIT, host, case.settings)
        calls = dict.fromkeys(" ".join(words) for words in host.machine.calls)
        for call in calls:
            kinds = CONTROLS if "mps-control" in call else SETTERS if " -c " in f" {call}" else QUERIES
            for fault in kinds:
                what = fault.do if fault.do != "say" else f"{fault.rc} {fault.text[:30]!r}"
                found.append(pytest.param(case, call, fault, id=f"{case.name}: {call}: {what}"))
    return found


@pytest.mark.parametrize(("case", "call", "fault"), faults())
def test_a_fault_of_a_program_is_never_taken_for_success(case: Case, call: str, fault: Fault) -> None:
    host = case.host()
    host.machine.faults.append(Fault(call, fault.do, fault.rc, fault.text))
    outcome = go(UNIT, host, case.settings)
    assert is_so(host, case.settings) or outcome.state != "converged", outcome
    assert outcome.failure is None or outcome.failure.retryable, outcome.failure
    host.machine.faults.clear()
    again = go(UNIT, host, case.settings)
    assert (again.state, again.failure, is_so(host, case.settings)) == ("converged", None, True), again
    assert go(UNIT, host, case.settings).changed is False


def test_the_pass_asks_what_is_struck_here() -> None:
    """So that a program which the unit begins to run is not left out by mistake."""
    names = [param.id or "" for param in faults()]
    for words in (
        "--query-gpu",
        "--query-compute-apps",
        "-c EXCLUSIVE_PROCESS",
        "-c DEFAULT",
        "nvidia-cuda-mps-control -d",
    ):
        assert any(words in name for name in names), words
    for words in ("get_default_active", "get_default_device", "set_default_active", "set_default_device", "quit"):
        assert any(words in name for name in names), words


Systemctl = Callable[[Any, tuple[str, ...]], Answer]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("verb", ["enable", "daemon-reload", "start", "restart", "stop", "is-active", "show"])
@pytest.mark.parametrize("kind", ["lie", "fail", "hang"])
def test_a_fault_of_systemctl_is_never_taken_for_success(case: Case, verb: str, kind: str) -> None:
    host = case.host()
    real: Systemctl = host.programs["systemctl"]

    def broken(seen: Any, argv: tuple[str, ...]) -> Answer:
        if argv[1] != verb:
            return real(seen, argv)
        if kind == "hang":
            raise StepFailed(f"{' '.join(argv)} did not end within 60 seconds: see what it waits for")
        return Answer(0, "", "") if kind == "lie" else Answer(1, "", "Failed to connect to bus: Connection refused\n")

    host.programs["systemctl"] = broken
    outcome = go(UNIT, host, case.settings)
    shows = is_so(host, case.settings) and is_loaded(host)
    assert shows or outcome.state != "converged", outcome
    host.programs["systemctl"] = real
    again = go(UNIT, host, case.settings)
    assert (again.state, again.failure, is_so(host, case.settings)) == ("converged", None, True), again
    assert is_loaded(host)
    assert go(UNIT, host, case.settings).changed is False
