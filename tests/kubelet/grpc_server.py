# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gRPC server on a unix socket, frame by frame as grpc-go speaks, which keeps to the client's windows.

`Faults` makes it misbehave. It decodes what it needs of a request: the path, and the message.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Callable, NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
FRAME = 16_384
# Texts as a server's HPACK encoder writes them in the Huffman code of RFC 7541.
CODED = {
    "grpc-status": bytes.fromhex("9acac8b21234da8f"),
    "grpc-message": bytes.fromhex("9acac8b5254207317f"),
    "content-type": bytes.fromhex("21ea496a4ac9f5597f"),
    "application/grpc": bytes.fromhex("1d75d0620d263d4c4d6564"),
    "0": bytes.fromhex("07"),
    "12": bytes.fromhex("08bf"),
}
Handler = Callable[[str, bytes], "bytes | tuple[int, str]"]


class Faults(NamedTuple):
    """How the server misbehaves."""

    hang: bool = False  # it takes the call, and says nothing
    hang_after: int | None = None  # it stops after so many bytes of the message
    reset: int | None = None  # the error with which it resets the call
    farewell: tuple[int, int] | None = None  # the last stream and the error of a GOAWAY before the answer
    drop: bool = False  # it closes the connection in the middle of the message
    greeting: bytes | None = None  # what it says in HTTP/2's place, before it closes
    cut: int = 0  # bytes that are missing at the message's end, though it says otherwise
    compressed: bool = False
    no_status: bool = False  # the stream ends without a gRPC status, as at a proxy
    http_status: int = 8  # its number in HPACK's static table: 200
    padding: int = 0  # bytes, of HEADERS and DATA
    continued: bool = False  # trailers in HEADERS and CONTINUATION
    table: bool = False  # it refers to a dynamic table, which the client's settings forbid


class Server:
    """`handler` gives a message for a method and a request, or a status with its text."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self.path = path
        self.handler = handler
        self.faults = Faults()
        self.calls: list[tuple[str, bytes]] = []
        self.closing = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        path.unlink(missing_ok=True)
        self._listener.bind(str(path))
        self._listener.listen(16)
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        """Stop; the socket's file stays, as a killed server leaves it, and refuses."""
        self.closing.set()
        # A thread in accept() is woken by a connection alone.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as last:
            last.connect(str(self.path))
        self._threads[0].join()
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self.closing.is_set():
            peer = self._listener.accept()[0]
            if self.closing.is_set():
                peer.close()
                return
            thread = threading.Thread(target=self._serve, args=(peer,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            peer.settimeout(0.05)
            Connection(self, peer).run()


class Connection:
    """One connection, with the windows that the client leaves."""

    def __init__(self, server: Server, peer: socket.socket) -> None:
        self.server = server
        self.faults = server.faults
        self.peer = peer
        self.buffer = b""
        self.gone = False
        self.windows = {0: 65_535, 1: 65_535}
        self.headers = b""
        self.request = b""

    def run(self) -> None:
        if self.faults.greeting is not None:
            self.peer.sendall(self.faults.greeting)
            return
        self.take(len(PREFACE), wanted=PREFACE)
        self.send(SETTINGS, 0, 0, b"\x00\x05" + FRAME.to_bytes(4, "big"))
        while not self.gone and not self.read_frame():
            pass
        if not self.gone:
            self.answer()
        while not self.gone:  # until the client hangs up
            self.read_frame()

    def answer(self) -> None:
        self.send(PING, 0, 0, b"bdp ping")
        method = path_of(self.headers)
        self.server.calls.append((method, self.request[5:]))
        if self.faults.farewell is not None:
            last, code = self.faults.farewell
            self.send(GOAWAY, 0, 0, last.to_bytes(4, "big") + code.to_bytes(4, "big") + b"bye")
        if self.faults.reset is not None:
            self.send(RESET, 0, 1, self.faults.reset.to_bytes(4, "big"))
        elif not self.faults.hang and self.faults.farewell != (0, 0):
            answered = self.server.handler(method, self.request[5:])
            if isinstance(answered, bytes):
                self.message(answered)
            else:  # one HEADERS is all: "trailers-only"
                self.trailers(*answered, first=True)

    def message(self, message: bytes) -> None:
        status = bytes((0x80 | self.faults.http_status,))
        # A table size update to 0, as the client's settings ask; then as with a table: its entry is dropped at once.
        table = b"\xbe" if self.faults.table else b""
        self.send(HEADERS, END_HEADERS, 1, b"\x20" + status + literal("content-type", "application/grpc", 0x40) + table)
        framed = bytes((self.faults.compressed,)) + len(message).to_bytes(4, "big") + message
        framed = framed[: len(framed) - self.faults.cut]
        stop = self.faults.hang_after if self.faults.hang_after is not None else len(framed)
        at = 0
        while at < stop and not self.gone:
            room = min(self.windows.values())
            if not room:  # nothing more is sent before the client opens its windows
                self.read_frame()
                continue
            part = framed[at : at + min(room, FRAME - 1 - self.faults.padding)]
            self.send(DATA, 0, 1, part)
            at += len(part)
            for number in self.windows:
                self.windows[number] -= len(part)
            if self.faults.drop:
                self.gone = True
        if stop == len(framed) and not self.gone:
            self.trailers(0, "")

    def trailers(self, status: int, text: str, *, first: bool = False) -> None:
        block = b"\x88" + literal("content-type", "application/grpc", 0x40) if first else b""
        if not self.faults.no_status:
            block += literal("grpc-status", str(status), 0x40)
            block += literal("grpc-message", text, 0x40) if text else b""
        if self.faults.continued:
            half = len(block) // 2
            self.send(HEADERS, END_STREAM, 1, block[:half])
            self.send(CONTINUATION, END_HEADERS, 1, block[half:])
        else:
            self.send(HEADERS, END_STREAM | END_HEADERS, 1, block)

    # -- frames

    def send(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self.faults.padding and kind in (HEADERS, DATA):
            flags |= PADDED
            payload = bytes((self.faults.padding,)) + payload + bytes(self.faults.padding)
        head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + number.to_bytes(4, "big")
        data = memoryview(head + payload)
        while data and not self.gone:
            try:
                data = data[self.peer.send(data) :]
            except socket.timeout:
                self.gone = self.server.closing.is_set()

    def take(self, size: int, wanted: bytes | None = None) -> bytes:
        while len(self.buffer) < size and not self.gone:
            try:
                got = self.peer.recv(65_536)
            except socket.timeout:
                self.gone = self.server.closing.is_set()
                continue
            self.buffer += got
            self.gone = not got
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        if wanted is not None and taken != wanted:
            self.gone = True
        return taken

    def read_frame(self) -> bool:
        """Read one frame; whether the request is whole with it."""
        head = self.take(9)
        if self.gone:
            return False
        payload = self.take(int.from_bytes(head[:3], "big"))
        kind, flags, number = head[3], head[4], int.from_bytes(head[5:9], "big")
        if kind == SETTINGS and not flags & ACK:
            self.settings(payload)
            self.send(SETTINGS, ACK, 0, b"")
        elif kind == WINDOW_UPDATE and number in self.windows:
            self.windows[number] += int.from_bytes(payload, "big")
        elif kind == HEADERS:
            self.headers += payload
        elif kind == DATA:
            self.request += payload
            return bool(flags & END_STREAM)
        return False

    def settings(self, payload: bytes) -> None:
        for at in range(0, len(payload), 6):
            if int.from_bytes(payload[at : at + 2], "big") == 4:
                self.windows[1] += int.from_bytes(payload[at + 2 : at + 6], "big") - 65_535


def literal(name: str, value: str, form: int) -> bytes:
    """A header field with both texts given, Huffman-coded where the code is noted; `form` 0x40: to be indexed."""
    out = bytes((form,))
    for text in (name, value):
        raw, bit = (CODED[text], 0x80) if text in CODED else (text.encode("latin-1"), 0)
        size = bytes((bit | len(raw),)) if len(raw) < 127 else bytes((bit | 127, *_rest(len(raw) - 127)))
        out += size + raw
    return out


def _rest(value: int) -> list[int]:
    out = []
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    return [*out, value]


def path_of(block: bytes) -> str:
    """The value of the literal field ":path" whose texts are plain."""
    at = block.index(b"\x05:path") + 6
    return block[at + 1 : at + 1 + block[at]].decode()
