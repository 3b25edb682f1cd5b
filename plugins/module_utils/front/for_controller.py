# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass that Ansible has the program make in place of a module: the request comes on standard input.

The request is a JSON object with the `version` and the `code` (the digest of the program's zip) of the collection that
asks, the `module` by its name, its `params`, complete and validated, and `check`. The answer is one line of JSON, an
object with the module's result as `bcd_answer`. Another version or other code answers nothing and ends with ANOTHER.
"""

from __future__ import annotations

import sys

from ..core.code_id import code_id
from ..core.json_text import dumps, loads
from ..plan.installed import ANOTHER
from ..plan.release import VERSION
from .exit_status import CONVERGED, USAGE
from .result import valid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BAD = "bcd: request is for Ansible, which gives a JSON object on standard input: call another word\n"


def run() -> int:
    """Answer the request on standard input; the exit status. A fault of the code itself is raised."""
    try:
        asked = loads(sys.stdin.buffer.read().decode())
        same = (asked["version"], asked["code"]) == (VERSION, code_id())
        module, params, check = asked["module"], {**asked["params"]}, asked["check"]
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
        sys.stderr.write(BAD)
        return USAGE
    result = result_of(module, params, check) if same else None
    if result is None:
        return ANOTHER
    sys.stdout.write("\n" + dumps({"bcd_answer": valid(result)}) + "\n")
    return CONVERGED


def result_of(module: str, params: Mapping[str, Any], check: bool) -> dict[str, Any] | None:
    """The module's result; None for a module that this program does not know."""
    if module in ("host_section", "host_plan"):
        from .section import section_result

        return section_result(params, check, module == "host_plan")
    if module == "cdi_holds":
        from .holds import holds_result

        return holds_result(params, check)
    from ..plan.unit_names import ORDER

    unit = next((name for name in ORDER if name.replace("-", "_") == module), None)
    if unit is None:
        return None
    from ..units import catalog
    from .single import module_result

    return module_result(catalog.unit(unit), params, check)
