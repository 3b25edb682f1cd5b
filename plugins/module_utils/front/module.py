# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules' common run: options in, result out. The only file that imports Ansible."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..core.plan import Unit
from .result import valid


def start(argument_spec: dict[str, Any], **rules: Any) -> AnsibleModule:
    """The module of these options; `rules` are those between options, such as mutually_exclusive."""
    return AnsibleModule(argument_spec=argument_spec, supports_check_mode=True, **rules)


def run_unit(unit: Unit, argument_spec: dict[str, Any]) -> None:
    """Converge one unit by the options of its module, and exit."""
    from .single import module_result  # here, since a pass over the whole host does not need it

    module = start(argument_spec)
    leave(module, module_result(unit, module.params, module.check_mode))


def leave(module: AnsibleModule, result: dict[str, Any], msg: str | None = None) -> None:
    """End the module: failed when the result says why, or when `msg` does."""
    message = msg or result.get("msg")
    whole = valid(result)
    if message:
        module.fail_json(**{**whole, "msg": valid(message)})
    module.exit_json(**whole)
