# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GET of a public server: by the standard library, which knows of proxies, and whom the host believes."""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from typing import Any

from .https import Unsound, refuse_plain, whole
from .seen import Answer


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        refuse_plain(req.full_url, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def asked(url: str, context: ssl.SSLContext, end: float) -> Answer:
    """The answer, before `end` of the monotonic clock; raises OSError or Unsound where none comes."""
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _OnlyHttps())
    try:
        with opener.open(url, timeout=end - time.monotonic()) as answer:
            return Answer(answer.status, whole(answer.read1, end, url), answer.reason)
    except urllib.error.HTTPError as answer:
        with answer:
            return Answer(answer.code, whole(answer.read1, end, url), str(answer.reason))
    except http.client.HTTPException as fault:
        raise Unsound(str(fault) or type(fault).__name__) from None
