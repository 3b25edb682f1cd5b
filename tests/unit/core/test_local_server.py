# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that root runs for others: whatever one client does, the next is served."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.local_server import Bounds, Server, Service
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.local_socket import Peer

from .served import Served, answer, serving

QUICK = Bounds(longest=10_000, arrives=1.0, taken=1.0, at_once=4, connections=8, spared=0.3, idle=30.0)


def echo(data: bytes, peer: Peer) -> bytes:
    """What was sent, and by whom; some words do something first."""
    if data.startswith(b"sleep"):
        time.sleep(float(data.split()[1]))
    elif data == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif data == b"raise":
        raise MemoryError
    elif data == b"much":
        return json.dumps("x" * 5_000_000).encode()
    elif data.startswith(b"touch"):
        time.sleep(0.5)
        Path(data.split()[1].decode()).touch()
    return json.dumps({"data": data.decode(), "uid": peer.uid, "process": os.getpid()}).encode()


def refuses(why: str, retryable: bool, peer: Peer) -> bytes:
    return json.dumps({"msg": why, "retryable": retryable, "uid": peer.uid}).encode()


def server(
    bounds: Bounds = QUICK,
    admits: Callable[[Peer], str] = lambda _peer: "",
    answers: Callable[[bytes, Peer], bytes] = echo,
) -> AbstractContextManager[Served]:
    return serving(lambda listener: Server(listener, Service(admits, answers, refuses), bounds).run())


def test_each_request_has_a_process_of_its_own() -> None:
    with server() as found:
        one, other = found.ask(b"one"), found.ask(b"other")
    assert (one["data"], other["data"]) == ("one", "other")
    assert one["uid"] == os.getuid()
    assert len({one["process"], other["process"], found.process}) == 3
    assert found.status == 0


def test_a_peer_that_is_not_admitted_is_told_and_not_heard() -> None:
    with server(admits=lambda peer: f"uid {peer.uid} is not served") as found:
        assert found.ask(b"die") == {"msg": f"uid {os.getuid()} is not served", "retryable": False, "uid": os.getuid()}


def test_a_request_that_is_too_long_is_refused_before_it_is_whole() -> None:
    with server() as found, found.connect() as client:
        client.sendall(b"x" * 10_001)
        assert answer(client)["msg"] == "the request has more than 10000 bytes: ask for less at once"


def test_a_request_of_the_longest_that_is_taken_is() -> None:
    with server() as found:
        assert len(found.ask(b"x" * 10_000)["data"]) == 10_000


def test_a_drip_of_bytes_does_not_extend_the_time() -> None:
    with server() as found, found.connect() as client:
        begun = time.monotonic()
        told: dict[str, Any] = {}
        for _byte in range(100):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                client.send(b"x")
            client.settimeout(0.1)
            with contextlib.suppress(socket.timeout):
                told = answer(client)
                break
        assert told["msg"].startswith("the request did not arrive whole within 1 seconds")
        assert told["retryable"] is True
        assert 0.9 < time.monotonic() - begun < 8


def test_slow_clients_hold_up_nobody_however_many() -> None:
    with server(QUICK._replace(arrives=20.0)) as found:
        slow = [found.connect() for _client in range(20)]
        for client in slow:
            client.send(b"x")
        begun = time.monotonic()
        assert found.ask(b"quick")["data"] == "quick"
        assert time.monotonic() - begun < 15
        told = answer(slow[0])
        assert told["msg"].startswith(
            "8 connections are open and others wait, and the rest of this request did not come"
        )
        assert told["retryable"] is True
        for client in slow:
            client.close()


def test_a_hundred_clients_get_an_answer_each() -> None:
    with server(QUICK._replace(arrives=20.0, spared=20.0)) as found, ThreadPoolExecutor(100) as many:
        answers = list(many.map(lambda number: found.ask(f"{number}".encode()), range(100)))
    assert [found["data"] for found in answers] == [str(number) for number in range(100)]


def test_no_more_run_at_once_than_may() -> None:
    with server(QUICK._replace(at_once=2)) as found, ThreadPoolExecutor(4) as many:
        begun = time.monotonic()
        list(many.map(lambda _number: found.ask(b"sleep 0.5"), range(4)))
        assert time.monotonic() - begun >= 1.0


@pytest.mark.parametrize("word", [b"die", b"raise"])
def test_a_process_that_ends_without_an_answer_is_an_answer(word: bytes) -> None:
    with server() as found:
        told = found.ask(word)
        assert found.ask(b"next")["data"] == "next"
    how = "was killed by signal 9" if word == b"die" else "came to no answer"
    assert told["msg"] == (f"the process for this request {how}: see journalctl -u bcd-helper.service, and run again")
    assert told["retryable"] is True


def test_a_client_that_hangs_up_before_its_request_is_whole_changes_nothing() -> None:
    with server() as found:
        for _client in range(30):
            with found.connect() as client:
                client.send(b"half")
        assert found.ask(b"next")["data"] == "next"


def test_what_a_client_has_asked_is_done_though_it_hangs_up(tmp_path: Path) -> None:
    done = tmp_path / "done"
    with server() as found:
        with found.connect() as client:
            client.sendall(b"touch " + str(done).encode())
            client.shutdown(socket.SHUT_WR)
        assert found.ask(b"next")["data"] == "next"
    assert done.exists()


def test_a_client_that_never_reads_is_given_up() -> None:
    with server(QUICK._replace(at_once=1)) as found, found.connect() as client:
        client.sendall(b"much")
        client.shutdown(socket.SHUT_WR)
        begun = time.monotonic()
        assert found.ask(b"next")["data"] == "next"
        assert time.monotonic() - begun < 15


def test_a_long_answer_comes_whole() -> None:
    with server() as found:
        assert found.ask(b"much") == "x" * 5_000_000


def test_it_ends_by_itself_when_nobody_asks() -> None:
    with server(QUICK._replace(idle=0.5)) as found:
        assert found.ask(b"one")["data"] == "one"
        assert found.ended() == 0


def test_it_does_not_end_while_something_runs() -> None:
    with server(QUICK._replace(idle=0.2)) as found:
        assert found.ask(b"sleep 1")["data"] == "sleep 1"
        assert found.ended() == 0


def test_told_to_stop_it_lets_end_what_runs_and_takes_nothing_new() -> None:
    with server(QUICK._replace(arrives=20.0)) as found, found.connect() as runs, found.connect() as half:
        runs.sendall(b"sleep 1")
        runs.shutdown(socket.SHUT_WR)
        half.send(b"half")
        time.sleep(0.3)
        os.kill(found.process, signal.SIGTERM)
        assert answer(half) == {
            "msg": "bcd helper is being stopped: run again",
            "retryable": True,
            "uid": os.getuid(),
        }
        assert answer(runs)["data"] == "sleep 1"
        assert found.ended() == 0


def test_it_waits_quietly_for_what_runs_when_it_is_told_to_stop() -> None:
    with server() as found, found.connect() as runs:
        runs.sendall(b"sleep 2")
        runs.shutdown(socket.SHUT_WR)
        time.sleep(0.3)
        os.kill(found.process, signal.SIGTERM)
        time.sleep(1)
        before = seconds_used(found.process)
        time.sleep(0.5)
        assert seconds_used(found.process) - before < 0.1
        assert answer(runs)["data"] == "sleep 2"


def seconds_used(process: int) -> float:
    """The processor time of a process, in seconds: the 14th and 15th field of proc_pid_stat(5)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_signal_to_the_whole_group_ends_no_request() -> None:
    """Where a service is stopped by its control group, or at a terminal."""
    with server() as found, found.connect() as runs:
        runs.sendall(b"sleep 1")
        runs.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
        for process in children(found.process):
            os.kill(process, signal.SIGTERM)
        assert answer(runs)["data"] == "sleep 1"


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    assert found
    return [int(number) for number in found]


def test_nothing_of_one_request_is_open_in_the_process_of_another() -> None:
    def sockets(data: bytes, _peer: Peer) -> bytes:
        if data == b"wait":
            time.sleep(1)
        opened = (Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
        return json.dumps(sum(os.readlink(one).startswith("socket:") for one in opened if one.is_symlink())).encode()

    with server(answers=sockets) as found:
        alone = found.ask(b"")
        with found.connect() as other, found.connect() as half:
            other.sendall(b"wait")
            other.shutdown(socket.SHUT_WR)
            half.send(b"x")
            time.sleep(0.3)
            assert found.ask(b"") == alone
    assert alone >= 1
