# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A JoinConfiguration as kubeadm reads it: API versions, shapes, defaults and validation, with its words."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Union

from . import yaml_text
from .admission import SUBDOMAIN

Object = dict[str, Any]
GROUP = "kubeadm.k8s.io/"
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
TIMEOUTS = {"discovery": 300.0, "tlsBootstrap": 300.0, "kubeletHealthCheck": 240.0}
# What may be in it: a type, a table of fields, or a list of one of these.
Shape = Union[type, "dict[str, Any]", "list[Any]"]
TAINT: Shape = {"key": str, "value": str, "effect": str, "timeAdded": str}
REGISTRATION: Object = {
    "name": str,
    "criSocket": str,
    "taints": [TAINT],
    "ignorePreflightErrors": [str],
    "imagePullPolicy": str,
}
BOOTSTRAP: Shape = {"token": str, "apiServerEndpoint": str, "caCertHashes": [str], "unsafeSkipCAVerification": bool}
DISCOVERY: Object = {"bootstrapToken": BOOTSTRAP, "file": {"kubeConfigPath": str}, "tlsBootstrapToken": str}
COMMON: Object = {
    "apiVersion": str,
    "kind": str,
    "caCertPath": str,
    "controlPlane": {"localAPIEndpoint": {"advertiseAddress": str, "bindPort": int}, "certificateKey": str},
    "skipPhases": [str],
    "patches": {"directory": str},
}
SHAPES: dict[str, Object] = {
    "v1beta3": {
        **COMMON,
        "nodeRegistration": {**REGISTRATION, "kubeletExtraArgs": dict},
        "discovery": {**DISCOVERY, "timeout": str},
    },
    "v1beta4": {
        **COMMON,
        "nodeRegistration": {
            **REGISTRATION,
            "imagePullSerial": bool,
            "kubeletExtraArgs": [{"name": str, "value": str}],
        },
        "discovery": DISCOVERY,
        "dryRun": bool,
        "timeouts": {
            **dict.fromkeys(TIMEOUTS, str),
            **dict.fromkeys(("controlPlaneComponentHealthCheck", "kubernetesAPICall", "etcdAPICall"), str),
            "upgradeManifests": str,
        },
    },
}
GO = {str: "string", bool: "bool", int: "int32", float: "number", dict: "object", list: "array"}


class Wrong(Exception):
    """kubeadm does not take it; `is_validation`: it could be read, and its values are wrong."""

    def __init__(self, message: str, is_validation: bool = False) -> None:
        super().__init__(message)
        self.is_validation = is_validation


class Join(NamedTuple):
    """A JoinConfiguration with its defaults. `warnings` are what kubeadm says and goes on."""

    api: str
    token: str
    endpoint: str
    hashes: tuple[str, ...]
    name: str
    socket: str
    taints: tuple[Object, ...]
    arguments: tuple[tuple[str, str], ...]
    ignored: tuple[str, ...]
    timeouts: dict[str, float]
    warnings: tuple[str, ...] = ()


def read(text: str, minor: int, hostname: str, strict: bool) -> Join:
    """The configuration for kubeadm of this minor; raises Wrong."""
    try:
        found = yaml_text.load(text)
    except yaml_text.Malformed as fault:
        raise Wrong(f"error converting YAML to JSON: yaml: {fault}") from None
    if not isinstance(found, dict) or not found.get("apiVersion") or not found.get("kind"):
        raise Wrong("invalid configuration: kind and apiVersion is mandatory information that must be specified")
    api, warnings = _api(found, minor)
    if found["kind"] != "JoinConfiguration":
        raise Wrong("no InitConfiguration or ClusterConfiguration kind was found in the YAML file")
    unknown = _unknown(found, SHAPES[api], "")
    if unknown:
        said = "strict decoding error: " + ", ".join(f'unknown field "{name}"' for name in unknown)
        if strict:
            raise Wrong(said)
        version = f'schema.GroupVersionKind{{Group:"kubeadm.k8s.io", Version:"{api}", Kind:"JoinConfiguration"}}'
        warnings.append(f"error unmarshaling configuration {version}: {said}")
    _shaped(found, SHAPES[api], "", api)
    join = _join(found, api, hostname, warnings)
    _validate(join)
    return join


def _api(found: Object, minor: int) -> tuple[str, list[str]]:
    """The version of the API, and what kubeadm of this minor says of it."""
    given = str(found["apiVersion"])
    api = given[len(GROUP) :] if given.startswith(GROUP) else ""
    known = ("v1beta2", "v1beta3") if minor <= 26 else ("v1beta3",) if minor <= 30 else ("v1beta3", "v1beta4")
    named = f'"{given}" (kind: "{found["kind"]}")'
    migrate = "'kubeadm config migrate --old-config old-config-file --new-config new-config-file'"
    if api in ("v1beta1", "v1beta2") and api not in known:
        raise Wrong(
            f"your configuration file uses an old API spec: {named}. Please use kubeadm v1.22 instead and run "
            f"{migrate}, which will write the new, similar spec using a newer API version."
        )
    if api not in known or api not in SHAPES:
        scheme = "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/scheme/scheme.go:30"
        raise Wrong(f'no kind "{found["kind"]}" is registered for version "{given}" in scheme "{scheme}"')
    old = [(f"your configuration file uses a deprecated API spec: {named}. Please use {migrate}, which will write the "
           "new, similar spec using a newer API version.")]  # fmt: skip
    return api, old if api != known[-1] else []


def _unknown(value: Any, shape: Any, path: str) -> list[str]:
    """The fields that the API does not have."""
    found: list[str] = []
    if isinstance(shape, dict) and isinstance(value, dict):
        for key, part in value.items():
            below = f"{path}.{key}".lstrip(".")
            found += _unknown(part, shape[key], below) if key in shape else [below]
    elif isinstance(shape, list) and isinstance(value, list):
        for at, part in enumerate(value):
            found += _unknown(part, shape[0], f"{path}[{at}]")
    return found


def _shaped(value: Any, shape: Any, path: str, api: str) -> None:
    """Raises Wrong for a value of another type."""
    if value is None:
        return
    if shape is dict:
        _is(value, dict, path, "map[string]string")
        for key, part in value.items():
            _is(part, str, f"{path}.{key}", "string")
    elif isinstance(shape, dict):
        _is(value, dict, path, f"{api}.{path.rpartition('.')[2]}")
        for key, part in value.items():
            _shaped(part, shape.get(key, object), f"{path}.{key}".lstrip("."), api)
    elif isinstance(shape, list):
        inner = GO.get(shape[0], f"{api}.Arg") if isinstance(shape[0], type) else f"{api}.Arg"
        _is(value, list, path, f"[]{'v1.Taint' if path.endswith('taints') else inner}")
        for at, part in enumerate(value):
            _shaped(part, shape[0], f"{path}[{at}]", api)
    elif shape is not object:
        _is(value, shape, path, GO[shape])


def _is(value: Any, kind: type, path: str, go: str) -> None:
    if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        given = "number" if is_number else GO[type(value)]
        struct = "NodeRegistrationOptions" if path.startswith("nodeRegistration") else "JoinConfiguration"
        raise Wrong(f"json: cannot unmarshal {given} into Go struct field {struct}.{path} of type {go}")


def seconds(text: str) -> float:
    """A duration of Go; raises Wrong."""
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|h|m|s))+", text):
        raise Wrong(
            f'time: missing unit in duration "{text}"' if text.isdigit() else f'time: invalid duration "{text}"'
        )
    return sum(float(number) * UNITS[unit] for number, unit in DURATION.findall(text))


def _join(found: Object, api: str, hostname: str, warnings: list[str]) -> Join:
    node = found.get("nodeRegistration") or {}
    discovery = found.get("discovery") or {}
    bootstrap = discovery.get("bootstrapToken") or {}
    arguments = node.get("kubeletExtraArgs") or {}
    pairs = list(arguments.items()) if api == "v1beta3" else [(one["name"], one["value"]) for one in arguments]
    timeouts = dict(TIMEOUTS)
    given = {"discovery": discovery["timeout"]} if discovery.get("timeout") else found.get("timeouts") or {}
    timeouts.update({name: seconds(text) for name, text in given.items()})
    if not bootstrap:
        raise Wrong('discovery: Invalid value: "": bootstrapToken or file must be set', is_validation=True)
    if not bootstrap.get("caCertHashes") and not bootstrap.get("unsafeSkipCAVerification"):
        raise Wrong(
            'discovery.bootstrapToken.caCertHashes: Invalid value: "": using token-based discovery without '
            "caCertHashes can be unsafe. Set unsafeSkipCAVerification as true in your kubeadm config file or pass "
            "--discovery-token-unsafe-skip-ca-verification flag to continue",
            is_validation=True,
        )
    socket = node.get("criSocket") or "unix:///var/run/containerd/containerd.sock"
    if not socket.startswith("unix://"):
        warnings.append(
            f"Usage of CRI endpoints without URL scheme is deprecated and can cause kubelet errors in the future. "
            f'Automatically prepending scheme "unix" to the "criSocket" with value "{socket}". Please update your '
            "configuration!"
        )
    return Join(
        api=api,
        token=str(bootstrap.get("token") or ""),
        endpoint=str(bootstrap.get("apiServerEndpoint") or ""),
        hashes=tuple(bootstrap.get("caCertHashes") or ()),
        name=node.get("name") or hostname.strip().lower(),
        socket=socket,
        taints=tuple(node.get("taints") or ()),
        arguments=tuple(pairs),
        ignored=tuple(node.get("ignorePreflightErrors") or ()),
        timeouts=timeouts,
        warnings=tuple(warnings),
    )


def _validate(join: Join) -> None:
    faults = []
    if not TOKEN.fullmatch(join.token):
        for field in ("bootstrapToken.token", "tlsBootstrapToken"):
            faults.append(f'discovery.{field}: Invalid value: "{join.token}": the bootstrap token is invalid')
    wrong = endpoint_fault(join.endpoint)
    if wrong:
        faults.append(f'discovery.bootstrapToken.apiServerEndpoint: Invalid value: "{join.endpoint}": {wrong}')
    if not SUBDOMAIN.fullmatch(join.name) or len(join.name) > 253:
        faults.append(
            f'nodeRegistration.name: Invalid value: "{join.name}": a lowercase RFC 1123 subdomain must consist of '
            "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    if faults:
        raise Wrong(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]", is_validation=True)


def endpoint_fault(text: str) -> str:
    """What Go says of a text that is not host:port ("" when it is)."""
    bare = re.sub(r"^\[[0-9a-fA-F:.]+\]", "host", text)
    if ":" not in bare:
        return f"address {text}: missing port in address"
    if bare.count(":") > 1:
        return f"address {text}: too many colons in address"
    port = bare.rpartition(":")[2]
    return "" if port.isdigit() and 0 < int(port) < 65536 else f'port "{port}" is invalid'
