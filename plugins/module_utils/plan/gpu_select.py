# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How settings select GPUs, and what is wrong with what is no selector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused
from .gpu import SELECT, Select
from .pci import normal_pci

NOT_ONE = {
    "uuid": 'not a GPU\'s UUID such as "GPU-5f1c2a90-0000-4000-8000-000000000001"',
    "pci": 'not a PCI address with its domain such as "0000:17:00.0"',
    "index": "not an index from 0 on",
    "model": 'not a pattern over product names such as "*H100*"',
}
UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def check_select(given: Mapping[str, Any], where: str) -> Select:
    """The selector of one mapping with exactly one of uuid, pci, index and model.

    `where` names its place, "mig-layout: gpus[0].select"; raises Refused.
    """
    kinds = [field for field in SELECT if given.get(field.wire) is not None]
    unknown = sorted(set(given) - {field.wire for field in SELECT})
    if unknown or len(kinds) != 1:
        found = ", ".join(unknown or [field.wire for field in kinds]) or "nothing"
        raise Refused(f"{where} takes exactly one of uuid, pci, index and model, not {found}: correct the settings")
    kind, types = kinds[0].wire, kinds[0].types
    wanted = given[kind]
    if type(wanted) not in types or not _is_one(kind, wanted):
        raise Refused(f"{where}.{kind} is {wanted!r}, {NOT_ONE[kind]}: correct the settings")
    return Select(kind, wanted)


def _is_one(kind: str, wanted: Any) -> bool:
    if kind == "uuid":
        return UUID.fullmatch(wanted) is not None
    if kind == "pci":
        return normal_pci(wanted) is not None
    return bool(wanted >= 0 if kind == "index" else wanted.strip())
