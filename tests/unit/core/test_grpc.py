# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One gRPC call over a unix socket, against a server that speaks HTTP/2 frame by frame and misbehaves."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import grpc
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import (
    NotKnownYet,
    StepFailed,
    Unreadable,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from tests.kubelet.grpc_server import Faults, Server
from tests.unit.fake_host import FakeHost

METHOD = "/v1.Echo/Say"
LARGE = bytes(range(256)) * (3 * 4096)  # 3 MiB: 48 times what a client lets a server send unasked


def echo(method: str, request: bytes) -> bytes | tuple[int, str]:
    if method == METHOD:
        return LARGE if request == b"large" else request
    return 12, "unknown method Say: it%27s not%0Athere"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "s", echo)
    yield made
    made.close()


def ask(server: Server, message: bytes = b"hello", method: str = METHOD, timeout: float = 20) -> bytes:
    return grpc.unary(str(server.path), method, message, timeout)


def refusal(server: Server, message: bytes = b"hello", method: str = METHOD, timeout: float = 20) -> str:
    with pytest.raises(StepFailed) as fault:
        ask(server, message, method, timeout)
    assert fault.value.retryable
    assert str(server.path) in fault.value.message
    return fault.value.message


@pytest.mark.parametrize("message", [b"", b"hello", b"large"])
def test_an_answer(server: Server, message: bytes) -> None:
    assert ask(server, message) == (LARGE if message == b"large" else message)
    assert server.calls == [(METHOD, message)]


@pytest.mark.parametrize(
    "faults",
    [
        Faults(padding=7),
        Faults(continued=True),
        Faults(farewell=(1, 0)),  # the server goes, and finishes this call
    ],
)
def test_what_a_server_may_do_and_answer(server: Server, faults: Faults) -> None:
    server.faults = faults
    assert ask(server, b"large") == LARGE


def test_a_status_is_a_fault_with_its_words_on_one_line(server: Server) -> None:
    said = refusal(server, method="/v1.Echo/Shout")
    assert "gRPC status 12 (unknown method Say: it's not there)" in said


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        (Faults(reset=7), "it reset the call with the error 7"),
        (Faults(farewell=(0, 0)), "it ended the connection with the error 0"),
        (Faults(farewell=(1, 11)), "it ended the connection with the error 11"),
        (Faults(drop=True), "it closed the connection"),
        (Faults(greeting=b""), "it closed the connection"),
        (Faults(greeting=b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), "it does not speak HTTP/2"),
        (Faults(cut=1), "its message is cut off"),
        (Faults(compressed=True), "its message is cut off"),
        (Faults(no_status=True, http_status=14), "HTTP status 500 without a gRPC status"),
        (Faults(no_status=True), "HTTP status 200 without a gRPC status"),
        (Faults(table=True), "it refers to a header table that there is none of"),
    ],
)
def test_what_is_no_answer(server: Server, faults: Faults, said: str) -> None:
    server.faults = faults
    assert said in refusal(server, b"large")


@pytest.mark.parametrize("faults", [Faults(hang=True), Faults(hang_after=5), Faults(hang_after=100_000)])
def test_a_server_that_hangs_is_left_in_time(server: Server, faults: Faults) -> None:
    server.faults = faults
    assert f"does not answer {METHOD} within 0.3 seconds" in refusal(server, b"large", timeout=0.3)


def test_an_answer_without_end_is_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc, "LIMIT", 100_000)
    assert "its answer has more than 100000 bytes" in refusal(server, b"large")


def test_nobody_there(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "none", "No such file or directory"),
        (tmp_path / ("long" * 30), "AF_UNIX path too long"),
    ):
        with pytest.raises(StepFailed, match=said):
            grpc.unary(str(path), METHOD, b"", 5)


def test_a_socket_that_a_stopped_server_left_refuses(tmp_path: Path) -> None:
    left = Server(tmp_path / "s", echo)
    left.close()
    assert left.path.exists()
    assert "Connection refused" in refusal(left)


def test_a_socket_that_this_account_may_not_use_is_known_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_socket: socket.socket, _path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refuse, raising=False)
    with pytest.raises(Unreadable) as fault:
        Host().unary("/run/s", METHOD)
    assert fault.value.denied


# -- through the hosts


def test_the_host_asks_in_check_mode_too(server: Server) -> None:
    assert Host().unary(str(server.path), METHOD, b"a") == b"a"
    assert PredictedHost(Host()).unary(str(server.path), METHOD, b"b") == b"b"


def test_what_an_account_may_not_ask_is_known_as_root_in_check_mode() -> None:
    host = FakeHost()
    host.servers["/run/s"] = lambda method, message: method.encode() + message
    assert host.unary("/run/s", "/m", b"!") == b"/m!"
    host.unreadable.add("/run/s")
    with pytest.raises(Unreadable):
        PredictedHost(host).unary("/run/s", "/m")
    host.user = 1000
    with pytest.raises(NotKnownYet):
        PredictedHost(host).unary("/run/s", "/m")


# -- headers: the examples of RFC 7541, appendix C, and the canonical code of its appendix B

CODED = {
    "www.example.com": "f1e3c2e5f23a6ba0ab90f4ff",
    "no-cache": "a8eb10649cbf",
    "custom-key": "25a849e95ba97d7f",
    "custom-value": "25a849e95bb8e8b4bf",
    "302": "6402",
    "private": "aec3771a4b",
    "Mon, 21 Oct 2013 20:13:21 GMT": "d07abe941054d444a8200595040b8166e082a62d1bff",
    "https://www.example.com": "9d29ad171863c78f0b97c8e9ae82ae43d3",
    "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1": (
        "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007"
    ),
    "~tilde [x] {y} `z` \\ ^ $ @ <>": "ffea4d448553ff7e7ff8a7ffef5ffea9fff7dfffd53fff829ffe29ff953ff4a7ffcffb",
}


@pytest.mark.parametrize("text", CODED)
def test_the_huffman_code(text: str) -> None:
    assert grpc._plain(bytes.fromhex(CODED[text])) == text


def test_the_examples_of_header_fields() -> None:
    # C.2.1 to C.2.3: literals; C.6.1's status, an integer of several bytes (C.1.2: 1337), a size update.
    assert grpc._headers(bytes.fromhex("400a637573746f6d2d6b65790d637573746f6d2d686561646572")) == {
        "custom-key": "custom-header"
    }
    assert grpc._headers(bytes.fromhex("100870617373776f726406736563726574")) == {"password": "secret"}
    assert grpc._headers(bytes.fromhex("48033330328d20")) == {":status": "404"}
    assert grpc._integer(bytes.fromhex("1f9a0a"), 0, 5) == (1337, 3)
    assert grpc._integer(bytes.fromhex("0a"), 0, 5) == (10, 1)


@given(st.binary(max_size=60))
def test_a_header_block_of_any_bytes_is_read_or_refused(block: bytes) -> None:
    try:
        found = grpc._headers(block)
    except grpc.Broken:
        return
    assert all(isinstance(text, str) for pair in found.items() for text in pair)
