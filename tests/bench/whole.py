# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated hosts with all twelve units converged: GPU servers that are workers of a cluster.

with whole.build(scratch, ["node-01", "node-02"]) as hosts:
    hosts.trees["node-01"], hosts.units, hosts.inventory

One host is converged by the shipped playbook, booted for its IOMMU and converged again, until a pass changes nothing.
All others are twins of it, each with a Node, a certificate and a boot id of its own, so that a thousand cost one. The
cluster's API is served by this process until the context ends: k8s-join asks it on every pass.
"""

from __future__ import annotations

import copy
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.control_plane import Cluster
from tests.sim import controller
from tests.sim.few_hosts import twin
from tests.sim.kube_site import HOST, Pass, Site
from tests.sim.machine import put, read
from tests.unit import whole_host

PRODUCT = "H100-80GB"
PROFILE = "worker-h100"  # with the driver of branch 580, the container toolkit, containerd and Kubernetes' packages
NVSWITCHES = 4
PASSES = 4  # the second is behind the boot that the IOMMU waits for, and sets what a boot takes from the GPUs
# The first GPU is cut up, the others are shared by MPS: every unit that can stand beside another has work to do.
UNITS: dict[str, Any] = {**whole_host.UNITS, "nvidia-driver": {"branch": "580"}}
OF_WORKER: dict[str, Any] = {"labels": {"tier": "gpu"}, "taints": ["nvidia.com/gpu=present:NoSchedule"]}
CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-2026-11-30-00-00-00.pem"  # which its link names
JOINED = "/var/lib/bcd-hostconfig/k8s-join.json"
NAMED = ("/etc/hosts", "/etc/hostname", "/proc/sys/kernel/hostname", JOINED)
QUIET = "/run/bcd-hostconfig"  # what a boot ends: a twin has another boot


class NotConverged(Exception):
    """The host did not become what its section says; the message has what each unit said."""


class Hosts(NamedTuple):
    """Converged hosts. `inventory` reaches them by the simulator's connection and has the section, `units`, as
    `bcd_converge_units`; `trees` has the tree of each, for those who enter it in a way of their own."""

    scratch: Path
    cluster: Cluster
    units: dict[str, Any]
    trees: dict[str, str]
    inventory: str

    def converge(self, *arguments: str, **more: Any) -> controller.Played:
        """A pass over all of them by the shipped playbook, for a look; figures are taken elsewhere."""
        return controller.playbook(
            str(self.scratch), self.inventory, "bettercompute.bcd.converge", *arguments, as_json=True, **more
        )


@contextmanager
def build(scratch: Path, names: list[str], gpus: int = 2, python: str = sys.executable) -> Iterator[Hosts]:
    """Converged hosts of these names below `scratch`, which holds no hosts yet; `python` runs their modules.

    The collection is copied first: what is edited meanwhile is neither converged with nor measured.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    controller.freeze(str(scratch))
    with Cluster() as cluster:
        site = Site(scratch, cluster, PROFILE, gpus=(PRODUCT,) * gpus, nvswitch=NVSWITCHES)
        units = {**UNITS, "k8s-join": site.settings(**OF_WORKER)}
        _settle(site, units)
        trees = {name: str(scratch / "trees" / name) for name in names}
        for name, tree in trees.items():
            _twin(site, tree, name)
        yield Hosts(scratch, cluster, units, trees, _inventory(scratch, trees, units, python))


def _settle(site: Site, units: dict[str, Any]) -> None:
    """Converge the site's host until a pass changes nothing, with the boot that it asks for."""
    said: dict[str, Any] = {}
    for _turn in range(PASSES):
        ran = site.converge(units)
        said = {unit["unit"]: unit.get("msg") or unit["pending"] for unit in ran.whole["units"]}
        if ran.rc or list(said) != list(units):
            raise NotConverged(f"a pass ended with {ran.rc}: {said}\n{ran.text[-2000:]}")
        if not ran.whole["changed"] and is_converged(ran):
            site.host.forget_calls()
            return
        if ran.whole["reboot_required"]:
            site.host.reboot()
    raise NotConverged(f"{PASSES} passes were not enough: {said}")


def is_converged(ran: Pass) -> bool:
    """Whether the last result of a pass says so of the section and of all its units."""
    states = {unit["state"] for unit in ran.whole["units"]}
    return ran.whole["section"]["state"] == "CONVERGED" and states == {"converged"}


def _twin(site: Site, tree: str, name: str) -> None:
    """Another host like the site's: its Node, its certificate and its boot are its own."""
    Path(tree).parent.mkdir(exist_ok=True)
    source = site.host.tree
    twin(source, tree, name)
    shutil.rmtree(tree + QUIET, ignore_errors=True)
    node = copy.deepcopy(site.cluster.nodes[HOST])
    node["metadata"]["name"] = name
    node["metadata"]["labels"]["kubernetes.io/hostname"] = name
    before, after = node["metadata"]["uid"], site.cluster.put(node)["metadata"]["uid"]
    for path in NAMED:
        put(tree, path, (read(tree, path) or "").replace(HOST, name).replace(before, after), _mode(tree, path))
    put(tree, CERTIFICATE, site.cluster.issue(name), 0o600)


def _mode(tree: str, path: str) -> int:
    return Path(tree + path).stat().st_mode & 0o7777


def _inventory(scratch: Path, trees: dict[str, str], units: dict[str, Any], python: str) -> str:
    fixed = {"ansible_connection": "sim", "ansible_python_interpreter": python, "bcd_converge_units": units}
    hosts = {name: {"sim_tree": tree} for name, tree in trees.items()}
    path = scratch / "inventory.yml"
    path.write_text(json.dumps({"all": {"hosts": hosts, "vars": fixed}}, indent=1) + "\n", encoding="utf-8")  # is YAML
    return str(path)
