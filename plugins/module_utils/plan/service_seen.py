# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service as systemd has it."""

from __future__ import annotations

from .systemd_asks import RUNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple


class Service(NamedTuple):
    """A service as systemd has it. `load` is "loaded", or "not-found" where there is no unit of the name.

    `active` is the state that systemd prints: active, inactive, failed, activating ... `enabled` is what it prints of
    the next boot: enabled, disabled, static, masked ...
    """

    load: str = "not-found"
    active: str = "inactive"
    enabled: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is up."""
        return self.active in RUNS

    @property
    def is_masked(self) -> bool:
        """Whether it is kept from being started at all."""
        return self.enabled.startswith("masked")
