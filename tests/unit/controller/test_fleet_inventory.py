# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which host of an inventory is in which pool of a FleetConfig, and what the groups then say."""

from __future__ import annotations

import time
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.fleet_inventory import (
    Seen,
    fleet_of,
    group,
    is_fleet,
    place,
)
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.layout_waits import layout_waits

GATED = {"name": "gpus", "hostConfig": {"mig-layout": {"from": "pool", "when": "gpu == 'h100'"}}}


def pool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "site": "fra", "class": "host", **more}


def document(*pools: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": 1, "pools": list(pools), **more}


def earlier(pool: Any = None, labels: Any = None, *groups: str) -> Seen:
    """A host of a source before."""
    return Seen(True, pool, labels, frozenset(groups))


NEW = Seen(False, None, None, frozenset())


def faults(config: Any, hosts: dict[str, Seen], **before: str) -> list[tuple[str, str]]:
    return [(fault.path, fault.text) for fault in place(config, hosts, before, {})[1]]


@pytest.mark.parametrize(
    ("seen", "placed"),
    [
        (earlier(), []),
        (earlier("a"), ["h"]),
        (earlier(None, None, "bcd_pool_a", "all"), ["h"]),
        (earlier(None, {"gpu": "h100"}), ["h"]),
        (earlier(None, {"gpu": "a100"}), []),
        # A host of this or a later source: `select` and groups are for those before.
        (Seen(False, None, {"gpu": "h100"}, frozenset({"bcd_pool_a"})), []),
        (Seen(False, "a", None, frozenset()), ["h"]),
    ],
)
def test_how_a_host_comes_into_a_pool(seen: Seen, placed: list[str]) -> None:
    assert place(document(pool("a", select="gpu == 'h100'")), {"h": seen}, {}, {}) == ({"a": placed}, [])


def test_hosts_stand_in_the_order_of_the_document_and_then_of_the_inventory() -> None:
    config = document(pool("a", hosts={"z": None, "b": {}}), pool("c"))
    hosts = {"y": earlier("a"), "x": earlier("c"), "z": NEW, "b": NEW}
    assert place(config, hosts, {}, {})[0] == {"a": ["z", "b", "y"], "c": ["x"]}


@pytest.mark.parametrize(
    ("pools", "seen", "path", "said"),
    [
        (
            [pool("a", hosts={"h": {}}), pool("b", select="not gpu")],
            earlier(),
            "$.pools[1].select",
            "the pool 'a' by $.pools[0].hosts.h and the pool 'b' by $.pools[1].select",
        ),
        (
            [pool("a", hosts={"h": {}}), pool("b")],
            earlier("b"),
            "$.pools[0].hosts.h",
            "the pool 'a' by $.pools[0].hosts.h and the pool 'b' by its bcd_pool, 'b'",
        ),
        (
            [pool("a"), pool("b")],
            earlier("b", None, "bcd_pool_a"),
            "$.pools[0]",
            "the pool 'a' by its group bcd_pool_a and the pool 'b' by its bcd_pool, 'b'",
        ),
        (
            [pool("a", hosts={"h": {}})],
            earlier("us"),
            "$.pools[0].hosts.h",
            "the pool 'a' by $.pools[0].hosts.h and the pool 'us' of us.fleet.yml by its bcd_pool",
        ),
    ],
)
def test_a_host_is_in_one_pool(pools: list[dict[str, Any]], seen: Seen, path: str, said: str) -> None:
    [(at, text)] = faults(document(*pools), {"h": seen}, us="us.fleet.yml")
    assert at == path
    assert text == f"the host h is in {said}: a host is in one pool, so leave it in one"


@pytest.mark.parametrize("name", ["nowhere", 4, ["a"], {"a": 1}])
def test_a_pool_that_nobody_has(name: Any) -> None:
    [(path, text)] = faults(document(pool("a")), {"h": earlier(name), "other": earlier("us")}, us="us.fleet.yml")
    assert path == "$.pools"
    assert text.startswith("the host h has bcd_pool ")
    assert "no pool has that name (a, us)" in text


def test_a_pool_of_another_document_has_its_name() -> None:
    [(path, text)] = faults(document(pool("a")), {}, a="eu.fleet.yml")
    assert (path, text) == ("$.pools[0].name", "eu.fleet.yml has a pool 'a' too: rename one")


def test_a_file_beside_that_nobody_may_read_takes_no_name_away() -> None:
    """Two documents of one directory, each a source of its own, may have one pool each in their own way."""
    beside = {"a": "staging.fleet.yml", "us": "us.fleet.yml"}
    hosts = {"h": earlier("us"), "here": earlier("a")}
    assert place(document(pool("a")), hosts, {}, beside) == ({"a": ["here"]}, [])


@pytest.mark.parametrize("named", [earlier("a"), earlier("a", None, "bcd_pool_a"), earlier("")])
def test_a_host_that_says_the_same_twice_is_there_once(named: Seen) -> None:
    config = document(pool("a", hosts={"h": {}, "": {}}, select="not gpu"))
    assert place(config, {"h": named}, {}, {}) == ({"a": ["h"]}, [])


def test_the_documents_own_labels_are_told_with_it_alone() -> None:
    config = document(pool("a", hosts={"h": {"bcd_labels": {"site": "ber"}}}))
    assert place(config, {"h": Seen(False, None, {"site": "ber"}, frozenset())}, {}, {})[1] == []


def test_a_selection_that_is_none_selects_nobody() -> None:
    config = document(pool("a", select="gpu &&"), pool("b", select=5))
    assert place(config, {"h": earlier(None, {"gpu": "x"})}, {}, {})[0] == {"a": [], "b": []}


def test_nobody_is_at_the_gate_where_no_layout_is_the_pools() -> None:
    config = document(pool("a", hosts={"h": {}}))
    assert "bcd_mig_gate" not in fleet_of(config, {"h": NEW}, {"a": ["h"]}).members


def test_of_many_pools_the_first_are_said() -> None:
    pools = [pool(f"p{number:02}") for number in range(40)]
    [(_path, text)] = faults(document(*pools), {"h": earlier("nowhere")})
    assert "(p00, p01, " in text
    assert "p11 and 28 more): correct" in text
    assert "p12" not in text


@pytest.mark.parametrize("label", [float("nan"), 16**5000, None, ["h100"]], ids=["nan", "large", "null", "list"])
def test_a_label_that_is_none_selects_nobody(label: Any) -> None:
    config = document(pool("a", select="gpu == 'h100' or gpu < 5 or gpu >= 5"))
    assert place(config, {"h": earlier(None, {"gpu": label})}, {}, {}) == ({"a": []}, [])


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"site": "ber"}, "the bcd_labels.site of the host h: this is 'ber', and the pool says 'fra'"),
        (["gpu"], "the bcd_labels of the host h: "),
        ({4: "x"}, "the bcd_labels of the host h: its key 4 is no text"),
    ],
)
def test_labels_of_other_sources_are_checked(labels: Any, said: str) -> None:
    [(path, text)] = faults(document(pool("a")), {"h": earlier("a", labels)})
    assert path == "$.pools[0]"
    assert text.startswith(said)


@pytest.mark.parametrize(
    "config",
    [
        None,
        [],
        {"pools": None},
        {"pools": [None, {"name": 4}, {"name": "a", "hosts": ["h"], "select": "(", "labels": 1}]},
        document(pool("a", hosts={"h": 4}, select=5)),
    ],
)
def test_what_is_wrong_with_a_document_does_not_hide_what_is_wrong_with_hosts(config: Any) -> None:
    assert ("$.pools" in dict(faults(config, {"h": NEW, "lost": earlier("b")}))) is True


def test_groups_and_what_they_say() -> None:
    config = document(
        pool("a.1", profile="gpus", hosts={"h1": {"x": 1}, "h2": {}}, labels={"gpu": "h100"}, policy={"iommu": {}}),
        {**pool("b"), "site": "ber.2"},
        profiles=[GATED],
    )
    hosts = {"h1": NEW, "h2": Seen(False, None, {"gpu": "a100"}, frozenset())}
    placed, wrong = place(config, hosts, {}, {})
    fleet = fleet_of(config, hosts, placed)
    assert wrong == []
    assert fleet.members == {
        "bcd_pool_a_1": ["h1", "h2"],
        "bcd_site_fra": ["h1", "h2"],
        "bcd_class_host": ["h1", "h2"],
        "bcd_pool_b": [],
        "bcd_site_ber_2": [],
        "bcd_mig_gate": ["h1"],  # of h2 the profile does not want a layout
    }
    assert fleet.variables["bcd_pool_a_1"] == {
        "bcd_pool": "a.1",
        "bcd_site": "fra",
        "bcd_class": "host",
        "bcd_pool_config": pool("a.1", profile="gpus", labels={"gpu": "h100"}, policy={"iommu": {}}),
        "bcd_profile_config": GATED,
        "bcd_converge_site": "fra",
    }
    assert fleet.variables["bcd_pool_b"]["bcd_profile_config"] is None
    assert fleet.empty == ["$.pools[1]"]


def test_a_group_has_words_alone() -> None:
    assert group("pool", "a.b-c_1") == "bcd_pool_a_b_c_1"


@pytest.mark.parametrize(
    ("given", "is_ours"),
    [
        ({"version": 1}, True),
        ({"pools": []}, True),
        ({"$schema": "x"}, True),
        ({"plugin": "bettercompute.bcd.fleet"}, True),
        (None, True),  # unreadable: its name says what it is to be
        ([], True),
        ({"all": {"hosts": {}}}, False),
        ({"plugin": "ansible.builtin.constructed", "version": 1}, False),
    ],
)
def test_a_file_that_is_only_named_so(given: Any, is_ours: bool) -> None:
    assert is_fleet(given) is is_ours


def test_thousands_of_hosts_cost_no_time() -> None:
    pools = [pool(f"p{number}", select=f"rack == 'r{number}'") for number in range(40)]
    hosts = {f"h{number}": earlier(None, {"rack": f"r{number % 40}"}) for number in range(4000)}
    begun = time.process_time()
    placed, wrong = place(document(*pools), hosts, {}, {})
    assert (len(placed["p7"]), wrong) == (100, [])
    assert time.process_time() - begun < 5  # seconds, on a slow machine; 160,000 expressions are looked at


# -- what waits behind the gate


def gpu(index: int, layout: str, **more: Any) -> dict[str, Any]:
    return {"index": index, "uuid": f"GPU-{index}", "pci": "", "name": "H100", "layout": layout, **more}


FROM_POOL = {"name": "gpus", "hostConfig": {"mig-layout": {"from": "pool"}}}
WANTS = pool("g", policy={"migLayout": "all-1g.10gb"})
HELD = gpu(0, "7g.80gb", allocations=["a1", "a2"], processes=[{"pid": 7, "name": "train"}])


def test_a_kept_layout_says_what_waits_and_for_whom() -> None:
    looked = [HELD, gpu(1, "7g.80gb", allocations=[], processes=[])]
    assert layout_waits({"mig-layout": {"layout": "7g.80gb"}}, WANTS, FROM_POOL, {}, looked) == (
        "the pool's layout all-1g.10gb waits for GPU 0 (allocation a1, allocation a2, process 7 (train)): "
        "the host keeps 7g.80gb until they are free, and the next run then changes it"
    )


def test_gpus_that_differ_are_kept_as_each_is() -> None:
    kept = [{"select": {"uuid": "GPU-0"}, "layout": "7g.80gb"}, {"select": {"uuid": "GPU-1"}, "layout": "off"}]
    said = layout_waits({"mig-layout": {"gpus": kept}}, WANTS, FROM_POOL, {}, [HELD, gpu(1, "off")])
    assert "the host keeps what each GPU shows until" in said


@pytest.mark.parametrize(
    ("units", "profile", "gpus"),
    [
        ({"mig-layout": {"layout": "all-1g.10gb"}}, FROM_POOL, [gpu(0, "7g.80gb")]),  # nobody uses it
        ({"mig-layout": {"layout": "all-1g.10gb"}}, FROM_POOL, None),  # nobody looked
        ({"mig-layout": {"layout": "off"}}, FROM_POOL, [HELD]),  # the host's own section, not the gate's
        ("{}", FROM_POOL, [HELD]),
        ({}, None, [HELD]),  # no layout of the pool's
    ],
)
def test_nothing_waits(units: Any, profile: Any, gpus: Any) -> None:
    assert layout_waits(units, WANTS, profile, {}, gpus) == ""
