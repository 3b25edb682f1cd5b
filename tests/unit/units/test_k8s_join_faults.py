# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each way in which a join comes to nothing: its answer, nothing left, and a pass that joins later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, NamedTuple

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_kernel
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_entry import CA, LEFTOVERS
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import JOIN_FILE, KUBELET_CONF, RECORD
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.k8s_join import UNIT
from tests.cluster.authority import Made
from tests.cluster.control_plane import TOKEN, Cluster
from tests.cluster.kubeadm import Answer as Said
from tests.cluster.kubeadm import kubeadm
from tests.unit import kube_host
from tests.unit.fake_host import FakeHost
from tests.unit.kube_host import KubeHost, allowed
from tests.unit.kube_passes import NODE, actions, given, joins, message, passed, shows
from tests.unit.promises import a_kill_loses_nothing

SECRET = TOKEN.partition(".")[2]
OTHER = "zzzzzz.fedcba9876543210"
WRONG = "abcdef.aaaaaaaaaaaaaaaa"  # the id of the one that the cluster knows
BOUND = 420.0  # seconds that any of these may take


class Hurried(KubeHost):
    """Its clock runs away while something waits."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds * 5)


@contextmanager
def a_join_fails(rc: int, text: str) -> Iterator[None]:
    """Have kubeadm join do what it does, and fail with this."""

    def instead(worker: Any, argv: tuple[str, ...], *more: Any) -> Said:
        said = kubeadm(worker, argv, *more)
        return said._replace(rc=rc, out="", err=text, text=text) if argv[1] == "join" else said

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kube_host, "run_kubeadm", instead)
        yield


def nothing(_host: KubeHost, _cluster: Cluster) -> None:
    """No cause, or none that has to be taken away."""


class Case(NamedTuple):
    """Something that is wrong, what is said of it, and how it is mended.

    `past_start`: kubeadm gets so far that it leaves files.
    """

    name: str
    words: tuple[str, ...]
    retryable: bool
    wrong: Callable[[KubeHost, Cluster], object] = nothing
    mended: Callable[[KubeHost, Cluster], object] = nothing
    token: str = TOKEN
    version: str = "1.31.14"


def set_fault(name: str, value: object) -> Callable[[KubeHost, Cluster], None]:
    return lambda _host, cluster: setattr(cluster.faults, name, value)


def set_machine(name: str, value: object) -> Callable[[KubeHost, Cluster], None]:
    return lambda host, _cluster: setattr(host, name, value)


def certified(*names: str) -> Callable[[KubeHost, Cluster], None]:
    """Have the API server's certificate be for these names."""

    def serve(_host: KubeHost, cluster: Cluster) -> None:
        assert isinstance(cluster.authority, Made)
        cluster.stop()
        cluster.authority.hosts = names
        cluster.start()

    return serve


def lose_token(_host: KubeHost, cluster: Cluster) -> None:
    cluster.expire()


def let_kubelet_die(host: KubeHost, _cluster: Cluster) -> None:
    """Swap that something turns on again while kubeadm runs."""

    def stage(name: str) -> None:
        if name == "kubelet-start":
            host.swap_on()

    host.worker.stage = stage  # type: ignore[method-assign]


def let_kubelet_live(host: KubeHost, _cluster: Cluster) -> None:
    del host.worker.stage


CASES = [
    Case("unknown", ("does not know the bootstrap token", "kubeadm token create"), True, token=OTHER),
    Case("expired", ("or it has expired", "kubeadm token create"), True, lose_token, lambda _h, c: c.token()),
    Case(
        "unsigned",
        ("does not know the bootstrap token",),
        True,
        set_fault("no_signature", True),
        set_fault("no_signature", False),
    ),
    Case("refusing", ("gives no answer", "refused"), True, lambda _h, c: c.stop(), lambda _h, c: c.start()),
    Case("sick", ("gives no answer",), True, set_fault("status", 500), set_fault("status", 0)),
    Case("silent", ("gives no answer", "network"), True, set_fault("hang", True), set_fault("hang", False)),
    Case(
        "another name",
        ("gives no answer", "x509: certificate is not valid for 127.0.0.1"),
        True,
        certified("10.96.0.1"),
        certified("127.0.0.1"),
    ),
    Case(
        "namesake",
        ("a Node gpu-01 that is Ready", f"kubectl delete node {NODE}"),
        False,
        lambda _host, cluster: cluster.node(NODE),
        lambda _host, cluster: cluster.delete_node(NODE),
    ),
    Case(
        "namesake of a new kubeadm",
        ("a Node gpu-01 that is Ready",),
        False,
        lambda _host, cluster: cluster.node(NODE),
        lambda _host, cluster: cluster.delete_node(NODE),
        version="1.36.2",
    ),
    Case(
        "old cluster",
        ("too new for the cluster", "1.29.4", "kubernetesVersion"),
        False,
        lambda _host, cluster: setattr(cluster, "version", "1.29.4"),
        lambda _host, cluster: setattr(cluster, "version", "1.31.0"),
    ),
    Case(
        "dead kubelet",
        ("the kubelet does not start", "swap on is not supported"),
        True,
        let_kubelet_die,
        let_kubelet_live,
    ),
    Case(
        "dead kubelet of an old kubeadm",
        ("the kubelet does not start", "swap on is not supported"),
        True,
        let_kubelet_die,
        let_kubelet_live,
        version="1.28.15",
    ),
    Case(
        "no certificate",
        ("no certificate", "kubectl get csr"),
        True,
        set_fault("no_approval", True),
        set_fault("no_approval", False),
    ),
    Case(
        "old cgroups",
        ("SystemVerification", "cgroup v2"),
        False,
        set_machine("cgroups", 1),
        set_machine("cgroups", 2),
        version="1.36.2",
    ),
    Case(
        "missing program",
        ("FileExisting-losetup", "install losetup"),
        False,
        set_machine("missing", {"losetup"}),
        set_machine("missing", set()),
    ),
]


def left(host: KubeHost) -> list[str]:
    """What a join that came to nothing must not leave."""
    return [path for path in (*LEFTOVERS, KUBELET_CONF, JOIN_FILE, RECORD) if path in host.files]


def is_clean(host: KubeHost, outcome: Outcome, token: str) -> None:
    """Nothing is left of it, and nothing tells the token."""
    assert left(host) == []
    assert Records(host).past(UNIT.name).owed == frozenset()
    assert host.kubelet == "inactive" or not outcome.changed or "activating" not in host.kubelet
    secret = token.partition(".")[2]
    assert secret not in repr(outcome)
    assert host.holds(secret) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_it_has_its_answer_and_the_next_pass_joins(case: Case) -> None:
    with Cluster(version=case.version) as cluster:
        cluster.token()
        host = Hurried(cluster, version=case.version)
        case.wrong(host, cluster)
        begin = host.clock()
        done = passed(host, case.token)
        assert done.failure is not None
        assert (done.failure.reason, done.failure.retryable) == ("StepFailed", case.retryable)
        assert [word for word in case.words if word not in message(done)] == []
        assert host.clock() - begin < BOUND * 5
        is_clean(host, done, case.token)
        again = passed(host, case.token)  # the cause is still there: the same answer, and not the trace of another
        assert message(again) == message(done)
        assert again.changed is False or case.name.startswith("dead kubelet")  # where swap is turned off again
        is_clean(host, again, case.token)
        case.mended(host, cluster)
        cluster.token()
        after = passed(host)
        assert (after.state, after.failure) == ("converged", None)
        assert host.text(RECORD) is not None
        assert host.holds(SECRET) == []


@pytest.mark.parametrize("version", ["1.28.15", "1.31.14"])
def test_an_expired_token_costs_half_a_minute(version: str) -> None:
    with Cluster(version=version) as cluster:
        host = KubeHost(cluster, version=version)
        begin = host.clock()
        assert "or it has expired" in message(passed(host))
        assert 25 <= host.clock() - begin <= 45


def test_a_wrong_secret_is_not_tried_again_before_it_changes(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    first = passed(host, WRONG)
    assert (first.failure is not None, joins(host)) == (True, 1)
    assert "its secret is another" in message(first)
    is_clean(host, first, WRONG)
    second = passed(host, WRONG)
    assert second.failure is not None
    assert (joins(host), second.failure.retryable, second.changed) == (1, False, False)
    assert "its secret is another" in message(second)
    host.reboot()
    assert passed(host, WRONG).failure is not None
    assert joins(host) == 2
    assert passed(host).state == "converged"


def test_a_ca_that_is_not_pinned_is_told_with_both_pins(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    wrong = "0" * 64
    host.put("/etc/bcd/config.toml", f'[kubernetes]\nallowed_clusters = "{cluster.url}#sha256:{wrong}"\n')
    done = passed(host, caCertSha256=wrong)
    assert done.failure is not None
    assert done.failure.retryable is False
    assert f"sha256:{wrong}" in message(done)
    assert f"sha256:{cluster.pin}" in message(done)
    is_clean(host, done, TOKEN)
    again = passed(host, caCertSha256=wrong)
    assert (message(again), again.changed) == (message(done), False)
    host.put("/etc/bcd/config.toml", allowed(cluster)["/etc/bcd/config.toml"])
    after = passed(host)
    assert (after.state, after.failure, host.text(RECORD) is not None) == ("converged", None, True)


def test_an_address_of_the_cluster_s_own_that_this_machine_does_not_reach_is_told(cluster: Cluster) -> None:
    host = Hurried(cluster)
    by, cluster.host = cluster.url, "127.0.0.9"  # where nobody listens
    done = passed(host, apiServer=by)
    assert done.failure is not None
    assert done.failure.retryable
    told = (
        f"https://127.0.0.9:{cluster.port} gives no answer",
        "connection refused",
        f"the cluster-info of {by} names",
    )
    assert [words for words in told if words not in message(done)] == []
    is_clean(host, done, TOKEN)
    cluster.host = "127.0.0.1"
    assert passed(host, apiServer=by).state == "converged"


def test_one_pin_of_a_bundle_is_enough(cluster: Cluster) -> None:
    with Cluster() as other:
        cluster.bundle = other.ca + cluster.ca  # a rotation
        host = KubeHost(cluster)
        assert passed(host).state == "converged"
        assert passed(host, "").changed is False


def test_while_the_packages_wait_for_their_repository_nothing_is_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster, installed=False)
    net = host.apt.shelf.net
    gone = {address: net.pop(address) for address in list(net)}
    done = passed(host)
    assert (done.state, done.failure, [wait.reason for wait in done.pending]) == ("progressing", None, ["NotReady"])
    assert not any(action.startswith("join ") for action in actions(done))
    net.update(gone)
    assert passed(host).state == "converged"


def test_a_kubelet_that_has_its_certificate_when_kubeadm_gives_up_is_a_member(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    said = "error: error execution phase kubelet-wait-bootstrap: nonsense\n"
    with a_join_fails(1, said):
        done = passed(host)
    assert (done.failure, done.pending, joins(host), RECORD in host.files) == (None, (), 1, True)
    assert (passed(host, "").state, joins(host)) == ("converged", 1)


def test_what_kubeadm_says_of_the_token_is_masked(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    said = f'discovery.bootstrapToken.token: Invalid value: "{TOKEN}": it is invalid, {SECRET}\nerror: no\n'
    cluster.expire()
    with a_join_fails(3, said):
        done = passed(host)
    assert "Invalid value" in message(done)
    is_clean(host, done, TOKEN)


def test_what_kubeadm_does_not_take_is_refused_before_anything_is_joined(cluster: Cluster) -> None:
    host = KubeHost(cluster)
    real = host.programs["kubeadm"]
    complaint = 'error: strict decoding error: unknown field "nodeRegistration.taint"'

    def strict(there: Any, argv: tuple[str, ...]) -> Answer:
        return Answer(1, "", complaint) if argv[:3] == ("kubeadm", "config", "validate") else real(there, argv)

    host.programs["kubeadm"] = strict
    done = passed(host)
    assert done.failure is not None
    assert (done.failure.reason, joins(host), host.calls) == ("Refused", 0, [])
    assert "unknown field" in message(done)


def test_a_cleaning_that_fails_is_made_again_and_leaves_no_token(cluster: Cluster) -> None:
    cluster.node(NODE)
    host = KubeHost(cluster, version="1.36.2")
    rm = host.programs["rm"]
    host.programs["rm"] = lambda _host, _argv: Answer(1, "", "rm: cannot remove: Read-only file system\n")
    done = passed(host)
    assert done.failure is not None
    assert "Read-only file system" in message(done)
    assert CA in host.files
    assert host.holds(SECRET) == []
    host.programs["rm"] = rm
    cluster.delete_node(NODE)
    after = passed(host)
    assert (after.state, after.failure, host.holds(SECRET)) == ("converged", None, [])


def test_the_record_of_a_membership_that_is_over_hides_no_join_that_came_to_nothing(cluster: Cluster) -> None:
    host = Hurried(cluster)
    assert passed(host).state == "converged"
    host.programs["kubeadm"](host, ("kubeadm", "reset", "--force"))
    cluster.delete_node(NODE)
    cluster.faults.no_approval = True
    done = passed(host)
    assert "kubectl get csr" in message(done)
    is_clean(host, done, TOKEN)
    cluster.faults.no_approval = False
    assert passed(host).state == "converged"
    assert RECORD in host.files


def test_where_what_it_stands_on_waits_nothing_is_joined(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    host = KubeHost(cluster)
    with monkeypatch.context() as patch:
        patch.setattr(kube_kernel, "plan", lambda todo, _now, _past: todo.wait("NotReady", "the kernel is late"))
        done = passed(host)
    assert ([wait.message for wait in done.pending], joins(host)) == (["the kernel is late"], 0)
    assert passed(host).state == "converged"


@pytest.mark.exhaustive
def test_a_kill_at_any_change_of_a_pass_that_fails_leaves_nothing_either(cluster: Cluster) -> None:
    def machine() -> KubeHost:
        cluster.nodes.clear()
        cluster.node(NODE)
        return KubeHost(cluster, version="1.36.2")

    def seen(host: FakeHost) -> object:
        assert isinstance(host, KubeHost)
        return shows(host), left(host), host.holds(SECRET), Records(host).past(UNIT.name).owed

    settings = machine().settings()
    assert a_kill_loses_nothing(UNIT, machine, settings, seen, given=given()) > 10
