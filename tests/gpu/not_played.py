# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulated machine says of a command that it does not play."""

from __future__ import annotations


class NotPlayed(BaseException):
    """The code under test asks for what nobody has recorded: play it, from what the real tool prints, before using it.

    No Exception, which the runner would take for a fault of a unit's: a test that only wants "not converged" would then
    pass for the wrong reason.
    """
