# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's own configuration of a host, for the module host_config and the playbook enroll."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import host as machine
from ..core.errors import Fault, NotKnownYet, Refused, StepFailed
from ..core.runner import Goal, converge
from ..plan.host_config import NAME, RECORD, pinned
from ..plan.pins import JOIN_KEY
from .opening import opened
from .result import failed, render

NEEDS_ROOT = (
    f"{NAME}: only root says who may sign for a host, never the helper on another account's word: set become: true for "
    "this task"
)


def run_config(argument_spec: dict[str, Any]) -> None:
    """Bring the configuration to what the module's options say, and exit."""
    from .module import leave, start

    module = start(argument_spec)
    leave(module, config_result(module.params, module.check_mode))


def config_result(params: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """The module's result. A join record that does not verify refuses all of it, before anything is written."""
    from ..units.host_config import UNIT

    node_id = None
    try:
        if not check_mode and machine.Host().uid() != 0:
            raise StepFailed(NEEDS_ROOT, retryable=False)
        with opened(check_mode, NAME, outside=True) as (host, records):
            settings, node_id = _settled(params, host)
            outcome = converge(Goal(UNIT, settings), host, records)
    except Fault as fault:
        outcome = failed(NAME, fault)
    return {**render(outcome), **({} if node_id is None else {"node_id": node_id})}


def _settled(params: Mapping[str, Any], host: machine.Host) -> tuple[dict[str, Any], str | None]:
    """The options as the plan's settings, with the text of a record that verified, and the node that it names."""
    from ..plan.wire_form import wire_settings
    from ..units.host_config import UNIT

    record = params["join_record"]
    settings = wire_settings(UNIT, {**params, "join_record": None})
    if record is None:
        _refuse_stale(settings, host)
        return settings, None
    if not record:
        return {**settings, "joinRecord": ""}, None
    text, node_id = _verified(settings, record, host)
    return {**settings, "joinRecord": text}, node_id


def _verified(settings: Mapping[str, Any], record: Mapping[str, Any], host: machine.Host) -> tuple[str, str | None]:
    """The text of the record's file, and the node; raises Refused unless the key that will be pinned signed it."""
    from ..intent.acceptance import join_record
    from ..intent.envelope import envelope, rendered
    from ..plan.canonical import canonical

    text = canonical(rendered(envelope(record, "the join record"))) + "\n"
    try:
        if not host.predicted or _has_cryptography():
            return text, join_record(record, _pins(settings, host)).node_id
    except NotKnownYet:  # another account's look: root's own verifies it
        pass
    return text, None


def _has_cryptography() -> bool:
    """Whether a signature can be verified here; on a bare machine a check goes before what a run installs first."""
    from importlib.util import find_spec

    return find_spec("cryptography") is not None


def _pins(settings: Mapping[str, Any], host: machine.Host) -> Any:
    from ..look.config import config
    from ..plan.host_config import check

    return pinned(config(host), check(settings))


def _refuse_stale(settings: Mapping[str, Any], host: machine.Host) -> None:
    """Raise Refused where another key is pinned than signed the record that is there: it would stop every pass."""
    from ..look.config import pinned as now_pinned

    if "joinPin" not in settings:
        return
    try:
        text = host.read(RECORD)
        pins = _pins(settings, host)
        moves = bool(pins.join_key) and text is not None and pins.join_key != now_pinned(host).join_key
    except NotKnownYet:
        return
    if moves:
        raise Refused(
            f"{NAME}: {JOIN_KEY} is to be another key than the one that signed {RECORD}: give join_record signed by "
            "the new one, or join_record: {} to take the old one away"
        )
