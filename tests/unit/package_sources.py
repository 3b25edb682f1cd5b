# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repositories on the net, and hosts that name them in files: what apt and dnf then read, and what they say.

The words and exit statuses of apt are those of apt 2.6.1 over a repository made for it, whose key had expired or was
another one, or which could not be reached; those of sqv are Debian 13's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.unit.fake_host import FakeHost

# Public keys made for these tests; their private halves were thrown away.
KEY = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaw3nCBYJKwYBBAHaRw8BAQdA57Lg7nH60VCNHUrQZskf8/uGaOEaHiajR7+B
L3YyR/W0K0V4YW1wbGUgcGFja2FnZXMgb25lIDxwYWNrYWdlc0BvbmUuZXhhbXBs
ZT6IkAQTFggAOBYhBGn3JGq8LFPmKWmy0pK8Hjf49Bg9BQJrDecIAhsDBQsJCAcC
BhUKCQgLAgQWAgMBAh4BAheAAAoJEJK8Hjf49Bg9XWgBAO5kGWWIiMDj4hUFA8El
0khrYOwEhjf9mgQ2Bxst7uOjAPwOSAn513VPHt/+ZMkOFLo9ULefMjD3kkoXVNye
ctlYDQ==
=7V5G
-----END PGP PUBLIC KEY BLOCK-----
"""
OTHER_KEY = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaw3nCBYJKwYBBAHaRw8BAQdAYrpDcWC+MgumlY1LvAi+wd7EZ1VgXoyJcQje
rRU/wTq0K0V4YW1wbGUgcGFja2FnZXMgdHdvIDxwYWNrYWdlc0B0d28uZXhhbXBs
ZT6IkAQTFggAOBYhBF7kaTs0Ok3rSQ0tZLfbU1jZNPdwBQJrDecIAhsDBQsJCAcC
BhUKCQgLAgQWAgMBAh4BAheAAAoJELfbU1jZNPdwWt0BAORcneeBmL17w9raG7fA
BohOkT8JkV8nYPm5SukTCMW4AQCDMyrtxL5riPUFK2RoSb7Kku8CyA817hKeeTHt
+68SAw==
=uCty
-----END PGP PUBLIC KEY BLOCK-----
"""
SIGNATURE = """-----BEGIN PGP SIGNATURE-----

iIsEABYIADMWIQRp9yRqvCxT5ilpstKSvB43+PQYPQUCaw3nCBUccGFja2FnZXNA
b25lLmV4YW1wbGUACgkQkrweN/j0GD2LYQD8DZzyEw4ksoQ8/mGJ2oBTJkAWGgja
EPbeHQc/cXMAvgsA/0G7AvPIUnRHhetTfLuumeh5jxL0oXxe5UxZWSltkBUB
=7+Xb
-----END PGP SIGNATURE-----
"""
EXPIRED = (
    "The following signatures were invalid: EXPKEYSIG 234654DA9A296436 isv:kubernetes OBS Project <isv:kubernetes@x>"
)
UNKNOWN = (
    "The following signatures couldn't be verified because the public key is not available: NO_PUBKEY 234654DA9A29"
)
SQV = (
    "Sub-process /usr/bin/sqv returned an error code (1), error message is: Error: Policy rejected packet type "
    "Caused by: Signature Packet v3 is not considered secure since 2026-02-01T00:00:00Z"
)
UNREACHABLE = "Could not connect to pkgs.k8s.io:443 (34.107.204.206). - connect (111: Connection refused)"
SIGNED = (EXPIRED, UNKNOWN, SQV)
IGNORED = "Some index files failed to download. They have been ignored, or old ones used instead."


class Repository(NamedTuple):
    """What a repository carries, oldest first of each name; the key that it is signed with; what keeps it from being
    read, in apt's words, "" for nothing."""

    carried: dict[str, list[str]]
    key: str = KEY
    wrong: str = ""


class Named(NamedTuple):
    """A repository as a file of a host names it: the address, the file of the key for apt, the id and the excluded
    names for dnf."""

    address: str
    key: str = ""
    name: str = ""
    excluded: tuple[str, ...] = ()


def apt_sources(host: FakeHost, only: str = "") -> list[Named]:
    """What the source files name, or one of them."""
    found = []
    paths = [only] if only else [path for path in host.files if path.startswith("/etc/apt/sources.list")]
    for path in sorted(paths):
        text = host.text(path) or ""
        if path.endswith(".list"):
            for options, address in re.findall(r"^deb (?:\[([^]]*)\] )?(\S+) \S+", text, re.MULTILINE):
                found.append(Named(address.rstrip("/"), dict([options.split("=")])["signed-by"] if options else ""))
        elif path.endswith(".sources"):
            fields = dict(re.findall(r"^(\S+): (.*)$", text, re.MULTILINE))
            found.append(Named(fields["URIs"].rstrip("/"), fields.get("Signed-By", "")))
    return found


def conflict(host: FakeHost) -> Answer | None:
    """What apt says when two files name one repository under different keys, to whatever it is asked."""
    seen: dict[str, str] = {}
    for one in apt_sources(host):
        if seen.setdefault(one.address, one.key) != one.key:
            said = f"E: Conflicting values set for option Signed-By regarding source {one.address}/ /: {one.key} != x\n"
            return Answer(100, "", f"{said}E: The list of sources could not be read.\n")
    return None


def apt_update(host: FakeHost, argv: tuple[str, ...], net: dict[str, Repository], read: set[str]) -> Answer:
    """`apt-get update`, of one file with Dir::Etc::SourceList; adds the addresses that were read to `read`."""
    options = dict(word.split("=", 1) for word in argv if word.startswith(("Dir::", "APT::")))
    strict = options.get("APT::Update::Error-Mode") == "any"
    only = options.get("Dir::Etc::SourceList", "")
    assert not only or options["Dir::Etc::SourceParts"] == "/dev/null", "the other sources are read too"
    assert not only or options["APT::Get::List-Cleanup"] == "0", "the index of all other sources is thrown away"
    rc, err = 0, ""
    for one in apt_sources(host, only):
        wrong = _wrong(host, one, net)
        if not wrong:
            read.add(one.address)
            continue
        url = f"{one.address}/InRelease"
        if wrong in SIGNED and one.address not in read:
            rc, err = 100, f"{err}W: GPG error: {one.address}  InRelease: {wrong}\nE: The repository '{one.address}"
            err += "  InRelease' is not signed.\n"
        else:
            letter = "E" if strict else "W"
            rc = 100 if strict else rc
            err += f"{letter}: Failed to fetch {url}  {wrong}\n{letter}: {IGNORED}\n"
    return Answer(rc, "Reading package lists...\n", err)


def _wrong(host: FakeHost, one: Named, net: dict[str, Repository]) -> str:
    there = net.get(one.address)
    if there is None:
        return UNREACHABLE
    return there.wrong or ("" if host.text(one.key) == there.key else UNKNOWN)


# -- dnf


def dnf_sources(host: FakeHost) -> list[Named]:
    """What the repository files name."""
    found = []
    for path in sorted(path for path in host.files if path.startswith("/etc/yum.repos.d/")):
        for name, body in re.findall(r"^\[(.+)\]\n((?:(?!\[).*\n?)*)", host.text(path) or "", re.MULTILINE):
            fields = dict(re.findall(r"^(\w+)=(.*)$", body, re.MULTILINE))
            excluded = tuple(fields.get("exclude", "").split())
            found.append(Named(fields["baseurl"].rstrip("/"), fields.get("gpgkey", ""), name, excluded))
    return found


def dnf_makecache(host: FakeHost, argv: tuple[str, ...], net: dict[str, Repository], read: set[str]) -> Answer:
    """`dnf makecache`, of one repository with --repo; fails for one that cannot be read."""
    only = next((word.partition("=")[2] for word in argv if word.startswith("--repo=")), "")
    found = [one for one in dnf_sources(host) if only in ("", one.name)]
    if only and not found:
        return Answer(1, "", f"Error: Unknown repo: '{only}'\n")
    for one in found:
        there = net.get(one.address)
        if there is None or there.wrong:
            why = there.wrong if there else "Cannot download repomd.xml: Curl error (7): Couldn't connect to server"
            return Answer(1, "", f"Error: Failed to download metadata for repo '{one.name}': {why}\n")
        read.add(one.address)
    return Answer(0, "Metadata cache created.\n")


def dnf_excluded(host: FakeHost, argv: tuple[str, ...], five: bool) -> set[str]:
    """The names that the repository files exclude and the options do not let in."""
    lifted = {word.partition("=")[2] for word in argv if word.startswith("--disableexcludes=")}
    if five:
        lifted = {word.rpartition("=")[2] for word in argv if word.startswith("--setopt=disable_excludes=")}
    lets_all = lifted & {"all", "*"}
    return {name for one in dnf_sources(host) if one.name not in lifted and not lets_all for name in one.excluded}
