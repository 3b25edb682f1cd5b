# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can go wrong in the lab, as one sentence each."""

from __future__ import annotations


class LabError(Exception):
    """The lab could not do what was asked: the thing, the value, the next move."""


class LabUnavailable(LabError):
    """This machine cannot run the lab as it stands: says what is missing and what provides it."""
