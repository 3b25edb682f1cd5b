# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-layout over simulated machines: what a pass changes, what it keeps, and what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotKnownYet
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.runner import Goal, converge
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import mig_goal
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_placement import place
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.mig_state import QUERIED
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT
from tests.gpu import cards
from tests.gpu.model import Fault
from tests.unit import promises
from tests.unit.mig_hosts import A30, ALL, H100, L40S, RTX, SERVICE, commands, go, host_of, made, with_parts


def test_two_gpus_get_seven_instances_each() -> None:
    host = host_of(H100, H100)
    done = promises.check_is_truthful(UNIT, lambda: host, ALL)
    assert (done.state, done.changed, done.failure, done.pending) == ("converged", True, None, ())
    assert [host.machine.instances(gpu) for gpu in (0, 1)] == [["1g.10gb"] * 7] * 2
    assert {step.disruption for step in done.steps if "GPU " in step.action} == {"gpu"}
    promises.second_pass_is_quiet(UNIT, host, ALL)


def test_a_gpu_that_shows_its_layout_is_untouched() -> None:
    host = host_of(H100, H100)
    made(host, 0, "3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb")
    before = host.machine.cards[0].instances
    done = go(host, {"layout": "2g.20gb,1g.10gb:2,3g.40gb"})
    assert done.state == "converged"
    assert host.machine.cards[0].instances == before
    assert host.machine.instances(1) == ["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]
    uuid = host.machine.cards[0].uuid
    assert [call for call in commands(host) if uuid in call] == []


def test_what_the_new_layout_has_too_is_kept() -> None:
    host = host_of(H100)
    made(host, 0, "3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb")
    kept = {gi.id: gi.profile for gi in host.machine.cards[0].instances if gi.profile == 9}
    done = go(host, {"layout": "3g.40gb,1g.10gb:4"})
    assert done.state == "converged"
    assert host.machine.instances(0) == ["1g.10gb"] * 4 + ["3g.40gb"]
    assert {gi.id: gi.profile for gi in host.machine.cards[0].instances if gi.profile == 9} == kept
    destroyed = [call for call in commands(host) if "-dgi" in call]
    assert len(destroyed) == 1
    assert destroyed[0].endswith("-dgi -gi 3")


def test_leftovers_in_the_way_are_cleared_and_named() -> None:
    """Three 1g.10gb at 0, 1 and 5: a 3g.40gb needs 4 to 7 (or 0 to 3)."""
    host = host_of(H100)
    card = host.machine.cards[0]
    card.mig = card.mig_pending = True
    for start in (0, 1, 5):
        assert host.machine.smi(("nvidia-smi", "mig", "-i", "0", "-cgi", f"1g.10gb:{start}", "-C"))[0] == 0
    done = go(host, {"layout": "3g.40gb,1g.10gb:3"})
    assert done.state == "converged"
    assert any("fits only after clearing gi 12" in step.action for step in done.steps)
    assert {gi.start for gi in card.instances} >= {0, 1, 4}
    assert [call.split("-dgi ")[1] for call in commands(host) if "-dgi" in call] == ["-gi 12"]


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        ("3g.40gb:2,1g.10gb", "has no room for 3g.40gb:2,1g.10gb"),  # 7 slices, and 3g takes half of the memory
        ("4g.40gb:2", "has no room for 4g.40gb:2"),
        ("1g.10gb+me:2", "has no room"),
        ("1g.5gb:7", "has no profile 1g.5gb"),  # of another product
        ("all-1g.5gb", "has no profile 1g.5gb"),
        ("1g.24gb+gfx", "has no profile 1g.24gb+gfx"),
    ],
)
def test_what_one_gpu_cannot_have_is_refused_before_anything_is_touched(layout: str, why: str) -> None:
    host = host_of(A30, H100)
    made(host, 1, "7g.80gb")
    done = go(host, {"gpus": [{"select": {"index": 0}, "layout": "all-1g.6gb"}], "layout": layout})
    assert (done.state, host.calls) == ("failed", [])
    assert done.failure is not None
    assert done.failure.reason == "Refused"
    assert why in done.failure.message
    assert host.machine.instances(1) == ["7g.80gb"]


def test_each_gpu_has_the_layout_of_the_first_selector_that_takes_it() -> None:
    host = host_of(H100, A30, H100, H100)
    last = host.machine.cards[3].uuid
    settings = {
        "layout": {"1g.10gb": 2},
        "gpus": [
            {"select": {"uuid": last}, "layout": "empty"},
            {"select": {"model": "*A30"}, "layout": "2g.12gb+1g.6gb:2"},
            {"select": {"pci": "0000:17:00.0"}, "layout": False},
        ],
    }
    done = promises.check_is_truthful(UNIT, lambda: host, settings)
    assert done.state == "converged"
    assert [host.machine.instances(gpu) for gpu in range(4)] == [
        [], ["1g.6gb", "1g.6gb", "2g.12gb"], ["1g.10gb", "1g.10gb"], [],
    ]  # fmt: skip
    assert [card.mig for card in host.machine.cards] == [False, True, True, True]


def test_a_selector_without_a_gpu_is_refused_once_nvidia_smi_answers() -> None:
    host = host_of(H100, L40S)
    uuids, pcis = [card.uuid for card in host.machine.cards], [card.pci for card in host.machine.cards]
    for select, why in (
        ({"index": 7}, "gpus[0].select (index 7) takes none of this host's GPUs, which have the indexes 0, 1: correct"),
        ({"model": "*A100*"}, "GPUs, which have the models NVIDIA H100 80GB HBM3, NVIDIA L40S: correct the settings"),
        ({"pci": "0000:99:00.0"}, f"GPUs, which have the PCI addresses {', '.join(pcis)}: correct the settings"),
        (
            {"uuid": f"GPU-{'0' * 8}-9999-4999-8999-{'9' * 12}"},
            f"GPUs, which have the UUIDs {', '.join(uuids)}: correct",
        ),
        ({"model": "*L40S*"}, "takes only GPUs without MIG, GPU 1 (NVIDIA L40S"),
    ):
        done = go(host, {"gpus": [{"select": select, "layout": "all-1g.10gb"}]})
        assert done.failure is not None
        assert (done.failure.reason, done.failure.retryable) == ("Refused", False)
        assert why in done.failure.message
    assert host.calls == []
    host.machine.unload()
    waits = go(host, {"gpus": [{"select": {"index": 7}, "layout": "all-1g.10gb"}]})
    assert (waits.state, [wait.reason for wait in waits.pending]) == ("progressing", ["NotReady"])


def test_gpus_without_mig_are_passed_over_with_a_note() -> None:
    host = host_of(L40S, H100)
    done = go(host, ALL)
    assert done.state == "converged"
    assert any("NVIDIA L40S" in note and "has no MIG" in note for note in done.notes)
    assert host.machine.instances(1) == ["1g.10gb"] * 7


def test_attributes_and_a_grid_of_twelve_units() -> None:
    host = host_of(RTX)
    settings = {"layout": "2g.48gb,1g.24gb+me,1g.24gb-me"}
    assert go(host, settings).state == "converged"
    assert sorted(host.machine.instances(0)) == ["1g.24gb+me", "1g.24gb-me", "2g.48gb"]
    assert go(host, {"layout": {"1g.24gb+gfx": 4}}).state == "converged"
    assert host.machine.instances(0) == ["1g.24gb+gfx"] * 4


def test_compute_slices_share_an_instance() -> None:
    host = host_of(H100)
    settings = {"layout": "2c.3g.40gb,1c.3g.40gb,1g.10gb:2"}
    done = promises.check_is_truthful(UNIT, lambda: host, settings)
    assert done.state == "converged"
    assert host.machine.instances(0) == ["1g.10gb", "1g.10gb", "3g.40gb: 2c 1c"]
    promises.second_pass_is_quiet(UNIT, host, settings)
    fewer = go(host, {"layout": "1c.3g.40gb,1g.10gb:2"})
    assert fewer.state == "converged"
    assert host.machine.instances(0) == ["1g.10gb", "1g.10gb", "3g.40gb: 1c"]
    assert not [call for call in commands(host)[-1:] if "-dgi" in call]
    whole = go(host, {"layout": "3g.40gb,1g.10gb:2"})
    assert (whole.state, host.machine.instances(0)) == ("converged", ["1g.10gb", "1g.10gb", "3g.40gb"])


def test_off_clears_the_gpu_and_turns_the_mode_off() -> None:
    host = host_of(H100)
    made(host, 0, "4g.40gb", "3g.40gb")
    done = promises.check_is_truthful(UNIT, lambda: host, {"layout": "off"})
    assert (done.state, host.machine.instances(0), host.machine.cards[0].mig) == ("converged", [], False)
    assert host.text(SERVICE) is None
    promises.second_pass_is_quiet(UNIT, host, {"layout": "off"})


def test_steps_on_gpus_are_held_back_by_max_disruption() -> None:
    host = host_of(H100)
    held = go(host, ALL, max_disruption="service")
    assert (held.state, [wait.reason for wait in held.pending]) == ("progressing", ["HeldBack"])
    assert commands(host) == []


# -- busy


def test_a_busy_gpu_is_left_alone_and_the_others_are_divided() -> None:
    host = host_of(H100, H100, H100)
    made(host, 1, "1g.10gb")
    host.machine.occupy(1, pid=4242, name="python3", gi=host.machine.cards[1].instances[0].id)
    hold = {"kind": "bcd.dev/gpu", "devices": [{"name": host.machine.cards[2].uuid}]}
    host.put("/etc/cdi/bcd-alloc7.json", json.dumps(hold))
    planned = go(host, {"layout": "7g.80gb"}, check=True)
    done = go(host, {"layout": "7g.80gb"})
    assert [wait.message for wait in planned.pending] == [wait.message for wait in done.pending]
    assert [host.machine.instances(gpu) for gpu in range(3)] == [["7g.80gb"], ["1g.10gb"], []]
    (wait,) = done.pending
    used, held = (host.machine.cards[gpu].uuid for gpu in (1, 2))
    assert (done.state, wait.reason) == ("progressing", "Busy")
    assert wait.message.startswith(
        f"mig-layout: {held} hold allocations and processes use {used}; they are repartitioned once those end: "
    )
    assert "process 4242 (python3)" in wait.message
    assert "alloc7" in wait.message
    assert go(host, {"layout": "7g.80gb"}).changed is False
    host.machine.free(1)
    host.files.pop("/etc/cdi/bcd-alloc7.json")
    after = go(host, {"layout": "7g.80gb"})
    assert (after.state, [host.machine.instances(gpu) for gpu in range(3)]) == ("converged", [["7g.80gb"]] * 3)


def test_of_a_gpu_that_only_a_process_uses_no_allocation_is_told() -> None:
    host = host_of(H100)
    host.machine.occupy(0, pid=4242, name="python3")
    (wait,) = go(host, {"layout": "7g.80gb"}).pending
    uuid = host.machine.cards[0].uuid
    assert wait.message.startswith(f"mig-layout: processes use {uuid}; they are repartitioned once those end: GPU 0 (")
    assert "allocation" not in wait.message


def test_gpus_that_only_allocations_have_hold_them() -> None:
    host = host_of(H100, H100)
    host.put("/etc/cdi/bcd-alloc7.json", "{")
    (wait,) = go(host, {"layout": "7g.80gb"}).pending
    uuids = ", ".join(card.uuid for card in host.machine.cards)
    assert wait.message.startswith(f"mig-layout: {uuids} hold allocations; they are repartitioned once those end")
    assert "processes use" not in wait.message


def test_a_busy_gpu_that_shows_its_layout_waits_for_nothing() -> None:
    host = host_of(H100)
    made(host, 0, "7g.80gb")
    host.machine.occupy(0, gi=0)
    assert go(host, {"layout": "7g.80gb"}).pending == ()


def test_the_layout_of_a_busy_gpu_is_refused_all_the_same() -> None:
    host = host_of(H100)
    host.machine.occupy(0)
    done = go(host, {"layout": "3g.40gb:3"})
    assert done.failure is not None
    assert done.failure.reason == "Refused"


# -- reading


@pytest.mark.parametrize(
    ("product", "layout"),
    [
        (H100, "3g.40gb,2g.20gb,1g.10gb:2"),
        (H100, "all-1g.20gb"),
        (H100, "4g.40gb,2c.3g.40gb,1c.3g.40gb"),
        (H100, "1c.7g.80gb:3,4c.7g.80gb"),
        (RTX, "1g.24gb+me,1g.24gb-me:3"),
        (A30, "off"),
        (A30, "empty"),
    ],
)
def test_what_is_gathered_can_be_given_back(product: str, layout: str) -> None:
    host = host_of(product)
    assert go(host, {"layout": layout}).state == "converged"
    assert UNIT.gather is not None
    seen = UNIT.gather(host)
    found = seen.found["gpus"]
    assert (seen.pending, [gpu["pending"] for gpu in found]) == ((), [None])
    card = host.machine.cards[0]
    assert [(gpu["uuid"], gpu["index"], gpu["name"]) for gpu in found] == [(card.uuid, 0, card.kind.name)]
    given = {"gpus": [{"select": {"uuid": gpu["uuid"]}, "layout": gpu["layout"]} for gpu in found]}
    assert go(host, given).steps == ()


def test_two_instances_of_one_slice_each_are_given_back_as_they_are() -> None:
    """By their names they could share one instance; they do not, and that is no difference."""
    host = host_of(H100)
    card = host.machine.cards[0]
    card.mig = card.mig_pending = True
    for _each in range(2):
        host.machine.smi(("nvidia-smi", "mig", "-i", "0", "-cgi", "3g.40gb"))
    for gi in card.instances:
        host.machine.smi(("nvidia-smi", "mig", "-i", "0", "-cci", "1c.3g.40gb", "-gi", str(gi.id)))
    assert UNIT.gather is not None
    (found,) = UNIT.gather(host).found["gpus"]
    assert found["layout"] == "1c.3g.40gb:2"
    calls = len(commands(host))
    assert go(host, {"layout": found["layout"]}).state == "converged"
    assert len(commands(host)) == calls


# -- check mode


def test_what_follows_a_new_layout_is_known_only_after_it() -> None:
    """The listing that a CDI spec follows, and that spec itself; not what gpu-settings asks, nor who computes."""
    host = host_of(H100)
    seen = PredictedHost(host)
    planned = converge(Goal(UNIT, ALL), seen, Records(seen))
    assert planned.changed
    for argv in (
        ("nvidia-smi", "-L"),
        ("nvidia-smi", "mig", "-lgi"),
        ("nvidia-ctk", "cdi", "generate", "--format=json"),
        ("nvidia-smi", f"--query-gpu={','.join(QUERIED)}", "--format=csv,noheader,nounits"),
    ):
        with pytest.raises(NotKnownYet, match="GPU 0"):
            seen.ask(argv)
    for argv in (
        ("nvidia-smi", "--query-gpu=index,uuid,pci.bus_id,name,power.limit", "--format=csv,noheader,nounits"),
        ("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name", "--format=csv,noheader"),
    ):
        assert seen.ask(argv).rc == 0


@pytest.mark.parametrize(
    ("layout", "listings"),
    [
        ("off", []),
        ("empty", ["mig -lgi"]),
        ("3g.40gb:2", ["mig -lgi", "-L"]),
        ("all-1g.10gb", ["mig -lgi", "-L", "mig -lgip"]),
        ("1c.3g.40gb:3,1g.10gb", ["mig -lgi", "-L", "mig -lci"]),
    ],
)
def test_a_host_whose_gpus_show_their_layouts_is_asked_little(layout: str, listings: list[str]) -> None:
    """Each listing once, of all GPUs, however many there are."""
    host = host_of(*[H100] * 8)
    settings = {"layout": layout}
    go(host, settings)
    host.asked.clear()
    assert go(host, settings).steps == ()
    assert [" ".join(argv).partition(" --")[0] for argv in host.asked] == [
        "nvidia-smi",
        *(f"nvidia-smi {listing}" for listing in listings),
        *(["systemctl show"] if listings else []),
    ]


def test_the_room_of_equal_gpus_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a pass looks and plans until all of them have their instances."""
    searches = []

    def search(*given: Any) -> Any:
        searches.append(given)
        return place(*given)

    monkeypatch.setattr(mig_goal, "place", search)
    mig_goal._best.cache_clear()
    host = host_of(*[H100] * 4)
    assert go(host, {"layout": "3g.40gb,2g.20gb,1g.10gb:2"}).state == "converged"
    assert [host.machine.instances(gpu) for gpu in range(4)] == [["1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"]] * 4
    assert len(searches) == 1


@pytest.mark.parametrize("layout", ["7g.80gb", "all-7g.80gb"])
def test_a_board_whose_firmware_names_its_memory_otherwise_settles(layout: str) -> None:
    host = host_of(H100)
    kind = host.machine.cards[0].kind
    named = [one._replace(name="7g.79gb") if one.name == "7g.80gb" else one for one in kind.profiles]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "product", lambda _key: kind._replace(profiles=tuple(named)))
        assert go(host, {"layout": layout}).state == "converged"
        assert host.machine.instances(0) == ["7g.79gb"]
        promises.second_pass_is_quiet(UNIT, host, {"layout": layout})


def test_all_of_a_profile_that_is_offered_more_often_than_it_fits() -> None:
    """Where the count of -lgip is more than the placements hold, these decide, and the next pass agrees."""
    host = host_of(H100)
    kind = host.machine.cards[0].kind
    few = [one._replace(most=9) if one.name == "3g.40gb" else one for one in kind.profiles]
    changed = kind._replace(profiles=tuple(few))
    for settings in ({"layout": "all-3g.40gb"}, {"layout": "all-1c.3g.40gb"}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cards, "product", lambda _key: changed)
            assert go(host, settings).state == "converged"
            assert go(host, settings).steps == ()
            assert len(host.machine.instances(0)) == 2


def test_an_account_that_is_not_root_says_that_root_sees_the_instances() -> None:
    host = host_of(H100)
    made(host, 0, "7g.80gb")
    host.machine.root, host.user = False, 1000
    planned = go(host, ALL, check=True)
    assert planned.failure is None
    assert any("known after it is seen as root" in step.action for step in planned.steps)


def test_gpus_that_no_layout_names_are_not_touched() -> None:
    host = host_of(H100, H100)
    made(host, 1, "1g.10gb")
    done = go(host, {"gpus": [{"select": {"index": 0}, "layout": "7g.80gb"}]})
    assert (done.state, host.machine.instances(1)) == ("converged", ["1g.10gb"])
    assert host.machine.cards[1].uuid not in (host.text(SERVICE) or "")


def test_a_host_without_a_gpu_waits() -> None:
    host = host_of()
    waits = go(host, ALL)
    assert (waits.state, [wait.reason for wait in waits.pending]) == ("progressing", ["NotReady"])
    assert "nvidia-smi shows no GPU" in waits.pending[0].message


# -- what is kept


@pytest.mark.parametrize(
    ("layout", "stays"), [("3g.40gb", 0), ("1c.3g.40gb:2", 1), ("1c.3g.40gb", 1), ("1c.3g.40gb:3", 1)]
)
def test_of_two_alike_that_one_stays_whose_compute_instances_are_wanted(layout: str, stays: int) -> None:
    host = host_of(H100)
    with_parts(host, "3g.40gb", "1c.3g.40gb,1c.3g.40gb")
    kept = host.machine.cards[0].instances[stays].id
    assert go(host, {"layout": layout}).state == "converged"
    assert [gi.id for gi in host.machine.cards[0].instances] == [kept]
    assert not [call for call in commands(host) if "-cgi" in call]


def test_a_wider_compute_instance_is_not_squeezed_in_beside_others() -> None:
    """Where compute instances may start is not known: those that stay could leave no room for two slices in a row."""
    host = host_of(H100)
    with_parts(host, "1c.3g.40gb,1c.3g.40gb,1c.3g.40gb")
    gi = host.machine.cards[0].instances[0]
    assert host.machine.smi(("nvidia-smi", "mig", "-i", "0", "-dci", "-gi", str(gi.id), "-ci", "0"))[0] == 0
    assert host.machine.smi(("nvidia-smi", "mig", "-i", "0", "-dci", "-gi", str(gi.id), "-ci", "2"))[0] == 0
    host.sync()  # the middle slice is left
    assert go(host, {"layout": "2c.3g.40gb,1c.3g.40gb"}).state == "converged"
    assert host.machine.instances(0) == ["3g.40gb: 2c 1c"]
    assert host.machine.cards[0].instances[0] is gi


def test_nothing_is_made_where_what_was_to_go_is_still_there() -> None:
    host = host_of(H100)
    made(host, 0, "7g.80gb")
    host.machine.faults.append(Fault("-dgi", do="lie"))
    done = go(host, {"layout": "3g.40gb:2"})
    assert done.failure is not None
    assert "done without effect: destroy gi 0" in done.failure.message
    assert not [call for call in commands(host) if "-cgi" in call]
