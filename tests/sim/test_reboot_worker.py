# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook reboot on a worker of a cluster: its Node is cordoned, drained and let go, wherever a run was killed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
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
short_description: kills the run where a task begins
description: [For a test.]
"""

import os
import signal

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "killer"

    def v2_playbook_on_task_start(self, task, is_conditional):
        if task.get_name() == os.environ["KILL_AT"]:
            os.kill(os.getpid(), signal.SIGKILL)
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

    def reboot(self, *arguments: str, kill_at: str = "", **variables: Any) -> Played:
        """One run of the playbook."""
        extra = {"bcd_converge_units": self.units, **variables}
        environment = {
            "ANSIBLE_CALLBACK_PLUGINS": str(self.site.scratch / "callbacks"),
            "ANSIBLE_CALLBACKS_ENABLED": "killer",
            "KILL_AT": kill_at,
        }
        words = ("bettercompute.bcd.reboot", "--extra-vars", json.dumps(extra), *arguments)
        more: dict[str, Any] = {"variables": environment} if kill_at else {"as_json": True}
        return controller.playbook(str(self.site.scratch), self.site.inventory, *words, **more)

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


@pytest.mark.parametrize(
    ("task", "boots", "cordoned"),
    [
        ("Plan the waves", 1, False),
        ("Let no more pods come to the Node", 1, False),
        ("Reboot", 1, True),
        ("Look at the host again", 1, True),
        ("Plan the host again", 1, True),
        ("Let pods come to the Node again", 1, True),
        ("Remember that the turn is over", 1, False),
    ],
)
def test_a_run_that_is_killed_goes_on_where_it_was(worker: Worker, task: str, boots: int, cordoned: bool) -> None:
    worker.again()
    before = worker.boots
    killed = worker.reboot(kill_at=task)
    assert killed.rc == -9, killed.out
    assert worker.is_cordoned is cordoned
    played = worker.reboot()
    assert played.rc == 0, played.out
    assert end(played)["proved"] == [HOST]
    assert worker.boots == before + boots
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
