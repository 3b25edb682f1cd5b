# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine that is asked each thing once in a pass, and that writes down what a unit's turn has asked it.

What was asked stands for as long as nothing changes: a step, a write or a wait forgets it. What a turn asked, with a
digest of each answer, is enough to know later that it would come to the same (see front.recall).
"""

from __future__ import annotations

from .errors import Fault
from .host import QUESTION_TIMEOUT, Host
from .question import FOLLOWING, Seen, again, copied, digest, is_young, question_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .question import Question
    from .seen import Answer, Ask, File
    from .step import Step

MOST = 5000  # questions of a turn that is worth keeping


class Watched(Host):
    """Another host, seen through a memory."""

    def __init__(self, real: Host) -> None:
        self._real = real
        self._seen: dict[Question, Seen] = {}
        self._turn: dict[Question, Seen] | None = None
        self._is_repeatable = True
        self._young: set[str] = set()  # files whose stamps may come again with another content

    # -- a turn

    def begin(self) -> None:
        """Write down what is asked from here on."""
        self._turn, self._is_repeatable = {}, True

    def end(self) -> dict[Question, str] | None:
        """What was asked since, in its order, each with the digest of its answer.

        None where that does not decide what came of it: something was changed, or waited for, or the clock was read,
        or what was asked cannot be asked again by a record of it.
        """
        turn, self._turn = self._turn, None
        if turn is None or not self._is_repeatable or len(turn) > MOST:
            return None
        return {question: seen.digest for question, seen in turn.items()}

    def digest_of(self, question: Question) -> str:
        """The digest of the answer now, "" where nothing can be said of it. Raises ValueError for no question."""
        if question[0] in FOLLOWING:
            return shown(self, question)
        if question not in self._seen:
            try:
                again(self, question)
            except Fault:  # which is an answer as well
                pass
        return self._seen[question].digest

    def forget(self, path: str) -> None:
        """A record was written there: nothing else of the machine has changed with it."""
        self._seen = {
            question: seen
            for question, seen in self._seen.items()
            if question[0] != "sight" and not f"{path}/".startswith(f"{str(question[1]).rstrip('/')}/")
        }

    def begin_anew(self) -> None:
        """Forget everything: somebody else may have changed the machine."""
        self._changed()

    def _changed(self) -> None:
        self._seen.clear()
        self._young.clear()
        self._turn = None  # whatever comes of it, it is no quiet turn

    def _ask(self, question: Question, ask: Callable[..., Any], *given: Any, stamps: str = "") -> Any:
        """The answer to a question, asked now or before; its digest may be another's (`stamps`)."""
        seen = self._seen.get(question)
        if seen is None:
            try:
                seen = Seen.of(ask, given, stamps)
            except BaseException:  # no answer, and no fault of the machine's either
                self._is_repeatable = False
                raise
            self._seen[question] = seen
        if self._turn is not None:
            self._turn[question] = seen
        return seen.answer()

    # -- questions

    def read(self, path: str) -> str | None:
        """As Host.read."""
        found: str | None = self._ask(("read", path), self._real.read, path)
        return found

    def file(self, path: str) -> File | None:
        """As Host.file."""
        found: File | None = self._ask(("file", path), self._real.file, path)
        return found

    def names(self, path: str) -> tuple[str, ...]:
        """As Host.names."""
        found: tuple[str, ...] = self._ask(("names", path), self._real.names, path)
        return found

    def exists(self, path: str) -> bool:
        """As Host.exists."""
        return bool(self._ask(("exists", path), self._real.exists, path))

    def link(self, path: str) -> str | None:
        """As Host.link."""
        found: str | None = self._ask(("link", path), self._real.link, path)
        return found

    def stamp(self, path: str) -> tuple[int, ...] | None:
        """As Host.stamp."""
        is_new = ("stamp", path) not in self._seen
        found: tuple[int, ...] | None = self._ask(("stamp", path), self._real.stamp, path)
        if is_new and is_young(found):
            self._young.add(path)
        if self._turn is not None and path in self._young:
            self._is_repeatable = False
        return found

    def which(self, program: str) -> str | None:
        """As Host.which."""
        found: str | None = self._ask(("which", program), self._real.which, program)
        return found

    def boot_id(self) -> str:
        """As Host.boot_id."""
        return str(self._ask(("boot_id", ""), self._real.boot_id))

    def foretells(self, argv: tuple[str, ...]) -> bool:
        """As Host.foretells: a prediction may say otherwise, so it is a question like others."""
        return bool(self._ask(("foretells", argv), self._real.foretells, argv))

    def sight(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """As Host.sight; what the function reads for it is remembered, and is no question of the turn's own."""
        question = question_of(function, arguments)
        if question is None:
            self._is_repeatable = False
            return function(self, *arguments)
        return copied(self._ask(question, self._apart, function, arguments))

    def _apart(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        turn, is_repeatable, self._turn = self._turn, self._is_repeatable, {}
        is_quiet = False
        try:
            found = function(self, *arguments)
            is_quiet = self._turn is not None
            return found
        except Fault:
            is_quiet = self._turn is not None
            raise
        finally:
            self._turn, self._is_repeatable = turn if is_quiet else None, is_repeatable

    def follows(self, argv: tuple[str, ...], paths: tuple[str, ...]) -> Answer:
        """As Host.follows: the stamps, which are taken first, stand for the answer."""
        question = ("follows", argv, paths)
        return self._following(question, self._real.follows, argv, paths)

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        """As Host.ask; what a program is given to read is kept nowhere."""
        if stdin:
            self._is_repeatable = False
            return self._real.ask(argv, timeout, stdin)
        found: Answer = self._ask(("ask", argv, timeout), self._real.ask, argv, timeout)
        return found

    def answer(self, question: Ask) -> Answer:
        """As Host.answer; of files that were made for it only what follows from others as well can be known again."""
        if not question.files:
            return self.follows(question.argv, question.follows) if question.follows else self.ask(question.argv)
        if not question.follows:
            self._is_repeatable = False
            return self._real.answer(question)
        # The files follow from what was asked before: their digest only tells one question of the turn from another.
        asked = ("answer", question.argv, question.follows, digest(question.files))
        return self._following(asked, self._real.answer, question)

    def _following(self, question: Question, ask: Callable[..., Answer], *given: Any) -> Answer:
        try:
            found: Answer = self._ask(question, ask, *given, stamps=self._stamps(question))
        except Fault:  # it hung, say, which follows from no file
            self._is_repeatable = False
            raise
        if found.rc < 0:  # ended by a signal
            self._is_repeatable = False
        return found

    def _stamps(self, question: Question) -> str:
        """The digest of the stamps of the files from which the answer follows, as they were when it was asked."""
        if question in self._seen:
            stamps = self._seen[question].digest
        else:
            turn, self._turn = self._turn, None
            try:
                stamps = shown(self, question)
            finally:
                self._turn = turn
        if not self._young.isdisjoint(question[2]):
            self._is_repeatable = False
        return stamps

    def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
        """As Host.unary; a message is kept nowhere."""
        if message:
            self._is_repeatable = False
            return self._real.unary(path, method, message, timeout)
        found: bytes = self._ask(("unary", path, method, timeout), self._real.unary, path, method, b"", timeout)
        return found

    def get(self, url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
        """As Host.get."""
        found: Answer = self._ask(("get", url, timeout, ca, certificate), self._real.get, url, timeout, ca, certificate)
        return found

    def uid(self) -> int:
        """As Host.uid: the same for as long as we run."""
        return self._real.uid()

    # -- what has no answer that could come again

    def clock(self) -> float:
        """As Host.clock."""
        self._is_repeatable = False
        return self._real.clock()

    def time(self) -> int:
        """As Host.time."""
        self._is_repeatable = False
        return self._real.time()

    def sleep(self, seconds: float) -> None:
        """As Host.sleep: what was waited for may have come."""
        self._real.sleep(seconds)
        self._changed()

    # -- changes

    def apply(self, step: Step) -> None:
        """As Host.apply."""
        try:
            self._real.apply(step)
        finally:
            self._changed()

    def write(self, path: str, text: str, mode: int) -> None:
        """As Host.write."""
        try:
            self._real.write(path, text, mode)
        finally:
            self._changed()

    def remove(self, path: str) -> None:
        """As Host.remove."""
        try:
            self._real.remove(path)
        finally:
            self._changed()

    def set(self, path: str, value: str) -> None:
        """As Host.set."""
        try:
            self._real.set(path, value)
        finally:
            self._changed()

    def act(self, step: Step) -> None:
        """As Host.act."""
        try:
            self._real.act(step)
        finally:
            self._changed()


class Beside(Host):
    """The same machine as records see it: what they read is no question of a unit, and they write records alone."""

    def __init__(self, real: Host, watched: Watched) -> None:
        self._real, self._watched = real, watched

    def read(self, path: str) -> str | None:
        """As Host.read."""
        return self._real.read(path)

    def boot_id(self) -> str:
        """As Host.boot_id."""
        return self._real.boot_id()

    def write(self, path: str, text: str, mode: int) -> None:
        """As Host.write."""
        try:
            self._real.write(path, text, mode)
        finally:
            self._watched.forget(path)
