# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""FleetConfig documents, good ones and bad ones with the path of each fault: for the check and for the schema."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.fleet_config import fleet_faults
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.input_faults import said

CLUSTER = {"apiServer": "https://10.0.0.1:6443", "caCertSha256": "a" * 64, "joinTokenRef": "k8s/join"}
POOL = {"name": "one", "site": "fra", "class": "vps-host"}
# The specification's.
SANDBOX = {
    "name": "sandbox-fra",
    "site": "fra",
    "class": "vps-host",
    "policy": {
        "kernelModules": {
            "load": ["kvm_intel", "vhost_net", "tun", "br_netfilter"],
            "options": {"kvm_intel": "nested=1"},
        },
        "hugepages": {"size": "1Gi", "count": 64, "perNuma": True},
        "cpu": {"governor": "performance", "isolate": "4-63,68-127"},
    },
}
# Everything that there is, once.
WHOLE: dict[str, Any] = {
    "version": 1,
    "profiles": [
        {
            "name": "deploy",
            "hostConfig": {
                "sysctl": {"net.bridge.bridge-nf-call-iptables": 0, "kernel.kptr_restrict": 2, "vm.panic_on_oom": True},
                "nvidia-driver": {"branch": "580", "open": True},
                "fabric-manager": {},
                "mig-layout": {"from": "pool", "when": "gpu and not rack in [r9]"},
                "container-toolkit": {"cdi": True},
                "kernel-modules": {"load": ["kvm_amd"], "when": "cpu.vendor == 'amd'"},
            },
        },
        {"name": "plain"},
    ],
    "pools": [
        {
            "name": "gpu-fra",
            "site": "fra",
            "class": "gpu-host",
            "profile": "deploy",
            "labels": {"rack": "r1", "gpu": True, "slots": 4},
            "hosts": {"node-1": {"ansible_host": "192.0.2.1", "bcd_labels": {"rack": "r2"}}, "node-2": None},
            "select": "rack == 'r1' and gpu",
            "policy": {
                "hugepages": {"size": "1Gi", "count": 64, "perNuma": True},
                "kernelModules": {"load": ["tun"], "options": {"kvm_intel": "nested=1"}, "blacklist": ["nouveau"]},
                "cpu": {"governor": "performance", "isolate": "4-63,68-127"},
                "iommu": {"passthrough": True},
                "gpu": {"powerLimitWatts": 500, "ecc": True},
                "migLayout": "all-1g.10gb",
                "kubernetes": {
                    **CLUSTER,
                    "labels": {"example.com/pool": "gpu"},
                    "taints": ["example.com/gpu=true:NoSchedule"],
                    "kubernetesVersion": "1.31",
                    "gpu": "device-plugin",
                    "gpuApi": "v1",
                },
                "sharing": {"mode": "exclusive"},
                "hostReserve": {"vcpu": 4, "memoryGiB": 16},
            },
        },
    ],
}


def changed(document: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """A copy of the document with a value at a place, "pools.0.policy.cpu"; GONE takes it out."""
    whole = copy.deepcopy(document)
    *steps, last = [int(step) if step.isdecimal() else step for step in place.split(".")]
    inside: Any = whole
    for step in steps:
        inside = inside[step]
    if value is GONE:
        del inside[last]
    else:
        inside[last] = value
    return whole


GONE = object()

GOOD: dict[str, Any] = {
    "everything": WHOLE,
    "the version alone": {"version": 1},
    "no pools": {"version": 1, "profiles": [], "pools": []},
    "the specification's sandbox pool": {
        "version": 1,
        "pools": [
            SANDBOX,
        ],
    },
    "a schema for the editor": {"$schema": "https://example.com/fleet-config.schema.json", **WHOLE},
    "named for Ansible": {"plugin": "bettercompute.bcd.fleet", **WHOLE},
    "nothing of a pool": {"version": 1, "pools": [{**POOL, "profile": None, "labels": None, "hosts": None}]},
    "empty parts of a pool": {"version": 1, "pools": [{**POOL, "labels": {}, "hosts": {}, "policy": {}}]},
    "the longest name": {"version": 1, "pools": [{**POOL, "name": "n" * 63, "site": "S.1_a-b", "class": "0"}]},
    "pages by node": changed(WHOLE, "pools.0.policy.hugepages", {"size": "2Mi", "count": [512, 0]}),
    "a layout as a mapping": changed(WHOLE, "pools.0.policy.migLayout", {"3g.40gb": 1, "1g.10gb": 4}),
    "off, as YAML reads it": changed(WHOLE, "pools.0.policy.migLayout", False),
    "MPS": changed(WHOLE, "pools.0.policy.sharing", {"mode": "mps", "replicas": 48}),
    "time slices": changed(WHOLE, "pools.0.policy.sharing", {"mode": "timeslice", "replicas": 1}),
    "no cluster": changed(WHOLE, "pools.0.policy.kubernetes", {"gpu": True, "labels": {"a": "b"}}),
    "a layout of the profile's own": changed(WHOLE, "profiles.0.hostConfig.mig-layout", {"layout": "off"}),
    "layouts by GPU": changed(
        WHOLE,
        "profiles.0.hostConfig.mig-layout",
        {
            "from": "pool",
            "gpus": [{"select": {"index": 0}, "layout": "off"}, {"select": {"model": "*A30*"}, "layout": "all-1g.6gb"}],
        },
    ),
    "settings by GPU": changed(
        WHOLE,
        "profiles.0.hostConfig.gpu-settings",
        {"ecc": True, "gpus": [{"select": {"pci": "0000:17:00.0"}, "powerLimitWatts": 400}]},
    ),
    "every unit": changed(
        WHOLE,
        "profiles.0.hostConfig",
        {
            "kernel-modules": {},
            "sysctl": {},
            "hugepages": {"pages2m": 0, "pages1g": [1, 2], "transparent": "never"},
            "cpu": {"isolate": ""},
            "iommu": {},
            "nvidia-driver": {"version": "580.95.05"},
            "fabric-manager": {"when": "nvswitch"},
            "gpu-settings": {},
            "mig-layout": {"layout": "empty"},
            "gpu-sharing": {"mode": "timeslice"},
            "container-toolkit": {"runtimes": ["docker", "containerd"]},
            "k8s-join": {"apiServer": "https://k8s.example.com", "caCertSha256": "sha256:" + "0" * 64},
        },
    ),
}


class Bad(NamedTuple):
    """A document, the paths of its faults, and whether a schema can see that there is one: rules over several parts,
    and the grammars of expressions and layouts, are beyond one.
    """

    document: Any
    paths: list[str]
    seen_by_schema: bool = True


def at(place: str, value: Any, *paths: str, seen: bool = True) -> Bad:
    """The whole document with one value changed; the faults are at the paths, or at the place itself."""
    path = "$" + "".join(
        f"[{step}]" if step.isdecimal() else f"['{step}']" if "-" in step else f".{step}" for step in place.split(".")
    )
    return Bad(changed(WHOLE, place, value), [*paths] or [path], seen)


BAD: dict[str, Bad] = {
    "nothing": Bad(None, ["$"]),
    "a list": Bad([WHOLE], ["$"]),
    "no version": at("version", GONE, "$"),
    "another version": at("version", 2),
    "a version as text": at("version", "1"),
    "a version that is true": at("version", True),
    "another plugin": at("plugin", "ini"),
    "an unknown key at the top": at("fleet", {}),
    "profiles by name": at("profiles", {"deploy": {}}, "$.profiles", "$.pools[0].profile"),
    "pools by name": at("pools", {"one": {}}),
    "a profile that is a text": at("profiles.1", "plain"),
    "a profile without a name": at("profiles.1", {}, "$.profiles[1]"),
    "a profile with a name that is none": at("profiles.1.name", "a b"),
    "a profile twice": at("profiles.1.name", "deploy", seen=False),
    "an unknown key of a profile": at("profiles.1.units", {}),
    "a hostConfig that is a list": at("profiles.1.hostConfig", []),
    "an unknown unit": at("profiles.0.hostConfig.kernel_modules", {}),
    "a unit that is null": at("profiles.0.hostConfig.fabric-manager", None),
    "a unit that is a list": at("profiles.0.hostConfig.fabric-manager", []),
    "an unknown setting": at("profiles.0.hostConfig.nvidia-driver.flavour", "open"),
    "a setting of another type": at("profiles.0.hostConfig.nvidia-driver.branch", 580),
    "a setting for who takes none": at("profiles.0.hostConfig.fabric-manager.port", 1),
    "a when that is a list": at("profiles.0.hostConfig.mig-layout.when", ["gpu"]),
    "a when that is no expression": at("profiles.0.hostConfig.mig-layout.when", "gpu &&", seen=False),
    "a layout from elsewhere": at("profiles.0.hostConfig.mig-layout.from", "capacity"),
    "a layout beside from": at(
        "profiles.0.hostConfig.mig-layout.layout", "off", "$.profiles[0].hostConfig['mig-layout']"
    ),
    "no driver": at("profiles.0.hostConfig.nvidia-driver", {"open": True}),
    "no mode": at("profiles.0.hostConfig.gpu-sharing", {"replicas": 4}),
    "too many slots": at(
        "profiles.0.hostConfig.gpu-sharing",
        {"mode": "mps", "replicas": 49},
        "$.profiles[0].hostConfig['gpu-sharing'].replicas",
    ),
    "a kernel parameter's name": at(
        "profiles.0.hostConfig.sysctl", {"swappiness": 1}, "$.profiles[0].hostConfig.sysctl.swappiness"
    ),
    "a kernel parameter's value": at(
        "profiles.0.hostConfig.sysctl", {"vm.a": [1]}, "$.profiles[0].hostConfig.sysctl['vm.a']"
    ),
    "a kernel parameter that is refused": at(
        "profiles.0.hostConfig.sysctl",
        {"kernel.core_pattern": "x"},
        "$.profiles[0].hostConfig.sysctl['kernel.core_pattern']",
        seen=False,
    ),
    "a GPU by two names": at(
        "profiles.0.hostConfig.gpu-settings",
        {"gpus": [{"select": {"index": 0, "model": "x"}, "ecc": True}]},
        "$.profiles[0].hostConfig['gpu-settings'].gpus[0]",
    ),
    "a pool without its names": at("pools.0", {}, "$.pools[0]", "$.pools[0]", "$.pools[0]"),
    "a pool that is null": at("pools.0", None),
    "a pool's name that is a number": at("pools.0.name", 5),
    "a pool's name that is too long": at("pools.0.name", "n" * 64),
    "a pool's name that begins with a dash": at("pools.0.name", "-a"),
    "a pool's name with a line behind it": at("pools.0.name", "a\n", seen=False),
    "a site that is empty": at("pools.0.site", ""),
    "a class with a blank": at("pools.0.class", "a b"),
    "an unknown key of a pool": at("pools.0.units", {}),
    "a profile that is not there": at("pools.0.profile", "other", seen=False),
    "labels that are a list": at("pools.0.labels", ["gpu"]),
    "a label that is null": at("pools.0.labels.rack", None),
    "a label that is a list": at("pools.0.labels.rack", ["r1"]),
    "a label's key": Bad(changed(WHOLE, "pools.0.labels", {"a b": 1}), ["$.pools[0].labels['a b']"]),
    "a label that is the pool's": at("pools.0.labels.site", "ams", seen=False),
    "hosts as a list": at("pools.0.hosts", ["node-1"]),
    "a host that is a text": at("pools.0.hosts.node-1", "192.0.2.1"),
    "a host's labels": at("pools.0.hosts.node-1.bcd_labels", "gpu"),
    "a host's label that is the pool's": at("pools.0.hosts.node-1.bcd_labels.class", "x", seen=False),
    "a selection that is a list": at("pools.0.select", ["gpu"]),
    "a selection that is no expression": at("pools.0.select", "gpu and", seen=False),
    "a policy that is null": at("pools.0.policy", None),
    "an unknown key of a policy": at("pools.0.policy.hugePages", {}),
    "kernel parameters of a pool": at("pools.0.policy.sysctl", {"vm.swappiness": 1}),
    "a size of pages": at("pools.0.policy.hugepages.size", "1GiB"),
    "no size of pages": at("pools.0.policy.hugepages.size", GONE, "$.pools[0].policy.hugepages"),
    "fewer pages than none": at("pools.0.policy.hugepages.count", -1),
    "pages as text": at("pools.0.policy.hugepages.count", "64"),
    "an unknown key of pages": at("pools.0.policy.hugepages.node", 0),
    "a module's options as a list": at("pools.0.policy.kernelModules.options", ["nested=1"]),
    "a module's name": at("pools.0.policy.kernelModules.load", ["a b"], "$.pools[0].policy.kernelModules.load[0]"),
    "CPUs as numbers": at("pools.0.policy.cpu.isolate", [4, 5]),
    "CPU 0": at("pools.0.policy.cpu.isolate", "0-3", seen=False),
    "a mapping that is null": at("pools.0.policy.iommu", None),
    "watts as text": at("pools.0.policy.gpu.powerLimitWatts", "500"),
    "a layout that is a number": at("pools.0.policy.migLayout", 7),
    "a layout that is true": at("pools.0.policy.migLayout", True),
    "a layout that is none": at("pools.0.policy.migLayout", "all-one", seen=False),
    "a way to share": at("pools.0.policy.sharing.mode", "vgpu"),
    "no way to share": at("pools.0.policy.sharing", {}),
    "no slots": at("pools.0.policy.sharing", {"mode": "mps", "replicas": 0}, "$.pools[0].policy.sharing.replicas"),
    "half a cluster": at("pools.0.policy.kubernetes.joinTokenRef", GONE, "$.pools[0].policy.kubernetes"),
    "an API server without TLS": at("pools.0.policy.kubernetes.apiServer", "http://10.0.0.1"),
    "a pin that is none": at("pools.0.policy.kubernetes.caCertSha256", "abc"),
    "a taint that is none": at("pools.0.policy.kubernetes.taints", ["gpu"], "$.pools[0].policy.kubernetes.taints[0]"),
    "a version as a number": at("pools.0.policy.kubernetes.kubernetesVersion", 1.31),
    "an unknown key of a cluster": at("pools.0.policy.kubernetes.token", "x"),
    "a reserve that is a number": at("pools.0.policy.hostReserve", 4),
    "labels and a policy that are none": Bad(
        {"version": 1, "pools": [{**POOL, "labels": [], "policy": None}]}, ["$.pools[0].labels", "$.pools[0].policy"]
    ),
    "two pools without a name": Bad(
        {"version": 1, "pools": [{"site": "fra", "class": "host"}] * 2}, ["$.pools[0]", "$.pools[1]"]
    ),
    "a profile without a name, and a pool that takes it": Bad(
        {"version": 1, "profiles": [{}], "pools": [{**POOL, "profile": ""}]}, ["$.profiles[0]", "$.pools[0].profile"]
    ),
    "a name that is none, and one that would be its group": Bad(
        {"version": 1, "pools": [{**POOL, "name": "a b"}, {**POOL, "name": "a-b"}]}, ["$.pools[0].name"]
    ),
    "a host without a name": Bad({"version": 1, "pools": [{**POOL, "hosts": {"": None}}]}, ["$.pools[0].hosts['']"]),
    "a host with a letter that nobody sees": Bad(
        {"version": 1, "pools": [{**POOL, "hosts": {"a\u202eb": None}}]}, ["$.pools[0].hosts['a\\u202eb']"], False
    ),
}


def check_fleet(document: Any) -> list[str]:
    """Everything that is wrong with a FleetConfig, a line each, as a person is told it."""
    return [said(fault) for fault in fleet_faults(document)]
