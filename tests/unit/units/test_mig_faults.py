# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-layout while nvidia-smi fails, hangs and lies at each of its calls, and while passes are killed.

No pass says converged when the GPUs do not show the layout, and the next one without the fault converges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Fault, Machine
from tests.unit import promises

pytestmark = pytest.mark.exhaustive

SERVICE = "/etc/systemd/system/bcd-mig.service"


class Case(NamedTuple):
    """A host as it is before, its settings, and what its GPUs are to show."""

    name: str
    host: Callable[[], GpuHost]
    settings: dict[str, Any]
    shown: list[list[str]]
    modes: list[bool]


def _host(
    *products: str, made: tuple[tuple[int, str], ...] = (), pending: tuple[int, ...] = (), **more: Any
) -> Callable[[], GpuHost]:
    def fresh() -> GpuHost:
        machine = Machine.from_products(products, **more)
        for gpu in pending:
            machine.cards[gpu].mig_pending = True
        for gpu, profiles in made:
            machine.cards[gpu].mig = machine.cards[gpu].mig_pending = True
            assert machine.smi(("nvidia-smi", "mig", "-i", str(gpu), "-cgi", profiles, "-C"))[0] == 0
        machine.calls.clear()
        return gpu_host(machine)

    return fresh


CASES = (
    Case(
        "two fresh GPUs",
        _host("H100-80GB", "H100-80GB"),
        {"layout": "3g.40gb,1g.10gb:4"},
        [["1g.10gb"] * 4 + ["3g.40gb"]] * 2,
        [True, True],
    ),
    Case(
        "instances that are in the way, and one that stays",
        _host("H100-80GB", made=((0, "3g.40gb,2g.20gb,1g.10gb,1g.10gb"),), driver="535.261.03"),
        {"layout": "3g.40gb,1g.10gb:2,1g.20gb"},
        [["1g.10gb", "1g.10gb", "1g.20gb", "3g.40gb"]],
        [True],
    ),
    Case(
        "a reset of one of two, with its holders",
        _host("A100-40GB", "A100-40GB", clients=["nvidia-persistenced", "nv-hostengine"], drm=True),
        {"gpus": [{"select": {"index": 1}, "layout": "4g.20gb,3g.20gb"}]},
        [[], ["3g.20gb", "4g.20gb"]],
        [False, True],
    ),
    Case(
        "one that waits for its reset, and one whose mode is still to be set",
        _host("A30-24GB", "A30-24GB", pending=(0,), clients=["nvidia-persistenced"], drm=True, nvml={"migact": 19}),
        {"layout": "2g.12gb:2"},
        [["2g.12gb"] * 2] * 2,
        [True, True],
    ),
    Case(
        "compute slices",
        _host("H100-80GB", made=((0, "3g.40gb"),)),
        {"layout": "1c.3g.40gb:2,2c.4g.40gb:2"},
        [["3g.40gb: 1c 1c", "4g.40gb: 2c 2c"]],
        [True],
    ),
    Case("off", _host("A30-24GB", made=((0, "2g.12gb,1g.6gb"),)), {"layout": "off"}, [[]], [False]),
)

NO_DRIVER = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
SAID = (
    (9, NO_DRIVER + "NVIDIA driver is installed and running.\n\n"),
    (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n"),
    (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.163\n"),
    (255, "Failed to initialize NVML: Unknown Error\n"),
    (4, "Failed to initialize NVML: Insufficient Permissions\n"),
    (15, "Unable to determine the device handle for GPU0: 0000:17:00.0: GPU is lost.\n"),
    (17, "Failed to initialize NVML: GPU access blocked by the operating system\n"),
    (6, "No devices were found\n"),
    (0, "No devices found.\n"),
    (6, "No MIG-enabled devices found.\n"),
    (0, "No MIG-enabled devices found.\n"),
    (6, "No MIG-supported devices found.\n"),
    (6, "No GPU instances found: Not Found\n"),
    (4, "No GPU instances found: Insufficient Permissions\n"),
    (2, "Failed to create GPU instances: Invalid Argument\n"),
    (3, "Failed to create GPU instances: Not Supported\n"),
    (19, "Failed to destroy GPU instances: In use by another client\n"),
    (23, "Failed to create GPU instances: Insufficient Resources\n"),
    (255, "The following GPUs could not be reset:\n  GPU 00000000:17:00.0: In use by another client\n"),
    (0, "Resetting GPU 00000000:17:00.0 is not supported.\n"),
    (0, "Unable to enable MIG Mode for GPU 00000000:17:00.0: Not Supported\nTreating as warning and moving on.\n"),
    (0, ""),
    (127, ""),
    (-9, ""),
)


def go(host: GpuHost, settings: dict[str, Any]) -> Outcome:
    return promises.go(UNIT, host, settings)


def shows(case: Case, host: GpuHost) -> bool:
    machine = host.machine
    found = [sorted(machine.instances(at)) for at in range(len(machine.cards))]
    return found == [sorted(one) for one in case.shown] and [card.mig for card in machine.cards] == case.modes


def calls_of(case: Case) -> list[tuple[str, int]]:
    """Every call of nvidia-smi that a pass makes: its words, and how many equal ones came before it."""
    host = case.host()
    assert go(host, case.settings).state == "converged"
    assert shows(case, host)
    seen: Counter[str] = Counter()
    found = []
    for words in host.machine.calls:
        line = " ".join(words)
        found.append((line, seen[line]))
        seen[line] += 1
    return found


def strike(case: Case, fault: Fault) -> None:
    """A pass with the fault, then one without it."""
    host = case.host()
    host.machine.faults.append(fault)
    struck = go(host, case.settings)
    where = f"{case.name}: {fault}"
    assert struck.state != "converged" or shows(case, host), where
    if struck.failure is not None:
        assert struck.failure.reason == "StepFailed", f"{where}: {struck.failure}"
        assert "fault of the collection" not in struck.failure.message, f"{where}: {struck.failure}"
    host.machine.faults.clear()
    after = go(host, case.settings)
    if any(wait.reason == "RebootRequired" for wait in after.pending) and "--gpu-reset" in fault.match:
        host.boot()
        after = go(host, case.settings)
    assert (after.state, shows(case, host)) == ("converged", True), f"{where}: {after.failure} {after.pending}"
    assert go(host, case.settings).changed is False, where
    assert {"nvidia-persistenced"} & set(case.host().machine.clients) <= set(host.machine.clients) or _booted(host)


def _booted(host: GpuHost) -> bool:
    return host.boot_id() != "first-boot"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_answer_of_nvidia_smi_makes_a_layout_that_is_not_there(case: Case) -> None:
    for number, (line, before) in enumerate(calls_of(case)):
        for rc, text in SAID[number % 2 :: 2]:  # each is said to each kind of call, in one case or the other
            strike(case, Fault(line, rc=rc, text=text, after=before, times=1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_call_that_always_fails_hangs_or_lies(case: Case) -> None:
    for line in dict.fromkeys(line for line, _before in calls_of(case)):
        strike(case, Fault(line, do="hang"))
        strike(case, Fault(line, do="lie"))
        strike(case, Fault(line, rc=255, text="Unknown Error\n"))
        strike(case, Fault(line, do="done", rc=255, text="Unknown Error\n"))  # done, and said not to be


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_single_hang_or_lie(case: Case) -> None:
    for line, before in calls_of(case):
        strike(case, Fault(line, do="hang", after=before, times=1))
        strike(case, Fault(line, do="lie", after=before, times=1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pass_killed_anywhere_is_finished_by_the_next(case: Case) -> None:
    def shown(host: Any) -> object:
        machine = host.machine
        return (
            [machine.instances(at) for at in range(len(machine.cards))],
            [card.mig for card in machine.cards],
            sorted(machine.clients),
            machine.drm,
            host.text(SERVICE),
        )

    assert promises.a_kill_loses_nothing(UNIT, case.host, case.settings, shown) > 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_check_mode_is_truthful(case: Case) -> None:
    host = case.host()
    promises.check_is_truthful(UNIT, lambda: host, case.settings)
    promises.second_pass_is_quiet(UNIT, host, case.settings)


def test_a_creation_that_ends_half_way_is_completed() -> None:
    """rc 23 leaves the instances before the one that failed; the next pass makes the rest beside them."""
    host = _host("H100-80GB")()
    card = host.machine.cards[0]
    made = host.machine.create_gi

    def two_only(*given: Any) -> Any:
        if len(card.instances) >= 2:
            host.machine.nvml["cgi"] = 23
        return made(*given)

    host.machine.create_gi = two_only  # type: ignore[method-assign,assignment]
    failed = go(host, {"layout": "1g.10gb:5"})
    assert failed.failure is not None
    assert "Insufficient Resources" in failed.failure.message
    assert len(card.instances) == 2
    first = list(card.instances)
    host.machine.create_gi = made  # type: ignore[method-assign]
    host.machine.nvml.clear()
    assert go(host, {"layout": "1g.10gb:5"}).state == "converged"
    assert card.instances[:2] == first
    assert len(card.instances) == 5


def test_an_instance_without_its_compute_instance_is_completed() -> None:
    host = _host("H100-80GB")()
    host.machine.nvml["cci"] = 23
    assert go(host, {"layout": "3g.40gb"}).failure is not None
    assert host.machine.instances(0) == ["3g.40gb: none"]
    host.machine.nvml.clear()
    assert go(host, {"layout": "3g.40gb"}).state == "converged"
    assert host.machine.instances(0) == ["3g.40gb"]
    assert not [call for call in host.calls if "-dgi" in call]


def test_one_dead_gpu_does_not_stop_the_others() -> None:
    for dead in ("fields", "handle"):
        host = _host("H100-80GB", "H100-80GB", "H100-80GB")()
        host.machine.cards[1].dead = dead
        done = go(host, {"layout": "7g.80gb"})
        assert done.failure is not None
        assert (done.state, done.failure.reason) == ("progressing", "StepFailed")
        assert "GPU is lost" in done.failure.message
        assert [host.machine.instances(at) for at in (0, 2)] == [["7g.80gb"]] * 2, dead


def test_a_gpu_that_shows_no_mode_until_it_is_reset_waits_for_a_reboot() -> None:
    host = _host("A100-40GB")()
    host.machine.nvml["nvmlDeviceGetMigMode"] = 16
    done = go(host, {"layout": "7g.40gb"})
    assert [wait.reason for wait in done.pending] == ["RebootRequired"]
    assert "[GPU requires reset]" in done.pending[0].message
    assert "reboot the node" in done.pending[0].message


def cuts(text: str) -> list[str]:
    """A listing as it is when its last rows are missing, and each row that is there is whole."""
    lines = text.splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if line.startswith("|==")), -1)  # rows follow the rule
    borders = [at for at, line in enumerate(lines) if at > first and (first < 0 or line.startswith("+--"))]
    return ["".join(lines[: at + 1]) for at in borders[:-1]]


@pytest.mark.parametrize("layout", ["1g.10gb:2", "7g.80gb", "3g.40gb,1g.20gb", "all-1g.10gb"])
@pytest.mark.parametrize("listing", ["-lgip", "-lgipp"])
def test_nothing_is_refused_or_destroyed_for_a_listing_that_is_cut_off(listing: str, layout: str) -> None:
    """An H100 offers seven profiles: that one listing still has one tells that the other lacks it."""
    fresh = _host("H100-80GB", made=((0, "1g.10gb,1g.10gb,1g.10gb"),))
    whole = fresh().machine.smi(("nvidia-smi", "mig", listing))[1]
    assert len(cuts(whole)) == 6
    for text in cuts(whole):
        host = fresh()
        host.machine.faults.append(Fault(f"mig {listing}", text=text, times=1))
        done = go(host, {"layout": layout})
        assert done.failure is not None, text
        assert (done.failure.reason, done.failure.retryable, done.state) == ("StepFailed", True, "progressing"), text
        assert host.machine.instances(0) == ["1g.10gb"] * 3
        assert go(host, {"layout": layout}).state == "converged"


def test_a_layout_that_both_listings_have_no_profile_for_is_refused() -> None:
    done = go(_host("H100-80GB")(), {"layout": "1g.5gb"})
    assert done.failure is not None
    assert done.failure.reason == "Refused"
