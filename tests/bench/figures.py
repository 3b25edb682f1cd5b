# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures that are held to bounds: which cases they compare, in which measure, and whether the bound holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.bench import medians
from tests.bench.cases import Case
from tests.bench.medians import Spread
from tests.bench.trial import Cost

TOGETHER = "no control groups here, so hosts' time is not known apart"


class Figure(NamedTuple):
    """A ratio of two cases, or a value; `bound` is what it must not pass, upwards or (`least`) downwards."""

    name: str
    bound: float
    above: str = ""
    below: str = ""
    measure: str = "wall"  # a field of Cost
    least: bool = False
    over_empty: bool = True
    prototype: str = "-"
    unit: str = "times"


class Result(NamedTuple):
    """A figure as it was measured; `measured` is None where this run has not what it takes."""

    figure: Figure
    measured: Spread | None
    why: str = ""  # it was not measured

    @property
    def holds(self) -> bool | None:
        """Whether the bound holds; None where it is not known."""
        if self.measured is None:
            return None
        value = self.measured.median
        return value >= self.figure.bound if self.figure.least else value <= self.figure.bound


OURS, SECTION, THEIRS = "30 sysctls", "30 sysctls as a section", "30 sysctls by ansible.posix"
WORK, PEERS = "the work", "the work by peers"
FIRST, FIRST_PEERS = "the work at first", "the work at first by peers"
PROGRAM, PING = "role through the program over 8 hosts", "ping over 8 hosts"
QUIET, SINGLE, TASKS = "role over 1 host", "one unit differs in single mode", "one unit differs in tasks mode"

AGENT, START = "agent's idle pass", "python3 -c pass"


def over(hosts: int) -> tuple[Figure, ...]:
    """The figures of a pass over so many hosts; their names say how many, in the history too."""
    role, trivial, units = (f"{what} over {hosts} hosts" for what in ("role", "trivial module", "a task a unit"))
    whole, apart = f"converged role over 12 units, {hosts} hosts", f"a task a unit over the role, {hosts} hosts"
    return (
        Figure(f"{whole}, controller", 1.25, role, trivial, "controller", prototype="1.20"),
        Figure(f"{whole}, host", 1.5, role, trivial, "host", prototype="1.35"),
        Figure(f"{apart}, controller", 9, units, role, "controller", least=True, prototype="11.5"),
        Figure(f"{apart}, host", 8, units, role, "host", least=True, prototype="9.5"),
    )


# Those whose number of hosts nobody chooses.
FIGURES: tuple[Figure, ...] = (
    Figure("30 sysctls, ansible.posix over the module, wall", 25, THEIRS, OURS, least=True, prototype="28"),
    Figure("30 sysctls, ansible.posix over the module, host", 28, THEIRS, OURS, "host", least=True, prototype="32"),
    Figure("30 sysctls, ansible.posix over a section, wall", 25, THEIRS, SECTION, least=True, prototype="28"),
    Figure("30 sysctls, ansible.posix over a section, host", 28, THEIRS, SECTION, "host", least=True, prototype="32"),
    Figure("modules, sysctls, pages: peers over ours, wall", 18, PEERS, WORK, least=True, prototype="20"),
    Figure("the same at first: peers over ours, wall", 25, FIRST_PEERS, FIRST, least=True, prototype="34"),
    Figure("one unit differs, single: whole run", 1.1, SINGLE, QUIET, over_empty=False, prototype="1.0"),
    Figure("one unit differs, tasks: whole run", 2.0, TASKS, QUIET, over_empty=False, prototype="1.57"),
    Figure("through the installed program, host, in pings", 0.4, PROGRAM, PING, "host"),
    Figure("agent's idle pass, processor time, in python3 -c pass", 4, AGENT, START, "host"),
)
EIGHT_GPUS = Figure("8 GPUs: processes of nvidia-smi in a converged pass", 4, unit="processes")


def values(costs: Sequence[Cost], measure: str) -> list[float]:
    """One measure of all runs."""
    return [float(getattr(cost, measure)) for cost in costs]


def over_empty(name: str, measure: str, costs: Mapping[str, Sequence[Cost]], cases: Mapping[str, Case]) -> list[float]:
    """A case's runs over the median of the empty case that it stands over, if it has one."""
    found = values(costs[name], measure)
    empty = cases[name].empty
    return medians.over(found, values(costs[empty], measure)) if empty else found


def measure(
    figures: Sequence[Figure], costs: Mapping[str, Sequence[Cost]], cases: Mapping[str, Case], apart: bool
) -> list[Result]:
    """Each figure by what was measured; `apart`: the processor time of hosts is known by itself."""
    found = []
    for figure in figures:
        missing = [name for name in (figure.above, figure.below) if not costs.get(name)]
        if missing:
            found.append(Result(figure, None, "not run: " + "; ".join(missing)))
        elif not apart and figure.measure != "wall":
            found.append(Result(figure, None, TOGETHER))
        else:
            found.append(_ratio(figure, costs, cases))
    return found


def _ratio(figure: Figure, costs: Mapping[str, Sequence[Cost]], cases: Mapping[str, Case]) -> Result:
    def runs(name: str) -> list[float]:
        if figure.over_empty:
            return over_empty(name, figure.measure, costs, cases)
        return values(costs[name], figure.measure)

    try:
        return Result(figure, medians.ratio(runs(figure.above), runs(figure.below)))
    except ZeroDivisionError as fault:
        return Result(figure, None, f"{figure.below}: {fault}")


def shown(results: Sequence[Result]) -> str:
    """One table for the terminal."""
    form = "{:<66} {:>9} {:>9}  {:<15} {:>9}  {}"
    lines = [form.format("figure", "bound", "measured", "quartiles", "prototype", "bound is")]
    for result in results:
        figure, seen = result.figure, result.measured
        bound = ("≥ " if figure.least else "≤ ") + f"{figure.bound:g}"
        word = {True: "met", False: "BROKEN", None: "not measured: " + result.why}[result.holds]
        number = f"{seen.median:.2f}" if seen else "-"
        quartiles = f"{seen.low:.2f} - {seen.high:.2f}" if seen else ""
        lines.append(form.format(figure.name, bound, number, quartiles, figure.prototype, word))
    return "\n".join(lines)


def table(results: Sequence[Result]) -> str:
    """The same for docs/performance.md, in Markdown."""
    lines = ["| figure | bound | measured | quartiles | prototype | bound is |", "|---|---|---|---|---|---|"]
    for result in results:
        figure, seen = result.figure, result.measured
        bound = f"at {'least' if figure.least else 'most'} {figure.bound:g}"
        numbers = (f"{seen.median:.2f}", f"{seen.low:.2f} to {seen.high:.2f}") if seen else ("-", "-")
        word = {True: "met", False: "**broken**", None: "not measured"}[result.holds]
        lines.append(f"| {' | '.join((figure.name, bound, *numbers, figure.prototype, word))} |")
    return "\n".join([*lines, ""])


def costs_shown(costs: Mapping[str, Sequence[Cost]], cases: Mapping[str, Case], apart: bool) -> str:
    """What each case costs a run: medians over empty, and the half distance of the quartiles as a share of them.

    Where processor time is not known `apart`, none is shown.
    """
    form = "{:<36} {:>6} {:>9} {:>6} {:>11} {:>9} {:>9} {:>7}"
    head = ("case, over empty", "hosts", "wall s", "+-", "controller", "host s", "tools s", "MiB")
    lines = [form.format(*head)]
    for name, runs in costs.items():
        if not runs:
            continue
        one = {part: medians.spread(over_empty(name, part, costs, cases)) for part in Cost._fields[:4]}
        peak = max((run.peak or 0) for run in runs) >> 20
        row = (
            f"{one['wall'].median:.3f}",
            f"{one['wall'].share:.0%}",
            *(f"{one[part].median:.3f}" if apart else "-" for part in Cost._fields[1:4]),
        )
        lines.append(form.format(name, cases[name].hosts, *row, peak or "-"))
    return "\n".join(lines)
