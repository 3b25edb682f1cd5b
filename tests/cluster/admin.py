# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster's admin types, with kubectl and rights for everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .admission import EFFECTS, label_fault

if TYPE_CHECKING:
    from .control_plane import Cluster

Object = dict[str, Any]


def run(cluster: Cluster, words: list[str]) -> str:
    """One command line, as words; raises ValueError with kubectl's complaint."""
    program, verb, kind, *rest = [word for word in words if word != "--overwrite"]
    if program == "kubectl" and verb in ("cordon", "uncordon") and kind in cluster.nodes:
        cluster.nodes[kind]["spec"]["unschedulable"] = verb == "cordon"
        cluster.put(cluster.nodes[kind])
        return f"node/{kind} {verb}ed"
    if program != "kubectl" or kind not in ("node", "nodes", "no"):
        raise ValueError(f"this admin does not know: {' '.join(words)}")
    name, *changes = rest
    if name not in cluster.nodes:
        raise ValueError(f'Error from server (NotFound): nodes "{name}" not found')
    if verb == "delete":
        del cluster.nodes[name]
        return f'node "{name}" deleted'
    node = cluster.nodes[name]
    if verb == "taint":
        node["spec"]["taints"] = _tainted(node["spec"].get("taints") or [], changes, "--overwrite" in words, name)
        cluster.put(node)
        return (
            f"node/{name} tainted" if any(not change.endswith("-") for change in changes) else f"node/{name} untainted"
        )
    if verb == "label":
        _label(node, changes)
        cluster.put(node)
        return f"node/{name} labeled"
    raise ValueError(f'error: unknown command "{verb}"')


def _tainted(taints: list[Object], changes: list[str], overwrite: bool, name: str) -> list[Object]:
    """The taints after the changes `key=value:Effect`, `key:Effect`, `key:Effect-` and `key-`."""
    if not changes:
        raise ValueError("error: at least one taint update is required")
    found = list(taints)
    for change in changes:
        key, _colon, effect = change.rstrip("-").partition(":") if change.endswith("-") else change.partition(":")
        if change.endswith("-"):
            key = key.partition("=")[0]
            gone = [one for one in found if one["key"] == key and effect in ("", one["effect"])]
            if not gone:
                raise ValueError(f'error: taint "{change.rstrip("-")}" not found')
            found = [one for one in found if one not in gone]
            continue
        key, equals, value = key.partition("=")
        if effect not in EFFECTS:
            raise ValueError(f"error: invalid taint effect: {effect}, unsupported taint effect")
        same = [one for one in found if (one["key"], one["effect"]) == (key, effect)]
        if same and not overwrite:
            raise ValueError(
                f"error: node {name} already has {key} taint(s) with same effect(s) and --overwrite is false"
            )
        taint = {"key": key, "effect": effect, **({"value": value} if equals and value else {})}
        found = [one for one in found if one not in same] + [taint]
    return found


def _label(node: Object, changes: list[str]) -> None:
    labels = node["metadata"]["labels"]
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            labels.pop(key.rstrip("-"), None)
            continue
        fault = label_fault(key, value)
        if fault:
            raise ValueError(fault)
        labels[key] = value
