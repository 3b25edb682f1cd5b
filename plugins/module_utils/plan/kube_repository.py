# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The repository of a minor release of Kubernetes, one for each: its files on a host, its key, and who else names it.

apt reads one repository under one key only: where another file names the same address with another Signed-By, it
reads none of its sources any more. So a repository that is named already is used as it is, and not named again.
"""

from __future__ import annotations

import base64
import binascii
import re

from ..core.errors import Refused
from .files import HEADER
from .kube_packages import ID, KEY
from .kube_served import Elsewhere
from .unit_names import K8S_JOIN as UNIT

# What its makers have excluded from updates: a kubelet is upgraded by its own rules, and in an order.
EXCLUDED = "kubelet kubeadm kubectl cri-tools kubernetes-cni"
LISTS = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
REPOS = ("/etc/yum.repos.d",)


def address(minor: str, kind: str) -> str:
    """Where the repository of "1.31" is; `kind` is "deb" or "rpm"."""
    return f"https://pkgs.k8s.io/core:/stable:/v{minor}/{kind}/"


def key_address(minor: str) -> str:
    """Where its key is, ASCII-armoured."""
    return f"{address(minor, 'deb')}Release.key"


def source(minor: str) -> str:
    """The source file for apt; every version of apt reads this form."""
    return f"{HEADER}deb [signed-by={KEY}] {address(minor, 'deb')} /\n"


def repo(minor: str) -> str:
    """The repository file for dnf, which fetches the key by itself where it lacks it."""
    where = address(minor, "rpm")
    return (
        f"{HEADER}[{ID}]\nname=Kubernetes {minor}\nbaseurl={where}\nenabled=1\ngpgcheck=1\n"
        f"gpgkey={where}repodata/repomd.xml.key\nexclude={EXCLUDED}\n"
    )


BLOCK = re.compile(
    r"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n((?:[!-9;-~]+: .*\r?\n)*)\r?\n"
    r"([A-Za-z0-9+/=\r\n]+)-----END PGP PUBLIC KEY BLOCK-----\s*"
)


def armoured(text: str, url: str) -> str:
    """The text of a fetched key; raises Refused, saying what it is, for one that is no ASCII-armoured public key.

    One or more blocks, each of base64 with its checksum behind it, whose first packet is a public key (RFC 9580,
    sections 4.2 and 5.5.1.1: type 6, in either form of a packet's header).
    """
    at = 0
    while at < len(text):
        block = BLOCK.match(text, at)
        if block is None or not _is_public_key(block.group(2)):
            break
        at = block.end()
    if at and at == len(text):
        return text
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    looks = f"begins with {first[:60]!r}" if first else "is empty"
    if "BEGIN PGP PUBLIC KEY BLOCK" in first:
        looks = "is only a part of one, or damaged"
    raise Refused(
        f"{UNIT}: what {url} answers with is no ASCII-armoured OpenPGP public key, it {looks}: see what answers in its "
        "place (a proxy, a login page)"
    )


def _is_public_key(body: str) -> bool:
    lines = body.split()
    if lines and re.fullmatch(r"=[A-Za-z0-9+/]{4}", lines[-1]):
        lines.pop()
    try:
        packets = base64.b64decode("".join(lines), validate=True)
    except binascii.Error:
        return False
    first = packets[0] if packets else 0
    return (first & 0xC0 == 0xC0 and first & 0x3F == 6) or (first & 0xC0 == 0x80 and (first & 0x3C) >> 2 == 6)


# -- who else names it


def named_in(path: str, text: str, minor: str) -> Elsewhere | None:
    """Whether a file of package sources names the repository of the minor, and enables it."""
    if path.endswith(".repo"):
        return _in_repo(path, text, address(minor, "rpm"))
    found = _deb822_addresses(text) if path.endswith(".sources") else _list_addresses(text)
    return Elsewhere(path) if _plain(address(minor, "deb")) in found else None


def _plain(where: str) -> str:
    return where.rstrip("/")


def _list_addresses(text: str) -> set[str]:
    """Lines `deb [options] address suite ...`."""
    lines = re.findall(r"^[ \t]*deb[ \t]+(?:\[[^\]]*\][ \t]*)?(\S+)", text, re.MULTILINE)
    return {_plain(where) for where in lines}


def _deb822_addresses(text: str) -> set[str]:
    """Stanzas of `Field: value`, values going on over indented lines; those that are enabled and are of packages."""
    found: set[str] = set()
    for stanza in re.split(r"\n[ \t]*\n", re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)):
        fields = {
            name.lower(): value.split()
            for name, value in re.findall(r"^([A-Za-z-]+):(.*(?:\n[ \t]+\S.*)*)", stanza, re.MULTILINE)
        }
        off = [word.lower() for word in fields.get("enabled", [])] in (["no"], ["false"], ["without"], ["off"], ["0"])
        if "deb" in fields.get("types", []) and not off:
            found |= {_plain(where) for where in fields.get("uris", [])}
    return found


def _in_repo(path: str, text: str, where: str) -> Elsewhere | None:
    """Sections `[id]` of `key=value`."""
    parts = re.split(r"^\[([^\]\n]+)\][ \t]*$", text, flags=re.MULTILINE)
    for name, body in zip(parts[1::2], parts[2::2]):
        values = dict(re.findall(r"^[ \t]*(\w+)[ \t]*=[ \t]*(.*(?:\n[ \t]+\S.*)*)", body, re.MULTILINE))
        addresses = {_plain(word) for word in re.split(r"[\s,]+", values.get("baseurl", ""))}
        if _plain(where) in addresses and values.get("enabled", "1").strip().lower() not in ("0", "no", "false", "off"):
            return Elsewhere(path, name)
    return None
