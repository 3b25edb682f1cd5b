# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of the running kernel: loaded or built in, their parameters."""

from __future__ import annotations

from ..core.host import Host
from ..core.unknown import later
from ..plan.kernel_modules import Module
from ..plan.reload import FOLDER, record_path
from .kernel import NVIDIA, parse_nvidia, refcnt, release


def builtin_modules(host: Host) -> frozenset[str]:
    """Names, with underscores, of what is built into the running kernel."""
    return parse_builtin(host.read(f"/lib/modules/{release(host)}/modules.builtin") or "")


def parse_builtin(text: str) -> frozenset[str]:
    """modules.builtin: one path a line, "kernel/drivers/net/tun.ko"."""
    names = (line.strip().rpartition("/")[2] for line in text.splitlines())
    return frozenset(name.partition(".ko")[0].replace("-", "_") for name in names if name)


def module(host: Host, name: str, parameters: tuple[str, ...], builtin: frozenset[str]) -> Module:
    """One module as /sys/module shows it; `parameters` names those whose values are asked for."""
    plain = name.replace("-", "_")
    folder = f"/sys/module/{plain}"
    count = refcnt(host, plain)
    return Module(
        name=plain,
        loaded=count is not None,
        builtin=count is None and (plain in builtin or host.exists(folder)),
        refcnt=count or 0,
        holders=host.names(f"{folder}/holders"),
        parameters={key: later(_parameter, host, plain, key) for key in parameters},
        record=host.file(record_path(plain)),
    )


def _parameter(host: Host, name: str, key: str) -> str | None:
    """A parameter of a loaded module, None where it is not shown; NVIDIA's driver shows its own in another place."""
    text = host.read(f"/sys/module/{name}/parameters/{key}")
    if text is None and name == "nvidia" and key.startswith("NVreg_"):
        return parse_nvidia(host.read(NVIDIA) or "").get(key[len("NVreg_") :])
    return None if text is None else text.strip()


def recorded_modules(host: Host) -> tuple[str, ...]:
    """The modules that have a record (see plan.reload)."""
    return host.names(FOLDER)
