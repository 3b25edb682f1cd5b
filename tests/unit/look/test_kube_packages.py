# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shows of a worker's packages: versions, runtimes, tools, and when the key is fetched."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import is_known
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_packages import software
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_packages import LANE, UNFINISHED
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Settings
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_served import Elsewhere
from tests.unit.fake_host import FakeHost, Program
from tests.unit.package_machine import PackageHost, Shelf, apt_host, dnf_host
from tests.unit.package_sources import KEY

WANT = Settings("https://c:6443", "c:6443", "0" * 64, minor="1.31")
URL = "https://pkgs.k8s.io/core:/stable:/v1.31/deb/Release.key"
KUBE = ("kubeadm", "kubectl", "kubelet")


def says(text: str, rc: int = 0) -> Program:
    return lambda _host, _argv: Answer(rc, text)


def debian(*names: str, version: str = "1.31.14-1.1") -> PackageHost:
    host = apt_host(Shelf({}), "debian")
    for name in names:
        host.come(name, version)
    host.sites[URL] = Answer(200, KEY, "OK")
    return host


def asked(host: FakeHost) -> list[str]:
    return [argv[0] for argv in host.asked]


def test_versions_are_the_makers_of_packages_and_of_programs() -> None:
    host = debian("kubelet", "containerd")
    host.programs["kubeadm"] = says("v1.31.13\n")
    host.programs["kubectl"] = says("Unable to connect", 1)
    now = software(host, WANT, Past())
    assert now.versions == {"kubelet": "1.31.14", "kubeadm": "1.31.13", "kubectl": ""}
    assert (now.kubeadm, now.missing, now.has_containerd) == ("1.31.13", (), True)


def test_an_epoch_and_a_build_are_no_part_of_the_makers_version() -> None:
    host = dnf_host(Shelf({}), "rocky9")
    host.come("kubeadm", "0:1.31.14-150500.1.1")
    assert software(host, WANT, Past()).kubeadm == "1.31.14"


def test_nothing_is_asked_of_programs_whose_packages_are_there() -> None:
    host = debian(*KUBE, "containerd")
    now = software(host, WANT, Past())
    assert (now.missing, now.tools, now.fetched) == ((), (), "")
    assert asked(host) == ["dpkg-query"]


@pytest.mark.parametrize(("size", "follows"), [(60_000_000, [("kubeadm", "version", "-o", "short")]), (300, [])])
def test_a_version_follows_from_a_program_and_not_from_a_script_that_starts_one(
    size: int, follows: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = debian("kubelet", "kubectl", "containerd")
    host.programs["kubeadm"] = says("v1.31.13\n")
    told: list[tuple[str, ...]] = []

    def followed(argv: tuple[str, ...], paths: tuple[str, ...]) -> Answer:
        if argv[0] in KUBE:
            assert paths == (host.which(argv[0]),)
            told.append(argv)
        return host.ask(argv)

    monkeypatch.setattr(host, "follows", followed)
    monkeypatch.setattr(host, "stamp", lambda path: (0, 1, size, 2, 3))
    assert software(host, WANT, Past()).kubeadm == "1.31.13"
    assert told == follows


def test_the_key_is_fetched_only_where_it_is_needed() -> None:
    assert software(debian(), WANT, Past()).fetched == KEY
    assert "GET" not in asked(_looked(debian(*KUBE)))
    assert "GET" not in asked(_looked(debian(), WANT._replace(minor="")))
    assert "GET" not in asked(_looked(debian(), WANT._replace(minor="1.23")))
    host = dnf_host(Shelf({}), "rocky9")
    assert "GET" not in asked(_looked(host)), "dnf fetches it by itself"
    assert "GET" not in asked(_looked(debian(), None))


def _looked(host: PackageHost, want: Settings | None = WANT) -> PackageHost:
    software(host, want, Past())
    return host


def test_a_key_that_cannot_be_fetched_fails_only_what_uses_it() -> None:
    host = debian()
    host.sites.clear()
    now = software(host, WANT, Past())
    assert now.missing == KUBE
    assert not is_known(now.fetched)
    with pytest.raises(StepFailed, match=r"Release\.key gives no answer: Connection refused"):
        str(now.fetched)


def test_the_net_is_not_waited_for_twice_in_a_pass() -> None:
    host = debian()
    now = software(host, WANT, Past(failed=frozenset((LANE,))))
    assert "GET" not in asked(host)
    assert not is_known(now.fetched)


def test_a_mirror_is_asked_for_only_while_our_file_is_not_there() -> None:
    host = debian()
    host.shelf.index = {name: ["1.31.14-1.1"] for name in KUBE}
    assert software(host, WANT, Past()).mirrored
    host.put("/etc/apt/sources.list.d/bcd-kubernetes.list", "")
    assert not software(host, WANT, Past()).mirrored
    host = debian()
    host.shelf.index = {name: ["1.30.1-1.1"] for name in KUBE}
    assert not software(host, WANT, Past()).mirrored


def test_only_files_of_sources_are_read_and_ours_is_not_another() -> None:
    host = debian()
    line = "deb https://pkgs.k8s.io/core:/stable:/v1.31/deb/ /\n"
    for name in ("bcd-kubernetes.list", "k.list.save", "README"):
        host.put(f"/etc/apt/sources.list.d/{name}", line)
    assert software(host, WANT, Past()).elsewhere is None
    host.put("/etc/apt/sources.list.d/k.list", line)
    assert software(host, WANT, Past()).elsewhere == Elsewhere("/etc/apt/sources.list.d/k.list")


@pytest.mark.parametrize(
    ("program", "there"), [("containerd", ("containerd",)), ("crio", ("crio",)), ("dockerd", ("dockerd",))]
)
def test_runtimes_are_known_by_their_programs_too(program: str, there: tuple[str, ...]) -> None:
    host = debian(*KUBE)
    host.programs[program] = says("")
    now = software(host, WANT, Past())
    assert (now.runtimes, now.has_containerd) == (there, program == "containerd")


@pytest.mark.parametrize(("minor", "tools"), [("1.31", ("conntrack", "iptables")), ("1.32", ("iptables",))])
def test_tools_are_looked_for_with_what_is_missing_or_was_left_unfinished(minor: str, tools: tuple[str, ...]) -> None:
    want = WANT._replace(minor=minor)
    assert software(debian("containerd"), want, Past()).tools == tools
    whole = debian(*KUBE, "containerd", version=f"{minor}.1-1.1")
    assert software(whole, want, Past()).tools == ()
    assert software(whole, want, Past(owed=frozenset((UNFINISHED,)))).tools == tools
    whole.programs["iptables"] = says("")
    assert "iptables" not in software(whole, want, Past(owed=frozenset((UNFINISHED,)))).tools


def test_a_damaged_record_of_holds_is_said() -> None:
    host = debian()
    host.put("/var/lib/bcd-hostconfig/k8s-packages.json", '{"version": 1, "held": "kubelet"}')
    with pytest.raises(StepFailed, match=r"the holds of kubeadm, kubectl and kubelet then stay"):
        software(host, None, Past())
