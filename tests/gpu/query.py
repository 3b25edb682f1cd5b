# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi --query-gpu` and `--query-compute-apps` over a simulated machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cards import Card, Nvml

if TYPE_CHECKING:
    from .model import Machine

Said = tuple[int, str]
HELP = "Please run 'nvidia-smi -h' for help.\n\n"
ALIASES = {
    "gpu_uuid": "uuid",
    "gpu_name": "name",
    "gpu_bus_id": "pci.bus_id",
    "gpu_serial": "serial",
    "used_memory": "used_gpu_memory",
    "name": "name",
}
UNITS = {
    "power.limit": "W",
    "power.min_limit": "W",
    "power.max_limit": "W",
    "power.default_limit": "W",
    "power.draw": "W",
    "memory.total": "MiB",
    "memory.used": "MiB",
    "used_gpu_memory": "MiB",
}
# The call of the library behind a field, so that a test can let it fail.
CALLS = {
    "power.limit": "nvmlDeviceGetPowerManagementLimit",
    "power.min_limit": "nvmlDeviceGetPowerManagementLimitConstraints",
    "power.max_limit": "nvmlDeviceGetPowerManagementLimitConstraints",
    "power.default_limit": "nvmlDeviceGetPowerManagementDefaultLimit",
    "ecc.mode.current": "nvmlDeviceGetEccMode",
    "ecc.mode.pending": "nvmlDeviceGetEccMode",
    "compute_mode": "nvmlDeviceGetComputeMode",
    "mig.mode.current": "nvmlDeviceGetMigMode",
    "mig.mode.pending": "nvmlDeviceGetMigMode",
    "fabric.state": "nvmlDeviceGetGpuFabricInfo",
    "fabric.status": "nvmlDeviceGetGpuFabricInfo",
}
STATIC = ("index", "uuid", "name", "pci.bus_id", "driver_version", "count", "serial", "pci.device_id")
FIELDS = {*STATIC, *CALLS, "power.draw", "memory.total", "memory.used", "persistence_mode", "compute_cap"}
MODE_WORDS = {"DEFAULT": "Default", "EXCLUSIVE_PROCESS": "Exclusive_Process", "PROHIBITED": "Prohibited"}
APPS = ("gpu_name", "gpu_bus_id", "gpu_serial", "gpu_uuid", "pid", "process_name", "name", "used_gpu_memory")


def _format(given: str | None) -> tuple[set[str], str]:
    """The modifiers of --format, with what is printed when they are wrong."""
    if given is None:
        return set(), f'"--format=" switch is missing. {HELP}'
    words = set(given.split(","))
    if not words <= {"csv", "noheader", "nounits"}:
        return words, "Format modifier is not recognized.\n"
    return words, ""


def _csv(names: list[str], rows: list[list[str]], words: set[str]) -> str:
    """Rows of texts with their units, and the line of names over them."""
    units = {} if "nounits" in words else UNITS
    head = ", ".join(f"{name} [{UNITS[name]}]" if name in UNITS else name for name in names)
    lines = [] if "noheader" in words else [head]
    for row in rows:
        lines.append(
            ", ".join(
                f"{text} {units[name]}" if name in units and not text.startswith("[") else text
                for name, text in zip(names, row)
            )
        )
    return "".join(line + "\n" for line in lines)


def gpus(machine: Machine, chosen: list[Card], fields: str, form: str | None) -> tuple[int, str]:
    """--query-gpu."""
    words, wrong = _format(form)
    if wrong:
        return 2, wrong
    names = [ALIASES.get(name, name) for name in fields.split(",")]
    for name, given in zip(names, fields.split(",")):
        if name not in FIELDS or (name.startswith("fabric.") and machine.branch < 535):
            return 2, f'Field "{given}" is not a valid field to query.\n\n'
    return 0, _csv(names, [[_field(machine, card, name) for name in names] for card in chosen], words)


def _field(machine: Machine, card: Card, name: str) -> str:
    """A field's text, in brackets where the library had no value."""
    try:
        if card.dead == "fields" and name not in STATIC:
            raise Nvml(15)
        if name in CALLS:
            machine.check(CALLS[name])
        return _value(machine, card, name)
    except Nvml as fault:
        if fault.code != 3:
            return f"[{fault.words}]"
        return "[Unknown Error]" if name == "power.limit" else "[N/A]"


def _value(machine: Machine, card: Card, name: str) -> str:
    kind = card.kind
    if name.startswith("power."):
        if kind.power is None:
            raise Nvml(3)
        limits = {
            "power.min_limit": kind.power[0],
            "power.max_limit": kind.power[1],
            "power.default_limit": kind.power[1],
        }
        return f"{limits.get(name, card.power):.2f}"
    if name.startswith("mig.mode."):
        if not kind.mig or "nomig" in machine.nvml:
            raise Nvml(3)
        return "Enabled" if (card.mig if name.endswith("current") else card.mig_pending) else "Disabled"
    if name.startswith("ecc.mode."):
        if not kind.ecc:
            raise Nvml(3)
        return "Enabled" if (card.ecc if name.endswith("current") else card.ecc_pending) else "Disabled"
    if name.startswith("fabric."):
        if not card.fabric:
            raise Nvml(3)
        done = card.fabric == "Completed"
        return card.fabric if name == "fabric.state" else "Success" if done else "N/A"
    used = sum(process.memory_mib for process in card.processes)
    return {
        "index": str(machine.cards.index(card)),
        "uuid": card.uuid,
        "name": kind.name,
        "pci.bus_id": card.pci,
        "driver_version": str(machine.loaded),
        "count": str(len(machine.cards)),
        "serial": "[N/A]",
        "pci.device_id": f"{kind.pci_id.upper().replace('X', 'x')}10DE",
        "memory.total": str(kind.memory_mib),
        "memory.used": str(used),
        "persistence_mode": "Enabled" if card.persistence else "Disabled",
        "compute_mode": MODE_WORDS[card.compute_mode],
        "compute_cap": {"Turing": "7.5", "Ampere": "8.0", "Ada": "8.9", "Hopper": "9.0"}.get(kind.architecture, "10.0"),
    }[name]


def apps(machine: Machine, chosen: list[Card], fields: str, form: str | None) -> tuple[int, str]:
    """--query-compute-apps: the parent GPU's UUID, for MIG devices too."""
    words, wrong = _format(form)
    if wrong:
        return 2, wrong
    names = ["used_gpu_memory" if name == "used_memory" else name for name in fields.split(",")]
    for name in names:
        if name not in APPS:
            return 2, f'Field "{name}" is not a valid field to query.\n\n'
    rows = []
    for card in chosen:
        for process in card.processes:
            told = {
                "gpu_uuid": card.uuid,
                "gpu_bus_id": card.pci,
                "gpu_name": card.kind.name,
                "gpu_serial": "[N/A]",
                "pid": str(process.pid),
                "process_name": process.name,
                "name": process.name,
                "used_gpu_memory": str(process.memory_mib),
            }
            rows.append([told[name] for name in names])
    return 0, _csv(names, rows, words)
