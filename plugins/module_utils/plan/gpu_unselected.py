# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a selector that takes none of a host's GPUs: what it could have named."""

from __future__ import annotations

from collections.abc import Sequence

from .gpu import Gpu, Select


def there(select: Select, gpus: Sequence[Gpu]) -> str:
    """The GPUs that are there, by what the selector names: "which have the indexes 0, 1".

    They are in the order of nvidia-smi; a model is told once. What does not say its model has its address.
    """
    what, values = {
        "index": ("indexes", [str(gpu.index) for gpu in gpus]),
        "uuid": ("UUIDs", [gpu.uuid for gpu in gpus]),
        "pci": ("PCI addresses", [gpu.pci for gpu in gpus]),
        "model": ("models", [gpu.name or gpu.pci for gpu in gpus]),
    }[select.kind]
    return f"which have the {what} {', '.join(dict.fromkeys(values))}"
