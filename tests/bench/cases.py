# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured: each case is a play over so many hosts of a kind, or a command on one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from tests.bench import work
from tests.bench.stage import restore
from tests.sim.machine import put, read

MANY, SOME = 50, 8
SELDOM, SOMETIMES = 1, 3  # rounds of a case that takes two minutes, and of one that takes ten seconds
CONVERGE = "bettercompute.bcd.converge"
CONVERGED = "host CONVERGED\n"  # of the agent


class Case(NamedTuple):
    """One case. `changes`: how many tasks of each host say changed; `rounds`: in how many it is run, 0 for all."""

    name: str
    kind: str
    hosts: int
    play: str = ""  # of plays.Plays, or a playbook of the collection
    command: str = ""  # in shell, on one host, in place of a play
    empty: str = ""  # the case without any work that this one stands over
    words: tuple[str, ...] = ()
    changes: int = 0
    reset: Callable[[str], None] | None = None  # brings a tree back to where each run begins
    peers: bool = False
    says: str = ""  # what a command prints, among other things
    rounds: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether its runs are alike only once hosts have kept what its quiet turns ask."""
        return self.reset is None and (self.play == CONVERGE or bool(self.says))


def swappiness(tree: str) -> None:
    """Let one kernel parameter of the section differ, the drift of one unit of all."""
    key, before = drift(tree)
    put(tree, key, before + "\n")


def drift(tree: str) -> tuple[str, str]:
    """A parameter's file in this tree, whose wanted value our own file has, and another value as long."""
    text = read(tree, "/etc/sysctl.d/90-bcd.conf") or ""
    for line in text.splitlines():
        name, equals, value = (part.strip() for part in line.partition("="))
        if equals and re.fullmatch(r"[0-9]+", value):
            other = ("1" if value[0] != "1" else "2") + value[1:]
            return "/proc/sys/" + name.lstrip("-").replace(".", "/"), other
    raise RuntimeError(f"{tree} has no parameter of ours with a number for its value")


def cases(python: str, many: int = MANY) -> tuple[Case, ...]:
    """All cases; `python` is that of the hosts, `many` how many hosts the largest have."""
    tasks = ("--extra-vars", json.dumps({"bcd_converge_mode": "tasks"}))
    module = ("--extra-vars", json.dumps({"bcd_program_pass": False}))
    empty, one = f"empty over {many} hosts", "empty over 1 host"
    return (
        Case(empty, "whole", many, "empty"),
        Case(f"trivial module over {many} hosts", "whole", many, "trivial", empty=empty),
        Case(f"role over {many} hosts", "whole", many, CONVERGE, empty=empty),
        Case(f"a task a unit over {many} hosts", "whole", many, "units", empty=empty, words=module, rounds=SELDOM),
        Case(f"a task a unit by the program over {many} hosts", "whole", many, "units", empty=empty, rounds=SELDOM),
        Case("empty over 8 hosts", "whole", SOME, "empty"),
        Case("role as a module over 8 hosts", "whole", SOME, CONVERGE, empty="empty over 8 hosts", words=module),
        Case("ping over 8 hosts", "program", SOME, "ping", empty="empty over 8 hosts"),
        Case("role through the program over 8 hosts", "program", SOME, CONVERGE, empty="empty over 8 hosts"),
        Case("empty over 1 host", "ours", 1, "empty"),
        Case("30 sysctls", "ours", 1, "sysctls", empty=one),
        Case("30 sysctls as a section", "parameters", 1, CONVERGE, empty=one),
        Case("30 sysctls by ansible.posix", "theirs", 1, "peer_sysctls", empty=one, peers=True, rounds=SOMETIMES),
        Case("the work", "ours", 1, CONVERGE, empty=one),
        Case("the work by peers", "theirs", 1, "peer_work", empty=one, peers=True, rounds=SOMETIMES),
        Case("a boot argument", "argument", 1, CONVERGE, empty=one),
        Case("a boot argument by peers", "theirs", 1, "peer_argument", empty=one, peers=True),
        Case("the work at first", "first", 1, CONVERGE, empty=one, changes=1, reset=restore),
        Case(
            "the work at first by peers",
            "first-theirs",
            1,
            "peer_work",
            empty=one,
            changes=work.CHANGES,
            reset=restore,
            peers=True,
            rounds=SOMETIMES,
        ),
        Case("role over 1 host", "whole", 1, CONVERGE, empty=one),
        Case(
            "one unit differs in single mode",
            "drift",
            1,
            CONVERGE,
            empty=one,
            changes=1,
            reset=swappiness,
        ),
        Case(
            "one unit differs in tasks mode",
            "drift",
            1,
            CONVERGE,
            empty=one,
            words=tasks,
            changes=1,
            reset=swappiness,
        ),
        Case("enter a host", "program", 1, command=":"),
        Case("python3 -c pass", "program", 1, command=f"exec {python} -c pass", empty="enter a host"),
        Case(
            "agent's idle pass",
            "program",
            1,
            command="exec /usr/local/sbin/bcd agent",
            empty="enter a host",
            says=CONVERGED,
        ),
    )


RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)


def recap(out: str) -> dict[str, dict[str, int]]:
    """What ansible-playbook says of each host in the end."""
    keys = ("ok", "changed", "unreachable", "failed")
    return {found[0]: dict(zip(keys, map(int, found[1:]))) for found in RECAP.findall(out)}


def wrong(case: Case, out: str, hosts: int) -> str:
    """Why a run is none of this case, by what it printed; empty where it is one."""
    if case.says not in out:
        return f"it did not say {case.says.strip()!r}"
    if case.command or case.play == "empty":
        return ""
    seen = recap(out)
    if len(seen) != hosts:
        return f"{len(seen)} hosts of {hosts} are in the recap"
    for host, counts in seen.items():
        if counts["failed"] or counts["unreachable"] or not counts["ok"]:
            return f"{host}: {counts}"
        if counts["changed"] != case.changes:
            return f"{host}: {counts['changed']} tasks changed something, and {case.changes} were to"
    return ""


def pick(all_cases: tuple[Case, ...], wanted: str) -> tuple[Case, ...]:
    """The cases whose names have one of the words, separated by commas, and the empty ones that they stand over."""
    if not wanted:
        return all_cases
    words = [word.strip() for word in wanted.split(",") if word.strip()]
    chosen = {case.name for case in all_cases if any(word in case.name for word in words)}
    chosen |= {case.empty for case in all_cases if case.name in chosen and case.empty}
    return tuple(case for case in all_cases if case.name in chosen)
