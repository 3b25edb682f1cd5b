# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The package repository of Kubernetes as a simulated host sees it: one for each minor release, at its true address.

What it offers is known to a host once a file of package sources names it and the index was refreshed since.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import NamedTuple

from .machine import keep, names, read, state, there
from .repositories import Offered

READ = "/var/lib/sim/kubernetes-repositories.json"  # what the last refresh read
PATCHES = {"1.31": ("1.31.13", "1.31.14"), "1.32": ("1.32.2", "1.32.3"), "1.36": ("1.36.1", "1.36.2")}
ORIGIN = "https://pkgs.k8s.io/core:/stable:/v{}/{}"
KEY = (
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n"
    + base64.encodebytes(b"\x99\x01\x0d\x04" + bytes(268)).decode()
    + "=AAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"
)
LINE = re.compile(r"^deb (?:\[signed-by=(\S+)\] )?https://pkgs\.k8s\.io/core:/stable:/v([\d.]+)/deb/ /")
KINDS = {"ubuntu": "deb", "debian": "deb", "rocky": "rpm"}


class Named(NamedTuple):
    """A source that names the repository of a minor: dnf's id ("" of apt), whether it keeps packages from updates, the
    file of its key ("" where none is named)."""

    minor: str
    name: str = ""
    excludes: bool = False
    key: str = ""


def packages(distribution: str) -> tuple[Offered, ...]:
    """All that all of them offer."""
    kind = KINDS.get(distribution)
    build = "1.1" if kind == "deb" else "150500.1.1"
    found: list[Offered] = []
    for minor, patches in PATCHES.items() if kind else ():
        origin = ORIGIN.format(minor, kind)
        for patch in patches:
            kubelet = ("program:kubelet", "service:kubelet.service")
            found += [
                Offered("kubelet", f"{patch}-{build}", ("kubernetes-cni",), brings=kubelet, origin=origin),
                Offered("kubeadm", f"{patch}-{build}", ("cri-tools",), brings=("program:kubeadm",), origin=origin),
                Offered("kubectl", f"{patch}-{build}", brings=("program:kubectl",), origin=origin),
            ]
        found += [Offered("cri-tools", f"{minor}.0-{build}", origin=origin)]
        plugin = ("file:/opt/cni/bin/loopback",)
        found += [Offered("kubernetes-cni", f"1.{minor[2:]}.0-{build}", brings=plugin, origin=origin)]
    return tuple(found)


def refresh(root: str, only: str = "") -> str:
    """Read what the sources name, all or one file's or id's; what went wrong with the first that could not be read."""
    found = [one for one in _named(root) if only in ("", one[0], one[1].name)]
    known = state(root, READ).get("read", []) if only else []
    fault = ""
    for _path, source in found:
        if source.key and not there(root, source.key):
            fault = fault or (
                f"W: GPG error: {ORIGIN.format(source.minor, 'deb')}  InRelease: The following signatures couldn't be "
                "verified because the public key is not available: NO_PUBKEY 234654DA9A296436\n"
            )
        elif source.minor in PATCHES and list(source) not in known:
            known.append(list(source))
    keep(root, READ, {"read": known})
    return fault


def visible(root: str, offers: tuple[Offered, ...], argv: list[str]) -> tuple[Offered, ...]:
    """Those that the index has, less what a repository excludes, unless the command lifts that."""
    sources = [Named(*one) for one in state(root, READ).get("read", [])]
    named_now = {source for _path, source in _named(root)}
    shown = {
        source.minor
        for source in sources
        if source in named_now and (not source.excludes or f"--disableexcludes={source.name}" in argv)
    }
    return tuple(one for one in offers if "pkgs.k8s.io" not in one.origin or _minor(one.origin) in shown)


def answer(url: str) -> tuple[int, str]:
    """What its address answers over https."""
    found = re.fullmatch(r"https://pkgs\.k8s\.io/core:/stable:/v(1\.\d+)/deb/Release\.key", url)
    return (200, KEY) if found and found.group(1) in PATCHES else (403, "AccessDenied\n")


def _minor(origin: str) -> str:
    found = re.search(r"/v(1\.\d+)/", origin)
    return found.group(1) if found else ""


def _named(root: str) -> Iterator[tuple[str, Named]]:
    for name in names(root, "/etc/apt/sources.list.d"):
        path = f"/etc/apt/sources.list.d/{name}"
        for line in (read(root, path) or "").splitlines():
            found = re.search(
                r"^deb (?:\[signed-by=(\S+)\] )?https://pkgs\.k8s\.io/core:/stable:/v([\d.]+)/deb/ /", line
            )
            if found:
                yield path, Named(found.group(2), key=found.group(1) or "")
    for name in names(root, "/etc/yum.repos.d"):
        path = f"/etc/yum.repos.d/{name}"
        parts = re.split(r"^\[(.+)\]$", read(root, path) or "", flags=re.MULTILINE)
        for section, body in zip(parts[1::2], parts[2::2]):
            found = re.search(r"^baseurl=https://pkgs\.k8s\.io/core:/stable:/v([\d.]+)/rpm/", body, re.MULTILINE)
            if found:
                yield path, Named(found.group(1), section, "exclude=" in body)
