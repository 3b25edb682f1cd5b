# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules' common run: options in, result out. The only file that imports Ansible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..core import host as machine
from ..core.errors import Fault, NotKnownYet, Refused, StepFailed
from ..core.lock import only_pass
from ..core.outcome import Outcome
from ..core.plan import Unit
from ..core.records import Records
from ..core.runner import Goal, converge
from ..look.config import refuse_if_outside, refuse_where_signed
from ..plan.settings import wire_settings
from .given import to_unit
from .result import UNVERIFIED, failed, render, valid


def start(argument_spec: dict[str, Any], **rules: Any) -> AnsibleModule:
    """The module of these options; `rules` are those between options, such as mutually_exclusive."""
    return AnsibleModule(argument_spec=argument_spec, supports_check_mode=True, **rules)


def run_unit(unit: Unit, argument_spec: dict[str, Any]) -> None:
    """Converge one unit by the options of its module, and exit."""
    module = start(argument_spec)
    refuse_signed(module, unit.name)
    if module.params["state"] == "gathered":
        leave(module, gathered(unit))
    settings = None if module.params["state"] == "absent" else wire_settings(unit, module.params)
    try:
        with opened(module.check_mode, unit.name) as (host, records):
            goal = Goal(unit, settings, to_unit(module.params))
            outcome = converge(goal, host, records, module.params["max_disruption"])
    except Fault as fault:
        outcome = failed(unit.name, fault)
    leave(module, render(outcome))


def gathered(unit: Unit) -> dict[str, Any]:
    """The result of `state: gathered`: what the host is now, in the form of the unit's options; changes nothing."""
    if unit.gather is None:
        raise ValueError(f"{unit.name} has no state gathered")
    try:
        seen = unit.gather(machine.Host())
    except Fault as fault:
        return render(failed(unit.name, fault))
    state = "progressing" if seen.pending else "converged"
    return render(Outcome(unit.name, False, state, seen.pending, (), (), seen.notes, (), None, seen.found))


def refuse_signed(module: AnsibleModule, unit: str) -> None:
    """Fail where a signed spec is given."""
    if module.params["signed_spec"] is not None:
        leave(module, render(failed(unit, Refused(UNVERIFIED))))


@contextmanager
def opened(check_mode: bool, what: str) -> Iterator[tuple[machine.Host, Records]]:
    """The host and its records, for one pass: locked, or in check mode predicted."""
    real = machine.Host()
    if check_mode:
        from ..core.predict import PredictedHost

        predicted = PredictedHost(real)
        try:
            refuse_if_outside(predicted)
            refuse_where_signed(predicted)
        except NotKnownYet:  # an unprivileged look: root's configuration decides when root comes
            pass
        yield predicted, Records(predicted)
        return
    if real.uid() != 0:
        raise StepFailed(
            "node-unprivileged: this account is not root, and a unit changes the host as root: set become: true"
        )
    refuse_if_outside(real)
    refuse_where_signed(real)
    with only_pass(real, what):
        yield real, Records(real)


def leave(module: AnsibleModule, result: dict[str, Any], msg: str | None = None) -> None:
    """End the module: failed when the result says why, or when `msg` does."""
    message = msg or result.get("msg")
    whole = valid(result)
    if message:
        module.fail_json(**{**whole, "msg": valid(message)})
    module.exit_json(**whole)
