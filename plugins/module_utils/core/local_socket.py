# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unix socket with one exchange a connection: everything that is asked, then everything that is answered.

And who is at the other end of one, which the kernel says.
"""

from __future__ import annotations

import errno
import socket
import struct
from typing import NamedTuple

from .errors import StepFailed, Unreadable

CONNECTS = 10.0  # seconds
TAKES = 120.0  # seconds that the server may take to read what it is asked
LARGEST_REQUEST = 2 * 1024 * 1024  # bytes
LARGEST = 256 * 1024 * 1024  # bytes of an answer
PEERGROUPS = 59  # SO_PEERGROUPS of asm-generic/socket.h, since Linux 4.13: the socket module has no name for it
MOST_ASKED = 1024  # bytes that Python lets a socket option have: 256 groups
CREDENTIALS = struct.Struct("3i")
SEE = "see systemctl status bcd-helper.socket"
CUT = (errno.ECONNRESET, errno.EPIPE)


class Peer(NamedTuple):
    """Who connected, when it did. `groups` are its supplementary ones, None where this kernel does not tell."""

    pid: int
    uid: int
    gid: int
    groups: frozenset[int] | None = None


def peer_of(connection: socket.socket) -> Peer:
    """The process at the other end; raises OSError where the kernel does not say."""
    pid, uid, gid = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, PEERGROUPS, MOST_ASKED)
    except OSError:  # an older kernel, or more groups than fit
        return Peer(pid, uid, gid)
    return Peer(pid, uid, gid, frozenset(struct.unpack(f"{len(raw) // 4}I", raw)))


def is_member(peer: Peer, group: str) -> bool:
    """Whether the peer had the group's rights when it connected; where the kernel does not say, whether it may."""
    import grp
    import pwd

    try:
        wanted = grp.getgrnam(group)
        if peer.gid == wanted.gr_gid:
            return True
        if peer.groups is not None:
            return wanted.gr_gid in peer.groups
        account = pwd.getpwuid(peer.uid)
    except KeyError:
        return False
    return account.pw_gid == wanted.gr_gid or account.pw_name in wanted.gr_mem


def exchange(path: str, data: bytes, limit: int = LARGEST, owner: int = 0) -> bytes:
    """What the server on the socket answers to the data, to its end, however late it comes; b"" where it says nothing.

    Nothing is sent to a server of another account than `owner`. Raises Unreadable where this account may not connect,
    StepFailed where no one listens, takes the data, or answers with at most `limit` bytes.
    """
    with socket.socket(socket.AF_UNIX) as server:
        # The kernel waits for room among those who wait to be accepted; a timeout of Python's would have it not wait.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(CONNECTS), 0))
        try:
            server.connect(path)
        except OSError as fault:
            raise _unconnected(path, fault) from None
        try:
            uid = peer_of(server).uid
            if uid != owner:
                raise StepFailed(
                    f"uid {uid} answers on {path}, and nothing is sent there that is for uid {owner}: have root remove "
                    "that socket, and restart bcd-helper.socket",
                    retryable=False,
                )
            _send(server, data)
            server.settimeout(None)
            return _received(server, path, limit)
        except OSError as fault:
            why = fault.strerror or str(fault)
            raise StepFailed(f"{path} does not take what it is asked ({why}): {SEE}, and run again") from None


def _unconnected(path: str, fault: OSError) -> StepFailed:
    if fault.errno in (errno.EACCES, errno.EPERM):
        return Unreadable(
            f"cannot connect to {path}: {fault.strerror}: have root add this account to the socket's group", denied=True
        )
    if fault.errno == errno.ENOENT:
        return StepFailed(f"{path} is not there: have root start bcd-helper.socket, and run again")
    if fault.errno == errno.ECONNREFUSED:
        return StepFailed(f"nothing listens on {path}: {SEE}, have root start it, and run again")
    if fault.errno == errno.EAGAIN:
        return StepFailed(f"{path} was busy with others for {CONNECTS:g} seconds: run again when those have ended")
    return StepFailed(f"cannot connect to {path}: {fault.strerror or fault}: {SEE}, and run again")


def _send(server: socket.socket, data: bytes) -> None:
    """Everything, and that it is all; one that hangs up before may have answered why."""
    server.settimeout(TAKES)
    try:
        server.sendall(data)
        server.shutdown(socket.SHUT_WR)
    except OSError as fault:
        if fault.errno not in (*CUT, errno.ENOTCONN):
            raise


def _received(server: socket.socket, path: str, limit: int) -> bytes:
    found = bytearray()
    while True:
        try:
            part = server.recv(65_536)
        except ConnectionResetError:  # it closed without having read all that it was sent
            part = b""
        if not part:
            return bytes(found)
        found += part
        if len(found) > limit:
            raise StepFailed(f"{path} answers with more than {limit} bytes: {SEE}", retryable=False)
