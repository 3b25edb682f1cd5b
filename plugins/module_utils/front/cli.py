# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program bcd: what its words mean, and with which status it ends.

0: converged, or nothing found; 1: failed, or a failure found; 2: progressing, or a warning found; 64: it was called
wrongly, and nothing was done.
"""

from __future__ import annotations

import gc
import os
import sys

from ..plan.installed import REQUEST
from .exit_status import CONVERGED, FAILED, INTERRUPTED, PROGRESSING, USAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

AGENT = "agent"
UNSWEPT = 50_000  # objects that are made before Python looks for cycles: more than in a pass that finds nothing to do


class Misused(Exception):
    """The program was called in a way that it does not take, with a sentence that says why."""


class Unsaid(Exception):
    """What was to be printed could not be, with a sentence that says why."""


def run(argv: Sequence[str]) -> int:
    """As main, which ends the process after a word of the machine.

    All is written and closed then, and to take Python down in order costs a tenth of a pass that finds nothing to do.
    """
    status = main(argv)
    if _is_machines(argv):
        os._exit(status)
    return status


def main(argv: Sequence[str]) -> int:
    """Do what the words say; the exit status. All that was said is on its way."""
    for stream in (sys.stdout, sys.stderr):  # in any locale; a stream that is closed is None
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _done(argv)
        say("")  # what argparse printed is on its way too
    except Unsaid as fault:
        complain(str(fault))
        status = FAILED
    put(sys.stderr, "")
    return status


def _done(argv: Sequence[str]) -> int:
    try:
        if _is_machines(argv):
            return machine(argv[0])
        from .cli_words import parser

        options = parser().parse_args(argv)
        status: int = options.run(options)
        return status
    except SystemExit as end:  # of argparse
        return end.code if isinstance(end.code, int) else CONVERGED
    except Misused as fault:
        complain(str(fault))
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _is_machines(argv: Sequence[str]) -> bool:
    return [*argv] in ([AGENT], [REQUEST])


def machine(word: str) -> int:
    """A word that systemd or Ansible says, many times a day: before all that only people need is imported."""
    gc.set_threshold(UNSWEPT)
    if word == AGENT:
        from .agent import run

        return run()
    from .for_controller import run as answered

    return answered()


def status_of(result: dict[str, Any]) -> int:
    """The exit status of a result by its `state` and whether it failed (it has `msg` then)."""
    state = str(result.get("state", "")).lower()
    if "msg" in result or state in ("failed", "failure"):
        return FAILED
    return PROGRESSING if state in ("progressing", "warning", "unknown") else CONVERGED


# -- what is said


def say(text: str) -> None:
    """Print text; a reader that has gone is no fault of ours. Raises Unsaid for any other."""
    fault = put(sys.stdout, text)
    if fault is not None and not isinstance(fault, BrokenPipeError):
        raise Unsaid(f"what there is to say cannot be written ({fault.strerror}): see where the output goes")


def put(stream: Any, text: str) -> OSError | None:
    """Write all that a stream has and this text, and say what went wrong; from then on it goes nowhere."""
    if stream is None:
        return None
    try:
        stream.write(text)
        stream.flush()
    except OSError as fault:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # Python would say so once more at the end
        return fault
    return None


def say_json(value: Any) -> None:
    """Print a result as JSON, in ASCII."""
    import json

    from .result import valid

    say(json.dumps(valid(value), indent=1) + "\n")


def complain(text: str) -> None:
    """One line of what went wrong."""
    from ..plan.plain_text import plain_lines

    put(sys.stderr, f"bcd: {plain_lines(text)}\n")
