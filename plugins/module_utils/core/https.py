# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One GET over https: bounded in time and size, certificates verified, never led to plain http."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from typing import Any

from .errors import StepFailed
from .plan import Answer

LIMIT = 8 * 1024 * 1024  # bytes of an answer


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://"):
            raise StepFailed(f"{req.full_url} leads to {newurl}, which is not https: correct the address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


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
        opener = urllib.request.build_opener(*_handlers(ca, certificate, end))
        try:
            with opener.open(url, timeout=timeout) as answer:
                return Answer(answer.status, _text(answer, end, url), answer.reason)
        except urllib.error.HTTPError as answer:
            with answer:
                return Answer(answer.code, _text(answer, end, url), str(answer.reason))
    except (OSError, http.client.HTTPException, ValueError) as fault:
        is_tls = any(isinstance(one, ssl.SSLError) for one in (fault, getattr(fault, "reason", None)))
        where = "its certificate and ours" if is_tls else "whether it can be reached"
        raise StepFailed(f"{url} gives no answer: {_words(fault)}: see {where}") from None


def _handlers(ca: str, certificate: str, end: float) -> list[urllib.request.BaseHandler]:
    # As bytes a bundle would be DER, and as text its notes could be in no language but English.
    context = ssl.create_default_context(cadata=ca.encode("ascii", "replace").decode() or None)
    context.sslsocket_class = _bounded(end)
    if certificate:
        context.load_cert_chain(certificate, password="")  # else a terminal is asked for that of a locked key
    found: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=context), _OnlyHttps()]
    if ca:
        # Python 3.13 wants extensions that the authorities of older clusters have not, and that nobody else asks for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        found.append(urllib.request.ProxyHandler({}))
    return found


def _bounded(end: float) -> type[ssl.SSLSocket]:
    """Sockets of which no read outlasts `end`: what comes byte by byte is within the time of a single read."""

    class Bounded(ssl.SSLSocket):
        def recv_into(self, *given: Any, **more: Any) -> int:
            left = end - time.monotonic()
            if left <= 0:
                raise socket.timeout("timed out")
            self.settimeout(left)
            return super().recv_into(*given, **more)

    return Bounded


def _text(answer: Any, end: float, url: str) -> str:
    found = bytearray()
    while True:
        if time.monotonic() > end:
            raise socket.timeout("timed out")
        part = answer.read1(65_536)
        if not part:
            return bytes(found).decode("utf-8", "replace")
        found += part
        if len(found) > LIMIT:
            raise StepFailed(f"{url} answers with more than {LIMIT} bytes: correct the address")


def _words(fault: Exception) -> str:
    reason = getattr(fault, "reason", None) or getattr(fault, "strerror", None) or fault
    return " ".join(str(reason).split())
