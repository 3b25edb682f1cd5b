# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a step changed, as one entry of Ansible's diff; imported where something did."""

from __future__ import annotations

from collections.abc import Mapping

from .step import File, Step

UNSHOWN = "(not shown: not everybody may read this file)\n"
OPEN = "/etc/bcd/"  # root's configuration of ours, whose pins a person compares, and which has no secret


def difference(step: Step, before: File | None, after: File | None) -> Mapping[str, str]:
    """One entry of Ansible's diff: whole texts, with a mode that moved in the headers.

    Of a file that not everybody may read no text: logs have results, and so has an account that bcd helper serves.
    """
    headers = [step.path, step.path]
    if before and after and before.mode != after.mode:
        headers = [f"{step.path} (mode {before.mode:04o})", f"{step.path} (mode {after.mode:04o})"]
    was, now = "" if before is None else before.text, "" if after is None else after.text
    closed = any(file is not None and not file.mode & 0o004 for file in (before, after))
    if closed and not step.path.startswith(OPEN):
        was, now = was and UNSHOWN, now and f"{UNSHOWN}(and it differs)\n"
    return {"before_header": headers[0], "after_header": headers[1], "before": was, "after": now}
