# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The version of the collection, which a program on a host cannot read from galaxy.yml."""

from __future__ import annotations

VERSION = "0.1.0"  # as in galaxy.yml
ONE_VERSION = "bring helper and collection to one version (role bcd_helper)"
