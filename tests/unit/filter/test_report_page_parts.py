# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page's pictures are to scale, its history counts as the page does, and hosts that say the same are told once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils import report, report_page, report_page_history
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_page_devices import WIDTH, Pictures, numa_part
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_page_stories import Stories

from .plans import plan, refused, unit, waits

GPU: dict[str, Any] = {
    "index": 0,
    "uuid": "GPU-0",
    "pci": "00000000:01:00.0",
    "name": "NVIDIA H100 80GB HBM3",
    "mig_mode": "disabled",
    "layout": "off",
    "slices": None,
    "sharing": None,
    "allocations": [],
    "processes": [],
    "holders": [],
    "mig_devices": [],
    "slots": [],
}


def drawn(**more: Any) -> tuple[str, str]:
    """A GPU's own picture, and the ground that it stands on."""
    pictures = Pictures()
    return str(pictures.of([{**GPU, **more}])), str(pictures.grounds())


def outlines(svg: str, kind: str) -> list[tuple[float, float]]:
    """From where to where the outlines of that kind go, in parts of the GPU."""
    found = re.search(rf'<path d="([^"]*)" class="{kind}"', svg)
    boxes = re.findall(r"M([\d.]+) 1h([\d.]+)", found[1]) if found else []
    return [((float(left) - 1) / WIDTH, (float(left) + 1 + float(width)) / WIDTH) for left, width in boxes]


def part(profile: str, start: int, size: int, gi: int, held: str | None = None, ci: int = 0) -> dict[str, Any]:
    return {"profile": profile, "start": start, "size": size, "gi": gi, "ci": ci, "uuid": None, "allocation_id": held}


def mig(*parts: dict[str, Any], slices: int | None = 8) -> dict[str, Any]:
    return {"mig_mode": "enabled", "layout": "x", "slices": slices, "mig_devices": list(parts)}


def test_mig_devices_are_where_the_gpu_has_them() -> None:
    own, ground = drawn(**mig(part("3g.40gb", 4, 4, 2, "alloc_a"), part("1g.10gb", 0, 1, 7), part("2g.20gb", 2, 2, 3)))
    assert outlines(ground, "free") == [(0, 0.125), (0.25, 0.5), (0.5, 1)]
    assert outlines(own, "held") == [(0.5, 1)]
    assert re.search(r'class="gap"', ground)
    assert ">alloc_a<" in own
    assert 'aria-label="1 of 3 parts held"' in own


def test_what_no_instance_has_is_a_gap() -> None:
    _own, ground = drawn(**mig(part("3g.40gb", 0, 4, 2)))
    (left, right), *more = outlines(ground, "gap")
    assert (round(left, 2), round(right, 2), more) == (0.5, 1.0, [])


def test_compute_instances_share_the_place_of_their_gpu_instance() -> None:
    parts = (part("1c.4g.40gb", 0, 4, 1, ci=number) for number in range(4))
    _own, ground = drawn(**mig(*parts))
    assert outlines(ground, "free") == [(0, 0.125), (0.125, 0.25), (0.25, 0.375), (0.375, 0.5)]


def test_without_the_number_of_slices_the_parts_fill_the_picture() -> None:
    _own, ground = drawn(**mig(part("1g.6gb", 0, 1, 3), part("1g.6gb", 1, 1, 4), slices=None))
    assert outlines(ground, "free") == [(0, 0.5), (0.5, 1)]


def test_slots_are_as_many_as_clients_may_come() -> None:
    slots = [{"slot": 2, "allocation_id": "alloc_two"}]
    own, ground = drawn(sharing={"mode": "mps", "replicas": 10}, slots=slots, allocations=["alloc_two"])
    assert len(outlines(ground, "free")) == 10
    assert outlines(own, "held") == [(0.2, 0.3)]
    assert "MPS for 10" in own
    assert ">…two<" in own or re.search(r">…\w*_two<", own)  # its end tells it from the others


@pytest.mark.parametrize("claimed", [{"sharing": {"mode": "mps", "replicas": 10**9}}, {"sharing": None}])
def test_a_host_that_claims_more_slots_than_there_are_costs_no_more(claimed: dict[str, Any]) -> None:
    slots = [{"slot": slot, "allocation_id": f"alloc_{slot}"} for slot in (2, 999_999_999)]
    own, ground = drawn(**claimed, slots=slots)
    assert outlines(ground, "free") == outlines(own, "held") == [(0, 0.5), (0.5, 1)]
    assert ">s999999999<" in own


@pytest.mark.parametrize("slices", [None, -1, 0, 8, 2**63])
def test_mig_devices_that_are_nowhere_on_their_gpu_are_not_drawn(slices: int | None) -> None:
    nowhere = (part("1g.10gb", -5, 5, 7), part("1g.10gb", 3, 0, 8), part("1g.10gb", 2**62, 2**63, 9))
    for one in nowhere if slices else nowhere[:2]:
        own, ground = drawn(**mig(one, slices=slices))
        assert (outlines(ground, "free"), outlines(own, "held")) == ([], [])


@pytest.mark.parametrize(
    ("held", "text", "label"),
    [
        (["alloc_a", "alloc_b"], ">alloc_a, alloc_b<", "1 of 1 part held"),
        ([], ">free<", "0 of 1 part held"),
        (None, ">?<", "who has it is not known"),
    ],
)
def test_a_whole_gpu_says_who_has_it(held: list[str] | None, text: str, label: str) -> None:
    own, ground = drawn(allocations=held, slots=None if held is None else [])
    assert text in own + ground
    assert f'aria-label="{label}"' in own


def test_gpus_that_are_divided_alike_share_their_ground() -> None:
    pictures = Pictures()
    shown = pictures.of([{**GPU, **mig(part("1g.10gb", 0, 1, 7)), "index": number} for number in range(8)])
    assert shown.count("<svg") == 8
    assert pictures.grounds().count("<g ") == 1
    assert shown.count("NVIDIA H100") == 1  # what all are is said once


def test_pages_of_each_node_are_told() -> None:
    pool = {"total": 64, "free": 21, "surplus": 0}
    none = {"total": 0, "free": 0, "surplus": 0}
    nodes = [
        {"id": 0, "cpus": "0-63", "memory": 256 << 30, "hugepages": {"1Gi": pool, "2Mi": none}},
        {"id": 1, "cpus": "64-127", "memory": 256 << 30, "hugepages": {"1Gi": {**pool, "surplus": 2}}},
    ]
    shown = str(numa_part(nodes))
    assert '<td>43 of 64</td><td><meter max="64" value="43">' in shown
    assert "43 of 64, 2 surplus" in shown
    assert "2Mi" not in shown
    assert numa_part([{"id": 0, "cpus": "0", "memory": None, "hugepages": {"2Mi": none}}]) == ""


# -- history


def run(at: str, **states: str) -> dict[str, Any]:
    """A run as report_history keeps it: the state of each host."""
    known = list(states.values())
    counts = {state: known.count(state) for state in report.STATES}
    summary = {**counts, "hosts": len(known), "failing": known.count("failed"), "drifted": 0}
    hosts = {name: {"state": state, "failing": [], "drift": [], "waits": []} for name, state in states.items()}
    return {"at": f"2026-12-{at}T04:05:06Z", "source": "plan", "summary": summary, "hosts": hosts}


def now(**states: str) -> dict[str, Any]:
    told = {
        "converged": plan("CONVERGED", unit("cpu")),
        "failed": plan("FAILED", refused("cpu", "no")),
        "progressing": plan("PROGRESSING", unit("cpu", "progressing", pending=waits("Busy", "in use"))),
    }
    return report.fleet_document({name: told[state] for name, state in states.items()})


def test_what_has_changed_since_the_last_run_is_told() -> None:
    runs = [
        run("01", a="failed"),
        run("02", a="converged", b="progressing", c="failed", gone="converged"),
        run("03", a="failed", b="converged", c="failed", new="converged"),
    ]
    document = now(a="failed", b="converged", c="failed", new="converged")
    page = report_page.render_page(document, runs=runs)
    section = re.sub("<[^>]+>", "", page[page.index('id="runs"') : page.index('id="hosts"')])
    assert "Since 2026-12-02 04:05" in section
    for text in (
        "converged → failed: a",
        "progressing → converged: b",
        "new in this run: new",
        "not in this run: gone",
    ):
        assert text in section
    assert "failed: c" not in section
    assert "2026-12-01 04:05 to 2026-12-03 04:05, 3 runs" in section
    assert 'id="runs"' not in report_page.render_page(document, runs=runs[:1])


def test_bars_are_as_high_as_there_are_hosts() -> None:
    runs = [run("01", a="converged", b="converged", c="failed", d="progressing"), run("02", a="converged", b="failed")]
    page = report_page.render_page(now(a="converged", b="failed"), runs=runs)
    found = {
        kind: re.findall(r"v-([\d.]+)h", path) for path, kind in re.findall(r'<path d="([^"]+)" class="(\w+)"', page)
    }
    high = report_page_history.HEIGHT
    assert {kind: [float(each) / high for each in bars] for kind, bars in found.items()} == {
        "converged": [0.5, 0.25],
        "progressing": [0.25],
        "failed": [0.25, 0.25],
    }


def test_a_hosts_past_is_told_in_a_line() -> None:
    runs = [run(f"{day:02}", a="converged" if day < 4 else "failed") for day in range(1, 6)]
    assert report_page_history.past("a", runs) == "converged in 3, then failed in 2"
    assert report_page_history.past("a", runs[:1]) == report_page_history.past("b", runs) == ""


# -- pools and stories


def test_pools_count_their_hosts_and_gpus() -> None:
    document = now(a="converged", b="failed", c="converged")
    for name, pool in (("a", "gpu"), ("b", "gpu")):
        document["hosts"][name].update(pool=pool, site="fra")
    document["hosts"]["a"]["gpus"] = [{**GPU, "allocations": ["x"]}, GPU]
    page = report_page.render_page(document)
    rows = [
        re.sub("<[^>]+>", " ", row).split() for row in re.findall("<tr>.*?</tr>", page[page.index('id="pools"') :])[1:3]
    ]
    assert rows == [
        ["gpu", "fra", "2", "✕", "1", "failed", "✓", "1", "converged", "-", "-", "1", "of", "2"],
        ["no", "pool", "-", "1", "✓", "1", "converged", "-", "-", "-"],
    ]
    document["hosts"]["a"]["gpus"][1] = {**GPU, "allocations": None}
    assert "? of 2" in report_page.render_page(document)


def test_hosts_that_say_the_same_but_for_their_names_tell_one_story() -> None:
    told = {
        name: plan("PROGRESSING", unit("k8s-join", "progressing", pending=waits("NotReady", f"the Node {name} is new")))
        for name in ("n-1", "n-2")
    }
    stories = Stories(report.fleet_document(told)["hosts"])
    assert [story.hosts for story in stories.all] == [["n-1", "n-2"]]
    assert "the Node &lt;its name&gt; is new" in stories.all[0].article
    alone = Stories(report.fleet_document({"n-1": told["n-1"]})["hosts"])
    assert "the Node n-1 is new" in alone.all[0].article
