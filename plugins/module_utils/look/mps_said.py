# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an MPS daemon answers: a sight, since it reads its questions from standard input."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.host import Host

TIMEOUT = 10.0  # seconds for an answer, which takes a daemon that is well some milliseconds


def said(host: Host, argv: list[str], question: str) -> tuple[int, str, str]:
    """The exit status, output and errors of the daemon's control program, asked this."""
    answer = host.ask((*argv,), TIMEOUT, question)
    return answer.rc, answer.out, answer.err
