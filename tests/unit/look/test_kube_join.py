# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a machine is: kubelet.conf, the Node over https, and what is left of joins."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import NotReady, Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import kube_entry, kube_join
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_entry import CA
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import (
    BOOTSTRAP,
    CLEAN,
    JOIN_FILE,
    KUBELET_CONF,
    RECORD,
    Joined,
    Taint,
)
from tests.cluster.control_plane import Cluster
from tests.unit.fake_host import FakeHost
from tests.unit.kube_host import KubeHost

CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
SERVER = "https://10.0.0.1:6443"
URL = f"{SERVER}/api/v1/nodes/gpu-01"
MEMBER = Joined(SERVER, ("ab" * 32,), "PEM", CURRENT, "gpu-01", 2_000_000_000)
OWED = Past(owed=frozenset((CLEAN,)))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


@pytest.fixture
def member(cluster: Cluster) -> KubeHost:
    """A machine that somebody has joined."""
    cluster.nodes.clear()
    host = KubeHost(cluster)
    assert host.join_by_hand().rc == 0
    return host


def test_a_member_is_read_of_its_files(cluster: Cluster, member: KubeHost) -> None:
    found = kube_join.joined(member)
    assert found is not None
    assert (found.server, found.pins, found.node, found.certificate) == (cluster.url, (cluster.pin,), "gpu-01", CURRENT)
    assert found.expires > member.time()
    assert found.ca.strip() == cluster.ca.strip()


def test_a_bundle_has_the_pins_of_all_its_certificates(cluster: Cluster) -> None:
    with Cluster() as other:
        cluster.nodes.clear()
        cluster.bundle = other.ca + cluster.ca
        try:
            host = KubeHost(cluster)
            assert host.join_by_hand().rc == 0
        finally:
            cluster.bundle = cluster.ca
        found = kube_join.joined(host)
        assert found is not None
        assert set(found.pins) == {cluster.pin, other.pin}


def test_who_has_no_kubelet_conf_is_no_member() -> None:
    assert kube_join.joined(FakeHost()) is None


def test_a_ca_in_a_file_of_its_own_is_read_there(cluster: Cluster, member: KubeHost) -> None:
    text = member.text(KUBELET_CONF) or ""
    line = next(line for line in text.splitlines() if "certificate-authority-data" in line)
    indent = line[: len(line) - len(line.lstrip())]
    member.put(KUBELET_CONF, text.replace(line, f"{indent}certificate-authority: {CA}"))
    found = kube_join.joined(member)
    assert found is not None
    assert found.pins == (cluster.pin,)


def test_without_a_certificate_there_is_neither_a_name_nor_an_end(member: KubeHost) -> None:
    member.links.pop(CURRENT)
    found = kube_join.joined(member)
    assert found is not None
    assert (found.node, found.expires) == ("", 0)
    member.put(CURRENT, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    again = kube_join.joined(member)
    assert again is not None
    assert (again.node, again.expires) == ("", 0)


def test_a_ca_that_is_none_is_refused(member: KubeHost) -> None:
    text = member.text(KUBELET_CONF) or ""
    line = next(line for line in text.splitlines() if "certificate-authority-data" in line)
    indent = line[: len(line) - len(line.lstrip())]
    member.put("/ca", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    member.put(KUBELET_CONF, text.replace(line, f"{indent}certificate-authority: /ca"))
    with pytest.raises(Refused, match=r"the CA in /etc/kubernetes/kubelet.conf cannot be read"):
        kube_join.joined(member)


# The kubelet writes kubelet.conf when it starts, and has its certificate only when it is signed.
def test_a_join_of_ours_without_a_certificate_has_come_to_nothing(member: KubeHost) -> None:
    assert kube_join.member(member, OWED) is not None
    member.links.pop(CURRENT)
    assert kube_join.member(member, OWED) is None
    assert kube_join.member(member, Past()) is not None  # another's is not judged
    assert KUBELET_CONF in kube_entry.entry(member, OWED).leftovers
    member.put(RECORD, "{}")
    assert kube_join.member(member, OWED) is not None


# -- the Node


def site(answer: Answer) -> FakeHost:
    host = FakeHost()
    host.sites[URL] = answer
    return host


def test_the_node_is_asked_for_over_https_with_the_kubelet_s_credentials(cluster: Cluster, member: KubeHost) -> None:
    cluster.node("gpu-01", {"tier": "gpu"})
    cluster.admin("kubectl taint node gpu-01 a=b:NoSchedule")
    found = kube_join.joined(member)
    assert found is not None
    seen = kube_join.node(member, found)
    assert seen is not None
    assert (seen.name, dict(seen.labels), seen.taints, seen.ready) == (
        "gpu-01",
        {"tier": "gpu"},
        (Taint("a", "b", "NoSchedule"),),
        True,
    )
    cluster.delete_node("gpu-01")
    assert kube_join.node(member, found) is None


def test_an_api_server_that_another_authority_signed_is_not_believed(cluster: Cluster, member: KubeHost) -> None:
    found = kube_join.joined(member)
    assert found is not None
    with Cluster() as other, pytest.raises(NotReady, match="certificate"):
        kube_join.node(member, found._replace(server=other.url))


@pytest.mark.parametrize("rc", [401, 403, 500, 503])
def test_an_answer_that_tells_nothing_is_waited_for(rc: int) -> None:
    status = json.dumps({"kind": "Status", "message": 'nodes "gpu-01" is forbidden'})
    with pytest.raises(NotReady, match=f'answers {rc} nodes "gpu-01" is forbidden'):
        kube_join.node(site(Answer(rc, status, "Forbidden")), MEMBER)
    with pytest.raises(NotReady, match=f"answers {rc} Forbidden"):
        kube_join.node(site(Answer(rc, "<html>", "Forbidden")), MEMBER)


@pytest.mark.parametrize("text", ["", "[]", "{}", "<html>", '{"metadata": {}}', '{"metadata": {"name": 5}}'])
def test_what_is_no_node_is_waited_for(text: str) -> None:
    with pytest.raises(NotReady, match="what is no Node"):
        kube_join.node(site(Answer(200, text, "OK")), MEMBER)


def test_no_answer_is_waited_for() -> None:
    with pytest.raises(NotReady, match="gives no answer"):
        kube_join.node(FakeHost(), MEMBER)


def test_without_a_name_nothing_is_asked() -> None:
    host = FakeHost()
    with pytest.raises(NotReady, match="has no certificate"):
        kube_join.node(host, MEMBER._replace(node="", expires=0))
    assert host.asked == []


# -- records and leftovers


def test_a_record_that_is_damaged_is_told() -> None:
    host = FakeHost({RECORD: "{}"})
    with pytest.raises(StepFailed, match=RECORD):
        kube_join.membership(host)
    assert kube_join.membership(FakeHost()) is None


def test_files_with_a_token_are_those_of_a_join_that_was_killed() -> None:
    host = FakeHost({JOIN_FILE: "token", BOOTSTRAP: "token"})
    assert kube_join.token_files(host, False, Past()) == (JOIN_FILE,)
    assert kube_join.token_files(host, True, Past()) == (JOIN_FILE,)
    assert kube_join.token_files(host, True, OWED) == (JOIN_FILE, BOOTSTRAP)
    assert kube_join.token_files(FakeHost(), True, OWED) == ()


def test_the_kubelet_s_client_keys_are_left_by_a_join_and_its_server_s_are_not() -> None:
    pki = "/var/lib/kubelet/pki"
    names = ("kubelet.crt", "kubelet.key", "kubelet-client-current.pem", "kubelet-client.key.tmp")
    host = FakeHost({f"{pki}/{name}": "" for name in names})
    assert kube_entry.leftovers(host) == (f"{pki}/kubelet-client-current.pem", f"{pki}/kubelet-client.key.tmp")


@pytest.mark.parametrize(
    ("line", "joins"),
    [
        ("kubeadm\0join\0--config\0x\0", True),
        ("/usr/bin/kubeadm\0join\0", True),
        ("kubeadm\0reset\0", False),
        ("vi\0kubeadm\0join\0", False),
        ("", False),
    ],
)
def test_a_kubeadm_that_joins_is_seen_after_a_join_of_ours_alone(line: str, joins: bool) -> None:
    host = FakeHost({"/proc/42/cmdline": line, "/proc/self/cmdline": "kubeadm\0join\0"})
    assert kube_entry.entry(host, OWED).running is joins
    assert kube_entry.entry(host, Past()).running is False
