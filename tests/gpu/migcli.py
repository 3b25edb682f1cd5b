# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi mig` over a simulated machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import tables
from .cards import CI_IDS, Card, Ci, Gi, Nvml, ci_name, ci_slices
from .not_played import NotPlayed
from .products import GpuProfile

if TYPE_CHECKING:
    from .model import Machine

Said = tuple[int, str]
Row = tuple[int, Card]
WITH_VALUE = {
    "-i": "i", "--id": "i", "-gi": "gi", "--gpu-instance-id": "gi", "-ci": "ci", "--compute-instance-id": "ci",
    "-cgi": "cgi", "--create-gpu-instance": "cgi",
}  # fmt: skip
MAYBE_VALUE = {"-cci": "cci", "--create-compute-instance": "cci"}
FLAGS = {
    "-lgip": "lgip", "--list-gpu-instance-profiles": "lgip", "-lgipp": "lgipp",
    "--list-gpu-instance-possible-placements": "lgipp", "-lgi": "lgi", "--list-gpu-instances": "lgi", "-lcip": "lcip",
    "--list-compute-instance-profiles": "lcip", "-lci": "lci", "--list-compute-instances": "lci", "-dgi": "dgi",
    "--destroy-gpu-instance": "dgi", "-dci": "dci", "--destroy-compute-instance": "dci", "-C": "C",
    "--default-compute-instance": "C",
}  # fmt: skip
NO_GI, NO_CI = "No GPU instances found: ", "No compute instances found: "


def command(machine: Machine, words: tuple[str, ...]) -> Said:
    """Run it with these words after `nvidia-smi mig`."""
    given: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in FLAGS:
            given[FLAGS[word]] = ""
        elif word in WITH_VALUE and rest:
            given[WITH_VALUE[word]] = rest.pop(0)
        elif word in MAYBE_VALUE:
            given[MAYBE_VALUE[word]] = rest.pop(0) if rest and not rest[0].startswith("-") else ""
        else:
            return 2, f'Option "{word}" is not recognized.\n'
    verb = next((one for one in VERBS if one in given), None)
    if verb is None:
        raise NotPlayed("nvidia-smi mig " + " ".join(words))
    return _run(machine, verb, given)


def _run(machine: Machine, verb: str, given: dict[str, str]) -> Said:
    if not machine.cards or "nogpu" in machine.nvml:
        return 6, "No devices were found\n"
    chosen = machine.find(given["i"]) if "i" in given else list(machine.cards)
    if not chosen:
        return 6, "No devices were found\n"
    lost = next((card for card in chosen if card.dead == "handle"), None)
    if lost:
        from .smi import _no_handle

        return 15, _no_handle(lost)
    rows = [(machine.cards.index(card), card) for card in chosen if card.kind.mig and "nomig" not in machine.nvml]
    if not rows:
        return 6, "No MIG-supported devices found.\n" if machine.branch >= 550 else "No MIG-enabled devices found.\n"
    if verb in ("lgip", "lgipp"):
        return _offers(machine, verb, rows)
    rows = [(index, card) for index, card in rows if card.mig]
    if not rows:
        return (0 if machine.branch >= 550 else 6), "No MIG-enabled devices found.\n"
    if not machine.root or "noperm" in machine.nvml:
        return _denied(verb, given, rows)
    return VERBS[verb](machine, rows, given)


def _offers(machine: Machine, verb: str, rows: list[Row]) -> Said:
    found = [(index, card, one) for index, card in rows for one in card.offered(machine.branch)]
    if verb == "lgip":
        return 0, tables.gi_profiles(found, machine.branch)
    return 0, tables.gi_placements([(index, one) for index, _card, one in found])


def _denied(verb: str, given: dict[str, str], rows: list[Row]) -> Said:
    words = "Insufficient Permissions\n"
    if verb == "cgi":
        first = given["cgi"].split(",")[0]
        text = f"Unable to create a GPU instance on GPU {rows[0][0]:>2} using profile {first}: {words}"
        return 4, f"{text}Failed to create GPU instances: {words}"
    return 4, (f"Failed to display GPU instances: {words}" if verb == "lgi" else NO_GI + words)


def _numbers(text: str | None) -> set[int] | None:
    return None if text is None else {int(word) for word in text.split(",")}


def _instances(rows: list[Row], given: dict[str, str]) -> list[tuple[int, Card, Gi]]:
    """The GPU instances that -gi names, or all, in the order of the listing."""
    wanted = _numbers(given.get("gi"))
    return [(index, card, gi) for index, card in rows for gi in card.ordered() if wanted is None or gi.id in wanted]


def _parts(found: list[tuple[int, Card, Gi]], given: dict[str, str]) -> list[tuple[int, Card, Gi, Ci]]:
    wanted = _numbers(given.get("ci"))
    return [
        (index, card, gi, ci)
        for index, card, gi in found
        for ci in sorted(gi.cis, key=lambda one: one.id)
        if wanted is None or ci.id in wanted
    ]


def _lgi(machine: Machine, rows: list[Row], given: dict[str, str]) -> Said:
    found = _instances(rows, {})
    return (0, tables.gpu_instances(found, machine.branch)) if found else (6, NO_GI + "Not Found\n")


def _lci(machine: Machine, rows: list[Row], given: dict[str, str]) -> Said:
    found = _instances(rows, given)
    if not found:
        return 6, NO_GI + "Not Found\n"
    parts = _parts(found, given)
    return (0, tables.compute_instances(parts)) if parts else (6, NO_CI + "Not Found\n")


def _lcip(machine: Machine, rows: list[Row], given: dict[str, str]) -> Said:
    found = _instances(rows, given)
    return (0, tables.compute_profiles(found)) if found else (6, NO_GI + "Not Found\n")


def _named(card: Card, branch: int, word: str) -> GpuProfile:
    for one in card.offered(branch):
        if word in (one.name, str(one.id)):
            return one
    raise Nvml(2)


def _cgi(machine: Machine, rows: list[Row], given: dict[str, str]) -> Said:
    """Create GPU instances one by one; the first that fails ends it, and those before it stay."""
    text = ""
    for index, card in rows:
        for word in [one for one in given["cgi"].split(",") if one]:
            name, colon, start = word.partition(":")
            try:
                one = _named(card, machine.branch, name)
                gi = machine.create_gi(card, one, int(start) if colon else None)
            except Nvml as fault:
                text += f"Unable to create a GPU instance on GPU {index:>2} using profile {word}: {fault.words}\n"
                return fault.rc, f"{text}Failed to create GPU instances: {fault.words}\n"
            text += (
                f"Successfully created GPU instance ID {gi.id:>2} on GPU {index:>2} "
                f"using profile MIG {one.name} (ID {one.id:>2})\n"
            )
            if "C" in given:
                said, fault_of = _create_part(machine, index, card, gi, "default")
                text += said
                if fault_of:
                    return fault_of.rc, f"{text}Failed to create GPU instances: {fault_of.words}\n"
    return 0, text


def _create_part(machine: Machine, index: int, card: Card, gi: Gi, word: str) -> tuple[str, Nvml | None]:
    where = f"on GPU {index:>2} GPU instance ID {gi.id:>2} using profile"
    profile = card.profile(gi.profile)
    try:
        slices = None if word == "default" else _slices(profile, word)
        ci = machine.create_ci(card, gi, slices)
    except Nvml as fault:
        return f"Unable to create a compute instance {where} {word}: {fault.words}\n", fault
    name, number = ci_name(profile, ci.slices), CI_IDS[ci.slices]
    return f"Successfully created compute instance ID {ci.id:>2} {where} MIG {name} (ID {number:>2})\n", None


def _slices(profile: GpuProfile, word: str) -> int:
    for slices in ci_slices(profile):
        if word in (ci_name(profile, slices), str(CI_IDS[slices])):
            return slices
    raise Nvml(2)


def _cci(machine: Machine, rows: list[Row], given: dict[str, str]) -> Said:
    found = _instances(rows, given)
    if not found:
        return 6, NO_GI + "Not Found\n"
    text = ""
    for index, card, gi in found:
        for word in given["cci"].split(",") if given["cci"] else ["default"]:
            said, fault = _create_part(machine, index, card, gi, word)
            text += said
            if fault:
                return fault.rc, f"{text}Failed to create compute instances: {fault.words}\n"
    return 0, text


def _dci(machine: Machine, rows: list[Row], given: dict[str, str]) -> Said:
    found = _instances(rows, given)
    if not found:
        return 6, NO_GI + "Not Found\n"
    parts = _parts(found, given)
    if not parts:
        return 6, NO_CI + "Not Found\n"
    text = ""
    for index, card, gi, ci in parts:
        where = f"compute instance ID {ci.id:>2} from GPU {index:>2} GPU instance ID {gi.id:>2}"
        try:
            machine.destroy_ci(card, gi, ci)
        except Nvml as fault:
            text += f"Unable to destroy {where}: {fault.words}\n"
            return fault.rc, f"{text}Failed to destroy compute instances: {fault.words}\n"
        text += f"Successfully destroyed {where}\n"
    return 0, text


def _dgi(machine: Machine, rows: list[Row], given: dict[str, str]) -> Said:
    found = _instances(rows, given)
    if not found:
        return 6, NO_GI + "Not Found\n"
    text = ""
    for index, card, gi in found:
        where = f"GPU instance ID {gi.id:>2} from GPU {index:>2}"
        try:
            machine.destroy_gi(card, gi)
        except Nvml as fault:
            text += f"Unable to destroy {where}: {fault.words}\n"
            return fault.rc, f"{text}Failed to destroy GPU instances: {fault.words}\n"
        text += f"Successfully destroyed {where}\n"
    return 0, text


VERBS = {
    "lgip": _lgi, "lgipp": _lgi, "lgi": _lgi, "lcip": _lcip, "lci": _lci, "cgi": _cgi, "cci": _cci, "dci": _dci,
    "dgi": _dgi,
}  # fmt: skip
