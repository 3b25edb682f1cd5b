# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What benches left: a file for each run, a line of history for each, and a picture of how the figures went."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tests.bench.figures import Result

WIDTH, ROW, LEFT, RIGHT = 960, 64, 380, 150  # of the picture, in pixels
SHOWN = 40  # runs


def document(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Figures as plain values."""
    found = []
    for result in results:
        figure = result.figure
        found.append(
            {
                "figure": figure.name,
                "bound": figure.bound,
                "least": figure.least,
                "measured": result.measured.median if result.measured else None,
                "low": result.measured.low if result.measured else None,
                "high": result.measured.high if result.measured else None,
                "holds": result.holds,
                "why": result.why,
            }
        )
    return found


def keep(folder: Path, run: dict[str, Any]) -> Path:
    """Write a run's own file, its line of the history, and the picture; the path of its own file.

    `run` has "time", "commit", "rounds" and "figures" (`document`), and whatever else is to be kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run['time'].replace(':', '')}.json"
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    line = {"time": run["time"], "commit": run["commit"], "rounds": run["rounds"], "figures": run["figures"]}
    with open(folder / "history.jsonl", "a", encoding="utf-8") as history:
        history.write(json.dumps(line, ensure_ascii=False) + "\n")
    (folder / "history.svg").write_text(plot(read(folder / "history.jsonl")), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """The history, oldest first; a line that was cut off is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def plot(history: Sequence[dict[str, Any]]) -> str:
    """An SVG: a line a figure over the last runs, its bound dashed, runs that broke it filled in red."""
    runs = list(history)[-SHOWN:]
    names = list(dict.fromkeys(one["figure"] for run in runs for one in run["figures"]))
    height = ROW * len(names) + 40
    size = f'viewBox="0 0 {WIDTH} {height}" font-size="12" font-family="sans-serif"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for at, name in enumerate(names):
        points = [(turn, one) for turn, run in enumerate(runs) for one in run["figures"] if one["figure"] == name]
        parts += _row(name, [point for point in points if point[1]["measured"] is not None], len(runs), 20 + at * ROW)
    if runs:
        told = f"{runs[0]['time']} ({runs[0]['commit']}) to {runs[-1]['time']} ({runs[-1]['commit']})"
        parts.append(f'<text x="{LEFT}" y="{height - 8}" fill="#555">{escape(told)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _range(bound: float, ends: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest value that a row shows: all of them, and a quarter of the bound about it at least."""
    about = abs(bound) / 4 or 1.0
    return min([bound - about, *ends]), max([bound + about, *ends])


def _row(name: str, points: list[tuple[int, dict[str, Any]]], runs: int, top: int) -> list[str]:
    """One figure: its name, its runs, its bound, the last value."""
    parts = [f'<text x="8" y="{top + 30}">{escape(name)}</text>']
    if not points:
        return [*parts, f'<text x="{LEFT}" y="{top + 30}" fill="#777">not measured yet</text>']
    last = points[-1][1]
    low, high = _range(last["bound"], [one[end] for _turn, one in points for end in ("low", "high")])
    wide = WIDTH - LEFT - RIGHT

    def x(turn: int) -> float:
        return LEFT + (wide * turn / (runs - 1) if runs > 1 else wide / 2)

    def y(value: float) -> float:
        return top + (ROW - 12) * (high - value) / (high - low)

    bound = y(last["bound"])
    ends = f'x1="{LEFT}" x2="{LEFT + wide}" y1="{bound:.1f}" y2="{bound:.1f}"'
    parts.append(f'<line {ends} stroke="#999" stroke-dasharray="4 3"/>')
    line = " ".join(f"{x(turn):.1f},{y(one['measured']):.1f}" for turn, one in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#246"/>')
    for turn, one in points:
        colour = "#246" if one["holds"] else "#c22"
        at = f'cx="{x(turn):.1f}" cy="{y(one["measured"]):.1f}"'
        ends = f'x1="{x(turn):.1f}" x2="{x(turn):.1f}" y1="{y(one["low"]):.1f}" y2="{y(one["high"]):.1f}"'
        parts.append(f'<line {ends} stroke="{colour}"/>')
        parts.append(f'<circle {at} r="3" fill="{colour}"/>')
    sign = "≥" if last["least"] else "≤"
    colour = "#000" if last["holds"] else "#c22"
    said = f"{last['measured']:.2f} ({sign} {last['bound']:g})"
    parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{top + 30}" fill="{colour}">{escape(said)}</text>')
    return parts
