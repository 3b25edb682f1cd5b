# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exit statuses of the program bcd, which scripts and systemd's units go by."""

from __future__ import annotations

CONVERGED, FAILED, PROGRESSING, USAGE, INTERRUPTED = 0, 1, 2, 64, 130
