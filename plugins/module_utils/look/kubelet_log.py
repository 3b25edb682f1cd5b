# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the log of a kubelet that does not run ends with."""

from __future__ import annotations

from ..core.host import Host
from ..plan.kube_seen import SERVICE

LINES = 20  # of the kubelet's log
LONGEST = 400  # characters of its last words
LOG = ("journalctl", f"--unit={SERVICE}", f"--lines={LINES}", "--output=cat", "--no-pager", "--quiet")


def last_words(host: Host) -> str:
    """What the kubelet's log ends with: its last error, else its last line; "" where there is no log."""
    lines = [line.strip() for line in host.ask(LOG).out.splitlines() if line.strip()]
    errors = [line for line in lines if _is_error(line)]
    return (errors or lines or [""])[-1][:LONGEST]


def _is_error(line: str) -> bool:
    """Whether a line is an error of klog's ("E1130 00:01:21.720290 ...", fatal ones with F) or of the program's."""
    return (line[:1] in ("E", "F") and line[1:5].isdigit()) or line.lower().startswith(("error:", "panic:"))
