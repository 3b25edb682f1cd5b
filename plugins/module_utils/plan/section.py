# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole host's section: the order of its units, and what their results add up to.

A result here is what every unit returns (`unit`, `state`, `pending`, `steps`, `reason`, ...), so that the same
sentences come out on a host and on the controller.
"""

from __future__ import annotations

from ..core.errors import Refused
from .unit_names import ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any, NamedTuple

    Result = Mapping[str, Any]
else:
    from ..core.named import NamedTuple

CONVERGED, PROGRESSING, FAILED = "CONVERGED", "PROGRESSING", "FAILED"
FAIL_ON = ("terminal", "failed", "progressing", "never")


class Turn(NamedTuple):
    """One unit's turn: what the section asks of it (as it came, unchecked), or that it left the section."""

    unit: str
    settings: Any = None
    leaves: bool = False


def turns(named: Mapping[str, Any], ours: Iterable[str]) -> tuple[Turn, ...]:
    """Every unit's turn. `ours` are units that we applied before: those that are no longer named leave.

    Those that leave go first, the last in the order first: as each stands on those before it, it goes before them,
    and what it held (a daemon on the GPUs, say) is free by the time that the others have their turn. None leaves while
    the section has a name that no unit has: it may be the leaving unit's own, mistyped.
    """
    mistyped = set(named) - set(ORDER)
    leaving = () if mistyped else sorted(set(ours) - set(named), key=_place, reverse=True)
    return (
        *(Turn(unit, leaves=True) for unit in leaving),
        *(Turn(unit, named[unit]) for unit in sorted(named, key=_place)),
    )


def in_order(units: Iterable[str]) -> list[str]:
    """The units in their fixed order; names that no unit has come last."""
    return sorted(units, key=_place)


def _place(unit: str) -> tuple[int, str]:
    return (ORDER.index(unit) if unit in ORDER else len(ORDER), unit)


def check_only(only: Collection[str], units: Collection[str]) -> None:
    """Refuse a name to which no unit answers; a unit that this host's section does not touch is nothing to do."""
    wrong = sorted(set(only) - set(units) - set(ORDER))
    if wrong:
        raise Refused(f"only: {', '.join(map(repr, wrong))}: no unit has that name; the units are {', '.join(ORDER)}")


# -- what the results add up to


def state_of(results: Iterable[Result]) -> str:
    """CONVERGED when every unit is, FAILED when all that is wrong is terminal, else PROGRESSING."""
    states = {result["state"] for result in results} - {"converged"}
    if not states:
        return CONVERGED
    return FAILED if states == {"failed"} else PROGRESSING


def message_of(results: Iterable[Result]) -> str:
    """One line that names every unit that is not converged, with its reasons; empty when all are.

    A fault of the host strikes each unit alike, and is told once, after the names of all of them.
    """
    told = [(result["unit"], text) for result in results for text in sayings(result)]
    return "; ".join(named(", ".join(units), text) for units, text in merged(told))


def sayings(result: Result) -> list[str]:
    """Why the unit is not converged, a sentence each, which may begin with the unit's name."""
    texts = [result["msg"]] if "reason" in result else []
    texts += [wait["message"] for wait in result["pending"]]
    left = [step["action"] for step in steps_left(result)]
    if left and not texts:
        texts = [f"still to do: {left[0]}" + (f", and {len(left) - 1} more" if len(left) > 1 else "")]
    return list(dict.fromkeys(texts))


def merged(told: Iterable[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """What is told of each (a name, a text), by text: each text once, with the names it is told of, in their order."""
    found: dict[str, list[str]] = {}
    for name, text in told:
        found.setdefault(text, []).append(name)
    return [(list(dict.fromkeys(names)), text) for text, names in found.items()]


def named(unit: str, text: str) -> str:
    """The sentence, beginning with the unit's name."""
    return text if text.startswith(unit + ": ") else f"{unit}: {text}"


def unnamed(unit: str, text: str) -> str:
    """The sentence for a place that shows the unit's name already."""
    return text[len(unit) + 2 :] if text.startswith(unit + ": ") else text


def steps_left(result: Result) -> list[Mapping[str, Any]]:
    """The steps that were not taken: planned, held back, failed."""
    return [step for step in result["steps"] if not step["done"]]


def fails(results: Iterable[Result], fail_on: str) -> bool:
    """Whether these results fail the task.

    `terminal`: one of them cannot be helped by another run; `failed`: or a step failed; `progressing`: or one waits.
    """
    if fail_on == "never":
        return False
    return any(
        result["state"] == "failed"
        or (fail_on != "terminal" and "reason" in result)
        or (fail_on == "progressing" and bool(result["pending"]))
        for result in results
    )


# -- reboots


def reboot_reasons(results: Iterable[Result]) -> dict[str, str]:
    """What each unit that waits for a reboot says of it."""
    found: dict[str, str] = {}
    for result in results:
        said = [wait["message"] for wait in result["pending"] if wait["reason"] == "RebootRequired"]
        if said:
            found[result["unit"]] = "; ".join(dict.fromkeys(said))
    return found


def conditions_of(results: Sequence[Result]) -> list[dict[str, str]]:
    """The units' conditions, and RebootRequired while one of them waits for a reboot."""
    found = [dict(condition) for result in results for condition in result["conditions"]]
    reasons = reboot_reasons(results)
    if reasons:
        from .bounded_message import bounded

        found.append(
            {
                "type": "RebootRequired",
                "status": "true",
                "reason": ",".join(reasons),
                "message": bounded([named(unit, text) for unit, text in reasons.items()]),
            }
        )
    return found
