# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker's packages as values: which version is chosen, what is a key, and which files name the repository."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.distribution import Distribution
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_install import choose
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_packages import Software
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_repository import (
    address,
    armoured,
    key_address,
    named_in,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Settings
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_served import Elsewhere, package_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.package_rows import Package
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages import Offer, Wanted, tool_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.packages_seen import Packages
from tests.unit.package_sources import KEY, OTHER_KEY

DEBIAN = Distribution("debian", version="12", family="debian")
WANT = Settings("https://c:6443", "c:6443", "0" * 64, minor="1.31")
URL = "https://pkgs.k8s.io/core:/stable:/v1.31/deb/Release.key"


def software(**given: str) -> Software:
    """A host with containerd and these packages."""
    there = {name: Package(name, version) for name, version in given.items()}
    there["containerd"] = Package("containerd", "1.6.20~ds1-1+b1")
    return Software(Packages("apt", DEBIAN, installed=there))


def offered(*versions: str, names: tuple[str, ...] = ("kubeadm", "kubectl", "kubelet")) -> tuple[Offer, ...]:
    return tuple(Offer(name, version) for version in versions for name in names)


# -- the version


def test_the_newest_patch_is_by_number_and_its_newest_build() -> None:
    choice = choose(WANT, software(), offered("1.31.9-1.1", "1.31.10-1.1", "1.31.10-2.1", "1.31.10-1.10"))
    assert choice.wanted == tuple(Wanted(name, "1.31.10-2.1") for name in ("kubeadm", "kubectl", "kubelet"))


def test_other_minors_and_candidates_are_no_choice() -> None:
    index = offered("1.3.1-1.1", "1.30.9-1.1", "1.32.0-1.1", "1.31.4~rc.0-1.1", "1.31.3-1.1")
    assert {want.version for want in choose(WANT, software(), index).wanted} == {"1.31.3-1.1"}


def test_all_come_at_one_version_although_one_is_offered_newer() -> None:
    index = (*offered("1.31.3-1.1"), *offered("1.31.4-1.1", names=("kubectl", "kubelet")))
    assert {want.version for want in choose(WANT, software(), index).wanted} == {"1.31.3-1.1"}


def test_what_is_there_says_the_version_of_what_is_missing() -> None:
    choice = choose(WANT, software(kubelet="1.31.3-1.1"), offered("1.31.3-1.1", "1.31.4-1.1"))
    assert choice.wanted == (Wanted("kubeadm", "1.31.3-1.1"), Wanted("kubectl", "1.31.3-1.1"))
    lost = choose(WANT, software(kubelet="1.31.2-1.1"), offered("1.31.3-1.1", "1.31.4-1.1"))
    assert (lost.wanted, lost.final) == ((), False)
    assert "kubeadm, kubectl 1.31.2 beside kubelet 1.31.2; they offer 1.31.3, 1.31.4" in lost.problem


def test_an_index_without_the_minor_is_said() -> None:
    assert "they offer none of 1.31" in choose(WANT, software(), offered("1.30.1-1.1")).problem


@pytest.mark.parametrize(
    ("tool", "distribution", "package"),
    [
        ("conntrack", DEBIAN, "conntrack"),
        ("iptables", DEBIAN, "iptables"),
        ("conntrack", Distribution("rocky", version="8.10", family="rhel"), "conntrack-tools"),
        ("iptables", Distribution("rocky", version="8.10", family="rhel"), "iptables"),
        ("iptables", Distribution("rocky", version="9.4", family="rhel"), "iptables-nft"),
        ("iptables", Distribution("amzn", version="2023", family="rhel"), "iptables-nft"),
        ("iptables", Distribution("fedora", version="44", family="fedora"), "iptables-nft"),
        ("iptables", Distribution("gentoo"), "iptables"),
    ],
)
def test_each_distribution_has_its_own_names(tool: str, distribution: Distribution, package: str) -> None:
    assert package_of(tool, distribution) == package


# -- the repository


def test_the_addresses_are_the_makers() -> None:
    assert address("1.31", "deb") == "https://pkgs.k8s.io/core:/stable:/v1.31/deb/"
    assert address("1.31", "rpm") == "https://pkgs.k8s.io/core:/stable:/v1.31/rpm/"
    assert key_address("1.31") == URL


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        KEY + OTHER_KEY,
        KEY.replace("\n", "\r\n"),
        KEY.replace("BLOCK-----\n", "BLOCK-----\nVersion: GnuPG v2\nComment: packages\n", 1),
        KEY.replace("=7V5G\n", ""),  # the checksum may be left out
    ],
)
def test_a_key_is_taken_as_it_came(text: str) -> None:
    assert armoured(text, URL) == text


@pytest.mark.parametrize("text", [KEY.replace("PUBLIC", "PRIVATE"), KEY.replace("mDME", "iHUE"), "\n", KEY[:-5]])
def test_whatever_else_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"no ASCII-armoured OpenPGP public key"):
        armoured(text, URL)


DEB = "https://pkgs.k8s.io/core:/stable:/v1.31/deb"
RPM = "https://pkgs.k8s.io/core:/stable:/v1.31/rpm"
NAMING = {
    "a.list": [
        f"deb {DEB}/ /\n",
        f"deb {DEB} /\n",
        f"deb [arch=amd64 signed-by=/etc/apt/keyrings/k.gpg] {DEB}/ /\n",
        f"# mine\n  deb\t[ signed-by=/k.gpg ]\t{DEB}/\t/ # here\n",
    ],
    "a.sources": [
        f"Types: deb\nURIs: {DEB}/\nSuites: /\n",
        f"Types: deb deb-src\nURIs: http://a.example\n {DEB}\nSuites: /\nSigned-By:\n -----BEGIN PGP\n .\n x\n",
        f"Types: deb\nURIs: http://a.example\nSuites: s\n\n# two\nEnabled: yes\nTypes: deb\nuris: {DEB}/\nSuites: /\n",
    ],
}
SILENT = {
    "a.list": [
        "",
        f"# deb {DEB}/ /\n",
        f"deb-src {DEB}/ /\n",
        f"deb {DEB.replace('1.31', '1.30')}/ /\n",
        f"deb http://mirror.example/{DEB} /\n",
    ],
    "a.sources": [
        f"Types: deb\nURIs: {DEB}/\nSuites: /\nEnabled: no\n",
        f"Types: deb-src\nURIs: {DEB}/\nSuites: /\n",
        f"#Types: deb\n#URIs: {DEB}/\n",
    ],
    "a.repo": [
        f"[k]\nbaseurl={RPM}/\nenabled=0\n",
        f"[k]\nbaseurl={RPM.replace('1.31', '1.3')}/\n",
        f"[k]\n#baseurl={RPM}/\n",
        "",
    ],
}


@pytest.mark.parametrize(("path", "text"), [(path, text) for path, texts in NAMING.items() for text in texts])
def test_apts_files_that_name_it_are_known(path: str, text: str) -> None:
    assert named_in(path, text, "1.31") == Elsewhere(path)


@pytest.mark.parametrize(
    "text",
    [
        f"[main]\n[k8s]\nname=K\nbaseurl={RPM}/\n",
        f"[a]\nbaseurl=http://a.example\n\n[k8s]\nname=K\nbaseurl = {RPM}\nenabled = 1\n",
        f"[k8s]\nbaseurl=http://mirror.example/\n  {RPM}/\nenabled=True\n",
    ],
)
def test_dnfs_files_that_name_it_are_known_by_the_id(text: str) -> None:
    assert named_in("k.repo", text, "1.31") == Elsewhere("k.repo", "k8s")


@pytest.mark.parametrize(("path", "text"), [(path, text) for path, texts in SILENT.items() for text in texts])
def test_files_that_do_not_name_it_or_are_off_are_passed_over(path: str, text: str) -> None:
    assert named_in(path, text, "1.31") is None


# -- one source by itself


def test_one_source_is_read_strictly_and_the_index_of_the_others_stays() -> None:
    apt = " ".join(tool_of("apt").refresh_one("/etc/apt/sources.list.d/k.list"))
    for option in (
        "Dir::Etc::SourceList=/etc/apt/sources.list.d/k.list",
        "Dir::Etc::SourceParts=/dev/null",
        "APT::Get::List-Cleanup=0",
        "APT::Update::Error-Mode=any",
    ):
        assert f"-o {option}" in apt
    for manager in ("dnf", "dnf5"):
        dnf = tool_of(manager).refresh_one("k")
        assert {"--repo=k", "--setopt=k.skip_if_unavailable=False", "makecache", "--refresh"} <= set(dnf)
