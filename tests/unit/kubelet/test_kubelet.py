# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's stand-in: a server that keeps to HTTP/2's windows, and files that show what a real one's do."""

from __future__ import annotations

import json
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubelet import pods as written
from tests.kubelet.grpc_server import Faults, Server
from tests.kubelet.kubelet import CHECKPOINT, CLAIMS, Kubelet
from tests.kubelet.pods import Claim, Container, Pod

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8
ONE, TWO = "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "2b4e28ba-2fa1-11d2-883f-0016d3cca427"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def request(path: str) -> bytes:
    """ ":method: POST", ":scheme: http" by their numbers, and the path as a literal."""
    headers = b"\x83\x86\x10\x05:path" + bytes((len(path),)) + path.encode()
    return PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 4, 1, headers) + frame(DATA, 1, 1, bytes(5))


class Client:
    """A client that opens no window unless it is told to."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_fault: object) -> None:
        self.socket.close()

    def frame(self) -> tuple[int, int, int, bytes]:
        head = self.exactly(9)
        return head[3], head[4], int.from_bytes(head[5:], "big"), self.exactly(int.from_bytes(head[:3], "big"))

    def exactly(self, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            got = self.socket.recv(size - len(taken))
            assert got, "the server hung up"
            taken += got
        return taken


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    with Kubelet(tmp_path) as made:
        yield made


def test_the_server_sends_no_more_than_the_windows_let_it(tmp_path: Path) -> None:
    server = Server(tmp_path / "s", lambda _method, _request: bytes(200_000))
    try:
        with Client(server.path) as client:
            client.socket.sendall(request("/m"))
            got, most = 0, 0
            while got < 65_535:
                kind, _flags, _stream, payload = client.frame()
                if kind == DATA:
                    got, most = got + len(payload), max(most, len(payload))
            assert (got, most <= 16_384) == (65_535, True)
            client.socket.settimeout(0.2)
            with pytest.raises(socket.timeout):
                client.frame()
            client.socket.settimeout(20)
            for stream in (0, 1):
                client.socket.sendall(frame(WINDOW_UPDATE, 0, stream, (1 << 20).to_bytes(4, "big")))
            kind, flags, payload = DATA, 0, b""
            while not (kind == HEADERS and flags & 1):
                kind, flags, _stream, payload = client.frame()
                got += len(payload) if kind == DATA else 0
            assert got == 5 + 200_000
            # The trailers: "grpc-status: 0", both texts in the Huffman code.
            assert payload == bytes.fromhex("40889acac8b21234da8f8107")
        assert server.calls == [("/m", b"")]
    finally:
        server.close()


def test_a_closed_server_leaves_a_socket_that_refuses(tmp_path: Path) -> None:
    server = Server(tmp_path / "s", lambda _method, _request: b"")
    server.faults = Faults(hang=True)
    with Client(server.path) as client:
        client.socket.sendall(request("/m"))
        server.close()
    with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionRefusedError):
        late.connect(str(server.path))


def test_messages_byte_by_byte() -> None:
    assert written.varint(300) == bytes.fromhex("ac02")  # the example of protobuf's own documentation
    assert written.field(2, "testing") == bytes.fromhex("120774657374696e67")
    assert written.field(1, 150) == bytes.fromhex("089601")
    assert written.field(1, -1) == bytes.fromhex("08ffffffffffffffffff01")
    assert written.listed([]) == b""
    empty = Pod(ONE, "p", (), "n")
    assert written.listed([empty, empty]) == bytes.fromhex("0a060a017012016e") * 2


def folders(kubelet: Kubelet) -> list[str]:
    return sorted(path.name for path in (kubelet.folder / "pods").iterdir())


def noted(kubelet: Kubelet) -> list[str]:
    entries = json.loads((kubelet.folder / CHECKPOINT).read_text())["Data"]["PodDeviceEntries"] or []
    return [f"{entry['PodUID']} {entry['DeviceIDs']['-1']}" for entry in entries]


def listing(kubelet: Kubelet) -> bytes:
    answer = kubelet.server.handler("/v1.PodResourcesLister/List", b"")
    assert isinstance(answer, bytes)
    return answer


def test_a_pod_comes_and_goes_and_its_checkpoint_stays(kubelet: Kubelet) -> None:
    init = Pod(ONE, "train", (Container("init", ("dev-init",), kind="init"), Container("main", ("dev-main",))))
    side = Pod(TWO, "web", (Container("proxy", ("dev-side",), kind="sidecar"),))
    kubelet.run(init, side)
    assert folders(kubelet) == [ONE, TWO]
    assert noted(kubelet) == [f"{ONE} ['dev-init']", f"{ONE} ['dev-main']", f"{TWO} ['dev-side']"]
    seen = listing(kubelet)
    assert [name in seen for name in (b"dev-init", b"dev-main", b"dev-side")] == [False, True, True]
    kubelet.end(ONE)
    assert folders(kubelet) == [TWO]
    assert len(noted(kubelet)) == 3
    assert [name in listing(kubelet) for name in (b"dev-main", b"dev-side")] == [False, True]


def test_after_a_restart_without_the_api_server_nothing_is_listed(kubelet: Kubelet) -> None:
    kubelet.run(Pod(ONE, "train", (Container("main", ("dev",)),)))
    kubelet.restart(api_server=False)
    assert listing(kubelet) == b""
    assert (folders(kubelet), len(noted(kubelet))) == ([ONE], 1)
    kubelet.restart()
    assert b"dev" in listing(kubelet)


def test_claims_are_kept_while_their_pod_lives(kubelet: Kubelet) -> None:
    kubelet.run(Pod(ONE, "train", (Container("main", claims=(Claim("gpu.example.com", "node-1", "gpu-0"),)),)))
    state = json.loads((kubelet.folder / CLAIMS).read_text())
    assert state["Checksum"] == zlib.crc32(state["Data"].encode())
    (claim,) = json.loads(state["Data"])["ClaimInfoStateList"]
    assert list(claim["PodUIDs"]) == [ONE]
    assert claim["DriverState"]["gpu.example.com"]["Devices"][0]["DeviceName"] == "gpu-0"
    assert all(name in listing(kubelet) for name in (b"gpu.example.com", b"node-1", b"gpu-0"))
    kubelet.end(ONE)
    state = json.loads((kubelet.folder / CLAIMS).read_text())
    assert json.loads(state["Data"])["ClaimInfoStateList"] is None


def test_another_method_is_not_known(kubelet: Kubelet) -> None:
    assert kubelet.server.handler("/v1.PodResourcesLister/Get", b"") == (
        12,
        "unknown method /v1.PodResourcesLister/Get",
    )
