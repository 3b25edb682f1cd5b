# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""k8s-join: a machine becomes a worker, over a stand-in cluster that answers over https."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_entry import LEFTOVERS
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    BOOTSTRAP,
    CLEAN,
    JOIN_FILE,
    KUBELET_CONF,
    RECORD,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.control_plane import TOKEN, Cluster
from tests.unit.fake_host import Killed
from tests.unit.kube_host import KubeHost
from tests.unit.kube_passes import NODE, REFERENCE, actions, given, joins, message, passed, shows, waits
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, second_pass_is_quiet

SECRET = TOKEN.partition(".")[2]
TAINT = "nvidia.com/gpu=present:NoSchedule"
ALL: dict[str, Any] = {"labels": {"tier": "gpu"}, "taints": [TAINT]}
OURS = {"bcd.dev/node-id": "node-7", "bcd.dev/site": "fra", "tier": "gpu"}


def bare(cluster: Cluster) -> KubeHost:
    """A machine with nothing of Kubernetes, and with swap."""
    host = KubeHost(cluster, installed=False, containerd="")
    host.swap_on()
    return host


class Hurried(KubeHost):
    """Its clock runs away while a pass waits."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds * 20)


def owed(host: KubeHost) -> frozenset[str]:
    return Records(host).past(UNIT.name).owed


def recorded(host: KubeHost) -> list[str]:
    """The taints of the record."""
    taints = json.loads(host.text(RECORD) or "{}")["taints"]
    return [f"{taint['key']}={taint['value']}:{taint['effect']}" for taint in taints]


# -- the join


def test_a_bare_machine_becomes_a_worker(cluster: Cluster) -> None:
    host = bare(cluster)
    done = passed(host, **ALL)
    assert (done.failure, done.pending, done.conditions, done.state) == (None, (), (), "converged")
    assert (cluster.labels(NODE), cluster.taints(NODE)) == (OURS, [TAINT])
    assert (host.kubelet, host.services.enabled("kubelet.service"), owed(host)) == ("active", True, frozenset())
    assert host.text(KUBELET_CONF) is not None
    assert host.holds(SECRET) == []
    assert SECRET not in repr(done)
    second_pass_is_quiet(UNIT, host, host.settings(**ALL))


def test_check_mode_plans_the_join_of_a_bare_machine_without_a_token(cluster: Cluster) -> None:
    host = bare(cluster)
    files = dict(host.files)
    planned = passed(host, "", check=True, **ALL)
    assert f"join {cluster.url} as {NODE}" in actions(planned)
    assert (planned.needs, planned.failure, host.files, host.calls) == ((REFERENCE,), None, files, [])


def test_check_mode_is_truthful(cluster: Cluster) -> None:
    def ready() -> KubeHost:
        cluster.nodes.clear()
        host = KubeHost(cluster)
        host.swap_on()
        return host

    machines: tuple[Callable[[], KubeHost], ...] = (lambda: bare(cluster), ready)
    for machine in machines:
        cluster.nodes.clear()
        host = machine()
        real = check_is_truthful(UNIT, machine, host.settings(**ALL), given())
        assert real.state == "converged"


@pytest.mark.exhaustive
def test_a_kill_at_any_change_loses_nothing(cluster: Cluster) -> None:
    def machine() -> KubeHost:
        cluster.nodes.clear()
        host = KubeHost(cluster)
        host.swap_on()
        return host

    settings = machine().settings(**ALL)
    assert a_kill_loses_nothing(UNIT, machine, settings, shows, given=given()) > 15  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "version", ["1.24.17", "1.26.15", "1.27.16", "1.28.15", "1.30.14", "1.31.14", "1.35.0", "1.36.2"]
)
def test_every_kubeadm_gets_its_form_of_configuration(version: str) -> None:
    minor = int(version.split(".")[1])
    with Cluster(version=version) as cluster:
        cluster.token()
        host = KubeHost(cluster, version=version)
        done = passed(host, **ALL)
        assert (done.state, done.failure, cluster.labels(NODE), cluster.taints(NODE)) == (
            "converged",
            None,
            OURS,
            [TAINT],
        )
    validated = any(argv[:3] == ("kubeadm", "config", "validate") for argv in host.typed)
    assert validated is (minor >= 28)


def test_without_a_token_all_else_is_made_ready(cluster: Cluster) -> None:
    host = bare(cluster)
    done = passed(host, "", **ALL)
    assert (done.state, done.needs, done.failure, joins(host)) == ("progressing", (REFERENCE,), None, 0)
    assert [REFERENCE in wait for wait in waits(done)] == [True]
    assert host.text("/etc/sysctl.d/90-bcd-k8s.conf") is not None
    assert passed(host, **ALL).state == "converged"


@pytest.mark.parametrize("token", ["abcdef", "ABCDEF.0123456789abcdef", f"{TOKEN}\n", "<the secret>", f"x{TOKEN}"])
def test_what_has_not_the_form_of_a_token_is_refused_and_not_shown(cluster: Cluster, token: str) -> None:
    host = KubeHost(cluster)
    done = passed(host, token)
    assert done.failure is not None
    assert (done.failure.reason, host.calls, joins(host)) == ("Refused", [], 0)
    assert "has not the form of one" in message(done)
    assert token not in repr(done)


def test_where_what_it_stands_on_is_held_back_nothing_is_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    host.swap_on()
    done = passed(host, max_disruption="none")
    assert ([wait.reason for wait in done.pending], joins(host), done.failure) == (["HeldBack"], 0, None)
    assert passed(host).state == "converged"


def test_where_what_it_stands_on_fails_nothing_is_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    swapoff = host.programs["swapoff"]
    host.swap_on()
    host.programs["swapoff"] = lambda _host, _argv: Answer(4, "", "swapoff: /swap.img: Cannot allocate memory\n")
    done = passed(host)
    assert (done.state, joins(host)) == ("progressing", 0)
    host.programs["swapoff"] = swapoff
    assert passed(host).state == "converged"


# -- what the Node shows


def test_a_node_that_was_there_keeps_its_labels_and_taints_which_is_told_at_once(cluster: Cluster) -> None:
    cluster.node(NODE, {"old": "label"}, ready=False)
    host = KubeHost(cluster)
    done = passed(host, **ALL)
    assert (done.state, done.failure) == ("converged", None)
    assert cluster.labels(NODE) == {**OURS, "old": "label"}
    assert recorded(host) == []  # what the Node shows, not what was asked for
    drift = done.conditions[0]
    assert (drift.type, drift.reason) == ("KubernetesTaintsDrift", "NodeRestriction")
    cluster.admin(drift.message[drift.message.index("kubectl taint node") :])
    assert cluster.taints(NODE) == [TAINT]
    after = passed(host, "", **ALL)
    assert (after.conditions, after.state, recorded(host)) == ((), "converged", [TAINT])


def test_a_registration_that_does_not_come_is_waited_for_and_not_joined_again(cluster: Cluster) -> None:
    cluster.faults.no_registration = True
    host = Hurried(cluster)
    begin = host.clock()
    done = passed(host, **ALL)
    assert (done.state, done.failure, joins(host)) == ("progressing", None, 1)
    assert host.clock() - begin < 300
    assert any("has no Node gpu-01 yet" in wait for wait in waits(done))
    assert host.text(RECORD) is None
    assert host.holds(SECRET) == []
    again = passed(host, "", **ALL)  # no token is asked for any more
    assert (again.state, again.needs, joins(host)) == ("progressing", (), 1)
    cluster.faults.no_registration = False
    after = passed(host, "", **ALL)
    assert (after.state, joins(host), cluster.taints(NODE)) == ("converged", 1, [TAINT])
    assert (host.text(RECORD) is not None, owed(host)) == (True, frozenset())


def test_an_api_server_that_goes_away_behind_the_join_is_waited_for(cluster: Cluster) -> None:
    host = Hurried(cluster)
    host.worker.stage = lambda name: cluster.stop() if name == "done" else None  # type: ignore[method-assign]
    done = passed(host)
    assert (done.state, done.failure, joins(host)) == ("progressing", None, 1)
    assert any("Connection refused" in wait for wait in waits(done))
    cluster.start()
    assert (passed(host, "").state, joins(host)) == ("converged", 1)


# -- power loss


@pytest.mark.parametrize("stage", ["preflight", "discovery", "kubelet-start", "kubelet-wait-bootstrap"])
@pytest.mark.parametrize("version", ["1.28.15", "1.31.14", "1.36.2"])
def test_a_join_that_lost_power_is_cleaned_up_and_made_again(stage: str, version: str) -> None:
    with Cluster(version=version) as cluster:
        cluster.token()
        host = KubeHost(cluster, version=version)
        host.dies_at = stage
        cluster.faults.no_approval = True
        with pytest.raises(Killed):
            passed(host, **ALL)
        assert JOIN_FILE in host.files  # nobody was left to remove it
        assert owed(host) == {CLEAN}
        cluster.faults.no_approval = False
        host.typed.clear()
        done = passed(host, **ALL)
        assert (done.state, done.failure, joins(host)) == ("converged", None, 1)
        assert host.holds(SECRET) == []
        assert (cluster.labels(NODE), owed(host)) == (OURS, frozenset())


def test_a_join_that_lost_power_when_it_was_through_is_only_recorded(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    host.dies_at = "done"
    with pytest.raises(Killed):
        passed(host, **ALL)
    host.put(BOOTSTRAP, f"token: {TOKEN}\n")  # kubeadm removes it last
    host.typed.clear()
    host.boot()
    done = passed(host, "", **ALL)
    assert (done.state, done.failure, joins(host), owed(host)) == ("converged", None, 0, frozenset())
    assert host.holds(SECRET) == []
    assert host.text(RECORD) is not None


def test_a_join_that_lost_power_leaves_no_token_although_none_is_given_any_more(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    cluster.faults.no_approval = True
    host.dies_at = "kubelet-wait-bootstrap"
    with pytest.raises(Killed):
        passed(host, **ALL)
    assert host.holds(SECRET)
    done = passed(host, "", **ALL)
    assert (done.needs, host.holds(SECRET)) == ((REFERENCE,), [])
    assert [path for path in (*LEFTOVERS, KUBELET_CONF) if path in host.files] == []


def test_after_a_reboot_in_the_middle_check_mode_says_what_is_cleaned_up(cluster: Cluster) -> None:
    def machine() -> KubeHost:
        cluster.nodes.clear()
        cluster.faults.no_approval = True
        host = KubeHost(cluster)
        host.dies_at = "kubelet-wait-bootstrap"
        with pytest.raises(Killed):
            passed(host, **ALL)
        host.boot()
        assert host.kubelet == "active"  # it waits for its certificate
        host.put("/proc/sys/net/ipv4/ip_forward", "1\n")
        host.calls.clear()
        host.worker.stage = approve  # type: ignore[method-assign]
        return host

    def approve(name: str) -> None:
        cluster.faults.no_approval = not name

    real = check_is_truthful(UNIT, machine, machine().settings(**ALL), given())
    assert (real.state, real.failure) == ("converged", None)
    done = actions(real)
    assert [line.partition(" (")[0] for line in done if line.startswith(("stop kubelet", "remove what", "join"))] == [
        "stop kubelet.service, whose join came to nothing",
        "remove what the join left",
        f"join {cluster.url} as {NODE}",
    ]


def test_a_kubelet_that_becomes_a_member_after_a_reboot_is_only_recorded(cluster: Cluster) -> None:
    cluster.faults.no_approval = True
    host = KubeHost(cluster)
    host.dies_at = "kubelet-wait-bootstrap"
    with pytest.raises(Killed):
        passed(host, **ALL)
    cluster.faults.no_approval = False
    host.typed.clear()
    host.boot()
    done = passed(host, "", **ALL)
    assert (done.failure, done.needs, joins(host), owed(host)) == (None, (), 0, frozenset())
    assert host.text(RECORD) is not None
    assert host.holds(SECRET) == []


def test_a_kubeadm_that_outlived_its_pass_is_waited_for(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    host.dies_at = "discovery"
    with pytest.raises(Killed):
        passed(host)
    host.typed.clear()
    host.put("/proc/4242/cmdline", f"/usr/bin/kubeadm\0join\0--config\0{JOIN_FILE}\0")
    done = passed(host)
    assert (done.state, done.failure, joins(host)) == ("progressing", None, 0)
    assert any("still runs" in wait for wait in waits(done))
    del host.files["/proc/4242/cmdline"]
    assert passed(host).state == "converged"


# -- whose it is


def test_a_member_of_the_cluster_that_was_joined_by_hand_is_kept_and_not_ours_to_reset(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    assert host.join_by_hand().rc == 0
    done = passed(host, "", labels={"tier": "gpu"})
    assert (done.state, done.failure, cluster.labels(NODE), host.text(RECORD)) == ("converged", None, OURS, None)
    assert passed(host, "", labels={"tier": "gpu"}).changed is False
    gone = go(UNIT, host, None)
    assert gone.failure is None
    assert host.text(KUBELET_CONF) is not None
    assert ("kubeadm", "reset") not in {argv[:2] for argv in host.typed}


def test_a_member_that_was_reset_by_hand_joins_again(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    assert passed(host).state == "converged"
    host.programs["kubeadm"](host, ("kubeadm", "reset", "--force"))
    cluster.delete_node(NODE)
    done = passed(host, **ALL)
    assert (done.state, done.failure, joins(host), cluster.labels(NODE)) == ("converged", None, 2, OURS)


def test_what_a_node_that_was_deleted_registers_with_again_is_ours_to_take_back(cluster: Cluster) -> None:
    """Its kubelet has the labels and taints of the join for good, whatever has left the settings since."""
    host = KubeHost(cluster)
    old, new = "old=1:NoSchedule", "new=1:NoSchedule"
    assert passed(host, labels={"pool": "a", "team": "ml"}, taints=[old]).state == "converged"
    now: dict[str, Any] = {"labels": {"team": "ml"}, "taints": [new]}
    passed(host, "", **now)
    cluster.admin(f"kubectl taint node {NODE} {new} old:NoSchedule- --overwrite")
    cluster.admin(f"kubectl label node {NODE} pool=a")  # theirs, since it left the settings
    done = passed(host, "", **now)
    assert (done.changed, done.conditions, cluster.labels(NODE)["pool"]) == (True, (), "a")
    assert passed(host, "", **now).changed is False
    cluster.delete_node(NODE)
    after = passed(host, "", **now)
    assert (after.state, "pool" in cluster.labels(NODE), cluster.taints(NODE)) == ("converged", False, [old])
    [condition] = after.conditions
    command = f"kubectl taint node {NODE} {new} old:NoSchedule- --overwrite"
    assert condition.message.endswith(command)
    again = passed(host, "", **now)
    assert (again.changed, again.conditions) == (False, after.conditions)
    cluster.admin(command)
    assert passed(host, "", **now).conditions == ()
    assert cluster.taints(NODE) == [new]


def test_the_server_of_kubelet_conf_may_be_another_than_the_one_that_was_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    address = cluster.url.replace("127.0.0.1", "localhost")
    allowed = f'[kubernetes]\nallowed_clusters = "{address}#sha256:{cluster.pin}"\n'
    host.put("/etc/bcd/config.toml", allowed)
    done = passed(host, apiServer=address)
    assert (done.state, done.failure) == ("converged", None)
    assert cluster.url in (host.text(KUBELET_CONF) or "")
    again = passed(host, "", apiServer=address)
    assert (again.state, again.changed) == ("converged", False)


def test_a_containerd_that_nobody_can_read_keeps_nothing_else_from_being_handed_back(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    host.swap_on()
    assert passed(host, **ALL).state == "converged"
    config = host.text("/etc/containerd/config.toml") or ""
    host.put("/etc/containerd/config.toml", "version = = 2\n")
    gone = go(UNIT, host, None)
    assert gone.failure is not None
    assert "/etc/containerd/config.toml" in gone.failure.message
    assert [path for path in (KUBELET_CONF, RECORD, "/etc/sysctl.d/90-bcd-k8s.conf") if path in host.files] == []
    assert "/swap.img" in (host.text("/proc/swaps") or "")
    host.put("/etc/containerd/config.toml", config)
    after = go(UNIT, host, None)
    assert (after.failure, after.state, after.changed) == (None, "converged", True)
    assert go(UNIT, host, None).changed is False


def test_an_account_that_may_not_read_whose_the_machine_is_says_that_root_sees_it(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    assert passed(host).state == "converged"
    host.user = 1000
    host.unreadable = {KUBELET_CONF}
    seen = passed(host, "", check=True)
    assert (seen.failure, [line.later for line in seen.steps]) == (None, [True])
    assert "seen as root" in actions(seen)[0]
