# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a FleetConfig, JSON or YAML: what is wrong with it that nobody can see any more once it was read.

Of a key that is there twice every reader keeps one and says nothing: a unit named twice is half applied then.
"""

from __future__ import annotations

import json
import math
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..module_utils.plan.wire import once
from .input_faults import DEEPEST, Fault, below

MOST = 1_000_000  # values, which are more than any fleet has; JSON has no way to make so many of a short text
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # of ten times the speed, where PyYAML was built with it
MERGE = "tag:yaml.org,2002:merge"


def repeated_keys(text: str) -> list[Fault]:
    """A fault for each key that is there twice in one mapping, at its path with the line.

    Of a text that nobody can read, or that nobody is to, since its aliases make more of it than any memory holds, the
    one fault is that, at `$`.
    """
    if _is_good_json(text):
        return []
    try:
        # JSON may be indented by tabs, which YAML takes for nothing.
        root = yaml.compose(text.replace("\t", " ") if text.lstrip()[:1] == "{" else text, Loader=LOADER)
    except (yaml.YAMLError, RecursionError) as fault:
        return [Fault("$", f"this is neither JSON nor YAML ({_where(fault)}): correct it")]
    faults: list[Fault] = []
    if root is not None and _values(root, {}, DEEPEST) > MOST:
        return [Fault("$", f"its aliases (*name) stand for more than {MOST} values: write out what is meant")]
    if root is not None:
        _walk(root, "$", faults, set(), DEEPEST)
    return faults


def _is_good_json(text: str) -> bool:
    """Whether it is JSON in which no key is there twice: read in a hundredth of the time that YAML takes."""
    try:
        json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return False
    return True


def _where(fault: BaseException) -> str:
    mark = getattr(fault, "problem_mark", None)
    problem = getattr(fault, "problem", None) or "it is nested too deeply"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)


def _values(node: Node, counted: dict[int, float], levels: int) -> float:
    """How many values a node has, once each alias in it is what it names: without end for one that is in itself.

    Each node is counted once. What lies too deep counts as one, which is a fault of the document that it is read as.
    """
    if levels < 1 or isinstance(node, ScalarNode):
        return 1
    if id(node) not in counted:
        counted[id(node)] = math.inf
        inside = [part for pair in node.value for part in pair] if isinstance(node, MappingNode) else node.value
        counted[id(node)] = 1 + sum(_values(part, counted, levels - 1) for part in inside)
    return counted[id(node)]


def _walk(node: Node, path: str, faults: list[Fault], seen: set[int], levels: int) -> None:
    """Look at each node once: an alias is the node that it names, and may be inside itself."""
    if id(node) in seen or levels < 1:
        return
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        for at, item in enumerate(node.value):
            _walk(item, below(path, at), faults, seen, levels - 1)
    if isinstance(node, MappingNode):
        first: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                continue  # no text, which is a fault of the document that it is read as
            place = below(path, key.value)
            line = key.start_mark.line + 1
            if key.value in first and key.tag != MERGE:
                text = f"this key is there twice, in the lines {first[key.value]} and {line}: keep one of them"
                faults.append(Fault(place, text))
            first.setdefault(key.value, line)
            _walk(value, place, faults, seen, levels - 1)
