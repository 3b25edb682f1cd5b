# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The door to https, against a real server: whose certificate counts, how long, how much, and where it is led."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import http.server
import io
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import https
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.seen import Answer


def issued(name: str, signer: tuple[Any, Any] | None = None) -> tuple[Any, Any]:
    """A key and its certificate, by the signer or by itself as a CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if signer is None else signer[1].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
    )
    return key, builder.sign(key if signer is None else signer[0], hashes.SHA256())


def pem(certificate: Any) -> str:
    text: bytes = certificate.public_bytes(serialization.Encoding.PEM)
    return text.decode()


def both(path: Path, pair: tuple[Any, Any]) -> str:
    """A file with the certificate and its key."""
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_text(pem(pair[1]) + pair[0].private_bytes(*form).decode())
    return str(path)


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            for _byte in range(100):
                self.wfile.write(b".")
                self.wfile.flush()
                time.sleep(0.1)
            return
        if self.path in ("/slow-head", "/not-yet"):
            self._go_on(b"." if self.path == "/slow-head" else b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        leads = {"/again": "/who", "/plain": "http://127.0.0.1/"}.get(self.path)
        self.send_response(302 if leads else 404 if self.path == "/missing" else 200)
        if leads:
            self.send_header("Location", leads)
        self.end_headers()
        who = self.connection.getpeercert() or {}
        self.wfile.write(b"." * 5000 if self.path == "/much" else repr(who.get("subject", "nobody")).encode())

    def _go_on(self, part: bytes) -> None:
        """An answer whose beginning does not end."""
        with contextlib.suppress(OSError):
            for _part in range(100):
                self.wfile.write(part)
                self.wfile.flush()
                time.sleep(0.1)

    def log_message(self, *_args: Any) -> None:
        """Say nothing."""


class Site:
    """A server on this machine that asks for a certificate and takes none too."""

    def __init__(self, folder: Path) -> None:
        self.authority = issued("authority")
        self.ca = pem(self.authority[1])
        self.ours = both(folder / "ours.pem", issued("ours", self.authority))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.load_cert_chain(both(folder / "server.pem", issued("server", self.authority)))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


class Raw:
    """A server that gives the same bytes to whoever asks, and ends the connection or waits for the other to end it."""

    def __init__(self, folder: Path, answer: bytes, ends: bool) -> None:
        authority = issued("authority")
        self.ca = pem(authority[1])
        self.answer, self.ends, self.asked = answer, ends, b""
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(both(folder / "server.pem", issued("server", authority)))
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                bare, _peer = self.socket.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), self.context.wrap_socket(bare, server_side=True) as wire:
                self.asked = wire.recv(65_536)
                wire.sendall(self.answer)
                if not self.ends:
                    wire.recv(1)


def raw(folder: Path, answer: bytes, ends: bool = True) -> Any:
    """What is answered to a GET of such a server; the server."""
    made = Raw(folder, answer, ends)
    try:
        return https.get(f"https://{made.place}/a?b=c#d", 10, made.ca), made
    finally:
        made.socket.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_it_is_asked_with_our_certificate(site: Site) -> None:
    answer = https.get(f"{site.url}/who", 10, site.ca, site.ours)
    assert (answer.rc, "'ours'" in answer.out) == (200, True)
    assert https.get(f"{site.url}/who", 10, site.ca).out == "'nobody'"


def test_a_status_is_an_answer_and_a_way_on_is_followed(site: Site) -> None:
    assert https.get(f"{site.url}/missing", 10, site.ca)[0::2] == (404, "Not Found")
    assert https.get(f"{site.url}/again", 10, site.ca, site.ours).rc == 200


@pytest.mark.parametrize("ca", ["", "another"])
def test_a_server_of_another_authority_is_not_believed(site: Site, ca: str) -> None:
    with pytest.raises(StepFailed, match=r"gives no answer: .*certificate verify failed"):
        https.get(f"{site.url}/who", 10, pem(issued("another")[1]) if ca else "")


def test_it_is_never_led_away_from_https(site: Site) -> None:
    with pytest.raises(StepFailed, match=r"leads to http://127\.0\.0\.1/, which is not https"):
        https.get(f"{site.url}/plain", 10, site.ca)


@pytest.mark.parametrize("path", ["drip", "slow-head", "not-yet"])
def test_the_time_bounds_the_whole_answer(site: Site, path: str) -> None:
    begin = time.monotonic()
    with pytest.raises(StepFailed, match="timed out"):
        https.get(f"{site.url}/{path}", 0.5, site.ca)
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "file:///etc/hostname", "gpu-01:6443"])
def test_nothing_but_https_is_asked(url: str) -> None:
    with pytest.raises(StepFailed, match="which is not https"):
        https.get(url, 1)


def test_a_certificate_of_ours_that_cannot_be_used_is_where_to_look(site: Site, tmp_path: Path) -> None:
    (tmp_path / "ours.pem").write_text("garbage")
    with pytest.raises(StepFailed, match="see its certificate and ours"):
        https.get(f"{site.url}/who", 10, site.ca, str(tmp_path / "ours.pem"))
    with pytest.raises(StepFailed, match="see its certificate and ours"):
        https.get(f"{site.url}/who", 10, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


def test_a_key_with_a_password_is_a_fault_and_no_question_to_the_terminal(site: Site, tmp_path: Path) -> None:
    key, certificate = issued("ours", site.authority)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    locked = key.private_bytes(*form, serialization.BestAvailableEncryption(b"open sesame")).decode()
    (tmp_path / "ours.pem").write_text(pem(certificate) + locked)
    with pytest.raises(StepFailed, match="see its certificate and ours"):
        https.get(f"{site.url}/who", 10, site.ca, str(tmp_path / "ours.pem"))


def test_a_bundle_with_notes_in_any_language_is_read(site: Site) -> None:
    assert https.get(f"{site.url}/who", 10, f"# Zürich\n{site.ca}").rc == 200


def test_too_much_is_no_answer(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https, "LIMIT", 4000)
    with pytest.raises(StepFailed, match="answers with more than 4000 bytes"):
        https.get(f"{site.url}/much", 10, site.ca)


def test_a_proxy_of_the_environment_gets_no_credentials(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    assert https.get(f"{site.url}/who", 10, site.ca, site.ours).rc == 200


@pytest.mark.parametrize("certificate", ["/nonexistent/kubelet.pem", "broken"])
def test_a_certificate_that_cannot_be_used_is_said(site: Site, tmp_path: Path, certificate: str) -> None:
    if certificate == "broken":
        (tmp_path / "broken.pem").write_text("no certificate")
        certificate = str(tmp_path / "broken.pem")
    with pytest.raises(StepFailed, match="gives no answer"):
        https.get(f"{site.url}/who", 10, site.ca, certificate)


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(StepFailed, match=r"https://127\.0\.0\.1:9/x gives no answer: .*refused: see whether it can be"):
        https.get("https://127.0.0.1:9/x", 5)


# -- what a server of a known authority may answer


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "body"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:4\r\n\r\nbody", "body"),
        (CHUNKED + b"3;note=x\r\nbod\r\nB\r\ny of chunks\r\n0\r\n\r\n", "body of chunks"),
        (CHUNKED + b"0\r\n\r\n", ""),
    ],
)
def test_an_answer_ends_where_it_says_so(tmp_path: Path, answer: bytes, said: str) -> None:
    found, server = raw(tmp_path, answer, ends=False)
    assert found == (200, said, "OK")
    head = server.asked.split(b"\r\n")
    assert head[0] == b"GET /a?b=c HTTP/1.1"
    assert {f"Host: {server.place}".encode(), b"Connection: close"} <= {*head}


def test_an_answer_that_does_not_say_ends_with_the_connection(tmp_path: Path) -> None:
    assert raw(tmp_path, b"HTTP/1.0 503 Service Unavailable\n\nbody")[0] == (503, "body", "Service Unavailable")
    assert raw(tmp_path, b"HTTP/1.1 404\r\n\r\n")[0] == (404, "", "")


class Line:
    """A connection on which these bytes come, for the library's reader."""

    def __init__(self, told: bytes) -> None:
        self.told = told

    def makefile(self, *_mode: object) -> io.BufferedReader:
        return io.BufferedReader(io.BytesIO(self.told))


FIELDS = st.lists(st.sampled_from([b"X-Y: z", b"Location: /on", b"Content-Type:application/json", b"date:\t now "]))


def framed(parts: list[bytes], how: str) -> tuple[bytes, bytes]:
    """A field that says where the body ends, and the body."""
    if how == "chunks":
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part)
        return b"transfer-encoding:Chunked", chunks + b"0\r\n\r\n"
    body = b"".join(parts)
    return (b"Content-Length: %d" % len(body) if how == "length" else b"Connection: close"), body


@given(
    st.sampled_from([b"200 OK", b"404 Not Found", b"503 ", b"401"]),
    FIELDS,
    st.lists(st.binary(max_size=40)),
    st.sampled_from(["chunks", "length", "end"]),
)
def test_an_answer_is_what_the_library_takes_it_for(
    status: bytes, fields: list[bytes], parts: list[bytes], how: str
) -> None:
    ends, body = framed(parts, how)
    told = b"\r\n".join([b"HTTP/1.1 " + status, *{*fields}, ends, b"", b""]) + body
    library = http.client.HTTPResponse(Line(told))  # type: ignore[arg-type]
    library.begin()
    found, leads = https._answer(Line(told).makefile(), time.monotonic() + 60, "https://host/")
    said = library.read().decode("utf-8", "replace")
    assert (found, leads) == (Answer(library.status, said, library.reason), library.getheader("location", ""))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "ends early"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9", "ends early"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "has '2x0' for a number"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n", "more than 100 lines"),
        (b"HTTP/1.1 200 " + b"K" * 70_000, "a line without an end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "has '-1' for a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody", "ends 5 bytes early"),
        (CHUNKED + b"4\r\nbo", "ends 2 bytes early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "is sent as gzip, chunked"),
        (CHUNKED + b"4\r\nbody\r\n", "ends early"),
        (CHUNKED + b"zz\r\nbody\r\n", "has 'zz' for a number"),
        (b"HTTP/1.1 302 Found\r\nLocation: /a?b=c\r\nContent-Length: 0\r\n\r\n", "leads on more than 10 times"),
    ],
)
def test_half_an_answer_is_none(tmp_path: Path, answer: bytes, why: str) -> None:
    with pytest.raises(StepFailed, match=f"gives no answer: .*({why})"):
        raw(tmp_path, answer)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("k8s.example.com:6443", b"k8s.example.com", 6443),
        ("k8s.example.com", b"k8s.example.com", 443),
        ("[fd00::1]:6443", b"fd00::1", 6443),
        ("[fd00::1]", b"fd00::1", 443),
        ("k8s.ex\u00e4mple.com", "k8s.ex\u00e4mple.com", 443),
    ],
)
def test_hosts_and_ports_are_told_apart(
    site: Site, monkeypatch: pytest.MonkeyPatch, url: str, host: str | bytes, port: int
) -> None:
    """A name that is ASCII is given as bytes, which spares each pass the import of a codec."""
    asked: list[Any] = []

    def refused(address: Any, _timeout: float) -> Any:
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refused)
    with pytest.raises(StepFailed):
        https.get(f"https://{url}/x", 5, site.ca)
    assert asked == [(host, port)]


@pytest.mark.parametrize("place", ["", ":6443", "a:b", "user@host:1", "a b:1", "a:1\r\nx"])
def test_what_is_no_host_is_not_asked(site: Site, place: str) -> None:
    with pytest.raises(StepFailed, match="is no host with a port"):
        https.get(f"https://{place}/x", 5, site.ca)


@pytest.mark.parametrize("path", ["a b", "a\r\nX-Y: 1", "ä"])
def test_a_path_cannot_add_to_what_is_asked(site: Site, path: str) -> None:
    with pytest.raises(StepFailed, match="gives no answer"):
        https.get(f"{site.url}/{path}", 5, site.ca)
