# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A FleetConfig as inventory: by the real ansible-inventory, and by the playbooks on simulated hosts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sim import controller, fleet
from tests.sim.controller import Played
from tests.sim.host import SimulatedHost
from tests.sim.machine import Machine
from tests.sim.tree import PROFILES, machine

newest_core = pytest.mark.newest_core
# The document of the specification's first example, byte for byte.
SPECIFIED = """\
{
  "version": 1,
  "pools": [
    {
      "name": "sandbox-fra",
      "site": "fra",
      "class": "vps-host",
      "policy": {
        "kernelModules": {
          "load": ["kvm_intel", "vhost_net", "tun", "br_netfilter"],
          "options": { "kvm_intel": "nested=1" }
        },
        "hugepages": { "size": "1Gi", "count": 64, "perNuma": true },
        "cpu": { "governor": "performance", "isolate": "4-63,68-127" }
      }
    }
  ]
}
"""
# What its text says of the machines' profile, and the hostConfig of its second example.
BRIDGED = {"sysctl": {"net.bridge.bridge-nf-call-iptables": 0, "net.bridge.bridge-nf-call-ip6tables": 0}}
GPUS = {
    "nvidia-driver": {"branch": "580", "open": True},
    "fabric-manager": {},
    "mig-layout": {"from": "pool"},
    "container-toolkit": {"cdi": True},
}
# The machine of the first example: two nodes with 64 CPUs each.
SANDBOX = machine("debian", cpus=128, nodes=2, memory_mb=262144, runtime_1g=40, boot_1g=80)
SECTION = {
    "cpu": {"governor": "performance", "isolate": "4-63,68-127"},
    "hugepages": {"pages1g": 64, "perNuma": True},
    "kernel-modules": {
        "load": ["kvm_intel", "vhost_net", "tun", "br_netfilter"],
        "options": {"kvm_intel": "nested=1"},
    },
}
MIG = "gpu-01"


def pool(name: str, **more: Any) -> dict[str, Any]:
    """A pool at fra."""
    return {"name": name, "site": "fra", "class": "host", **more}


class Fleet:
    """Documents and inventories below a directory, and what ansible makes of them."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.sources: list[str] = []

    def write(self, name: str, content: Any) -> Path:
        """A file, of text or of JSON."""
        path = self.scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def simulate(self, **kinds: Machine) -> None:
        """Make simulated hosts, NAME-01 of each kind, in an inventory that is the first source."""
        inventory = fleet.make(str(self.scratch / "sim"), [fleet.Hosts(name, kind) for name, kind in kinds.items()])
        self.sources = [inventory, *self.sources]

    def host(self, name: str) -> SimulatedHost:
        """One of them."""
        return SimulatedHost(str(self.scratch / "sim" / "trees" / name))

    def inventory(self, *words: str, sources: tuple[str, ...] = ()) -> Played:
        """Run ansible-inventory."""
        given = [word for source in sources or self.sources for word in ("-i", str(self.scratch / source))]
        done = subprocess.run(
            [sys.executable, "-m", "ansible", "inventory", *given, *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.scratch,
            env=controller.environment(str(self.scratch)),
            stdin=subprocess.DEVNULL,
        )
        return Played(done.returncode, done.stdout, " ".join(done.stderr.split()))

    def groups(self, *sources: str) -> dict[str, list[str]]:
        """The hosts of our groups, sorted."""
        listed = self.inventory("--list", sources=sources)
        assert (listed.rc, listed.err) == (0, "")
        found = {name: sorted(group.get("hosts", ())) for name, group in json.loads(listed.out).items()}
        return {name: hosts for name, hosts in found.items() if name.startswith("bcd_")}

    def units(self, *sources: str) -> dict[str, Any]:
        """bcd_converge_units of each host, as a task of its has them."""
        task = {"ansible.builtin.debug": {"msg": "{{ bcd_converge_units | default('none') }}"}}
        book = self.write("show.yml", [{"hosts": "all", "gather_facts": False, "tasks": [task]}])
        played = self.play(str(book), *sources, as_json=True)
        assert played.rc == 0, played.out
        return {event["host"]: event["result"]["msg"] for event in played.events()["tasks"]}

    def play(self, what: str, *sources: str, extra: tuple[str, ...] = (), **how: Any) -> Played:
        """Run a playbook."""
        first, *others = [str(self.scratch / source) for source in sources or self.sources]
        more = [word for source in others for word in ("-i", source)]
        return controller.playbook(str(self.scratch), first, what, *more, *extra, **how)

    def converge(self, *words: str) -> Ran:
        """Converge all."""
        return Ran(self.play("bettercompute.bcd.converge", extra=words, as_json=True))


class Ran:
    """What a run of converge came to."""

    def __init__(self, played: Played) -> None:
        self.played = played
        self.events = played.events()

    def units(self, host: str) -> dict[str, dict[str, Any]]:
        """The units of a host."""
        [units] = [
            event["result"]["units"]
            for event in self.events["tasks"]
            if event["host"] == host and event["action"] == "bettercompute.bcd.host_section"
        ]
        return {unit["unit"]: unit for unit in units}

    def recap(self, host: str) -> dict[str, int]:
        """What is not 0 in the recap of a host."""
        return {key: count for key, count in self.events["stats"][host].items() if count}


@pytest.fixture
def site(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


# -- what ansible-inventory shows


def test_the_specifications_document_loads_as_it_stands(site: Fleet) -> None:
    site.write("fleet.json", SPECIFIED)
    site.write("hosts.yml", {"all": {"hosts": {"node-1": {"bcd_pool": "sandbox-fra"}}}})
    graph = site.inventory("--graph", sources=("hosts.yml", "fleet.json"))
    assert (graph.rc, graph.err) == (0, "")
    assert re.findall(r"@(bcd_\w+):\n *\|  \|--(\S+)", graph.out) == [
        ("bcd_pool_sandbox_fra", "node-1"),
        ("bcd_site_fra", "node-1"),
        ("bcd_class_vps_host", "node-1"),
    ]
    assert site.units("hosts.yml", "fleet.json") == {"node-1": SECTION}


def test_hosts_come_into_pools_by_the_document_by_themselves_and_by_labels(site: Fleet) -> None:
    hosts = {
        "a1": {"bcd_pool": "a"},
        "a2": {},
        "a3": {},
        "b1": {"bcd_labels": {"gpu": "h100", "rack": "{{ where }}"}, "where": "r1"},
        "b2": {"bcd_labels": {"gpu": "h100", "rack": "r2"}},
        "lone": {},
    }
    grouped: dict[str, Any] = {"bcd_pool_a": {"hosts": {"a3": {}}}}
    site.write("fleet/10-hosts.yml", {"all": {"hosts": hosts, "children": grouped}})
    site.write("fleet/host_vars/a2.yml", {"bcd_pool": "a"})
    site.write(
        "fleet/20.fleet.yml",
        {
            "version": 1,
            "pools": [
                pool("a", hosts={"a4": {"ansible_host": "192.0.2.4"}}),
                {**pool("b-1", select="gpu == 'h100' and rack in [r1]"), "site": "fra.2", "class": "gpu host"[:3]},
            ],
        },
    )
    site.write(
        "fleet/30-constructed.yml",
        "plugin: ansible.builtin.constructed\nkeyed_groups:\n  - {key: bcd_pool, prefix: bcd_by}\n",
    )
    assert site.groups("fleet") == {
        "bcd_pool_a": ["a1", "a2", "a3", "a4"],
        "bcd_pool_b_1": ["b1"],
        "bcd_site_fra": ["a1", "a2", "a3", "a4"],
        "bcd_site_fra_2": ["b1"],
        "bcd_class_host": ["a1", "a2", "a3", "a4"],
        "bcd_class_gpu": ["b1"],
        "bcd_by_a": ["a1", "a2", "a3", "a4"],
        "bcd_by_b_1": ["b1"],
    }


def test_all_that_is_wrong_ends_every_command(site: Fleet) -> None:
    """Ansible's own plugin yaml would take this file, skip what it does not know, and go on without a host."""
    site.write("hosts.yml", {"all": {"hosts": {"lost": {"bcd_pool": "nowhere"}, "h": {"bcd_pool": "b"}}}})
    site.write(
        "fleet.yml",
        "version: 2\n"
        "pools:\n"
        "- {name: a, site: fra, class: x, hosts: {h: }, policy: {cpu: {isolate: 0-3}, iommu: {}, iommu: {}}}\n"
        "- {name: b, site: fra, profile: none}\n",
    )
    tried = [
        site.inventory(*words, sources=("hosts.yml", "fleet.yml"))
        for words in (("--graph",), ("--list",), ("--host", "h"))
    ]
    assert [(seen.rc, seen.out) for seen in tried] == [(4, "")] * 3
    paths = re.findall(r"INVALID_INPUT: (\$\S*): ", tried[0].err)
    assert sorted(paths) == [
        "$.pools",  # lost
        "$.pools[0].hosts.h",  # in b too
        "$.pools[0].policy.cpu.isolate",
        "$.pools[0].policy.iommu",  # twice
        "$.pools[1]",  # class is missing
        "$.pools[1].profile",
        "$.version",
    ]
    played = site.play("bettercompute.bcd.converge", "hosts.yml", "fleet.yml")
    assert (played.rc, "TASK" in played.out, "$.pools[1].profile" in played.err) == (4, False, True)


@newest_core
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "version: 1\na0: &a0 {x: 1}\n"
            + "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 30)),
            "$: its aliases (*name) stand for more than 1000000 values",
        ),
        ("version: 1\nself: &a [*a, *a]\n", "$: its aliases (*name) stand for more than 1000000 values"),
        ("version: " + "9" * 5000, "$: "),
        ("version: 0x" + "f" * 5000, "$.version: this is a number of more than 30 digits"),
        ("version: 1\npools: [{name: a, site: .nan, class: 2026-01-01}]", "$.pools[0].site: this is nan"),
        ("version: 1\npools: " + "[" * 100000, "$: this is neither JSON nor YAML"),
    ],
    ids=["aliases", "itself", "digits", "hexadecimal", "nan", "deep"],
)
def test_a_hostile_document_ends_at_once(site: Fleet, text: str, said: str) -> None:
    site.write("fleet.yml", text)
    seen = site.inventory("--list", sources=("fleet.yml",))
    assert (seen.rc, seen.out) == (4, "")
    assert f"INVALID_INPUT: {said}" in seen.err


def test_a_pool_that_cannot_be_told_yet_ends_every_command_too(site: Fleet) -> None:
    site.write("hosts.yml", {"all": {"hosts": {"h": {"bcd_pool": "{{ not_yet }}"}}}})
    site.write("fleet.yml", {"version": 1, "pools": [pool("a")]})
    seen = site.inventory("--graph", sources=("hosts.yml", "fleet.yml"))
    assert (seen.rc, seen.out) == (4, "")
    assert "INVALID_INPUT: $.pools: the bcd_pool of the host h cannot be told while inventories are read" in seen.err


def test_a_source_that_comes_too_late_is_explained(site: Fleet) -> None:
    site.write("hosts.yml", {"all": {"hosts": {"node-1": {"bcd_pool": "a"}}}})
    site.write("fleet.yml", {"version": 1, "pools": [pool("a")]})
    seen = site.inventory("--graph", "bcd_pool_a", sources=("fleet.yml", "hosts.yml"))
    assert seen.rc == 0
    assert "$.pools[0] has no host" in seen.err
    assert "-i hosts.yml -i fleet.yml" in seen.err
    played = site.play("bettercompute.bcd.converge", "fleet.yml", "hosts.yml")
    assert played.rc in (2, 8)  # 8: of ansible-core 2.16, where a play with a host that failed is ended
    assert "the FleetConfig was read before the source of the host" in " ".join(played.out.split())


def test_other_files_are_left_to_ansible(site: Fleet) -> None:
    """An inventory that is only named so, and a FleetConfig that says of itself what it is where nothing is enabled."""
    site.write("fleet.yml", {"all": {"hosts": {"node-1": {}}}})
    assert "node-1" in site.inventory("--graph", sources=("fleet.yml",)).out
    site.write("own.cfg", "[defaults]\n")
    site.write(
        "eu.fleet.yml", {"plugin": "bettercompute.bcd.fleet", "version": 1, "pools": [pool("a", hosts={"h": {}})]}
    )
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "inventory", "-i", "eu.fleet.yml", "--list"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=site.scratch,
        env={**controller.environment(str(site.scratch)), "ANSIBLE_CONFIG": "own.cfg"},
    )
    assert json.loads(done.stdout)["bcd_pool_a"]["hosts"] == ["h"]


def test_a_fleet_may_have_several_documents(site: Fleet) -> None:
    hosts = {"h1": {"bcd_pool": "eu"}, "h2": {"bcd_pool": "us"}}
    site.write("fleet/10-hosts.yml", {"all": {"hosts": hosts}})
    site.write("fleet/20-eu.fleet.yml", {"version": 1, "pools": [pool("eu")]})
    site.write("fleet/30-us.fleet.yml", {"version": 1, "pools": [pool("us")]})
    assert site.groups("fleet")["bcd_pool_us"] == ["h2"]
    site.write("fleet/30-us.fleet.yml", {"version": 1, "pools": [pool("us", hosts={"h1": {}}), pool("eu")]})
    seen = site.inventory("--graph", sources=("fleet",))
    assert seen.rc == 4
    assert sorted(re.findall(r"INVALID_INPUT: (\S+): ", seen.err)) == ["$.pools[0].hosts.h1", "$.pools[1].name"]


@newest_core
def test_documents_side_by_side_are_read_in_any_order_or_alone(site: Fleet) -> None:
    site.write("hosts.yml", {"all": {"hosts": {"h1": {"bcd_pool": "eu"}, "h2": {"bcd_pool": "us"}}}})
    site.write("fleet/eu.fleet.yml", {"version": 1, "pools": [pool("eu")]})
    site.write("fleet/us.fleet.yml", {"version": 1, "pools": [pool("us")]})
    groups = site.groups("hosts.yml", "fleet/us.fleet.yml", "fleet/eu.fleet.yml")
    assert (groups["bcd_pool_eu"], groups["bcd_pool_us"]) == (["h1"], ["h2"])
    # Two fleets of their own, each of which has a pool of that name, and one that is no document at all.
    site.write("apart/fleet.yml", {"version": 1, "pools": [pool("a", hosts={"production": {}})]})
    site.write("apart/staging.fleet.yml", {"version": 1, "pools": [pool("a", hosts={"staging": {}})]})
    site.write("apart/zz.fleet.json", '{"version": ' + "9" * 5000 + "}")
    assert site.groups("apart/fleet.yml")["bcd_pool_a"] == ["production"]
    assert site.groups("apart/staging.fleet.yml")["bcd_pool_a"] == ["staging"]


def test_what_a_host_says_of_itself_wins(site: Fleet) -> None:
    hosts = {
        "plain": {},
        "own": {"bcd_converge_units": {"sysctl": {"vm.swappiness": 20}}, "bcd_converge_site": "ber"},
        "labelled": {"bcd_labels": {"rack": "r2", "cores": 64}},
        "wire": {"bcd_converge_wire_units": []},
    }
    site.write("fleet/hosts.yml", {"all": {"hosts": {"beside": {"bcd_pool": "a"}}}})
    site.write("fleet/host_vars/beside.yml", {"bcd_labels": {"rack": "r2"}, "cores": 8})
    # What a document says is no template.
    cluster = {
        "apiServer": "https://192.0.2.1",
        "caCertSha256": "ab" * 32,
        "joinTokenRef": "{{ 7 * 7 }}",
    }
    profile = {"sysctl": {"vm.swappiness": 10, "when": "rack == 'r2' and not cores < 64"}, "iommu": {}}
    site.write(
        "fleet/pools.fleet.yml",
        {
            "version": 1,
            "profiles": [{"name": "p", "hostConfig": profile}],
            "pools": [pool("a", hosts=hosts, profile="p", labels={"rack": "r1"}, policy={"kubernetes": cluster})],
        },
    )
    joined = {"k8s-join": cluster}
    assert site.units("fleet") == {
        "plain": {**joined, "iommu": {}},
        "own": {"sysctl": {"vm.swappiness": 20}},
        "labelled": {**joined, "iommu": {}, "sysctl": {"vm.swappiness": 10}},
        "wire": "none",
        "beside": {**joined, "iommu": {}, "sysctl": {"vm.swappiness": 10}},
    }


def test_what_awx_imports_says_the_same(site: Fleet) -> None:
    """AWX keeps what ansible-inventory exports, and gives it to a job as a script: units are rendered in the job."""
    profile = {"mig-layout": {"from": "pool"}, "sysctl": {"vm.swappiness": 10, "when": "rack == r1"}}
    hosts = {"h1": {"bcd_labels": {"rack": "r1"}}, "h2": {}}
    config = pool("a", profile="p", hosts=hosts, policy={"migLayout": "all-1g.10gb"})
    site.write("fleet.json", {"version": 1, "profiles": [{"name": "p", "hostConfig": profile}], "pools": [config]})
    exported = site.inventory("--list", "--export", sources=("fleet.json",))
    assert (exported.rc, exported.err, "__ansible" in exported.out) == (0, "", False)
    site.write("exported.json", exported.out)
    site.write("job.sh", '#!/bin/sh\ncat "${0%/*}/exported.json"\n').chmod(0o755)
    layout = {"mig-layout": {"layout": "all-1g.10gb"}}
    assert site.units("job.sh") == {"h1": {**layout, "sysctl": {"vm.swappiness": 10}}, "h2": layout}


# -- what the playbooks make of it


def test_a_converged_host_costs_one_task_and_says_nothing_of_gpus(site: Fleet) -> None:
    site.simulate(node=machine("debian", cpus=4, nodes=1, memory_mb=4096))
    policy = {"kernelModules": {"load": ["tun", "br_netfilter"]}, "hugepages": {"size": "2Mi", "count": 16}}
    config = pool("sandbox", profile="deploy", policy=policy, hosts={"node-01": {}})
    profiles = [{"name": "deploy", "hostConfig": BRIDGED}]
    site.write("fleet.json", {"version": 1, "profiles": profiles, "pools": [config]})
    site.sources.append("fleet.json")
    first = site.converge()
    assert first.recap("node-01") == {"ok": 1, "changed": 1}
    assert {name: unit["state"] for name, unit in first.units("node-01").items()} == {
        "kernel-modules": "converged",
        "sysctl": "converged",
        "hugepages": "converged",
    }
    assert site.host("node-01").read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "0\n"
    again = site.converge()
    assert (again.recap("node-01"), again.played.err) == ({"ok": 1}, "")


def gpu_fleet(layout: str) -> dict[str, Any]:
    """One pool of GPU hosts with a layout; the driver is the image's."""
    profile = {"name": "gpus", "hostConfig": {"mig-layout": {"from": "pool"}}}
    return {
        "version": 1,
        "profiles": [profile],
        "pools": [pool("gpus", profile="gpus", hosts={MIG: {}}, policy={"migLayout": layout}), pool("none")],
    }


def instances(host: SimulatedHost) -> list[list[str]]:
    """The MIG instances of each GPU."""
    with host.gpus() as gpus:
        return [gpus.instances(index) for index in range(len(gpus.cards))]


@newest_core
def test_a_changed_layout_waits_for_gpus_that_are_held(site: Fleet) -> None:
    site.simulate(gpu=PROFILES["h100"])
    host = site.host(MIG)
    site.write("fleet.json", gpu_fleet("3g.40gb:2"))
    site.sources.append("fleet.json")
    with host.gpus() as gpus:
        device = {"id": f"{gpus.cards[0].uuid}/gi1/ci0", "device_class": "gpu.mig"}
    held = {"bcd_devices_assignments": [{"allocation_id": "a1", "binding": "BINDING_HOLD", "devices": [device]}]}
    site.write("held.json", held)
    first = site.converge("-e", "@held.json")
    assert first.units(MIG)["mig-layout"]["state"] == "converged"
    assert host.read("/etc/cdi/bcd-a1.json") is not None
    before = instances(host)
    assert before == [["3g.40gb", "3g.40gb"]] * 2

    # Both GPUs keep their layout, though one of them is free; the run says what waits, and for whom.
    site.write("fleet.json", gpu_fleet("all-1g.10gb"))
    report = {"ANSIBLE_CALLBACKS_ENABLED": "bettercompute.bcd.pass_report"}
    for name, marks in (("plan", ()), ("converge", ("-e", "@held.json"))):
        played = site.play(f"bettercompute.bcd.{name}", extra=marks, variables=report)
        assert played.rc == 0, played.out
        said = " ".join(played.out.partition("PASS REPORT")[2].split())
        assert f"{MIG}: note: mig-layout: the pool's layout all-1g.10gb waits for GPU 0 (allocation a1)" in said
        assert "the host keeps 3g.40gb:2 until they are free" in said
        assert instances(host) == before
    told = json.loads((site.scratch / "bcd-report" / "fleet.json").read_text(encoding="utf-8"))["hosts"][MIG]
    assert (told["pool"], told["drift"]) == ("gpus", [])
    [notes] = [unit["notes"] for unit in told["units"] if unit["unit"] == "mig-layout"]
    assert any("waits for GPU 0 (allocation a1)" in note for note in notes)

    # Free, it is changed, and nothing is said of it any more.
    site.write("held.json", {"bcd_devices_assignments": []})
    site.converge("-e", "@held.json")
    played = site.play("bettercompute.bcd.converge", variables=report)
    assert (played.rc, "waits for GPU" in played.out) == (0, False)
    assert instances(host) == [["1g.10gb"] * 7] * 2


def test_a_host_that_cannot_be_looked_at_keeps_nobody_else_back(site: Fleet) -> None:
    """Ansible ends a run where all hosts of a play are lost, and this play may have but one."""
    site.simulate(node=machine("debian", cpus=2, nodes=1, memory_mb=4096))
    document = gpu_fleet("all-1g.10gb")
    document["pools"][0]["hosts"] = {
        "away": {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_port": 9}
    }
    document["pools"][1] = pool("none", hosts={"node-01": {}}, policy={"kernelModules": {"load": ["tun"]}})
    site.write("fleet.json", document)
    site.sources.append("fleet.json")
    ran = site.converge("--timeout", "3")
    assert ran.played.rc == 4
    assert ran.recap("node-01") == {"ok": 1, "changed": 1}
    assert ran.events["stats"]["away"]["unreachable"] == 1


@newest_core
def test_both_examples_from_one_document_to_converged_hosts_in_one_run(site: Fleet) -> None:
    document = json.loads(SPECIFIED)
    document["profiles"] = [{"name": "deploy", "hostConfig": BRIDGED}, {"name": "gpus", "hostConfig": GPUS}]
    document["pools"][0]["profile"] = "deploy"
    document["pools"].append(
        {
            "name": "gpu-fra",
            "site": "fra",
            "class": "gpu-host",
            "profile": "gpus",
            "policy": {"migLayout": "all-1g.10gb"},
        }
    )
    site.simulate(sandbox=SANDBOX, gpu=PROFILES["h100-bare"])
    site.write(
        "joined.yml", {"sandbox": {"vars": {"bcd_pool": "sandbox-fra"}}, "gpu": {"vars": {"bcd_pool": "gpu-fra"}}}
    )
    site.write("fleet.json", document)
    site.sources += ["joined.yml", "fleet.json"]
    site.write(
        "site.yml", [{"import_playbook": f"bettercompute.bcd.{name}"} for name in ("converge", "reboot", "converge")]
    )
    played = site.play("site.yml", variables={"ANSIBLE_CALLBACKS_ENABLED": "bettercompute.bcd.pass_report"})
    assert played.rc == 0, played.out
    report = played.out.partition("PASS REPORT")[2]
    for name in ("sandbox-01", MIG):
        assert re.search(rf"^{name} +converged ", report, re.MULTILINE), report
    sandbox, gpu = site.host("sandbox-01"), site.host(MIG)
    assert sandbox.read("/sys/devices/system/cpu/isolated") == "4-63,68-127\n"
    assert sandbox.read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "0\n"
    for node in (0, 1):
        pages = f"/sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages"
        assert sandbox.read(pages) == "64\n"
    assert instances(gpu) == [["1g.10gb"] * 7] * 2
    listed = set(re.findall(r"UUID: (MIG-[^)]+)\)", gpu.run("nvidia-smi", "-L").stdout))
    described = json.loads(gpu.read("/etc/cdi/nvidia.json") or "{}")["devices"]
    assert {device["name"] for device in described} - {"all"} == listed
