# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The units' own modules through the program: what they return without it, and no secret shown on either way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.control_plane import Cluster
from tests.sim import controller
from tests.sim.kube_profiles import KUBERNETES
from tests.sim.kube_site import Site, Watch
from tests.sim.marks import in_namespace
from tests.sim.test_through_program import (
    BCD,
    IS_OLDEST_CORE,
    PYTHON,
    TOKEN,
    Fleet,
    join,
    unit,
    with_program,
)
from tests.sim.tree import PROFILES, build

pytestmark = in_namespace


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return with_program(tmp_path_factory.mktemp("seed"))


# One unit's own module: the task, and how it ends. A value above what the kernel takes is a step that fails.
ASKS_OF_UNITS: list[tuple[dict[str, Any], str]] = [
    ({**unit("sysctl", values={"vm.swappiness": 30, "kernel.no_such": 1}), "check_mode": True}, "progressing"),
    (unit("sysctl", values={"vm.swappiness": 30, "vm.dirty_ratio": 101}), "StepFailed"),
    (unit("sysctl", values="{{ {'vm.swappiness': 20 + 5} }}"), "converged"),
    (unit("sysctl", values={"kernel.core_pattern": "|/bin/sh"}), "Refused"),
    (unit("sysctl", state="absent"), "converged"),
    (unit("kernel_modules", load="tun", blacklist=["pcspkr"], max_disruption="none"), "converged"),
    (unit("hugepages", pages_2m=["8"], per_numa="no", transparent="madvise"), "converged"),
    (unit("cpu", isolate="2-3"), "progressing"),  # waits for a reboot
    ({**unit("iommu", passthrough="yes"), "check_mode": True}, "progressing"),
    (unit("nvidia_driver", branch=580), ""),
    (unit("fabric_manager"), ""),
    (unit("mig_layout", gpus=[{"select": {"index": "0"}, "layout": {"1g.10gb": 7}}]), ""),
    (unit("mig_layout", state="gathered"), ""),
    (unit("gpu_settings", gpus=[{"select": {"model": "H100"}, "ecc": True}]), ""),
    (unit("gpu_sharing", mode="mps"), ""),
    ({**unit("container_toolkit", runtimes="containerd"), "check_mode": True}, ""),
    (join(), "Refused"),  # root allows no cluster here
    ({**join(), "check_mode": True}, "Refused"),
    (unit("k8s_join", state="absent"), "StepFailed"),  # there is no dpkg here
]


def ending(result: dict[str, Any]) -> str:
    """How a unit's task ended: why it failed, else the unit's state."""
    return str(result.get("reason", result["state"]))


def test_a_unit_s_own_module_is_itself_key_by_key(seed: str, tmp_path: Path) -> None:
    """Where the program is installed, and carried: as root, with differences; wrong options are the module's."""
    hosts = Fleet(tmp_path, seed, {"program": {}, "carried": {}, "module": {"bcd_program_pass": False}})
    hosts.hosts["carried"].remove(BCD)
    asks = [task for task, _ending in ASKS_OF_UNITS]
    leaves = [unit("sysctl", values=[1]), unit("cpu", fly=True), unit("k8s_join", token=TOKEN, labels=TOKEN)]
    tasks = [
        {"ignore_errors": True, "register": f"result_{number}", **task} for number, task in enumerate((*asks, *leaves))
    ]
    tasks.append({"ansible.builtin.debug": {"msg": [f"{{{{ result_{number} }}}}" for number in range(len(tasks))]}})
    defaults = {"group/bettercompute.bcd.units": {"max_disruption": "service"}}
    played = hosts.run(tasks, "--diff", module_defaults=defaults)
    found = hosts.results(played)
    assert [len(results) for results in found.values()] == [len(tasks)] * 3
    for installed, carried, theirs in zip(found["program"], found["carried"], found["module"]):
        assert installed == theirs
        assert carried == theirs
    results = [result for _action, _status, result in found["program"]]
    for (task, wanted), result in zip(ASKS_OF_UNITS, results):
        assert not wanted or ending(result) == wanted, (task, result)
    registered = found["program"][-1][2]["msg"]
    assert [bool(result.get("diff")) for result in registered[:3]] == [True] * 3
    assert registered[1]["failed"]
    if not IS_OLDEST_CORE:  # which registers no invocation
        assert registered[2]["invocation"]["module_args"]["max_disruption"] == "service"
        assert registered[5]["invocation"]["module_args"]["load"] == ["tun"]
    assert hosts.asked("program") == ["request"] * len(asks)
    assert hosts.asked("module") == []
    assert {host.read("/proc/sys/vm/nr_hugepages") for host in hosts.hosts.values()} == {"8\n"}
    assert "0123456789abcdef" not in played.out + played.err


@pytest.mark.newest_core
def test_units_of_gpus_are_their_modules_key_by_key(tmp_path: Path) -> None:
    controller.freeze(str(tmp_path))
    seed = build(str(tmp_path / "tree"), PROFILES["h100"], "one")
    hosts = Fleet(tmp_path / "fleet", seed, {"carried": {}, "module": {"bcd_program_pass": False}})
    asks = [
        (unit("mig_layout", layout="3g.40gb,2g.20gb,1g.10gb:2"), "converged"),
        (unit("mig_layout", state="gathered"), "converged"),
        (unit("gpu_settings", power_limit_watts="500"), "converged"),
        (unit("gpu_settings", gpus=[{"select": {"index": 0}, "power_limit_watts": 1}]), "Refused"),
        (unit("container_toolkit"), "converged"),
        (unit("mig_layout", state="absent"), "converged"),
    ]
    found = hosts.results(hosts.run([{"ignore_errors": True, **task} for task, _ending in asks], "--diff"))
    assert found["carried"] == found["module"]
    results = [result for _action, _status, result in found["carried"]]
    assert [ending(result) for result in results] == [wanted for _task, wanted in asks]
    assert [result["changed"] for result in results] == [True, False, True, False, True, False]


@pytest.mark.newest_core
def test_a_join_by_the_unit_s_module_shows_its_token_to_nobody(tmp_path: Path) -> None:
    """In no output, on no command line, in no environment and no file."""
    with Cluster(version="1.32.3") as cluster:
        packages = ("containerd", *(f"{name}=1.32.3-1.1" for name in KUBERNETES))
        one = Site(tmp_path, cluster, "worker", packages=packages)
        task = unit("k8s_join", api_server=cluster.url, ca_cert_sha256=cluster.pin, token="{{ token }}")
        given = {"token": one.token, "ansible_pipelining": True}
        book = tmp_path / "play.yml"
        book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "vars": given, "tasks": [task] * 2}]))
        with Watch(one) as watch:
            played = controller.playbook(str(tmp_path), one.inventory, str(book), "-vvvv", "--diff")
        assert played.rc == 0, played.out
        assert len(cluster.nodes) == 1
    shown = played.out + played.err
    assert (one.token in shown, one.token.rpartition(".")[2] in shown) == (False, False)
    assert (watch.told, one.traces()) == (set(), [])
    commands = [line for line in shown.splitlines() if " EXEC " in line]
    assert [f"{PYTHON} -I -c " in line for line in commands] == [False, True, True]  # the program is asked for once
    assert " PUT " not in shown
