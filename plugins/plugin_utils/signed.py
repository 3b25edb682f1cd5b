# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a signed spec asks for, as far as the controller needs to know: nothing here is verified, hosts do that."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..module_utils.plan import canonical


def said(spec: Any) -> dict[str, Any]:
    """`node_id`, `generation`, and `units` and `devices` where it manages them; {} where that cannot be made out.

    What cannot be made out is for the host to refuse, with the reason.
    """
    try:
        body = canonical.parse(base64.b64decode(_envelope(spec)["body"].encode(), validate=True))
        found = {name: body[name] for name in ("node_id", "generation")}
        if "host" in body:
            found["units"] = {entry["unit"]: _settings(entry["settings"]) for entry in body["host"]}
        if "devices" in body:
            found["devices"] = [dict(entry) for entry in body["devices"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return found


def _envelope(spec: Any) -> Mapping[str, Any]:
    """A variable from the command line may be the text of the envelope."""
    found = json.loads(spec) if isinstance(spec, str) else spec
    if not isinstance(found, Mapping):
        raise TypeError
    return found


def _settings(text: str) -> dict[str, Any]:
    return dict(canonical.parse(text.encode()))


def holders(hosts: Iterable[str], variables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The hosts whose variables say what they hold, by assignments or by what is signed for them.

    A variable that cannot be had (its lookup fails, say) says nothing here: the host's own tasks have failed by it.
    """
    return [host for host in hosts if _holds(variables[host])]


def _holds(variables: Mapping[str, Any]) -> bool:
    if value_of(variables, "bcd_devices_assignments") is not None:
        return True
    specs = (value_of(variables, name) for name in ("bcd_devices_signed_spec", "bcd_converge_signed_spec"))
    return "devices" in said(next((spec for spec in specs if spec is not None), None))


def value_of(variables: Mapping[str, Any], name: str) -> Any:
    """A host's variable; None where it has none, or none that can be had."""
    if name not in variables:
        return None
    try:
        value = variables[name]
        json.dumps(value, default=str)  # what is undefined raises when it is used
    except Exception:  # noqa: BLE001  # whatever a lookup raises, and each version of Ansible another
        return None
    return value
