# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Node's labels: which ones this machine is to have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..core.secret import Given
from .kube_seen import DOMAIN, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from ..core.named import NamedTuple

LONGEST = 63  # characters of a name and of a value
NODE_ID = f"{DOMAIN}node-id"
SITE = f"{DOMAIN}site"
GPU_COUNT = f"{DOMAIN}gpu.count"
GPU_PRODUCT = f"{DOMAIN}gpu.product"
GPU_DRIVER = f"{DOMAIN}gpu.driver"
OF_GPUS = (GPU_COUNT, GPU_PRODUCT, GPU_DRIVER)
OURS = frozenset((NODE_ID, SITE, *OF_GPUS))


class Gpus(NamedTuple):
    """The GPUs of this machine, as far as labels tell of them: how many, the names of the products, the driver."""

    count: int = 0  # type: ignore[assignment]  # the label's word; tuple.count is not used
    products: tuple[str, ...] = ()
    driver: str = ""


def wanted(want: Settings, given: Given, gpus: Gpus | None, shown: Mapping[str, str] | None = None) -> dict[str, str]:
    """All labels that we keep on this machine's Node, by key: those of the settings, and ours.

    `gpus` None: they do not answer, and what the Node shows of them (`shown`) stays; so does what the control plane
    calls this machine and its site, where this run was not told.
    """
    now = shown or {}
    found = dict(want.labels)
    for key, text in ((NODE_ID, given.node_id), (SITE, given.site)):
        _take(found, key, as_value(text) if text else now.get(key, ""))
    if gpus is None:
        for key in OF_GPUS:
            _take(found, key, now.get(key, ""))
    elif gpus.count:
        products = {as_value(product) for product in gpus.products}
        _take(found, GPU_COUNT, str(gpus.count))
        # A pod that selects a product must not land beside another one.
        _take(found, GPU_PRODUCT, products.pop() if len(products) == 1 else "")
        _take(found, GPU_DRIVER, as_value(gpus.driver))
    return found


def _take(labels: dict[str, str], key: str, value: str) -> None:
    if value:
        labels[key] = value


def as_value(text: str) -> str:
    """The text as a label's value: what it may not hold is "-", its ends are letters or digits; "" where none is left.

    "NVIDIA H100 80GB HBM3" is "NVIDIA-H100-80GB-HBM3".
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-_.")[:LONGEST].strip("-_.")
