# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package repository of Kubernetes on simulated hosts: what apt and dnf see of it, as the real ones would."""

from __future__ import annotations

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_repository import armoured, key_address
from tests.sim import kube_repository
from tests.sim.host import SimulatedHost

from .conftest import Maker

SOURCE, KEY = "/etc/apt/sources.list.d/k.list", "/etc/apt/keyrings/k.asc"
LINE = f"deb [signed-by={KEY}] https://pkgs.k8s.io/core:/stable:/v1.31/deb/ /\n"
REPO = "[k]\nname=K\nbaseurl=https://pkgs.k8s.io/core:/stable:/v1.31/rpm/\nenabled=1\nexclude=kubelet kubeadm\n"
ONE = ("-o", f"Dir::Etc::SourceList={SOURCE}", "-o", "Dir::Etc::SourceParts=/dev/null")
STRICT = ("-o", "APT::Update::Error-Mode=any")


def offered(host: SimulatedHost) -> str:
    return host.run("apt-cache", "madison", "kubelet").stdout


def test_the_key_is_one_and_only_released_minors_have_it() -> None:
    assert kube_repository.answer(key_address("1.31")) == (200, kube_repository.KEY)
    assert armoured(kube_repository.KEY, "")
    assert kube_repository.answer(key_address("1.99"))[0] == 403


def test_apt_sees_it_once_a_source_names_it_and_the_index_was_refreshed(make: Maker) -> None:
    host = make("worker-bare")
    host.write(SOURCE, LINE)
    host.write(KEY, kube_repository.KEY)
    assert offered(host) == ""
    assert host.run("apt-get", *ONE, *STRICT, "update").returncode == 0
    assert "1.31.14-1.1" in offered(host)
    done = host.run("apt-get", "-y", "install", "kubelet=1.31.14-1.1", "kubeadm=1.31.14-1.1")
    assert done.returncode == 0, done.stderr
    installed = host.run("dpkg-query", "-W", "-f", "${Package}\\n").stdout.split()
    assert {"kubeadm", "kubelet", "kubernetes-cni", "cri-tools"} <= {*installed}


def test_apt_fails_for_a_repository_without_its_key_only_when_it_is_told_to(make: Maker) -> None:
    host = make("worker-bare")
    host.write(SOURCE, LINE)
    assert host.run("apt-get", *ONE, "update").returncode == 0
    strict = host.run("apt-get", *ONE, *STRICT, "update")
    assert strict.returncode == 100
    assert "NO_PUBKEY" in strict.stderr
    assert offered(host) == ""


def test_dnf_excludes_what_the_file_says_until_it_is_lifted(make: Maker) -> None:
    host = make("worker-el9")
    host.write("/etc/yum.repos.d/k.repo", REPO)
    assert host.run("dnf", "-y", "--repo=k", "makecache", "--refresh").returncode == 0
    query = ("-q", "-C", "repoquery", "--showduplicates", "--queryformat", "%{name}|%{version}\n", "kubelet")
    assert host.run("dnf", *query).stdout == ""
    assert "kubelet|1.31.14" in host.run("dnf", "--disableexcludes=k", *query).stdout
    assert host.run("dnf", "-y", "install", "kubelet").returncode == 1
    assert host.run("dnf", "--disableexcludes=k", "-y", "install", "kubelet").returncode == 0
