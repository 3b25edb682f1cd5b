# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of nvidia-smi over a simulated machine: its texts and exit statuses, by driver branch.

Everything goes to standard output, errors too. What is not played raises NotPlayed rather than guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from . import migcli, query
from .cards import Card, Nvml
from .not_played import NotPlayed

if TYPE_CHECKING:
    from .model import Machine

Said = tuple[int, str]
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n\n"
)
NO_LIBRARY = (
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. "
    "Please make sure that the NVIDIA Display Driver is properly installed and present in your system.\n"
    "Please also try adding directory that contains libnvidia-ml.so to your system PATH.\n"
)
IN_USE = (
    "{} is currently being used by one or more other processes (e.g. CUDA application or a monitoring application such "
    "as another instance of nvidia-smi). Please first kill all processes using the device and retry the command or "
    "reboot the system to make MIG mode effective.\n"
)
NOT_PERSISTENT = (
    "\nWarning: persistence mode is disabled on device {}. See the Known Issues section of the nvidia-smi(1) man page "
    "for more information. Run with [--help | -h] switch to get more information on how to enable persistence mode.\n"
)
HELP = "Please run 'nvidia-smi -h' for help.\n\n"
WARNING, END, DONE = (
    "Treating as warning and moving on.\n",
    "Terminating early due to previous errors.\n",
    "All done.\n",
)
WITH_VALUE = {
    "-i": "i", "--id": "i", "-pl": "pl", "--power-limit": "pl", "-e": "e", "--ecc-config": "e", "-c": "c",
    "--compute-mode": "c", "-pm": "pm", "--persistence-mode": "pm", "-mig": "mig", "--multi-instance-gpu": "mig",
    "--query-gpu": "gpu", "--query-compute-apps": "apps", "--format": "format",
}  # fmt: skip
FLAGS = {
    "-L": "L", "--list-gpus": "L", "-r": "r", "--gpu-reset": "r", "-q": "q", "--query": "q", "-x": "x",
    "--xml-format": "x", "--version": "version",
}  # fmt: skip
MODES = {
    "0": "DEFAULT", "DEFAULT": "DEFAULT", "2": "PROHIBITED", "PROHIBITED": "PROHIBITED", "3": "EXCLUSIVE_PROCESS",
    "EXCLUSIVE_PROCESS": "EXCLUSIVE_PROCESS",
}  # fmt: skip


def command(machine: Machine, words: tuple[str, ...]) -> Said:
    """Run it with these words after the program's name."""
    failed = _start(machine)
    if failed or words[:1] == ("mig",):
        return failed or migcli.command(machine, words[1:])
    given, wrong = options(words)
    if wrong or "L" in given:
        return (2, wrong) if wrong else _list(machine, given)
    if not machine.cards or "nogpu" in machine.nvml:
        return 6, "No devices were found\n"
    chosen = machine.find(given["i"]) if "i" in given else list(machine.cards)
    lost = next((card for card in chosen if card.dead == "handle"), None)
    if lost or not chosen:
        return (15, _no_handle(lost)) if lost else (6, "No devices were found\n")
    if "gpu" in given:
        return query.gpus(machine, chosen, given["gpu"], given.get("format"))
    if "apps" in given:
        return query.apps(machine, chosen, given["apps"], given.get("format"))
    return _act(machine, chosen, given)


def _act(machine: Machine, chosen: list[Card], given: dict[str, str]) -> Said:
    """The commands that change GPUs, and the summaries."""
    for key, setter in SETTERS.items():
        if key in given:
            return _set(machine, chosen, setter, given[key], given[key] if key == "mig" else "")
    if "r" in given:
        return _reset(machine, chosen)
    if "version" in given:
        return 0, f"NVIDIA-SMI version  : {machine.library}\nDRIVER version      : {machine.loaded}\n"
    if not set(given) - {"i"}:
        return 0, f"| NVIDIA-SMI {machine.library}   Driver Version: {machine.loaded} |\n"
    raise NotPlayed(f"nvidia-smi {given}")


def _start(machine: Machine) -> Said | None:
    """What a start of the library answers, None when all is well."""
    code = machine.nvml.get("init", 0)
    if machine.library is None or code == 12:
        return 12, NO_LIBRARY
    if machine.loaded is None or code == 9:
        return 9, NO_DRIVER
    if machine.loaded != machine.library or code == 18:
        text = "Failed to initialize NVML: Driver/library version mismatch\n"
        if machine.branch < 535:
            return 255, text
        return 18, text + f"NVML library version: {'.'.join(machine.library.split('.')[:2])}\n"
    if code:
        fault = Nvml(code)
        return fault.rc, f"Failed to initialize NVML: {fault.words}\n"
    return None


def options(words: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """Words as options, with what is printed when one is not known."""
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in FLAGS:
            given[FLAGS[name]] = ""
        elif name in WITH_VALUE and (equals or rest):
            given[WITH_VALUE[name]] = value if equals else rest.pop(0)
        else:
            return given, f"Invalid combination of input arguments. {HELP}"
    return given, ""


def _list(machine: Machine, given: dict[str, str]) -> Said:
    if "i" in given:
        old = machine.branch < 535
        text = "Invalid combination of input arguments. " if old else "ERROR: Option -i is not valid for this command. "
        return 2, text + HELP
    if not machine.cards or "nogpu" in machine.nvml:
        return 0, "No devices found.\n"
    text = ""
    for index, card in enumerate(machine.cards):
        if card.dead == "handle":
            return 15, text + _no_handle(card)
        text += f"GPU {index}: {card.kind.name} (UUID: {card.uuid})\n"
        for number, (gi, ci) in enumerate(card.devices() if card.mig else ()):
            name, which = card.device_name(gi, ci), card.device_uuid(gi, ci, machine.branch)
            if machine.branch < 470:
                text += f"  MIG {name} Device {number}: (UUID: {which})\n"
            else:
                text += f"  MIG {name:<11} Device {number:>2}: (UUID: {which})\n"
    return 0, text


def _no_handle(card: Card) -> str:
    bus = card.pci[4:]
    return f"Unable to determine the device handle for GPU {bus}: GPU is lost.  Reboot the system to recover this GPU\n"


Setter = Callable[["Machine", Card, str], str]


class Stop(Exception):
    """A setter failed: what it printed, and whether it is only a warning."""

    def __init__(self, text: str, rc: int) -> None:
        super().__init__(text)
        self.text = text
        self.rc = rc


def _set(machine: Machine, chosen: list[Card], setter: Setter, value: str, mode: str) -> Said:
    """Apply a setter to each GPU: what is not supported is a warning, anything else ends it."""
    if mode not in ("", "0", "1"):
        return 2, f"Invalid MIG Mode: {mode}\n{END}"
    text = ""
    ecc = setter is _ecc
    reboot = False
    for card in chosen:
        try:
            said = setter(machine, card, value)
            reboot = reboot or (ecc and "already" not in said)
        except Stop as stop:
            text += stop.text
            if stop.rc != 3:
                return stop.rc, text + END
            text += WARNING
            continue
        text += said
        if not card.persistence and setter is not _persistence:
            text += NOT_PERSISTENT.format(card.pci)
    return 0, text + DONE + ("Reboot required.\n" if reboot else "")


def _mig(machine: Machine, card: Card, value: str) -> str:
    from .model import Pending

    word = "enable" if value == "1" else "disable"
    try:
        machine.set_mode(card, value == "1")
    except Pending as pending:
        text = f"Warning: MIG mode is in pending {word} state for GPU {card.pci}:{pending.words}\n"
        if pending.code == 19:
            return text + IN_USE.format(card.pci)
        return text + (
            "Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU " + card.pci + "\n"
        )
    except Nvml as fault:
        raise Stop(f"Unable to {word} MIG Mode for GPU {card.pci}: {fault.words}\n", fault.rc) from None
    return f"{word.capitalize()}d MIG Mode for GPU {card.pci}\n"


def _power(machine: Machine, card: Card, value: str) -> str:
    limits = card.kind.power
    failed = machine.nvml.get("setpl", 0)
    if limits is None or failed == 3:
        raise Stop(f"Changing power management limit is not supported for GPU: {card.pci}.\n", 3)
    watts = float(value)
    if not limits[0] <= watts <= limits[1] and "nvmlDeviceGetPowerManagementLimitConstraints" not in machine.nvml:
        raise Stop(
            f"Provided power limit {watts:.2f} W is not a valid power limit which should be between "
            f"{limits[0]:.2f} W and {limits[1]:.2f} W for GPU {card.pci}\n",
            2,
        )
    try:
        machine.privileged(card)
        machine.check("setpl")
    except Nvml as fault:
        text = f"Failed to set power management limit for GPU {card.pci}: {fault.words}\n"
        raise Stop(text, fault.rc) from None
    before, card.power = card.power, watts
    return f"Power limit for GPU {card.pci} was set to {watts:.2f} W from {before:.2f} W.\n"


def _ecc(machine: Machine, card: Card, value: str) -> str:
    if not card.kind.ecc or "nvmlDeviceGetEccMode" in machine.nvml:
        raise Stop(f"ECC features not supported for GPU {card.pci}.\n", 3)
    word = "Enabled" if value == "1" else "Disabled"
    if card.ecc_pending == (value == "1"):
        return f"ECC support is already {word} for GPU {card.pci}.\n"
    try:
        machine.privileged(card)
        machine.check("setecc")
    except Nvml as fault:
        raise Stop(f"Unable to set ECC config for GPU {card.pci}: {fault.words}\n", fault.rc) from None
    card.ecc_pending = value == "1"
    return f"{word} ECC support for GPU {card.pci}.\n"


def _compute(machine: Machine, card: Card, value: str) -> str:
    mode = MODES[value.upper()]
    if card.mig and mode == "EXCLUSIVE_PROCESS":
        text = "Setting compute mode to EXCLUSIVE_PROCESS is not supported on a MIG-enabled device.\n"
        raise Stop(text + f"Unable to set the compute mode for GPU {card.pci}: Not Supported\n", 3)
    if card.compute_mode == mode:
        return f"Compute mode is already set to {mode} for GPU {card.pci}.\n"
    try:
        machine.privileged(card)
        machine.check("setcm")
    except Nvml as fault:
        raise Stop(f"Unable to set the compute mode for GPU {card.pci}: {fault.words}\n", fault.rc) from None
    card.compute_mode = mode
    return f"Set compute mode to {mode} for GPU {card.pci}.\n"


def _persistence(machine: Machine, card: Card, value: str) -> str:
    word = "Enabled" if value == "1" else "Disabled"
    if card.persistence == (value == "1"):
        return f"Persistence mode is already {word} for GPU {card.pci}.\n"
    try:
        machine.privileged(card)
    except Nvml as fault:
        raise Stop(f"Unable to set persistence mode for GPU {card.pci}: {fault.words}\n", fault.rc) from None
    card.persistence = value == "1"
    return f"{word} persistence mode for GPU {card.pci}.\n"


SETTERS: dict[str, Setter] = {"mig": _mig, "pl": _power, "e": _ecc, "c": _compute, "pm": _persistence}


def _reset(machine: Machine, chosen: list[Card]) -> Said:
    """Reset all of them, or none when one is in use."""
    if machine.passthrough:
        return 0, "".join(f"Resetting GPU {card.pci} is not supported.\n" for card in chosen)
    refused = []
    for card in chosen:
        try:
            machine.privileged(card)
            machine.check("reset")
            if machine.blockers(card):
                raise Nvml(19)
        except Nvml as fault:
            if not (fault.code == 15 and card.dead == "fields"):
                refused.append((card, fault))
    if not refused:
        for card in chosen:
            card.dead = ""
            machine.reset(card)
        return 0, "".join(f"GPU {card.pci} was successfully reset.\n" for card in chosen) + DONE
    text = "The following GPUs could not be reset:\n"
    text += "".join(f"  GPU {card.pci}: {fault.words}\n" for card, fault in refused)
    busy = sum(fault.code == 19 for _card, fault in refused)
    if busy:
        which = "1 device is" if busy == 1 else f"{busy} devices are"
        these = "this device" if busy == 1 else "these devices"
        text += (
            f"\n{which} currently being used by one or more other processes (e.g., Fabric Manager, CUDA application, "
            "graphics application such as an X server, or a monitoring application such as another instance of "
            f"nvidia-smi). Please first kill all processes using {these} and all compute applications running in the "
            "system.\n"
        )
    return 255, text
