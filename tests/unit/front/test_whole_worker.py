# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A GPU server that becomes a worker: container-toolkit and k8s-join in one section, over one containerd."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import section
from tests.cluster.control_plane import TOKEN, Cluster
from tests.gpu.model import Machine
from tests.unit.import_weight import Recorder, replayed
from tests.unit.kube_host import KubeHost
from tests.unit.kube_passes import NODE, REFERENCE

pytestmark = pytest.mark.exhaustive

OPTIONS = ("units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label")
# Bytes of the project's files that a quiet pass imports for k8s-join beside what every pass does, and for both units in
# all. It is many concerns in one: packages, kernel, swap, containerd, a membership, a kubelet, a Node.
ALONE, WORKER = 174000, 341000

PODS = "/var/lib/kubelet/pod-resources/kubelet.sock"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.token()
        yield made


def machine(cluster: Cluster) -> KubeHost:
    """Two GPUs with their driver, the toolkit's and Kubernetes' packages, swap, and nothing set up."""
    host = KubeHost(cluster, machine=Machine.from_products(["NVIDIA H100 80GB HBM3"] * 2, "550.163.01"))
    host.unpack()
    host.apt.come("nvidia-container-toolkit", "1.18.1-1")
    host.swap_on()
    return host


def units(host: KubeHost) -> dict[str, Any]:
    return {"container-toolkit": {}, "k8s-join": host.settings(labels={"tier": "gpu"})}


def go(host: Host, given: dict[str, Any], token: str = "") -> dict[str, Any]:
    """A pass over the section."""
    secrets = {REFERENCE: token} if token else None
    params = {
        **dict.fromkeys(OPTIONS),
        "units": given,
        "secrets": secrets,
        "max_disruption": "gpu",
        "fail_on": "failed",
    }
    return section.report(section.converge_section(params, host, Records(host)), "failed")


def lines(result: dict[str, Any]) -> list[str]:
    """The sentences of all steps, without what is known only later."""
    steps = [step["action"] for unit in result["units"] for step in unit["steps"]]
    return [line for line in steps if ": known after " not in line]


def states(result: dict[str, Any]) -> dict[str, str]:
    return {unit["unit"]: unit["state"] for unit in result["units"]}


def test_one_pass_makes_a_worker_of_it_as_check_mode_has_said(cluster: Cluster) -> None:
    host = machine(cluster)
    given = units(host)
    planned = go(PredictedHost(host), given)
    assert (host.calls, planned["secrets_needed"]) == ([], [REFERENCE])
    done = go(host, given, TOKEN)
    assert states(done) == {"container-toolkit": "converged", "k8s-join": "converged"}, done
    taken = iter(lines(done))
    assert [line for line in lines(planned) if line not in taken] == []
    assert cluster.labels(NODE) == {
        "bcd.dev/gpu.count": "2",
        "bcd.dev/gpu.driver": "550.163.01",
        "bcd.dev/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "tier": "gpu",
    }
    runtimes = host.cri()["containerd"]["runtimes"]
    assert {name: runtime["options"]["SystemdCgroup"] for name, runtime in runtimes.items()} == {
        "runc": True,
        "nvidia": True,
    }
    assert host.holds(TOKEN.partition(".")[2]) == []
    calls = len(host.calls)
    again = go(host, given)
    assert (again["changed"], again["unconverged"], again["secrets_needed"], host.calls[calls:]) == (False, [], [], [])


def test_the_section_without_it_hands_the_machine_back_and_keeps_the_toolkit(cluster: Cluster) -> None:
    host = machine(cluster)
    given = units(host)
    go(host, given, TOKEN)
    host.put(PODS, "")
    host.servers[PODS] = lambda _method, _message: b""  # no pod has a device
    del given["k8s-join"]
    done = go(host, given)
    assert states(done) == {"container-toolkit": "converged", "k8s-join": "converged"}, done
    assert "/swap.img" in (host.text("/proc/swaps") or "")
    assert "nvidia" in host.cri()["containerd"]["runtimes"]
    assert [path for path in host.files if "k8s" in path or path.startswith("/etc/kubernetes")] == []
    again = go(host, given)
    assert (again["changed"], states(again)) == (False, {"container-toolkit": "converged"})


def test_a_quiet_pass_over_a_worker_imports_little(cluster: Cluster) -> None:
    host = machine(cluster)
    given = units(host)
    go(host, given, TOKEN)
    recorder = Recorder(host)
    assert go(host, given)["changed"] is False
    told = replayed(recorder.tape(), given)
    assert (told["changed"], told["unconverged"], told["calls"]) == (False, {}, [])
    alone = told["alone"]["k8s-join"]
    assert sum(alone.values()) <= ALONE, json.dumps(alone)
    assert sum(told["files"].values()) <= WORKER
    for_others = {
        "plan.kube_join",
        "plan.join_faults",
        "plan.join_configuration",
        "plan.kube_install",
        "plan.kube_clean",
        "plan.kube_entry",
        "plan.kube_kept_change",
        "plan.kube_unserved",
        "plan.kube_served",
        "plan.kube_versions",
        "plan.kube_packages_back",
        "plan.kube_kernel_change",
        "plan.kube_kept_kubelet",
        "plan.kubeconfig_yaml",
        "plan.block_yaml",
        "plan.label_rules",
        "plan.k8s_join_refused",
        "plan.k8s_join_first",
        "plan.k8s_join_back",
        "look.swap_sources",
        "look.kube_modules",
        "plan.sysctl",
        "plan.packages",
        "plan.packages_apt",
        "plan.systemd",
        "plan.kernel_parameter_words",
        "plan.kernel_parameter_rivals",
        "plan.swap_areas",
        "plan.fstab_swap",
        "plan.containerd_kube_unfit",
        "plan.containerd_kube_service",
        "plan.kube_membership_write",
        "plan.kubelet_cgroups",
        "look.kubelet_log",
        "look.kube_programs",
    }
    assert for_others & {*told["files"]} == set()
