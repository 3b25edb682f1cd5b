# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the look at a host means for its reboot, and the sentences about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.bettercompute.bcd.plugins.filter.reboot_end import reboot_end
from ansible_collections.bettercompute.bcd.plugins.filter.reboot_plan import reboot_plan
from ansible_collections.bettercompute.bcd.plugins.filter.reboot_stays_up import reboot_stays_up
from ansible_collections.bettercompute.bcd.plugins.filter.reboot_turns import reboot_turns
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_budget import limit
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_seen import seen
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_waves import Seen
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.reboot_wishes import Wishes

PLAYBOOK = Path(__file__).resolve().parents[3] / "playbooks" / "reboot.yml"
WAITS = "cpu: CPUs 2-3 are isolated from the next boot: reboot the node"
VAIN = "cpu: CPUs 2-3 are isolated from the next boot (booted without the argument: it was in place): reboot the node"


def look(**more: Any) -> dict[str, Any]:
    """A registered result of host_info, of a host that waits for nothing."""
    facts = {
        "reboot_required": bool(more.get("reboot_reasons")),
        "reboot_reasons": {},
        "rebooted_for": {},
        "holds": [],
        "going_down": "",
        "node": {},
        "unreadable": [],
    }
    return {"changed": False, "ansible_facts": {"bcd": {**facts, **more}}}


def one(result: Any, wishes: Wishes = Wishes(), **variables: Any) -> Seen:  # noqa: B008 - a value
    [found] = seen(["one"], {}, {"one": {"bcd_before": result, **variables}}, {"one": wishes})
    return found


def node(cordoned_by: str | None = None, ready: bool = True) -> dict[str, Any]:
    return {"name": "n", "ready": ready, "cordoned_by": cordoned_by}


def test_a_host_that_waits_is_due_in_its_pool_and_site() -> None:
    found = one(look(reboot_reasons={"cpu": WAITS}), bcd_pool="p", bcd_site="fra")
    assert found == Seen("one", "p", "fra", due=True)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({"unreachable": True, "msg": "no\n route"}, "it cannot be looked at: no route"),
        ({"failed": True, "msg": "no python"}, "it cannot be looked at: no python"),
        (None, "it cannot be looked at: it gave no answer"),
    ],
)
def test_what_cannot_be_looked_at_is_away_for_good(result: Any, why: str) -> None:
    found = one(result)
    assert (found.away, found.unavailable, found.stays) == (why, "cannot be looked at", True)


def test_a_record_that_cannot_be_read_is_a_fault_said_once() -> None:
    lines = [f"{key}: reboot.json: Permission denied" for key in ("reboot_required", "reboot_reasons", "rebooted_for")]
    found = one(look(reboot_required=None, reboot_reasons=None, rebooted_for=None, unreadable=[*lines, "gpus: x"]))
    assert found.fault == (
        "why the host waits for a reboot is in root's record, and cannot be told: reboot.json: Permission denied (only "
        "root reads it: set become)"
    )


def test_a_reboot_in_vain_is_a_fault_unless_something_else_waits_or_it_is_told() -> None:
    assert one(look(reboot_reasons={"cpu": VAIN})).fault.startswith(f"{VAIN}: not rebooted again")
    assert one(look(reboot_reasons={"cpu": VAIN, "iommu": WAITS})).fault == ""
    assert one(look(reboot_reasons={"cpu": VAIN}), Wishes(again=True)).fault == ""


def test_holds_keep_a_host_up_unless_it_is_told() -> None:
    held = look(reboot_reasons={"cpu": WAITS}, holds=[{"allocation_id": "b"}, {"allocation_id": "a"}])
    assert one(held).kept.startswith("allocations hold its devices, a, b: release them")
    assert one(held, Wishes(with_holds=True)).kept == ""
    unread = look(holds=None, unreadable=["holds: /etc/cdi: I/O error"])
    assert one(unread).kept == "whether allocations hold its devices cannot be told: /etc/cdi: I/O error"


def test_a_node_says_who_keeps_pods_away() -> None:
    ours = one(look(node=node("us")))
    assert (ours.cordoned, ours.stays, bool(ours.unavailable)) == (True, False, True)
    others = one(look(node=node("others")))
    assert (others.cordoned, others.stays) == (False, True)
    assert "kubectl uncordon n" in others.kept
    unready = one(look(node=node(ready=False)))
    assert (unready.unavailable, unready.stays, unready.kept) == ("its Node n is not ready", False, "")
    assert one(look(node=node())).unavailable == ""


def test_a_note_of_a_cordon_that_is_none_is_forgotten_by_a_turn_and_takes_no_room() -> None:
    found = one(look(node={**node(), "remembered": True}))
    assert (found.cordoned, found.unavailable) == (True, "")
    assert one(look(node={**node(), "remembered": False})).cordoned is False
    plan = reboot_plan(["a"], {"a": {"bcd_before": look(node={**node(), "remembered": True})}})
    assert (plan["turns"], plan["pools"][""]["room"]) == ({"a": "release"}, 1)


def test_a_node_that_cannot_be_asked_for_counts_unless_nothing_is_cordoned() -> None:
    away = look(node=None, unreadable=["node: https://10.0.0.1:6443 does not answer"])
    proof = look(node=None, unreadable=["node: no answer"], rebooted_for={"cpu": WAITS})
    assert one(proof).due  # left out, and named
    found = one(away)
    assert (found.stays, found.unavailable) == (True, "its Node cannot be asked for")
    assert found.kept == "whether its Node is cordoned cannot be told: https://10.0.0.1:6443 does not answer"
    assert one(away, Wishes(cordon=False)) == Seen("one", "")
    assert one(away, Wishes(cordon=False, drain=True)).stays


def test_a_host_that_goes_down_by_itself_is_left_out() -> None:
    found = one(look(going_down="systemd is stopping it", rebooted_for={"cpu": WAITS}))
    assert (found.kept, found.stays, found.due) == ("it is going down by itself: systemd is stopping it", True, True)


# -- when its turn comes


def test_a_host_goes_down_only_if_it_still_may_when_its_turn_comes() -> None:
    waits = {"cpu": WAITS}
    assert reboot_stays_up(look(reboot_reasons=waits)) == {
        "reason": "",
        "state": "left out",
        "away": False,
        "ours": False,
    }
    held = look(reboot_reasons=waits, holds=[{"allocation_id": "a"}], node=node("us"))
    found = reboot_stays_up(held)
    assert found["reason"].startswith("allocations hold its devices, a: ")
    assert (found["state"], found["away"], found["ours"]) == ("left out", False, True)
    assert reboot_stays_up(held, with_holds=True)["reason"] == ""
    others = reboot_stays_up(look(reboot_reasons=waits, node=node("others")))
    assert ("not by us" in others["reason"], others["away"], others["ours"]) == (True, True, False)
    gone = reboot_stays_up({"unreachable": True, "msg": "no route"})
    assert gone == {"reason": "it cannot be looked at: no route", "state": "left out", "away": True, "ours": False}
    assert reboot_stays_up(look(rebooted_for=waits))["reason"].startswith("no unit of it waits for a reboot any more")
    vain = reboot_stays_up(look(reboot_reasons={"cpu": VAIN}))
    assert (vain["state"], reboot_stays_up(look(reboot_reasons={"cpu": VAIN}), again=True)["reason"]) == ("failed", "")
    unknown = look(reboot_reasons=waits, node=None, unreadable=["node: no answer"])
    assert (reboot_stays_up(unknown)["away"], reboot_stays_up(unknown, cordon=False)["reason"]) == (True, "")
    assert reboot_stays_up(look(reboot_reasons={"cpu": VAIN}, going_down="{{ x }}"))["ours"] is False


# -- the filters


def fleet(*names: str, **more: Any) -> dict[str, Any]:
    return {name: {"bcd_before": look(reboot_reasons={"cpu": WAITS}, **more), "bcd_pool": "p"} for name in names}


def test_the_playbook_and_the_filter_refuse_the_same_budgets() -> None:
    [assertion] = [task for task in yaml.safe_load(PLAYBOOK.read_text("utf-8"))[0]["tasks"] if "budget" in task["name"]]
    pattern = re.findall(r"is match\('(.*)'\)", assertion["ansible.builtin.assert"]["that"])[0]
    for value in (
        "0",
        "1",
        "3",
        "999999",
        "1000000",
        "0%",
        "1%",
        "10%",
        "99%",
        "100%",
        "101%",
        "-1",
        "abc",
        "10 %",
        "+1",
        "",
    ):
        try:
            limit(value)
            is_one = True
        except ValueError:
            is_one = False
        assert bool(re.match(pattern, value)) is is_one, value


def test_a_bad_budget_is_an_error_of_the_filter() -> None:
    with pytest.raises(AnsibleFilterError, match="bcd_reboot_max_unavailable is '0'"):
        reboot_plan([], {}, max_unavailable="0")


def test_hosts_that_say_the_same_are_said_once() -> None:
    plan = reboot_plan(["a", "b"], fleet("a", "b"), max_unavailable="50%")
    assert plan["lines"] == [
        f"a, b: a reboot is due, of which the units say: {WAITS}",
        "the pool p: 2 hosts, at most 1 unavailable at a time, room for 1",
        "  wave 1: a",
        "  wave 2: b",
    ]


def test_each_pool_has_the_variables_of_its_own_hosts() -> None:
    variables = {**fleet("a1", "a2"), **fleet("b1", "b2", "b3", holds=[{"allocation_id": "x"}])}
    for name in ("b1", "b2", "b3"):
        variables[name].update(bcd_pool="q", bcd_reboot_max_unavailable="100%", bcd_reboot_with_holds="yes")
    reach = list(variables)
    plan = reboot_plan(reach, variables, asked="a1")
    assert plan["waves"] == [["a1", "b1", "b2", "b3"], ["a2"]]
    turned = reboot_plan(reach[::-1], variables, max_unavailable="100%", with_holds=True, asked="b3")
    assert {pool: shown["allowed"] for pool, shown in turned["pools"].items()} == {"p": 1, "q": 3}
    for name in reach:
        variables[name]["bcd_before"] = look(reboot_reasons={"cpu": WAITS}, holds=[{"allocation_id": "x"}])
    assert set(reboot_plan(reach, variables, max_unavailable="100%", with_holds=True, asked="b3")["left_out"]) == {
        "a1",
        "a2",
    }
    # A play's own variables are none of any host's, and hold for all.
    over = reboot_plan(reach, variables, max_unavailable=2, with_holds=True, asked="a1")
    assert {pool: shown["allowed"] for pool, shown in over["pools"].items()} == {"p": 2, "q": 2}
    assert over["left_out"] == {}


def test_a_bad_budget_of_another_host_is_an_error_that_names_it() -> None:
    variables = fleet("a", "b")
    variables["b"]["bcd_reboot_max_unavailable"] = "0%"
    with pytest.raises(AnsibleFilterError, match=r"^b: bcd_reboot_max_unavailable is '0%'"):
        reboot_plan(["a", "b"], variables, asked="a")


def test_a_dry_run_of_one_is_a_dry_run_of_all() -> None:
    variables = fleet("a", "b")
    assert reboot_plan(["a", "b"], variables, asked="a")["dry"] is False
    variables["b"]["bcd_reboot_dry_run"] = True
    assert reboot_plan(["a", "b"], variables, asked="a")["dry"] is True


def test_what_an_earlier_play_lost_was_not_looked_at() -> None:
    plan = reboot_plan(["a", "b"], fleet("a", "b"), lost=["a"])
    assert plan["failed"] == {"a": "it cannot be looked at: it gave no answer"}
    assert plan["queue"] == []


@pytest.mark.parametrize(
    "mark", ["{{ 1 }}", "{% x %}", "{# x #}", "{{{{ 1 }}}}", "#jinja2: variable_start_string:'['\n[1]"]
)
def test_what_a_host_says_is_no_template_of_any_ansible(mark: str) -> None:
    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from (key, *texts(item))
        elif isinstance(value, list):
            for item in value:
                yield from texts(item)
        elif isinstance(value, str):
            yield value

    variables = fleet("due", "vain", "held", "gone", "next")
    variables["due"]["bcd_before"] = look(reboot_reasons={"cpu": mark})
    variables["vain"].update(bcd_pool="v", bcd_before=look(reboot_reasons={"cpu": mark + "this boot has none"}))
    variables["held"]["bcd_before"] = look(reboot_reasons={"cpu": WAITS}, holds=[{"allocation_id": mark}])
    variables["gone"].update(bcd_pool="g", bcd_before={"failed": True, "msg": mark})
    plan = reboot_plan(list(variables), variables)
    variables["due"]["bcd_reboot_outcome"] = {"state": "failed", "reason": mark, "away": True}
    found = list(texts([plan, reboot_turns(plan, variables, ["next"]), reboot_end(plan, variables)]))
    assert [text for text in found if re.search(r"\{[{%#]|\A#jinja2:", text)] == []


def test_turns_and_the_end_are_read_from_the_hosts_variables() -> None:
    variables = fleet("a", "b", "c")
    plan = reboot_plan(["a", "b", "c"], variables)
    assert reboot_turns(plan, variables, ["a"]) == {"a": {"turn": "reboot", "reason": ""}}
    variables["a"]["bcd_reboot_outcome"] = {"state": "failed", "reason": "no  return\n", "away": True}
    [left] = reboot_turns(plan, variables, ["b"]).values()
    assert left == {"turn": "", "reason": "the rollout of the pool p ended with a: no return"}
    end = reboot_end(plan, variables, limit="p")
    assert end["stats"] == {
        "rebooted": [],
        "proved": [],
        "left_out": dict.fromkeys(("b", "c"), "the rollout of the pool p ended with a: no return"),
        "failed": {"a": "no return"},
        "waves": [["a"], ["b"], ["c"]],
    }
    assert end["failed"] == {
        "a": "a: no return; of the pool p did not begin, 2: b, c: mend it and start the playbook again, or leave this "
        "host out with --limit 'p:!a'"
    }
    assert reboot_turns(plan, variables, ["stranger"]) == {}
    assert reboot_end(plan, variables, planned=True)["failed"] == {}
