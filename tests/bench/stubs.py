# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a simulated host that answer at once what the simulator's stand-ins answered.

A stand-in is a Python that models a machine: its time is no part of ours, and would hide it. So a pass is recorded once
(`record` puts a recorder in place of each stand-in), and then each program is a few lines of shell that give the same
answer to the same words and standard input, and lay the same files (`replay`). Words that nobody asked before are a
fault, of the program and of the bench: `unknown`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.sim.standins import JOURNAL

FOLDER = "/var/lib/bench"
ASKED, CALLS, UNKNOWN = (f"{FOLDER}/{name}" for name in ("asked.jsonl", "calls", "unknown"))
PROGRAMS = "/usr/local/sbin"
# Where a question's own files lie, by a name that is new each time; as a pattern of the shell.
OWN_FOLDER, ANY_FOLDER = re.compile(r"bcd-ask-\w{8}"), "bcd-ask-????????"
BETWEEN, INPUT = "\x1f", "\x1e"  # between two words; before what came on standard input
RECORDER = """#!/.sim/python -IS
import io, json, os, sys

sys.path.insert(0, "/.sim/lib")
from tests.sim import standins

WATCHED = ("/proc", "/sys", "/etc", "/run", "/var/lib", "/boot")
OWN = ("/etc/sim", "/run/sim", "/var/lib/sim", "/var/lib/bench")


def files():
    found = {}
    for top in WATCHED:
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(OWN)]
            for path in (os.path.join(folder, name) for name in (*names, *folders)):
                seen = os.lstat(path)
                found[path] = (seen.st_ino, seen.st_mode, seen.st_size if path in names else 0, seen.st_mtime_ns)
                if os.path.isdir(path) and not os.path.islink(path):
                    found[path] = (seen.st_mode,)
    return found


def what(path):
    if os.path.islink(path):
        return {"link": os.readlink(path)}
    if os.path.isdir(path):
        return {"folder": os.stat(path).st_mode & 0o7777}
    with open(path, encoding="utf-8", errors="surrogateescape") as source:
        return {"text": source.read(), "mode": os.stat(path).st_mode & 0o7777}


name = os.path.basename(sys.argv[0])
given = "" if os.isatty(0) else sys.stdin.read()
sys.stdin = io.StringIO(given)
before = files()
rc, out, err = standins.play("/", name, sys.argv[1:])
os.unlink(standins.JOURNAL)  # what stands there was no recorder's
after = files()
changed = {path: what(path) for path in sorted(after) if before.get(path) != after[path]}
line = {"argv": [name, *sys.argv[1:]], "input": given, "rc": rc, "out": out, "err": err, "changed": changed,
        "gone": sorted(set(before) - set(after))}
os.makedirs("/var/lib/bench", exist_ok=True)
with open("/var/lib/bench/asked.jsonl", "a", encoding="utf-8", errors="surrogateescape") as log:
    log.write(json.dumps(line) + "\\n")
sys.stdout.write(out)
sys.stderr.write(err)
sys.stdout.flush()
sys.exit(rc)
"""
HEAD = """#!/bin/sh
echo $$ >/.sim/tools
IFS='{between}'
printf '%s\\n' "{name} $*" >>{calls}
"""


class Unanswered(Exception):
    """A program was asked what it was not recorded to be asked."""


class Answer(NamedTuple):
    """What a program did, once: its status, what it printed, files that it laid and took away."""

    rc: int
    out: str
    err: str
    changed: str = "{}"  # JSON, by path
    gone: tuple[str, ...] = ()


def record(tree: str) -> None:
    """Put a recorder in place of every stand-in of the tree."""
    for name in os.listdir(tree + PROGRAMS):
        path = Path(tree + PROGRAMS, name)
        if path.is_symlink() and os.readlink(path) == "/.sim/standin":
            path.unlink()
            path.write_text(RECORDER, encoding="utf-8")
            path.chmod(0o755)


def recorded(tree: str) -> list[dict[str, Any]]:
    """Every call of a recorder in the tree, in order."""
    path = Path(tree + ASKED)
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def answers(calls: Iterable[dict[str, Any]]) -> dict[str, dict[tuple[str, str], list[Answer]]]:
    """By program, by words and standard input: its answers in order, one where all were the same."""
    found: dict[str, dict[tuple[str, str], list[Answer]]] = {}
    for call in calls:
        name, *words = call["argv"]
        changed = json.dumps(call["changed"])
        answer = Answer(call["rc"], call["out"], call["err"], changed, tuple(call["gone"]))
        said = OWN_FOLDER.sub(ANY_FOLDER, BETWEEN.join(words))
        found.setdefault(name, {}).setdefault((said, call["input"].rstrip("\n")), []).append(answer)
    for by_words in found.values():
        for key, several in by_words.items():
            if len(set(several)) == 1:
                by_words[key] = several[:1]
    return found


def script(name: str, by_words: dict[tuple[str, str], list[Answer]], folder: Path) -> str:
    """The program in shell; files that its answers lay go below `folder`, which is FOLDER of the tree."""
    takes_input = any(given for _words, given in by_words)
    lines = [HEAD.format(between=BETWEEN, name=name, calls=CALLS)]
    lines.append('in=$(cat)\ncase "$*' + INPUT + '$in" in\n' if takes_input else 'case "$*" in\n')
    for (words, given), several in by_words.items():
        said = words + (INPUT + given if takes_input else "")
        lines.append(ANY_FOLDER.join(shlex.quote(part) for part in said.split(ANY_FOLDER)) + ")\n")
        if len(several) == 1:
            lines.append(_answer(several[0], folder) + ";;\n")
            continue
        counter = f"{FOLDER}/turn-{hashlib.sha256((name + INPUT + words + given).encode()).hexdigest()[:16]}"
        lines.append(f"n=0; [ -e {counter} ] && read n <{counter}; n=$((n+1)); echo $n >{counter}\ncase $n in\n")
        for turn, answer in enumerate(several, start=1):
            lines.append((f"{turn}" if turn < len(several) else "*") + f") {_answer(answer, folder)};;\n")
        lines.append("esac;;\n")
    lines.append(f'*) printf \'%s\\n\' "{name} $*" >>{UNKNOWN}; echo "bench: {name} was not asked this before" >&2; ')
    lines.append("exit 99;;\nesac\n")
    return "".join(lines)


def _answer(answer: Answer, folder: Path) -> str:
    """The commands that give it, in shell."""
    parts = []
    changed: dict[str, dict[str, Any]] = json.loads(answer.changed)
    if changed:
        name = hashlib.sha256(answer.changed.encode()).hexdigest()[:16]
        _lay(folder / name, changed)
        parts.append(f"cp -R {FOLDER}/{name}/. /")
    if answer.gone:
        parts.append("rm -rf -- " + shlex.join(answer.gone))
    parts += [f"printf %s {shlex.quote(answer.out)}"] if answer.out else []
    parts += [f"printf %s {shlex.quote(answer.err)} >&2"] if answer.err else []
    return "; ".join([*parts, f"exit {answer.rc}"])


def _lay(top: Path, changed: dict[str, dict[str, Any]]) -> None:
    """Files as they are to be copied over the host's."""
    for path, what in changed.items():
        place = top / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        if "link" in what:
            place.unlink(missing_ok=True)
            place.symlink_to(what["link"])
        elif "folder" in what:
            place.mkdir(exist_ok=True)
        else:
            place.write_text(what["text"], encoding="utf-8", errors="surrogateescape")
            place.chmod(what["mode"] | 0o200)


def replay(tree: str, calls: Iterable[dict[str, Any]], names: tuple[str, str] = ("", "")) -> None:
    """Put the answers of these calls in place of the tree's stand-ins; `names`: of the host then, of this one."""
    told = list(calls)
    if names[0] != names[1]:
        told = json.loads(json.dumps(told).replace(*names))
    by_program = answers(told)
    folder = Path(tree + FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    for name in os.listdir(tree + PROGRAMS):
        path = Path(tree + PROGRAMS, name)
        is_stand_in = path.is_symlink() and os.readlink(path) == "/.sim/standin"
        if is_stand_in or (path.is_file() and path.read_bytes().startswith(b"#!/.sim/python -IS\nimport io")):
            path.unlink()
            path.write_text(script(name, by_program.get(name, {}), folder), encoding="utf-8", errors="surrogateescape")
            path.chmod(0o755)
    begin(tree)


def begin(tree: str) -> None:
    """Forget what was asked so far: a new pass begins."""
    for path in (CALLS, UNKNOWN, ASKED, JOURNAL):
        Path(tree + path).unlink(missing_ok=True)
    for turn in Path(tree + FOLDER).glob("turn-*"):
        turn.unlink()


def asked(tree: str) -> list[str]:
    """What programs were asked since `begin`, a line each."""
    return _lines(tree + CALLS)


def judge(tree: str) -> None:
    """Raise Unanswered where a program had no answer, or a stand-in of the simulator's ran."""
    wrong = _lines(tree + UNKNOWN) + [f"the simulator's own stand-in: {line}" for line in _lines(tree + JOURNAL)]
    if wrong:
        shown = "; ".join(line.replace(BETWEEN, " ") for line in wrong[:5])
        raise Unanswered(f"{tree}: programs were asked what was not recorded: {shown}")


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="replace").splitlines() if os.path.exists(path) else []
