# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of the running kernel: loaded or built in, their parameters."""

from __future__ import annotations

from ..core.host import Host
from ..core.unknown import later
from ..plan.kernel_modules import Module
from ..plan.reload import FOLDER, record_path
from .builtin_modules import is_builtin
from .kernel import NVIDIA, parse_nvidia, refcnt


def module(host: Host, name: str, parameters: tuple[str, ...]) -> Module:
    """One module as /sys/module shows it, without who uses it; `parameters` names those whose values are asked for."""
    plain = name.replace("-", "_")
    folder = f"/sys/module/{plain}"
    loaded = host.exists(f"{folder}/refcnt")  # which neither one that is not loaded has, nor one that is built in
    return Module(
        name=plain,
        loaded=loaded,
        builtin=not loaded and (host.exists(folder) or host.sight(is_builtin, plain)),
        parameters={key: later(_parameter, host, plain, key) for key in parameters},
        record=host.file(record_path(plain)),
    )


def used(host: Host, seen: Module) -> Module:
    """The same module with who uses it, which changes all the time: for one that may have to be unloaded."""
    holders = host.names(f"/sys/module/{seen.name}/holders")
    return seen._replace(refcnt=refcnt(host, seen.name) or 0, holders=holders)


def _parameter(host: Host, name: str, key: str) -> str | None:
    """A parameter of a loaded module, None where it is not shown; NVIDIA's driver shows its own in another place."""
    text = host.read(f"/sys/module/{name}/parameters/{key}")
    if text is None and name == "nvidia" and key.startswith("NVreg_"):
        return parse_nvidia(host.read(NVIDIA) or "").get(key[len("NVreg_") :])
    return None if text is None else text.strip()


def recorded_modules(host: Host) -> tuple[str, ...]:
    """The modules that have a record (see plan.reload)."""
    return host.names(FOLDER)
