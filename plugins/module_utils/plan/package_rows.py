# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Installed packages, and how dpkg lists them (rpm: package_rows_rpm)."""

from __future__ import annotations

import re

from ..core.errors import StepFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

JOURNAL = "/var/lib/dpkg/updates"  # what a dpkg that runs, or was killed, has not merged yet
DPKG_FORMAT = "${db:Status-Abbrev}|${Package}|${Version}\\n"
INSTALLED = "iUFWt"  # i: whole; U, F: unpacked or half configured; W, t: triggers are due
BROKEN = "UFW"


class Package(NamedTuple):
    """An installed package. `version` is the manager's own, "580.95.05-0ubuntu0.24.04.1" or "3:580.95.05-1.el9".

    `held`: the manager will not change it by itself. `whole` is false when a killed dpkg left it half configured.
    """

    name: str
    version: str
    held: bool = False
    whole: bool = True


def upstream(version: str) -> str:
    """The maker's own version in a package's, without epoch and revision.

    "3:580.95.05-1.el9" is 580.95.05, and so is "580.95.05_k6.4.0_1-lp156".
    """
    return re.split(r"[-_~+]", version.rpartition(":")[2], maxsplit=1)[0]


def asks_dpkg(names: tuple[str, ...]) -> tuple[str, ...]:
    """Versions and states of the names; those that dpkg does not know make it exit with 1."""
    return ("dpkg-query", "-W", "-f", DPKG_FORMAT, *names)


def parse_dpkg(text: str) -> list[Package]:
    """Rows `hi |name|version`: what is wanted (h: hold), the state, and maybe R; only what is installed counts."""
    found = []
    for line in text.splitlines():
        row = re.fullmatch(r"([uihrp?])([ncHUFWti])([ R]?)\|([^|\s]+)\|(\S*)", line)
        if not row:
            raise StepFailed(f"dpkg-query printed a line that is not known: {line!r}", retryable=False)
        want, state, _error, name, version = row.groups()
        if state in INSTALLED:
            found.append(Package(name, version, held=want == "h", whole=state not in BROKEN))
    return found
