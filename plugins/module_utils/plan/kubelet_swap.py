# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubelet minds swap, by its configuration."""

from __future__ import annotations

import re


def fails_on_swap(config: str) -> bool:
    """Whether kubelets of this configuration (YAML) refuse to run beside swap: unless it says so in one plain way.

    Only `failSwapOn: false` as a key of the one document counts; whatever else there is, such as flow style or an
    anchor, is taken for yes.
    """
    lines = config.splitlines()
    if sum(line.startswith(("---", "...")) for line in lines[1:]):
        return True
    said = [line for line in lines if "failSwapOn" in line and not line.lstrip().startswith("#")]
    return len(said) != 1 or not re.fullmatch(r"failSwapOn:[ ]+(false|False|FALSE)[ ]*([ ]#.*)?", said[0])
