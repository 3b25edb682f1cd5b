# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The message of the condition RebootRequired, which has room for so much alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGE_BYTES = 1024
PHRASE = "reboot the node"


def bounded(messages: Sequence[str], limit: int = MESSAGE_BYTES) -> str:
    """The messages joined, in at most `limit` bytes of UTF-8; when cut, each keeps its beginning and what to do."""
    whole = "; ".join(messages)
    if len(_bytes(whole)) <= limit:
        return whole
    share = (limit - 2 * (len(messages) - 1)) // len(messages)
    return "; ".join(_cut(message, share) for message in messages)


def _cut(message: str, limit: int) -> str:
    if len(_bytes(message)) <= limit:
        return message
    tail = f" ...: {PHRASE}"
    return _bytes(message)[: max(0, limit - len(tail))].decode("utf-8", "ignore") + tail


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
