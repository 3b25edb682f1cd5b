# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated hosts for the tests of mig-layout."""

from __future__ import annotations

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT
from tests.gpu.fake import GpuHost, gpu_host
from tests.gpu.model import Machine
from tests.unit import promises

SERVICE = "/etc/systemd/system/bcd-mig.service"
H100, A100, A30, RTX, L40S = "H100-80GB", "A100-40GB", "A30-24GB", "RTX-PRO-6000-Blackwell", "L40S"
ALL = {"layout": "all-1g.10gb"}


def host_of(*products: str, **more: Any) -> GpuHost:
    return gpu_host(Machine.from_products(products, **more))


def go(host: GpuHost, settings: dict[str, Any] | None, **more: Any) -> Outcome:
    return promises.go(UNIT, host, settings, **more)


def made(host: GpuHost, gpu: int, *profiles: str) -> None:
    """Instances that are there before, in this order, where the driver puts them."""
    machine = host.machine
    machine.cards[gpu].mig = machine.cards[gpu].mig_pending = True
    rc, said = machine.smi(("nvidia-smi", "mig", "-i", str(gpu), "-cgi", ",".join(profiles), "-C"))
    assert rc == 0, said
    host.sync()


def commands(host: GpuHost) -> list[str]:
    """What nvidia-smi was told to change."""
    return [call for call in host.calls if call.startswith("nvidia-smi")]


def with_parts(host: GpuHost, *parts: str) -> None:
    """3g.40gb instances with these compute instances each, "3g.40gb" or "1c.3g.40gb,1c.3g.40gb"."""
    card = host.machine.cards[0]
    card.mig = card.mig_pending = True
    for names in parts:
        assert host.machine.smi(("nvidia-smi", "mig", "-i", "0", "-cgi", "3g.40gb"))[0] == 0
        gi = card.instances[-1].id
        assert host.machine.smi(("nvidia-smi", "mig", "-i", "0", "-cci", names, "-gi", str(gi)))[0] == 0
    host.sync()
