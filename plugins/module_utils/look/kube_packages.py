# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of a worker's packages: one question where nothing is missing, and the repository where something is.

A package counts before a program, so that what a step of check mode installs is seen.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.plan import Past
from ..core.state import parse
from ..core.unknown import later
from ..plan.distribution import Distribution
from ..plan.kube_packages import (
    CONTAINERD,
    HELD,
    KEY,
    KUBE,
    LANE,
    NAMES,
    OLDEST,
    OTHER_PROGRAMS,
    REPO,
    SOURCE,
    TOOLS,
    UNFINISHED,
    WITHOUT_CONNTRACK,
    Elsewhere,
    Software,
    is_served,
    minor_of,
    package_of,
)
from ..plan.kube_seen import Settings
from ..plan.packages import Packages
from ..plan.unit_names import K8S_JOIN as UNIT
from .os_release import distribution
from .packages import packages

VERSIONS = {
    "kubeadm": ("kubeadm", "version", "-o", "short"),
    "kubectl": ("kubectl", "version", "--client", "-o", "yaml"),
    "kubelet": ("kubelet", "--version"),
}
PATIENCE = 20.0  # seconds, for the key of the repository


def software(host: Host, want: Settings | None, past: Past) -> Software:
    """The snapshot; `want` is None for a removal. The key is fetched where the repository is to be set up."""
    seen = distribution(host)
    shelf = packages(host, NAMES, UNIT) if seen.is_known else Packages("", seen)
    now = Software(
        packages=shelf,
        source=host.file(SOURCE),
        key=host.file(KEY),
        repo=host.file(REPO),
        held=_held(host),
    )
    if want is None:
        return now
    now = now._replace(programs=_programs(host, shelf), runtimes=_runtimes(host, shelf))
    if now.missing or UNFINISHED in past.owed:
        now = now._replace(tools=_tools(host, want, now))
    if not now.missing or not want.minor or int(minor_of(want.minor).split(".")[1]) < OLDEST:
        return now
    return _repository(host, want, now, past) if is_served(seen) else now


def _held(host: Host) -> tuple[str, ...]:
    text = host.read(HELD)
    if text is None:
        return ()
    return tuple(parse(HELD, text, _is_whole, "the holds of kubeadm, kubectl and kubelet then stay")["held"])


def _is_whole(record: dict[str, Any]) -> bool:
    held = record.get("held")
    return isinstance(held, list) and all(isinstance(name, str) for name in held)


def _programs(host: Host, shelf: Packages) -> dict[str, str]:
    """Those of KUBE without a package of the name, with what they say of their versions."""
    return {name: _version(host, name) for name in KUBE if name not in shelf.installed and host.which(name)}


def _version(host: Host, name: str) -> str:
    from ..plan.program_version import version_in

    answer = host.ask(VERSIONS[name])
    return version_in(answer.out) if answer.rc == 0 else ""


def _runtimes(host: Host, shelf: Packages) -> tuple[str, ...]:
    """Runtimes by their programs, looked for only where no package of containerd is there."""
    if any(name in shelf.installed for name in CONTAINERD):
        return ()
    return tuple(name for name in ("containerd", *OTHER_PROGRAMS) if host.which(name))


def _tools(host: Host, want: Settings, now: Software) -> tuple[str, ...]:
    """The packages of programs that kubeadm needs and the host lacks; the programs' names where packages have none."""
    minor = want.minor or minor_of(now.kubeadm)
    found = []
    for program in TOOLS:
        if program == "conntrack" and minor and int(minor.split(".")[1]) >= WITHOUT_CONNTRACK:
            continue
        name = package_of(program, now.packages.distribution)
        if name not in now.packages.installed and not host.which(program):
            found.append(name)
    return tuple(found)


# -- the repository, where something has to come from it


def _repository(host: Host, want: Settings, now: Software, past: Past) -> Software:
    """Who else names it, whether it is needed at all, and for apt its key."""
    from ..plan.kube_repository import key_address

    now = now._replace(elsewhere=_elsewhere(host, want, now.packages.distribution))
    by_apt = now.packages.manager == "apt"
    if now.elsewhere is None and (now.source if by_apt else now.repo) is None:
        now = now._replace(mirrored=_is_mirrored(host, want, now))
    if not by_apt or now.elsewhere is not None or now.mirrored:
        return now
    over = LANE in past.failed  # in this run: nothing waits for the net a second time
    return now._replace(fetched=later(_fetched, host, key_address(want.minor), over))


def _elsewhere(host: Host, want: Settings, seen: Distribution) -> Elsewhere | None:
    from ..plan.kube_repository import LISTS, REPOS, named_in

    folders, ends = (LISTS, (".list", ".sources")) if seen.family == "debian" else (REPOS, (".repo",))
    for place in folders:
        for path in (place,) if place.endswith(".list") else (f"{place}/{name}" for name in host.names(place)):
            text = host.read(path) if path.endswith(ends) and path not in (SOURCE, REPO) else None
            found = named_in(path, text, want.minor) if text else None
            if found:
                return found
    return None


def _is_mirrored(host: Host, want: Settings, now: Software) -> bool:
    """Whether the host's own sources offer what is missing; the question is the planner's."""
    from ..plan.kube_install import is_mirrored, names_of
    from ..plan.kube_packages import ID
    from ..plan.packages import tool_of
    from ..plan.packages_index import asks_offers

    manager = now.packages.manager
    answer = host.ask(asks_offers(manager, names_of(now), every=False, lift=ID))
    tool = tool_of(manager)
    return answer.rc in tool.nothing and is_mirrored(want, now, tuple(tool.read_offers(answer.out)))


def _fetched(host: Host, url: str, over: bool) -> str:
    """The key's text; raises StepFailed where it cannot be fetched, or is not any more."""
    if over:
        raise StepFailed(f"{UNIT}: {url} is not fetched again in a pass in which packages failed: run again")
    mirror = "or give the host a package source that offers kubeadm, kubectl and kubelet"
    try:
        answer = host.get(url, PATIENCE)
    except StepFailed as fault:
        raise StepFailed(f"{UNIT}: the key of the Kubernetes repository: {fault.message}, {mirror}") from None
    if answer.rc != 200:
        raise StepFailed(
            f"{UNIT}: {url} answers {answer.rc} {answer.err}: see that kubernetesVersion is a minor that was released, "
            f"{mirror}"
        )
    return answer.out
