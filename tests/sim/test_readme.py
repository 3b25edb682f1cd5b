# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""README.md does what it says: its inventory, its playbook and its commands run, in their order, on simulated hosts."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster.control_plane import Cluster
from tests.sim import controller, fleet
from tests.sim.host import SimulatedHost
from tests.sim.kube_site import Site
from tests.sim.marks import in_namespace
from tests.sim.tree import PROFILES, machine

pytestmark = pytest.mark.newest_core  # its playbooks are played one by one in test_playbooks
README = Path(controller.CHECKOUT) / "README.md"
# The machine of the example: two nodes with 64 CPUs each, and memory for their pages when it has just booted.
SANDBOX = machine("debian", cpus=128, nodes=2, memory_mb=262144, runtime_1g=40, boot_1g=80)
# The GPU of the example, and the one that the simulated machine has.
A_GPU = ("GPU-5f1c2a90-0000-4000-8000-000000000001", "GPU-00000000-0000-4000-8000-000000000000")


class Block(NamedTuple):
    """A fenced block: its language, and its text."""

    language: str
    text: str

    @property
    def name(self) -> str:
        """The file that it is, by its first line."""
        return self.text.partition("\n")[0].removeprefix("# ")


def blocks() -> list[Block]:
    return [
        Block(*found)
        for found in re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]


def commands() -> list[str]:
    return [line for block in blocks() if block.language == "sh" for line in block.text.splitlines()]


@pytest.fixture
def readers(tmp_path: Path) -> Path:
    """A directory with the README's files, and for each inventory one that has its host simulated."""
    folder = tmp_path / "fleet"
    Path(fleet.make(str(folder), [fleet.Hosts("sandbox", SANDBOX)])).rename(folder / "simulated-inventory.yml")
    gpus = [fleet.Hosts("gpu", PROFILES["h100-bare"])]
    Path(fleet.make(str(tmp_path / "gpus"), gpus)).rename(folder / "simulated-gpus.yml")
    for block in blocks():
        if block.language == "yaml":
            (folder / block.name).write_text(block.text.replace(*A_GPU), encoding="utf-8")
    return folder


def test_every_block_is_held_by_a_test() -> None:
    assert {block.name for block in blocks() if block.language == "yaml"} == {
        "fleet.yml",
        "inventory.yml",
        "gpus.yml",
        "holds.yml",
        "modules.yml",
        "signed.yml",
        "workers.yml",
    }
    assert {block.language for block in blocks()} == {"yaml", "sh", "toml"}
    programs = {next(word for word in shlex.split(line) if "=" not in word) for line in commands()}
    assert programs == {"make", "ansible-galaxy", "ansible-inventory", "ansible-playbook", "export", "openssl"}


def play_all(readers: Path, inventory: str) -> list[tuple[str, str]]:
    """Run the playbooks that the README runs on an inventory, in their order: the name and the output of each."""
    outputs = []
    variables: dict[str, str] = {}
    for line in commands():
        words = shlex.split(line)
        if words[0] == "export":  # holds for the commands below it, as in a shell
            variables.update(re.findall(r"^(\w+)=(.*)$", "\n".join(words[1:]), re.MULTILINE))
        if words[0] != "ansible-playbook" or words[1:3] != ["-i", inventory] or "signed.yml" in words:
            continue
        played = controller.playbook(
            str(readers), str(readers / inventory), *words[3:], "-i", f"simulated-{inventory}", variables=variables
        )
        assert played.rc == 0, f"{line}\n{played.out}"
        name = next(word for word in words if word.startswith("bettercompute.bcd."))
        outputs.append((name.rpartition(".")[2], played.out))
    return outputs


def test_every_playbook_is_played_on_a_host_of_its_own() -> None:
    played = [shlex.split(line)[1:3] for line in commands() if "ansible-playbook" in line]
    assert {words[1] for words in played} == {"inventory.yml", "gpus.yml", "workers.yml", "fleet.yml"}


def test_the_commands_lead_to_a_converged_host(readers: Path) -> None:
    host = SimulatedHost(str(readers / "trees" / "sandbox-01"))
    outputs = play_all(readers, "inventory.yml")
    assert [name for name, _unused in outputs] == ["plan", "converge", "converge", "reboot", "converge", "converge"]
    changed = ["changed=0" not in out for _unused, out in outputs]
    assert changed == [True, True, False, True, False, False]
    planned, first, second, rebooted, last, _unused = (out.partition("PASS REPORT") for _name, out in outputs)
    assert re.search(r"^sandbox-01 would:\n +1\. kernel-modules: ", planned[2], re.MULTILINE)
    row = r"^sandbox-01 +progressing +{} +RebootRequired: hugepages, cpu, iommu +-$"
    assert re.search(row.format("kernel-modules, sysctl, hugepages, cpu, iommu"), first[2], re.MULTILINE)
    assert re.search(row.format("-"), second[2], re.MULTILINE)
    for seen in (first, second):
        assert "sandbox-01: cpu: CPUs 4-63,68-127 are isolated from the next boot" in seen[2]
    assert "no unit waits for a reboot any more, and every unit is converged" in " ".join(rebooted[0].split())
    assert re.search(r"^sandbox-01 +converged +- +- +-$", last[2], re.MULTILINE)
    assert host.read("/sys/devices/system/cpu/isolated") == "4-63,68-127\n"
    for node in (0, 1):
        pages = f"/sys/devices/system/node/node{node}/hugepages/hugepages-1048576kB/nr_hugepages"
        assert host.read(pages) == "64\n"
    assert host.read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "0\n"
    assert json.loads((readers / "bcd-report" / "fleet.json").read_text("utf-8"))["summary"]["drifted"] == 1


def test_the_commands_for_gpus_lead_from_no_driver_to_a_converged_host(readers: Path) -> None:
    host = SimulatedHost(str(readers.parent / "gpus" / "trees" / "gpu-01"))
    (_unused, planned), (_unused, converged), (_unused, held) = play_all(readers, "gpus.yml")
    report = planned.partition("PASS REPORT")[2]
    assert re.search(r"mig-layout: known after the driver is installed and loaded", " ".join(report.split()))
    assert re.search(r"^gpu-01 +converged +nvidia-driver, fabric-manager, ", converged, re.MULTILINE)
    listing = host.run("nvidia-smi", "-L").stdout
    assert listing.count("MIG 1g.10gb") == 7 * listing.count("GPU ")
    devices = {device["name"] for device in json.loads(host.read("/etc/cdi/nvidia.json") or "{}")["devices"]}
    assert devices - {"all"} == set(re.findall(r"UUID: (MIG-[^)]+)\)", listing))
    assert re.search(r"^gpu-01 +converged +devices +- +-$", held, re.MULTILINE)
    for allocation, name in (("alloc_01jz8k2v", f"{A_GPU[1]}_gi7_ci0"), ("alloc_01jz8k3x", f"{A_GPU[1]}_gi8_ci0")):
        (device,) = json.loads(host.read(f"/etc/cdi/bcd-{allocation}.json") or "{}")["devices"]
        assert device["name"] == name


def test_the_commands_for_a_fleet_lead_from_one_document_to_both_kinds_of_hosts(readers: Path, tmp_path: Path) -> None:
    kinds = [fleet.Hosts("sandbox", SANDBOX), fleet.Hosts("gpu", PROFILES["h100-bare"])]
    Path(fleet.make(str(tmp_path / "both"), kinds)).rename(readers / "simulated-fleet.yml")
    (_unused, converged), (_unused, planned), (_unused, rebooted) = play_all(readers, "fleet.yml")
    report = converged.partition("PASS REPORT")[2]
    row = r"^sandbox-01 +progressing +kernel-modules, sysctl, hugepages, cpu +RebootRequired: hugepages, cpu +-$"
    assert re.search(row, report, re.MULTILINE)
    assert re.search(r"^gpu-01 +converged +nvidia-driver, fabric-manager, ", report, re.MULTILINE)
    assert "sandbox-01: a reboot is due, of which the units say: hugepages: " in " ".join(planned.split())
    assert "the pool sandbox-fra: 1 host, at most 1 unavailable at a time" in " ".join(planned.split())
    assert "rebooted and proved, 1: sandbox-01" in rebooted
    sandbox = SimulatedHost(str(tmp_path / "both" / "trees" / "sandbox-01"))
    assert sandbox.read("/sys/devices/system/cpu/isolated") == "4-63,68-127\n"
    [graph] = [shlex.split(line) for line in commands() if line.startswith("ansible-inventory")]
    done = subprocess.run(
        [str(Path(sys.executable).with_name(graph[0])), *graph[1:]],
        cwd=readers,
        check=True,
        capture_output=True,
        text=True,
        env=controller.environment(str(readers)),
    )
    for group in ("bcd_pool_sandbox_fra", "bcd_site_fra", "bcd_class_vps_host"):
        assert f"@{group}:" in done.stdout


@in_namespace
def test_the_commands_for_workers_lead_into_the_cluster_that_root_allows(readers: Path, tmp_path: Path) -> None:
    """With the cluster of the test in place of the example's, and a file in place of the vault."""
    [allowed] = [block for block in blocks() if block.language == "toml"]
    book = readers / "workers.yml"
    with Cluster(version="1.32.3") as cluster:
        site = Site(tmp_path / "workers", cluster, "worker-bare")
        pin = re.findall(r"^ +caCertSha256: (\w+)$", book.read_text("utf-8"), re.MULTILINE)[0]
        (readers / "token").write_text(site.token, encoding="utf-8")
        lookup = f"{{{{ lookup('ansible.builtin.file', '{readers}/token') }}}}"
        for path, text in ((book, book.read_text("utf-8")), (None, allowed.text)):
            ours = text.replace("https://10.0.0.1:6443", cluster.url).replace(pin, cluster.pin)
            if path is None:
                site.host.write(f"/{allowed.name.lstrip('/')}", ours, 0o640)
            else:
                path.write_text(re.sub(r"\{\{ lookup\('community.*\}\}", lambda _found: lookup, ours), encoding="utf-8")
        (readers / "simulated-workers.yml").write_text(Path(site.inventory).read_text("utf-8"), encoding="utf-8")
        (_unused, planned), (_unused, converged) = play_all(readers, "workers.yml")
        assert f"join {cluster.url} as worker-01" in " ".join(planned.split())
        assert re.search(r"^worker-01 +converged +k8s-join +- +-$", converged, re.MULTILINE)
        assert cluster.taints("worker-01") == ["nvidia.com/gpu=present:NoSchedule"]


def test_the_commands_that_sign_lead_to_a_host_that_takes_nothing_else(readers: Path) -> None:
    printed = [
        subprocess.run(shlex.split(line), cwd=readers, check=True, capture_output=True, text=True).stdout
        for line in commands()
        if line.startswith("openssl ")
    ]
    host = SimulatedHost(str(readers / "trees" / "sandbox-01"))
    host.write("/etc/bcd/config.toml", f'command_root_sha256 = "{printed[-1].split()[0]}"\n', 0o640)
    [words] = [shlex.split(line) for line in commands() if "signed.yml" in line]
    for changed in (True, False):
        played = controller.playbook(str(readers), str(readers / words[2]), *words[3:], "-i", f"simulated-{words[2]}")
        assert (played.rc, "changed=0" in played.out) == (0, not changed), played.out
    assert host.read("/proc/sys/net/bridge/bridge-nf-call-iptables") == "0\n"
    host.forget_calls()
    [unsigned, *_others] = [shlex.split(line) for line in commands() if "bettercompute.bcd.converge" in line]
    played = controller.playbook(str(readers), str(readers / words[2]), *unsigned[3:], "-i", f"simulated-{words[2]}")
    assert (played.rc, "nothing unsigned is applied" in " ".join(played.out.split())) == (2, True), played.out
    assert host.changes() == []


def test_the_playbook_runs_as_it_stands(readers: Path) -> None:
    played = controller.playbook(str(readers), str(readers / "simulated-inventory.yml"), "modules.yml")
    assert played.rc == 0, played.out
    host = SimulatedHost(str(readers / "trees" / "sandbox-01"))
    assert host.read("/proc/sys/vm/swappiness") == "10\n"
    assert "parameters.pending: []" in played.out
