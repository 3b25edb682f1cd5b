# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package managers of a simulated host: apt and dpkg, dnf and rpm, over one list of installed packages.

What packages bring shows in the tree at once: programs in /usr/local/sbin, services, the driver's module and library.
"""

from __future__ import annotations

import fnmatch
import os
import re
from typing import Any, NamedTuple

from . import containers, gpu, kube_repository, kubernetes, units
from .machine import at, drop, keep, load, put, read, state, there
from .repositories import Offered, offered

Answer = tuple[int, str, str]
INSTALLED = "/var/lib/sim/packages.json"
LIST = "/etc/dnf/plugins/versionlock.list"
UNIT = (
    "[Unit]\nDescription={0}\n\n[Service]\nType=forking\nExecStart=/usr/bin/{1}\n\n"
    "[Install]\nWantedBy=multi-user.target\n"
)
DAEMONS = {"nvidia-fabricmanager": "nv-fabricmanager", "nvidia-persistenced": "nvidia-persistenced"}
PROGRAMS = (
    "nvidia-smi",
    "nvidia-ctk",
    "nvidia-cdi-hook",
    "nvidia-cuda-mps-control",
    "nvidia-persistenced",
    "nv-fabricmanager",
    "kubeadm",
    "kubectl",
    "kubelet",
)
UNITS = {
    kubernetes.SERVICE: kubernetes.SERVICE_FILE,
    "containerd.service": containers.UNIT.format("containerd", "containerd"),
}
BROKEN = "E: Unable to correct problems, you have held broken packages.\n"


class Change(NamedTuple):
    """What a transaction does: packages that come, or come in another version, and names that go."""

    come: dict[str, Offered]
    gone: tuple[str, ...]


class Impossible(Exception):
    """The manager cannot do it."""


def index(root: str) -> tuple[Offered, ...]:
    """Everything that any source offers."""
    what = load(root)
    return (*offered(what.distribution, what.kernel), *kube_repository.packages(what.distribution))


def seen(root: str, argv: list[str]) -> tuple[Offered, ...]:
    """What the host's own sources offer, as its index has them and the command asks."""
    return kube_repository.visible(root, index(root), argv)


def installed(root: str) -> dict[str, dict[str, Any]]:
    """Installed packages: their version, and whether they are held and whole."""
    return state(root, INSTALLED)


def number(version: str) -> list[Any]:
    """To sort versions."""
    return [int(part) if part.isdigit() else -1 for part in re.split(r"[^0-9]+", version)]


def resolve(
    root: str,
    wanted: list[str],
    gone: tuple[str, ...] = (),
    streams: bool = False,
    offers: tuple[Offered, ...] | None = None,
) -> Change:
    """What an installation of `name` or `name=version` comes to, of `offers` or of all; raises Impossible."""
    offers, here = index(root) if offers is None else offers, installed(root)
    enabled = state(root, INSTALLED + ".streams").get("nvidia-driver", "")
    if streams:
        offers = tuple(one for one in offers if one.stream in ("", enabled))
    come: dict[str, Offered] = {}
    queue = list(wanted)
    while queue:
        name, _equals, version = queue.pop(0).partition("=")
        if name in come and version in ("", come[name].version):
            continue
        if name in here and version in ("", here[name]["version"]) and name not in gone:
            continue
        found = [one for one in offers if one.name == name and version in ("", one.version)]
        if not found:
            raise Impossible(
                f"E: Version '{version}' for '{name}' was not found\n"
                if version
                else f"E: Unable to locate package {name}\n"
            )
        best = max(found, key=lambda one: number(one.version))
        come[name] = best
        queue += list(best.needs)
    leaves = set(gone) & set(here)
    for one in come.values():
        for name in (*here, *come):
            if name != one.name and any(fnmatch.fnmatch(name, glob) for glob in one.not_with):
                if name in come:
                    raise Impossible(f" {one.name} : Conflicts: {name}\n{BROKEN}")
                leaves.add(name)
    for name in [name for name in here if name not in leaves and name not in come]:
        own = next((one for one in offers if one.name == name and one.version == here[name]["version"]), None)
        if own is None or not _breaks(own, come, leaves):
            continue
        follows = [one for one in offers if one.name == name and not _breaks(one, come, leaves)]
        if follows and leaves.isdisjoint(need.partition("=")[0] for need in own.needs):
            come[name] = max(follows, key=lambda one: number(one.version))
        else:
            leaves.add(name)
    return Change(come, tuple(sorted(leaves)))


def _breaks(one: Offered, come: dict[str, Offered], leaves: set[str]) -> bool:
    """Whether something that it needs goes, or comes in another version."""
    for need in one.needs:
        name, _equals, version = need.partition("=")
        if name in leaves or (name in come and version not in ("", come[name].version)):
            return True
    return False


def commit(root: str, change: Change) -> None:
    """Do it, and let what the packages bring show."""
    here = installed(root)
    for name in change.gone:
        here.pop(name, None)
    for name, one in change.come.items():
        here[name] = {"version": one.version, "held": here.get(name, {}).get("held", False), "whole": True}
    keep(root, INSTALLED, here)
    settle(root)


def settle(root: str) -> None:
    """Programs, services, the driver's files, as the installed packages bring them."""
    from . import standins

    here = installed(root)
    offers = {(one.name, one.version): one for one in index(root)}
    brought: dict[str, str] = {}
    for name, package in here.items():
        one = offers.get((name, package["version"]))
        brought.update(dict.fromkeys(one.brings if one else (), package["version"]))
    programs = {what.partition(":")[2] for what in brought if what.startswith("program:")}
    for name in PROGRAMS:
        if name not in programs:
            drop(root, f"/usr/local/sbin/{name}")
    standins.install(root, tuple(sorted(programs)))
    for what in brought:
        kind, _colon, unit = what.partition(":")
        if kind == "file" and not there(root, unit):
            put(root, unit, "", 0o755)
        if kind == "service" and units.path_of(root, unit) is None:
            name = unit[: -len(".service")]
            text = UNITS.get(unit) or UNIT.format(name, DAEMONS[name])
            started = load(root).distribution == "ubuntu" and name in ("containerd", "nvidia-persistenced")
            units.unit_file(root, unit, text, started=started)
            if started and name == "containerd" and there(root, "/run/systemd/system"):
                _start(root, unit)
    _driver(root, brought)


def _start(root: str, unit: str) -> None:
    """As a package does whose service is to run from its installation on."""
    from .systemd import Manager

    manager = Manager(root)
    manager.start(unit)
    manager.save()


def _driver(root: str, brought: dict[str, str]) -> None:
    if not gpu.any_of(root):
        return
    flavour = next((what.partition(":")[2] for what in brought if what.startswith("module:")), "")
    kernel = load(root).kernel
    with gpu.editing(root) as machine:
        machine.disk = upstream(brought[f"module:{flavour}"]) if flavour else None
        machine.disk_flavour = flavour or machine.disk_flavour
        machine.library = upstream(brought["library"]) if "library" in brought else None
    path = f"/usr/lib/modules/{kernel}/modules.dep"
    lines = [line for line in (read(root, path) or "").splitlines() if not line.startswith("updates/dkms/nvidia")]
    if flavour:
        lines += [f"updates/dkms/{name.replace('_', '-')}.ko.zst:" for name in gpu.MODULES]
    put(root, path, "".join(line + "\n" for line in lines))


def upstream(version: str) -> str:
    """NVIDIA's version in a package's."""
    return re.split(r"[-+~]", version.rpartition(":")[2])[0]


def provide(root: str, what: list[str]) -> None:
    """Install at build time."""
    stream = next((one.partition(":")[2] for one in what if one.startswith("stream:")), "")
    if stream:
        keep(root, INSTALLED + ".streams", {"nvidia-driver": stream})
    commit(root, resolve(root, [one for one in what if not one.startswith("stream:")], streams=bool(stream)))


def _filled(pattern: str, values: dict[str, str], form: str) -> str:
    """A format with its fields filled in; one that is not known is empty."""
    return re.sub(pattern, lambda key: values.get(key.group(1), ""), form)


# -- dpkg and apt


def dpkg_query(root: str, argv: list[str]) -> Answer:
    """dpkg-query -W|--show [-f FORMAT|--showformat FORMAT] [NAME ...]."""
    form, patterns, rest = "${Package}\t${Version}\n", [], list(argv)
    while rest:
        word = rest.pop(0)
        if word in ("-f", "--showformat"):
            form = rest.pop(0).encode().decode("unicode_escape")
        elif word.startswith(("-f=", "--showformat=")):
            form = word.partition("=")[2].encode().decode("unicode_escape")
        elif not word.startswith("-"):
            patterns.append(word)
    out, err = "", ""
    here = installed(root)
    for pattern in patterns or ["*"]:
        found = [name for name in sorted(here) if fnmatch.fnmatch(name, pattern)]
        err += "" if found or not patterns else f"dpkg-query: no packages found matching {pattern}\n"
        for name in found:
            package = here[name]
            abbreviated = f"{'h' if package['held'] else 'i'}{'i' if package['whole'] else 'F'} "
            values = {"db:Status-Abbrev": abbreviated, "Package": name, "Version": package["version"]}
            out += _filled(r"\$\{([^}]+)\}", values, form)
    return (1 if err else 0), out, err


def dpkg(root: str, argv: list[str]) -> Answer:
    """dpkg --configure -a, --print-architecture."""
    if "--print-architecture" in argv:
        return 0, "amd64\n", ""
    here = installed(root)
    keep(root, INSTALLED, {name: {**package, "whole": True} for name, package in here.items()})
    return 0, "", ""


def apt_cache(root: str, argv: list[str]) -> Answer:
    """apt-cache madison NAME ..."""
    if not argv or argv[0] != "madison":
        return 1, "", f"E: Invalid operation {' '.join(argv)}\n"
    lines = []
    for name in argv[1:]:
        found = sorted((one for one in seen(root, argv) if one.name == name), key=lambda one: number(one.version))
        lines += [f"{one.name} | {one.version} | {one.origin}\n" for one in reversed(found)]
    return 0, "".join(lines), ""


def apt_mark(root: str, argv: list[str]) -> Answer:
    """apt-mark hold|unhold|showhold."""
    here = installed(root)
    if argv[:1] == ["showhold"]:
        return 0, "".join(f"{name}\n" for name in sorted(here) if here[name]["held"]), ""
    for name in argv[1:]:
        if name not in here:
            return 100, "", f"E: Unable to locate package {name}\n"
        here[name]["held"] = argv[0] == "hold"
    keep(root, INSTALLED, here)
    return 0, "".join(f"{name} set on {argv[0]}.\n" for name in argv[1:]), ""


def apt_get(root: str, argv: list[str]) -> Answer:
    """apt-get [-s] update|install NAME[=VERSION] NAME- ..."""
    options, words, rest = [], [], list(argv)
    while rest:
        word = rest.pop(0)
        if word == "-o":
            options.append(rest.pop(0))
        elif word.startswith("-"):
            options.append(word)
        else:
            words.append(word)
    if words[:1] == ["update"]:
        only = next((word.partition("=")[2] for word in options if word.startswith("Dir::Etc::SourceList=")), "")
        fault = kube_repository.refresh(root, only)
        strict = bool(fault) and "APT::Update::Error-Mode=any" in options
        return 100 if strict else 0, "Reading package lists...\n", fault
    if words[:1] != ["install"]:
        return 100, "", f"E: Invalid operation {' '.join(words)}\n"
    here = installed(root)
    gone = tuple(word[:-1] for word in words[1:] if word.endswith("-"))
    try:
        wanted = [word for word in words[1:] if not word.endswith("-")]
        change = resolve(root, wanted, gone, offers=seen(root, argv))
    except Impossible as fault:
        return 100, "The following packages have unmet dependencies:\n", str(fault)
    held = [name for name in (*change.come, *change.gone) if here.get(name, {}).get("held")]
    if held and "--allow-change-held-packages" not in options:
        text = "E: Held packages were changed and -y was used without --allow-change-held-packages.\n"
        return 100, "", text
    changes = [(one.version, here[name]["version"]) for name, one in change.come.items() if name in here]
    older = [new for new, old in changes if number(new) < number(old)]
    if older and "--allow-downgrades" not in options:
        return 100, "", "E: Packages were downgraded and -y was used without --allow-downgrades.\n"
    if "-s" in options:
        out = "".join(f"Remv {name} [{here[name]['version']}]\n" for name in change.gone)
        out += "".join(f"Inst {name} ({one.version} Ubuntu:24.04 [amd64])\n" for name, one in change.come.items())
        return 0, out, ""
    commit(root, change)
    return 0, "".join(f"Setting up {name} ({one.version}) ...\n" for name, one in change.come.items()), ""


# -- rpm and dnf


def rpm(root: str, argv: list[str]) -> Answer:
    """rpm -qa --qf FORMAT NAME ..."""
    at_format = argv.index("--qf") + 1
    form = argv[at_format].encode().decode("unicode_escape")
    patterns = [word for word in argv[at_format + 1 :] if not word.startswith("-")]
    out = ""
    for name, package in sorted(installed(root).items()):
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns or ["*"]):
            epoch, _colon, rest = package["version"].rpartition(":")
            version, _dash, build = rest.partition("-")
            values = {"NAME": name, "EPOCHNUM": epoch or "0", "VERSION": version, "RELEASE": build}
            out += _filled(r"%\{(\w+)\}", values, form)
    return 0, out, ""


def dnf(root: str, argv: list[str]) -> Answer:
    """dnf makecache, repoquery, module list|enable|reset, install, versionlock."""
    words = [
        word for at_word, word in enumerate(argv) if not word.startswith("-") and argv[at_word - 1] != "--queryformat"
    ]
    verb, given = words[0], words[1:]
    if verb == "makecache":
        kube_repository.refresh(root, next((word[7:] for word in argv if word.startswith("--repo=")), ""))
        return 0, "Metadata cache created.\n", ""
    if verb == "repoquery":
        return _repoquery(root, given, argv)
    if verb == "module":
        return _module(root, given)
    if verb == "versionlock":
        return _versionlock(root, given)
    if verb != "install":
        return 1, "", f"No such command: {verb}.\n"
    try:
        change = resolve(root, [_spec(root, word) for word in given], streams=True, offers=seen(root, argv))
    except Impossible as fault:
        return 1, "", f"Error: {fault}"
    if change.gone and "--allowerasing" not in argv:
        return 1, "", f"Error: package {change.gone[0]} conflicts\n"
    commit(root, change)
    return 0, "Complete!\n", ""


def _spec(root: str, word: str) -> str:
    """`name-epoch:version-release` as name=version."""
    for one in index(root):
        plain = one.version if ":" in one.version else f"0:{one.version}"
        if word in (f"{one.name}-{one.version}", f"{one.name}-{plain}"):
            return f"{one.name}={one.version}"
    return word


def _repoquery(root: str, given: list[str], argv: list[str]) -> Answer:
    form = argv[argv.index("--queryformat") + 1]
    enabled = state(root, INSTALLED + ".streams").get("nvidia-driver", "")
    every = "--disable-modular-filtering" in argv
    lines = set()
    for one in seen(root, argv):
        if one.name in given and (every or one.stream in ("", enabled)):
            epoch, _colon, rest = one.version.rpartition(":")
            version, _dash, build = rest.partition("-")
            values = {
                "name": one.name,
                "epoch": epoch or "0",
                "version": version,
                "release": build,
                "repoid": one.origin,
            }
            lines.add(_filled(r"%\{(\w+)\}", values, form))
    return 0, "\n".join(sorted(lines)), ""


def _module(root: str, given: list[str]) -> Answer:
    verb, module = given[0], given[1].partition(":")[0]
    streams = sorted({one.stream for one in index(root) if one.stream})
    where = INSTALLED + ".streams"
    enabled = state(root, where).get(module, "")
    if verb == "list":
        rows = [
            f"{module}   {one}{' [e]' if one == enabled else ''}   default [d], fm   Nvidia driver\n" for one in streams
        ]
        head = "cuda-rhel9\nName            Stream            Profiles            Summary\n"
        hint = "\nHint: [d]efault, [e]nabled, [x]disabled, [i]nstalled\n"
        return (0, head + "".join(rows) + hint, "") if streams else (1, "", "Error: No matching Modules to list\n")
    if verb == "reset":
        keep(root, where, {})
        return 0, "Complete!\n", ""
    stream = given[1].partition(":")[2]
    if stream not in streams:
        return 1, "", f"Error: Problems in request:\nmissing groups or modules: {given[1]}\n"
    if enabled and enabled != stream:
        return 1, "", "Error: The operation would result in switching of module streams\n"
    keep(root, where, {module: stream})
    return 0, "Complete!\n", ""


def _versionlock(root: str, given: list[str]) -> Answer:
    lines = (read(root, LIST) or "").splitlines()
    for word in given[1:]:
        if given[0] == "add":
            name, _equals, version = _spec(root, word).partition("=")
            full = version if ":" in version else f"0:{version}"
            lines.append(f"{name}-{full}.*")
        else:
            lines = [line for line in lines if not line.startswith(f"{word}-")]
    os.makedirs(at(root, os.path.dirname(LIST)), exist_ok=True)
    put(root, LIST, "".join(f"{line}\n" for line in lines))
    return 0, "", ""


PROGRAMS_OF: dict[str, tuple[str, ...]] = {
    "debian": ("dpkg-query", "dpkg", "apt-get", "apt-cache", "apt-mark"),
    "ubuntu": ("dpkg-query", "dpkg", "apt-get", "apt-cache", "apt-mark"),
    "rocky": ("rpm", "dnf"),
}
