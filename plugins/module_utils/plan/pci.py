# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI addresses, in the forms that programs and the kernel print."""

from __future__ import annotations

import re

PCI = re.compile(r"([0-9a-f]{4}|[0-9a-f]{8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)


def normal_pci(text: str) -> str | None:
    """A PCI address as nvidia-smi prints it, from a domain of four or eight digits in any case; None: it is none."""
    found = PCI.fullmatch(text.strip())
    if not found:
        return None
    domain, bus, device, function = found.groups()
    return f"{int(domain, 16):08X}:{bus.upper()}:{device.upper()}.{function}"
