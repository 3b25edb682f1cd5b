# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run is given beside the settings, from the modules' options.

A secret loses the white space around it: a file, a vaulted text and what a program prints end with a line break.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import Refused
from ..core.secret import UNNAMED, Given, Secret


def to_section(params: Mapping[str, Any]) -> Given:
    """Of a whole host: `secrets` by their reference. Raises Refused for one that is no text, without showing it."""
    secrets = params["secrets"] or {}
    wrong = {name: value for name, value in secrets.items() if not (isinstance(value, str) and value.strip())}
    faults = [f"{name!r} is {_kind(value)}" for name, value in wrong.items()]
    if faults:
        raise Refused(f"secrets: {', '.join(faults)}, and a secret is a string: see by what it is looked up")
    told = {str(name): Secret(value.strip()) for name, value in secrets.items()}
    return Given(told, params["node_id"] or "", params["site"] or "")


def to_unit(params: Mapping[str, Any]) -> Given:
    """Of one unit, whose module may have `token`, the secret that `join_token_ref` refers to, `node_id` and `site`."""
    token = params.get("token")
    secrets = {params.get("join_token_ref") or UNNAMED: Secret(token.strip())} if token else {}
    return Given(secrets, params.get("node_id") or "", params.get("site") or "", "token")


def _kind(value: Any) -> str:
    from ..plan.settings_faults import WORDS

    if value is None:
        return "null"
    return "empty" if isinstance(value, str) else WORDS.get(type(value), "a value")
