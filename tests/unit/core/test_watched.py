# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A watched host: each thing is asked once until something changes, and a turn is written down or is not."""

from __future__ import annotations

import time
from typing import Any, Callable

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import question as asking
from ansible_collections.bettercompute.bcd.plugins.module_utils.core import watched as watching
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Fault, Hung, StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.question import digest, question_of, shown
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.seen import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Effect, run, set_value, write
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.watched import Beside, Watched
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.moment import days_until
from tests.unit.fake_host import FakeHost

Question = tuple[Any, ...]
A, B = "/etc/a", "/etc/b"
URL = "https://node.example/healthz"
SOCKET = "/run/server.sock"
SAYS = ("says", "it")


class Counting(FakeHost):
    """A FakeHost that counts its reads too."""

    def __init__(self) -> None:
        super().__init__({A: "one\n", "/etc/dir/x": "", "/sys/k": "1\n"}, links={"/etc/l": A})
        self.programs["says"] = lambda host, _argv: Answer(0, f"{host.text(A)}", host.stdin)
        self.servers[SOCKET] = lambda method, message: method.encode() + message
        self.sites[URL] = Answer(200, "ok")
        self.reads = 0

    def _see(self, path: str) -> None:
        self.reads += 1
        super()._see(path)


# What can be asked, and what asks it of the host below.
QUESTIONS: dict[str, Callable[[Host], Any]] = {
    "read": lambda host: host.read(A),
    "file": lambda host: host.file(A),
    "names": lambda host: host.names("/etc/dir"),
    "exists": lambda host: host.exists(A),
    "link": lambda host: host.link("/etc/l"),
    "stamp": lambda host: host.stamp(A),
    "which": lambda host: host.which("says"),
    "boot_id": lambda host: host.boot_id(),
    "foretells": lambda host: host.foretells(SAYS),
    "ask": lambda host: host.ask(SAYS),
    "follows": lambda host: host.follows(SAYS, (A,)),
    "answer": lambda host: host.answer(Ask(SAYS, (("x", "text"),), (A,))),
    "answer without files": lambda host: host.answer(Ask(SAYS)),
    "unary": lambda host: host.unary(SOCKET, "/Version"),
    "get": lambda host: host.get(URL),
    "sight": lambda host: host.sight(days_until, 7, 0),
}


def turn(host: Watched, ask: Callable[[Host], Any]) -> dict[Question, str] | None:
    host.begin()
    try:
        ask(host)
    except Fault:
        pass
    return host.end()


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_the_hosts_own_and_asked_for_once(name: str) -> None:
    real = Counting()
    want = QUESTIONS[name](real)
    host = Watched(real)
    assert QUESTIONS[name](host) == want
    before = real.reads, len(real.asked)
    assert QUESTIONS[name](host) == want
    assert (real.reads, len(real.asked)) == before


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_turn_is_written_down_as_one_question_that_compares_when_it_is_asked_again(name: str) -> None:
    real = Counting()
    asked = turn(Watched(real), QUESTIONS[name])
    assert asked is not None
    assert len(asked) == 1
    ((question, answer),) = asked.items()
    assert question[0] == {"answer without files": "ask"}.get(name, name)
    assert Watched(real).digest_of(question) == answer  # another process
    assert shown(PredictedHost(real), question) == answer
    assert turn(Watched(real), QUESTIONS[name]) == asked


@pytest.mark.parametrize("name", ["read", "file", "stamp", "ask", "follows", "answer"])
def test_another_answer_has_another_digest(name: str) -> None:
    real = Counting()
    asked = turn(Watched(real), QUESTIONS[name])
    real.put(A, "two\n")
    assert asked is not None
    ((question, answer),) = asked.items()
    assert Watched(real).digest_of(question) != answer
    assert shown(PredictedHost(real), question) != answer


def test_digests_tell_types_apart_and_faults_by_what_they_say() -> None:
    values: list[Any] = [None, "", "None", b"", 0, False, 1, True, 1.0, "1", (), [], {}, ("1",), ["1"], (1,), ("", 0)]
    values += [File(""), File("", 0o600), Answer(0, ""), Answer(0, "", "x"), "=", "\udcff", "\udcfe"]
    values += [StepFailed("x"), StepFailed("x", False), Unreadable("x"), Unreadable("x", True), Hung("x"), Hung("y")]
    assert len({digest(value) for value in values}) == len(values)
    assert {len(digest(value)) for value in values} == {32}
    assert digest(Unreadable("x", True)) == digest(Unreadable("x", True))


CHANGES: dict[str, Callable[[Host], Any]] = {
    "step": lambda host: host.apply(write(B, "text", "write it")),
    "write": lambda host: host.write(B, "text", 0o644),
    "remove": lambda host: host.remove(B),
    "set": lambda host: host.set("/sys/k", "2"),
    "act": lambda host: host.act(run(SAYS, "say it")),
    "sleep": lambda host: host.sleep(1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_machine_forgets_all_and_no_turn_with_it_is_kept(name: str) -> None:
    real = Counting()
    host = Watched(real)
    assert host.read(A) == "one\n"
    real.put(A, "two\n")
    assert host.read(A) == "one\n"
    host.begin()
    CHANGES[name](host)
    assert host.read(A) == "two\n"
    assert host.end() is None


def test_a_step_that_fails_forgets_too() -> None:
    real = Counting()
    host = Watched(real)
    host.read(A)
    real.put(A, "two\n")
    with pytest.raises(StepFailed):
        host.apply(set_value("/sys/absent", "1", "set it"))
    assert host.read(A) == "two\n"


def test_a_record_forgets_its_own_path_and_what_was_made_of_many() -> None:
    real = Counting()
    host = Watched(real)
    records = Beside(real, host)
    for ask in QUESTIONS.values():
        ask(host)
    host.read(B)
    records.write(B, "text", 0o600)
    assert (host.read(B), host.names("/etc"), records.read(B)) == ("text", ("a", "b", "dir", "l"), "text")
    reads = real.reads
    for name in ("read", "ask", "names"):
        QUESTIONS[name](host)
    assert real.reads == reads
    host.begin()
    records.write(B, "more", 0o600)
    host.read(A)
    assert host.end() is not None


NOT_KEPT: dict[str, Callable[[Host], Any]] = {
    "time": lambda host: host.time(),
    "clock": lambda host: host.clock(),
    "input": lambda host: host.ask(SAYS, stdin="some words"),
    "message": lambda host: host.unary(SOCKET, "/Method", b"message"),
    "files": lambda host: host.answer(Ask(SAYS, (("x", "text"),))),
    "a sight of no look": lambda host: host.sight(len_of, "x"),
}


def len_of(_host: Host, word: str) -> int:
    return len(word)


@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_turn_that_asks_what_cannot_be_asked_again_is_not_kept(name: str) -> None:
    real = Counting()
    assert turn(Watched(real), NOT_KEPT[name]) is None


def test_a_sight_is_one_question_whatever_it_reads_and_may_know_the_clock() -> None:
    real = Counting()
    asked = turn(Watched(real), lambda host: host.sight(days_until, real.unix + 5, 0))
    assert asked is not None
    assert [*asked] == [("sight", "look.moment", "days_until", f"[{real.unix + 5}, 0]")]
    (question,) = asked
    real.unix += 4
    assert Watched(real).digest_of(question) == asked[question]
    real.unix += 1
    assert Watched(real).digest_of(question) != asked[question]


@pytest.mark.parametrize("given", [(("a", "tuple"),), ({1: "x"},), (b"x",), ([frozenset()],)])
def test_a_sight_of_what_json_does_not_give_back_is_no_question(given: tuple[Any, ...]) -> None:
    assert question_of(days_until, given) is None
    assert question_of(lambda host: None, ()) is None
    assert question_of(days_until, (7, "x", None, [1.5, {"k": True}])) is not None


def test_a_fault_is_an_answer_and_what_is_none_ends_the_turn_unkept() -> None:
    real = Counting()
    real.unreadable.add(A)
    asked = turn(Watched(real), QUESTIONS["read"])
    assert asked is not None
    assert Watched(real).digest_of(("read", A)) == asked["read", A]
    host = Watched(real)
    for _again in range(2):
        with pytest.raises(Unreadable):
            host.read(A)
    assert real.reads == 3
    real.programs["says"] = _breaks
    host.begin()
    with pytest.raises(OSError, match="broken"):
        host.ask(SAYS)
    assert host.end() is None


def _breaks(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    raise OSError(5, "broken")


@pytest.mark.parametrize("name", ["follows", "answer"])
def test_what_follows_from_files_is_not_asked_again_and_what_ended_otherwise_is_not_kept(name: str) -> None:
    real = Counting()
    asked = turn(Watched(real), QUESTIONS[name])
    assert asked is not None
    (question,) = asked
    programs = len(real.asked)
    assert Watched(real).digest_of(question) == asked[question]
    assert len(real.asked) == programs
    real.programs["says"] = lambda _host, _argv: Answer(-9, "")
    assert turn(Watched(real), QUESTIONS[name]) is None

    def hangs(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        raise Hung("it hangs")

    real.programs["says"] = hangs
    assert turn(Watched(real), QUESTIONS[name]) is None


@pytest.mark.parametrize("name", ["stamp", "follows", "answer"])
def test_a_file_that_was_changed_a_moment_ago_can_change_unseen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Counting()
    now = [10**18 + 1]
    monkeypatch.setattr(real, "stamp", lambda _path: (1, 2, 3, 4, now[0]))
    monkeypatch.setattr(time, "time_ns", lambda: 10**18 + 50_000_000)
    host = Watched(real)
    assert turn(host, QUESTIONS[name]) is None
    assert turn(host, QUESTIONS[name]) is None  # nor by another unit, later: the stamp was taken then
    now[0] -= 10**9
    assert turn(Watched(real), QUESTIONS[name]) is not None


@pytest.mark.parametrize(
    ("written", "changed", "ages"),
    [
        (-(10**9), -99_000_001, (True, False)),
        (-(10**9), -(10**8) - 1, (False, False)),
        (10**10, -(10**8) - 1, (False, False)),  # a time of its content that somebody has set counts for nothing
        (10**10, 1, (True, False)),  # a clock that was set back
        (-(10**9), -(10**9), (True, False)),  # an inode of 128 bytes counts in seconds
        (-2 * 10**9, -2 * 10**9, (True, False)),  # FAT in two of them
        (-2 * 10**9, -(10**12), (True, False)),  # and as changed it may show when it was made
        (-3 * 10**9, -3 * 10**9, (False, False)),
    ],
)
def test_how_long_a_file_can_change_unseen_is_a_matter_of_how_its_times_are_counted(
    written: int, changed: int, ages: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 10**18
    stamp = (1, 2, 3, now + written, now + changed)
    found = []
    for later in (0, 3 * 10**9):
        monkeypatch.setattr(time, "time_ns", lambda at=now + later: at)
        found.append(asking.is_young(stamp))
    assert tuple(found) == ages


@pytest.mark.parametrize("name", ["follows", "answer"])
def test_a_file_that_cannot_be_looked_at_hides_no_other(name: str) -> None:
    ask = {
        "follows": lambda host: host.follows(SAYS, (A, B)),
        "answer": lambda host: host.answer(Ask(SAYS, (("x", "text"),), (A, B))),
    }
    real = Counting()
    real.unreadable.add(B)
    asked = turn(Watched(real), ask[name])
    real.put(A, "two\n")
    assert asked
    for question, answer in asked.items():
        assert Watched(real).digest_of(question) != answer


def test_what_a_prediction_decides_compares_with_nothing() -> None:
    real = Counting()
    asked = turn(Watched(real), lambda host: (host.stamp(B), host.follows(SAYS, (B,)), host.foretells(SAYS)))
    assert asked is not None
    stamp, follows, foretells = asked
    predicted = PredictedHost(real)
    assert [shown(predicted, question) == asked[question] for question in asked] == [True, True, True]
    predicted.apply(write(B, "text", "write it"))
    assert [shown(predicted, stamp), shown(predicted, follows)] == ["", ""]
    predicted = PredictedHost(real)
    predicted.apply(run(SAYS, "say it", effects=(Effect("answers", " ".join(SAYS), "else"),)))
    assert shown(predicted, follows) == ""
    assert shown(predicted, foretells) != asked[foretells]


@pytest.mark.parametrize(
    "question", [("apply", "x"), ("write", A, "", 0), ("sight", "core.host", "Host", "[]"), ("_real",)]
)
def test_only_questions_are_asked_again(question: Question) -> None:
    with pytest.raises(ValueError, match=r"question|sights"):
        Watched(Counting()).digest_of(question)


def test_a_turn_of_too_many_questions_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST", 3)
    assert turn(Watched(Counting()), lambda host: [host.read(f"/{n}") for n in range(3)]) is not None
    assert turn(Watched(Counting()), lambda host: [host.read(f"/{n}") for n in range(4)]) is None


def test_who_changes_what_a_sight_gave_changes_no_memory() -> None:
    host = Watched(Counting())
    host._seen["sight", "look.moment", "days_until", "[7, 0]"] = asking.Seen([["x"]], None, "")
    host.sight(days_until, 7, 0)[0].append("y")
    assert host.sight(days_until, 7, 0) == [["x"]]
