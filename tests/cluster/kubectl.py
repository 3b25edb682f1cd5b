# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubectl, as far as a node's own credentials go: label, get node, cordon, uncordon, drain."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from .kubeadm import Answer, Said
from .wire import Client, Reply, Unreached, access
from .worker import Worker

Object = dict[str, Any]
MERGE = "application/merge-patch+json"


class Ended(Exception):
    """kubectl ends with this; the status is 1."""


def kubectl(worker: Worker, argv: tuple[str, ...]) -> Answer:
    """Run kubectl with these words, the program's own first."""
    said = Said()
    flags: dict[str, str] = {}
    words: list[str] = []
    rest = list(argv[1:])
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            words.append(word)
        elif not equals and name in (
            "kubeconfig",
            "request-timeout",
            "o",
            "output",
            "timeout",
            "field-selector",
            "grace-period",
        ):
            flags[name] = rest.pop(0)
        else:
            flags[name] = value or "true"
    if words[:1] == ["version"] and "client" in flags:
        said.out(f"clientVersion:\n  gitVersion: v{worker.version}\n  major: '1'\n  minor: '{worker.minor}'")
        return said.answer(0)
    known = access(worker, flags.get("kubeconfig", "/root/.kube/config"))
    try:
        if known is None:
            raise Ended(f"error: stat {flags.get('kubeconfig')}: no such file or directory")
        client = known.client(worker)
        if known.certificate and not client.pair:
            raise Ended(f"error: unable to read client-cert {known.certificate}: no such file or directory")
        VERBS[words[0]](client, words[1:], flags, said)
    except Ended as fault:
        said.err(str(fault))
        return said.answer(1)
    except Unreached as fault:
        said.err(_unreached(known.server if known else "", str(fault)))
        return said.answer(1)
    return said.answer(0)


def _unreached(server: str, fault: str) -> str:
    if "refused" in fault:
        address = server.partition("//")[2]
        return f"The connection to the server {address} was refused - did you specify the right host or port?"
    return f"Unable to connect to the server: {fault}"


def _checked(reply: Reply) -> Reply:
    if reply.code == 401:
        raise Ended("error: You must be logged in to the server (Unauthorized)")
    if reply.code >= 300:
        raise Ended(f"Error from server ({reply.reason}): {reply.message}")
    return reply


def _target(words: list[str]) -> tuple[str, list[str]]:
    """The node of `node NAME ...`, `node/NAME ...` and `nodes NAME ...`."""
    kind, slash, name = words[0].partition("/")
    if kind not in ("node", "nodes", "no"):
        raise Ended(f'error: the server doesn\'t have a resource type "{kind}"')
    return (name, words[1:]) if slash else (words[1], words[2:])


def _label(client: Client, words: list[str], flags: dict[str, str], said: Said) -> None:
    name, changes = _target(words)
    have = _checked(client.call("GET", f"/api/v1/nodes/{name}")).body["metadata"].get("labels", {})
    patch: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if equals:
            if key in have and have[key] != value and "overwrite" not in flags:
                raise Ended(f"error: '{key}' already has a value ({have[key]}), and --overwrite is false")
            if have.get(key) != value:
                patch[key] = value
        elif key.rstrip("-") in have:
            patch[key.rstrip("-")] = None
        else:
            said.out(f'label "{key.rstrip("-")}" not found.')
    if not patch:
        said.out(f"node/{name} not labeled")
        return
    _checked(
        client.call("PATCH", f"/api/v1/nodes/{name}?fieldManager=kubectl-label", {"metadata": {"labels": patch}}, MERGE)
    )
    said.out(f"node/{name} {'unlabeled' if all(value is None for value in patch.values()) else 'labeled'}")


def _get(client: Client, words: list[str], flags: dict[str, str], said: Said) -> None:
    if words[0] in ("pods", "pod", "po"):
        fields = quote(flags.get("field-selector", ""))
        found = _checked(client.call("GET", f"/api/v1/pods?fieldSelector={fields}")).body
    else:
        name, _rest = _target(words)
        found = _checked(client.call("GET", f"/api/v1/nodes/{name}")).body
    if flags.get("o", flags.get("output")) == "json":
        said.out(json.dumps(found, indent=4))
    else:
        said.out(f"NAME STATUS\n{found['metadata'].get('name', '')} Ready")


def _cordon(client: Client, words: list[str], _flags: dict[str, str], said: Said) -> None:
    _schedulable(client, words[0], True, said)


def _uncordon(client: Client, words: list[str], _flags: dict[str, str], said: Said) -> None:
    _schedulable(client, words[0], False, said)


def _schedulable(client: Client, name: str, cordoned: bool, said: Said) -> None:
    verb = "cordoned" if cordoned else "uncordoned"
    node = _checked(client.call("GET", f"/api/v1/nodes/{name}")).body
    if bool(node["spec"].get("unschedulable")) == cordoned:
        said.out(f"node/{name} already {verb}")
        return
    patch = {"spec": {"unschedulable": True if cordoned else None}}
    _checked(client.call("PATCH", f"/api/v1/nodes/{name}", patch, MERGE))
    said.out(f"node/{name} {verb}")


def _drain(client: Client, words: list[str], flags: dict[str, str], said: Said) -> None:
    """Cordons and evicts; then it may not look at the pods that are gone, and ends with that."""
    name = words[0]
    _schedulable(client, name, True, said)
    query = f"fieldSelector={quote(f'spec.nodeName={name}')}&labelSelector={quote(flags.get('pod-selector', ''))}"
    pods = _checked(client.call("GET", f"/api/v1/pods?{query}")).body["items"]
    owned = {pod["metadata"]["name"]: [one["kind"] for one in pod["metadata"]["ownerReferences"]] for pod in pods}
    daemons = [pod for pod in pods if "DaemonSet" in owned[pod["metadata"]["name"]]]
    if daemons:  # kubectl looks at what owns them, which no node may, and evicts nothing then
        raise Ended(
            f'error: unable to drain node "{name}" due to error: daemonsets.apps '
            f'"{daemons[0]["metadata"]["name"]}" is forbidden: User "system:node:{name}" cannot get resource '
            f'"daemonsets" in API group "apps" in the namespace "{daemons[0]["metadata"]["namespace"]}", continuing '
            "command..."
        )
    faults = []
    for pod in pods:
        meta = pod["metadata"]
        if not owned[meta["name"]] and "force" not in flags:
            raise Ended(
                f'error: unable to drain node "{name}" due to error: cannot delete Pods that declare no controller '
                f"(use --force to override): {meta['namespace']}/{meta['name']}, continuing command..."
            )
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        said.out(f"evicting pod {meta['namespace']}/{meta['name']}")
        eviction = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": meta["name"]}}
        _checked(client.call("POST", f"{path}/eviction", eviction))
        faults.append(client.call("GET", path).message)
    if faults:
        raise Ended(f"There are pending nodes to be drained:\n {name}\nerror: {'; '.join(faults)}")
    said.out(f"node/{name} drained")


VERBS = {"label": _label, "get": _get, "cordon": _cordon, "uncordon": _uncordon, "drain": _drain}
