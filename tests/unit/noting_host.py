# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host over a FakeHost that notes what it is asked, and what it answered: two looks that note the same saw the same.

A sight is one question, whatever it reads; what follows from files is one about their stamps.
"""

from __future__ import annotations

from typing import Any, Callable

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import QUESTION_TIMEOUT, Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from tests.unit.fake_host import FakeHost


class NotingHost(Host):
    """See the module; `notes` are (question, its arguments, its answer). It is only looked at."""

    def __init__(self, inner: FakeHost) -> None:
        self.inner = inner
        self.notes: list[tuple[Any, ...]] = []

    def _note(self, name: str, ask: Callable[..., Any], *given: Any) -> Any:
        found = ask(*given)
        self.notes.append((name, *given, found))
        return found

    def read(self, path: str) -> str | None:
        return self._note("read", self.inner.read, path)  # type: ignore[no-any-return]

    def file(self, path: str) -> File | None:
        return self._note("file", self.inner.file, path)  # type: ignore[no-any-return]

    def names(self, path: str) -> tuple[str, ...]:
        return self._note("names", self.inner.names, path)  # type: ignore[no-any-return]

    def exists(self, path: str) -> bool:
        return self._note("exists", self.inner.exists, path)  # type: ignore[no-any-return]

    def link(self, path: str) -> str | None:
        return self._note("link", self.inner.link, path)  # type: ignore[no-any-return]

    def stamp(self, path: str) -> tuple[int, ...] | None:
        return self._note("stamp", self.inner.stamp, path)  # type: ignore[no-any-return]

    def which(self, program: str) -> str | None:
        return self._note("which", self.inner.which, program)  # type: ignore[no-any-return]

    def sight(self, function: Callable[..., Any], *arguments: Any) -> Any:
        found = function(self.inner, *arguments)
        self.notes.append(("sight", function.__name__, arguments, found))
        return found

    def follows(self, argv: tuple[str, ...], paths: tuple[str, ...]) -> Answer:
        self.notes.append(("follows", argv, [(path, self.inner.stamp(path)) for path in paths]))
        return self.inner.ask(argv)

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        found = self.inner.ask(argv, timeout, stdin)
        self.notes.append(("ask", argv, stdin, found))
        return found

    def uid(self) -> int:
        return self.inner.uid()

    def boot_id(self) -> str:
        return self.inner.boot_id()
