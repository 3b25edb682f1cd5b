# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of containerd's files that is taken back where the restarted daemon does not answer.

What the files held is recorded before they are written. The record goes when the daemon, restarted, answers, or runs
where it did not answer before either. Where it does not, the files are put back byte for byte, it is restarted with
them, and the record then names what was tried, so that this boot does not try it again. A pass that is killed leaves
the record, and the next one, of whichever unit, goes on from it. Imported only where a change is due or not through.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from ..core.plan import Past, Todo
from ..core.state import parse, render
from ..core.step import Effect, File, fail, remove, write
from . import systemd, systemd_asks
from .containerd_daemon import CALL
from .containerd_edits import Edit
from .containerd_seen import DEBT, RECORD, SERVICE, UNIT_FILE, Containerd

CHANGING, RESTORING, REFUSED = "changing", "restoring", "refused"
WITHOUT = "where containerd does not run now, put its former configuration back by hand"
RESTARTS = 300.0  # seconds, more than systemd gives a service to stop and to start
JOURNAL = ("journalctl", "--unit", UNIT_FILE, "--boot", "--lines=30", "--output=cat", "--no-pager")


class Change(NamedTuple):
    """The record: how far the change is, whose it is, a digest of what is tried, and the files as they were before.

    `by` is the unit that owes the restart, `was` what kept the daemon from answering before the change already (""
    where it answered), `why` what did after it, and `boot_id` the boot in which it did.
    """

    phase: str
    unit: str
    candidate: str
    by: str
    files: Mapping[str, File | None] = {}
    was: str = ""
    why: str = ""
    boot_id: str = ""


# -- the record


def parse_record(text: str) -> Change:
    """The record; raises StepFailed for one that is damaged or not of our version."""
    found = parse(RECORD, text, _is_whole, WITHOUT)
    files = {
        path: None if former is None else File(former["text"], former["mode"])
        for path, former in found["files"].items()
    }
    return Change(**{key: found[key] for key in Change._fields if key != "files"}, files=files)


def _is_whole(record: dict[str, Any]) -> bool:
    files = record.get("files")
    return (
        all(isinstance(record.get(key), str) for key in Change._fields if key != "files")
        and isinstance(files, dict)
        and all(former is None or _is_former(former) for former in files.values())
    )


def _is_former(former: Any) -> bool:
    return isinstance(former, dict) and isinstance(former.get("text"), str) and isinstance(former.get("mode"), int)


def render_record(change: Change) -> str:
    """The record as JSON."""
    files = {
        path: None if file is None else {"text": file.text, "mode": file.mode} for path, file in change.files.items()
    }
    return render({**change._asdict(), "files": files})


# -- a change


def carry_out(
    todo: Todo,
    unit: str,
    now: Containerd,
    edits: Sequence[Edit],
    candidate: tuple[str, str],
    past: Past,
    start: bool = False,
) -> bool:
    """Plan the edits and the restart; whether neither is due.

    `candidate`: config.toml and our drop-in as they are to be. `start`: a daemon that does not run is started too.
    """
    record = _open_record(now)
    foreign = record is not None and record.by != unit
    due = any(edit.read for edit in edits) or DEBT in past.owed or foreign
    restarts = due and (start or _ran(now, record, past))
    if restarts:
        tried = _digest(now, candidate)
        if _is_refused(now, tried, past):
            _fail(todo, unit, parse_record(now.record or ""), now)
            return False
        if _record(todo, unit, now, record, edits, tried) and now.daemon is None:
            return False  # what is said of it before anything is written, the next look tells
    for edit in edits:
        owes = (DEBT,) if edit.read else ()
        if edit.text is None:
            todo.add(remove(edit.path, edit.action, owes=owes))
        else:
            todo.add(write(edit.path, edit.text, edit.action, mode=edit.mode, owes=owes))
    if restarts:
        runs = now.daemon is None or now.daemon.active in systemd_asks.RUNS
        _restart(todo, f"restart {SERVICE}, which reads its configuration only then" if runs else f"start {SERVICE}")
    elif _refused_by(now, unit) and not edits:
        todo.add(remove(RECORD, f"remove {RECORD}: what it refuses is not wanted any more"))
    return not restarts and not edits


def _ran(now: Containerd, record: Change | None, past: Past) -> bool:
    """Whether it runs, or did when the change began, and was not stopped since."""
    if record is not None:
        return bool(now.daemon.active != "inactive")
    return past.ask(systemd_asks.asks_active(UNIT_FILE)).rc == 0


def _record(todo: Todo, unit: str, now: Containerd, record: Change | None, edits: Sequence[Edit], tried: str) -> bool:
    """Plan the record; whether there is one. What it has already was there before anything of this change, and stays.

    A restart that is owed alone has none: what was there before it is not known any more.
    """
    former = {edit.path: _seen(now, edit.path) for edit in edits if edit.read}
    if record is None and not former:
        return False
    files = {**former, **(record.files if record else {})}
    was = record.was if record else ""
    runs = now.daemon is not None and now.daemon.active in systemd_asks.RUNS
    if now.daemon is not None and runs and (record is None or _is_untouched(now, record)):
        was = now.daemon.silent
    change = Change(CHANGING, unit, tried, unit, files, was)
    if record is None or change != record:
        action = f"keep what {SERVICE} reads now in {RECORD}, until it answers with what comes"
        todo.add(write(RECORD, render_record(change), action, mode=0o600, owes=(DEBT,)))
    return True


def _is_untouched(now: Containerd, record: Change) -> bool:
    """Whether nothing of the change has been written."""
    return all(_is_as_before(now.former[path], former) for path, former in record.files.items())


def _is_as_before(seen: File | None, former: File | None) -> bool:
    if seen is None or former is None:
        return seen is former
    return (seen.text, seen.mode) == (former.text, former.mode)


def _seen(now: Containerd, path: str) -> File | None:
    if path == now.path:
        return now.ours
    return now.stale.get(path, now.config)


def _digest(now: Containerd, candidate: tuple[str, str]) -> str:
    """Of all that containerd is to read, so that what somebody corrects is tried."""
    read = [*candidate, *((one.path, one.text) for one in now.read)]
    return sha256(json.dumps(read).encode()).hexdigest()


def _restart(todo: Todo, action: str) -> None:
    """An exit status of 1 is no failure here: the next look sees whether the daemon answers."""
    step = systemd.control("restart", UNIT_FILE, action, pays=(DEBT,), barrier=True, effects=(Effect("answers", CALL),))
    todo.add(step._replace(ok=(0, 1), timeout=RESTARTS))


# -- what is left of one


def _open_record(now: Containerd) -> Change | None:
    """A change that is not through."""
    if now.record is None:
        return None
    found = parse_record(now.record)
    return None if found.phase == REFUSED else found


def _refused_by(now: Containerd, unit: str) -> bool:
    if now.record is None:
        return False
    found = parse_record(now.record)
    return (found.phase, found.unit) == (REFUSED, unit)


def _is_refused(now: Containerd, candidate: str, past: Past) -> bool:
    if now.record is None:
        return False
    found = parse_record(now.record)
    return (found.phase, found.candidate, found.boot_id) == (REFUSED, candidate, past.boot_id)


def go_on(todo: Todo, unit: str, now: Containerd, past: Past) -> bool:
    """Whether files may be planned: after a restart the daemon has to answer first, or is restored.

    A restart that is owed, or is another unit's, comes first: what runs may not have read the files. One that somebody
    stopped says nothing of them.
    """
    change = _open_record(now)
    if change is None:
        return True
    if change.phase == CHANGING:
        if DEBT in past.owed or change.by != unit or now.daemon.active == "inactive":
            return True
        if not now.daemon.silent or (change.was and now.daemon.active in systemd_asks.RUNS):
            todo.add(remove(RECORD, f"remove {RECORD}: {SERVICE} runs with the configuration that it has now"))
            return True
        change = change._replace(phase=RESTORING, why=_why(now, past))
    _restore(todo, unit, now, change._replace(by=unit), past)
    return False


def _restore(todo: Todo, unit: str, now: Containerd, change: Change, past: Past) -> None:
    """The former files, the restart with them, and then what was refused."""
    due = DEBT in past.owed
    if change != parse_record(now.record or ""):
        action = f"note in {RECORD} that {SERVICE} does not answer, and that its former files come back"
        todo.add(write(RECORD, render_record(change), action, mode=0o600, owes=(DEBT,)))
        due = True
    for path, former in change.files.items():
        seen = now.former[path]
        if former is None and seen is not None:
            todo.add(remove(path, f"remove {path}, with which {SERVICE} does not answer", owes=(DEBT,)))
        elif former is not None and not _is_as_before(seen, former):
            action = f"write {path} as it was before, since {SERVICE} does not answer"
            todo.add(write(path, former.text, action, mode=former.mode, owes=(DEBT,)))
        else:
            continue
        due = True
    if due:
        _restart(todo, f"restart {SERVICE} with its former files")
    refused = Change(REFUSED, change.unit, change.candidate, unit, why=change.why, boot_id=past.boot_id)
    action = f"note in {RECORD} what {SERVICE} does not answer with, which this boot does not try again"
    todo.add(write(RECORD, render_record(refused), action, mode=0o600))
    _fail(todo, unit, refused, now)


def _fail(todo: Todo, unit: str, change: Change, now: Containerd) -> None:
    """Say what was tried and came to nothing."""
    still = now.daemon.silent if now.daemon is not None else ""
    state = f"are back, and it does not answer with them either ({still})" if still else "are back"
    action = f"configure {SERVICE}"
    message = (
        f"{unit}: {SERVICE} did not answer with the configuration that {change.unit} made for it ({change.why}): its "
        f"former files {state}: see journalctl -u {SERVICE} for what it says, correct that, and run again; the same "
        "files are tried again after a reboot only"
    )
    todo.add(fail(action, message, retryable=False))


def _why(now: Containerd, past: Past) -> str:
    """What the daemon last said of itself, behind what it came to."""
    said = past.ask(JOURNAL).out.splitlines()
    faults = [line for line in said if "level=fatal" in line or "level=error" in line or line.startswith("containerd:")]
    last = " ".join((faults or said or [""])[-1].split())[-300:]
    return f"{now.daemon.silent}{'; ' if last else ''}{last}"
