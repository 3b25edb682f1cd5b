# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a worker's kernel from being as it must: other units' settings, and modules that are not there."""

from __future__ import annotations

from ..core.errors import Refused
from ..core.plan import Past
from .kernel_parameters import ROOT, parts_of, same
from .kube_kernel import ALIAS, BELOW, KEYS, MODULES, UNIT, Kernel
from .sysctl import check
from .unit_names import KERNEL_MODULES, SYSCTL


def refuse(past: Past) -> None:
    """Refuse settings of sysctl and kernel-modules, in wire form as applied, that ask for the opposite of ours."""
    ours = {key.path: key for key in (*KEYS, ALIAS)}
    for name, value in past.applied.get(SYSCTL, {}).items():
        key = ours.get("/".join((ROOT, *parts_of(name))))
        if key is None:
            continue
        given = check({name: value}).keys[0].value
        if not same(key.value, given):
            raise Refused(
                f"{UNIT}: the unit {SYSCTL} sets {name} = {given}, and a worker needs {key.name} = {key.value}: "
                f"take it out of the settings of {SYSCTL}"
            )
    kept_out = {str(name).replace("-", "_") for name in past.applied.get(KERNEL_MODULES, {}).get("blacklist", ())}
    for name in (*MODULES, *BELOW):
        if name in kept_out:
            needed = f"needs {name}" if name in MODULES else f"needs br_netfilter, which stands on {name}"
            raise Refused(
                f"{UNIT}: the unit {KERNEL_MODULES} keeps {name} out, and a worker {needed}: "
                f"take it off blacklist in the settings of {KERNEL_MODULES}"
            )


def why_missing(name: str, now: Kernel) -> str:
    """The sentence for a module that this kernel does not have on disk."""
    if now.modules[name] == "gone":
        return (
            f"{UNIT}: the running kernel, {now.release}, has no modules on disk any more, and {name} is not loaded: "
            "reboot the node into an installed kernel"
        )
    means = f"install {now.extra}, which has it" if now.extra else "boot a kernel that has it"
    return f"{UNIT}: the running kernel, {now.release}, has no module {name}: {means}, and run again"
