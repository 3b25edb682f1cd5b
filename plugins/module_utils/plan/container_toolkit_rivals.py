# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files beside ours that describe NVIDIA's devices. Imported only where there is one."""

from __future__ import annotations

from ..core.errors import StepFailed
from ..core.step import remove
from . import cdi
from .container_toolkit_config import OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..core.plan import Todo
    from .container_toolkit_spec import Described, Found

OLD = "/etc/cdi/nvidia.yaml"  # what versions before wrote


def refuse_twice(others: tuple[Found, ...], spec: Any) -> None:
    """A device that two files of one directory define is dropped by every runtime, from both."""
    names = set(cdi.device_names(spec))
    for path, devices, _fault in others:
        twice = sorted(names & {*devices})
        if twice and path.startswith("/etc/cdi/") and path != OLD:
            raise StepFailed(
                f"{path} defines {cdi.VENDOR_KIND}={twice[0]} as {OUTPUT} does, and runtimes take a device from "
                f"neither of two files of a folder: remove {path}",
                retryable=False,
            )


def plan(todo: Todo, now: Described, others: tuple[Found, ...]) -> None:
    """What we wrote before, and nvidia-cdi-refresh before it was steered, goes; another's is named."""
    if any(found.path == OLD for found in others):
        todo.add(remove(OLD, f"remove {OLD}, since two files of a folder would define the devices of {OUTPUT} twice"))
    for path, _devices, fault in others:
        if path == f"{now.runtime_folder}/nvidia.yaml" and now.refresh:
            todo.add(remove(path, f"remove {path}, which would outrank {OUTPUT}"))
        elif path.startswith(f"{now.runtime_folder}/"):
            odd = f" (it is not read here: {fault})" if fault else ""
            said = f"{path} describes {cdi.VENDOR_KIND} too and outranks {OUTPUT}{odd}"
            todo.note(f"{said}: let what writes it do so no more")
        elif fault and path != OLD:
            todo.note(f"{path} names {cdi.VENDOR_KIND}, and is not read here ({fault})")
