# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One GET over https: bounded in time and size, certificates verified, never led to plain http.

A server whose authority is known is asked over a socket of our own: what the standard library has for HTTP takes more
time to import than the whole answer does.
"""

from __future__ import annotations

import socket
import ssl
import time

from .errors import StepFailed
from .seen import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT = 8 * 1024 * 1024  # bytes of an answer
LONGEST_LINE, MOST_LINES = 65_536, 100  # bytes of a line of a head; lines of one, and parts of an answer's way
MOST_WAYS = 10  # redirects that are followed
AGAIN = (301, 302, 303, 307, 308)


class Unsound(Exception):
    """An answer that is not HTTP."""


def get(url: str, timeout: float, ca: str = "", certificate: str = "") -> Answer:
    """The status, the text and the reason of the answer; redirects are followed, to https alone.

    `timeout` bounds the whole call, in seconds. `ca`: the certificates (PEM) that the server has to be signed by, else
    the host's own; the server is then asked directly, without a proxy. `certificate`: a file with our certificate and
    its key. Raises StepFailed where no answer comes.
    """
    end = time.monotonic() + timeout
    if not url.startswith("https://"):
        raise StepFailed(f"{url} is an address which is not https: correct the address")
    try:
        context = trusting(ca, certificate, end)
        if ca:
            return _asked(url, context, end)
        from .https_public import asked

        return asked(url, context, end)
    except (OSError, Unsound, ValueError) as fault:
        is_tls = any(isinstance(one, ssl.SSLError) for one in (fault, getattr(fault, "reason", None)))
        where = "its certificate and ours" if is_tls else "whether it can be reached"
        raise StepFailed(f"{url} gives no answer: {_words(fault)}: see {where}") from None


def trusting(ca: str, certificate: str, end: float) -> ssl.SSLContext:
    """What a server is believed by, and knows us by; no read of its sockets outlasts `end`, of the monotonic clock."""
    # As bytes a bundle would be DER, and as text its notes could be in no language but English.
    context = ssl.create_default_context(cadata=ca.encode("ascii", "replace").decode() or None)
    context.sslsocket_class = _bounded(end)
    if certificate:
        context.load_cert_chain(certificate, password="")  # else a terminal is asked for that of a locked key
    if ca:
        # Python 3.13 wants extensions that the authorities of older clusters have not, and that nobody else asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _bounded(end: float) -> type[ssl.SSLSocket]:
    """Sockets of which no read outlasts `end`: what comes byte by byte is within the time of a single read."""

    class Bounded(ssl.SSLSocket):
        def recv_into(self, *given: Any, **more: Any) -> int:
            self.settimeout(_left(end))
            return super().recv_into(*given, **more)

    return Bounded


def _left(end: float) -> float:
    """The seconds until then; raises as a read does that comes to nothing."""
    left = end - time.monotonic()
    if left <= 0:
        raise socket.timeout("timed out")
    return left


def whole(read: Any, end: float, url: str) -> str:
    """What `read` gives, which takes a number of bytes, until it gives nothing more."""
    found = bytearray()
    while True:
        _left(end)
        part = read(65_536)
        if not part:
            return bytes(found).decode("utf-8", "replace")
        found += part
        if len(found) > LIMIT:
            raise StepFailed(f"{url} answers with more than {LIMIT} bytes: correct the address")


def refuse_plain(url: str, leads: str) -> None:
    """Raise StepFailed for a way from one address to another that is not https."""
    if not leads.startswith("https://"):
        raise StepFailed(f"{url} leads to {leads}, which is not https: correct the address")


def _words(fault: Exception) -> str:
    reason = getattr(fault, "reason", fault)  # of URLError, which is about another one; that of SSLError is a bare word
    told = fault if isinstance(fault, ssl.SSLError) else reason
    return " ".join(str(getattr(told, "strerror", None) or told).split())


# -- a server of a known authority


def _asked(url: str, context: ssl.SSLContext, end: float) -> Answer:
    """The answer at the end of the way."""
    for _way in range(MOST_WAYS):
        answer, leads = _once(url, context, end)
        if answer.rc not in AGAIN or not leads:
            return answer
        from urllib.parse import urljoin

        leads = urljoin(url, leads)
        refuse_plain(url, leads)
        url = leads
    raise Unsound(f"it leads on more than {MOST_WAYS} times")


def _once(url: str, context: ssl.SSLContext, end: float) -> tuple[Answer, str]:
    """One answer, and where it leads to."""
    place, slash, path = url[len("https://") :].partition("#")[0].partition("/")  # a fragment is not the server's
    host, port = _address(place)
    if not path.isascii() or not path.isprintable() or " " in path:
        raise Unsound("its path has what no path has as it is")
    # As bytes a name is taken as it is; of text Python looks whether it has letters of another script, by a codec that
    # takes longer to import than the server does to answer.
    name: Any = host.encode("ascii") if host.isascii() else host
    with socket.create_connection((name, port), _left(end)) as bare:
        bare.settimeout(_left(end))
        with context.wrap_socket(bare, server_hostname=name) as wire:
            head = f"GET {slash or '/'}{path} HTTP/1.1\r\nHost: {place}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
            wire.sendall(head.encode("ascii"))
            with wire.makefile("rb") as answer:
                return _answer(answer, end, url)


def _address(place: str) -> tuple[str, int]:
    """Host and port of "host:port", "[address]:port", or either without a port."""
    bare = place.endswith("]") or ":" not in place
    host, _colon, port = (place, "", "443") if bare else place.rpartition(":")
    if not port.isascii() or not port.isdigit() or not host or any(sign in place for sign in "@?# \t\r\n"):
        raise Unsound(f"{place!r} is no host with a port")
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), int(port)


def _answer(source: Any, end: float, url: str) -> tuple[Answer, str]:
    status, reason, fields = _head(source, end)
    while 100 <= status < 200:  # more is to come
        status, reason, fields = _head(source, end)
    coding = fields.get("transfer-encoding", "identity").lower()
    if coding not in ("identity", "chunked"):
        raise Unsound(f"its answer is sent as {coding[:40]}, which nobody asked for")
    if coding == "chunked":
        parts = _Chunks(source)
        return Answer(status, whole(parts.read, end, url), reason), fields.get("location", "")
    size = fields.get("content-length", "")
    if not size:  # it ends with the connection
        return Answer(status, whole(source.read1, end, url), reason), fields.get("location", "")
    rest = _Counted(source, _number(size, 10))
    return Answer(status, whole(rest.read, end, url), reason), fields.get("location", "")


def _head(source: Any, end: float) -> tuple[int, str, dict[str, str]]:
    """Status, reason, and the fields by their names in lower case."""
    _left(end)
    version, _blank, rest = _line(source).partition(" ")
    status, _blank, reason = rest.partition(" ")
    if not version.startswith("HTTP/1.") or len(status) != 3:
        raise Unsound("it does not answer in HTTP")
    fields: dict[str, str] = {}
    for _number_of_line in range(MOST_LINES):
        line = _line(source)
        if not line:
            return _number(status, 10), reason.strip(), fields
        name, _colon, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    raise Unsound(f"its head has more than {MOST_LINES} lines")


def _line(source: Any) -> str:
    line: bytes = source.readline(LONGEST_LINE + 1)
    if not line.endswith(b"\n"):
        raise Unsound("its answer ends early, or has a line without an end")
    return line.decode("latin-1").rstrip("\r\n")


def _number(text: str, base: int) -> int:
    try:
        if text.isalnum():
            return int(text, base)
    except ValueError:
        pass
    raise Unsound(f"its answer has {text[:40]!r} for a number")


class _Counted:
    """So many bytes of a stream."""

    def __init__(self, source: Any, left: int) -> None:
        self.source, self.left = source, left

    def read(self, size: int) -> bytes:
        """What has come of the next bytes; b"" at the end."""
        if not self.left:
            return b""
        part: bytes = self.source.read1(min(size, self.left))
        if not part:
            raise Unsound(f"its answer ends {self.left} bytes early")
        self.left -= len(part)
        return part


class _Chunks:
    """The bytes of a stream that comes in chunks (RFC 9112, 7.1)."""

    def __init__(self, source: Any) -> None:
        self.source, self.chunk, self.is_first, self.is_over = source, _Counted(source, 0), True, False

    def read(self, size: int) -> bytes:
        """What has come of the next bytes; b"" at the end."""
        if self.is_over:
            return b""
        if not self.chunk.left:
            if not self.is_first:
                _line(self.source)  # the end of the chunk before
            self.is_first = False
            self.chunk.left = _number(_line(self.source).partition(";")[0].strip(), 16)
            self.is_over = not self.chunk.left
        return self.chunk.read(size)
