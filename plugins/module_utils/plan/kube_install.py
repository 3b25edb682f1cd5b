# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installation of what a worker lacks: the repository, its index, one version of all, and their holds."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..core.errors import Refused
from ..core.plan import Past, Todo
from ..core.state import render
from ..core.step import Effect, command_line, run
from .kube_packages import HELD, ID, KEY, KUBE, REPO, SOURCE, UNFINISHED, Software, minor_of
from .kube_repository import address, armoured, key_address, repo, source
from .kube_seen import Settings
from .kube_served import hold_debts
from .package_rows import upstream
from .package_rows_rpm import asks_rpm, parse_rpm
from .packages import Offer, Wanted, tool_of, version_key
from .packages_index import Source, not_offered, offers, refresh
from .packages_install import install
from .packages_seen import Work
from .unit_names import K8S_JOIN as UNIT

KEY_ID = "9a296436"  # how the name of the repository's key ends in rpm's database
INSTALLED = "the Kubernetes packages are installed"  # a clause: what they bring is known after it
REFRESH = f"refresh {ID}"  # the debt of our repository's index
PROGRAMS = (*KUBE, "crictl")
BRINGS = (
    *(f"/usr/bin/{name}" for name in PROGRAMS),
    "/usr/lib/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service.d",
    "/lib/systemd/system/kubelet.service",
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
    "/opt/cni",
)
RUNTIME = "containerd is installed"
RUNTIME_BRINGS = (
    "/usr/bin/containerd",
    "/usr/lib/systemd/system/containerd.service",
    "/lib/systemd/system/containerd.service",
    "/etc/containerd",
    "/run/containerd",
)
# Of a signature: gpgv's words as apt and dnf print them, and those of sqv, which apt asks from Debian 13 on.
SIGNATURE = re.compile(
    r"EXPKEYSIG|KEYEXPIRED|NO_PUBKEY|BADSIG|REVKEYSIG|is not signed|signatures? (?:were|was) invalid|"
    r"signature verification|GPG|/sqv|not considered secure|Policy rejected|InRelease is not valid",
)
EXPIRED = re.compile(r"EXPKEYSIG|KEYEXPIRED|expired", re.IGNORECASE)


class Choice(NamedTuple):
    """What is to be installed, or why nothing can be; `final`: another try brings nothing else."""

    wanted: tuple[Wanted, ...] = ()
    problem: str = ""
    final: bool = False


def install_missing(todo: Todo, want: Settings, now: Software, past: Past) -> Work:
    """Plan what is missing or half done. Raises Refused for a key that is none, and for what it does not sign."""
    if REFRESH in past.vain:
        _unread(todo, want, now, past.tried.get(REFRESH, ""))
        return Work(stuck=True)
    if not now.lacks:
        return _finish(todo, now, past)
    changed = bool(now.missing) and _keep_repository(todo, want, now)
    at = _source(want, now) if now.missing else None
    refreshed = refresh(todo, now.packages, past, at, changed, effects=brought(now))
    lift = now.elsewhere.name if now.elsewhere else ID
    names = names_of(now)
    # Of an index of other sources nothing is asked: where two files name one repository, apt does not even answer.
    asked = bool(names) and not changed
    choice = choose(want, now, offers(now.packages, past, names, every=False, lift=lift) if asked else ())
    if choice.problem:
        not_offered(todo, f"install {', '.join(now.lacks)}", choice.problem, refreshed, retryable=not choice.final)
        return Work(planned=True) if refreshed else Work(stuck=True)
    if now.missing and now.packages.manager != "apt" and at is not None and now.elsewhere is None:
        _forget_key(todo, now, past)
    return _install(todo, now, past, choice.wanted, lift)


def names_of(now: Software) -> tuple[str, ...]:
    """The packages of which the index is asked what it offers."""
    return (*now.missing, *(() if now.has_containerd else ("containerd", "containerd.io")))


def is_mirrored(want: Settings, now: Software, offered: tuple[Offer, ...]) -> bool:
    """Whether what is missing of KUBE is offered already."""
    return bool(now.missing) and not _kube(want, now, offered).problem


def brought(now: Software) -> tuple[Effect, ...]:
    """What is known only once what is missing is installed."""
    effects: list[Effect] = []
    if now.missing:
        effects += [Effect("program", name, INSTALLED) for name in PROGRAMS if name not in now.versions]
        effects += [Effect("appears", path, INSTALLED) for path in BRINGS]
    if not now.has_containerd:
        effects += [Effect("program", name, RUNTIME) for name in ("containerd", "ctr")]
        effects += [Effect("appears", path, RUNTIME) for path in RUNTIME_BRINGS]
    return tuple(effects)


def _finish(todo: Todo, now: Software, past: Past) -> Work:
    """Have dpkg finish what it left half done."""
    return install(todo, now.packages, past, tuple(Wanted(name) for name in now.broken), barrier=True)


def _install(todo: Todo, now: Software, past: Past, wanted: tuple[Wanted, ...], lift: str) -> Work:
    """One transaction; apt's holds are recorded as ours first, dnf's are the excludes of the repository."""
    by_apt = now.packages.manager == "apt"
    ours = tuple(want.name for want in wanted if want.version)
    held = tuple(sorted({*now.held, *ours}))
    apart = Todo()
    work = install(
        apart,
        now.packages,
        past,
        wanted,
        hold=by_apt,
        effects=brought(now),
        owes=(UNFINISHED, *(hold_debts(ours) if by_apt else ())),
        pays=(UNFINISHED,),
        barrier=True,
        lift=lift,
    )
    if by_apt and held != now.held and work.planned:
        from .files import keep

        keep(todo, HELD, render({"held": list(held)}), None)
    todo.add(*apart.plan().steps)
    return work


# -- the repository


def _keep_repository(todo: Todo, want: Settings, now: Software) -> bool:
    """Plan our files of it where the host has nothing else that offers what is missing; whether they change.

    The key is a new one each time that the makers have made its life longer: what is there is not trusted to be it.
    """
    from .files import drop, keep

    owes = (REFRESH,)
    if now.elsewhere is not None:
        todo.note(f"{UNIT}: {now.elsewhere.path} names the repository of {want.minor}, and is used as it is")
        gone = [drop(todo, path, file, owes=owes) for path, file in ((SOURCE, now.source), (REPO, now.repo))]
        return any(gone)
    if now.mirrored:
        return False
    if now.packages.manager != "apt":
        return keep(todo, REPO, repo(want.minor), now.repo, owes=owes)
    key = armoured(str(now.fetched), key_address(want.minor))
    wrote = keep(todo, KEY, key, now.key, owes=owes, why=": it is not the repository's key of today")
    return keep(todo, SOURCE, source(want.minor), now.source, owes=owes) or wrote


def _forget_key(todo: Todo, now: Software, past: Past) -> None:
    """Have dnf fetch the key again: rpm keeps one as it first came, also after its makers made its life longer.

    Before its version 6 rpm takes no newer form of a key that it has, and dnf fetches none. A later one may keep its
    keys elsewhere, and not forget this one: it takes the newer form by itself.
    """
    known = parse_rpm(past.ask(asks_rpm(("gpg-pubkey",))).out)
    gone = [key for key in known if key.version.partition("-")[0].endswith(KEY_ID)]
    if gone:
        names = tuple(f"{key.name}-{key.version}" for key in gone)
        rest = tool_of(now.packages.manager).render(key for key in known if key not in gone)
        effects = (Effect("answers", command_line(asks_rpm(("gpg-pubkey",))), rest),)
        action = f"have rpm forget {', '.join(names)}, which dnf then fetches as it is today"
        todo.add(run(("rpm", "-e", *names), action, ok=(0, 1), effects=effects))


def _source(want: Settings, now: Software) -> Source | None:
    """What is refreshed by itself; None where what is missing comes from the host's own sources."""
    by_apt = now.packages.manager == "apt"
    if now.elsewhere is not None:
        where, words = (now.elsewhere.path if by_apt else now.elsewhere.name), now.elsewhere.path
    elif now.mirrored:
        return None
    else:
        where, words = (SOURCE if by_apt else ID), f"the Kubernetes {want.minor} repository"
    return Source(where, words, REFRESH)


def _unread(todo: Todo, want: Settings, now: Software, said: str) -> None:
    """Say why the index of the repository was not read: what its signature is wrong with is terminal."""
    where = address(want.minor, "deb" if now.packages.manager == "apt" else "rpm")
    words = " ".join(re.sub(r".*? exited with \d+: ", "", said, count=1, flags=re.DOTALL).split())
    if not SIGNATURE.search(said):
        todo.wait("NotReady", f"{UNIT}: {where} cannot be read ({words}): see whether this host reaches it")
        return
    expired = EXPIRED.search(said) is not None
    why = "its key has expired" if expired else "its signature is not good"
    mend = "" if expired else ", or run again once its makers have signed it anew"
    if expired and now.elsewhere is None:
        mend = ", or name the repository in a source file of your own with the key of the newest minor, which is good"
    if now.elsewhere is not None:
        mend = f", or mend what {now.elsewhere.path} says of it"
    raise Refused(
        f"{UNIT}: this host does not trust {where}, {why} ({words}): set kubernetesVersion to a newer minor that the "
        f"cluster accepts{mend}; nothing unsigned is installed"
    )


# -- the version


def choose(want: Settings, now: Software, offered: tuple[Offer, ...]) -> Choice:
    """The missing of KUBE at one version, that of those which are there, and containerd where there is none."""
    kube = _kube(want, now, offered) if now.missing else Choice()
    tools = tuple(Wanted(name) for name in now.tools)
    if kube.problem or now.has_containerd:
        return kube._replace(wanted=(*kube.wanted, *tools))
    there = {offer.name for offer in offered}
    name = next((name for name in ("containerd", "containerd.io") if name in there), "")
    if name:
        return Choice((*kube.wanted, Wanted(name), *tools))
    docker = "" if now.packages.manager == "apt" else " (https://download.docker.com/linux has it as containerd.io)"
    return Choice(
        problem=f"{UNIT}: no package source of this host ({now.packages.distribution.words}) offers containerd: add "
        f"one that does{docker}, or install containerd by hand",
        final=True,
    )


def _kube(want: Settings, now: Software, offered: tuple[Offer, ...]) -> Choice:
    builds: dict[str, dict[str, str]] = {name: {} for name in now.missing}  # by name, by the makers' version
    for offer in offered:
        version = upstream(offer.version)
        if offer.name in builds and minor_of(version) == want.minor and "~" not in offer.version:
            known = builds[offer.name].get(version, "")
            if not known or version_key(known) < version_key(offer.version):
                builds[offer.name][version] = offer.version
    in_all = sorted(set.intersection(*(set(found) for found in builds.values())), key=version_key)
    here = sorted({version for version in now.versions.values() if version}, key=version_key)
    version = here[-1] if here else want.version or (in_all[-1] if in_all else want.minor)
    if version in in_all:
        return Choice(tuple(Wanted(name, builds[name][version]) for name in now.missing))
    have = f"they offer {', '.join(in_all[-4:])}" if in_all else f"they offer none of {want.minor}"
    beside = f" beside {', '.join(f'{name} {has}' for name, has in sorted(now.versions.items()))}" if here else ""
    return Choice(
        problem=f"{UNIT}: no package source of this host ({now.packages.distribution.words}) offers "
        f"{', '.join(now.missing)} {version}{beside}; {have}: set kubernetesVersion to a version that is offered, or "
        "mend the package sources"
    )
