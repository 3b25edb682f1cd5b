# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that `import_weight` runs: it imports nothing of the project but what the pass imports, and FakeHost."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.seen import Answer, File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.section import converge_section, report
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
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
    host.unix = tape["time"]
    host.sites = {url: Answer(*answer) for url, answer in tape["sites"].items()}
    for path, methods in tape["servers"].items():
        host.servers[path] = lambda method, _message, known=methods: bytes.fromhex(known[method])  # type: ignore[misc]
    return host


def imported() -> dict[str, int]:
    """The project's files that are imported, with their bytes."""
    modules = {name[len(ROOM) :]: module for name, module in sys.modules.items() if name.startswith(ROOM)}
    return {name: os.path.getsize(str(module.__file__)) for name, module in modules.items()}


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """What the work returns, done by a process of its own, so that what it imports is gone again."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        try:
            with os.fdopen(write, "w") as out:
                json.dump(work(*given), out)
        except BaseException:  # noqa: BLE001 - whatever it is, this process ends here, and the other says that it did
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as source:
        told = source.read()
    os.wait()
    if not told:
        sys.exit("a pass ended with a fault of its own, see above")
    return json.loads(told)


def full() -> dict[str, int]:
    """The files that a turn imports, whichever unit's, which is not known to be quiet."""
    before = imported()
    import_module(f"{ROOM}core.runner")
    return {file: size for file, size in imported().items() if file not in before}


def alone(tape: dict[str, Any], turn: Any) -> dict[str, int]:
    """The files that one unit's turn imports beside those."""
    host = host_of(tape)
    full()
    before = imported()
    outcomes = take_turns([turn], catalog.unit, host, Records(host), "gpu")
    quiet = outcomes[turn.unit].state == "converged" and not host.calls
    assert quiet, (outcomes[turn.unit], host.calls)
    return {file: size for file, size in imported().items() if file not in before}


def whole(tape: dict[str, Any], units: dict[str, Any]) -> dict[str, Any]:
    """What the pass over the section says and imports."""
    host = host_of(tape)
    params = {**dict.fromkeys(OPTIONS), "units": units, "max_disruption": "gpu", "fail_on": "failed"}
    result = report(converge_section(params, host, Records(host)), "failed")
    states = {unit["unit"]: unit.get("msg") or unit["pending"] for unit in result["units"]}
    return {
        "changed": result["changed"],
        "unconverged": {unit: states[unit] for unit in result["unconverged"]},
        "calls": host.calls,
        "files": imported(),
    }


def again(tape: dict[str, Any], units: dict[str, Any], kept: str) -> dict[str, Any]:
    """What a pass imports that is opened as on a host and has what an earlier one kept; `kept` is what it leaves."""
    import_module(f"{ROOM}front.opening")
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Beside, Watched
    from ansible_collections.bettercompute.bcd.plugins.module_utils.front.recall import Recall

    host = host_of(tape)
    watched = Watched(host)
    watched.recall = Recall(watched, "c0de")
    if kept:
        host.files[watched.recall.path] = File(kept, 0o600)
    params = {**dict.fromkeys(OPTIONS), "units": units, "max_disruption": "gpu", "fail_on": "failed"}
    result = report(converge_section(params, watched, Records(Beside(host, watched))), "failed")
    return {"result": result, "kept": watched.recall.news() or kept, "files": imported(), "asked": host.asked}


def main() -> None:
    """Replay the pass, and print what it imported: all of it, and by each unit alone."""
    given = json.load(sys.stdin)
    tape, units = json.loads(given["tape"]), given["units"]
    turns = section.turns(units, ())
    told = apart(whole, tape, units)
    told["alone"] = {"": imported(), "a turn": apart(full), **{turn.unit: apart(alone, tape, turn) for turn in turns}}
    told["first"] = apart(again, tape, units, "")
    told["again"] = apart(again, tape, units, told["first"]["kept"])
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
