# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host like another but for one thing, and what another was asked, down to the last file that a look read.

`Leaf` is one thing of the machine: ("path", P), ("names", P), ("exists", P), ("link", P), ("which", PROGRAM),
("ask", ARGV, INPUT), ("unary", SOCKET, METHOD), ("get", URL) or ("time",). WAYS has how each can be otherwise.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import QUESTION_TIMEOUT, Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.state import STATE
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File, Step
from tests.unit.fake_host import FakeHost, Killed

Leaf = tuple[Any, ...]
WAYS: dict[str, tuple[str, ...]] = {
    "path": ("more", "less", "other", "toggled", "unreadable"),
    "names": ("more", "less"),
    "exists": ("toggled",),
    "link": ("other",),
    "which": ("toggled",),
    "ask": ("more", "less", "fails"),
    "unary": ("more", "fails"),
    "get": ("more", "fails"),
    "time": ("more",),
}


class Traced(Host):
    """A host that is only looked at; `leaves` are what it was asked, each with the files that its answer follows from.

    Records are written beside it, and read from there.
    """

    def __init__(self, inner: FakeHost) -> None:
        self.inner = inner
        self.leaves: dict[Leaf, set[str]] = {}
        self.written: dict[str, str] = {}

    def _see(self, *leaf: Any) -> set[str]:
        return self.leaves.setdefault(leaf, set())

    def read(self, path: str) -> str | None:
        self._see("path", path)
        return self.written[path] if path in self.written else self.inner.read(path)

    def file(self, path: str) -> File | None:
        self._see("path", path)
        return self.inner.file(path)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        self._see("path", path)
        return self.inner.stamp(path)

    def names(self, path: str) -> tuple[str, ...]:
        self._see("names", path)
        return self.inner.names(path)

    def exists(self, path: str) -> bool:
        self._see("exists", path)
        return self.inner.exists(path)

    def link(self, path: str) -> str | None:
        self._see("link", path)
        return self.inner.link(path)

    def which(self, program: str) -> str | None:
        self._see("which", program)
        return self.inner.which(program)

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        self._see("ask", argv, stdin)
        return self.inner.ask(argv, timeout, stdin)

    def follows(self, argv: tuple[str, ...], paths: tuple[str, ...]) -> Answer:
        self._see("ask", argv, "").update(paths)
        return self.ask(argv)

    def answer(self, question: Ask) -> Answer:
        self._see("ask", question.argv, "").update(question.follows)
        return self.inner.answer(question)

    def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
        self._see("unary", path, method)
        return self.inner.unary(path, method, message, timeout)

    def get(self, url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
        self._see("get", url)
        return self.inner.get(url, timeout, ca, certificate)

    def uid(self) -> int:
        return self.inner.uid()

    def boot_id(self) -> str:
        self._see("path", "/proc/sys/kernel/random/boot_id")
        return (self.read("/proc/sys/kernel/random/boot_id") or "").strip()

    def time(self) -> int:
        self._see("time")
        return self.inner.time()

    def clock(self) -> float:
        return self.inner.clock()

    def sleep(self, seconds: float) -> None:
        raise Killed(f"sleep {seconds}")

    def write(self, path: str, text: str, mode: int) -> None:
        if not path.startswith(STATE + "/"):
            raise Killed(f"write {path}")
        self.written[path] = text

    def remove(self, path: str) -> None:
        raise Killed(f"remove {path}")

    def set(self, path: str, value: str) -> None:
        raise Killed(f"set {path} {value}")

    def act(self, step: Step) -> None:
        raise Killed(" ".join(step.argv))


class Otherwise(Traced):
    """The host with one leaf otherwise. `stamps` are of files from which its answer follows: they changed with it."""

    def __init__(self, inner: FakeHost, leaf: Leaf, way: str, stamps: set[str]) -> None:
        super().__init__(inner)
        self.leaf, self.way, self.stamps = leaf, way, stamps

    def _text(self, text: str | None) -> str | None:
        if self.way == "toggled":
            return None if text is not None else "zzz 1\n"
        if text is None or self.way == "other":
            return "zzz 1\n"
        return text[: len(text) // 2] if self.way == "less" else f"{text}zzz 1\n"

    def _is_me(self, *leaf: Any) -> bool:
        if self.leaf != leaf:
            return False
        if self.way == "unreadable":
            raise Unreadable(f"cannot read {leaf[1]}: Input/output error")
        return True

    def read(self, path: str) -> str | None:
        found = super().read(path)
        return self._text(found) if self._is_me("path", path) else found

    def file(self, path: str) -> File | None:
        found = super().file(path)
        if not self._is_me("path", path):
            return found
        text = self._text(None if found is None else found.text)
        return None if text is None else (found or File(""))._replace(text=text)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        found = super().stamp(path)
        if self._is_me("path", path):
            is_gone = self.way == "toggled" and found is not None
            return None if is_gone else (9, *(found or (0, 0)))
        return (8, *(found or (0, 0))) if path in self.stamps else found

    def names(self, path: str) -> tuple[str, ...]:
        found = super().names(path)
        if not self._is_me("names", path):
            return found
        return tuple(sorted({*found, "zzz"})) if self.way == "more" or not found else found[1:]

    def exists(self, path: str) -> bool:
        return super().exists(path) is not self._is_me("exists", path)

    def link(self, path: str) -> str | None:
        found = super().link(path)
        return "/zzz" if self._is_me("link", path) else found

    def which(self, program: str) -> str | None:
        found = super().which(program)
        if not self._is_me("which", program):
            return found
        return None if found else f"/usr/sbin/{program}"

    def _answer(self, found: Answer) -> Answer:
        if self.way == "fails":
            return Answer(1, "", "it fails")
        return found._replace(out=found.out + "zzz, 1\n" if self.way == "more" else found.out[: len(found.out) // 2])

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        found = super().ask(argv, timeout, stdin)
        return self._answer(found) if self._is_me("ask", argv, stdin) else found

    def answer(self, question: Ask) -> Answer:
        found = super().answer(question)
        return self._answer(found) if self._is_me("ask", question.argv, "") else found

    def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
        found = super().unary(path, method, message, timeout)
        if self._is_me("unary", path, method):
            if self.way == "fails":
                raise StepFailed(f"{path} cannot be asked for {method}: Connection refused")
            return found + b"\x08\x01"
        return found

    def get(self, url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
        found = super().get(url, timeout, ca, certificate)
        return self._answer(found) if self._is_me("get", url) else found

    def time(self) -> int:
        return super().time() + (400 * 86_400 if self.leaf == ("time",) else 0)
