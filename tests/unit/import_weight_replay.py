# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that `import_weight` runs: it imports nothing of the project but what the pass imports, and FakeHost."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import section
from tests.unit.fake_host import FakeHost

ROOM = "ansible_collections.bettercompute.bcd.plugins.module_utils."
OPTIONS = ("units", "wire_units", "known", "generation", "signed_spec", "secrets", "node_id", "site", "only", "label")


def host_of(tape: dict[str, Any]) -> FakeHost:
    """A host with the files, whose programs say what was recorded; a question that was not is a fault."""
    said: dict[tuple[tuple[str, ...], str], list[Answer]] = {}
    for argv, stdin, answer in tape["said"]:
        said.setdefault((tuple(argv), stdin), []).append(Answer(*answer))

    def program(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        answers = said[argv, host.stdin]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    host = FakeHost(
        programs=dict.fromkeys([*tape["programs"], *(argv[0] for argv, _in, _out in tape["said"])], program)
    )
    host.files = {path: File(*file) for path, file in tape["files"].items()}
    host.links = tape["links"]
    return host


def imported() -> dict[str, int]:
    """The project's files that are imported, with their bytes."""
    modules = {name[len(ROOM) :]: module for name, module in sys.modules.items() if name.startswith(ROOM)}
    return {name: os.path.getsize(str(module.__file__)) for name, module in modules.items()}


def main() -> None:
    """Replay the pass, and print what it imported."""
    given = json.load(sys.stdin)
    host = host_of(json.loads(given["tape"]))
    from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog

    seen: list[tuple[str, dict[str, int]]] = []
    shipped = catalog.unit

    def unit(name: str) -> Any:
        seen.append((name, imported()))
        return shipped(name)

    catalog.unit = unit
    params = {**dict.fromkeys(OPTIONS), "units": given["units"], "max_disruption": "gpu", "fail_on": "failed"}
    result = section.report(section.converge_section(params, host, Records(host)), "failed")
    ends = [*(files for _name, files in seen[1:]), imported()]
    parts = [("", {}, seen[0][1]), *((name, before, after) for (name, before), after in zip(seen, ends))]
    weight: dict[str, dict[str, int]] = {}
    for name, before, after in parts:
        weight.setdefault(name, {}).update({file: size for file, size in after.items() if file not in before})
    told = {
        "files": weight,
        "changed": result["changed"],
        "unconverged": {
            unit["unit"]: unit.get("msg") or unit["pending"] for unit in result["units"] if unit["state"] != "converged"
        },
        "calls": host.calls,
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
