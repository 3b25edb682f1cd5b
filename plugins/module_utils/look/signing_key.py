# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The private key with which root signs for this node, where root keeps it."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.host import Host

MARK = "PRIVATE KEY-----"  # of every private key in PEM form


def signing_key(host: Host, path: str) -> str:
    """The key's text; raises Refused for a file that another account could read, write or put in its place."""
    if not path.startswith("/") or "/../" in f"{path}/":
        raise Refused(f"signing_key is {path!r}: give the whole path of the key on the host, from /")
    seen = host.file(path)
    if seen is None:
        raise Refused(f"{path} is not there, and signing_key names it: write the node's private key there")
    if not seen.regular or seen.uid != 0 or seen.mode & 0o022:
        raise Refused(f"{path} must be a regular file root owns that no one else can write")
    if seen.mode & 0o044:
        raise Refused(f"{path} is a private key that others can read: take their permission away (mode 0600)")
    _refuse_open_directories(host, path)
    if MARK not in seen.text:
        raise Refused(f"{path} is no private key in PEM form: write the node's key there")
    return seen.text


def _refuse_open_directories(host: Host, path: str) -> None:
    """Who can write a directory above can put another file in the key's place."""
    above = path.rpartition("/")[0]
    while True:
        seen = host.file(above or "/")
        if seen is not None and (seen.uid != 0 or seen.mode & 0o022):
            raise Refused(
                f"{above or '/'} is not a directory only root can write, and the signing key {path} is under it: make "
                "it root's, writable by no one else"
            )
        if not above:
            return
        above = above.rpartition("/")[0]
