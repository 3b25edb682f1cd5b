# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated machine with NVIDIA GPUs: what the driver does to them, what a reboot leaves, and faults at a call.

    machine = Machine.from_products(["H100-80GB", "H100-80GB"], driver="550.163.01")
    machine.smi(("nvidia-smi", "-i", "0", "-mig", "1"))  # (0, "Enabled MIG Mode for GPU ...")
    machine.faults.append(Fault("mig -i 0 -cgi", do="lie"))  # exit 0, the usual text, nothing done
    machine.nvml["dgi"] = 19  # one call of the driver's library answers a code, whoever makes it
    machine.cards[0].processes.append(Process(4242, "python3"))
    machine.reboot()

A machine is plain values (`dump`, `load`), so that it can live in a file of a simulated host's tree.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from . import cards as values
from . import placement
from .cards import CI_IDS, Card, Ci, Gi, Nvml, Process, ci_slices
from .plain import asdict, dataclass, field
from .products import GpuProfile, product

__all__ = ["Card", "Ci", "Fault", "Gi", "Hang", "Machine", "Nvml", "Process", "product"]
Said = tuple[int, str]


class Hang(Exception):
    """The program does not end."""


@dataclass
class Fault:
    """What goes wrong at calls whose words contain `match`, after the first `after` of them, `times` times (0: always).

    `do`: "say" (`rc` and `text`, nothing done), "done" (done all the same, but that is what it says), "hang", "lie".
    """

    match: str
    do: str = "say"
    rc: int = 0
    text: str = ""
    after: int = 0
    times: int = 0
    seen: int = 0

    def strikes(self, words: str) -> bool:
        """Whether this call is one of them; counts."""
        if self.match not in words:
            return False
        self.seen += 1
        return self.seen > self.after and (not self.times or self.seen <= self.after + self.times)


@dataclass
class Machine:
    """The GPUs of a machine, its driver, and who uses them.

    `loaded`, `library`, `disk`: full versions of the kernel module in memory, of libnvidia-ml, and of the module file.
    `flavour` and `disk_flavour`: open or proprietary. `uvm`, `modeset`, `drm`: further modules that are loaded.
    `clients`: programs that hold the GPUs without computing on them (nvidia-persistenced, nv-hostengine, ...).
    `toolkit`: the version of nvidia-ctk. `mps`: MPS control daemons that run, by pipe directory.
    `gi_ids`: "tree", "swapped" (as some boards number the halves) or "count" (in order of creation).
    `nvml`: codes that calls of the library answer: init, nogpu, nomig, noperm, migact, setmig, cgi, cci, dgi, dci,
    setpl, setecc, setcm, reset, or the getters by their own names.
    """

    cards: list[Card] = field(default_factory=list)
    loaded: str | None = None
    library: str | None = None
    disk: str | None = None
    flavour: str = "proprietary"
    disk_flavour: str = "proprietary"
    uvm: bool = True
    modeset: bool = True
    drm: bool = False
    clients: list[str] = field(default_factory=list)
    toolkit: str = "1.17.8"
    mps: dict[str, Any] = field(default_factory=dict)
    passthrough: bool = False
    root: bool = True
    gi_ids: str = "tree"
    nvml: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    calls: list[tuple[str, ...]] = field(default_factory=list)

    @classmethod
    def from_products(cls, keys: Sequence[str], driver: str = "550.163.01", **more: Any) -> Machine:
        """GPUs of these products with a driver loaded; on the bus in this order."""
        cards = []
        for number, key in enumerate(keys):
            kind = product(key)
            cards.append(
                Card(
                    key,
                    f"GPU-{number:08x}-0000-4000-8000-{number:012x}",
                    f"00000000:{0x17 + number * 0x11:02X}:00.0",
                    number,
                    power=float(kind.power[1]) if kind.power else 0.0,
                    ecc=kind.ecc,
                    ecc_pending=kind.ecc,
                )
            )
        return cls(cards, driver, driver, driver, **more)

    @property
    def branch(self) -> int:
        """The branch of nvidia-smi and its library."""
        return int((self.library or "0").split(".")[0])

    # -- into a file and back

    def dump(self) -> str:
        """As JSON text; calls are left out."""
        plain = asdict(self)
        del plain["calls"]
        return json.dumps(plain, indent=1, sort_keys=True) + "\n"

    @classmethod
    def load(cls, text: str) -> Machine:
        """From such text."""
        plain = json.loads(text)
        plain["cards"] = [values.from_json(card) for card in plain["cards"]]
        plain["faults"] = [Fault(**fault) for fault in plain["faults"]]
        return cls(**plain)

    # -- the program

    def smi(self, argv: Sequence[str]) -> Said:
        """Run nvidia-smi: exit status and standard output (it writes its errors there too). Raises Hang."""
        from .smi import command

        words = tuple(argv)[1:] if argv and argv[0].rpartition("/")[2] == "nvidia-smi" else tuple(argv)
        return self.struck(words, lambda machine: command(machine, words))

    def struck(self, words: tuple[str, ...], program: Callable[[Machine], Said]) -> Said:
        """Run a program that works on this machine, with the fault that a test asked of such a call."""
        self.calls.append(words)
        fault = next((one for one in self.faults if one.strikes(" ".join(words))), None)
        if fault is None:
            return program(self)
        if fault.do == "hang":
            raise Hang(" ".join(words))
        if fault.do == "lie":
            return 0, program(copy.deepcopy(self))[1]
        if fault.do == "done":
            program(self)
        return fault.rc, fault.text

    def check(self, call: str) -> None:
        """Answer the code that a test asked of a call of the library."""
        if self.nvml.get(call):
            raise Nvml(self.nvml[call])

    # -- what the driver does

    def blockers(self, card: Card, mode: bool = False) -> list[str]:
        """Who keeps a GPU from being reset, or (`mode`) from changing its MIG mode."""
        found = [process.name for process in card.processes]
        if mode and not card.kind.resets_for_mig:
            return found
        old = card.kind.architecture in ("Ampere", "Turing", "Volta", "Pascal")
        found += [name for name in self.clients if old or name != "nv-fabricmanager"]
        return [*found, "nvidia_drm"] if self.drm else found

    def set_mode(self, card: Card, on: bool) -> None:
        """Change MIG mode; raises Nvml for the call, or Pending when it was accepted and has no effect yet."""
        if not card.kind.mig or "nomig" in self.nvml:
            raise Nvml(3)
        self.privileged(card)
        self.check("setmig")
        card.mig_pending = on
        if card.mig == on:
            return
        if "migact" in self.nvml:
            raise Pending(self.nvml["migact"])
        if self.passthrough and card.kind.resets_for_mig:
            raise Pending(3)
        if self.blockers(card, mode=True):
            raise Pending(19)
        self._activate(card)

    def _activate(self, card: Card) -> None:
        if card.kind.resets_for_mig:
            self._fresh(card)
        card.mig = card.mig_pending
        card.instances = []
        card.compute_mode = "DEFAULT"

    def reset(self, card: Card) -> None:
        """Reset a GPU; raises Nvml."""
        self.privileged(card)
        self.check("reset")
        if self.blockers(card):
            raise Nvml(19)
        self._fresh(card)
        if card.dead == "fields":
            card.dead = ""

    def _fresh(self, card: Card) -> None:
        """What a reset of the hardware leaves."""
        card.instances = []
        card.mig = card.mig_pending
        card.ecc = card.ecc_pending
        card.compute_mode = "DEFAULT"
        card.power = float(card.kind.power[1]) if card.kind.power else 0.0

    def create_gi(self, card: Card, profile: GpuProfile, start: int | None = None) -> Gi:
        """Create a GPU instance."""
        self.privileged(card)
        self.check("cgi")
        if start is None:
            start = placement.place(card, profile)
        elif not placement.room_at(card, profile, start):
            start = None
        if start is None:
            raise Nvml(23)
        if self.gi_ids == "count":
            number = next(one for one in range(1, 99) if all(gi.id != one for gi in card.instances))
        else:
            number = placement.position(card.kind.units, start, profile.size, self.gi_ids == "swapped")
        made = Gi(number, profile.id, start)
        card.instances.append(made)
        return made

    def create_ci(self, card: Card, gi: Gi, slices: int | None = None) -> Ci:
        """Create a compute instance, of the whole GPU instance by default."""
        self.privileged(card)
        self.check("cci")
        whole = card.profile(gi.profile).compute
        wanted = whole if slices is None else slices
        if wanted not in ci_slices(card.profile(gi.profile)):
            raise Nvml(2)
        occupied = {unit for ci in gi.cis for unit in range(ci.start, ci.start + ci.slices)}
        start = placement.place_compute(occupied, whole, wanted)
        if start is None:
            raise Nvml(23)
        number = next(one for one in range(99) if all(ci.id != one for ci in gi.cis))
        made = Ci(number, wanted, start)
        gi.cis.append(made)
        return made

    def destroy_ci(self, card: Card, gi: Gi, ci: Ci) -> None:
        """Destroy a compute instance that nobody computes on."""
        self.privileged(card)
        self.check("dci")
        if any(process.gi == gi.id and process.ci == ci.id for process in card.processes):
            raise Nvml(19)
        gi.cis.remove(ci)

    def destroy_gi(self, card: Card, gi: Gi) -> None:
        """Destroy a GPU instance without compute instances."""
        self.privileged(card)
        self.check("dgi")
        if gi.cis:
            raise Nvml(19)
        card.instances.remove(gi)

    def privileged(self, card: Card) -> None:
        """What only root may ask of a GPU that is there."""
        if card.dead:
            raise Nvml(15)
        if not self.root or "noperm" in self.nvml:
            raise Nvml(4)

    # -- what happens to the machine

    def unload(self) -> None:
        """Take the driver out of the kernel: instances, limits and modes that live in it are gone."""
        self.loaded = None
        self.uvm = self.modeset = self.drm = False
        for card in self.cards:
            self._forget(card)

    def reload(self) -> None:
        """Load the module that is on disk, in place of what was loaded."""
        self.unload()
        self.loaded, self.flavour = self.disk, self.disk_flavour
        self.uvm = self.modeset = self.loaded is not None

    def reboot(self) -> None:
        """Processes and clients end, pending modes take effect, the module on disk is loaded."""
        self.clients = []
        self.mps = {}
        for card in self.cards:
            card.processes = []
            card.mig = card.mig_pending
            card.ecc = card.ecc_pending
            if card.dead == "handle":
                card.dead = ""
        self.reload()

    def _forget(self, card: Card) -> None:
        card.instances = []
        card.compute_mode = "DEFAULT"
        card.power = float(card.kind.power[1]) if card.kind.power else 0.0
        if not card.persistent_mode:
            card.mig = card.mig_pending = False

    # -- for tests

    def instances(self, index: int) -> list[str]:
        """A GPU's instances as profile names with their compute instances: ["1g.10gb", "3g.40gb: 1c 2c"]."""
        card = self.cards[index]
        found = []
        for gi in card.ordered():
            profile = card.profile(gi.profile)
            whole = [ci.slices for ci in gi.cis] == [profile.compute]
            parts = " ".join(f"{ci.slices}c" for ci in gi.cis) or "none"
            found.append(profile.name if whole else f"{profile.name}: {parts}")
        return found

    def occupy(self, index: int, pid: int = 4242, name: str = "python3", gi: int | None = None) -> None:
        """Let a process compute on a GPU, or in a MIG device of it."""
        self.cards[index].processes.append(Process(pid, name, gi=gi))

    def free(self, index: int) -> None:
        """End what computes on a GPU."""
        self.cards[index].processes = []

    def find(self, text: str) -> list[Card]:
        """GPUs of an -i argument: index, UUID or PCI address, several joined by commas; empty when one is unknown."""
        found = []
        for word in text.split(","):
            match = [card for index, card in enumerate(self.cards) if _named(card, index, word.strip())]
            if not match:
                return []
            found += match
        return [card for card in self.cards if card in found]


class Pending(Exception):
    """A mode was accepted and takes effect at a reset or reboot only."""

    def __init__(self, code: int) -> None:
        super().__init__(values.WORDS[code])
        self.code = code
        self.words = values.WORDS[code]


def _named(card: Card, index: int, word: str) -> bool:
    if word.isdigit() and len(word) < 4:
        return int(word) == index
    if word.startswith("GPU-"):
        return word == card.uuid
    pci = re.fullmatch(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])", word)
    return pci is not None and f"{int(pci.group(1) or '0', 16):08X}:{pci.group(2).upper()}" == card.pci


def ci_id(slices: int) -> int:
    """A compute instance profile's id."""
    return CI_IDS[slices]
