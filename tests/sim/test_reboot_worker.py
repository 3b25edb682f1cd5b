# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook reboot on a worker of a cluster: its Node is cordoned, drained and let go, wherever a run was killed."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.control_plane import Cluster
from tests.sim import controller
from tests.sim.controller import Played
from tests.sim.kube_site import HOST, Site
from tests.sim.marks import in_namespace

pytestmark = [pytest.mark.newest_core, in_namespace]
RECORD = "/var/lib/bcd-hostconfig/kube-node.json"
KILLER = '''
DOCUMENTATION = """
name: killer
type: aggregate
short_description: kills the run where a task begins, or lets it wait until a file is gone
description: [For a test.]
"""

import os
import signal
import time

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "killer"

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name() == os.environ.get("KILL_AT"):
            os.kill(os.getpid(), signal.SIGKILL)
        if task.get_name() == os.environ.get("WAIT_AT"):
            open(os.environ["WAIT_FILE"], "w").close()
            while os.path.exists(os.environ["WAIT_FILE"]):
                time.sleep(0.05)
'''


class Worker:
    """A worker that waits for a reboot, as often as it is asked for: all of it is kept once, and put back."""

    def __init__(self, scratch: Path, cluster: Cluster) -> None:
        self.site = Site(scratch, cluster, "worker")
        self.cluster = cluster
        self.units = {"cpu": {"isolate": "2-3"}, "k8s-join": self.site.settings()}
        done = self.site.converge(self.units)
        assert done.rc == 0, done.text
        self.kept = scratch / "kept"
        shutil.copytree(self.site.host.tree, self.kept, symlinks=True)
        (scratch / "callbacks").mkdir()
        (scratch / "callbacks" / "killer.py").write_text(KILLER, encoding="utf-8")

    def again(self) -> None:
        """As it was after the pass."""
        shutil.rmtree(self.site.host.tree)
        shutil.copytree(self.kept, self.site.host.tree, symlinks=True)
        with self.cluster.lock:
            self.cluster.pods.clear()
        self.cluster.admin(f"kubectl uncordon {HOST}")
        self.cluster.requests.clear()

    def reboot(self, *arguments: str, kill_at: str = "", wait_at: str = "", **variables: Any) -> Played:
        """One run of the playbook; where it waits, others cordon the Node before it goes on."""
        file = self.site.scratch / "waiting"
        extra = {"bcd_converge_units": self.units, **variables}
        environment = {
            "ANSIBLE_CALLBACK_PLUGINS": str(self.site.scratch / "callbacks"),
            "ANSIBLE_CALLBACKS_ENABLED": "killer",
            "KILL_AT": kill_at,
            "WAIT_AT": wait_at,
            "WAIT_FILE": str(file),
        }
        words = ("bettercompute.bcd.reboot", "--extra-vars", json.dumps(extra), *arguments)
        if kill_at:
            return controller.playbook(str(self.site.scratch), self.site.inventory, *words, variables=environment)
        environment["ANSIBLE_CALLBACK_PLUGINS"] += f":{Path(controller.HERE) / 'callback_plugins'}"
        environment["ANSIBLE_STDOUT_CALLBACK"] = "sim_json"
        with ThreadPoolExecutor() as pool:
            others = pool.submit(self._cordon_by_others, file) if wait_at else None
            played = controller.playbook(str(self.site.scratch), self.site.inventory, *words, variables=environment)
            if others:
                others.result()
        return played

    def _cordon_by_others(self, file: Path) -> None:
        end = time.monotonic() + 300
        while not file.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        self.cluster.admin(f"kubectl cordon {HOST}")
        file.unlink()

    @property
    def boots(self) -> int:
        """How often it has booted."""
        return int(self.site.host.read("/var/lib/sim/boots") or "0")

    @property
    def is_cordoned(self) -> bool:
        """Whether pods are kept from its Node."""
        return bool(self.cluster.nodes[HOST]["spec"].get("unschedulable"))


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with Cluster() as cluster:
        yield Worker(tmp_path_factory.mktemp("worker") / "site", cluster)


def end(played: Played) -> dict[str, Any]:
    """What the run hands on."""
    assert "bcd_reboot" in played.out, played.out + played.err
    found: dict[str, Any] = played.events()["custom"]["_run"]["bcd_reboot"]
    return found


def test_a_worker_is_drained_rebooted_and_let_go(worker: Worker) -> None:
    worker.again()
    worker.cluster.pod("web", HOST)
    worker.cluster.pod("agent", HOST, owner="DaemonSet")
    before = worker.boots
    played = worker.reboot(bcd_reboot_drain=True)
    assert played.rc == 0, played.out
    assert end(played)["rebooted"] == [HOST]
    assert worker.boots == before + 1
    assert list(worker.cluster.pods) == [("default", "agent")]
    assert not worker.is_cordoned
    assert worker.site.host.read(RECORD) is None
    patches = [line for line in worker.cluster.requests if line == f"PATCH /api/v1/nodes/{HOST}"]
    assert len(patches) == 2  # cordoned, and let go


def test_a_cordon_of_others_stays_and_its_host_is_left_out(worker: Worker) -> None:
    worker.again()
    worker.cluster.admin(f"kubectl cordon {HOST}")
    before = worker.boots
    played = worker.reboot()
    assert played.rc == 0, played.out
    assert end(played)["left_out"][HOST].startswith(f"its Node {HOST} is cordoned, and not by us, so it stays as it is")
    assert (worker.boots, worker.is_cordoned) == (before, True)


def test_a_cordon_that_others_set_after_the_look_stays_and_takes_the_hosts_turn(worker: Worker) -> None:
    worker.again()
    before = worker.boots
    played = worker.reboot(wait_at="Let no more pods come to the Node")
    assert played.rc == 0, played.out
    assert end(played)["left_out"][HOST].startswith(f"the node {HOST} is cordoned, and not by us, so it stays")
    assert (worker.boots, worker.is_cordoned, worker.site.host.read(RECORD)) == (before, True, None)


def test_a_cordon_that_others_set_while_it_reboots_without_one_of_ours_stays(worker: Worker) -> None:
    worker.again()
    before = worker.boots
    played = worker.reboot(wait_at="Reboot", bcd_reboot_cordon=False)
    assert played.rc == 0, played.out
    assert end(played)["rebooted"] == [HOST]
    assert (worker.boots, worker.is_cordoned, worker.site.host.read(RECORD)) == (before + 1, True, None)
    assert f"PATCH /api/v1/nodes/{HOST}" not in worker.cluster.requests


def test_a_note_of_a_cordon_that_is_over_is_forgotten_before_others_cordon(worker: Worker) -> None:
    worker.again()
    assert worker.reboot(kill_at="Look at the host again").rc == -9
    assert worker.site.converge(worker.units).rc == 0  # so that there is nothing to prove either
    worker.cluster.admin(f"kubectl uncordon {HOST}")
    assert worker.site.host.read(RECORD) is not None
    assert worker.reboot().rc == 0
    assert worker.site.host.read(RECORD) is None
    worker.cluster.admin(f"kubectl cordon {HOST}")
    assert worker.reboot().rc == 0
    assert worker.is_cordoned


def test_a_server_that_is_away_keeps_the_worker_up_unless_it_is_told(worker: Worker) -> None:
    worker.again()
    worker.cluster.stop()
    try:
        before = worker.boots
        played = worker.reboot()
        assert played.rc == 0, played.out
        assert "whether its Node is cordoned cannot be told" in end(played)["left_out"][HOST]
        assert worker.boots == before
    finally:
        worker.cluster.start()


# Cordoned, rebooted, proved. A kill at any other place is played by test_reboot_waves.py, over whole fleets, and by
# tests/unit/units/test_kube_node.py, before every change on the host and in the cluster.
@pytest.mark.parametrize("task", ["Reboot", "Look at the host again", "Let pods come to the Node again"])
def test_a_run_that_is_killed_goes_on_where_it_was(worker: Worker, task: str) -> None:
    worker.again()
    before = worker.boots
    killed = worker.reboot(kill_at=task)
    assert killed.rc == -9, killed.out
    assert worker.is_cordoned
    played = worker.reboot()
    assert played.rc == 0, played.out
    assert end(played)["proved"] == [HOST]
    assert worker.boots == before + 1
    assert (worker.is_cordoned, worker.site.host.read(RECORD)) == (False, None)


def test_a_reboot_that_was_not_enough_leaves_the_cordon_and_says_so(worker: Worker) -> None:
    worker.again()
    worker.site.host.change(misboot="other-loader")
    played = worker.reboot()
    assert played.rc != 0
    why = end(played)["failed"][HOST]
    assert why.startswith("still required after the reboot: cpu: ")
    assert why.endswith(f"; its Node {HOST} stays cordoned until a run has proved the host")
    assert worker.is_cordoned
