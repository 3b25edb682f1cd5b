# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why what a worker lacks cannot be installed here: another runtime, the distribution, a minor without a repository."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.predict import listed
from .distribution import Distribution
from .kube_packages import OTHER_PROGRAMS, OTHERS, Software
from .kube_seen import Settings
from .kube_served import OLDEST, is_served
from .packages_install import refuse_image
from .unit_names import K8S_JOIN as UNIT


def refuse_unserved(want: Settings, now: Software) -> None:
    """Refuse what cannot be installed on this host, naming what is missing."""
    other = [name for name in OTHERS if name in now.packages.installed]
    other += [name for name in now.runtimes if name in OTHER_PROGRAMS]
    if other and not now.has_containerd:
        raise Refused(
            f"{UNIT}: {', '.join(other)} is the container runtime of this host, and a node joins with containerd: "
            "install the containerd that goes with it, or take it away, since no runtime is installed beside another"
        )
    lack = now.lacks
    seen = now.packages.distribution
    if lack and not is_served(seen):
        names = listed([*lack])
        raise Refused(
            f"{UNIT}: {names} {'are' if len(lack) > 1 else 'is'} not installed, and on {_words(seen)} packages "
            f"of Kubernetes are not installed here: install {names} by hand{_of(want)}, or use a distribution "
            "of the Debian or the Red Hat family"
        )
    if now.missing and not want.minor:
        raise Refused(
            f"{UNIT}: {listed([*now.missing])} {'are' if len(now.missing) > 1 else 'is'} not installed, and no "
            "kubernetesVersion says which minor release to install: set it to the cluster's, as 1.NN"
        )
    if now.missing and int(want.minor.split(".")[1]) < OLDEST:
        raise Refused(
            f"{UNIT}: kubernetesVersion asks for {want.minor}, and there are package repositories from 1.{OLDEST} on "
            "only: set a newer one that the cluster accepts, or install it by hand"
        )
    if lack:
        refuse_image(now.packages, lack)


def _words(seen: Distribution) -> str:
    return seen.words if seen.family else f"{seen.id!r} (ID of /etc/os-release)"


def _of(want: Settings) -> str:
    return f" (Kubernetes {want.version or want.minor})" if want.minor else ""
