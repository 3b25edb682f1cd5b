# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API server says of itself and of its resources, as far as kubectl asks."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def answer(path: str, version: str) -> Object | None:
    """The object at one of discovery's paths, None for any other."""
    if path == "/version":
        major, minor, _patch = version.split(".")
        return {"major": major, "minor": minor, "gitVersion": f"v{version}", "platform": "linux/amd64"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        groups = [_group("certificates.k8s.io"), _group("policy")]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if path == "/api/v1":
        found = [_resource("nodes", "Node", False, "no"), _resource("pods", "Pod", True, "po")]
        eviction = {"name": "pods/eviction", "singularName": "", "namespaced": True, "kind": "Eviction"}
        found.append({**eviction, "group": "policy", "version": "v1", "verbs": ["create"]})
        return _resources("v1", [*found, _resource("configmaps", "ConfigMap", True, "cm")])
    if path == "/apis/policy/v1":
        return _resources("policy/v1", [])
    if path == "/apis/certificates.k8s.io/v1":
        requests = _resource("certificatesigningrequests", "CertificateSigningRequest", False, "csr")
        return _resources("certificates.k8s.io/v1", [requests])
    return None


def _group(name: str) -> Object:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _resource(name: str, kind: str, namespaced: bool, short: str) -> Object:
    singular = {"name": name, "singularName": kind.lower(), "namespaced": namespaced, "kind": kind}
    return {**singular, "verbs": VERBS, "shortNames": [short]}


def _resources(version: str, found: list[Object]) -> Object:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}
