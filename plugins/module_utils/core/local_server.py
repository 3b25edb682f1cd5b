# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other side of core.local_socket: requests are read here, all at once; a process of its own answers each.

So a slow client holds up nobody, and what goes wrong with one request leaves the next alone. Everything is bounded: the
bytes and the seconds of a request, the connections, the processes, and how long the server stands without any.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections import deque
from contextlib import suppress
from typing import Any, Callable, NamedTuple, NoReturn

from .local_socket import LARGEST_REQUEST, Peer, peer_of

BEGUN = b"a"  # what a process says before it sends its answer
PART = 65_536


class Bounds(NamedTuple):
    """Of one server: bytes of a request; seconds to send it whole and to take the answer; processes and connections at
    once; seconds that a request that is not whole is spared where others wait for its connection; seconds without any
    connection after which the server ends."""

    longest: int = LARGEST_REQUEST
    arrives: float = 10.0
    taken: float = 30.0
    at_once: int = 16
    connections: int = 64
    spared: float = 1.0
    idle: float = 60.0


BOUNDS = Bounds()


class Service(NamedTuple):
    """What is served. `admits` says why a peer is not, "" where it is. `answers` gives the answer to a whole request,
    in a process of its own, which ends behind it. `refuses` makes an answer of why there is none, and whether trying
    again may help."""

    admits: Callable[[Peer], str]
    answers: Callable[[bytes, Peer], bytes]
    refuses: Callable[[str, bool, Peer], bytes]


class _Request:
    """What has arrived of a request, since when, and the connection that it came on."""

    def __init__(self, connection: socket.socket, peer: Peer, since: float) -> None:
        self.connection = connection
        self.peer = peer
        self.since = since
        self.data = bytearray()


class _Work(NamedTuple):
    """A process that answers a request."""

    process: int
    request: _Request


class Server:
    """Serves a listening socket until it is idle, or was told to stop by SIGTERM: what runs then is let end."""

    def __init__(self, listener: socket.socket, service: Service, bounds: Bounds = BOUNDS) -> None:
        self._listener = listener
        self._service = service
        self._bounds = bounds
        self._reading: dict[int, _Request] = {}  # by the connection's descriptor, in the order in which they came
        self._whole: deque[_Request] = deque()
        self._working: dict[int, _Work] = {}  # by the descriptor of a pipe that ends with the process
        self._wake = os.pipe()
        self._stopping = False
        self._busy = time.monotonic()

    def run(self) -> None:
        """Serve; must be called in the main thread."""
        self._listener.setblocking(False)
        before = signal.signal(signal.SIGTERM, self._stop)
        try:
            while not self._is_over():
                self._turn()
        finally:
            signal.signal(signal.SIGTERM, before)
            for end in self._wake:
                os.close(end)

    def _stop(self, _signal: int, _frame: Any) -> None:
        self._stopping = True
        os.write(self._wake[1], b"x")  # ends a select that has begun

    def _is_over(self) -> bool:
        if self._stopping:
            self._stop_reading()
            return not self._working
        if self._connections():
            self._busy = time.monotonic()
        return time.monotonic() - self._busy >= self._bounds.idle

    def _connections(self) -> int:
        return len(self._reading) + len(self._whole) + len(self._working)

    def turn_away(self, why: str) -> None:
        """In the place of `run`: answer those who wait that they are not served, and why."""
        self._listener.setblocking(False)
        with suppress(OSError):  # nobody waits any more
            while True:
                connection = self._listener.accept()[0]
                peer = peer_of(connection)
                self._refuse(_Request(connection, peer, 0.0), self._service.admits(peer) or why, False)

    def _stop_reading(self) -> None:
        why = "bcd helper is being stopped: run again"
        for request in (*self._reading.values(), *self._whole):
            self._refuse(request, why, True)
        self._reading.clear()
        self._whole.clear()

    # -- one turn

    def _turn(self) -> None:
        waits: list[Any] = [*self._reading, *self._working, self._wake[0]]
        if self._has_room():
            waits.append(self._listener)
        ready = select.select(waits, [], [], self._patience())[0]
        for found in ready:
            if found is self._listener:
                self._accept()
            elif found in self._reading:
                self._read(found)
            elif found in self._working:
                self._ended(found)
            elif found == self._wake[0]:
                os.read(found, PART)
        now = time.monotonic()
        for descriptor, request in list(self._reading.items()):
            if now >= request.since + self._bounds.arrives:
                del self._reading[descriptor]
                why = f"the request did not arrive whole within {self._bounds.arrives:g} seconds"
                self._refuse(request, f"{why}: send it at once, and shut down the writing side behind it", True)
        while self._whole and len(self._working) < self._bounds.at_once and not self._stopping:
            self._work(self._whole.popleft())

    def _has_room(self) -> bool:
        """Whether another connection is taken: where there are many, in the place of one that is slow."""
        if self._stopping:
            return False
        return self._connections() < self._bounds.connections or self._slowest() is not None

    def _slowest(self) -> int | None:
        """The connection that has waited longest for the rest of its request, where it is not spared any more."""
        first = next(iter(self._reading), None)
        if first is None or time.monotonic() < self._reading[first].since + self._bounds.spared:
            return None
        return first

    def _patience(self) -> float:
        """Seconds until something is due by itself."""
        now = time.monotonic()
        due = [request.since + self._bounds.arrives for request in self._reading.values()]
        if self._connections() >= self._bounds.connections:
            due += [request.since + self._bounds.spared for request in self._reading.values()]
        if not self._connections():
            due.append(self._busy + self._bounds.idle)
        later = [moment - now for moment in due if moment > now]
        return min(later, default=0.0 if due else 60.0)

    def _accept(self) -> None:
        try:
            connection = self._listener.accept()[0]
        except OSError:  # it has gone again
            return
        self._busy = time.monotonic()
        try:
            peer = peer_of(connection)
        except OSError:
            connection.close()
            return
        request = _Request(connection, peer, self._busy)
        connection.setblocking(False)
        why = self._service.admits(peer)
        if why:
            self._refuse(request, why, False)
            return
        slowest = self._slowest() if self._connections() >= self._bounds.connections else None
        if slowest is not None:
            many = f"{self._bounds.connections} connections are open and others wait"
            self._refuse(
                self._reading.pop(slowest), f"{many}, and the rest of this request did not come: send it at once", True
            )
        self._reading[connection.fileno()] = request

    def _read(self, descriptor: int) -> None:
        request = self._reading[descriptor]
        try:
            part = request.connection.recv(PART)
        except BlockingIOError:
            return
        except OSError:  # it has gone
            del self._reading[descriptor]
            request.connection.close()
            return
        request.data += part
        if not part:
            del self._reading[descriptor]
            self._whole.append(request)
        elif len(request.data) > self._bounds.longest:
            del self._reading[descriptor]
            self._refuse(
                request, f"the request has more than {self._bounds.longest} bytes: ask for less at once", False
            )

    def _refuse(self, request: _Request, why: str, retryable: bool) -> None:
        """Answer with why there is no answer: a sentence, which fits into the socket's buffer."""
        with suppress(OSError):
            request.connection.setblocking(False)
            request.connection.send(self._service.refuses(why, retryable, request.peer))
            request.connection.shutdown(socket.SHUT_WR)
        request.connection.close()

    # -- the processes

    def _work(self, request: _Request) -> None:
        ours, theirs = os.pipe()
        try:
            process = os.fork()
        except OSError as fault:
            os.close(ours)
            os.close(theirs)
            self._refuse(request, f"no process can be started for the request ({fault.strerror}): run again", True)
            return
        if not process:
            self._answer(request, ours, theirs)
        os.close(theirs)
        self._working[ours] = _Work(process, request)

    def _answer(self, request: _Request, ours: int, theirs: int) -> NoReturn:
        """In the process of its own; whatever happens, it ends here."""
        try:
            signal.signal(signal.SIGTERM, _go_on)  # a handler, which programs do not inherit as they would SIG_IGN
            self._listener.close()
            for other in (*self._reading.values(), *self._whole, *(work.request for work in self._working.values())):
                other.connection.close()
            for descriptor in (ours, *self._wake, *self._working):
                os.close(descriptor)
            answer = self._service.answers(bytes(request.data), request.peer)
            os.write(theirs, BEGUN)
            request.connection.settimeout(self._bounds.taken)
            request.connection.sendall(answer)
            request.connection.shutdown(socket.SHUT_RDWR)
        finally:
            os._exit(0)

    def _ended(self, descriptor: int) -> None:
        """A process has ended, or says that it sends its answer."""
        if os.read(descriptor, 1):
            self._working[descriptor] = self._working[descriptor]._replace(request=self._let_go(descriptor))
            return
        work = self._working.pop(descriptor)
        os.close(descriptor)
        status = os.waitpid(work.process, 0)[1]
        if work.request.connection.fileno() >= 0:
            how = f"was killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "came to no answer"
            why = f"the process for this request {how}: see journalctl -u bcd-helper.service, and run again"
            self._refuse(work.request, why, True)

    def _let_go(self, descriptor: int) -> _Request:
        request = self._working[descriptor].request
        request.connection.close()
        return request


def _go_on(_signal: int, _frame: Any) -> None:
    """A request that has begun is answered."""
