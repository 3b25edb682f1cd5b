# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a turn is known again and when not, over units that branch on what they are told; the file of what is kept."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from hypothesis import given as drawn
from hypothesis import settings as effort
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import rootfs
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Fault, Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Field, Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.secret import Given, Secret
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.seen import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.state import STATE
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import remove, write
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Beside, Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import recall as recalling
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import recall_file
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.recall import Recall
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.some_turns import take_some
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import NOTHING, take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.moment import days_until
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.section import Turn
from tests.unit.core.jail import in_jail
from tests.unit.fake_host import FakeHost, Killed

CODE = "c0de"
PATH = f"{recalling.FOLDER}/{CODE}.json"
FILES = ("/etc/a", "/etc/b", "/etc/c", "/etc/d")
GOAL = "/etc/goal"
SOON = 1_800_000_100


class Pass(NamedTuple):
    """What a pass came to: the outcomes, and whose turns were made in full."""

    outcomes: dict[str, Outcome]
    made: list[str]

    @property
    def plain(self) -> Any:
        """The outcomes as results show them."""
        return json.loads(json.dumps(self.outcomes))


Look = Callable[[Host, Any, Past], Any]
Planner = Callable[[Any, Any, Past], Plan]


def unit(name: str, look: Look, plan: Planner) -> Unit:
    return Unit(name, (Field("want", "want", (str,)),), dict, look, plan, lambda now, past: plan(None, now, past))


def go(
    host: FakeHost,
    units: Mapping[str, Unit],
    *,
    settings: Any = None,
    code: str = CODE,
    predicted: bool = False,
    given: Given = NOTHING,
    turns: list[Turn] | None = None,
    only: tuple[str, ...] | None = None,
) -> Pass:
    """A pass over the units, each to have these settings, that knows again what it can and keeps what it learns."""
    made: list[str] = []

    def catalog(name: str) -> Unit:
        made.append(name)
        return units[name]

    watched = Watched(host)
    watched.recall = Recall(watched, code) if code else None
    over: Host = PredictedHost(watched) if predicted else watched
    records = Records(over if predicted else Beside(host, watched))
    asked = turns or [Turn(name, settings or {"want": "it"}) for name in units]
    if only is None:
        outcomes = take_turns(asked, catalog, over, records, "gpu", given)
    else:
        outcomes = take_some(asked, only, catalog, over, records, "gpu", given)
    if code and not predicted:
        text = watched.recall.news()
        if text:
            host.files[f"{recalling.FOLDER}/{code}.json"] = File(text, 0o600)
    return Pass(outcomes, made)


def reads(*paths: str, steps: bool = True) -> Unit:
    """Keeps the goal at what the files say, and tells what they say."""

    def look(host: Host, _settings: Any, _past: Past) -> list[str | None]:
        return [host.read(path) for path in (*paths, GOAL)]

    def plan(settings: Any, now: list[str | None], _past: Past) -> Plan:
        todo = Todo()
        want = f"{now[:-1]} {(settings or {}).get('want')}\n"
        if settings is None:
            todo.add(*([] if now[-1] is None else [remove(GOAL, "remove it")]))
        elif now[-1] != want and steps:
            todo.add(write(GOAL, want, "write it"))
        todo.note(f"the files say {now[:-1]}")
        todo.found("said", tuple(now))
        return todo.plan()

    return unit("sysctl", look, plan)


def settled(host: FakeHost, units: Mapping[str, Unit], **more: Any) -> Pass:
    """The second pass over a host, which is quiet and kept."""
    go(host, units, **more)
    found = go(host, units, **more)
    assert not any(outcome.changed for outcome in found.outcomes.values())
    return found


def test_a_quiet_turn_is_known_again_and_one_that_differs_is_made() -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a", "/etc/b")}
    quiet = settled(host, units)
    assert quiet.made == ["sysctl"]
    again = go(host, units)
    assert (again.made, again.plain) == ([], quiet.plain)
    host.put("/etc/b", "2")
    assert go(host, units).outcomes["sysctl"].changed
    assert go(host, units).made == ["sysctl"]
    assert go(host, units).made == []


def test_what_differs_later_ends_the_questions_there() -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a", "/etc/b")}
    settled(host, units)
    host.put("/etc/a", "2")
    seen: list[str] = []
    watched = Watched(host)
    watched.recall = Recall(watched, CODE)
    read = host.read

    def noted(path: str) -> str | None:
        seen.append(path)
        return read(path)

    host.read = noted  # type: ignore[method-assign]
    assert watched.recall._outcome("sysctl", watched.recall._units()["sysctl"]["key"], watched) is None
    assert [path for path in seen if path.startswith("/etc/")] == ["/etc/a"]


KEYS: dict[str, dict[str, Any]] = {
    "settings": {"settings": {"want": "else"}},
    "node": {"given": Given({}, "node-7", "")},
    "site": {"given": Given({}, "", "fra")},
    "code": {"code": "0ther"},
    "no code": {"code": ""},
    "a secret": {"given": Given({"ref": Secret("a-secret-value")})},
}


@pytest.mark.parametrize("what", KEYS)
def test_what_a_turn_is_given_is_part_of_it(what: str) -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    settled(host, units)
    assert go(host, units).made == []
    assert go(host, units, **KEYS[what]).made == ["sysctl"]


def test_the_order_and_the_types_of_settings_are_part_of_them() -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    for settings in (
        {"want": "it", "n": 1},
        {"n": 1, "want": "it"},
        {"n": True, "want": "it"},
        {"n": "1", "want": "it"},
    ):
        assert go(host, units, settings=settings).made == ["sysctl"]
        settled(host, units, settings=settings)
        assert go(host, units, settings=settings).made == []


def test_the_boot_the_user_the_python_and_what_else_is_applied_are_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    settled(host, units)
    host.reboot()
    assert go(host, units).made == ["sysctl"]
    assert go(host, units).made == []
    records = Records(host)
    records.apply("cpu", {"governor": "performance"})
    assert go(host, units).made == ["sysctl"]
    assert go(host, units).made == []
    records.tried("sysctl", "a name", "what it said")
    assert go(host, units).made == ["sysctl"]
    assert go(host, units).made == []
    monkeypatch.setattr(sys, "version", "4.0")
    assert go(host, units).made == ["sysctl"]
    assert go(host, units).made == []
    host.user = 1000
    assert go(host, units, predicted=True).made == ["sysctl"]


def test_records_say_after_a_known_turn_what_they_say_after_a_made_one() -> None:
    """Of a pass that died before it wrote them, or that was asked with other options."""
    for name in ("applied", "asked", "reboot", "owed"):
        hosts = [FakeHost({"/etc/a": "1"}), FakeHost({"/etc/a": "1"})]
        units = {"sysctl": reads("/etc/a")}
        for host, code in zip(hosts, (CODE, "")):
            settled(host, units, code=code)
            if name == "owed":
                Records(host).owe("cpu", ("restart it",))
            else:
                host.files.pop(f"{STATE}/{name}.json", None)
            go(host, units, code=code)
            go(host, units, code=code)
        assert kept_in(hosts[0]) == kept_in(hosts[1]), name


def kept_in(host: FakeHost) -> dict[str, Any]:
    """The records."""
    return {path: json.loads(file.text) for path, file in host.files.items() if path.startswith(STATE)}


def waits(reason: str) -> Unit:
    def plan(settings: Any, now: Any, _past: Past) -> Plan:
        todo = Todo()
        todo.wait(reason, f"{now}: reboot the node")
        todo.condition("ItWaits", reason, "it waits")
        todo.found("is", {"now": [now]})
        return todo.plan()

    return unit("cpu", lambda host, _settings, _past: host.read("/etc/a"), plan)


def test_what_waits_for_a_reboot_alone_is_known_again_with_its_message_and_record() -> None:
    host = FakeHost({"/etc/a": "1"})
    units = {"cpu": waits("RebootRequired")}
    quiet = settled(host, units)
    host.files.pop(f"{STATE}/reboot.json")
    again = go(host, units)
    assert (again.made, again.plain) == ([], quiet.plain)
    assert again.outcomes["cpu"].state == "progressing"
    assert Records(host).reboot_reasons() == {"cpu": "1: reboot the node"}
    host.put("/etc/a", "2")
    assert go(host, units).outcomes["cpu"].pending[0].message == "2: reboot the node"


@pytest.mark.parametrize("reason", ["NotReady", "Busy", "HeldBack"])
def test_what_waits_for_anything_else_is_made_each_time(reason: str) -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"cpu": waits(reason)}
    settled(host, units)
    assert go(host, units).made == ["cpu"]
    assert PATH not in host.files


def fails(fault: Exception) -> Unit:
    def plan(_settings: Any, _now: Any, _past: Past) -> Plan:
        raise fault

    return unit("cpu", lambda host, _settings, _past: host.read("/etc/a"), plan)


@pytest.mark.parametrize("fault", [StepFailed("x"), Refused("x"), ValueError("x"), OSError(5, "x")])
def test_what_fails_is_made_each_time(fault: Exception) -> None:
    host, units = FakeHost(), {"cpu": fails(fault)}
    for _pass in range(3):
        assert go(host, units).made == ["cpu"]
    assert PATH not in host.files


def test_what_is_found_that_no_json_holds_is_made_each_time() -> None:
    for value in ({1: "x"}, frozenset(("x",)), b"x", [object]):
        host = FakeHost()
        units = {"cpu": unit("cpu", lambda *_given: None, lambda *_given, it=value: Plan(found={"it": it}))}
        settled(host, units)
        assert go(host, units).made == ["cpu"]


def test_a_unit_that_leaves_is_known_again_while_it_is_named() -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    leaving = [Turn("sysctl", leaves=True)]
    settled(host, units)
    assert go(host, units, turns=leaving).outcomes["sysctl"].changed
    quiet = go(host, units, turns=leaving)
    again = go(host, units, turns=leaving)
    assert (quiet.made, again.made, again.plain) == (["sysctl"], [], quiet.plain)


def test_a_refused_turn_and_a_name_without_a_unit_are_never_known() -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    settled(host, units)
    refused = go(host, units, turns=[Turn("sysctl", Refused("no"))]).outcomes["sysctl"]
    assert refused.failure is not None
    assert refused.failure.message == "no"


def test_a_sight_alone_decides_though_the_clock_runs() -> None:
    host = FakeHost()
    units = {
        "cpu": unit(
            "cpu",
            lambda host, _settings, _past: host.sight(days_until, SOON, 0) < 0,
            lambda _settings, now, _past: Plan(notes=(f"passed: {now}",)),
        )
    }
    settled(host, units)
    host.unix = SOON - 1
    assert go(host, units).made == []
    host.unix = SOON
    assert go(host, units).outcomes["cpu"].notes == ("passed: True",)


def test_check_mode_knows_again_and_writes_nothing() -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    planned = go(host, units, predicted=True)
    assert PATH not in host.files
    assert planned.outcomes["sysctl"].changed
    quiet = settled(host, units)
    before = dict(host.files)
    again = go(host, units, predicted=True)
    assert (again.made, again.plain, host.files) == ([], quiet.plain, before)
    host.put("/etc/a", "2")
    told = go(host, units, predicted=True)
    assert ([step.action for step in told.outcomes["sysctl"].steps], told.made) == (["write it"], ["sysctl"])


def test_check_mode_sees_what_an_earlier_unit_would_change() -> None:
    host = FakeHost({"/etc/a": "1"})
    first = unit(
        "kernel-modules",
        lambda host, _settings, _past: (host.read("/etc/z"), host.read("/etc/a")),
        lambda settings, now, _past: Plan(
            (write("/etc/a", now[0], "copy it"),) if now[0] not in (None, now[1]) else ()
        ),
    )
    units = {"kernel-modules": first, "sysctl": reads("/etc/a")}
    settled(host, units)
    host.put("/etc/z", "2")
    told = go(host, units, predicted=True)
    assert told.made[:2] == ["kernel-modules", "sysctl"]
    assert all(outcome.changed for outcome in told.outcomes.values())
    assert not go(host, units, predicted=True, turns=[Turn("sysctl", {"want": "it"})]).made


def test_only_some_units_leaves_the_others_planned_and_known() -> None:
    host = FakeHost({"/etc/a": "1"})
    units = {"sysctl": reads("/etc/a"), "cpu": waits("RebootRequired")}
    settled(host, units)
    want = go(host, units, code="", only=("sysctl",))
    records = kept_in(host)
    found = go(host, units, only=("sysctl",))
    assert (found.made, found.plain, kept_in(host)) == ([], want.plain, records)


def test_a_pass_that_is_killed_at_any_change_is_followed_by_a_right_one() -> None:
    units = {"sysctl": reads("/etc/a", "/etc/b"), "cpu": waits("RebootRequired")}
    for at in range(1, 30):
        host, plain = FakeHost({"/etc/a": "1"}), FakeHost({"/etc/a": "1"})
        settled(host, units)
        settled(plain, units, code="")
        for one in (host, plain):
            one.put("/etc/a", "2")
        host.kill_at = len(host.calls) + at
        try:
            go(host, units)
            done = True
        except Killed:
            done = False
        host.kill_at = 0
        go(plain, units, code="")
        after, want = go(host, units), go(plain, units, code="")
        assert (host.text(GOAL), kept_in(host)) == (plain.text(GOAL), kept_in(plain))
        if done:
            assert after.plain == want.plain
            break
    else:
        pytest.fail("the pass never came to its end")


# -- any unit, and anything that befalls the host


class Walk(NamedTuple):
    """A look that goes from question to question by what it was answered."""

    questions: tuple[tuple[str, str], ...]
    modulus: int

    def look(self, host: Host, _settings: Any, _past: Past) -> list[str]:
        said, at = [], 0
        for _step in self.questions:
            kind, path = self.questions[at % len(self.questions)]
            try:
                found = repr(getattr(host, kind)(path))
            except Fault as fault:
                found = fault.message
            at += 1 + crc32(found.encode()) % 3
            said.append(f"{path}: {crc32(found.encode()) % self.modulus}")
        return said

    def plan(self, settings: Any, now: list[str], _past: Past) -> Plan:
        todo = Todo()
        todo.note(*now)
        total = crc32(repr(now).encode())
        if total % 3 == 0:
            todo.wait("RebootRequired", f"{now[-1]}: reboot the node")
        if settings is not None and total % 5 == 0:
            todo.add(write(FILES[total % len(FILES)], f"{total % 7}\n", "write one"))
        return todo.plan()


KINDS = st.sampled_from(("read", "file", "names", "exists", "link", "stamp"))
QUESTIONS = st.lists(st.tuples(KINDS, st.sampled_from((*FILES, "/etc"))), min_size=1, max_size=6)
WALKS = st.builds(Walk, QUESTIONS.map(tuple), st.integers(1, 4))
BEFALLS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(FILES), st.sampled_from(("1\n", "2\n", "3\n"))),
    st.tuples(st.just("drop"), st.sampled_from(FILES), st.just("")),
    st.tuples(st.just("deny"), st.sampled_from(FILES), st.just("")),
    st.tuples(st.just("boot"), st.just(""), st.sampled_from(("second", "third"))),
    st.tuples(st.just("nothing"), st.just(""), st.just("")),
)


def befall(host: FakeHost, kind: str, path: str, text: str) -> None:
    if kind == "put":
        host.put(path, text)
    elif kind == "drop":
        host.files.pop(path, None)
    elif kind == "deny":
        host.unreadable ^= {path}
    elif kind == "boot":
        host.reboot(text)


@effort(max_examples=150, deadline=None)
@drawn(walks=st.lists(WALKS, min_size=1, max_size=3), events=st.lists(BEFALLS, max_size=10), check=st.booleans())
def test_whatever_befalls_a_host_passes_come_to_what_they_come_to_without(
    walks: list[Walk], events: list[tuple[str, str, str]], check: bool
) -> None:
    names = ("kernel-modules", "sysctl", "cpu")
    units = {name: unit(name, walk.look, walk.plan) for name, walk in zip(names, walks)}
    host, plain = FakeHost(dict.fromkeys(FILES, "1\n")), FakeHost(dict.fromkeys(FILES, "1\n"))
    for event in (("nothing", "", ""), ("nothing", "", ""), *events):
        for one in (host, plain):
            befall(one, *event)
        if check:
            assert go(host, units, predicted=True).plain == go(plain, units, code="", predicted=True).plain
        assert go(host, units).plain == go(plain, units, code="").plain
        assert kept_in(host) == kept_in(plain)
        assert {path: host.text(path) for path in FILES} == {path: plain.text(path) for path in FILES}


# -- the file


DAMAGED: dict[str, Callable[[str], str]] = {
    "empty": lambda _text: "",
    "half": lambda text: text[: len(text) // 2],
    "no object": lambda _text: "[]",
    "null": lambda _text: "null",
    "another version": lambda text: text.replace('"version": 1', '"version": 2'),
    "no units": lambda _text: '{"version": 1}',
    "units no object": lambda _text: '{"version": 1, "units": [1]}',
    "a unit no object": lambda _text: '{"version": 1, "units": {"sysctl": 3}}',
    "a unit without its parts": lambda text: text.replace('"asked"', '"else"'),
    "questions no list": lambda text: changed(text, asked=7),
    "a question no list": lambda text: changed(text, asked=[7]),
    "a question of nothing": lambda text: changed(text, asked=[[]]),
    "no question": lambda text: changed(text, asked=[["00", "write", "/etc/a", "x", 420]]),
    "a sight that is none": lambda text: changed(text, asked=[["00", "sight", "os", "system", '["touch /etc/a"]']]),
    "a sight that is not there": lambda text: changed(text, asked=[["00", "sight", "look.moment", "gone", "[]"]]),
    "a sight with other words": lambda text: changed(text, asked=[["00", "sight", "look.moment", "days_until", "["]]),
    "an answer of nothing": lambda text: changed(text, asked=[["", "read", "/etc/a"]]),
    "conditions of two": lambda text: changed(text, conditions=[[1, 2]]),
    "too deep": lambda _text: "[" * 100_000,
    "too large": lambda text: text + " " * (recalling.LARGEST + 1),
}


def changed(text: str, **parts: Any) -> str:
    found = json.loads(text)
    found["units"]["sysctl"].update(parts)
    return json.dumps(found)


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_as_none_and_is_replaced(damage: str) -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    quiet = settled(host, units)
    calls = len(host.calls)
    good = host.files[PATH]
    host.files[PATH] = good._replace(text=DAMAGED[damage](good.text))
    again = go(host, units)
    assert (again.made, again.plain, host.calls[calls:]) == (["sysctl"], quiet.plain, [])
    assert host.files[PATH] == good
    assert go(host, units).made == []


@pytest.mark.parametrize(
    "seen",
    [{"uid": 1000}, {"mode": 0o620}, {"mode": 0o602}, {"regular": False}],
    ids=["uid", "group", "others", "link"],
)
def test_a_file_that_another_could_write_is_as_none(seen: dict[str, Any]) -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    settled(host, units)
    host.files[PATH] = host.files[PATH]._replace(**seen)
    assert go(host, units).made == ["sysctl"]


@pytest.mark.parametrize("folder", ["/run", "/run/bcd-hostconfig", recalling.FOLDER])
def test_a_file_in_a_directory_that_another_could_write_is_as_none(folder: str) -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    settled(host, units)
    host.files[folder] = File("", 0o777, 0, regular=False)
    assert go(host, units).made == ["sysctl"]


def test_an_account_that_is_not_root_reads_none_of_it() -> None:
    host, units = FakeHost({"/etc/a": "1"}), {"sysctl": reads("/etc/a")}
    settled(host, units)
    host.unreadable.add(PATH)
    assert go(host, units, predicted=True).made == ["sysctl"]
    host.user = 1000
    assert go(host, units, predicted=True).made == ["sysctl"]


def test_nothing_that_the_host_answers_is_kept() -> None:
    host, units = (
        FakeHost({"/etc/a": "what the file holds"}),
        {"sysctl": unit("sysctl", _looks, lambda *_given: Plan())},
    )
    settled(host, units)
    text = host.files[PATH].text
    assert "/etc/a" in text
    assert "what the file holds" not in text
    assert "it" not in json.loads(text)["units"]["sysctl"]["key"]


def _looks(host: Host, _settings: Any, _past: Past) -> Any:
    return host.file("/etc/a"), host.read("/etc/a")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "run").mkdir(parents=True, mode=0o755)
    for folder in (root, root / "run"):
        folder.chmod(0o755)
    return root


def test_the_file_is_roots_alone_whatever_the_umask(tree: Path) -> None:
    old = os.umask(0)
    try:
        in_jail(tree, recall_file.keep, PATH, "{}", 3)
    finally:
        os.umask(old)
    folder = tree / recalling.FOLDER[1:]
    assert folder.stat().st_mode & 0o7777 == 0o700
    assert (tree / PATH[1:]).stat().st_mode & 0o7777 == 0o600
    assert (tree / PATH[1:]).read_text(encoding="utf-8") == "{}"


def test_the_files_of_the_codes_that_ran_last_stay(tree: Path) -> None:
    folder = tree / recalling.FOLDER[1:]
    for number in range(5):
        in_jail(tree, recall_file.keep, f"{recalling.FOLDER}/{number}.json", "{}", 3)
        os.utime(folder / f"{number}.json", (number, number))
    assert sorted(path.name for path in folder.iterdir()) == ["2.json", "3.json", "4.json"]
    in_jail(tree, recall_file.keep, f"{recalling.FOLDER}/2.json", '{"more": 1}', 3)
    assert len([*folder.iterdir()]) == 3


def test_a_disk_that_takes_nothing_and_a_directory_that_is_anothers_are_no_faults(tree: Path) -> None:
    (tree / "run").chmod(0o777)
    in_jail(tree, recall_file.keep, PATH, "{}", 3)
    assert [*(tree / "run").iterdir()] == []
    (tree / "run").chmod(0o755)
    (tree / "run/bcd-hostconfig").write_text("a file", encoding="utf-8")
    in_jail(tree, recall_file.keep, PATH, "{}", 3)
    in_jail(tree, _full, PATH)


def _full(path: str) -> None:
    rootfs.write = _no_space  # type: ignore[assignment]  # in a process of its own
    os.unlink("/run/bcd-hostconfig")
    recall_file.keep(path, "{}", 3)


def _no_space(_path: str, _data: bytes, _mode: int) -> None:
    raise OSError(28, "No space left on device")


def test_what_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[str] = []
    monkeypatch.setattr(recall_file, "keep", lambda path, _text, _most: kept.append(path))
    host = Watched(FakeHost())
    recall = Recall(host, CODE)
    recall._kept, recall._is_new = {"sysctl": {"key": "x"}}, True
    recall.save()
    recall._kept = {"sysctl": {"key": "x" * recalling.LARGEST}}
    recall.save()
    recall._is_new = False
    recall.save()
    assert kept == [PATH]
