# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One unary gRPC call over a unix socket: HTTP/2 (RFC 9113) with prior knowledge, headers by HPACK (RFC 7541).

A connection carries one call. Our settings forbid the peer a dynamic header table and a push, and open the windows
wide, so that neither state nor flow control is left to keep.
"""

from __future__ import annotations

import errno
import socket
import time

from .errors import StepFailed, Unreadable

LIMIT = 64 * 1024 * 1024  # bytes of an answer: some 100 times what 20,000 pods are
LARGEST = 16_384  # bytes of a frame, unless settings allow more: ours do not
WINDOW, WIDE = 65_535, 2**31 - 1  # bytes that a peer may send unasked: the protocol's, ours
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# SETTINGS_HEADER_TABLE_SIZE 0, ENABLE_PUSH 0, INITIAL_WINDOW_SIZE
OURS = b"\x00\x01\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x04" + WIDE.to_bytes(4, "big")
POST, HTTP = b"\x83", b"\x86"  # of the static table: ":method: POST", ":scheme: http"
# Of the static table, what an answer may have that we read; grpc-status and grpc-message are not in it.
STATUSES = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}
# The Huffman code is canonical: symbols by the length of their code in bits, ascending. Those of printable ASCII, all
# that a status and its percent-encoded message are made of.
HUFFMAN = (
    (5, "012aceiost"),
    (6, " %-./3456789=A_bdfghlmnpru"),
    (7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, "&*,;XZ"),
    (10, '!"()?'),
    (11, "'+|"),
    (12, "#>"),
    (13, "\0$@[]~"),
    (14, "^}"),
    (15, "<`{"),
    (19, "\\"),
)


class Broken(Exception):
    """The peer said something that is no answer; a clause."""


def unary(path: str, method: str, message: bytes, timeout: float) -> bytes:
    """The answer to one call of a method ("/v1.PodResourcesLister/List"), both messages without their framing.

    `timeout` bounds the whole call, in seconds. Raises Unreadable where this account may not connect, StepFailed for
    anything else that is no answer with the status OK.
    """
    end = time.monotonic() + timeout
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(timeout)
            peer.connect(path)
            return _call(_Stream(peer, end), method, message)
    except socket.timeout:
        raise StepFailed(
            f"{path} does not answer {method} within {timeout:g} seconds: see what its server does"
        ) from None
    except OSError as fault:
        refused = f"{path} cannot be asked for {method}: {fault.strerror or fault}: see whether its server runs"
        if fault.errno in (errno.EACCES, errno.EPERM):
            raise Unreadable(refused, denied=True) from None
        raise StepFailed(refused) from None
    except Broken as fault:
        raise StepFailed(f"{path} gives no answer to {method}: {fault}: see what its server says") from None


class _Stream:
    """What comes from the peer, frame by frame, until the deadline."""

    def __init__(self, peer: socket.socket, end: float) -> None:
        self._peer = peer
        self._end = end
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        self._wait()
        try:
            self._peer.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return  # what it said before it closed is still to be read

    def frame(self) -> tuple[int, int, int, bytes]:
        """The next frame: its type, its flags, its stream, its payload."""
        head = self._take(9)
        size = int.from_bytes(head[:3], "big")
        if size > LARGEST:
            raise Broken("it does not speak HTTP/2")
        return head[3], head[4], int.from_bytes(head[5:9], "big") & WIDE, self._take(size)

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._wait()
            try:
                got = self._peer.recv(65_536)
            except ConnectionResetError:
                got = b""
            if not got:
                raise Broken("it closed the connection")
            self._buffer += got
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _wait(self) -> None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise socket.timeout
        self._peer.settimeout(left)


def _call(stream: _Stream, method: str, message: bytes) -> bytes:
    """Send the request on stream 1, and read until the stream ends."""
    headers = (
        POST
        + HTTP
        + b"".join(
            _literal(name, value)
            for name, value in (
                (":path", method),
                (":authority", "localhost"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                ("user-agent", "bcd"),
            )
        )
    )
    stream.send(
        PREFACE
        + _frame(SETTINGS, 0, 0, OURS)
        + _frame(WINDOW_UPDATE, 0, 0, (WIDE - WINDOW).to_bytes(4, "big"))
        + _frame(HEADERS, END_HEADERS, 1, headers)
        + _frame(DATA, END_STREAM, 1, b"\0" + len(message).to_bytes(4, "big") + message)
    )
    body, block, said, over = bytearray(), b"", {}, False
    while True:
        kind, flags, number, payload = stream.frame()
        if number == 0:
            _housekeeping(stream, kind, flags, payload)
        elif number != 1:
            continue
        elif kind == RESET:
            raise Broken(f"it reset the call with the error {int.from_bytes(payload[:4], 'big')}")
        elif kind == DATA:
            body += _unpadded(payload, flags)
            over = bool(flags & END_STREAM)
        elif kind in (HEADERS, CONTINUATION):
            if kind == HEADERS:
                payload, over = _unpadded(payload, flags), bool(flags & END_STREAM)
                payload = payload[5:] if flags & PRIORITY else payload
            block += payload
            if flags & END_HEADERS:
                said.update(_headers(block))
                block = b""
        if len(body) + len(block) > LIMIT:
            raise Broken(f"its answer has more than {LIMIT} bytes")
        if over and not block:
            return _message(said, bytes(body))


def _housekeeping(stream: _Stream, kind: int, flags: int, payload: bytes) -> None:
    """What concerns the connection: settings and pings are acknowledged; a farewell that leaves us our call is none."""
    if kind == SETTINGS and not flags & ACK:
        stream.send(_frame(SETTINGS, ACK, 0, b""))
    elif kind == PING and not flags & ACK:
        stream.send(_frame(PING, ACK, 0, payload))
    elif kind == GOAWAY:
        last, code = int.from_bytes(payload[:4], "big") & WIDE, int.from_bytes(payload[4:8], "big")
        if code or not last:
            raise Broken(f"it ended the connection with the error {code}")


def _message(said: dict[str, str], body: bytes) -> bytes:
    """The one message of an answer whose status is OK."""
    status = said.get("grpc-status")
    if status != "0":
        if status is None:
            raise Broken(f"HTTP status {said.get(':status', 'unknown')} without a gRPC status")
        from urllib.parse import unquote

        why = " ".join(unquote(said.get("grpc-message", "")).split())[:300]
        raise Broken(f"gRPC status {status}{' (' + why + ')' if why else ''}")
    if len(body) < 5 or body[0] or int.from_bytes(body[1:5], "big") != len(body) - 5:
        raise Broken("its message is cut off")
    return body[5:]


def _frame(kind: int, flags: int, number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + number.to_bytes(4, "big") + payload


def _unpadded(payload: bytes, flags: int) -> bytes:
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise Broken("it does not speak HTTP/2")
    return payload[1 : len(payload) - payload[0]]


# -- header fields


def _literal(name: str, value: str) -> bytes:
    """A field that no table remembers, its texts plain; each is shorter than 127 bytes."""
    return b"\x10" + b"".join(bytes((len(text),)) + text for text in (name.encode(), value.encode()))


def _headers(block: bytes) -> dict[str, str]:
    """The fields of a header block; those of the static table, but the status, are named by their number."""
    found: dict[str, str] = {}
    at = 0
    try:
        while at < len(block):
            first = block[at]
            if first & 0xE0 == 0x20:  # the size of a table that we forbid
                at = _integer(block, at, 5)[1]
                continue
            indexed = bool(first & 0x80)
            number, at = _integer(block, at, 7 if indexed else 6 if first & 0x40 else 4)
            if number > 61:
                raise Broken("it refers to a header table that there is none of")
            name = ":status" if number in STATUSES else f"#{number}"
            if indexed:
                found[name] = STATUSES.get(number, "")
                continue
            if not number:
                name, at = _string(block, at)
            found[name], at = _string(block, at)
    except IndexError:
        raise Broken("its headers are cut off") from None
    return found


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """The integer in the low bits of a byte and in what follows, and where it ends."""
    most = (1 << bits) - 1
    value, at = block[at] & most, at + 1
    if value < most:
        return value, at
    for shift in (0, 7, 14, 21):
        value += (block[at] & 0x7F) << shift
        at += 1
        if block[at - 1] < 0x80:
            return value, at
    raise Broken("its headers hold a number that is too large")


def _string(block: bytes, at: int) -> tuple[str, int]:
    coded = block[at] & 0x80
    size, at = _integer(block, at, 7)
    if at + size > len(block):
        raise IndexError
    raw = block[at : at + size]
    return (_plain(raw) if coded else raw.decode("latin-1")), at + size


def _plain(raw: bytes) -> str:
    """A text in the Huffman code; what is no printable ASCII is left out from there on."""
    codes: dict[tuple[int, int], str] = {}
    code = before = 0
    for length, symbols in HUFFMAN:
        code <<= length - before
        for symbol in symbols:
            codes[length, code] = symbol
            code += 1
        before = length
    text, code, length = "", 0, 0
    for byte in raw:
        for bit in range(7, -1, -1):
            code, length = code << 1 | byte >> bit & 1, length + 1
            symbol = codes.get((length, code), "")
            if symbol:
                text, code, length = text + symbol, 0, 0
    return text
