# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's own directory on a host, and the form of the records in it: one JSON object with the version of its shape."""

from __future__ import annotations

from .errors import StepFailed
from .json_text import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Callable

STATE = "/var/lib/bcd-hostconfig"
VERSION = 1
JOIN_RECORD = f"{STATE}/join-record.json"  # which node the host is, as its control plane signed it
JOIN_TOKEN = f"{STATE}/k8s/bootstrap-token"  # 0600: laid for a pass that nobody can give the token (front.staged)
AGENT = f"{STATE}/agent.json"  # what bcd agent came to; where it never ran, nothing of it is imported


def parse(path: str, text: str, is_whole: Callable[[dict[str, Any]], bool], lost: str = "") -> dict[str, Any]:
    """The record in the text of a file; `is_whole` says whether it holds what it should.

    Raises StepFailed, not retryable, for one that is damaged or of another version; `lost`: what is lost without it.
    """
    try:
        found = loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and found.get("version") == VERSION and is_whole(found):
        return found
    advice = f" ({lost})" if lost else ""
    raise StepFailed(
        f"{path} is not a record of version {VERSION}: look at it, then move it away{advice}", retryable=False
    )


def render(record: Mapping[str, Any]) -> str:
    """The record as the text of its file."""
    import json

    return json.dumps({"version": VERSION, **record}, indent=1) + "\n"
