# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One exchange over a real unix socket, and who is at its other end."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import local_socket
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.local_socket import exchange, peer_of

ME = os.getuid()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path: that of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@contextmanager
def server(path: Path, serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server of one connection."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def once() -> None:
            connection, _address = listener.accept()
            with connection:
                serve(connection)

        thread = threading.Thread(target=once)
        thread.start()
        try:
            yield str(path)
        finally:
            thread.join(10)


def read_all(connection: socket.socket) -> bytes:
    found = b""
    while part := connection.recv(65_536):
        found += part
    return found


def test_everything_is_asked_and_everything_answered(place: Path) -> None:
    asked = b"x" * 1_000_000
    got: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        got.append(read_all(connection))
        connection.sendall(b"y" * 3_000_000)

    with server(place / "s", serve) as path:
        assert exchange(path, asked, owner=ME) == b"y" * 3_000_000
    assert got == [asked]


def test_a_server_that_hangs_up_early_has_said_why(place: Path) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"too much")

    with server(place / "s", serve) as path:
        assert exchange(path, b"x" * 5_000_000, owner=ME) == b"too much"


def test_nothing_is_sent_to_a_server_of_another_account(place: Path) -> None:
    got: list[bytes] = []
    told = server(place / "s", lambda connection: got.append(read_all(connection)))
    with told as path, pytest.raises(StepFailed) as refused:
        exchange(path, b"secret", owner=ME + 1)
    assert refused.value.message.startswith(f"uid {ME} answers on {path}, and nothing is sent there")
    assert not refused.value.retryable
    assert got == [b""]


def test_an_answer_that_is_too_long_is_none(place: Path) -> None:
    told = server(place / "s", lambda connection: connection.sendall(b"x" * 100))
    with told as path, pytest.raises(StepFailed, match="s answers with more than 99 bytes"):
        exchange(path, b"", limit=99, owner=ME)


def test_where_no_one_listens_it_says_so(place: Path) -> None:
    path = str(place / "s")
    with pytest.raises(StepFailed, match=f"{path} is not there: have root start bcd-helper.socket"):
        exchange(path, b"")
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(path)
    with pytest.raises(StepFailed, match=f"nothing listens on {path}: see systemctl status bcd-helper.socket"):
        exchange(path, b"")


@contextmanager
def crowded(path: Path) -> Iterator[tuple[socket.socket, ExitStack]]:
    """A socket at which as many wait as it lets, and those who wait."""
    with socket.socket(socket.AF_UNIX) as listener, ExitStack() as waiting:
        listener.bind(str(path))
        listener.listen(1)
        with suppress(BlockingIOError):
            while True:
                other = waiting.enter_context(socket.socket(socket.AF_UNIX))
                other.setblocking(False)
                other.connect(str(path))
        yield listener, waiting


def test_where_others_wait_it_waits_its_turn(place: Path) -> None:
    with crowded(place / "s") as (listener, others):
        told: list[bytes] = []
        thread = threading.Thread(target=lambda: told.append(exchange(str(place / "s"), b"asked", owner=ME)))
        thread.start()
        time.sleep(0.3)
        assert thread.is_alive()
        others.close()
        while thread.is_alive():
            with listener.accept()[0] as connection:
                if read_all(connection) == b"asked":
                    connection.sendall(b"answered")
                    break
        thread.join(10)
        assert told == [b"answered"]


def test_it_does_not_wait_for_ever(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "CONNECTS", 1.0)
    with crowded(place / "s"), pytest.raises(StepFailed, match="was busy with others for 1 seconds: run again") as told:
        exchange(str(place / "s"), b"asked", owner=ME)
    assert told.value.retryable


def test_who_may_not_connect_is_told(place: Path) -> None:
    path = str(place / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.chmod(path, 0o600)
        with pytest.raises(Unreadable) as refused:
            as_nobody(lambda: exchange(path, b""), place)
    assert refused.value.denied
    assert refused.value.message.startswith(f"cannot connect to {path}: Permission denied: have root add this account")


def as_nobody(call: Callable[[], object], folder: Path) -> None:
    """Make the call with another account's rights, where this one is root; else take this one's from the socket."""
    if ME:
        (folder / "s").chmod(0)
        call()
        return
    folder.chmod(0o755)
    os.seteuid(65534)
    try:
        call()
    finally:
        os.seteuid(0)


def test_the_kernel_says_who_is_at_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        seen = peer_of(ours)
    assert (seen.pid, seen.uid, seen.gid) == (os.getpid(), os.getuid(), os.getgid())
    assert seen.groups is None or seen.groups == frozenset(os.getgroups())
