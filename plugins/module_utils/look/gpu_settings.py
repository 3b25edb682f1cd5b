# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The power limit and the ECC mode of each GPU, as nvidia-smi prints them."""

from __future__ import annotations

from ..core.host import Host
from ..core.unknown import later
from ..plan.gpu_settings import QUERIED, Card, Seen
from .each_gpu import Row, each_gpu


def gpus(host: Host) -> tuple[Seen, ...]:
    """Every GPU of the host; the card of one that does not answer raises why when it is used."""
    return tuple(Seen(gpu, later(_card, row)) for gpu, row in each_gpu(host, QUERIED))


def _card(row: Row) -> Card:
    return Card(
        limit=row["power.limit"],
        low=row["power.min_limit"],
        high=row["power.max_limit"],
        persistence=row["persistence_mode"],
        ecc=row["ecc.mode.current"],
        ecc_pending=row["ecc.mode.pending"],
    )
