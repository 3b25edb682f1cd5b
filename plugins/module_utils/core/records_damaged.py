# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is lost with a record that is damaged, and has to be moved away: the end of the sentence that says so."""

from __future__ import annotations

WITHOUT = {
    "applied": "units that have left the section are then not cleaned, unless `known` (in playbooks "
    "bcd_converge_known) names them",
    "owed": "a follow-up that a killed pass left is then lost: run update-grub and systemctl daemon-reload by hand, "
    "and see that the services and modules that it took away are back, and that packages are held",
    "tried": "nothing is lost: the next pass tries again",
    "reboot": "nothing is lost: the next pass says again what waits",
    "asked": "nothing is lost once the host is converged again, and bcd agent keeps nothing before that",
}
