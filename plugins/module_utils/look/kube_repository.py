# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where what a worker lacks can come from: a mirror of the host's, another file that names the repository, or ours."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.host import Host
from ..core.plan import Past
from ..core.unknown import later
from ..plan.distribution import Distribution
from ..plan.kube_install import is_mirrored, names_of
from ..plan.kube_packages import (
    ID,
    LANE,
    REPO,
    SOURCE,
    Software,
    minor_of,
)
from ..plan.kube_repository import LISTS, REPOS, key_address, named_in
from ..plan.kube_seen import Settings
from ..plan.kube_served import OLDEST, TOOLS, WITHOUT_CONNTRACK, Elsewhere, is_served, package_of
from ..plan.packages import tool_of
from ..plan.packages_index import asks_offers
from ..plan.unit_names import K8S_JOIN as UNIT

PATIENCE = 20.0  # seconds, for the key of the repository


def tools(host: Host, want: Settings, now: Software) -> tuple[str, ...]:
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


def repository(host: Host, want: Settings, now: Software, past: Past) -> Software:
    """Who else names it, whether it is needed at all, and for apt its key; nothing where there is none."""
    old = not want.minor or int(want.minor.split(".")[1]) < OLDEST
    if old or not is_served(now.packages.distribution):
        return now
    now = now._replace(elsewhere=_elsewhere(host, want, now.packages.distribution))
    by_apt = now.packages.manager == "apt"
    if now.elsewhere is None and (now.source if by_apt else now.repo) is None:
        now = now._replace(mirrored=_is_mirrored(host, want, now))
    if not by_apt or now.elsewhere is not None or now.mirrored:
        return now
    over = LANE in past.failed  # in this run: nothing waits for the net a second time
    return now._replace(fetched=later(_fetched, host, key_address(want.minor), over))


def _elsewhere(host: Host, want: Settings, seen: Distribution) -> Elsewhere | None:
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
