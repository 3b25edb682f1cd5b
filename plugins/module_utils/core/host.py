# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only door to the machine: reads, questions to programs, and the four kinds of step."""

from __future__ import annotations

import errno
import os
import stat
import time

from . import rootfs
from .errors import Unreadable
from .seen import Answer, File

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    from .seen import Ask
    from .step import Step

    Told = TypeVar("Told")

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FOLDERS = PATH.split(":")
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ESRCH)  # the last: a process that ended
NO_LINK = (*ABSENT, errno.EINVAL)
QUESTION_TIMEOUT = 60.0
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C", "LANG": "C", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
READ_AT_ONCE = 1 << 16  # bytes


class Host:
    """The running machine, as this process may see and change it."""

    predicted = False
    recall: Any = None  # front.recall.Recall, where quiet turns of earlier passes are known

    # -- reads: absent is None or empty; only ENOENT and its like count as absent, and ValueError: it is for a name that
    # no file can have, with a NUL or half a character

    def read(self, path: str) -> str | None:
        """The text of a file (bytes that are not UTF-8 survive as surrogates), None when absent."""
        return _unless_absent(_text, path)

    def file(self, path: str) -> File | None:
        """The file with its mode and owner, None when absent; a symbolic link is not followed."""
        seen = _unless_absent(os.lstat, path)
        if seen is None:
            return None
        if not stat.S_ISREG(seen.st_mode):
            return File("", stat.S_IMODE(seen.st_mode), seen.st_uid, regular=False)
        return File(self.read(path) or "", stat.S_IMODE(seen.st_mode), seen.st_uid)

    def names(self, path: str) -> tuple[str, ...]:
        """What a directory holds, sorted; empty when it is absent."""
        return tuple(sorted(_unless_absent(os.listdir, path) or ()))

    def exists(self, path: str) -> bool:
        """Whether the path is there; a dangling symbolic link is not."""
        return _unless_absent(os.stat, path) is not None

    def link(self, path: str) -> str | None:
        """Where a symbolic link points, as written; None when it is absent or no link."""
        return _unless_absent(os.readlink, path, NO_LINK)

    def stamp(self, path: str) -> tuple[int, ...] | None:
        """What changes whenever a file does: device, inode, size, times of its content and of itself (ns).

        Links are followed; None when it is absent, and where nothing can be said of what it will be.
        """
        seen = _unless_absent(os.stat, path)
        if seen is None:
            return None
        return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns

    def sight(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of look/ makes of the host and these arguments, as one question with one answer.

        A look narrows with it what changes all the time to what matters: the answer is compared, and not all that was
        read for it (see core.watched). Arguments and the answer are plain values.
        """
        return function(self, *arguments)

    def follows(self, argv: tuple[str, ...], paths: tuple[str, ...]) -> Answer:
        """What a program says that follows from these files alone: the same as long as the stamp of each is the same.

        Only for what is strictly so. The program itself is one of the files where another version may say something
        else. A path that is absent is part of it.
        """
        return self.ask(argv)

    def foretells(self, argv: tuple[str, ...]) -> bool:
        """Whether steps decide what a program will say to these words: never on the machine itself, which says it."""
        return False

    def which(self, program: str) -> str | None:
        """The path of an executable on the fixed PATH, or None."""
        if "/" in program:
            return program if _runs(program) else None
        return next((path for folder in FOLDERS if _runs(path := f"{folder}/{program}")), None)

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        """Run a program that changes nothing; a missing program answers 127, one that hangs fails the look."""
        return self._spawn(argv, timeout, stdin)

    def answer(self, question: Ask) -> Answer:
        """Answer a planner's question over private temporary files."""
        import shutil
        import tempfile

        folder = tempfile.mkdtemp(prefix="bcd-ask-")
        try:
            argv = question.argv
            for name, text in question.files:
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
                    out.write(text)
                argv = tuple(word.replace(f"{{{name}}}", path) for word in argv)
            return self.ask(argv)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def unary(self, path: str, method: str, message: bytes = b"", timeout: float = 10.0) -> bytes:
        """The answer of a server on a unix socket to one gRPC call that changes nothing (see core.grpc)."""
        from .grpc import unary

        return unary(path, method, message, timeout)

    def get(self, url: str, timeout: float = 30.0, ca: str = "", certificate: str = "") -> Answer:
        """The status, text and reason of a server's answer over https (see core.https)."""
        from .https import get

        return get(url, timeout, ca, certificate)

    def uid(self) -> int:
        """The effective user id."""
        return os.geteuid()

    def boot_id(self) -> str:
        """The running boot's id; empty where the kernel does not show one."""
        return (self.read("/proc/sys/kernel/random/boot_id") or "").strip()

    def clock(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def time(self) -> int:
        """Unix time, in seconds."""
        return int(time.time())

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    # -- changes

    def apply(self, step: Step) -> None:
        """Do what the step says; raises StepFailed."""
        from .act import apply

        apply(self, step)

    def write(self, path: str, text: str, mode: int) -> None:
        """Replace a file, atomically, under directories that only root can write."""
        rootfs.write(path, text.encode("utf-8", "surrogateescape"), mode)

    def remove(self, path: str) -> None:
        """Remove a file, under directories that only root can write."""
        rootfs.remove(path)

    def set(self, path: str, value: str) -> None:
        """Write a value to a kernel file, in one write as the kernel wants it."""
        kernel = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            os.write(kernel, value.encode())
        finally:
            os.close(kernel)

    def act(self, step: Step) -> None:
        """Run a program that changes the machine."""
        from .act import judge

        judge(step, self._spawn(step.argv, step.timeout, step.text))

    def _spawn(self, argv: tuple[str, ...], timeout: float, stdin: str) -> Answer:
        from .spawn import behind_env, spawned

        variables, words = behind_env(argv)  # without a start of env, which would only become the program
        path = self.which(words[0]) if variables else None
        if path is None:
            variables, words = {}, argv
            path = self.which(argv[0]) or argv[0]
        if "/" in path:
            try:
                return spawned(path, words, timeout, stdin, {**ENVIRONMENT, **variables}, argv)
            except FileNotFoundError:
                pass
        return Answer(127, "", f"{words[0]}: no such program")


def _unless_absent(ask: Callable[[str], Told], path: str, absent: tuple[int, ...] = ABSENT) -> Told | None:
    """What the system says of a path; None when that is absent, as `absent` has it."""
    try:
        return ask(path)
    except ValueError:
        return None
    except OSError as fault:
        if fault.errno in absent:
            return None
        raise _unreadable(path, fault) from None


def _text(path: str) -> str:
    source = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a named pipe would hold us for ever
    try:
        if stat.S_ISFIFO(os.fstat(source).st_mode):
            raise Unreadable(f"{path} is a named pipe, which nothing may make us wait for: remove it")
        text = _all_of(source).decode("utf-8", "surrogateescape")
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    finally:
        os.close(source)


def _all_of(source: int) -> bytes:
    """What can be read from an open file; a file of /proc says nothing of its size, and is read to its end too."""
    found = data = os.read(source, READ_AT_ONCE)
    while data:
        data = os.read(source, READ_AT_ONCE)
        found += data
    return found


def _runs(path: str) -> bool:
    """Whether it is a file that this account may execute."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def _unreadable(path: str, fault: OSError) -> Unreadable:
    return Unreadable(
        f"cannot read {path}: {fault.strerror}{advice(fault)}", denied=fault.errno in (errno.EACCES, errno.EPERM)
    )


def advice(fault: OSError) -> str:
    """What to do about it, in parentheses; empty where there is no better word than the fault's own."""
    if fault.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0:
        return " (this account is not root: set become: true)"
    return {
        errno.ENOSPC: " (free some space there)",
        errno.EROFS: " (mount it writable)",
        errno.EISDIR: " (move the directory away)",
        errno.EINVAL: " (the kernel does not take this value)",
    }.get(fault.errno or 0, "")
