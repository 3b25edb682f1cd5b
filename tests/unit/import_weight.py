# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass imports of the project, by who needed it first: told by a fresh interpreter that replays the pass.

A pass over a host is recorded: the files that it may read, and every question with its answer. The interpreter that
replays it has only `FakeHost` beside the project, which imports no more than any pass does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import QUESTION_TIMEOUT
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask
from tests.unit.fake_host import FakeHost

TOP = Path(__file__).resolve().parents[2]


class Recorder:
    """Writes down what a host is asked, until `tape`."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.said: list[tuple[list[str], str, list[Any]]] = []
        self.sites: dict[str, list[Any]] = {}
        self.servers: dict[str, dict[str, str]] = {}
        ask, answer, get, unary = host.ask, host.answer, host.get, host.unary

        def asked(argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
            found = ask(argv, timeout, stdin)
            self.said.append(([*argv], stdin, [*found]))
            return found

        def answered(question: Ask) -> Answer:
            before = len(self.said)
            found = answer(question)
            self.said[before:] = [([*question.argv], "", [*found])]  # by its placeholders, as the replay is asked
            return found

        def got(url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
            found = get(url, timeout, ca, certificate)
            self.sites[url] = [*found]
            return found

        def called(path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
            found = unary(path, method, message, timeout)
            self.servers.setdefault(path, {})[method] = found.hex()
            return found

        host.ask, host.answer = asked, answered  # type: ignore[method-assign]
        host.get, host.unary = got, called  # type: ignore[method-assign]

    def tape(self) -> str:
        """Everything that a replay needs, as JSON."""
        host = self.host
        host.read("/")  # a host over a machine shows it as it is now
        return json.dumps(
            {
                "files": {path: [*file] for path, file in host.files.items()},
                "links": host.links,
                "programs": sorted(host.programs),
                "said": self.said,
                "sites": self.sites,
                "servers": self.servers,
                "time": host.time(),
            }
        )


def replayed(tape: str, units: dict[str, Any]) -> dict[str, Any]:
    """What the pass over a section weighs in a fresh interpreter.

    `first` and `again` are two passes that are opened as on a host, the second with what the first has kept.
    `files` has the bytes of each file of the project; `alone` those that one unit's turn imports beside what every pass
    does, which is under "", and than any turn does that is not known to be quiet, which is under "a turn". `changed`,
    `unconverged` (with why, by unit) and `calls` are the pass's, which should be quiet.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.import_weight_replay"],
        input=json.dumps({"tape": tape, "units": units}),
        capture_output=True,
        text=True,
        check=False,
        cwd=TOP,
        env={"PYTHONPATH": f"{TOP}:{TOP / '.build'}", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
