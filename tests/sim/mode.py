# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Says how simulated hosts are entered here: `python -m tests.sim.mode`."""

from __future__ import annotations

import os
import subprocess
import sys

ENTER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "enter.py")


def refusal() -> str:
    """Why no namespace can be made here; empty when it can."""
    done = subprocess.run([sys.executable, "-IS", ENTER, "--probe"], check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr.strip().removeprefix("sim: no namespace: ")


def sentence() -> str:
    """The mode, for a person."""
    why = refusal()
    if not why:
        return "simulated hosts run in mount namespaces of their own"
    return f"simulated hosts are mapped into their trees, for this collection's modules only: no namespace here ({why})"


if __name__ == "__main__":
    print(sentence())
