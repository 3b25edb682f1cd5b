# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kubelet says of its own failure, in the journal."""

from __future__ import annotations

import re

ASKS = ("journalctl", "--unit=kubelet.service", "--boot", "--lines=60", "--output=cat", "--no-pager")
ERROR = re.compile(r"[EF][0-9]{4} [0-9:.]+ +[0-9]+ [\w.-]+:[0-9]+\] ")  # how its errors begin
LONGEST = 300  # characters


def last_error(said: str) -> str:
    """The last error in what `ASKS` answers, on one line and without its head; "" where there is none."""
    errors = [line for line in said.splitlines() if ERROR.match(line) or line.startswith("Error: ")]
    return " ".join(ERROR.sub("", errors[-1]).split())[:LONGEST] if errors else ""
