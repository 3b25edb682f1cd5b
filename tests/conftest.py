# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every test: property tests draw the same examples on each run, without a clock."""

from __future__ import annotations

from pathlib import Path

from hypothesis import configuration, settings

configuration.set_hypothesis_home_dir(Path(__file__).resolve().parents[1] / ".build" / "hypothesis")
settings.register_profile("bcd", deadline=None, derandomize=True, database=None)
settings.load_profile("bcd")
