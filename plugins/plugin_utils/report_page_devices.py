# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's GPUs as pictures to scale, with words in them: MIG devices, slots, who has what. And its nodes' pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .markup import Html, element, join
from .report_page_words import counted, table, wide

WIDTH, HEIGHT = 640, 44
CHAR = 6.8  # of the pictures' text, in their units
WIDE = 70  # a part with room for the word that it is free
MOST = 6  # processes that are named
SLOTS = 48  # of a GPU, at most; of one that claims more those are drawn that somebody has

Gpu = Mapping[str, Any]


class Box(NamedTuple):
    """A part of a GPU: where it is, from 0 to WIDTH; what it is, and who has it ("" where it is free)."""

    left: float
    width: float
    what: str
    held: str | None  # None: not known


class Pictures:
    """The GPUs' pictures. How a GPU is divided is drawn once for all that are so; each then shows who has it."""

    def __init__(self) -> None:
        self._grounds: dict[Html, str] = {}

    def grounds(self) -> Html:
        """What the pictures stand on; somewhere on the page."""
        symbols = (element("g", drawn, id=name) for drawn, name in self._grounds.items())
        return element("svg", *symbols, class_="grounds", aria_hidden="true") if self._grounds else Html()

    def of(self, gpus: Sequence[Gpu]) -> Html:
        """All GPUs of a host; nothing where there are none, or none are known."""
        if not gpus:
            return Html()
        kinds = list(map(_kind, gpus))
        alike = kinds[0] if len(set(kinds)) == 1 else ""  # said once
        head = element("h4", counted(len(gpus), "GPU"), f": {alike}" if alike else "")
        each = (self._gpu(gpu, "" if alike else kind) for gpu, kind in zip(gpus, kinds))
        return element("article", head, *each, class_="gpus")

    def _gpu(self, gpu: Gpu, kind: str) -> Html:
        number = "-" if gpu.get("index") is None else str(gpu["index"])
        name = element("code", str(gpu.get("uuid") or gpu.get("pci") or ""))
        head = element("p", element("b", number), f" {kind} " if kind else " ", name)
        return element("div", head, self._picture(gpu), *_use(gpu))

    def _picture(self, gpu: Gpu) -> Html:
        boxes = list(_boxes(gpu))
        held = [box for box in boxes if box.held]
        unknown = sum(box.held is None for box in boxes)
        ground = self._grounds.setdefault(_ground(boxes), f"g{len(self._grounds)}")
        told = f"{len(held)} of {counted(len(boxes), 'part')} held" if boxes else "no instances"
        return element(
            "svg",
            element("use", href=f"#{ground}"),
            element("path", d="".join(map(_outline, held)), class_="held") if held else Html(),
            _labels(18, [(box, box.what) for box in held]),
            _labels(35, [(box, "?" if box.held is None else box.held) for box in boxes if box.held != ""]),
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label="who has it is not known" if unknown else told,
        )


def _kind(gpu: Gpu) -> str:
    return f"{gpu.get('name') or 'unknown'}, {_mode(gpu)}"


def _mode(gpu: Gpu) -> str:
    sharing = gpu.get("sharing")
    if gpu.get("mig_mode") == "enabled":
        mode = f"MIG {gpu['layout']}" if gpu.get("layout") else "MIG without instances"
    else:
        mode = "whole"
    if isinstance(sharing, Mapping) and sharing.get("mode") not in (None, "exclusive"):
        word = {"mps": "MPS", "timeslice": "time slicing"}.get(str(sharing["mode"]), str(sharing["mode"]))
        mode += f", {word}" + (f" for {sharing['replicas']}" if sharing.get("replicas") else "")
    return mode


def _use(gpu: Gpu) -> Iterator[Html]:
    """What computes on it, and who has its nodes open beside that."""
    running = {each["pid"]: str(each.get("name")) for each in gpu.get("processes") or ()}
    holding = {each["pid"]: str(each.get("program")) for each in gpu.get("holders") or () if each["pid"] not in running}
    for word, found in (("computing", running), ("has it open", holding)):
        if found:
            named = [f"{name} ({pid})" for pid, name in sorted(found.items())]
            more = f" and {len(named) - MOST} more" if named[MOST:] else ""
            yield element("p", f"{word}: {', '.join(named[:MOST])}{more}", class_="note")


def _ground(boxes: Sequence[Box]) -> Html:
    """How the GPU is divided, as if all of it were free."""
    gaps = "".join(f"M{left:g} 1h{width:g}v42h-{width:g}z" for left, width in _gaps(boxes))
    paths = (("".join(map(_outline, boxes)), "free"), (gaps, "gap"))
    free = [(box, "free") for box in boxes if box.width >= WIDE]
    return join(
        *(element("path", d=path, class_=name) for path, name in paths if path),
        _labels(18, [(box, box.what) for box in boxes]),
        _labels(35, free),
    )


def _outline(box: Box) -> str:
    return f"M{box.left + 1:g} 1h{box.width - 2:g}v42h-{box.width - 2:g}z"


def _labels(line: int, texts: Sequence[tuple[Box, str]]) -> Html:
    """A line of words, each in its part, and as much of it as has room there."""
    words = []
    for box, text in texts:
        room = int((box.width - 8) / CHAR)
        if room >= min(len(text), 3):
            shown = text if len(text) <= room else f"…{text[1 - room :]}"  # its end tells it from the others
            words.append(element("tspan", shown, x=f"{box.left + 5:g}"))
    return element("text", *words, y=str(line)) if words else Html()


def _boxes(gpu: Gpu) -> Iterator[Box]:
    parts = gpu.get("mig_devices") or ()
    if gpu.get("mig_mode") == "enabled":
        yield from _mig(gpu, parts)
        return
    whole = gpu.get("allocations")
    slots = {slot["slot"]: str(slot.get("allocation_id") or "") for slot in gpu.get("slots") or ()}
    sharing = gpu.get("sharing") or {}
    count = max(sharing.get("replicas") or 0, max(slots, default=-1) + 1)
    if count < 2 and not slots:
        yield Box(0, WIDTH, "whole GPU", None if whole is None else ", ".join(whole))
        return
    drawn: Sequence[int] = range(count) if count <= SLOTS else sorted(slots)[:SLOTS]
    for place, slot in enumerate(drawn):
        width = WIDTH / len(drawn)
        yield Box(place * width, width, f"s{slot}", slots.get(slot, "" if whole is not None else None))


def _mig(gpu: Gpu, parts: Sequence[Mapping[str, Any]]) -> Iterator[Box]:
    """The MIG devices in their places; several of one GPU instance share its place."""
    total = max(1, gpu.get("slices") or max((part["start"] + part["size"] for part in parts), default=1))
    places: dict[tuple[int, int, Any], list[Mapping[str, Any]]] = {}
    for part in parts:
        if part["start"] < 0 or part["size"] < 1 or part["start"] + part["size"] > total:
            continue  # nowhere on the GPU
        places.setdefault((part["start"], part["size"], part["gi"]), []).append(part)
    for (start, size, _gi), sharers in sorted(places.items(), key=lambda item: item[0][:2]):
        width = WIDTH * size / total / len(sharers)
        for number, part in enumerate(sharers):
            held = "" if gpu.get("slots") is not None or part.get("allocation_id") else None
            yield Box(WIDTH * start / total + number * width, width, part["profile"], part.get("allocation_id") or held)


def _gaps(boxes: Sequence[Box]) -> Iterator[tuple[float, float]]:
    """Where no instance is."""
    end = 0.0
    for box in boxes:
        if box.left - end > 1:
            yield end + 1, box.left - end - 2
        end = box.left + box.width
    if WIDTH - end > 1:
        yield end + 1, WIDTH - end - 2


# -- pages


def numa_part(nodes: Sequence[Mapping[str, Any]]) -> Html:
    """The page pools of each NUMA node; nothing where no node has any."""
    rows = [row for node in nodes for row in _pools(node)]
    if not rows:
        return Html()
    header = ("node", "CPUs", "memory", "pages", "used", "")
    return element("article", element("h4", "Huge pages"), wide(table(header, rows, class_="numa"), "Huge pages"))


def _pools(node: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    memory = node.get("memory")
    head = (str(node.get("id")), str(node.get("cpus") or "-"), f"{memory / (1 << 30):,.0f} GiB" if memory else "-")
    for size, pool in (node.get("hugepages") or {}).items():
        total, free, surplus = (int(pool.get(key) or 0) for key in ("total", "free", "surplus"))
        if total:
            used = max(0, total - free)
            more = f", {surplus} surplus" if surplus else ""
            yield (*head, size, f"{used:,} of {total:,}{more}", element("meter", max=str(total), value=str(used)))
            head = (head[0], "", "")
