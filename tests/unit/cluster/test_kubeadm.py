# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in of kubeadm joins, and fails to join, as kubeadm does: its words, how long it takes, what it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import worker as at
from tests.cluster.control_plane import TOKEN, Cluster
from tests.cluster.kubeadm import Answer, kubeadm
from tests.unit.fake_host import Killed
from tests.unit.kube_host import KubeHost

CONFIG = "/root/join.yaml"
READY = {"/proc/sys/net/ipv4/ip_forward": "1\n"}
LEFT = [at.CONFIG, at.FLAGS, at.CA]  # by a join that failed behind the start of the kubelet
NEW = ("1.31.14", "1.36.2")
ALL = ("1.28.15", "1.30.9", *NEW)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster("1.31.14") as made:
        made.token()
        yield made


def machine(cluster: Cluster, version: str = "1.31.14", **more: Any) -> KubeHost:
    """One that kubeadm of this version would join, to a cluster of its minor."""
    cluster.version = version
    host = KubeHost(cluster, version=version, files=READY, **more)
    host.put(CONFIG, json.dumps(config(cluster, version)))
    return host


def config(cluster: Cluster, version: str = "1.31.14", **bootstrap: Any) -> dict[str, Any]:
    """A JoinConfiguration of the newest version that this kubeadm reads, with half a minute for discovery."""
    new = int(version.split(".")[1]) >= 31
    found: dict[str, Any] = {
        "apiVersion": f"kubeadm.k8s.io/{'v1beta4' if new else 'v1beta3'}",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": cluster.endpoint,
                "token": TOKEN,
                "caCertHashes": [f"sha256:{cluster.pin}"],
                **bootstrap,
            }
        },
        "nodeRegistration": {"name": "gpu-01", "criSocket": "unix:///run/containerd/containerd.sock"},
    }
    if new:
        found["timeouts"] = {"discovery": "30s", "tlsBootstrap": "1m0s", "kubeletHealthCheck": "1m0s"}
    else:
        found["discovery"]["timeout"] = "30s"
    return found


def join(host: KubeHost, *options: str, change: dict[str, Any] | None = None) -> Answer:
    if change is not None:
        host.put(CONFIG, json.dumps(change))
    return kubeadm(host.worker, ("kubeadm", "join", "--config", CONFIG, *options))


def register(host: KubeHost, version: str = "1.31.14", **more: Any) -> dict[str, Any]:
    """The configuration with more of nodeRegistration."""
    found = config(host.cluster, version)
    found["nodeRegistration"].update(more)
    return found


def left(host: KubeHost) -> list[str]:
    """What there is of a membership or of half a join."""
    known = (at.KUBELET_CONF, at.BOOTSTRAP_CONF, at.CONFIG, at.FLAGS, at.INSTANCE_CONFIG, at.CA)
    return [path for path in known if path in host.files]


def labelled(version: str, labels: str) -> Any:
    new = int(version.split(".")[1]) >= 31
    return [{"name": "node-labels", "value": labels}] if new else {"node-labels": labels}


# -- it joins


@pytest.mark.parametrize("version", ALL)
def test_a_good_join(cluster: Cluster, version: str) -> None:
    host = machine(cluster, version)
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    wanted = register(host, version, taints=taints, kubeletExtraArgs=labelled(version, "team=ml,bcd.dev/site=x"))
    said = join(host, change=wanted)
    assert (said.rc, "This node has joined the cluster:" in said.out) == (0, True)
    assert cluster.labels("gpu-01") == {"bcd.dev/site": "x", "team": "ml"}
    assert cluster.taints("gpu-01") == ["dedicated=ml:NoSchedule"]
    instance = [at.INSTANCE_CONFIG] if version == "1.36.2" else []
    assert left(host) == [at.KUBELET_CONF, at.CONFIG, at.FLAGS, *instance, at.CA]
    assert host.files[at.KUBELET_CONF].mode == 0o600
    assert host.holds(TOKEN) == [CONFIG]  # our own file, and none of kubeadm's
    flags = host.text(at.FLAGS) or ""
    assert flags.startswith('KUBELET_KUBEADM_ARGS="--')
    assert ("--container-runtime-endpoint=unix:///run/containerd/containerd.sock" in flags) is (version != "1.36.2")
    assert ("hostname-override" in flags) is False


def test_kubelet_conf_names_the_server_of_cluster_info_not_the_endpoint(cluster: Cluster) -> None:
    host = machine(cluster)
    said = join(host, change=config(cluster, apiServerEndpoint=f"localhost:{cluster.port}"))
    assert said.rc == 0
    assert f"server: https://127.0.0.1:{cluster.port}\n" in (host.text(at.KUBELET_CONF) or "")
    assert f"client-certificate: {at.CERTIFICATE}\n" in (host.text(at.KUBELET_CONF) or "")


def test_another_name_than_the_host_is_an_override(cluster: Cluster) -> None:
    host = machine(cluster, name="GPU-01")
    assert join(host).rc == 0
    assert "hostname-override" not in (host.text(at.FLAGS) or "")  # the host name in lower case is the default
    other = machine(cluster, name="something-else")
    cluster.nodes.clear()
    assert join(other).rc == 0
    assert "--hostname-override=gpu-01" in (other.text(at.FLAGS) or "")
    assert {*cluster.nodes} == {"gpu-01"}


def test_a_second_authority_beside_the_pinned_one_is_fine(cluster: Cluster) -> None:
    with Cluster() as other:
        cluster.bundle = other.ca + cluster.ca
        assert join(machine(cluster)).rc == 0


def test_the_pin_may_be_in_capitals(cluster: Cluster) -> None:
    host = machine(cluster)
    assert join(host, change=config(cluster, caCertHashes=[f"sha256:{cluster.pin.upper()}"])).rc == 0


# -- its version and its configuration


@pytest.mark.parametrize("version", ALL)
def test_it_tells_its_version(cluster: Cluster, version: str) -> None:
    said = kubeadm(machine(cluster, version).worker, ("kubeadm", "version", "-o", "short"))
    assert (said.rc, said.out) == (0, f"v{version}\n")


@pytest.mark.parametrize(
    ("version", "api", "fault"),
    [
        ("1.28.15", "v1beta3", ""),
        ("1.28.15", "v1beta4", 'is registered for version "kubeadm.k8s.io/v1beta4"'),
        ("1.30.9", "v1beta3", ""),
        ("1.30.9", "v1beta4", 'is registered for version "kubeadm.k8s.io/v1beta4"'),
        ("1.31.14", "v1beta3", ""),
        ("1.31.14", "v1beta4", ""),
        ("1.36.2", "v1beta3", ""),
        ("1.36.2", "v1beta4", ""),
        ("1.31.14", "v1beta2", "old API spec"),
        ("1.36.2", "v1beta2", "old API spec"),
    ],
)
def test_which_api_it_reads(cluster: Cluster, version: str, api: str, fault: str) -> None:
    host = machine(cluster, version)
    wanted = config(cluster)
    wanted["apiVersion"] = f"kubeadm.k8s.io/{api}"
    del wanted["timeouts"]
    said = join(host, change=wanted)
    assert (said.rc == 0) is (not fault)
    assert fault in said.err
    deprecated = api == "v1beta3" and version in NEW
    assert ("uses a deprecated API spec" in said.err) is deprecated


@pytest.mark.parametrize(
    ("api", "arguments", "words"),
    [
        (
            "v1beta3",
            [{"name": "node-labels", "value": "a=b"}],
            "unmarshal array|kubeletExtraArgs of type map[string]string",
        ),
        ("v1beta4", {"node-labels": "a=b"}, "unmarshal object|of type []v1beta4.Arg"),
        ("v1beta3", {"node-labels": 1}, "unmarshal number|of type string"),
    ],
)
def test_a_wrong_shape(cluster: Cluster, api: str, arguments: Any, words: str) -> None:
    host = machine(cluster)
    wanted = register(host, kubeletExtraArgs=arguments)
    wanted["apiVersion"] = f"kubeadm.k8s.io/{api}"
    del wanted["timeouts"]
    said = join(host, change=wanted)
    assert (said.rc, left(host)) == (1, [])
    for word in words.split("|"):
        assert word in said.err


def test_an_unknown_field_is_only_a_warning_of_join_and_an_error_of_validate(cluster: Cluster) -> None:
    host = machine(cluster)
    host.put(CONFIG, json.dumps(register(host, taint=[{"key": "a", "effect": "NoSchedule"}])))
    judged = kubeadm(host.worker, ("kubeadm", "config", "validate", "--config", CONFIG))
    assert (judged.rc, 'unknown field "nodeRegistration.taint"' in judged.err) == (1, True)
    said = join(host)
    assert (said.rc, 'unknown field "nodeRegistration.taint"' in said.err, cluster.taints("gpu-01")) == (0, True, [])


def test_validate(cluster: Cluster) -> None:
    host = machine(cluster)
    assert kubeadm(host.worker, ("kubeadm", "config", "validate", "--config", CONFIG)).out == "ok\n"
    old = machine(cluster, "1.25.16")
    assert kubeadm(old.worker, ("kubeadm", "config", "validate", "--config", CONFIG)).rc == 1
    host.put(CONFIG, json.dumps(register(host, taints=[{"key": "a", "effect": "Bogus"}])))
    assert kubeadm(host.worker, ("kubeadm", "config", "validate", "--config", CONFIG)).out == "ok\n"  # not its to judge


@pytest.mark.parametrize(
    ("bootstrap", "words"),
    [
        ({"apiServerEndpoint": "https://k8s.example.com:6443"}, "too many colons in address"),
        ({"apiServerEndpoint": "k8s.example.com"}, "missing port in address"),
        ({"caCertHashes": []}, "using token-based discovery without caCertHashes can be unsafe"),
    ],
)
def test_values_that_are_wrong(cluster: Cluster, bootstrap: dict[str, Any], words: str) -> None:
    host = machine(cluster)
    said = join(host, change=config(cluster, **bootstrap))
    assert (said.rc, left(host), cluster.requests) == (3, [], [])
    assert words in said.err


@pytest.mark.parametrize(("version", "rc"), [("1.31.14", 3), ("1.36.2", 1)])
def test_it_echoes_a_token_of_another_form(cluster: Cluster, version: str, rc: int) -> None:
    host = machine(cluster, version)
    said = join(host, change=config(cluster, version, token="ABCDEF.0123456789abcdef"))
    assert said.rc == rc
    assert 'discovery.bootstrapToken.token: Invalid value: "ABCDEF.0123456789abcdef"' in said.err


def test_a_name_has_to_be_a_subdomain(cluster: Cluster) -> None:
    host = machine(cluster)
    said = join(host, change=register(host, name="GPU_01"))
    assert (said.rc, "a lowercase RFC 1123 subdomain must consist of" in said.err) == (3, True)


# -- preflight


def refused(host: KubeHost) -> set[str]:
    """The names of the checks that failed, in a join that asked nobody and wrote nothing."""
    before, asked = dict(host.files), len(host.cluster.requests)
    said = join(host)
    assert (said.rc, host.files, len(host.cluster.requests)) == (1, before, asked)
    return {line.partition("[ERROR ")[2].partition("]")[0] for line in said.err.splitlines() if "[ERROR " in line}


@pytest.mark.parametrize("version", NEW)
def test_files_of_an_earlier_join_are_in_its_way(cluster: Cluster, version: str) -> None:
    host = machine(cluster, version)
    for path in (at.KUBELET_CONF, at.BOOTSTRAP_CONF, at.CA):
        host.put(path, "x")
    host.put(f"{at.MANIFESTS}/etcd.yaml", "x")
    assert refused(host) == {
        "DirAvailable--etc-kubernetes-manifests",
        "FileAvailable--etc-kubernetes-kubelet.conf",
        "FileAvailable--etc-kubernetes-bootstrap-kubelet.conf",
        "FileAvailable--etc-kubernetes-pki-ca.crt",
    }


def test_forwarding_has_to_be_on(cluster: Cluster) -> None:
    host = machine(cluster)
    host.put("/proc/sys/net/ipv4/ip_forward", "0\n")
    assert refused(host) == {"FileContent--proc-sys-net-ipv4-ip_forward"}


def test_the_runtime_has_to_serve(cluster: Cluster) -> None:
    host = machine(cluster)
    host.put("/etc/containerd/config.toml", 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    assert refused(host) == {"CRI"}
    assert "unknown service runtime.v1.RuntimeService" in join(host).err
    host.put("/etc/containerd/config.toml", "version = 2\n")
    host.running.discard("containerd")
    assert refused(host) == {"CRI"}
    host.running.add("containerd")
    assert join(host).rc == 0


def test_a_kubelet_that_runs_has_the_port(cluster: Cluster) -> None:
    host = machine(cluster)
    host.kubelet = "active"
    assert refused(host) == {"Port-10250"}


@pytest.mark.parametrize(("kubelet", "found"), [("1.27.9", {"KubeletVersion"}), ("1.28.0", set()), ("1.32.1", set())])
def test_a_kubelet_is_held_to_kubeadm_s_oldest_alone(cluster: Cluster, kubelet: str, found: set[str]) -> None:
    host = machine(cluster)
    host.kubelet_version = kubelet
    if found:
        assert refused(host) == found
    else:
        assert join(host).rc == 0


@pytest.mark.parametrize(("version", "needs"), [("1.31.14", {"FileExisting-conntrack"}), ("1.36.2", set())])
def test_conntrack_was_needed_before_1_32(cluster: Cluster, version: str, needs: set[str]) -> None:
    host = machine(cluster, version)
    host.missing.add("conntrack")
    if needs:
        assert refused(host) == needs
    else:
        assert join(host).rc == 0


@pytest.mark.parametrize(("version", "needs"), [("1.31.14", set()), ("1.36.2", {"SystemVerification"})])
def test_the_first_cgroups_are_an_error_since_1_35(cluster: Cluster, version: str, needs: set[str]) -> None:
    host = machine(cluster, version)
    host.cgroups = 1
    if needs:
        assert refused(host) == needs
    else:
        assert join(host).rc == 0


def test_swap_is_an_error_of_old_kubeadm_and_later_of_the_kubelet(cluster: Cluster) -> None:
    old = machine(cluster, "1.22.17")
    old.swap_on()
    assert "Swap" in refused(old)
    host = machine(cluster)
    host.swap_on()
    said = join(host)
    assert (said.rc, "[WARNING Swap]" in said.err) == (1, True)
    assert "running with swap on is not supported" in host.journal[-1]
    cluster.kubelet_config["failSwapOn"] = False
    lenient = machine(cluster)
    lenient.swap_on()
    assert join(lenient).rc == 0
    assert "failSwapOn: false\n" in (lenient.text(at.CONFIG) or "")


@pytest.mark.parametrize(("version", "containerd", "warns"), [("1.36.2", "1.7.24", True), ("1.36.2", "2.1.9", False)])
def test_an_old_containerd_is_a_warning_of_the_newest(
    cluster: Cluster, version: str, containerd: str, warns: bool
) -> None:
    said = join(machine(cluster, version, containerd=containerd))
    assert (said.rc, "[WARNING ContainerRuntimeVersion]" in said.err) == (0, warns)


# -- discovery


def took(host: KubeHost, change: dict[str, Any] | None = None) -> tuple[Answer, float]:
    start = host.clock()
    said = join(host, change=change)
    return said, host.clock() - start


@pytest.mark.parametrize("version", ALL)
def test_an_expired_token_costs_the_whole_time_for_discovery(cluster: Cluster, version: str) -> None:
    cluster.expire()
    host = machine(cluster, version)
    said, seconds = took(host)
    assert (said.rc, seconds, left(host)) == (1, 30.0, [])
    assert 'could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"' in said.err
    cluster.token()
    assert join(host).rc == 0


def test_the_time_for_discovery_is_five_minutes_by_itself(cluster: Cluster) -> None:
    host = machine(cluster)
    cluster.stop()
    wanted = config(cluster)
    del wanted["timeouts"]
    assert took(host, wanted)[1] == 300.0


def test_a_wrong_secret_is_told_at_once(cluster: Cluster) -> None:
    host = machine(cluster)
    said, seconds = took(host, config(cluster, token="abcdef.ffffffffffffffff"))
    assert (said.rc, seconds, left(host)) == (1, 0.0, [])
    assert "failed to verify JWS signature" in said.err


def test_a_wrong_pin_is_told_at_once_with_the_right_one(cluster: Cluster) -> None:
    host = machine(cluster)
    said, seconds = took(host, config(cluster, caCertHashes=["sha256:" + "0" * 64]))
    assert (said.rc, seconds, left(host)) == (1, 0.0, [])
    assert (
        f'cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "sha256:{cluster.pin}" are '
        "pinned" in said.err
    )


def test_nobody_at_the_endpoint(cluster: Cluster) -> None:
    host = machine(cluster)
    cluster.stop()
    said, seconds = took(host)
    assert (said.rc, seconds, left(host)) == (1, 30.0, [])
    assert "failed to request the cluster-info ConfigMap: Get" in said.err
    assert "connect: connection refused" in said.err
    cluster.start()
    assert join(host).rc == 0


def test_a_server_that_takes_the_call_and_never_answers(cluster: Cluster) -> None:
    host = machine(cluster)
    cluster.faults.hang = True
    wanted = config(cluster)
    wanted["timeouts"]["discovery"] = "8s"
    said, seconds = took(host, wanted)
    cluster.faults.hang = False
    assert (said.rc, seconds, left(host)) == (1, 8.0, [])
    assert "context deadline exceeded" in said.err


def test_a_token_that_ends_between_discovery_and_the_rest(cluster: Cluster) -> None:
    """Its signature may stand a little longer than it is good for."""
    host = machine(cluster)
    info = cluster.cluster_info()
    cluster.expire()
    cluster.cluster_info = lambda: info  # type: ignore[method-assign]
    said = join(host)
    assert (said.rc, left(host), "Unauthorized" in said.err) == (1, [], True)


@pytest.mark.parametrize(("version", "of_cluster", "good"), [("1.31.14", "1.30.9", True), ("1.31.14", "1.29.9", False)])
def test_kubeadm_is_at_most_one_minor_newer_than_the_cluster(
    cluster: Cluster, version: str, of_cluster: str, good: bool
) -> None:
    host = machine(cluster, version)
    cluster.version = of_cluster
    said = join(host)
    assert (said.rc == 0) is good
    if not good:
        assert left(host) == []
        assert (
            "this version of kubeadm only supports deploying clusters with the control plane version >= 1.30.0"
            in said.err
        )


# -- behind the start of the kubelet


@pytest.mark.parametrize(("version", "bootstrap"), [("1.28.15", []), ("1.31.14", []), ("1.36.2", [at.BOOTSTRAP_CONF])])
def test_a_ready_node_of_that_name(cluster: Cluster, version: str, bootstrap: list[str]) -> None:
    """kubeadm looks for it after it has written two files, the token in one of them, which later versions leave."""
    cluster.node("gpu-01")
    host = machine(cluster, version)
    said = join(host)
    assert (said.rc, left(host)) == (1, [*bootstrap, at.CA])
    assert 'a Node with name "gpu-01" and status "Ready" already exists' in said.err
    assert host.kubelet == "inactive"


def test_a_node_that_is_not_ready_keeps_its_labels_and_taints(cluster: Cluster) -> None:
    cluster.node("gpu-01", {"old": "label"}, ready=False)
    host = machine(cluster)
    wanted = register(
        host,
        taints=[{"key": "a", "effect": "NoSchedule"}],
        kubeletExtraArgs=[{"name": "node-labels", "value": "team=ml"}],
    )
    said = join(host, change=wanted)
    assert (said.rc, cluster.labels("gpu-01"), cluster.taints("gpu-01")) == (0, {"old": "label"}, [])


FORBIDDEN: dict[str, Any] = {"kubeletExtraArgs": [{"name": "node-labels", "value": "node-role.kubernetes.io/gpu="}]}
BAD_TAINT: dict[str, Any] = {"taints": [{"key": "a", "effect": "Bogus"}]}


@pytest.mark.parametrize(
    ("more", "last"),
    [
        (FORBIDDEN, "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels"),
        (BAD_TAINT, "invalid taint effect: Bogus"),
    ],
)
@pytest.mark.parametrize("version", NEW)
def test_a_kubelet_that_dies_of_its_arguments(cluster: Cluster, version: str, more: dict[str, Any], last: str) -> None:
    host = machine(cluster, version)
    start = host.clock()
    said = join(host, change=register(host, version, **more))
    assert (said.rc, host.clock() - start) == (1, 60.0)
    assert "The kubelet is not healthy after 1m0" in said.out
    assert "The HTTP call equal to 'curl -sSL http://127.0.0.1:10248/healthz' returned error" in said.err
    assert last in host.journal[-1]
    instance = [at.INSTANCE_CONFIG] if version == "1.36.2" else []
    assert left(host) == [at.CONFIG, at.FLAGS, *instance, at.CA]
    assert host.kubelet == "activating"
    again = join(host)
    assert "[ERROR FileAvailable--etc-kubernetes-pki-ca.crt]" in again.err


def test_four_minutes_for_the_kubelet_by_itself(cluster: Cluster) -> None:
    host = machine(cluster)
    wanted = register(host, **FORBIDDEN)
    del wanted["timeouts"]
    start = host.clock()
    assert join(host, change=wanted).rc == 1
    assert host.clock() - start == 240.0


def test_a_certificate_that_nobody_approves(cluster: Cluster) -> None:
    """The kubelet has written kubelet.conf by then, which names a certificate that is not there."""
    cluster.faults.no_approval = True
    host = machine(cluster)
    said = join(host)
    assert (said.rc, host.kubelet) == (1, "active")
    assert left(host) == [at.KUBELET_CONF, at.CONFIG, at.FLAGS, at.CA]
    assert at.CERTIFICATE not in host.links
    assert {"[ERROR Port-10250]", "[ERROR FileAvailable--etc-kubernetes-kubelet.conf]"} <= {
        line.strip().partition(":")[0] for line in join(host).err.splitlines()
    }


def test_joined_is_not_registered(cluster: Cluster) -> None:
    host = machine(cluster)
    name = "a" * 64
    said = join(host, change=register(host, name=name))
    assert (said.rc, cluster.nodes) == (0, {})
    assert "Unable to register node with API server" in host.journal[-1]
    assert "must be no more than 63 characters" in host.journal[-1]


def test_a_registration_that_comes_late(cluster: Cluster) -> None:
    cluster.faults.no_registration = True
    host = machine(cluster)
    assert (join(host).rc, cluster.nodes) == (0, {})
    cluster.faults.no_registration = False
    host.sleep(5)
    assert {*cluster.nodes} == {"gpu-01"}


@pytest.mark.parametrize(
    ("stage", "stays"),
    [
        ("discovery", []),
        ("kubelet-start", []),
        ("kubelet-wait-bootstrap", [at.KUBELET_CONF, at.BOOTSTRAP_CONF, *LEFT]),
    ],
)
def test_power_is_lost_half_way(cluster: Cluster, stage: str, stays: list[str]) -> None:
    host = machine(cluster)
    host.dies_at = stage
    with pytest.raises(Killed):
        join(host)
    assert left(host) == stays
