# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The predicted host of check mode: the real one for reading, with the declared effects of steps laid over it."""

from __future__ import annotations

from .errors import SEEN_AS_ROOT, NotKnownYet, Unreadable
from .host import QUESTION_TIMEOUT, Host
from .plan import Answer, Ask
from .step import Effect, File, Step, command_line, program_of


class PredictedHost(Host):
    """Reads as the host will be after the steps applied so far; never changes the machine.

    Raises NotKnownYet where the answer follows from something that has not happened.
    """

    predicted = True

    def __init__(self, real: Host) -> None:
        self._real = real
        self.recall = real.recall
        self._files: dict[str, File | None] = {}  # None: gone
        self._above: set[str] = set()  # every directory above one of them
        self._unknown: dict[str, str] = {}
        self._appears: dict[str, list[str]] = {}
        # Each with the number of the effect that declared it: an answer holds until a later effect says otherwise.
        self._programs: dict[str, tuple[int, str]] = {}
        self._answers: dict[str, tuple[int, Answer]] = {}
        self._declared = 0
        self.clauses: set[str] = set()  # after which steps so far have said that more is known

    # -- reads

    def file(self, path: str) -> File | None:
        """As Host.file, after the steps so far."""
        laid, known = self._laid(path)
        if laid:
            return known
        try:
            found = self._real.file(path)
        except Unreadable as fault:
            raise self._as_root(fault) from None
        if found is None:
            self._may_appear(path)
        return found

    def read(self, path: str) -> str | None:
        """As Host.read, after the steps so far."""
        laid, known = self._laid(path)
        if laid:
            return None if known is None else known.text
        try:
            found = self._real.read(path)
        except Unreadable as fault:
            raise self._as_root(fault) from None
        if found is None:
            self._may_appear(path)
        return found

    def names(self, path: str) -> tuple[str, ...]:
        """As Host.names, after the steps so far."""
        prefix = path.rstrip("/") + "/"
        try:
            real = self._real.names(path)
        except Unreadable as fault:
            raise self._as_root(fault) from None
        found = {name for name in real if not self._gone(prefix + name)}
        for laid, file in self._files.items():
            if laid.startswith(prefix) and file is not None:
                found.add(laid[len(prefix) :].split("/", 1)[0])
        if not found and not self.exists(path):
            return ()
        return tuple(sorted(found))

    def exists(self, path: str) -> bool:
        """As Host.exists, after the steps so far."""
        laid, known = self._laid(path)
        if laid:
            return known is not None
        if any(self._files[name] is not None for name in self._below(path.rstrip("/"))):
            return True
        try:
            found = self._real.exists(path)
        except Unreadable as fault:
            raise self._as_root(fault) from None
        if not found:
            self._may_appear(path)
        return found

    def link(self, path: str) -> str | None:
        """As Host.link; steps make no symbolic links, they only replace them."""
        if self._laid(path)[0]:
            return None
        return self._real.link(path)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        """As Host.stamp; of what steps decide nothing can be said."""
        return None if self._laid(path)[0] else self._real.stamp(path)

    def which(self, program: str) -> str | None:
        """As Host.which; what a step installs is known only after it."""
        found = self._real.which(program)
        if found is None:
            self._refuse_unknown((program,), "")
        return found

    def foretells(self, argv: tuple[str, ...]) -> bool:
        """As Host.foretells: by an answer, or in that it is not known."""
        line = command_line(argv)
        return line in self._answers or any(_begins(line, declared) for declared in self._programs)

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        """As Host.ask; a program whose answers a step changes is not asked."""
        declared = self._answered(command_line(argv, stdin))
        if declared is not None:
            return declared
        self._refuse_unknown(argv, stdin)
        return self._real.ask(argv, timeout, stdin)

    def answer(self, question: Ask) -> Answer:
        """As Host.answer; what a step declared of a command line without files of the planner's is its answer."""
        declared = None if question.files else self._answered(command_line(question.argv))
        if declared is not None:
            return declared
        self._refuse_unknown(question.argv, "")
        return self._real.answer(question)

    def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
        """As Host.unary; an effect names it as the command line `CALL <path> <method>`."""
        declared = self._answered(f"CALL {path} {method}")
        if declared is not None and declared.rc == 0:
            return declared.out.encode("utf-8", "surrogateescape")
        self._refuse_unknown(("CALL", path, method), "")
        try:
            return self._real.unary(path, method, message, timeout)
        except Unreadable as fault:
            raise self._as_root(fault) from None

    def get(self, url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
        """As Host.get; an effect names it as the command line `GET <url>`, which answers with 200 or fails with 404."""
        declared = self._answered(f"GET {url}")
        if declared is not None:
            return declared._replace(rc=404 if declared.rc else 200)
        self._refuse_unknown(("GET", url), "")
        try:
            return self._real.get(url, timeout, ca, certificate)
        except Unreadable as fault:
            raise self._as_root(fault) from None

    def uid(self) -> int:
        """As Host.uid."""
        return self._real.uid()

    def boot_id(self) -> str:
        """As Host.boot_id: nothing here reboots."""
        return self._real.boot_id()

    def time(self) -> int:
        """As Host.time."""
        return self._real.time()

    def sleep(self, seconds: float) -> None:
        """A prediction waits for nothing."""

    # -- changes

    def apply(self, step: Step) -> None:
        """Lay the step's effects over the host."""
        if step.kind == "write":
            self._lay(step.path, File(step.text, step.mode))
        elif step.kind == "remove":
            self._lay(step.path, None)
        elif step.kind == "set":
            self._lay(step.path, File(step.text + "\n", 0o644))
        for effect in step.effects:
            self._declare(effect)

    def _declare(self, effect: Effect) -> None:
        kind, path, value = effect
        self._declared += 1
        if kind in ("unknown", "appears", "program"):
            self.clauses.add(value)
        if kind == "file":
            self._lay(path, File(value))
        elif kind == "gone":
            self._lay(path, None)
        elif kind == "unknown":
            self._unknown[path] = value
        elif kind == "appears":
            clauses = self._appears.setdefault(path.rstrip("/"), [])
            if value not in clauses:
                clauses.append(value)
        elif kind == "program":
            self._programs[path] = (self._declared, value)
        elif kind in ("answers", "fails"):
            self._answers[path] = (self._declared, Answer(0 if kind == "answers" else 1, value))
        else:
            raise ValueError(f"an effect of the kind {kind!r} is not known")

    def _lay(self, path: str, file: File | None) -> None:
        if file is None:
            for below in self._below(path):
                del self._files[below]
        self._unknown.pop(path, None)
        self._files[path] = file
        above = path.rpartition("/")[0]
        while above not in self._above:
            self._above.add(above)
            above = above.rpartition("/")[0]

    def _below(self, path: str) -> list[str]:
        """What steps decide below the path; most have nothing there, and then not each of a thousand is asked."""
        return [name for name in self._files if name.startswith(path + "/")] if path in self._above else []

    def _laid(self, path: str) -> tuple[bool, File | None]:
        """Whether a step decides what is at the path, and what."""
        if path in self._unknown:
            raise NotKnownYet(self._unknown[path])
        if path in self._files:
            return True, self._files[path]
        return self._gone(path), None

    def _answered(self, line: str) -> Answer | None:
        """What a step declared of the command line, unless a later one changes what its program answers."""
        number, answer = self._answers.get(line, (0, None))
        changes = (at for declared, (at, _after) in self._programs.items() if at > number and _begins(line, declared))
        return None if answer is None or any(changes) else answer

    def _refuse_unknown(self, argv: tuple[str, ...], stdin: str) -> None:
        """Ask no program whose answers a step changes, declared by its name or by how its command line begins."""
        for declared, (_number, after) in self._programs.items():
            if _begins(command_line(argv, stdin), declared):
                raise NotKnownYet(after)

    def _as_root(self, fault: Unreadable) -> Exception:
        """What this account may not read is known when root looks; what root may not read stays a fault."""
        return NotKnownYet(SEEN_AS_ROOT) if fault.denied and self._real.uid() != 0 else fault

    def _gone(self, path: str) -> bool:
        """Whether the path, or a directory above it, was removed and not made again."""
        while path:
            if path in self._files:
                return self._files[path] is None
            path = path.rpartition("/")[0]
        return False

    def _may_appear(self, path: str) -> None:
        clauses = [
            clause
            for prefix, given in self._appears.items()
            if path == prefix or path.startswith(prefix + "/")
            for clause in given
        ]
        if clauses:
            raise NotKnownYet(listed(list(dict.fromkeys(clauses))))


def _begins(line: str, declared: str) -> bool:
    """Whether a command line, without an `env NAME=value ...` before it, begins as the effect declares."""
    plain = " ".join(program_of(tuple(line.split()))) if line.startswith("env ") else line
    return plain == declared or plain.startswith(declared + " ")


def listed(words: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
