# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in memory, for flows of units without a machine: files in a dictionary, programs as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Optional
from zlib import crc32

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed, Unreadable
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import QUESTION_TIMEOUT, Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.seen import Answer, Ask, File

if TYPE_CHECKING:
    from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Step

BOOT_ID = "/proc/sys/kernel/random/boot_id"
Program = Callable[["FakeHost", tuple[str, ...]], Answer]
Kernel = Callable[["FakeHost", str, str], Optional[str]]
Server = Callable[[str, bytes], bytes]


class Killed(BaseException):
    """The module's process was killed here."""


class FakeHost(Host):
    """`files` maps a path to its text; `programs` maps a program's name to what it does and says.

    `kernel` maps a path of /proc or /sys to a function that gets the value written there and returns what the file
    then shows (None leaves it alone); it may raise OSError, as the kernel does. `links` maps a symbolic link to where
    it points. `unreadable` paths cannot be read. `stdin` is what the program that is being run reads. `servers` maps a
    unix socket to the gRPC server there, a function of the method and the message; `sites` an https address to what is
    answered there (rc is the status).
    `kill_at` n raises Killed instead of the n-th change (from 1); `calls` lists every change, `asked` every question.
    """

    def __init__(
        self,
        files: Mapping[str, str] | None = None,
        programs: Mapping[str, Program] | None = None,
        kernel: Mapping[str, Kernel] | None = None,
        links: Mapping[str, str] | None = None,
    ) -> None:
        self.files: dict[str, File] = {BOOT_ID: File("first-boot\n")}
        for path, text in (files or {}).items():
            self.files[path] = File(text)
        self.programs = dict(programs or {})
        self.kernel = dict(kernel or {})
        self.links = dict(links or {})
        self.unreadable: set[str] = set()
        self.servers: dict[str, Server] = {}
        self.sites: dict[str, Answer] = {}
        self.kill_at = 0
        self.calls: list[str] = []
        self.asked: list[tuple[str, ...]] = []
        self.stdin = ""
        self.now = 0.0
        self.unix = 1_800_000_000
        self.user = 0

    def text(self, path: str) -> str | None:
        """The text at a path, for assertions."""
        found = self.files.get(path)
        return None if found is None else found.text

    def put(self, path: str, text: str) -> None:
        """Change a file as somebody else would: not counted."""
        self.files[path] = File(text)

    def reboot(self, boot_id: str = "next-boot") -> None:
        """A new boot id; what else a boot does, the test does."""
        self.files[BOOT_ID] = File(boot_id + "\n")

    # -- Host

    def read(self, path: str) -> str | None:
        self._see(path)
        found = self.files.get(self._followed(path))
        return None if found is None else found.text

    def file(self, path: str) -> File | None:
        self._see(path)
        return File("", 0o777, regular=False) if path in self.links else self.files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        self._see(path)
        prefix = path.rstrip("/") + "/"
        inside = (name for name in (*self.files, *self.links) if name.startswith(prefix))
        return tuple(sorted({name[len(prefix) :].split("/", 1)[0] for name in inside}))

    def exists(self, path: str) -> bool:
        end = self._followed(path)
        return end in self.files or bool(self.names(end))

    def link(self, path: str) -> str | None:
        if path in self.links:
            self._see(path)
        return self.links.get(path)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        self._see(path)
        end = self._followed(path)
        found = self.files.get(end)
        inside = self.names(end) if found is None else ()
        text = "\n".join(inside) if found is None else found.text
        return (
            (int(bool(inside)), crc32(text.encode("utf-8", "surrogateescape")), len(text)) if found or inside else None
        )

    def _see(self, path: str) -> None:
        if path in self.unreadable:
            raise Unreadable(f"cannot read {path}: Permission denied", denied=True)

    def _followed(self, path: str) -> str:
        """Where a chain of links ends."""
        for _link in self.links:
            if path not in self.links:
                break
            target = self.links[path]
            path = target if target.startswith("/") else f"{path.rpartition('/')[0]}/{target}"
        return path

    def which(self, program: str) -> str | None:
        return f"/usr/sbin/{program}" if program in self.programs else None

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        self.asked.append(argv)
        self.stdin = stdin
        return self._call(argv)

    def answer(self, question: Ask) -> Answer:
        return self.ask(question.argv)

    def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
        self._see(path)
        if path not in self.servers:
            raise StepFailed(
                f"{path} cannot be asked for {method}: No such file or directory: see whether its server runs"
            )
        return self.servers[path](method, message)

    def get(self, url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
        self.asked.append(("GET", url))
        if url not in self.sites:
            raise StepFailed(f"{url} gives no answer: Connection refused: see whether it can be reached")
        return self.sites[url]

    def uid(self) -> int:
        return self.user

    def clock(self) -> float:
        return self.now

    def time(self) -> int:
        return self.unix

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def write(self, path: str, text: str, mode: int) -> None:
        self._change(f"write {path}")
        self.links.pop(path, None)
        self.files[path] = File(text, mode)

    def remove(self, path: str) -> None:
        self._change(f"remove {path}")
        self.links.pop(path, None)
        self.files.pop(path, None)

    def set(self, path: str, value: str) -> None:
        self._change(f"set {path} {value}")
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        shown: str | None = value + "\n"
        if path in self.kernel:
            shown = self.kernel[path](self, path, value)
        if shown is not None:
            self.files[path] = File(shown)

    def act(self, step: Step) -> None:
        self._change(" ".join(step.argv))
        self.stdin = step.text
        said = self._call(step.argv)
        if said.rc not in step.ok:
            raise StepFailed(
                f"cannot {step.action}: {' '.join(step.argv)} exited with {said.rc}: {said.err or said.out}"
            )

    def _change(self, call: str) -> None:
        self.calls.append(call)
        if self.kill_at and len(self.calls) == self.kill_at:
            raise Killed(call)

    def _call(self, argv: tuple[str, ...]) -> Answer:
        program = self.programs.get(argv[0])
        return program(self, argv) if program else Answer(127, "", f"{argv[0]}: no such program")
