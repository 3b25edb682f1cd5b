# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu-settings: the power limit and the ECC mode of each GPU."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..core.errors import NotReady, Refused, StepFailed
from ..core.plan import Field, Past, Plan, Todo
from ..core.step import Effect, Step, run
from ..core.unknown import is_known
from . import smi
from .gpu import LACKING, MODES, SELECT, Gpu, Select, first_match, matches
from .settings import strict
from .unit_names import GPU_SETTINGS as UNIT

WATTS, ECC = "powerLimitWatts", "ecc"
VALUES = (Field(WATTS, "power_limit_watts", (int,)), Field(ECC, "ecc", (bool,)))
FIELDS = (*VALUES, Field("gpus", "gpus", (list,), (Field("select", "select", (dict,), SELECT), *VALUES)))

QUERIED = (
    *smi.NAMES,
    "power.limit",
    "power.min_limit",
    "power.max_limit",
    "persistence_mode",
    "ecc.mode.current",
    "ecc.mode.pending",
)

UNKNOWN = "[Unknown Error]"  # a limit that NVML does not support prints this beside a minimum that is [N/A]
PRINTED = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")  # watts: whatever else is printed for them is none
MOST = 100_000  # watts, beyond any GPU's range, where that is not shown


class Wanted(NamedTuple):
    """What is asked of one GPU; None is not managed. `own`: by a selector, not for the whole host."""

    watts: int | None = None
    ecc: bool | None = None
    own_watts: bool = False
    own_ecc: bool = False


class Override(NamedTuple):
    """What is asked of the GPUs that a selector takes first; None: as for the host."""

    select: Select
    watts: int | None
    ecc: bool | None


class Settings(NamedTuple):
    """Watts and the ECC mode for every GPU, and what is asked of some of them instead."""

    watts: int | None = None
    ecc: bool | None = None
    gpus: tuple[Override, ...] = ()

    @property
    def ask_nothing(self) -> bool:
        """Whether no GPU is to be changed or looked at."""
        return self.watts is None and self.ecc is None and not self.gpus

    def of(self, gpu: Gpu) -> Wanted:
        """What is asked of the GPU: the first selector that takes it, over the host's values."""
        at = first_match(tuple(entry.select for entry in self.gpus), gpu)
        if at is None:
            return Wanted(self.watts, self.ecc)
        own = self.gpus[at]
        return Wanted(
            self.watts if own.watts is None else own.watts,
            self.ecc if own.ecc is None else own.ecc,
            own.watts is not None,
            own.ecc is not None,
        )


class Card(NamedTuple):
    """What nvidia-smi prints of one GPU, as printed: watts as "700.00", modes as "Enabled"."""

    limit: str
    low: str
    high: str
    persistence: str
    ecc: str
    ecc_pending: str


class Seen(NamedTuple):
    """One GPU; `card` is a value that raises where this GPU alone did not answer (see core.unknown)."""

    gpu: Gpu
    card: Card


class Now(NamedTuple):
    """The host's GPUs, in the order of nvidia-smi."""

    gpus: tuple[Seen, ...] = ()


# -- settings


def check(given: dict[str, Any]) -> Settings:
    """Settings in wire form as values; raises Refused for what no GPU takes."""
    wire = strict(UNIT, FIELDS, given)
    overrides = []
    for number, entry in enumerate(wire.get("gpus", ())):
        from .gpu_select import check_select

        place = f"gpus[{number}]"
        if "select" not in entry:
            raise Refused(f"{UNIT}: {place} has no select: name its GPUs by uuid, pci, index or model")
        if WATTS not in entry and ECC not in entry:
            raise Refused(f"{UNIT}: {place} sets neither {WATTS} nor {ECC}: give it one, or take it out")
        select = check_select(entry["select"], f"{UNIT}: {place}.select")
        overrides.append(Override(select, _watts(entry, f"{place}.{WATTS}"), entry.get(ECC)))
    return Settings(_watts(wire, WATTS), wire.get(ECC), tuple(overrides))


def _watts(given: dict[str, Any], place: str) -> int | None:
    watts: int | None = given.get(WATTS)
    if watts is not None and not 1 <= watts <= MOST:
        given_as = watts if watts < 1 else f"more than {MOST}"
        raise Refused(f"{UNIT}: {place} is {given_as}, which no GPU takes as a limit: give whole watts, from 1 on")
    return watts


# -- the plan


def plan(settings: Settings, now: Now, past: Past) -> Plan:
    """Each GPU in a lane of its own, once every GPU that answers is known to take what is asked of it."""
    todo = Todo()
    if settings.ask_nothing:
        return todo.plan()
    if not now.gpus:
        raise NotReady(
            f"{UNIT}: nvidia-smi shows no GPU on this host: see that the driver fits it, or take the unit off"
        )
    _refuse(settings, now)
    waiting = []
    forgetful = []
    for gpu, card in now.gpus:
        wanted = settings.of(gpu)
        with todo.lane(gpu.uuid):
            if wanted.watts is not None and _plan_limit(todo, gpu, card, wanted.watts):
                forgetful += [str(gpu.index)] if card.persistence == "Disabled" else []
            if wanted.ecc is not None and _plan_ecc(todo, gpu, card, wanted.ecc, past):
                waiting.append(str(gpu.index))
    if waiting:
        todo.wait(
            "RebootRequired",
            f"{UNIT}: the ECC mode of GPU(s) {', '.join(waiting)} changes at their next reset: reboot the node",
        )
    if forgetful:
        todo.note(
            f"persistence mode is off on GPU(s) {', '.join(forgetful)}, where the driver forgets a power limit as its "
            "last client ends: run nvidia-persistenced"
        )
    return todo.plan()


def absent(_now: Now, _past: Past) -> Plan:
    """Nothing is undone."""
    return Plan(notes=("power limits stay until the driver is loaded again, and ECC modes stay",))


def _refuse(settings: Settings, now: Now) -> None:
    """Refuse, before anything is set, a selector without a GPU and what a GPU cannot do."""
    faults = []
    for number, entry in enumerate(settings.gpus):
        if not any(matches(entry.select, gpu) for gpu, _card in now.gpus):
            from .gpu_unselected import there

            which = f"gpus[{number}].select takes none of this host's GPUs ({entry.select.kind} {entry.select.value!r})"
            faults.append(f"{which}, {there(entry.select, [gpu for gpu, _card in now.gpus])}")
    for gpu, card in now.gpus:
        if is_known(card):  # one that did not answer fails its own lane
            faults += _cannot(gpu, card, settings.of(gpu))
    if faults:
        raise Refused(f"{UNIT}: {'; '.join(faults)}: correct the settings")


def _cannot(gpu: Gpu, card: Card, wanted: Wanted) -> list[str]:
    """What the GPU cannot do of what is asked of it. What is asked of the whole host passes over what a GPU lacks."""
    faults = []
    if wanted.watts is not None:
        low, high = _number(card.low), _number(card.high)
        if low is not None and high is not None and not low <= wanted.watts <= high:
            faults.append(f"GPU {gpu.index} takes {low:g} to {high:g} W, not {wanted.watts}")
        if wanted.own_watts and _has_no_limit(card):
            faults.append(f"GPU {gpu.index} ({gpu.name}) has no power management, and gpus asks a limit of it")
    if wanted.own_ecc and wanted.ecc and card.ecc in LACKING:
        faults.append(f"GPU {gpu.index} ({gpu.name}) has no ECC, and gpus asks for it")
    return faults


def _has_no_limit(card: Card) -> bool:
    return card.limit in LACKING or (card.limit == UNKNOWN and {card.low, card.high} <= LACKING)


def _plan_limit(todo: Todo, gpu: Gpu, card: Card, watts: int) -> bool:
    """Set the limit where it differs by a watt or more; whether the GPU has one. Raises StepFailed for no value."""
    if _has_no_limit(card):
        todo.note(f"GPU {gpu.index} has no power management: its power limit is left as it is")
        return False
    limit = _number(card.limit)
    if limit is None:
        raise _no_value(gpu, "power limit", card.limit)
    if abs(limit - watts) >= 1:
        action = f"set the power limit of GPU {gpu.index} to {watts} W"
        todo.add(_set(gpu, ("-pl", str(watts)), action, "the power limit"))
    return True


def _plan_ecc(todo: Todo, gpu: Gpu, card: Card, ecc: bool, past: Past) -> bool:
    """Set the mode that the next reset brings; whether that reset is waited for. Raises StepFailed for no value.

    This disturbs nothing that runs: the mode in force changes with the reset, which is not ours.
    """
    if card.ecc in LACKING:
        todo.note(f"GPU {gpu.index} has no ECC: its mode is left as it is")
        return False
    for text in (card.ecc, card.ecc_pending):
        if text not in MODES:
            raise _no_value(gpu, "ECC mode", text)
    set_already = MODES[card.ecc_pending] is ecc
    if not set_already:
        action = f"turn ECC {'on' if ecc else 'off'} on GPU {gpu.index} from its next reset on"
        todo.add(_set(gpu, ("-e", "1" if ecc else "0"), action, "the ECC mode"))
    return MODES[card.ecc] is not ecc and (set_already or gpu.uuid not in past.failed)


def _set(gpu: Gpu, arguments: tuple[str, ...], action: str, what: str) -> Step:
    """One setter of nvidia-smi. It exits 0 where it changed nothing: only the next look tells."""
    effect = Effect("program", smi.query_line(QUERIED), f"{what} of GPU {gpu.index} is set")
    return run((smi.SMI, "-i", gpu.uuid, *arguments), action, effects=(effect,), timeout=60.0)


def _no_value(gpu: Gpu, what: str, text: str) -> StepFailed:
    from .gpu_fault import no_value

    return no_value(UNIT, gpu, what, text)


def _number(text: str) -> float | None:
    """Watts as printed without their unit; None for what is no value."""
    return float(text) if PRINTED.fullmatch(text) else None
