# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k8s-join where what it reads, or who answers it, is not what it should be; and where a token could still show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import run
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    BOOTSTRAP,
    CLEAN,
    JOIN_FILE,
    KUBELET_CONF,
    RECORD,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.control_plane import TOKEN, Cluster
from tests.cluster.kubeadm import kubeadm
from tests.unit.fake_host import Killed
from tests.unit.kube_host import KubeHost
from tests.unit.kube_passes import NODE, given, joins, message, passed, waits
from tests.unit.promises import check_is_truthful, go

SECRET = TOKEN.partition(".")[2]
OWN_FAULT = "collection's own"
WHOLE: dict[str, Any] = {"kind": "Node", "metadata": {"name": NODE}, "spec": {}, "status": {}}


def member(cluster: Cluster) -> KubeHost:
    host = KubeHost(cluster)
    assert passed(host).state == "converged"
    return host


def changes(host: KubeHost, since: int) -> list[str]:
    """What was done to the machine, but for our own records."""
    return [call for call in host.calls[since:] if "/var/lib/bcd-hostconfig/" not in call]


class Forgetful(KubeHost):
    """The pass dies before it records the membership; its clock runs away while it waits."""

    dies = True

    def write(self, path: str, text: str, mode: int) -> None:
        if path == RECORD and self.dies:
            raise Killed(path)
        super().write(path, text, mode)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds * 20)


# -- the token


@pytest.mark.parametrize("path", [JOIN_FILE, BOOTSTRAP])
@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_a_file_that_a_killed_join_left_is_shown_in_no_difference(
    cluster: Cluster, path: str, wanted: bool, check: bool
) -> None:
    host = KubeHost(cluster)
    Records(host).owe(UNIT.name, (CLEAN,))
    host.put(path, f"token: {TOKEN}\n")
    done = go(UNIT, host, host.settings() if wanted else None, check=check)
    assert any(path in line.action for line in done.steps)
    assert (path in host.files) is check
    assert SECRET not in repr(done)


def test_a_token_in_the_place_of_its_reference_is_refused_and_shown_nowhere(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    done = passed(host, "", joinTokenRef=TOKEN)
    assert done.failure is not None
    assert (done.failure.reason, host.calls, joins(host)) == ("Refused", [], 0)
    assert "joinTokenRef" in message(done)
    assert SECRET not in repr(done)
    assert host.holds(SECRET) == []


# -- who answers


HOSTILE = [
    "[" * 200_000,
    "<html>",
    "",
    "null",
    json.dumps({**WHOLE, "metadata": {"name": "other-01"}}),
    json.dumps({**WHOLE, "metadata": {"name": [NODE]}}),
    json.dumps({**WHOLE, "spec": [1]}),
]
ODD = [
    json.dumps({**WHOLE, "status": {"conditions": [{"type": ["Ready"], "status": "True"}]}}),
    json.dumps({**WHOLE, "status": {"conditions": [{"type": "Ready", "status": ["True"]}, 1]}}),
    json.dumps({**WHOLE, "spec": {"taints": [{"key": ["x"], "effect": {}}, None]}}),
]


@pytest.mark.parametrize("text", [*HOSTILE, *ODD], ids=lambda text: text[:40])
def test_an_answer_that_is_no_node_is_waited_out(cluster: Cluster, text: str) -> None:
    host = member(cluster)
    host.sites[f"{cluster.url}/api/v1/nodes/{NODE}"] = Answer(200, text, "OK")
    calls = len(host.calls)
    done = passed(host, "", labels={"a": "b"}, taints=["x=y:NoSchedule"])
    assert OWN_FAULT not in repr(done)
    assert "other-01" not in repr(host.calls[calls:])
    if text in HOSTILE:
        assert (done.state, done.failure, changes(host, calls)) == ("progressing", None, [])
        assert any("answers with what is no Node" in wait for wait in waits(done))
    assert OWN_FAULT not in repr(go(UNIT, host, None))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, "<html>404 Not Found</html>", "Not Found"),
        Answer(404, "404 page not found\n", "Not Found"),
        Answer(404, json.dumps({"kind": "Status", "reason": "NotFound", "details": {}, "code": 404}), "Not Found"),
        Answer(404, "[" * 200_000, "Not Found"),
        Answer(429, "[" * 200_000, "Too Many Requests"),
        Answer(401, "", "Unauthorized"),
        Answer(500, "<html>", ""),
    ],
    ids=lambda answer: f"{answer.rc} {answer.out[:20]}",
)
def test_only_the_api_server_says_that_a_node_is_gone(cluster: Cluster, answer: Answer) -> None:
    host = member(cluster)
    host.sites[f"{cluster.url}/api/v1/nodes/{NODE}"] = answer
    calls = len(host.calls)
    done = passed(host, "")
    assert (done.state, done.failure, host.calls[calls:]) == ("progressing", None, [])
    assert any(f"answers {answer.rc}" in wait for wait in waits(done))
    leaves = go(UNIT, host, None)  # best effort, and it says that nothing was evicted
    assert any("could not be evicted" in line.action for line in leaves.steps)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"items": [{"metadata": {"annotations": 5}}]}',
        '{"items": [{"metadata": {"ownerReferences": [{"kind": [1]}]}}]}',
        '{"items": [{"metadata": {}, "status": "x"}]}',
        '{"items": [{"metadata": {"name": ["x"]}, "status": {"phase": "Running"}}]}',
    ],
    ids=lambda text: text[:40],
)
def test_a_list_of_pods_that_is_none_does_not_end_a_removal(cluster: Cluster, text: str) -> None:
    host = member(cluster)
    host.sites[f"{cluster.url}/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}"] = Answer(200, text, "OK")
    done = go(UNIT, host, None)
    assert OWN_FAULT not in repr(done)
    assert KUBELET_CONF not in host.files


# -- whose it is


def test_a_membership_by_hand_is_not_taken_back_for_a_join_of_ours_that_was_killed(cluster: Cluster) -> None:
    with Cluster() as other:
        host = KubeHost(cluster)
        host.dies_at = "kubelet-start"
        with pytest.raises(Killed):
            passed(host)
        kubeadm(host.worker, ("kubeadm", "reset", "--force"))
        assert host.join_by_hand(other).rc == 0
        before = host.text(KUBELET_CONF)
        done = go(UNIT, host, None)
        assert done.failure is not None
        assert (done.failure.retryable, host.text(KUBELET_CONF), host.kubelet) == (False, before, "active")
        assert [
            word for word in (other.url, other.pin, cluster.pin, "kubeadm reset") if word not in message(done)
        ] == []
        assert not other.nodes[NODE].get("spec", {}).get("unschedulable")


def test_the_node_that_stays_has_the_name_by_which_it_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster, name="GPU_01")
    assert passed(host).state == "converged"
    said = " ".join(go(UNIT, host, None).notes)
    assert f"kubectl delete node {NODE}, or by the name that this machine had" in said
    cluster.nodes.clear()
    assert passed(host).state == "converged"
    host.put("/proc/sys/kernel/hostname", "gpu-77\n")
    assert any(f"is the node {NODE} no more" in line.action for line in go(UNIT, host, None).steps)


@pytest.mark.parametrize("stage", ["preflight", "kubelet-start", "kubelet-wait-bootstrap", "done"])
@pytest.mark.parametrize("boots", [False, True])
@pytest.mark.parametrize("wanted", [True, False])
def test_check_mode_is_truthful_after_a_join_that_was_killed(
    cluster: Cluster, stage: str, boots: bool, wanted: bool
) -> None:
    def machine() -> KubeHost:
        cluster.nodes.clear()
        host = KubeHost(cluster)
        host.swap_on()
        host.dies_at = stage
        with pytest.raises(Killed):
            passed(host)
        if boots:
            host.boot()
        host.calls.clear()
        return host

    settings = machine().settings() if wanted else None
    assert check_is_truthful(UNIT, machine, settings, given()).state == "converged"


@pytest.mark.parametrize("waits", [False, True])
def test_what_a_join_registered_is_ours_although_the_settings_change_before_it_is_recorded(
    cluster: Cluster, waits: bool
) -> None:
    host = Forgetful(cluster)
    cluster.faults.no_registration = waits
    before: dict[str, Any] = {"labels": {"old": "x", "kept": "1"}, "taints": ["old=x:NoSchedule"]}
    after: dict[str, Any] = {"labels": {"kept": "2"}, "taints": ["new=x:NoSchedule"]}
    if waits:
        assert passed(host, **before).state == "progressing"
    else:
        with pytest.raises(Killed):
            passed(host, **before)
    host.dies = cluster.faults.no_registration = False
    done = passed(host, "", **after)
    assert (done.state, "old" in cluster.labels(NODE), cluster.labels(NODE)["kept"]) == ("converged", False, "2")
    (drift,) = done.conditions
    assert cluster.admin(drift.message[drift.message.index("kubectl taint node") :])
    assert (cluster.taints(NODE), passed(host, "", **after).conditions) == (["new=x:NoSchedule"], ())


# -- what keeps a kubelet from starting


def test_a_kubelet_that_is_masked_is_told_before_anything_is_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    host.links["/etc/systemd/system/kubelet.service"] = "/dev/null"
    done = passed(host)
    assert joins(host) == 0
    assert "systemctl unmask kubelet.service" in message(done)
    del host.links["/etc/systemd/system/kubelet.service"]
    assert passed(host).state == "converged"


def test_a_clock_that_is_wrong_is_one_thing_to_look_at_where_a_certificate_is_over(cluster: Cluster) -> None:
    host = member(cluster)
    real = host.time()
    host.time = lambda: real + 20 * 366 * 86_400  # type: ignore[method-assign]
    assert "clock" in message(passed(host, ""))


# -- the real door


def test_the_end_of_what_a_program_said_begins_with_a_whole_word() -> None:
    """The word that is cut could be a token, and half a token is not masked."""
    for blanks in range(570, 600):
        script = f"printf 'said %s %0{blanks}d' \"$(cat)\" 0; exit 1"
        with pytest.raises(StepFailed) as fault:
            Host().apply(run(("sh", "-c", script), "say it", stdin=TOKEN))
        assert fault.value.message.endswith("0" * 500)
        said = fault.value.message.replace(TOKEN, "")
        assert not any(SECRET[at:] in said for at in range(len(SECRET) - 3))
