# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no host would take is refused on the controller: each part at its path, all at once, by the host's checks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.unit_checks import CHECKED, refusal
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.fleet_config import fleet_faults
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.host_units import render
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.input_faults import InvalidInput
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.unit_faults import INSTEAD, NEEDED, unit_faults

CONFIG = "$.profiles[0].hostConfig"
POLICY = "$.pools[0].policy"


def document(policy: Any = None, config: Any = None, **pool: Any) -> dict[str, Any]:
    """A FleetConfig of one pool and one profile."""
    there = {"name": "one", "site": "fra", "class": "vps-host", "profile": "deploy", **pool}
    if policy is not None:
        there["policy"] = policy
    return {"version": 1, "profiles": [{"name": "deploy", "hostConfig": config or {}}], "pools": [there]}


def faults(policy: Any = None, config: Any = None) -> dict[str, str]:
    """What is wrong, by path; rendering says the same by its own paths, whatever labels a host has."""
    config = {} if config is None else config
    asked = document(policy, config)
    found = fleet_faults(asked)
    assert len({fault.path for fault in found}) == len(found), found
    if found:
        with pytest.raises(InvalidInput) as raised:
            render(asked["pools"][0], asked["profiles"][0])
        same = [fault._replace(path=renamed(fault.path)) for fault in found]
        assert sorted(raised.value.faults) == sorted(same)
        lines = [f"INVALID_INPUT: {fault.path}: {' '.join(fault.text.split())}" for fault in raised.value.faults]
        assert str(raised.value).splitlines() == lines
    return {fault.path: fault.text for fault in found}


def renamed(path: str) -> str:
    return path.replace("$.profiles[0]", "$.profile").replace("$.pools[0]", "$.pool")


# -- kernel parameters: both lists, and every way to write a name

RUN_OR_HAND_OUT = [
    "kernel.core_pattern",
    "kernel.core_pipe_limit",
    "kernel.modprobe",
    "kernel.hotplug",
    "kernel.poweroff_cmd",
    "kernel.usermodehelper.bset",
    "kernel.usermodehelper.inheritable",
    "fs.binfmt_misc.register",
    "fs.binfmt_misc.status",
    "kernel.modules_disabled",
    "kernel.kexec_load_limit_panic",
    "kernel.kexec_load_limit_reboot",
]
ONE_WAY: list[tuple[str, list[Any], list[Any]]] = [  # refused values, values that raise the defence
    ("kernel.kptr_restrict", [0], [1, 2]),
    ("kernel.dmesg_restrict", [0, 2], [1]),
    ("kernel.randomize_va_space", [0, 1], [2]),
    ("kernel.yama.ptrace_scope", [0], [1, 3]),
    ("kernel.unprivileged_bpf_disabled", [0], [1, 2]),
    ("kernel.perf_event_paranoid", [-1, 0, 1], [2, 3]),
    ("kernel.kexec_load_disabled", [0], [1]),
    ("fs.protected_hardlinks", [0], [1]),
    ("fs.protected_symlinks", [0], [1]),
    ("fs.protected_fifos", [0], [1, 2]),
    ("fs.protected_regular", [0], [1, 2]),
    ("fs.suid_dumpable", [1, 2], [0]),
    ("net.core.bpf_jit_harden", [0], [1, 2]),
    ("vm.mmap_min_addr", [0, 65535], [65536]),
    ("net.ipv4.conf.all.accept_source_route", [1], [0]),
    ("net.ipv6.conf.default.accept_source_route", [1], [0]),
    ("net.ipv4.conf.eth0.accept_redirects", [1], [0]),
    ("net.ipv6.conf.all.accept_redirects", [1], [0]),
]


def spellings(name: str) -> list[str]:
    """A name as other readers of it may write it: / for every dot, - for _ and the other way round, in capitals."""
    ways = [
        name,
        name.replace(".", "/"),
        name.replace("_", "-"),
        name.replace(".", "/").replace("_", "-"),
        name.upper(),
    ]
    return list(dict.fromkeys(ways))


@pytest.mark.parametrize("name", RUN_OR_HAND_OUT)
def test_kernel_parameters_that_hand_out_the_host_are_refused_in_every_spelling(name: str) -> None:
    for spelling in spellings(name):
        found = faults(config={"sysctl": {"vm.swappiness": 10, spelling: 1}})
        assert list(found) == [f"{CONFIG}.sysctl['{spelling}']"]
        assert "is refused" in found[f"{CONFIG}.sysctl['{spelling}']"]


@pytest.mark.parametrize(("name", "refused", "taken"), ONE_WAY)
def test_kernel_parameters_go_one_way_in_every_spelling(name: str, refused: list[Any], taken: list[Any]) -> None:
    for spelling in spellings(name):
        for value in [*refused, *map(str, refused), f"0{taken[0]}", f"+{taken[0]}", hex(taken[0]), ""]:
            found = faults(config={"sysctl": {spelling: value}})
            assert list(found) == [f"{CONFIG}.sysctl['{spelling}']"], value
            assert "it would lower the host's defenses" in found[f"{CONFIG}.sysctl['{spelling}']"]
        for value in [*taken, *map(str, taken)]:
            assert faults(config={"sysctl": {spelling: value}}) == {}


def test_both_lists_of_kernel_parameters_are_refused_at_once() -> None:
    settings = {**dict.fromkeys(RUN_OR_HAND_OUT, 1), **{name: refused[0] for name, refused, _taken in ONE_WAY}}
    found = faults(config={"sysctl": {"vm.swappiness": 10, **settings}})
    assert list(found) == [f"{CONFIG}.sysctl['{name}']" for name in settings]


# -- every other refusal


@pytest.mark.parametrize(
    ("unit", "settings", "paths"),
    [
        ("sysctl", {"swappiness": 1}, [".swappiness"]),
        (
            "sysctl",
            {"vm.a": [1], "vm.b": {"c": 1}, "vm.c": None, "vm.d": 1.5, "vm.e": 1.0},
            ["['vm.a']", "['vm.b']", "['vm.c']", "['vm.d']"],
        ),
        ("sysctl", {"net.ipv4.ip_forward": 0, "net/ipv4/ip_forward": 1}, [""]),
        ("sysctl", [], [""]),
        ("sysctl", None, [""]),
        ("kernel-modules", {"options": {"vfio": "enable_unsafe_noiommu_mode=1"}}, [".options.vfio"]),
        ("kernel-modules", {"options": {"vfio": "enable-unsafe-noiommu-mode=Y"}}, [".options.vfio"]),
        (
            "kernel-modules",
            {"options": {"vfio_iommu_type1": "allow_unsafe_interrupts=1"}},
            [".options.vfio_iommu_type1"],
        ),
        (
            "kernel-modules",
            {"options": {"vfio-iommu-type1": "x=1 allow_unsafe_interrupts"}},
            [".options['vfio-iommu-type1']"],
        ),
        (
            "kernel-modules",
            {"options": {"a": "x=1\ninstall b /bin/sh", "b": "", "c": 5}},
            [".options.a", ".options.b", ".options.c"],
        ),
        ("kernel-modules", {"load": ["tun", "../x", "a b", 5, "kvm"]}, [".load[1]", ".load[2]", ".load[3]"]),
        ("kernel-modules", {"load": "tun"}, [".load"]),
        ("kernel-modules", {"load": ["tun", "kvm"], "blacklist": ["tun"]}, [""]),
        ("kernel-modules", {"load": ["tun", "../x"], "blacklist": ["tun"]}, [".load[1]", ""]),
        ("kernel-modules", {"options": {"a-b": "x=1", "a_b": "x=2"}}, [".options"]),
        ("kernel-modules", {"modules": []}, [".modules"]),
        ("cpu", {"isolate": "0"}, [".isolate"]),
        ("cpu", {"isolate": "0-3"}, [".isolate"]),
        ("cpu", {"isolate": "4-7,00"}, [".isolate"]),
        ("cpu", {"isolate": "7-4"}, [".isolate"]),
        ("cpu", {"isolate": "4-7,,9"}, [".isolate"]),
        ("cpu", {"isolate": ","}, [".isolate"]),
        ("cpu", {"isolate": "all"}, [".isolate"]),
        ("cpu", {"isolate": 5, "governor": "../x"}, [".isolate", ".governor"]),
        ("cpu", {"isolated": "4"}, [".isolated"]),
        ("iommu", {"passthrough": "yes", "on": True}, [".passthrough", ".on"]),
        ("hugepages", {"pages2m": -1, "pages1g": "64"}, [".pages2m", ".pages1g"]),
        ("hugepages", {"pages1g": [1, -1, True]}, [".pages1g[1]", ".pages1g[2]"]),
        ("hugepages", {"pages1g": []}, [".pages1g"]),
        ("hugepages", {"pages1g": [1, 2], "perNuma": True}, [""]),
        ("hugepages", {"perNuma": 1, "transparent": "sometimes", "size": "1Gi"}, [".perNuma", ".transparent", ".size"]),
        ("nvidia-driver", {}, [""]),
        ("nvidia-driver", {"branch": 580}, [".branch"]),
        ("nvidia-driver", {"open": "yes"}, [".open", ""]),
        ("nvidia-driver", {"version": "580"}, [".version"]),
        ("nvidia-driver", {"version": "580", "branch": "570"}, [".version"]),
        ("nvidia-driver", {"version": "580.95.05", "branch": "570"}, [""]),
        ("fabric-manager", {"port": 1}, [".port"]),
        ("gpu-settings", {"powerLimitWatts": 0, "ecc": "on"}, [".powerLimitWatts", ".ecc"]),
        (
            "gpu-settings",
            {"gpus": [{"select": {"index": 0}, "ecc": True}, {"ecc": True}, {"select": {"index": -1}, "ecc": True}]},
            [".gpus[1]", ".gpus[2]"],
        ),
        ("mig-layout", {}, [""]),
        ("mig-layout", {"layout": "all-1g"}, [".layout"]),
        ("mig-layout", {"layout": {"1g.10gb": 0, "3g.40gb": 1, "x": 1}}, [".layout['1g.10gb']", ".layout.x"]),
        ("mig-layout", {"layout": True}, [".layout"]),
        ("mig-layout", {"from": "pools"}, [".from"]),
        ("mig-layout", {"from": "pool", "layout": "off"}, [""]),
        (
            "mig-layout",
            {"from": "pool", "gpus": [{"select": {"index": 0}, "layout": "9x"}], "to": 1},
            [".gpus[0]", ".to"],
        ),
        ("gpu-sharing", {}, [""]),
        ("gpu-sharing", {"mode": "exclusive"}, [".mode"]),
        ("gpu-sharing", {"mode": "mps", "replicas": 49}, [".replicas"]),
        ("gpu-sharing", {"replicas": 0}, [".replicas", ""]),
        (
            "container-toolkit",
            {"cdi": 1, "runtimes": ["docker", "rkt", "containerd", None]},
            [".cdi", ".runtimes[1]", ".runtimes[3]"],
        ),
        ("k8s-join", {"labels": {"a": 1}}, [".labels.a", ""]),
        (
            "k8s-join",
            {"apiServer": "http://a", "caCertSha256": "x", "joinTokenRef": "abcdef.0123456789abcdef"},
            [".apiServer", ".caCertSha256", ".joinTokenRef"],
        ),
        ("k8s-joined", {}, [""]),
        ("KernelModules", {}, [""]),
        ("cpu", "performance", [""]),
    ],
)
def test_a_profile_is_refused_where_a_host_would_refuse_it(unit: str, settings: Any, paths: list[str]) -> None:
    place = f"{CONFIG}['{unit}']" if "-" in unit else f"{CONFIG}.{unit}"
    assert sorted(faults(config={"iommu": {}, unit: settings})) == sorted(place + path for path in paths)


@pytest.mark.parametrize("when", [5, None, "", "gpu and", "'gpu'", ["gpu"]])
def test_a_when_that_is_no_expression_is_refused(when: Any) -> None:
    assert list(faults(config={"iommu": {"when": when}})) == [f"{CONFIG}.iommu.when"]


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({"sysctl": {"vm.swappiness": 10}}, {".sysctl": "only from a profile"}),
        ({"kernel-modules": {}}, {"['kernel-modules']": "it takes hugepages, kernelModules"}),
        ({"cpu": None}, {".cpu": "this is null"}),
        ({"cpu": [], "hostReserve": 5}, {".cpu": "this is a list", ".hostReserve": "this is 5"}),
        (
            {"cpu": {"isolate": "0-3", "governor": 1}},
            {".cpu.isolate": "must not include CPU 0", ".cpu.governor": "takes a string"},
        ),
        ({"cpu": {"isolate": "9-4"}}, {".cpu.isolate": "runs backwards"}),
        (
            {"kernelModules": {"options": {"vfio": "enable_unsafe_noiommu_mode=1"}, "load": ["/"]}},
            {".kernelModules.options.vfio": "host memory", ".kernelModules.load[0]": "no module name"},
        ),
        ({"iommu": {"passthrough": "on"}}, {".iommu.passthrough": "true or false"}),
        (
            {"gpu": {"powerLimitWatts": 1.5, "mode": 1}},
            {".gpu.powerLimitWatts": "an integer", ".gpu.mode": "no setting"},
        ),
        ({"hugepages": {}}, {".hugepages": "size (2Mi or 1Gi) and count (the number of pages) must be given"}),
        ({"hugepages": {"size": "1Gi"}}, {".hugepages": "count (the number of pages) must be given"}),
        ({"hugepages": {"count": 1}}, {".hugepages": "size (2Mi or 1Gi) must be given"}),
        (
            {"hugepages": {"size": "1G", "count": "64", "perNuma": 1, "node": 0}},
            {
                ".hugepages.size": "2Mi or 1Gi",
                ".hugepages.count": "count is a string",
                ".hugepages.perNuma": "true or false",
                ".hugepages.node": "no such key",
            },
        ),
        ({"hugepages": {"size": "1Gi", "count": -1}}, {".hugepages.count": "no fewer pages than 0"}),
        ({"hugepages": {"size": ["1Gi"], "count": 1}}, {".hugepages.size": "this is a list"}),
        ({"sharing": {"mode": "mps", "replicas": 49}}, {".sharing.replicas": "1 to 48"}),
        ({"sharing": {"mode": "timeslice", "replicas": 0}}, {".sharing.replicas": "1 to 48"}),
        ({"sharing": {"mode": "mps", "replicas": "10"}}, {".sharing.replicas": "an integer"}),
        ({"sharing": {"mode": "mps", "replicas": True}}, {".sharing.replicas": "an integer"}),
        ({"sharing": {"mode": "exclusive", "replicas": 49}}, {".sharing.replicas": "1 to 48"}),
        ({"sharing": {"replicas": 4}}, {".sharing": "mode is missing"}),
        (
            {"sharing": {"mode": "MPS", "slots": 4}},
            {".sharing.mode": "mps, timeslice, exclusive", ".sharing.slots": "no such key"},
        ),
        ({"migLayout": "all-1g.10gb,2g.20gb"}, {".migLayout": "no profile"}),
        ({"migLayout": None}, {".migLayout": "layout is null"}),
        ({"migLayout": {"1g.10gb": 0}}, {".migLayout": "count from 1 on"}),
        ({"migLayout": ""}, {".migLayout": "is empty"}),
        ({"hostReserve": {"vcpu": 2}, "reserve": {}}, {".reserve": "no such key"}),
        (
            {"kubernetes": {"labels": {"kubernetes.io/role": "x"}, "taints": ["a"]}},
            {".kubernetes.labels['kubernetes.io/role']": "no kubelet", ".kubernetes.taints[0]": "does not end in"},
        ),
        (
            {"kubernetes": {"kubernetesVersion": 1.3, "gpus": 1}},
            {".kubernetes.kubernetesVersion": "takes a string", ".kubernetes.gpus": "no such key"},
        ),
        ([], {"": "this is a list"}),
        ("x", {"": "this is 'x'"}),
    ],
)
def test_a_policy_is_refused_where_no_host_could_take_it(policy: Any, wanted: dict[str, str]) -> None:
    found = faults(policy)
    assert sorted(found) == sorted(POLICY + path for path in wanted)
    for path, phrase in wanted.items():
        assert phrase in found[POLICY + path]


CLUSTER = {"apiServer": "https://10.0.0.1:6443", "caCertSha256": "a" * 64, "joinTokenRef": "vault:k8s/join"}
SETS = [frozenset(key for at, key in enumerate(CLUSTER) if number >> at & 1) for number in range(1, 7)]


@pytest.mark.parametrize("there", SETS, ids=lambda keys: "+".join(sorted(keys)))
def test_the_cluster_is_named_whole_or_not_at_all(there: frozenset[str]) -> None:
    found = faults({"kubernetes": {key: CLUSTER[key] for key in CLUSTER if key in there}})
    assert list(found) == [f"{POLICY}.kubernetes"]
    missing = found[f"{POLICY}.kubernetes"].partition(" missing")[0]
    assert {key for key in CLUSTER if key in missing} == set(CLUSTER) - there


def test_a_partial_cluster_hides_no_other_fault() -> None:
    found = faults({"kubernetes": {"apiServer": "http://x", "taints": ["a"]}})
    assert list(found) == [POLICY + path for path in (".kubernetes", ".kubernetes.apiServer", ".kubernetes.taints[0]")]


def test_all_faults_of_profile_and_policy_come_at_once() -> None:
    found = faults(
        {"sysctl": {}, "cpu": {"isolate": "0"}, "sharing": {"mode": "mps", "replicas": 49}, "migLayout": "x"},
        {"sysctl": {"kernel.core_pattern": "|/x"}, "cpus": {}, "iommu": {"when": "("}},
    )
    assert sorted(found) == sorted(
        [
            f"{CONFIG}.sysctl['kernel.core_pattern']",
            f"{CONFIG}.cpus",
            f"{CONFIG}.iommu.when",
            f"{POLICY}.sysctl",
            f"{POLICY}.cpu.isolate",
            f"{POLICY}.sharing.replicas",
            f"{POLICY}.migLayout",
        ]
    )


def test_an_empty_list_of_isolated_cpus_is_none_at_all() -> None:
    """As on the host, where it takes the boot arguments away."""
    assert faults({"cpu": {"isolate": ""}}) == {}


def test_mps_beside_mig_is_for_each_host_to_refuse() -> None:
    """MPS serves the GPUs without MIG; whether a host has any left is seen there."""
    assert faults({"sharing": {"mode": "mps"}, "migLayout": "all-1g.10gb"}, {"mig-layout": {"from": "pool"}}) == {}


# -- the same code


def test_the_controller_has_the_checks_of_the_hosts_units() -> None:
    assert list(CHECKED) == list(catalog.SHIPPED)
    for name, checked in CHECKED.items():
        unit = catalog.unit(name)
        assert checked.check is unit.check
        assert checked.fields is unit.fields


@pytest.mark.parametrize("unit", [*NEEDED])
def test_what_stands_in_for_settings_is_taken(unit: str) -> None:
    assert refusal(unit, NEEDED[unit]) == ""
    assert refusal(unit, INSTEAD.get(unit, NEEDED[unit])) == ""


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 70000)
    | st.sampled_from(["", "0-3", "4-7", "mps", "off", "580", "a b"]),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "layout", "select", "index"]), inside, max_size=3)
    ),
    max_leaves=5,
)


@given(st.data())
def test_faults_are_found_exactly_where_the_host_refuses(data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from([*CHECKED]))
    fields = [field.wire for field in CHECKED[unit].fields if field.wire] or ["vm.swappiness", "kernel.core_pattern"]
    settings = data.draw(st.dictionaries(st.sampled_from([*fields, "other"]), JSON, max_size=4))
    try:
        catalog.unit(unit).check(dict(settings))
        refused = False
    except Refused:
        refused = True
    found = unit_faults(unit, settings, "$")
    assert bool(found) is refused
    assert all(fault.path.startswith("$") and fault.text for fault in found)
    assert len({fault.path for fault in found}) == len(found)
