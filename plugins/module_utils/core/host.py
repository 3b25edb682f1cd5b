# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The only door to the machine: reads, questions to programs, and the four kinds of step."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from typing import Any, Callable

from . import rootfs
from .errors import Hung, StepFailed, Unreadable
from .plan import Answer, Ask
from .step import File, Step, program_of

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ESRCH)  # the last: a process that ended
DECLINES = (errno.EINVAL, errno.ERANGE, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP)  # of a value
QUESTION_TIMEOUT = 60.0
MOST_SAID = 600  # characters of what a failed program said
# A package manager killed half-way leaves a broken database: it is asked to stop, and left alone.
PATIENT = frozenset(("apt-get", "apt", "dpkg", "dnf", "yum", "rpm", "zypper", "rpm-ostree", "transactional-update"))


class Host:
    """The running machine, as this process may see and change it."""

    predicted = False

    # -- reads: absent is None or empty; only ENOENT and its like count as absent, and ValueError: it is for a name that
    # no file can have, with a NUL or half a character

    def read(self, path: str) -> str | None:
        """The text of a file (bytes that are not UTF-8 survive as surrogates), None when absent."""
        try:
            with open(path, encoding="utf-8", errors="surrogateescape", opener=_open_at_once) as source:
                if stat.S_ISFIFO(os.fstat(source.fileno()).st_mode):
                    raise Unreadable(f"{path} is a named pipe, which nothing may make us wait for: remove it")
                return source.read()
        except ValueError:
            return None
        except OSError as fault:
            if fault.errno in ABSENT:
                return None
            raise _unreadable(path, fault) from None

    def file(self, path: str) -> File | None:
        """The file with its mode and owner, None when absent; a symbolic link is not followed."""
        try:
            seen = os.lstat(path)
        except ValueError:
            return None
        except OSError as fault:
            if fault.errno in ABSENT:
                return None
            raise _unreadable(path, fault) from None
        if not stat.S_ISREG(seen.st_mode):
            return File("", stat.S_IMODE(seen.st_mode), seen.st_uid, regular=False)
        return File(self.read(path) or "", stat.S_IMODE(seen.st_mode), seen.st_uid)

    def names(self, path: str) -> tuple[str, ...]:
        """What a directory holds, sorted; empty when it is absent."""
        try:
            return tuple(sorted(os.listdir(path)))
        except ValueError:
            return ()
        except OSError as fault:
            if fault.errno in ABSENT:
                return ()
            raise _unreadable(path, fault) from None

    def exists(self, path: str) -> bool:
        """Whether the path is there; a dangling symbolic link is not."""
        try:
            os.stat(path)
        except ValueError:
            return False
        except OSError as fault:
            if fault.errno in ABSENT:
                return False
            raise _unreadable(path, fault) from None
        return True

    def link(self, path: str) -> str | None:
        """Where a symbolic link points, as written; None when it is absent or no link."""
        try:
            return os.readlink(path)
        except ValueError:
            return None
        except OSError as fault:
            if fault.errno in (*ABSENT, errno.EINVAL):
                return None
            raise _unreadable(path, fault) from None

    def stamp(self, path: str) -> tuple[int, ...] | None:
        """What changes whenever a file does: device, inode, size, times of its content and of itself (ns).

        Links are followed; None when it is absent, and where nothing can be said of what it will be.
        """
        try:
            seen = os.stat(path)
        except ValueError:
            return None
        except OSError as fault:
            if fault.errno in ABSENT:
                return None
            raise _unreadable(path, fault) from None
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
        return shutil.which(program, path=PATH)

    def ask(self, argv: tuple[str, ...], timeout: float = QUESTION_TIMEOUT, stdin: str = "") -> Answer:
        """Run a program that changes nothing; a missing program answers 127, one that hangs fails the look."""
        return self._spawn(argv, timeout, stdin)

    def answer(self, question: Ask) -> Answer:
        """Answer a planner's question over private temporary files."""
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
        try:
            if step.kind == "write":
                self.write(step.path, step.text, step.mode)
            elif step.kind == "remove":
                self.remove(step.path)
            elif step.kind == "set":
                self.set(step.path, step.text)
            else:
                self.act(step)
        except OSError as fault:
            declined = step.kind == "set" and fault.errno in DECLINES
            message = f"cannot {step.action}: {fault.strerror or fault}{advice(fault)}"
            raise StepFailed(message, declined=declined) from None
        except UnicodeEncodeError:
            message = f"cannot {step.action}: it has half a character, which no file holds: correct what it is made of"
            raise StepFailed(message, retryable=False) from None

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
        answer = self._spawn(step.argv, step.timeout, step.text)
        if answer.rc not in step.ok:
            said = _end(" ".join((answer.err.strip() or answer.out.strip()).split())) or "it said nothing"
            raise StepFailed(f"cannot {step.action}: {' '.join(step.argv)} exited with {answer.rc}: {said}")

    def _spawn(self, argv: tuple[str, ...], timeout: float, stdin: str) -> Answer:
        environment = {"PATH": PATH, "LC_ALL": "C", "LANG": "C", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
        try:
            # The helper and the agent run this without AnsibleModule, whose run_command knows neither a process group
            # nor a timeout.
            child = subprocess.Popen(  # pylint: disable=ansible-bad-function
                argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                cwd="/",
                start_new_session=True,
                executable=self.which(argv[0]) or argv[0],
            )
        except FileNotFoundError:
            return Answer(127, "", f"{argv[0]}: no such program")
        try:
            out, err = child.communicate(stdin.encode() if stdin else None, timeout=timeout)
        except subprocess.TimeoutExpired:
            _stop(child, program_of(argv)[0])
            raise Hung(f"{' '.join(argv)} did not end within {timeout:g} seconds: see what it waits for") from None
        return Answer(child.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _stop(child: subprocess.Popen[bytes], program: str) -> None:
    """Ask the whole process group to end, then make it, unless it is a package manager."""
    for sign in (signal.SIGTERM,) if program in PATIENT else (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sign)
            child.communicate(timeout=10)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _end(said: str) -> str:
    """The end of what a program said, in whole words: half a secret is none that could be masked."""
    return said if len(said) <= MOST_SAID else said[-MOST_SAID:].partition(" ")[2] or "..."


def _unreadable(path: str, fault: OSError) -> Unreadable:
    return Unreadable(
        f"cannot read {path}: {fault.strerror}{advice(fault)}", denied=fault.errno in (errno.EACCES, errno.EPERM)
    )


def _open_at_once(path: str, flags: int) -> int:
    """Open for reading without waiting for anyone: a named pipe in a file's place would hold the pass for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


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
