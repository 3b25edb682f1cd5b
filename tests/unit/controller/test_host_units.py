# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendering: the pool's policy and the profile's hostConfig as the units of a host."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_names import ORDER
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.host_units import render
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.input_faults import InvalidInput
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.wire_section import from_section, to_section
from tests.unit.controller.fleets import POOL, SANDBOX, check_fleet

BRIDGES = {"net.bridge.bridge-nf-call-iptables": 0, "net.bridge.bridge-nf-call-ip6tables": 0}
CLUSTER = {"apiServer": "https://10.0.0.1:6443", "caCertSha256": "a" * 64, "joinTokenRef": "k8s/join"}


def of_policy(**policy: Any) -> dict[str, Any]:
    return render({**POOL, "policy": policy})


def of_profile(config: dict[str, Any], labels: dict[str, Any] | None = None, **pool: Any) -> dict[str, Any]:
    return render({**POOL, **pool}, {"name": "deploy", "hostConfig": config}, labels)


# -- the specification's two hosts


def test_a_sandbox_host() -> None:
    assert render(SANDBOX, {"name": "deploy", "hostConfig": {"sysctl": BRIDGES}}) == {
        "cpu": {"governor": "performance", "isolate": "4-63,68-127"},
        "hugepages": {"pages1g": 64, "perNuma": True},
        "kernel-modules": {
            "load": ["kvm_intel", "vhost_net", "tun", "br_netfilter"],
            "options": {"kvm_intel": "nested=1"},
        },
        "sysctl": BRIDGES,
    }


def test_a_gpu_host() -> None:
    config = {
        "nvidia-driver": {"branch": "580", "open": True},
        "fabric-manager": {},
        "mig-layout": {"from": "pool"},
        "container-toolkit": {"cdi": True},
    }
    assert of_profile(config, policy={"migLayout": "all-1g.10gb"}) == {
        "container-toolkit": {"cdi": True},
        "fabric-manager": {},
        "mig-layout": {"layout": "all-1g.10gb"},
        "nvidia-driver": {"branch": "580", "open": True},
    }


# -- the pool


@pytest.mark.parametrize(
    ("policy", "units"),
    [
        ({}, {}),
        ({"hugepages": {"size": "2Mi", "count": 512}}, {"hugepages": {"pages2m": 512}}),
        ({"hugepages": {"size": "2Mi", "count": 0, "perNuma": False}}, {"hugepages": {"pages2m": 0, "perNuma": False}}),
        ({"hugepages": {"size": "1Gi", "count": [64, 32]}}, {"hugepages": {"pages1g": [64, 32]}}),
        ({"kernelModules": {"load": ["tun"]}}, {"kernel-modules": {"load": ["tun"]}}),
        ({"cpu": {}}, {"cpu": {}}),
        ({"iommu": {"passthrough": False}}, {"iommu": {"passthrough": False}}),
        ({"gpu": {"powerLimitWatts": 500, "ecc": True}}, {"gpu-settings": {"ecc": True, "powerLimitWatts": 500}}),
        ({"sharing": {"mode": "mps"}}, {"gpu-sharing": {"mode": "mps", "replicas": 10}}),
        ({"sharing": {"mode": "timeslice"}}, {"gpu-sharing": {"mode": "timeslice", "replicas": 4}}),
        ({"sharing": {"mode": "mps", "replicas": 48}}, {"gpu-sharing": {"mode": "mps", "replicas": 48}}),
        ({"sharing": {"mode": "timeslice", "replicas": 1}}, {"gpu-sharing": {"mode": "timeslice", "replicas": 1}}),
        ({"sharing": {"mode": "exclusive"}}, {}),
        ({"sharing": {"mode": "exclusive", "replicas": 4}}, {}),
        ({"kubernetes": CLUSTER}, {"k8s-join": CLUSTER}),
        (
            {"kubernetes": {**CLUSTER, "labels": {"a": "b"}, "taints": ["a:NoSchedule"], "kubernetesVersion": "1.31"}},
            {"k8s-join": {**CLUSTER, "labels": {"a": "b"}, "taints": ["a:NoSchedule"], "kubernetesVersion": "1.31"}},
        ),
        ({"kubernetes": {**CLUSTER, "gpu": "device-plugin", "gpuApi": {"any": 1}}}, {"k8s-join": CLUSTER}),
        ({"kubernetes": {}}, {}),
        ({"kubernetes": {"gpu": "dra", "labels": {"a": "b"}}}, {}),
        ({"hostReserve": {"vcpu": 4, "memoryGiB": 16}}, {}),
        ({"migLayout": "all-1g.10gb"}, {}),
    ],
)
def test_a_policy_becomes_units(policy: dict[str, Any], units: dict[str, Any]) -> None:
    assert of_policy(**policy) == units


def test_a_pools_unit_replaces_the_profiles_as_a_whole() -> None:
    config = {"cpu": {"isolate": "4-7", "governor": "powersave"}, "gpu-sharing": {"mode": "mps", "replicas": 3}}
    policy = {"cpu": {"governor": "performance"}, "sharing": {"mode": "timeslice"}}
    assert of_profile(config, policy=policy) == {
        "cpu": {"governor": "performance"},
        "gpu-sharing": {"mode": "timeslice", "replicas": 4},
    }


def test_an_exclusive_pool_leaves_the_profiles_sharing() -> None:
    config = {"gpu-sharing": {"mode": "mps", "replicas": 3}}
    assert of_profile(config, policy={"sharing": {"mode": "exclusive"}}) == config


def test_a_pool_without_a_cluster_leaves_the_profiles_join() -> None:
    assert of_profile({"k8s-join": CLUSTER}, policy={"kubernetes": {"gpu": "dra"}}) == {"k8s-join": CLUSTER}


# -- labels

MIXED = {
    "kernel-modules": {"load": ["kvm_amd"], "when": "cpu.vendor == 'amd'"},
    "iommu": {"when": "gpu and not rack in [r9]"},
    "sysctl": {"vm.swappiness": 10, "when": "site == fra and class == 'vps-host' and pool == one"},
}


@pytest.mark.parametrize(
    ("labels", "units"),
    [
        ({}, ["sysctl"]),
        ({"cpu.vendor": "amd"}, ["kernel-modules", "sysctl"]),
        ({"cpu.vendor": "intel", "gpu": True}, ["iommu", "sysctl"]),
        ({"gpu": True, "rack": "r9"}, ["sysctl"]),
        ({"gpu": True, "rack": "r1", "cpu.vendor": "amd"}, ["iommu", "kernel-modules", "sysctl"]),
    ],
)
def test_a_unit_is_for_the_hosts_of_its_when(labels: dict[str, Any], units: list[str]) -> None:
    found = of_profile(MIXED, labels)
    assert list(found) == units
    assert all("when" not in settings for settings in found.values())


def test_a_hosts_labels_lie_over_its_pools() -> None:
    pool = {**POOL, "labels": {"rack": "r1", "gpu": True}}
    profile = {"hostConfig": {"iommu": {"when": "gpu"}, "cpu": {"when": "rack == r2"}}}
    assert list(render(pool, profile)) == ["iommu"]
    assert list(render(pool, profile, {"rack": "r2"})) == ["cpu", "iommu"]


@pytest.mark.parametrize(
    ("labels", "paths"),
    [
        ({"pool": "two", "site": "ams", "class": "x"}, ["$.labels.pool", "$.labels.site", "$.labels.class"]),
        ({"pool": "one", "site": "fra", "class": "vps-host"}, []),
        (
            {"a": None, "b": [1], "c": {"d": 1}, "-e": 1, "f g": 1},
            ["$.labels.a", "$.labels.b", "$.labels.c", "$.labels['-e']", "$.labels['f g']"],
        ),
        ({"a": "x" * 1025}, ["$.labels.a"]),
        ([], ["$.labels"]),
        ("rack", ["$.labels"]),
    ],
)
def test_labels_that_are_none_or_contradict_the_pool_are_refused(labels: Any, paths: list[str]) -> None:
    if not paths:
        assert render(POOL, {}, labels) == {}
        return
    with pytest.raises(InvalidInput) as raised:
        render(POOL, {}, labels)
    assert [fault.path for fault in raised.value.faults] == paths


def test_a_pool_without_a_site_leaves_the_hosts_own() -> None:
    assert list(render({}, {"hostConfig": {"iommu": {"when": "site == fra"}}}, {"site": "fra"})) == ["iommu"]


def test_a_unit_that_its_when_leaves_out_is_the_pools_all_the_same() -> None:
    config = {"cpu": {"isolate": "4", "when": "nowhere"}}
    assert of_profile(config) == {}
    assert of_profile(config, policy={"cpu": {"governor": "powersave"}}) == {"cpu": {"governor": "powersave"}}


# -- the pool's layout


def test_a_layout_that_the_pool_lacks_is_missing_where_it_is_taken() -> None:
    config = {"mig-layout": {"from": "pool", "when": "gpu"}}
    assert of_profile(config) == {}
    with pytest.raises(InvalidInput) as raised:
        of_profile(config, {"gpu": True})
    assert [fault.path for fault in raised.value.faults] == ["$.pool.policy"]
    fleet = {"version": 1, "profiles": [{"name": "p", "hostConfig": config}], "pools": [{**POOL, "profile": "p"}]}
    assert check_fleet(fleet) == []
    del config["mig-layout"]["when"]
    lines = check_fleet(fleet)
    assert [line.split(": ")[1] for line in lines] == ["$.pools[0].policy"]
    assert "migLayout is missing" in lines[0]


@pytest.mark.parametrize("layout", ["all-1g.10gb", "3g.40gb,1g.10gb:4", "off", False, {"3g.40gb": 1, "1g.10gb": 4}])
def test_a_pools_layout_goes_in_as_it_is_written(layout: Any) -> None:
    found = of_profile({"mig-layout": {"from": "pool"}}, policy={"migLayout": layout})
    assert found == {"mig-layout": {"layout": layout}}


def test_what_stands_beside_from_stays() -> None:
    gpus = [{"select": {"model": "*A30*"}, "layout": "all-1g.6gb"}]
    found = of_profile({"mig-layout": {"from": "pool", "gpus": gpus}}, policy={"migLayout": "all-1g.10gb"})
    assert found == {"mig-layout": {"gpus": gpus, "layout": "all-1g.10gb"}}


def test_a_frozen_layout_stands_in_for_the_pools() -> None:
    profile = {"hostConfig": {"mig-layout": {"from": "pool"}}}
    pool = {**POOL, "policy": {"migLayout": "all-1g.10gb"}}
    assert render(pool, profile, None, None, "3g.40gb:2") == {"mig-layout": {"layout": "3g.40gb:2"}}
    assert render(POOL, profile, None, None, "3g.40gb:2") == {"mig-layout": {"layout": "3g.40gb:2"}}
    assert render(pool, {"hostConfig": {"mig-layout": {"layout": "off"}}}, None, None, "3g.40gb:2") == {
        "mig-layout": {"layout": "off"}
    }
    with pytest.raises(InvalidInput, match=r"^INVALID_INPUT: \$\.frozen_layout: .*'x'"):
        render(pool, profile, None, None, "x")


# -- what comes in


@pytest.mark.parametrize(
    ("pool", "profile", "path"),
    [
        (None, {}, "$.pool"),
        ("sandbox", {}, "$.pool"),
        ({"policies": {}}, {}, "$.pool.policies"),
        ({"name": 5}, {}, "$.pool.name"),
        ({"select": "("}, {}, "$.pool.select"),
        ({}, "deploy", "$.profile"),
        ({}, {"hostconfig": {}}, "$.profile.hostconfig"),
        ({}, {"hostConfig": None}, "$.profile.hostConfig"),
        ({}, {5: 6}, "$.profile"),
    ],
)
def test_what_is_no_pool_or_profile_is_refused_with_its_path(pool: Any, profile: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        render(pool, profile)
    assert [fault.path for fault in raised.value.faults] == [path]


def test_a_pool_needs_nothing_and_its_hosts_are_not_looked_at() -> None:
    assert render({}) == {}
    assert render({"hosts": {5: object()}, "policy": {}}, None) == {}


class Text(str):
    """As Ansible's texts, which know where they come from."""

    __slots__ = ()


class Number(int):
    """As Ansible's numbers."""

    __slots__ = ()


def dressed(value: Any) -> Any:
    if isinstance(value, dict):
        return {Text(key): dressed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [dressed(item) for item in value]
    if isinstance(value, bool):
        return value
    return Text(value) if isinstance(value, str) else Number(value)


def test_ansibles_own_types_are_taken_for_what_they_are() -> None:
    found = render(dressed(SANDBOX), dressed({"hostConfig": {"sysctl": BRIDGES}}))
    assert found == render(SANDBOX, {"hostConfig": {"sysctl": BRIDGES}})
    assert {type(found["hugepages"]["pages1g"])} == {int}
    assert {type(found["cpu"]["isolate"])} == {str}
    assert {type(key) for key in found["sysctl"]} == {str}


def test_a_number_with_a_point_that_is_whole_has_one_form() -> None:
    assert json.dumps(of_profile({"sysctl": {"vm.swappiness": 10.0}})) == '{"sysctl": {"vm.swappiness": 10}}'


def test_nothing_that_came_in_is_changed() -> None:
    pool = json.loads(json.dumps(SANDBOX))
    profile = {"hostConfig": {"mig-layout": {"from": "pool"}, "iommu": {"when": "x"}}}
    pool["policy"]["migLayout"] = "off"
    before = json.dumps([pool, profile])
    render(pool, profile, {"x": 1})
    assert json.dumps([pool, profile]) == before


# -- any pool and profile

POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "hugepages": st.fixed_dictionaries(
            {"size": st.sampled_from(["2Mi", "1Gi"]), "count": st.integers(0, 4096)},
            optional={"perNuma": st.booleans()},
        ),
        "kernelModules": st.fixed_dictionaries(
            {}, optional={"load": st.lists(st.sampled_from(["tun", "kvm", "vhost-net"]))}
        ),
        "cpu": st.fixed_dictionaries(
            {}, optional={"governor": st.just("performance"), "isolate": st.sampled_from(["", "4-7"])}
        ),
        "iommu": st.fixed_dictionaries({}, optional={"passthrough": st.booleans()}),
        "gpu": st.fixed_dictionaries({}, optional={"powerLimitWatts": st.integers(1, 700), "ecc": st.booleans()}),
        "migLayout": st.sampled_from(["off", "all-1g.10gb", "3g.40gb,1g.10gb:4"]),
        "sharing": st.fixed_dictionaries(
            {"mode": st.sampled_from(["mps", "timeslice", "exclusive"])}, optional={"replicas": st.integers(1, 48)}
        ),
        "kubernetes": st.sampled_from([{}, CLUSTER, {**CLUSTER, "taints": ["a:NoSchedule"], "gpu": "dra"}]),
    },
)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "sysctl": st.dictionaries(st.sampled_from(["vm.swappiness", "net.ipv4.ip_forward"]), st.integers(0, 1)),
        "nvidia-driver": st.just({"branch": "580", "when": "gpu"}),
        "fabric-manager": st.just({}),
        "container-toolkit": st.just({"cdi": True, "runtimes": ["docker"]}),
        "cpu": st.just({"isolate": "8-9", "when": "rack in [r1, 'r2'] or not gpu"}),
        "gpu-sharing": st.just({"mode": "mps"}),
    },
)
LABELS = st.dictionaries(st.sampled_from(["gpu", "rack"]), st.sampled_from(["r1", "r2", 3, True]))


def turned(value: Any) -> Any:
    """The same value, with the keys of every mapping in another order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


@given(POLICIES, CONFIGS, LABELS)
def test_what_is_rendered_is_taken_by_the_host_and_is_the_same_bytes(policy: Any, config: Any, labels: Any) -> None:
    pool, profile = {**POOL, "policy": policy}, {"hostConfig": config}
    units = render(pool, profile, labels)
    assert list(units) == sorted(units)
    assert set(units) <= set(ORDER)
    for name, settings in units.items():
        catalog.unit(name).check(dict(settings))
    section = to_section(units)
    assert json.dumps(section) == json.dumps(to_section(render(turned(pool), turned(profile), turned(labels))))
    assert json.dumps(units) == json.dumps(render(turned(pool), turned(profile), turned(labels)))
    assert from_section(section) == units
