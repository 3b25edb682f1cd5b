# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packages of a worker: kubeadm, kubelet and kubectl of one version, and containerd where no runtime is there.

What is installed stays as it is: a kubelet is upgraded in an order that only its cluster's admin knows. What is missing
comes from the host's own package sources where they offer it (a mirror), else from the repository of the minor.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.plan import Past, Todo
from ..core.state import STATE
from ..core.step import File
from .debts import debt
from .kube_seen import Settings
from .package_rows import upstream
from .packages_seen import Packages, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    from ..core.named import NamedTuple

LANE = "packages"
KUBE = ("kubeadm", "kubectl", "kubelet")
CONTAINERD = ("containerd", "containerd.io", "containerd2", "containerd-app", "containerd-stable", "moby-containerd")
OTHERS = ("docker-ce", "docker.io", "moby-engine", "cri-o")  # runtimes, or what brings one
OTHER_PROGRAMS = ("dockerd", "crio")
NAMES = (*KUBE, *CONTAINERD, *OTHERS, "conntrack", "conntrack-tools", "iptables", "iptables-nft")
ID = "bcd-kubernetes"
SOURCE = f"/etc/apt/sources.list.d/{ID}.list"
KEY = f"/etc/apt/keyrings/{ID}.asc"
REPO = f"/etc/yum.repos.d/{ID}.repo"
HELD = f"{STATE}/k8s-packages.json"  # the packages whose hold is ours
UNFINISHED = debt("install", ID)


class Software(NamedTuple):
    """What a host has of it. `packages` are those of NAMES; its `manager` is "" on a distribution that nobody knows.

    `programs` maps those of KUBE that are there without a package of the name to their versions, "" where one does not
    tell; `runtimes` are the programs of container runtimes that are there without a package; `tools` are the packages
    of programs that have to come with what is missing. `source`, `key` and `repo` are our files, `held` the packages
    whose hold is ours, by our record. `elsewhere` is another file that names the repository (see kube_served),
    `mirrored`: the sources of the host offer, without ours, what is missing. `fetched` is the text of the repository's
    key ("" where none is needed); it raises where it could not be fetched.
    """

    packages: Packages
    programs: Mapping[str, str] = {}
    runtimes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    source: File | None = None
    key: File | None = None
    repo: File | None = None
    held: tuple[str, ...] = ()
    elsewhere: Any = None
    mirrored: bool = False
    fetched: str = ""

    @property
    def versions(self) -> dict[str, str]:
        """The makers' versions of what is there of KUBE, "1.31.14", "" where one is not known."""
        found = {name: upstream(self.packages.version(name)) for name in KUBE if name in self.packages.installed}
        return {**self.programs, **found}

    @property
    def kubeadm(self) -> str:
        """kubeadm's version, "" where it is not there or does not tell."""
        return self.versions.get("kubeadm", "")

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of KUBE that are not there."""
        return tuple(name for name in KUBE if name not in self.versions)

    @property
    def lacks(self) -> tuple[str, ...]:
        """Everything that has to be installed, by package."""
        return (*self.missing, *(() if self.has_containerd else ("containerd",)), *self.tools)

    @property
    def broken(self) -> tuple[str, ...]:
        """Those of KUBE and of containerd's packages that a killed dpkg left half done."""
        found = self.packages.installed
        return tuple(name for name in (*KUBE, *CONTAINERD) if name in found and not found[name].whole)

    @property
    def has_containerd(self) -> bool:
        """Whether containerd is there, by whichever package, or by hand."""
        return "containerd" in self.runtimes or any(name in self.packages.installed for name in CONTAINERD)


def plan(todo: Todo, want: Settings, now: Software, past: Past) -> Work:
    """Plan the packages; raises Refused before anything is planned for what cannot be.

    Planned too is what is known only after the package index is refreshed; stuck is what fails, which the plan says.
    """
    if not is_one_release(want, now.versions):
        from .kube_versions import check_versions

        check_versions(todo, want, now)
    if not (now.lacks or now.broken):
        if past.owed:
            _settle_holds(todo, now.packages, past)
        return Work()
    from .kube_install import install_missing
    from .kube_unserved import refuse_unserved

    refuse_unserved(want, now)

    come: list[Work] = []
    with todo.lane(LANE):
        come.append(install_missing(todo, want, now, past))
    return come[0] if come else Work(stuck=True)  # the lane has told why


def _settle_holds(todo: Todo, now: Packages, past: Past) -> None:
    """Plan the holds that a killed pass owes; of the others of KUBE none is ours to set."""
    from .packages import settle_holds

    with todo.lane(LANE):
        settle_holds(todo, now, past, KUBE, hold=False, pays=(UNFINISHED,))


def is_one_release(want: Settings, versions: Mapping[str, str]) -> bool:
    """Whether all that is there is of one minor release, and of the one that is asked for, to the patch."""
    known = {version for version in versions.values() if version}
    minors = {minor_of(version) for version in known}
    return (
        len(minors) < 2 and (not want.minor or minors <= {want.minor}) and (not want.version or known <= {want.version})
    )


def minor_of(version: str) -> str:
    """ "1.31" of "1.31.14"; "" where it is not known."""
    return ".".join(version.split(".")[:2])
