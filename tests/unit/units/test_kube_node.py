# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker's Node around a reboot: cordoned and drained by us and let go again, or left alone where others did it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.info import AVAILABILITY, inventory
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_cordon import RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.kube_node import UNIT
from tests.cluster.control_plane import Cluster, status
from tests.unit import promises
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.kube_host import KubeHost, kubectl
from tests.unit.member_host import member, verbs

NODE = "gpu-01"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as found:
        yield found


@pytest.fixture
def host(cluster: Cluster) -> Iterator[KubeHost]:
    cluster.start()
    found = member(cluster)
    found.start_kubelet()
    found.typed.clear()
    yield found
    cluster.start()
    cluster.faults.status = 0


def go(host: KubeHost, state: str, timeout: int = 30, **more: Any) -> Outcome:
    return promises.go(UNIT, host, {"state": state, "timeout": timeout}, **more)


def is_cordoned(cluster: Cluster) -> bool:
    return bool(cluster.nodes[NODE]["spec"].get("unschedulable"))


def cordon(cluster: Cluster) -> None:
    cluster.admin(f"kubectl cordon {NODE}")


def refusing(verb: str, words: str) -> Callable[[FakeHost, tuple[str, ...]], Answer]:
    """kubectl, but that this verb ends as an API server's webhook or a disruption budget has it end."""

    def program(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        return Answer(1, "", words) if verb in argv else kubectl(host, argv)

    return program


def facts(host: KubeHost) -> dict[str, Any]:
    return inventory(host, Records(host), AVAILABILITY)


# -- what is ours


def test_a_node_is_cordoned_and_let_go_again(host: KubeHost, cluster: Cluster) -> None:
    done = go(host, "cordoned")
    assert (done.state, done.changed, done.pending) == ("converged", True, ())
    assert dict(done.found) == {"node": NODE, "cordoned_by": "us"}
    assert is_cordoned(cluster)
    assert json.loads(host.text(RECORD) or "") == {
        "version": 1,
        "node": NODE,
        "uid": cluster.nodes[NODE]["metadata"]["uid"],
    }
    assert host.files[RECORD].mode == 0o600
    assert facts(host)["node"] == {"name": NODE, "ready": True, "cordoned_by": "us", "remembered": True}
    again = go(host, "cordoned")
    assert (again.state, again.changed, again.steps) == ("converged", False, ())
    freed = go(host, "schedulable")
    assert (freed.state, freed.changed, dict(freed.found)) == ("converged", True, {"node": NODE, "cordoned_by": None})
    assert facts(host)["node"] == {"name": NODE, "ready": True, "cordoned_by": None, "remembered": False}
    assert not is_cordoned(cluster)
    assert host.text(RECORD) is None
    assert verbs(host) == ["kubectl cordon", "kubectl uncordon"]


def test_our_cordon_is_ours_after_a_reboot(host: KubeHost, cluster: Cluster) -> None:
    go(host, "cordoned")
    host.boot()
    assert go(host, "schedulable").state == "converged"
    assert not is_cordoned(cluster)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("state", ["cordoned", "drained"])
def test_a_run_that_is_killed_leaves_nothing_that_the_next_does_not_take_back(
    host: KubeHost, cluster: Cluster, state: str, at: int
) -> None:
    cluster.pod("web", NODE)
    host.calls.clear()
    host.kill_at = at
    try:
        go(host, state)
    except Killed:
        host.kill_at = 0
    host.kill_at = 0
    if is_cordoned(cluster):
        assert facts(host)["node"]["cordoned_by"] == "us"
    assert go(host, "schedulable").state == "converged"
    assert (is_cordoned(cluster), host.text(RECORD)) == (False, None)


def test_check_mode_says_what_is_then_done(cluster: Cluster) -> None:
    def machine() -> KubeHost:
        found = member(cluster)
        found.start_kubelet()
        cluster.pod("web", NODE)
        return found

    real = promises.check_is_truthful(UNIT, machine, {"state": "drained", "timeout": 30})
    assert promises.lines(real) == [
        f"remember that the node {NODE} is cordoned by us",
        f"let no more pods come to the node {NODE} (cordon)",
        f"evict the 1 pod of the node {NODE} (drain)",
    ]


# -- what is others'


def test_a_cordon_of_others_stays_and_is_reported(host: KubeHost, cluster: Cluster) -> None:
    cordon(cluster)
    found = go(host, "drained")
    assert (found.state, found.changed) == ("progressing", False)
    [wait] = found.pending
    assert wait.reason == "Busy"
    assert wait.message == (
        f"the node {NODE} is cordoned, and not by us, so it stays as it is: have whoever did it let it go "
        f"(kubectl uncordon {NODE}), and run again"
    )
    assert dict(found.found) == {"node": NODE, "cordoned_by": "others"}
    freed = go(host, "schedulable")
    assert (freed.state, freed.changed, host.typed) == ("converged", False, [])
    assert freed.notes == (f"the node {NODE} is cordoned, and not by us: it stays as it is",)
    assert is_cordoned(cluster)
    assert facts(host)["node"]["cordoned_by"] == "others"


def test_a_node_that_was_made_anew_and_cordoned_is_not_ours(host: KubeHost, cluster: Cluster) -> None:
    go(host, "cordoned")
    cluster.admin(f"kubectl delete node {NODE}")
    cluster.node(NODE)
    cordon(cluster)
    assert go(host, "cordoned").found["cordoned_by"] == "others"
    go(host, "schedulable")
    assert is_cordoned(cluster)
    assert host.text(RECORD) is None


def test_an_admin_who_let_it_go_meanwhile_is_not_overruled(host: KubeHost, cluster: Cluster) -> None:
    go(host, "cordoned")
    cluster.admin(f"kubectl uncordon {NODE}")
    assert facts(host)["node"] == {"name": NODE, "ready": True, "cordoned_by": None, "remembered": True}
    assert go(host, "schedulable").state == "converged"
    assert verbs(host) == ["kubectl cordon"]
    cordon(cluster)
    assert go(host, "cordoned").found["cordoned_by"] == "others"


# -- pods


def test_pods_are_evicted_but_for_those_of_daemons(host: KubeHost, cluster: Cluster) -> None:
    cluster.pod("web", NODE)
    cluster.pod("bare", NODE, owner="")
    cluster.pod("agent", NODE, namespace="kube-system", owner="DaemonSet")
    done = go(host, "drained")
    assert (done.state, done.pending) == ("converged", ())
    assert sorted(cluster.pods) == [("kube-system", "agent")]
    assert is_cordoned(cluster)
    assert [step.disruption for step in done.steps] == ["none", "none", "service"]


def test_pods_that_do_not_go_let_the_node_go_again(host: KubeHost, cluster: Cluster) -> None:
    cluster.pod("web", NODE)
    budget = "error when evicting pods/web: Cannot evict pod as it would violate the pod's disruption budget."
    host.programs["kubectl"] = refusing("drain", budget)
    before = host.clock()
    found = go(host, "drained", timeout=40)
    assert 40 <= host.clock() - before < 100
    assert [wait.reason for wait in found.pending] == ["Busy"]
    assert found.pending[0].message.startswith(
        f"default/web did not go from the node {NODE} in 40 seconds, so that it is let go again ("
    )
    assert (found.state, found.found["cordoned_by"]) == ("progressing", None)
    assert (is_cordoned(cluster), host.text(RECORD)) == (False, None)
    assert ("default", "web") in cluster.pods
    host.programs["kubectl"] = kubectl
    assert go(host, "drained").state == "converged"  # the same boot


def test_pods_that_are_not_known_fail_with_the_cordon_told(host: KubeHost, cluster: Cluster) -> None:
    get = host.get
    host.get = lambda url, *more, **named: (  # type: ignore[method-assign]
        Answer(500, "", "Internal Server Error") if "pods" in url else get(url, *more, **named)
    )
    found = go(host, "drained")
    assert found.failure is not None
    assert "answers with 500" in found.failure.message
    assert found.found["cordoned_by"] == "us"
    host.get = get  # type: ignore[method-assign]
    assert go(host, "schedulable").state == "converged"


# -- what does not answer


def test_an_uncordon_that_is_refused_fails_and_is_tried_again(host: KubeHost, cluster: Cluster) -> None:
    go(host, "cordoned")
    host.programs["kubectl"] = refusing("uncordon", 'Error from server: admission webhook "nodes" denied the request')
    found = go(host, "schedulable")
    assert found.failure is not None
    assert 'admission webhook "nodes" denied the request' in found.failure.message
    assert found.found["cordoned_by"] == "us"
    assert host.text(RECORD) is not None
    host.programs["kubectl"] = kubectl
    assert go(host, "schedulable").state == "converged"


def test_a_server_that_is_away_is_waited_for_and_nothing_is_done(host: KubeHost, cluster: Cluster) -> None:
    cluster.stop()
    for state in ("cordoned", "schedulable"):
        found = go(host, state)
        assert (found.state, [wait.reason for wait in found.pending]) == ("progressing", ["NotReady"])
        assert cluster.url in found.pending[0].message
    assert host.typed == []
    assert facts(host)["node"] is None
    [line] = facts(host)["unreadable"]
    assert line.startswith("node: ")


def test_a_node_that_is_not_ready_is_let_go_and_waited_for(host: KubeHost, cluster: Cluster) -> None:
    go(host, "cordoned")
    host.stop_kubelet()
    cluster.put({**cluster.nodes[NODE], "status": status(False)})
    found = go(host, "schedulable")
    assert [wait.message for wait in found.pending] == [
        f"the node {NODE} is not ready: see journalctl -u kubelet on this machine"
    ]
    assert not is_cordoned(cluster)
    assert facts(host)["node"]["ready"] is False


def test_a_machine_in_no_cluster_has_nothing_to_cordon(cluster: Cluster) -> None:
    bare = KubeHost(cluster)
    found = go(bare, "drained")
    assert (found.state, found.changed, dict(found.found)) == ("converged", False, {"node": None, "cordoned_by": None})
    assert found.notes == ("this machine is in no cluster, so there is nothing to cordon",)
    assert facts(bare)["node"] == {}


def test_a_damaged_record_is_named(host: KubeHost, cluster: Cluster) -> None:
    host.put(RECORD, "garbage")
    found = go(host, "cordoned")
    assert found.failure is not None
    assert found.failure.message.startswith(f"{RECORD} is not a record of version 1: look at it, then move it away")
    assert not is_cordoned(cluster)


# -- going down


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("/run/systemd/shutdown/scheduled", "USEC=1\nWARN_WALL=1\nMODE=reboot\n", "a reboot is scheduled (/run/sys"),
        ("/run/systemd/shutdown/scheduled", "USEC=1\nMODE=dry-poweroff\n", ""),
        (
            "/run/nologin",
            "System is going down. Unprivileged users are not permitted to log in anymore.\n",
            "/run/nolo",
        ),
        ("/run/nologin", "System is booting up. Unprivileged users are not permitted to log in yet.\n", ""),
    ],
)
def test_a_host_says_when_it_is_going_down(path: str, text: str, said: str) -> None:
    found = inventory(FakeHost({path: text}), Records(FakeHost()), AVAILABILITY)
    assert found["going_down"].startswith(said)
    assert bool(found["going_down"]) is bool(said)


@pytest.mark.parametrize(("state", "said"), [("stopping", "systemd is stopping it"), ("degraded", "")])
def test_a_manager_says_when_it_is_stopping(state: str, said: str) -> None:
    answers = {"systemctl": lambda _host, _argv: Answer(0 if state == "running" else 1, f"{state}\n")}
    host = FakeHost({"/run/systemd/system/.there": ""}, programs=answers)
    assert inventory(host, Records(host), AVAILABILITY)["going_down"] == said
