# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package managers of `driver_machine`: apt, dnf and zypper as far as a driver's installation goes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.unit.fake_host import FakeHost, Killed, Program

if TYPE_CHECKING:
    from tests.unit.driver_machine import DriverMachine

LIST = "/etc/dnf/plugins/versionlock.list"
LOCKS = "/etc/zypp/locks"


def _machine(host: FakeHost) -> DriverMachine:
    return cast("DriverMachine", host)


def _matching(host: FakeHost, argv: tuple[str, ...]) -> list[str]:
    from tests.unit.driver_machine import matching

    return matching(_machine(host).packages, argv)


# -- apt


def find(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    return Answer(0, f"{argv[1]}\n") if argv[1] in host.files else Answer(1, "", "find: no such file\n")


def dpkg_query(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    machine = _machine(host)
    names = argv[4:] if argv[1] == "-W" else ("*",)
    rows = "".join(
        f"{'h' if name in machine.held else 'i'}{'F' if name in machine.broken else 'i'} "
        f"|{name}|{machine.packages[name]}\n"
        for name in _matching(host, names)
    )
    return Answer(0 if rows or names == ("*",) else 1, rows)


def apt_cache(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    source = "http://archive.example.org noble/main amd64 Packages"
    repo = _machine(host).repo
    return Answer(
        0, "".join(f" {name} | {version} | {source}\n" for name in argv[2:] for version in repo.get(name, ()))
    )


def apt_get(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    machine = _machine(host)
    if "install" not in argv:
        return Answer(0, "")
    specs = argv[argv.index("install") + 1 :]
    wanted = {}
    for spec in specs:
        name, _equals, version = spec.partition("=")
        offered = machine.repo.get(name, ())
        if not offered or (version and version not in offered):
            return Answer(100, "", f"E: Version '{version}' for '{name}' was not found\n")
        wanted[name] = version or offered[-1]
        have = machine.packages.get(name, "")
        is_older = have in offered and offered.index(wanted[name]) < offered.index(have)
        if is_older and "--allow-downgrades" not in argv:  # on paper too
            return Answer(100, "", "E: Packages were downgraded and -y was used without --allow-downgrades.\n")
    if "-s" in argv:
        return Answer(0, "".join(f"Inst {name} ({version} x [amd64])\n" for name, version in wanted.items()))
    blocked = sorted(set(wanted) & machine.held)
    if blocked:
        return Answer(100, "", "E: Held packages were changed and -y was used without --allow-change-held-packages.\n")
    if machine.broken:
        return Answer(100, "", "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'\n")
    for count, (name, version) in enumerate(wanted.items(), 1):
        machine.unpack(name, version)
        if count == machine.killed_after:
            machine.killed_after = 0
            machine.broken.add(name)
            raise Killed(" ".join(argv))
    return Answer(0, "")


def dpkg(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert argv[-2:] == ("--configure", "-a")
    _machine(host).broken.clear()
    return Answer(0, "")


def apt_mark(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    held = _machine(host).held
    (held.update if argv[1] == "hold" else held.difference_update)(argv[2:])
    return Answer(0, "")


# -- rpm, dnf


def rpm(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    packages = _machine(host).packages
    rows = ((name, packages[name]) for name in _matching(host, argv[4:]))
    return Answer(0, "".join(f"{name}|{version if ':' in version else '0:' + version}\n" for name, version in rows))


def dnf(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    machine = _machine(host)
    if "repoquery" in argv:
        names = argv[argv.index("--queryformat") + 2 :]
        rows = ((name, version) for name in names for version in machine.repo.get(name, ()))
        return Answer(
            0, "".join(f"{name}|{version if ':' in version else '0:' + version}|cuda\n" for name, version in rows)
        )
    if "module" in argv:
        return _module(machine, argv[argv.index("module") + 1 :])
    if "versionlock" in argv:
        return _versionlock(machine, argv[argv.index("versionlock") + 1 :])
    if "install" in argv:
        return _install_specs(machine, [word for word in argv[argv.index("install") + 1 :] if not word.startswith("-")])
    return Answer(0, "")


def _module(machine: DriverMachine, words: tuple[str, ...]) -> Answer:
    if words[0] == "list":
        rows = "".join(
            f"nvidia-driver {name}{marks}  default  NVIDIA driver\n" for name, marks in machine.streams.items()
        )
        return Answer(0 if rows else 1, f"cuda\nName Stream Profiles Summary\n{rows}\nHint: [d]efault, [e]nabled\n")
    if words[0] == "reset":
        machine.streams = {name: marks.replace(" [e]", "") for name, marks in machine.streams.items()}
        return Answer(0, "")
    stream = words[1].partition(":")[2]
    if any("[e]" in marks for name, marks in machine.streams.items() if name != stream):
        return Answer(1, "", "It is not possible to switch enabled streams of a module\n")
    machine.streams[stream] += " [e]"
    return Answer(0, "")


def _install_specs(machine: DriverMachine, specs: list[str]) -> Answer:
    for spec in specs:
        pairs = [(name, version) for name, found in machine.repo.items() for version in found]
        found = next(((name, version) for name, version in pairs[::-1] if spec in (f"{name}-{version}", name)), None)
        if found is None:
            return Answer(1, "", f"Error: Unable to find a match: {spec}\n")
        machine.unpack(*found)
        if found[0].startswith("kmod-nvidia"):
            for rival in {"kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"} - {found[0]}:
                machine.erase(rival)
    return Answer(0, "")


def _versionlock(machine: DriverMachine, words: tuple[str, ...]) -> Answer:
    lines = (machine.text(LIST) or "").splitlines()
    if words[0] == "add":
        for spec in words[1:]:
            name = next(name for name in machine.packages if re.fullmatch(re.escape(name) + r"-[\d:].*", spec))
            rest = spec[len(name) + 1 :]
            lines.append(f"{name}-{rest if ':' in rest else '0:' + rest}.*")
    else:
        lines = [line for line in lines if re.sub(r"-\d+:.*", "", line) not in words[1:]]
    machine.put(LIST, "".join(f"{line}\n" for line in lines))
    return Answer(0, "")


# -- zypper


def zypper(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    machine = _machine(host)
    if "search" in argv:
        rows = ((name, version) for name in argv for version in machine.repo.get(name, ()))
        solvables = "".join(
            f'<solvable status="not-installed" name="{name}" kind="package" edition="{version}" repository="nvidia"/>\n'
            for name, version in rows
        )
        return Answer(0 if solvables else 104, f"<stream>{solvables}</stream>")
    if "install" in argv:
        specs = [word for word in argv[argv.index("install") + 1 :] if not word.startswith("-")]
        for gone in [spec[1:] for spec in specs if spec.startswith("!")]:
            machine.erase(gone)
        return _install_specs(machine, [spec.replace("=", "-", 1) for spec in specs if not spec.startswith("!")])
    if "addlock" in argv:
        entries = (
            f"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {name}\n"
            for name in argv[argv.index("addlock") + 1 :]
        )
        machine.put(LOCKS, (machine.text(LOCKS) or "") + "".join(entries))
    if "removelock" in argv:
        names = argv[argv.index("removelock") + 1 :]
        entries_left = [
            entry
            for entry in (machine.text(LOCKS) or "").split("\n\n")
            if not any(f"solvable_name: {name}" in entry for name in names)
        ]
        machine.put(LOCKS, "\n\n".join(entries_left))
    return Answer(0, "")


APT: dict[str, Program] = {
    "find": find,
    "dpkg-query": dpkg_query,
    "dpkg": dpkg,
    "apt-cache": apt_cache,
    "apt-get": apt_get,
    "apt-mark": apt_mark,
}
RPM: dict[str, Program] = {"find": find, "rpm": rpm}
PROGRAMS: dict[str, dict[str, Program]] = {
    "apt": APT,
    "dnf": {**RPM, "dnf": dnf},
    "zypper": {**RPM, "zypper": zypper},
}
