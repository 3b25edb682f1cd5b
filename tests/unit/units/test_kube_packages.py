# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of a worker over hosts in memory: its repository and key, one version of all, holds, runtimes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.kube_packages import software
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import kube_packages, kube_packages_back
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Settings
from tests.unit import package_sources, promises
from tests.unit.fake_host import FakeHost
from tests.unit.package_machine import STAMP, PackageHost, Shelf, age, apt_host, dnf_host, zypper_host
from tests.unit.package_sources import KEY, OTHER_KEY, Repository

DEB, RPM = "https://pkgs.k8s.io/core:/stable:/v1.31/deb", "https://pkgs.k8s.io/core:/stable:/v1.31/rpm"
KEY_URL = f"{DEB}/Release.key"
SOURCE, KEY_FILE = "/etc/apt/sources.list.d/bcd-kubernetes.list", "/etc/apt/keyrings/bcd-kubernetes.asc"
REPO = "/etc/yum.repos.d/bcd-kubernetes.repo"
KUBE = ("kubeadm", "kubectl", "kubelet")
DEB_VERSIONS = ["1.31.0-1.1", "1.31.13-1.1", "1.31.14-1.1", "1.31.14-1.2"]  # of the last, two builds
RPM_VERSIONS = ["1.31.0-150500.1.1", "1.31.13-150500.1.1", "1.31.14-150500.1.1", "1.31.14-150500.2.1"]
FIXED = {  # what the distributions themselves carry
    "ubuntu": {"containerd": ["1.7.12-0ubuntu4"], "conntrack": ["1:1.4.8-1ubuntu1"], "iptables": ["1.8.10-3ubuntu2"]},
    "debian": {"containerd": ["1.6.20~ds1-1+b1"], "conntrack": ["1:1.4.7-1+b2"], "iptables": ["1.8.9-2"]},
    "rocky9": {
        "containerd.io": ["1.7.27-3.1.el9"],
        "conntrack-tools": ["1.4.7-2.el9"],
        "iptables-nft": ["1.8.10-11.el9"],
    },
    "fedora": {"containerd": ["2.0.5-1.fc44"], "conntrack-tools": ["1.4.8-1.fc44"], "iptables-nft": ["1.8.11-9.fc44"]},
}
PROGRAMS = {"containerd.io": "containerd", "conntrack-tools": "conntrack", "iptables-nft": "iptables"}
ASKED = {"minor": "1.31"}


def silent(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    return Answer(0, "")


def brings(host: PackageHost, name: str) -> None:
    """Every package brings a program, mostly of its name."""
    host.programs[PROGRAMS.get(name, name)] = silent


def of_kube(versions: list[str]) -> dict[str, list[str]]:
    return {name: list(versions) for name in KUBE}


def machine(distribution: str, *, iptables: bool = True, net: bool = True, **given: Any) -> PackageHost:
    """A bare host, its index fresh; the world has the repositories of 1.31."""
    shelf = Shelf(dict(FIXED[distribution]), **given)
    make = apt_host if distribution in ("ubuntu", "debian") else dnf_host
    host = make(shelf, distribution, brings)
    if iptables:
        host.programs["iptables"] = silent
    if net:
        shelf.net = {DEB: Repository(of_kube(DEB_VERSIONS)), RPM: Repository(of_kube(RPM_VERSIONS))}
        host.sites[KEY_URL] = Answer(200, KEY, "OK")
    return host


def unit(trunk: bool = False) -> Unit:
    """`trunk`: what has a lane of its own in a member stands on none, as where a join is to follow."""

    def check(given: dict[str, Any]) -> Settings:
        return Settings("https://k8s.example:6443", "k8s.example:6443", "0" * 64, **given)

    def plan(want: Settings, now: kube_packages.Software, past: Past) -> Plan:
        todo = Todo()
        work = kube_packages.plan(todo, want, now, past)
        todo.found("work", tuple(work))
        plan = todo.plan()
        steps = (step if step.kind == "later" or not trunk else step._replace(lane="") for step in plan.steps)
        return plan._replace(steps=tuple(steps))

    def absent(now: kube_packages.Software, past: Past) -> Plan:
        todo = Todo()
        kube_packages_back.absent(todo, now, past)
        return todo.plan()

    return Unit("t", (), check, software, plan, absent)


def go(host: PackageHost, asked: dict[str, Any] | None = None, **given: Any) -> Outcome:
    return promises.go(unit(), host, ASKED if asked is None else asked, **given)


def leave(host: PackageHost) -> Outcome:
    return promises.go(unit(), host, None)


def message(outcome: Outcome) -> str:
    assert outcome.failure is not None, outcome.steps
    return outcome.failure.message


def refused(host: PackageHost, asked: dict[str, Any] | None = None) -> str:
    """What is said of a host that is refused: terminal, and nothing is written."""
    host.calls.clear()
    outcome = go(host, asked)
    assert outcome.failure is not None, outcome.steps
    assert (outcome.failure.reason, outcome.failure.retryable, host.calls) == ("Refused", False, [])
    return outcome.failure.message


def touched(host: PackageHost) -> list[str]:
    """The changes but for our own record of what was applied."""
    return [call for call in host.calls if not call.endswith("/applied.json")]


def without(host: PackageHost, *names: str) -> PackageHost:
    """The host after somebody took these packages away, and with them their holds."""
    for name in names:
        del host.shelf.installed[name], host.programs[name]
        host.shelf.held.discard(name)
    return host


def versions(host: PackageHost) -> dict[str, str]:
    return {name: version for name, version in host.shelf.installed.items() if name in KUBE}


def ran(host: PackageHost, *words: str) -> list[str]:
    """The changes that have all these words."""
    return [call for call in host.calls if set(words) <= set(call.split())]


HOSTS = {"ubuntu": DEB_VERSIONS, "debian": DEB_VERSIONS, "rocky9": RPM_VERSIONS, "fedora": RPM_VERSIONS}


# -- installing


@pytest.mark.parametrize("distribution", HOSTS)
def test_a_bare_host_gets_the_newest_of_the_minor_and_the_second_pass_is_quiet(distribution: str) -> None:
    host = machine(distribution)
    outcome = go(host)
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert versions(host) == dict.fromkeys(KUBE, HOSTS[distribution][-1])
    assert {"containerd", "containerd.io"} & host.shelf.installed.keys()
    promises.second_pass_is_quiet(unit(), host, ASKED)


def test_apt_reads_the_repository_under_its_own_key() -> None:
    host = machine("debian")
    go(host)
    text = host.text(SOURCE) or ""
    assert text.splitlines()[-1] == f"deb [signed-by={KEY_FILE}] {DEB}/ /"
    assert host.files[KEY_FILE] == File(KEY, 0o644)
    assert "trusted" not in text


def test_dnf_gets_the_makers_own_repository_file() -> None:
    host = machine("rocky9")
    go(host)
    fields = dict(line.split("=", 1) for line in (host.text(REPO) or "").splitlines() if "=" in line)
    assert "[bcd-kubernetes]" in (host.text(REPO) or "")
    assert fields == {
        "name": "Kubernetes 1.31",
        "baseurl": f"{RPM}/",
        "enabled": "1",
        "gpgcheck": "1",
        "gpgkey": f"{RPM}/repodata/repomd.xml.key",
        "exclude": "kubelet kubeadm kubectl cri-tools kubernetes-cni",
    }


@pytest.mark.parametrize(
    ("distribution", "option", "other"),
    [
        ("rocky9", "--disableexcludes=bcd-kubernetes", "--setopt=disable_excludes=bcd-kubernetes"),
        ("fedora", "--setopt=disable_excludes=bcd-kubernetes", "--disableexcludes=bcd-kubernetes"),
    ],
)
def test_each_generation_of_dnf_is_told_in_its_own_words_what_to_let_in(
    distribution: str, option: str, other: str
) -> None:
    host = machine(distribution)
    assert go(host).state == "converged"
    assert ran(host, "install", option)
    asked = [" ".join(argv) for argv in host.asked]
    assert not [call for call in (*host.calls, *asked) if other in call]


@pytest.mark.parametrize("distribution", HOSTS)
def test_an_exact_version_is_taken_in_its_newest_build(distribution: str) -> None:
    host = machine(distribution)
    assert go(host, {"minor": "1.31", "version": "1.31.13"}).state == "converged"
    assert versions(host) == dict.fromkeys(KUBE, HOSTS[distribution][1])


@pytest.mark.parametrize("distribution", HOSTS)
def test_a_version_that_nobody_offers_is_said_with_those_that_are(distribution: str) -> None:
    host = machine(distribution)
    outcome = go(host, {"minor": "1.31", "version": "1.31.99"})
    assert "1.31.99" in message(outcome)
    assert "1.31.0, 1.31.13, 1.31.14" in message(outcome)
    assert not versions(host)


@pytest.mark.parametrize("distribution", HOSTS)
@pytest.mark.parametrize("fresh", [True, False])
def test_check_mode_says_the_steps_that_are_then_taken(distribution: str, fresh: bool) -> None:
    real = promises.check_is_truthful(unit(trunk=fresh), lambda: machine(distribution, fresh=fresh), ASKED)
    assert real.state == "converged"


@pytest.mark.parametrize("distribution", HOSTS)
def test_check_mode_on_a_bare_host_says_the_repository_and_what_is_known_after_it(distribution: str) -> None:
    planned = go(machine(distribution), check=True)
    assert planned.failure is None
    said = [line.action for line in planned.steps]
    assert [line for line in said if "known after" in line] == [
        "install kubeadm, kubectl, kubelet, containerd, "
        + CONNTRACK[distribution]
        + ": known after the package index is "
        "refreshed"
    ]
    assert planned.found["work"] == (True, False)  # planned, and not stuck


CONNTRACK = {
    "ubuntu": "conntrack",
    "debian": "conntrack",
    "rocky9": "conntrack-tools",
    "fedora": "conntrack-tools",
}


@pytest.mark.parametrize("distribution", HOSTS)
@pytest.mark.parametrize("fresh", [True, False])
def test_a_kill_loses_nothing(distribution: str, fresh: bool) -> None:
    def shown(host: PackageHost) -> object:
        files = {path: host.text(path) for path in (SOURCE, KEY_FILE, REPO)}
        return host.shelf.installed, sorted(host.shelf.held), files

    changes = promises.a_kill_loses_nothing(
        unit(trunk=fresh),
        lambda: machine(distribution, fresh=fresh),
        ASKED,
        shown,  # type: ignore[arg-type]
    )
    assert changes > 5


def test_a_host_with_everything_is_asked_one_question() -> None:
    host = machine("debian")
    go(host)
    age(host)
    host.asked.clear()
    promises.second_pass_is_quiet(unit(), host, ASKED)
    assert [argv[0] for argv in host.asked] == ["dpkg-query"]


# -- the index


@pytest.mark.parametrize("distribution", HOSTS)
def test_a_new_repository_is_read_although_the_index_is_fresh_and_the_others_are_left(distribution: str) -> None:
    host = machine(distribution)
    go(host)
    whole = [call for call in host.calls if call == "dnf -y makecache --refresh" or call.endswith("=120 update")]
    assert whole == []
    assert len([call for call in host.calls if {"update", "makecache"} & {*call.split()}]) == 1


@pytest.mark.parametrize("distribution", HOSTS)
def test_an_old_index_is_refreshed_too_for_what_the_distribution_carries(distribution: str) -> None:
    host = machine(distribution, fresh=False)
    assert go(host).state == "converged"
    assert len([call for call in host.calls if {"update", "makecache"} & {*call.split()}]) == 2
    assert host.text(STAMP)


@pytest.mark.parametrize("trunk", [True, False])
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (package_sources.EXPIRED, "its key has expired"),
        (package_sources.UNKNOWN, "its signature is not good"),
        (package_sources.SQV, "its signature is not good"),
    ],
)
def test_a_signature_that_apt_does_not_take_is_terminal_and_the_next_move_said(
    wrong: str, why: str, fresh: bool, trunk: bool
) -> None:
    host = machine("debian", fresh=fresh)
    good = host.shelf.net[DEB]
    host.shelf.net[DEB] = good._replace(wrong=wrong)
    outcome = promises.go(unit(trunk), host, ASKED)
    assert outcome.failure is not None
    assert (outcome.state, outcome.failure.retryable) == ("failed", False)
    assert f"does not trust {DEB}/, {why}" in message(outcome)
    assert "set kubernetesVersion to a newer minor" in message(outcome)
    assert not versions(host)
    assert "trusted" not in (host.text(SOURCE) or "")
    host.shelf.net[DEB] = good
    assert promises.go(unit(trunk), host, ASKED).state == "converged", "the next pass after the cause is gone"
    promises.second_pass_is_quiet(unit(trunk), host, ASKED)


@pytest.mark.parametrize("trunk", [True, False])
@pytest.mark.parametrize("distribution", HOSTS)
def test_a_repository_that_is_not_reached_is_waited_for(distribution: str, trunk: bool) -> None:
    host = machine(distribution)
    for address, there in host.shelf.net.items():
        host.shelf.net[address] = there._replace(wrong=package_sources.UNREACHABLE)
    outcome = promises.go(unit(trunk), host, ASKED)
    assert (outcome.state, outcome.failure, outcome.found["work"]) == ("progressing", None, (False, True))
    assert [wait.reason for wait in outcome.pending] == ["NotReady"]
    assert "/v1.31/" in outcome.pending[0].message
    assert "connect (111: Connection refused)" in outcome.pending[0].message
    assert not versions(host)
    for address, there in host.shelf.net.items():
        host.shelf.net[address] = there._replace(wrong="")
    assert promises.go(unit(trunk), host, ASKED).state == "converged"


def test_a_repository_that_is_lost_again_is_found_although_apt_has_its_old_index() -> None:
    """apt itself exits with 0 then, and would install from the old one what is not there any more."""
    host = machine("debian")
    go(host)
    without(host, *KUBE)
    age(host)
    host.shelf.net[DEB] = host.shelf.net[DEB]._replace(wrong=package_sources.EXPIRED)
    assert "its key has expired" in message(go(host))


# -- the key


def test_the_key_is_fetched_again_for_each_installation_and_replaced_when_it_changed() -> None:
    host = machine("debian")
    go(host)
    host.sites[KEY_URL] = Answer(200, OTHER_KEY, "OK")
    host.shelf.net[DEB] = host.shelf.net[DEB]._replace(key=OTHER_KEY)
    assert go(host).changed is False, "nothing is missing: nothing is fetched"
    assert go(without(host, "kubectl")).state == "converged"
    assert host.text(KEY_FILE) == OTHER_KEY
    assert versions(host) == dict.fromkeys(KUBE, "1.31.14-1.2")


@pytest.mark.parametrize("check", [True, False])
def test_a_key_that_cannot_be_fetched_is_retryable_and_nothing_is_written(check: bool) -> None:
    host = machine("debian")
    del host.sites[KEY_URL]
    outcome = go(host, check=check)
    assert outcome.failure is not None
    assert outcome.failure.retryable
    assert KEY_URL in message(outcome)
    assert touched(host) == []


OLD_KEY = "gpg-pubkey-9a296436-6307a177"
FAILED = """\
RPM: error: Verifying a signature using certificate DE15B14486CD377B9E876E1A234654DA9A296436:
RPM:   1. Certificate 234654DA9A296436 invalid: certificate is not alive
Error: GPG check FAILED
"""  # dnf 4 on Fedora 40, with a key of before its life was made longer


def with_old_key(distribution: str) -> PackageHost:
    """A host whose rpm has the repository's key as it was once, and another one: dnf takes neither anew."""
    host = machine(distribution)
    host.shelf.installed["gpg-pubkey"] = "9a296436-6307a177"
    dnf, rpm = host.programs["dnf"], host.programs["rpm"]

    def checks(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        assert isinstance(host, PackageHost)
        if "install" in argv and "gpg-pubkey" in host.shelf.installed:
            return Answer(1, "", FAILED)
        return dnf(host, argv)

    def keys(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        assert isinstance(host, PackageHost)
        if argv[1] == "-e":
            assert argv[2:] == (OLD_KEY,), "the key of others goes too"
            del host.shelf.installed["gpg-pubkey"]
            return Answer(0, "")
        answer = rpm(host, argv)
        return answer._replace(out=answer.out + "gpg-pubkey|0:cd00efb8-64e1c4f8\n") if "gpg-pubkey" in argv else answer

    host.programs.update({"dnf": checks, "rpm": keys})
    return host


@pytest.mark.parametrize("distribution", ["rocky9", "fedora"])
def test_rpm_forgets_the_key_so_that_dnf_fetches_it_again(distribution: str) -> None:
    host = with_old_key(distribution)
    outcome = go(host)
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert versions(host) == dict.fromkeys(KUBE, RPM_VERSIONS[-1])
    host.shelf.installed["gpg-pubkey"] = "9a296436-6307a177"  # dnf has imported it
    host.asked.clear()
    promises.second_pass_is_quiet(unit(), host, ASKED)
    assert not [argv for argv in host.asked if "gpg-pubkey" in argv]


@pytest.mark.parametrize("distribution", ["rocky9", "fedora"])
def test_what_rpm_forgets_is_told_in_check_mode_and_survives_a_kill(distribution: str) -> None:
    promises.check_is_truthful(unit(), lambda: with_old_key(distribution), ASKED)
    promises.a_kill_loses_nothing(
        unit(),
        lambda: with_old_key(distribution),
        ASKED,
        lambda host: host.shelf.installed,  # type: ignore[attr-defined]
    )


def test_an_rpm_that_does_not_forget_is_no_hindrance() -> None:
    host = with_old_key("fedora")
    rpm = host.programs["rpm"]

    def keeps(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        if argv[1] == "-e":
            return Answer(1, "", f"error: package {OLD_KEY} is not installed\n")
        return rpm(host, argv)

    host.programs["rpm"] = keeps
    assert "GPG check FAILED" in message(go(host))
    assert go(host).failure is not None
    host.programs["rpm"] = rpm
    assert go(host).state == "converged"


def test_the_key_of_somebody_elses_repository_file_is_theirs() -> None:
    host = machine("rocky9", fresh=False)
    host.put("/etc/yum.repos.d/k.repo", f"[kubernetes]\nname=K\nbaseurl={RPM}/\nenabled=1\n")
    host.shelf.installed["gpg-pubkey"] = "9a296436-6307a177"
    assert go(host).state == "converged"
    assert "gpg-pubkey" in host.shelf.installed


def test_a_minor_without_a_repository_is_said() -> None:
    host = machine("debian")
    host.sites[KEY_URL] = Answer(403, "<Error><Code>AccessDenied</Code></Error>", "Forbidden")
    outcome = go(host)
    assert "403 Forbidden" in message(outcome)
    assert "a minor that was released" in message(outcome)
    assert touched(host) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<!DOCTYPE html>\n<title>Sign in</title>", "begins with '<!DOCTYPE html>'"),
        ("", "is empty"),
        (KEY[:300], "is only a part of one, or damaged"),
        (KEY.replace("mDMEaw", "*DMEaw"), "is only a part of one, or damaged"),
        (package_sources.SIGNATURE, "begins with '-----BEGIN PGP SIGNATURE-----'"),
        (f"{KEY}trailing", "is only a part of one, or damaged"),
    ],
)
def test_what_is_no_key_is_refused_with_what_it_is(text: str, what: str) -> None:
    host = machine("debian")
    host.sites[KEY_URL] = Answer(200, text, "OK")
    assert what in refused(host)


# -- whoever else names the repository

LIST = f"deb [signed-by=/etc/apt/keyrings/kubernetes.gpg] {DEB}/ /\n"
DEB822 = f"Types: deb\nURIs: {DEB}/\nSuites: /\nSigned-By: /etc/apt/keyrings/kubernetes.gpg\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/apt/sources.list.d/kubernetes.list", LIST),
        ("/etc/apt/sources.list.d/kubernetes.list", LIST.replace("/deb/", "/deb")),
        ("/etc/apt/sources.list", LIST),
        ("/etc/apt/sources.list.d/kubernetes.sources", DEB822),
    ],
)
@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_repository_that_another_file_names_is_used_as_it_is(path: str, text: str, read: bool, fresh: bool) -> None:
    """apt would read nothing at all with a second Signed-By."""
    host = machine("debian", fresh=fresh)
    host.put(path, text)
    host.put("/etc/apt/keyrings/kubernetes.gpg", KEY)
    host.put(SOURCE, f"deb [signed-by={KEY_FILE}] https://pkgs.k8s.io/core:/stable:/v1.30/deb/ /\n")
    if read:
        host.shelf.read.add(DEB)
        host.shelf.refresh(whole=False)
    outcome = go(host)
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert (host.text(SOURCE), host.text(KEY_FILE)) == (None, None)
    assert versions(host) == dict.fromkeys(KUBE, "1.31.14-1.2")
    assert ("GET", KEY_URL) not in host.asked


def test_ours_goes_where_another_file_has_come_to_name_the_repository() -> None:
    """With both, apt answers nothing at all."""
    host = machine("debian")
    go(host)
    without(host, "kubectl")
    host.put("/etc/apt/sources.list.d/kubernetes.list", LIST)
    host.put("/etc/apt/keyrings/kubernetes.gpg", KEY)
    assert "Conflicting values" in host.ask(("apt-cache", "madison", "kubectl")).err
    outcome = go(host)
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert host.text(SOURCE) is None
    assert versions(host) == dict.fromkeys(KUBE, "1.31.14-1.2")


def test_the_file_that_is_used_is_named_and_its_broken_key_too() -> None:
    host = machine("debian")
    host.put("/etc/apt/sources.list.d/kubernetes.list", LIST)
    host.shelf.fresh = False
    outcome = go(host)  # there is no key at all
    assert outcome.failure is not None
    assert not outcome.failure.retryable
    assert "/etc/apt/sources.list.d/kubernetes.list" in message(outcome)


@pytest.mark.parametrize("distribution", ["rocky9", "fedora"])
def test_another_repository_file_is_used_and_its_excludes_are_lifted(distribution: str) -> None:
    host = machine(distribution, fresh=False)
    host.put("/etc/yum.repos.d/k.repo", f"[kubernetes]\nname=K\nbaseurl={RPM}/\nenabled=1\nexclude={' '.join(KUBE)}\n")
    outcome = go(host)
    assert (outcome.state, host.text(REPO)) == ("converged", None)
    assert versions(host) == dict.fromkeys(KUBE, RPM_VERSIONS[-1])
    assert any("refresh the index of /etc/yum.repos.d/k.repo" in line.action for line in outcome.steps)
    del host.shelf.net[RPM]
    age(without(host, "kubectl"))
    assert any("/etc/yum.repos.d/k.repo" in note for note in go(host).notes)  # of what is being installed


@pytest.mark.parametrize("distribution", HOSTS)
def test_a_mirror_among_the_hosts_own_sources_is_enough(distribution: str) -> None:
    host = machine(distribution, net=False)
    host.shelf.carried.update(of_kube(HOSTS[distribution]))
    host.shelf.refresh(whole=True)
    outcome = go(host)
    assert (outcome.state, outcome.failure) == ("converged", None)
    assert [path for path in (SOURCE, KEY_FILE, REPO) if host.text(path)] == []
    assert not [argv for argv in host.asked if argv[0] == "GET"]


def test_the_repository_of_another_minor_is_replaced_by_that_of_this_one() -> None:
    host = machine("debian")
    host.put(SOURCE, f"deb [signed-by={KEY_FILE}] https://pkgs.k8s.io/core:/stable:/v1.30/deb/ /\n")
    host.put(KEY_FILE, KEY)
    assert go(host).state == "converged"
    assert f"{DEB}/ /" in (host.text(SOURCE) or "")


# -- what is there already


@pytest.mark.parametrize("distribution", HOSTS)
def test_what_is_missing_comes_at_the_version_of_what_is_there(distribution: str) -> None:
    host = machine(distribution)
    host.come("kubelet", HOSTS[distribution][1])
    assert go(host).state == "converged"
    assert versions(host) == dict.fromkeys(KUBE, HOSTS[distribution][1])


def test_another_patch_than_asked_for_stays_and_is_noted() -> None:
    host = machine("debian")
    for name in KUBE:
        host.come(name, "1.31.13-1.1")
    host.come("containerd", "1.6.20~ds1-1+b1")
    outcome = go(host, {"minor": "1.31", "version": "1.31.14"})
    assert (outcome.state, outcome.changed, touched(host)) == ("converged", False, [])
    assert any("1.31.14" in note and "kubelet 1.31.13" in note for note in outcome.notes)


def test_another_minor_than_asked_for_is_refused() -> None:
    host = machine("debian")
    for name in KUBE:
        host.come(name, "1.30.5-1.1")
    said = refused(host)
    assert "kubelet 1.30.5" in said
    assert "asks for 1.31: set it to 1.30" in said


def test_different_minors_are_refused() -> None:
    host = machine("debian")
    for name, version in zip(KUBE, ("1.32.1-1.1", "1.31.14-1.1", "1.31.14-1.1")):
        host.come(name, version)
    said = refused(host, {})
    assert "kubeadm 1.32.1, kubectl 1.31.14, kubelet 1.31.14 are installed, of different minor releases" in said


def by_hand(host: PackageHost, version: str) -> None:
    """kubeadm, kubectl and kubelet without packages, as they tell their version."""
    host.programs["kubeadm"] = lambda _host, _argv: Answer(0, f"v{version}\n")
    host.programs["kubelet"] = lambda _host, _argv: Answer(0, f"Kubernetes v{version}\n")
    yaml = f'clientVersion:\n  buildDate: "2025-11-11T19:13:34Z"\n  gitVersion: v{version}\n  goVersion: go1.23.12\n'
    host.programs["kubectl"] = lambda _host, _argv: Answer(0, yaml)


def test_programs_without_packages_count() -> None:
    host = machine("debian")
    by_hand(host, "1.31.14")
    host.programs["containerd"] = silent
    outcome = go(host, {})
    assert (outcome.state, outcome.changed, touched(host)) == ("converged", False, [])
    assert software(host, Settings("", "", ""), Past()).kubeadm == "1.31.14"
    by_hand(host, "1.30.1")
    assert "kubectl 1.30.1" in refused(host)


def test_packages_that_a_killed_dpkg_left_are_finished_and_nothing_else() -> None:
    host = machine("debian")
    go(host)
    host.shelf.broken.add("kubelet")
    host.calls.clear()
    assert go(host).state == "converged"
    assert host.shelf.broken == set()
    assert [call for call in host.calls if "configure" not in call] == []


# -- refusals


def test_missing_packages_need_a_version() -> None:
    said = refused(machine("debian"), {})
    assert "kubeadm, kubectl and kubelet are not installed, and no kubernetesVersion says" in said


def test_a_minor_that_no_repository_has_is_refused() -> None:
    assert "repositories from 1.24 on" in refused(machine("debian"), {"minor": "1.23"})
    host = machine("debian")
    address = "https://pkgs.k8s.io/core:/stable:/v1.24/deb"
    host.sites[f"{address}/Release.key"] = Answer(200, KEY, "OK")
    host.shelf.net[address] = Repository(of_kube(["1.24.17-1.1"]))
    assert go(host, {"minor": "1.24"}).state == "converged"


def test_suse_is_refused_with_what_to_do() -> None:
    said = refused(zypper_host(Shelf({})))
    assert "on opensuse-leap 15.6" in said
    assert "install kubeadm, kubectl, kubelet, containerd" in said.replace(" and ", ", ")


def test_suse_with_everything_by_hand_is_fine() -> None:
    host = zypper_host(Shelf({}))
    by_hand(host, "1.31.14")
    host.programs["containerd"] = silent
    assert go(host).state == "converged"


def test_an_unknown_distribution_is_refused_only_for_what_is_missing() -> None:
    host = machine("debian")
    host.put("/etc/os-release", "ID=gentoo\n")
    assert "'gentoo' (ID of /etc/os-release)" in refused(host)
    by_hand(host, "1.31.14")
    host.programs["containerd"] = silent
    assert go(host).state == "converged"
    assert leave(host).state == "converged"


def test_an_older_amazon_linux_is_refused() -> None:
    host = machine("rocky9")
    host.put("/etc/os-release", 'ID="amzn"\nID_LIKE="centos rhel fedora"\nVERSION_ID="2"\n')
    assert "on amzn 2 packages of Kubernetes are not installed here" in refused(host)
    host.put("/etc/os-release", 'ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\n')
    assert go(host).state == "converged"


def test_packages_of_an_image_are_not_installed() -> None:
    host = machine("fedora")
    host.put("/run/ostree-booted", "")
    assert "rpm-ostree" in refused(host)


# -- container runtimes


@pytest.mark.parametrize("package", ["containerd.io", "moby-containerd", "containerd"])
def test_a_containerd_of_another_package_stays_the_only_one(package: str) -> None:
    host = machine("ubuntu")
    host.come(package, "1.7.27-1")
    host.come("docker-ce", "5:28.3.0-1")
    assert go(host).state == "converged"
    there = {name for name in host.shelf.installed if "containerd" in name}
    assert (there, host.shelf.installed[package]) == ({package}, "1.7.27-1")


def test_a_containerd_by_hand_is_enough() -> None:
    host = machine("ubuntu")
    host.programs["containerd"] = silent
    assert go(host).state == "converged"
    assert "containerd" not in host.shelf.installed


@pytest.mark.parametrize("other", ["cri-o", "docker-ce", "docker.io", "moby-engine"])
def test_another_runtime_without_containerd_is_refused(other: str) -> None:
    host = machine("debian")
    host.come(other, "1.31.1-1.1")
    assert f"{other} is the container runtime of this host" in refused(host)


def test_cri_o_by_hand_is_refused_too() -> None:
    host = machine("fedora")
    host.programs["crio"] = silent
    assert "crio is the container runtime of this host" in refused(host)


def test_a_host_whose_sources_have_no_containerd_is_told_of_one_that_has() -> None:
    host = machine("rocky9")
    del host.shelf.carried["containerd.io"], host.shelf.index["containerd.io"]
    outcome = go(host)
    assert outcome.failure is not None
    assert not outcome.failure.retryable
    assert "rocky 9.4" in message(outcome)
    assert "download.docker.com" in message(outcome)
    assert not versions(host)


def test_only_containerd_may_be_missing() -> None:
    host = machine("debian")
    by_hand(host, "1.31.14")
    assert go(host, {}).state == "converged"
    assert host.shelf.installed == {"containerd": "1.6.20~ds1-1+b1"}
    assert host.text(SOURCE) is None


def test_apt_takes_nothing_away_for_it() -> None:
    host = machine("debian")
    host.come("runc-of-others", "1.0-1")
    host.shelf.conflicts["containerd"] = ("runc-of-others",)
    assert "would take away runc-of-others" in message(go(host))
    assert "runc-of-others" in host.shelf.installed
    assert not [path for path in host.files if path.endswith("k8s-packages.json")], "nothing is held"


# -- what kubeadm needs beside


@pytest.mark.parametrize(
    ("distribution", "package"),
    [("debian", "conntrack"), ("rocky9", "conntrack-tools"), ("fedora", "conntrack-tools")],
)
def test_conntrack_comes_with_releases_that_ask_for_it(distribution: str, package: str) -> None:
    """The package of kubelet 1.31.14 does not depend on it, and kubeadm 1.31 fails without."""
    host = machine(distribution)
    go(host)
    assert package in host.shelf.installed
    newer = machine(distribution)
    for kind in ("deb", "rpm"):
        address = f"https://pkgs.k8s.io/core:/stable:/v1.32/{kind}"
        newer.shelf.net[address] = Repository(of_kube(["1.32.10-1.1"]))
    newer.sites["https://pkgs.k8s.io/core:/stable:/v1.32/deb/Release.key"] = Answer(200, KEY, "OK")
    assert go(newer, {"minor": "1.32"}).state == "converged"
    assert package not in newer.shelf.installed


@pytest.mark.parametrize(
    ("distribution", "package"), [("debian", "iptables"), ("rocky9", "iptables-nft"), ("fedora", "iptables-nft")]
)
def test_iptables_which_kubelet_only_recommends_comes_too(distribution: str, package: str) -> None:
    host = machine(distribution, iptables=False)
    assert go(host).state == "converged"
    assert package in host.shelf.installed
    promises.second_pass_is_quiet(unit(), host, ASKED)


def test_what_a_killed_transaction_left_out_is_installed_by_the_next_pass() -> None:
    host = machine("debian")
    inner = host.programs["apt-get"]

    def half(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        if "install" in argv and "-s" not in argv:
            host.programs["apt-get"] = inner
            assert isinstance(host, PackageHost)
            for name in KUBE:
                host.come(name, "1.31.14-1.2")
            host.come("containerd", "1.6.20~ds1-1+b1")
            return Answer(100, "", "E: Sub-process /usr/bin/dpkg exited unexpectedly\n")
        return inner(host, argv)

    host.programs["apt-get"] = half
    assert go(host).state == "progressing"
    assert go(host).state == "converged"
    assert "conntrack" in host.shelf.installed
    assert host.shelf.held == set(KUBE)


# -- holds


def test_what_we_install_is_held_and_the_rest_is_left() -> None:
    host = machine("debian")
    host.come("foreign", "1.0-1")
    host.shelf.held = {"foreign"}
    go(host)
    assert host.shelf.held == {*KUBE, "foreign"}


def test_what_others_installed_is_not_held() -> None:
    host = machine("debian")
    host.come("kubelet", "1.31.14-1.1")
    host.come("kubeadm", "1.31.14-1.1")
    go(host)
    assert host.shelf.held == {"kubectl"}
    assert "--allow-change-held-packages" not in " ".join(host.calls)


def test_a_hold_of_others_stays_and_does_not_hinder_us() -> None:
    host = machine("debian")
    host.come("kubelet", "1.31.14-1.1")
    host.shelf.held = {"kubelet"}
    assert go(host).state == "converged"
    assert host.shelf.held == set(KUBE)
    leave(host)
    assert host.shelf.held == {"kubelet"}, "that one was not ours"


def test_dnf_holds_by_the_excludes_of_the_repository() -> None:
    host = machine("rocky9")
    go(host)
    assert ran(host, "versionlock") == []
    assert "python3-dnf-plugin-versionlock" not in host.shelf.installed


# -- removal


@pytest.mark.parametrize("distribution", HOSTS)
def test_a_removal_takes_our_files_and_holds_and_leaves_the_packages(distribution: str) -> None:
    host = machine(distribution)
    go(host)
    outcome = leave(host)
    assert outcome.state == "converged"
    assert [path for path in host.files if "kubernetes" in path or "k8s" in path] == []
    assert host.shelf.held == set()
    assert versions(host) == dict.fromkeys(KUBE, HOSTS[distribution][-1])
    assert any("kubeadm, kubectl, kubelet" in note and "stay installed" in note for note in outcome.notes)
    promises.second_pass_is_quiet(unit(), host, None)


@pytest.mark.parametrize("distribution", HOSTS)
def test_a_killed_removal_is_finished_by_the_next(distribution: str) -> None:
    def installed() -> PackageHost:
        host = machine(distribution)
        go(host)
        host.calls.clear()
        return host

    def shown(host: PackageHost) -> object:
        return sorted(path for path in host.files if "bcd-k" in path), sorted(host.shelf.held)

    promises.a_kill_loses_nothing(unit(), installed, None, shown)  # type: ignore[arg-type]
    assert promises.check_is_truthful(unit(), installed, None).state == "converged"


def test_a_removal_where_nothing_is_ours_changes_nothing() -> None:
    host = machine("debian")
    outcome = leave(host)
    assert (outcome.changed, outcome.notes, host.calls) == (False, (), [])
