# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's daemon as a look sees it, and the call that tells whether its CRI answers."""

from __future__ import annotations

from .containerd_seen import SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

VERSION = "/runtime.v1.RuntimeService/Version"  # a call that any CRI answers
CALL = f"CALL {SOCKET} {VERSION}"  # how an effect names it


class Daemon(NamedTuple):
    """containerd's service, and what keeps its CRI from answering: "" where it answers.

    `load`, `active` and `enabled` are systemd's words.
    """

    load: str
    active: str
    enabled: str
    silent: str = ""
