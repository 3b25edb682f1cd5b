# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts in memory whose package managers behave as apt, dnf and zypper do: an index, versions, holds, conflicts.

shelf = Shelf({"nvidia-utils-580-server": ["580.95.05-0ubuntu0.24.04.1"]})
host = apt_host(shelf)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Optional

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.unit import package_sources
from tests.unit.fake_host import FakeHost
from tests.unit.package_sources import Repository

STAMP = "/var/lib/bcd-hostconfig/package-index"
OS_RELEASE = {
    "ubuntu": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n',
    "debian": 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
    "rocky9": 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n',
    "rocky10": 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="10.0"\n',
    "fedora": "ID=fedora\nVERSION_ID=44\n",
    "leap": 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"\n',
}
Installing = Optional[Callable[["PackageHost", str], None]]


class Shelf:
    """What the repositories carry, oldest first of each name, and what is installed of it.

    `carried` becomes the index at a refresh, and what those of `net` carry (repositories by address) which a file of
    the host names. `conflicts` are names that go when one comes; `exact` what a package depends on at its own version;
    `streams` of the dnf module nvidia-driver map to the marks that a listing shows; `needs_stream` says which stream a
    package is only offered by.
    """

    def __init__(self, carried: dict[str, list[str]], fresh: bool = True) -> None:
        self.carried = carried
        self.index = {name: list(versions) for name, versions in carried.items()} if fresh else {}
        self.fresh = fresh
        self.installed: dict[str, str] = {}
        self.held: set[str] = set()
        self.broken: set[str] = set()
        self.conffiles: dict[str, tuple[str, str]] = {}  # a path and its text, which outlive their package
        self.left: dict[str, str] = {}  # versions of packages of which those are left
        self.locked = ""  # who has the database
        self.conflicts: dict[str, tuple[str, ...]] = {}
        self.exact: dict[str, tuple[str, ...]] = {}
        self.streams: dict[str, str] = {}
        self.needs_stream: dict[str, str] = {}
        self.lies = False  # exit 0, nothing done
        self.net: dict[str, Repository] = {}
        self.read: set[str] = set()  # the addresses whose index is there

    def refresh(self, whole: bool) -> None:
        """Take what was read into the index, and all that is `carried` too."""
        if whole:
            self.index = {name: list(versions) for name, versions in self.carried.items()}
        for address in sorted(self.read):
            for name, versions in self.net[address].carried.items():
                self.index[name] = list(dict.fromkeys((*versions, *self.carried.get(name, []))))


class PackageHost(FakeHost):
    """A host with a shelf; `on_install` is what a package brings to the host besides itself."""

    def __init__(self, shelf: Shelf, distribution: str, on_install: Installing = None) -> None:
        super().__init__({"/etc/os-release": OS_RELEASE[distribution], "/proc/sys/kernel/arch": "x86_64\n"})
        self.shelf = shelf
        self.on_install = on_install
        self.programs["find"] = find
        if shelf.fresh:
            self.put(STAMP, "The package index was refreshed when this file was written.\n")

    def write(self, path: str, text: str, mode: int) -> None:
        super().write(path, text, mode)
        if path == STAMP:
            self.shelf.fresh = True

    def come(self, name: str, version: str) -> None:
        """Install a package as somebody else would."""
        self.shelf.installed[name] = version
        self.shelf.broken.discard(name)
        self.shelf.left.pop(name, None)
        if name in self.shelf.conffiles:
            self.put(*self.shelf.conffiles[name])
        if self.on_install:
            self.on_install(self, name)


def find(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """`find PATH -mmin -10`: the path when it was written within that time."""
    shelf = of(host)
    return Answer(0, f"{argv[1]}\n" if shelf.fresh else "") if host.exists(argv[1]) else Answer(1, "", "no such file")


def of(host: FakeHost) -> Shelf:
    """The host's shelf."""
    assert isinstance(host, PackageHost)
    return host.shelf


def host_of(host: FakeHost) -> PackageHost:
    assert isinstance(host, PackageHost)
    return host


def age(host: PackageHost) -> None:
    """Eleven minutes go by."""
    host.shelf.fresh = False


# -- apt


def apt_host(shelf: Shelf, distribution: str = "ubuntu", on_install: Installing = None) -> PackageHost:
    """A host of the Debian family."""
    host = PackageHost(shelf, distribution, on_install)
    host.programs.update(
        {"dpkg-query": dpkg_query, "apt-cache": apt_cache, "apt-get": apt_get, "apt-mark": apt_mark, "dpkg": dpkg}
    )
    return host


def dpkg_query(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    globs = argv[4:] if argv[1] == "-W" else ("*",)
    rows, unknown = [], False
    for glob in globs:
        names = [name for name in sorted(shelf.installed) if fnmatchcase(name, glob)]
        unknown = unknown or not names
        for name in names:
            state = ("h" if name in shelf.held else "i") + ("F" if name in shelf.broken else "i")
            rows.append(f"{state} |{name}|{shelf.installed[name]}\n")
        left = [name for name in sorted(shelf.left) if fnmatchcase(name, glob)]
        rows += [f"rc |{name}|{shelf.left[name]}\n" for name in left]
    err = "dpkg-query: no packages found matching something\n" if unknown else ""
    return Answer(1 if unknown else 0, "".join(dict.fromkeys(rows)), err)


def apt_cache(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    broken = package_sources.conflict(host)
    if broken:
        return broken
    if argv[1] == "show":
        out = ""
        for spec in argv[2:]:
            name, _equals, version = spec.partition("=")
            depends = ", ".join(f"{below} (= {version})" for below in shelf.exact.get(name, ()))
            out += (
                f"Package: {name}\nVersion: {version}\n{f'Depends: {depends}' if depends else ''}\nDescription: x\n\n"
            )
        return Answer(0, out)
    where = "http://archive.example/ubuntu noble/restricted amd64 Packages"
    rows = [f"{name:>30} | {version} | {where}\n" for name in argv[2:] for version in shelf.index.get(name, [])[::-1]]
    return Answer(0, "".join(rows))


def apt_get(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    broken = package_sources.conflict(host)
    if broken:
        return broken
    if "update" in argv:
        answer = package_sources.apt_update(host, argv, shelf.net, shelf.read)
        shelf.refresh(whole="SourceList" not in " ".join(argv))
        return answer
    return _purge(host, argv) if "purge" in argv else _apt_install(host, argv)


def _purge(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    for name in argv[argv.index("purge") + 1 :]:
        assert name in shelf.left, name
        del shelf.left[name]
        host.files.pop(shelf.conffiles[name][0])
    return Answer(0, "")


def _apt_install(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    on_paper = "-s" in argv
    if shelf.locked and not on_paper:
        return Answer(100, "", f"E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by {shelf.locked}\n")
    if any(name.isdigit() for name in host.names("/var/lib/dpkg/updates")) and not on_paper:
        return Answer(100, "", "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'\n")
    come, gone, problem = _resolve(shelf, argv[argv.index("install") + 1 :], "--ignore-hold" in argv)
    if problem:
        unmet = f"The following packages have unmet dependencies:\n {problem}\n"
        return Answer(100, "", f"E: {problem}\n") if problem.startswith("Version") else Answer(100, unmet, HELD_BROKEN)
    if any(_is_older(shelf, *one) for one in come.items()) and "--allow-downgrades" not in argv:  # on paper too
        return Answer(100, "The following packages will be DOWNGRADED:\n", DOWNGRADED)
    if on_paper:
        lines = [f"Remv {name} [{shelf.installed[name]}]" for name in gone]
        lines += [f"Inst {name} ({version} x:1/y [amd64])" for name, version in come.items()]
        return Answer(0, "NOTE: This is only a simulation!\n" + "".join(f"{line}\n" for line in lines))
    touched = shelf.held & {*come, *gone}
    if touched and "--allow-change-held-packages" not in argv:
        said = "E: Held packages were changed and -y was used without --allow-change-held-packages.\n"
        return Answer(100, "", said)
    _transact(host, come, gone)
    return Answer(0, "")


DOWNGRADED = "E: Packages were downgraded and -y was used without --allow-downgrades.\n"
HELD_BROKEN = "E: Unable to correct problems, you have held broken packages.\n"


def _is_older(shelf: Shelf, name: str, version: str) -> bool:
    """Whether a version comes before the installed one on the shelf, which has the oldest first."""
    known = shelf.index[name]
    have = shelf.installed.get(name, "")
    return have in known and known.index(version) < known.index(have)


def _resolve(shelf: Shelf, specs: tuple[str, ...], free: bool) -> tuple[dict[str, str], list[str], str]:
    """As apt does: the newest of each dependency that is not named, and no conflict resolved against a hold."""
    come: dict[str, str] = {}
    gone = [spec[:-1] for spec in specs if spec.endswith("-")]
    for spec in specs:
        name, _equals, version = spec.partition("=")
        if spec.endswith("-"):
            continue
        if name not in shelf.index or (version and version not in shelf.index[name]):
            return {}, [], f"Version '{version}' for '{name}' was not found"
        come[name] = version or shelf.index[name][-1]
    for name in list(come):
        for below in shelf.exact.get(name, ()):
            have = come.get(below) or shelf.installed.get(below)
            if have != come[name]:
                picked = come.get(below) or shelf.index[below][-1]
                if picked != come[name]:
                    return {}, [], f"{name} : Depends: {below} (= {come[name]}) but {picked} is to be installed"
                come[below] = picked
    for name in come:
        for other in shelf.conflicts.get(name, ()):
            if other in shelf.installed and other not in gone:
                if other in shelf.held and not free:
                    return {}, [], f"{name} : Conflicts: {other} but it is to be installed"
                gone.append(other)
                gone += [above for above, belows in shelf.exact.items() if other in belows and above in shelf.installed]
    changed = {name: version for name, version in come.items() if shelf.installed.get(name) != version}
    return changed, list(dict.fromkeys(gone)), ""


def _transact(host: FakeHost, come: dict[str, str], gone: list[str]) -> None:
    shelf = of(host)
    if shelf.lies:
        return
    for name in gone:
        version = shelf.installed.pop(name, None)
        shelf.held.discard(name)
        if version and name in shelf.conffiles:
            shelf.left[name] = version
    for name, version in come.items():
        host_of(host).come(name, version)


def apt_mark(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    (shelf.held.update if argv[1] == "hold" else shelf.held.difference_update)(argv[2:])
    return Answer(0, "")


def dpkg(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    assert argv[-2:] == ("--configure", "-a"), argv
    of(host).broken.clear()
    for name in host.names("/var/lib/dpkg/updates"):
        host.files.pop(f"/var/lib/dpkg/updates/{name}")
    return Answer(0, "")


# -- rpm


def rpm(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """`rpm -qa --qf FORMAT GLOBS`."""
    shelf = of(host)
    rows = [
        f"{name}|{version if ':' in version else '0:' + version}\n"
        for name, version in sorted(shelf.installed.items())
        if any(fnmatchcase(name, glob) for glob in argv[4:])
    ]
    return Answer(0, "".join(rows))


def dnf_host(shelf: Shelf, distribution: str = "rocky9", on_install: Installing = None) -> PackageHost:
    """A host of the Red Hat family; Fedora has the fifth generation."""
    host = PackageHost(shelf, distribution, on_install)
    host.programs.update({"rpm": rpm, "dnf": dnf})
    if distribution == "fedora":
        host.links["/usr/bin/dnf"] = "dnf5"
    return host


def dnf(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    words = [word for word in argv[1:] if not word.startswith("-")]
    if _is_five(host) and any(word.startswith("--disableexcludes") for word in argv):
        return Answer(2, "", f'Unknown argument "--disableexcludes" for command "{words[0]}".\n')
    if words[0] == "makecache":
        answer = package_sources.dnf_makecache(host, argv, shelf.net, shelf.read)
        shelf.refresh(whole="--repo=" not in " ".join(argv))
        return answer
    if words[0] == "repoquery":
        if not shelf.index and "-C" in argv:
            return Answer(1, "", "Error: Cache-only enabled but no cache for 'cuda-rhel9-x86_64'\n")
        return _repoquery(host, argv, words[2:])
    if words[0] == "module":
        return _module(shelf, words[1:])
    if words[0] == "versionlock":
        return _versionlock(host, words[1], words[2:])
    assert words[0] == "install", argv
    return _dnf_install(host, argv, words[1:])


LOCKS_ASIDE = {"--disableplugin=versionlock", "--setopt=disable_excludes=*"}


def _is_five(host: FakeHost) -> bool:
    return host.links.get("/usr/bin/dnf") == "dnf5"


def _repoquery(host: FakeHost, argv: tuple[str, ...], names: list[str]) -> Answer:
    shelf, rows = of(host), ""
    for name in names:
        if name in package_sources.dnf_excluded(host, argv, _is_five(host)):
            continue
        stream = shelf.needs_stream.get(name)
        if stream and "[e]" not in shelf.streams.get(stream, "") and "--disable-modular-filtering" not in argv:
            continue
        for version in shelf.index.get(name, []):
            if _is_locked(host, name, version) and not LOCKS_ASIDE & {*argv}:
                continue
            rows += f"{name}|{version if ':' in version else '0:' + version}|cuda-rhel9-x86_64\n\n"
    return Answer(0, rows)


def _module(shelf: Shelf, words: list[str]) -> Answer:
    if words[0] == "list":
        if not shelf.streams:
            return Answer(1, "", "Error: No matching Modules to list\n")
        rows = [
            f"{'nvidia-driver':<16}{f'{name} {marks}'.strip():<20}default [d], fm, ks, src   Nvidia driver for {name}\n"
            for name, marks in shelf.streams.items()
        ]
        head = "cuda-rhel9-x86_64\nName            Stream              Profiles                  Summary\n"
        return Answer(0, head + "".join(rows) + "\nHint: [d]efault, [e]nabled, [x]disabled, [i]nstalled\n")
    if words[0] == "reset":
        shelf.streams = {name: marks.replace("[e]", "").replace("[x]", "") for name, marks in shelf.streams.items()}
        return Answer(0, "")
    wanted = words[1].partition(":")[2]
    if any("[e]" in marks for name, marks in shelf.streams.items() if name != wanted):
        return Answer(
            1, "", "Error: It is not possible to switch enabled streams of a module unless explicitly enabled\n"
        )
    shelf.streams[wanted] += "[e]"
    return Answer(0, "")


def _spec(shelf: Shelf, spec: str) -> tuple[str, str]:
    """A name, or name-epoch:version-release."""
    if spec in shelf.index:
        return spec, shelf.index[spec][-1]
    for name, versions in shelf.index.items():
        for version in versions:
            if spec in (f"{name}-{version}", f"{name}-0:{version}"):
                return name, version
    return "", ""


def _dnf_install(host: FakeHost, argv: tuple[str, ...], specs: list[str]) -> Answer:
    shelf = of(host)
    come, gone = {}, []
    for spec in specs:
        name, version = _spec(shelf, spec)
        stream = shelf.needs_stream.get(name)
        if name in package_sources.dnf_excluded(host, argv, _is_five(host)):
            return Answer(1, "", f"All matches were filtered out by exclude filtering for argument: {spec}\n")
        if not name or (stream and "[e]" not in shelf.streams.get(stream, "")):
            return Answer(1, "", f"No match for argument: {spec}\nError: Unable to find a match: {spec}\n")
        if _is_locked(host, name, version):
            return Answer(1, "", f"Error: Unable to find a match: {spec} (excluded by versionlock)\n")
        come[name] = version
        gone += [other for other in shelf.conflicts.get(name, ()) if other in shelf.installed]
    if gone and "--allowerasing" not in argv:
        return Answer(1, "", "Error: Problem: conflicting requests (try to add '--allowerasing')\n")
    _transact(host, come, gone)
    return Answer(0, "")


def _locks(host: FakeHost) -> tuple[str, str]:
    path = "/etc/dnf/versionlock.toml" if host.links.get("/usr/bin/dnf") else "/etc/dnf/plugins/versionlock.list"
    return path, host.text(path) or ""


def _is_locked(host: FakeHost, name: str, version: str) -> bool:
    """Whether a lock keeps this version of the name out."""
    path, text = _locks(host)
    if path.endswith(".toml"):
        found = re.findall(rf'name = "{re.escape(name)}"[^\[]*\[\[packages.conditions\]\][^\[]*value = "([^"]*)"', text)
        return bool(found) and version not in found
    found = re.findall(rf"^{re.escape(name)}-(\d+:\S+?)\.\*$", text, re.MULTILINE)
    return bool(found) and (version if ":" in version else f"0:{version}") not in found


def _versionlock(host: FakeHost, verb: str, specs: list[str]) -> Answer:
    path, text = _locks(host)
    if path.endswith(".list") and "python3-dnf-plugin-versionlock" not in of(host).installed:
        return Answer(1, "", "No such command: versionlock. It could be a DNF plugin command\n")
    for spec in specs:
        if verb == "delete" and path.endswith(".list"):
            text = re.sub(rf"(?m)^(# Added lock on .*\n)?{re.escape(spec)}-\d+:.*\n", "", text)
        elif verb == "delete":
            text = re.sub(rf'\n?\[\[packages\]\]\nname = "{re.escape(spec)}"\n(?:(?!\[\[packages\]\]).*\n?)*', "", text)
        elif path.endswith(".list"):
            name, version = _spec(of(host), spec)
            version = version if ":" in version else f"0:{version}"
            text += f"# Added lock on Mon Nov 30 10:00:00 2026\n{name}-{version}.*\n"
        else:
            name, version = _spec(of(host), spec)
            text = text or 'version = "1.0"\n'
            text += f'\n[[packages]]\nname = "{name}"\ncomment = "Added by \'versionlock add\' command"\n\n'
            text += f'[[packages.conditions]]\nkey = "evr"\ncomparator = "="\nvalue = "{version}"\n'
    host.put(path, text)
    return Answer(0, "")


def zypper_host(shelf: Shelf, on_install: Installing = None) -> PackageHost:
    """A host of the SUSE family."""
    host = PackageHost(shelf, "leap", on_install)
    host.programs.update({"rpm": rpm, "zypper": zypper})
    return host


def zypper(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    shelf = of(host)
    words = [word for word in argv[1:] if not word.startswith("-")]
    verb, specs = words[0], words[1:]
    if verb == "refresh":
        shelf.index = {name: list(versions) for name, versions in shelf.carried.items()}
    elif verb == "search":
        return _search(shelf, [spec for spec in specs if spec != "package"])
    elif verb == "addlock":
        text = host.text("/etc/zypp/locks") or ""
        for name in specs:
            text += f"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {name}\n"
        host.put("/etc/zypp/locks", text)
    elif verb == "removelock":
        text = host.text("/etc/zypp/locks") or ""
        for name in specs:
            text = text.replace(f"\ntype: package\nmatch_type: glob\ncase_sensitive: on\nsolvable_name: {name}\n", "")
        host.put("/etc/zypp/locks", text)
    elif verb == "install":
        return _zypper_install(host, specs)
    return Answer(0, "")


def _search(shelf: Shelf, names: list[str]) -> Answer:
    rows = ""
    for name in names:
        if name in shelf.installed and shelf.installed[name] not in shelf.index.get(name, []):
            rows += _solvable("installed", name, shelf.installed[name], "(System Packages)")
        for version in shelf.index.get(name, []):
            status = "installed" if shelf.installed.get(name) == version else "other-version"
            rows += _solvable(status, name, version, "cuda-sles15-x86_64")
    xml = f"<?xml version='1.0'?>\n<stream>\n<search-result version=\"0.0\">\n<solvable-list>\n{rows}</solvable-list>\n"
    return Answer(0 if rows else 104, f"{xml}</search-result>\n</stream>\n")


def _solvable(status: str, name: str, edition: str, repository: str) -> str:
    return (
        f'<solvable status="{status}" name="{name}" kind="package" edition="{edition}" arch="x86_64" '
        f'repository="{repository}"/>\n'
    )


def _zypper_install(host: FakeHost, specs: list[str]) -> Answer:
    shelf = of(host)
    locks = re.findall(r"^solvable_name: (\S+)$", host.text("/etc/zypp/locks") or "", re.MULTILINE)
    come, gone = {}, [spec[1:] for spec in specs if spec.startswith("!")]
    for spec in specs:
        name, _equals, version = spec.partition("=")
        if spec.startswith("!"):
            continue
        if any(fnmatchcase(name, lock) for lock in locks):
            return Answer(4, "", f"Problem: the package {name} is locked\n")
        if name not in shelf.index or (version and version not in shelf.index[name]):
            return Answer(104, "", f"No provider of '{spec}' found.\n")
        come[name] = version or shelf.index[name][-1]
        if any(other in shelf.installed and other not in gone for other in shelf.conflicts.get(name, ())):
            return Answer(4, "", f"Problem: {name} conflicts with something that is installed\n")
    _transact(host, come, gone)
    return Answer(102, "Reboot is suggested to ensure that your system benefits from these updates.\n")
