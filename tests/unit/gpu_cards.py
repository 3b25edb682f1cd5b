# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs in memory behind the few commands of nvidia-smi that set and read a GPU's values.

Texts and exit statuses are those recorded of nvidia-smi 550.163.01; see tests/captures.
"""

from __future__ import annotations

from typing import Union

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Hung
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.unit.fake_host import FakeHost

COMPUTE_MODES = {"DEFAULT": "Default", "EXCLUSIVE_PROCESS": "Exclusive_Process"}
HANG, LIE = "hang", "lie"
Fault = Union[str, Answer]  # HANG, LIE (the exit status and the text of success, and nothing done), or an answer


def uuid(number: int) -> str:
    return f"GPU-01000100-0000-0000-0000-{number:012d}"


def card(number: int, name: str = "NVIDIA H100 80GB HBM3", **values: str) -> dict[str, str]:
    """One GPU's values as nvidia-smi prints them without units; a keyword has "_" for "."."""
    fields = {
        "index": str(number),
        "uuid": uuid(number),
        "pci.bus_id": f"00000000:{0x1A + number:02X}:00.0",
        "name": name,
        "power.limit": "700.00",
        "power.min_limit": "200.00",
        "power.max_limit": "700.00",
        "persistence_mode": "Enabled",
        "ecc.mode.current": "Enabled",
        "ecc.mode.pending": "Enabled",
        "mig.mode.current": "Disabled",
        "mig.mode.pending": "Disabled",
        "compute_mode": "Default",
        "memory.total": "81920",
    }
    return {field: values.pop(field.replace(".", "_"), text) for field, text in fields.items()}


class Cards:
    """The GPUs of one host. `faults` maps words of a command line to what happens instead, where all of them match."""

    def __init__(self, *cards: dict[str, str]) -> None:
        self.cards = list(cards)
        self.apps: list[tuple[str, int, str]] = []
        self.faults: dict[str, Fault] = {}

    def __call__(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        """As a program of a FakeHost."""
        fault = next((what for words, what in self.faults.items() if f" {words} " in f" {' '.join(argv)} "), None)
        if fault == HANG:
            raise Hung(f"{' '.join(argv)} did not end within 60 seconds: see what it waits for")
        if isinstance(fault, Answer):
            return fault
        before = [dict(values) for values in self.cards]
        answer = self._run(list(argv[1:]))
        if fault == LIE:
            self.cards = before
        return answer

    def _run(self, words: list[str]) -> Answer:
        given = words[words.index("-i") + 1] if "-i" in words else ""
        chosen = [
            values for values in self.cards if given in ("", values["index"], values["uuid"], values["pci.bus_id"])
        ]
        if not chosen:
            return Answer(6, "No devices were found\n")
        for word in words:
            if word.startswith("--query-gpu="):
                return self._rows(chosen, word.partition("=")[2].split(","))
            if word.startswith("--query-compute-apps="):
                names = [values["uuid"] for values in chosen]
                lines = [f"{gpu}, {pid}, {name}\n" for gpu, pid, name in self.apps if gpu in names]
                return Answer(0, "".join(lines))
        said, rc = "", 0
        for values in chosen:
            text, rc = self._set(values, words)
            said += text
            if rc:
                return Answer(rc, f"{said}Terminating early due to previous errors.\n")
        ends = "Reboot required.\n" if "ECC support for" in said and "already" not in said else ""
        return Answer(rc, f"{said}All done.\n{ends}")

    def _rows(self, chosen: list[dict[str, str]], fields: list[str]) -> Answer:
        known = {"count": str(len(self.cards))}
        lines = [", ".join(known.get(field) or values.get(field, "[N/A]") for field in fields) for values in chosen]
        return Answer(0, "".join(f"{line}\n" for line in lines))

    def _set(self, values: dict[str, str], words: list[str]) -> tuple[str, int]:
        pci = values["pci.bus_id"]
        if "-pl" in words:
            return self._power(values, float(words[words.index("-pl") + 1]))
        if "-e" in words:
            mode = "Enabled" if words[words.index("-e") + 1] == "1" else "Disabled"
            if values["ecc.mode.current"].startswith("["):
                return f"ECC features not supported for GPU {pci}.\nTreating as warning and moving on.\n", 0
            if values["ecc.mode.pending"] == mode:
                return f"ECC support is already {mode} for GPU {pci}.\n", 0
            values["ecc.mode.pending"] = mode
            return f"{mode} ECC support for GPU {pci}.\n", 0
        if "-c" in words:
            word = words[words.index("-c") + 1]
            if values["mig.mode.current"] == "Enabled":
                return (
                    f"Setting compute mode to {word} is not supported on a MIG-enabled device.\n"
                    f"Unable to set the compute mode for GPU {pci}: Not Supported\nTreating as warning and moving on.\n"
                ), 0
            if values["compute_mode"] == COMPUTE_MODES[word]:
                return f"Compute mode is already set to {word} for GPU {pci}.\n", 0
            values["compute_mode"] = COMPUTE_MODES[word]
            return f"Set compute mode to {word} for GPU {pci}.\n", 0
        raise AssertionError(f"nvidia-smi {' '.join(words)} is not played here")

    @staticmethod
    def _power(values: dict[str, str], watts: float) -> tuple[str, int]:
        pci, low, high = values["pci.bus_id"], values["power.min_limit"], values["power.max_limit"]
        if values["power.limit"].startswith("["):
            return (
                f"Changing power management limit is not supported for GPU: {pci}.\n"
                "Treating as warning and moving on.\n"
            ), 0
        if not low.startswith("[") and not float(low) <= watts <= float(high):
            return (
                f"Provided power limit {watts:.2f} W is not a valid power limit which should be between {low} W and "
                f"{high} W for GPU {pci}\n"
            ), 2
        said = f"Power limit for GPU {pci} was set to {watts:.2f} W from {values['power.limit']} W.\n"
        values["power.limit"] = f"{watts:.2f}"
        return said, 0
