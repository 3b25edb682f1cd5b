# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Node's taints: their form, and how those of the settings differ from what the Node shows.

A kubelet may give its Node taints only when it registers it; later changes are for a cluster's admin, whose command is
told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..core.errors import Refused
from ..core.plan import Todo
from .kube_seen import EFFECTS, Node, Taint
from .label_rules import FORM, is_value, key_fault
from .unit_names import K8S_JOIN as UNIT

Identity = tuple[str, str]  # key and effect
DRIFT = "KubernetesTaintsDrift"


class Drift(NamedTuple):
    """Taints that the Node is to get or to show with another value, and those of ours that it is to lose."""

    due: tuple[Taint, ...] = ()
    gone: tuple[Taint, ...] = ()


# -- the form


def parse(texts: Iterable[Any]) -> tuple[Taint, ...]:
    """The taints of the settings, each `key[=value]:Effect`; raises Refused with all that is wrong at once."""
    found: list[Taint] = []
    faults: list[str] = []
    for text in texts:
        taint, fault = _parsed(text)
        if taint is None:
            faults.append(fault)
        elif identity(taint) in map(identity, found):
            faults.append(f"{text!r} is a second taint with the key {taint.key!r} and the effect {taint.effect}")
        else:
            found.append(taint)
    if faults:
        raise Refused(f"{UNIT}: taints: {'; '.join(faults)}: correct or remove what is named")
    return tuple(found)


def _parsed(text: Any) -> tuple[Taint | None, str]:
    """A taint, or what is wrong with its text."""
    if not isinstance(text, str):
        return None, f"{text!r} is not text"
    rest, colon, effect = text.rpartition(":")
    key, _equals, value = rest.partition("=")
    if not colon or effect not in EFFECTS:
        return None, f"{text!r} does not end in :{', :'.join(EFFECTS[:-1])} or :{EFFECTS[-1]}"
    if key_fault(key):
        return None, f"in {text!r} {key_fault(key)}"
    if not is_value(value):
        return None, f"in {text!r} the value is not {FORM}"
    return Taint(key, value, effect), ""


def identity(taint: Taint) -> Identity:
    """By what a taint is known on its Node; its value is data."""
    return taint.key, taint.effect


# -- the Node


def drift(wanted: tuple[Taint, ...], registered: tuple[Taint, ...], shown: tuple[Taint, ...]) -> Drift:
    """How the Node's taints differ from those wanted; of the others only those that were registered count."""
    on_node = {identity(taint): taint.value for taint in shown}
    named = set(map(identity, wanted))
    due = tuple(taint for taint in wanted if on_node.get(identity(taint)) != taint.value)
    gone = tuple(taint for taint in registered if identity(taint) in on_node and identity(taint) not in named)
    return Drift(due, gone)


def registered(wanted: tuple[Taint, ...], before: tuple[Taint, ...], shown: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """What is to be recorded: the taints that the Node shows of those wanted and of those recorded before."""
    ours = {*map(identity, wanted), *map(identity, before)}
    return tuple(sorted(taint for taint in shown if identity(taint) in ours))


def tell_drift(todo: Todo, node: Node, want: tuple[Taint, ...], before: tuple[Taint, ...]) -> None:
    """Report taints that differ from those wanted: no kubelet may change those of its Node."""
    differing = drift(want, before, node.taints)
    if differing.due or differing.gone:
        todo.condition(
            DRIFT,
            "NodeRestriction",
            f"the taints of the node {node.name} are not those of the settings, and a node may not change its own: an "
            f"admin of the cluster runs {command(node.name, want, differing.gone)}",
        )


def command(node: str, wanted: tuple[Taint, ...], gone: tuple[Taint, ...]) -> str:
    """What a cluster's admin runs: it sets all taints that are wanted, and takes away those of ours that are not."""
    words = [taint.words for taint in wanted] + [f"{taint.key}:{taint.effect}-" for taint in gone]
    return f"kubectl taint node {node} {' '.join(words)} --overwrite"
