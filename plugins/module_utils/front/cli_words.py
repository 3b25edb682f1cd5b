# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of the program bcd, for people and scripts: what each takes, and what it does."""

from __future__ import annotations

import argparse
import sys
from typing import Any, NoReturn

from ..plan.installed import REQUEST
from ..plan.release import VERSION
from .cli import AGENT, Misused, complain, machine, say, say_json, status_of
from .exit_status import CONVERGED, FAILED, USAGE

DISRUPTIONS = ("none", "service", "gpu")
STATUSES = "exit status: 0 converged, 2 progressing, 1 failed, 64 called wrongly"


class Parser(argparse.ArgumentParser):
    """A parser that ends with this program's status where it is called wrongly."""

    def error(self, message: str) -> NoReturn:
        """Say how it is called, and end."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parser() -> Parser:
    """What can be said."""
    whole = Parser(prog="bcd", description="Keep this host as it is asked to be.", epilog=STATUSES, allow_abbrev=False)
    whole.add_argument("--version", action="version", version=f"bcd {VERSION}")
    words = whole.add_subparsers(metavar="WORD", required=True)
    plan = _word(words, "plan", "say what a pass would do, and change nothing", _pass)
    converge = _word(words, "converge", "bring this host to what is asked of it", _pass)
    for word, plans in ((plan, True), (converge, False)):
        _of_pass(word)
        word.set_defaults(plans=plans)
    _word(words, "status", "say how this host is: units, GPUs, holds", _told).set_defaults(word="status")
    _word(words, "doctor", "look for what is wrong or can go wrong", _told).set_defaults(word="doctor")
    install = _word(words, "install", "install this program on the host, from its own zip", _install)
    install.add_argument("--check", action="store_true", help="say what would change, and change nothing")
    for name, why in (
        ("helper", "serve accounts that are not root (systemd)"),
        (AGENT, "one pass of bcd-agent"),
        (REQUEST, "one pass that Ansible asks for"),
    ):
        _word(words, name, why, _service, as_json=False).set_defaults(word=name)
    return whole


def _word(words: Any, name: str, why: str, run: Any, as_json: bool = True) -> Parser:
    word: Parser = words.add_parser(name, help=why, description=why.capitalize() + ".", allow_abbrev=False)
    if as_json:
        word.add_argument("--json", action="store_true", help="print the result as JSON")
    word.set_defaults(run=run)
    return word


def _of_pass(word: Parser) -> None:
    word.epilog = f"Without a spec, what was asked of this host last. {STATUSES}"
    spec = word.add_mutually_exclusive_group()
    spec.add_argument(
        "--spec", metavar="FILE", help='JSON: {"host": {UNIT: SETTINGS}, "devices": [...]}; - reads stdin'
    )
    spec.add_argument("--signed-spec", metavar="FILE", help="the envelope of a signed spec, as JSON; - reads stdin")
    word.add_argument(
        "--only", metavar="UNIT", action="append", help="this unit alone, and no devices; commas or more than once"
    )
    word.add_argument("--max-disruption", choices=DISRUPTIONS, help="the most that a step may disturb")
    word.add_argument("--diff", action="store_true", help="show what differs in files")


def _pass(options: argparse.Namespace) -> int:
    from ..core.errors import Fault
    from .cli_pass import ended

    try:
        done = ended(options)
    except Fault as fault:  # of root's copy: there is no section that could say so
        if options.json:
            say_json({"host": None, "devices": None, "msg": fault.message})
        complain(fault.message)
        return FAILED
    if options.json:
        say_json(done.results())
    else:
        from .cli_report import told

        say(told(done.host, done.devices, options.plans, options.diff, done.why))
    return done.status()


def _told(options: argparse.Namespace) -> int:
    if options.word == "status":
        from .status import status_result as result
        from .status import status_text as text
    else:
        from .doctor import doctor_result as result
        from .doctor import doctor_text as text
    found = result()
    if options.json:
        say_json(found)
    else:
        say(text(found))
    return status_of(found)


def _service(options: argparse.Namespace) -> int:
    if options.word == "helper":
        from .helper_service import serve

        return serve()
    return machine(options.word)


def _install(options: argparse.Namespace) -> int:
    from .install import install_result

    archive = getattr(getattr(__spec__, "loader", None), "archive", "")
    if not archive:
        raise Misused(f"install is a word of the zip: python3 -I bcd-{VERSION}.pyz install")
    with open(archive, "rb") as source:
        result = install_result(source.read(), options.check)
    if options.json:
        say_json(result)
    elif "msg" in result:
        complain(result["msg"])
    else:
        done = ("would be installed" if options.check else "installed") if result["changed"] else "unchanged"
        say(f"bcd {VERSION}: {done} in {result['folder']}\n")
    return FAILED if "msg" in result else CONVERGED
