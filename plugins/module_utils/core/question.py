# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to a host as values that can be kept and asked again, and digests by which answers compare.

A question is the name of a method of Host with what it is given. Of an answer nothing is kept but its digest, so that
no record of what was asked tells what a host holds.
"""

# The very type of a value decides here.
# pylint: disable=unidiomatic-typecheck

from __future__ import annotations

import sys
import time

from .errors import Fault
from .json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .host import Host

    Question = tuple[Any, ...]

BYTES = 16  # of a digest
SIGHTS = "look."  # where the functions of sights stand, below the package
PACKAGE = __name__[: -len("core.question")]
DIRECT = ("read", "file", "names", "exists", "link", "stamp", "which", "boot_id", "foretells", "ask", "get", "unary")
FOLLOWING = ("follows", "answer")  # of which the files' stamps are compared
YOUNG = 100_000_000  # ns: a file that was changed so lately can change again and have the same times
COARSE = 10_000_000  # ns: of what no file system that counts in less is often a multiple
LONG = 3_000_000_000  # ns: where a time is one, as FAT's and of ext's small inodes, which count in up to two seconds


def _hexdigest() -> Callable[[bytes], str]:
    try:
        try:
            from _blake2 import blake2b  # hashlib costs more than all that is to be digested
        except ImportError:
            from hashlib import blake2b
        blake2b(b"", digest_size=BYTES)
    except (ImportError, ValueError):  # a system that allows only what its authorities have approved
        from hashlib import sha256

        return lambda data: sha256(data).hexdigest()[: 2 * BYTES]
    return lambda data: blake2b(data, digest_size=BYTES).hexdigest()


hexdigest = _hexdigest()


def digest(value: Any) -> str:
    """The digest of an answer, of its type and of what it is."""
    if isinstance(value, Fault):
        value = (type(value).__name__, sorted(vars(value).items()))
    if type(value) is str:
        said = "=" + value
    elif isinstance(value, tuple):
        said = f"{type(value).__name__} {tuple(value)!r}"
    else:
        said = repr(value)
    return hexdigest(said.encode("utf-8", "surrogatepass"))


class Seen:
    """An answer, or the fault that came in its place; its digest may be that of what it follows from."""

    __slots__ = ("_digest", "_fault", "_value")

    def __init__(self, value: Any, fault: Fault | None, stamps: str) -> None:
        self._value, self._fault, self._digest = value, fault, stamps

    @classmethod
    def of(cls, ask: Callable[..., Any], given: tuple[Any, ...], stamps: str = "") -> Seen:
        """What is answered now."""
        try:
            return cls(ask(*given), None, stamps)
        except Fault as fault:
            return cls(None, fault, stamps)

    def answer(self) -> Any:
        """The answer; raises the fault."""
        if self._fault is not None:
            raise self._fault
        return self._value

    @property
    def digest(self) -> str:
        """That of the answer, or of what stands for it."""
        if not self._digest:
            self._digest = digest(self._value if self._fault is None else self._fault)
        return self._digest


def question_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Question | None:
    """A sight as a question; None where it could not be found again, or was given what no record can hold."""
    module, name = function.__module__, function.__name__
    if not module.startswith(PACKAGE + SIGHTS) or getattr(sys.modules[module], name, None) is not function:
        return None
    if not all(is_plain(given) for given in arguments):
        return None
    return ("sight", module[len(PACKAGE) :], name, dumps(arguments))


def copied(value: Any) -> Any:
    """A value of a sight for those who may change what they get."""
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return tuple(copied(item) for item in value) if type(value) is tuple else value


def is_plain(value: Any) -> bool:
    """Whether JSON gives back the very value."""
    if type(value) is list:
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    return value is None or type(value) in (str, int, bool, float)


def shown(host: Host, question: Question) -> str:
    """The digest of what a host answers now; "" where nothing can be said of it, as of what a prediction decides.

    Raises ValueError for what is no question, NotKnownYet where a prediction cannot know.
    """
    kind, *given = question
    try:
        if kind in FOLLOWING:
            if host.predicted and host.foretells(given[0]):
                return ""
            stamps = [_stamp(host, path) for path in given[1]]
            return "" if "" in stamps else digest(tuple(stamps))
        if kind == "stamp":
            found = _stamp(host, given[0])
            return "" if found == "" else digest(found)
        return digest(again(host, question))
    except Fault as fault:
        return "" if kind in FOLLOWING else digest(fault)  # which tells nothing of the other files


def again(host: Host, question: Question) -> Any:
    """The answer to a question that has one of its own; raises ValueError for what is none."""
    kind, *given = question
    if kind == "sight":
        return host.sight(_function(given[0], given[1]), *loads(given[2]))
    if kind not in DIRECT:
        raise ValueError(f"{kind!r} is no question")
    if kind == "boot_id":
        return host.boot_id()
    if kind == "unary":
        return host.unary(given[0], given[1], timeout=given[2])
    return getattr(host, kind)(*given)


def _stamp(host: Host, path: str) -> Any:
    """The stamp of a file; "" of one that a prediction has laid there, of which nothing can be said."""
    found = host.stamp(path)
    return "" if found is None and host.predicted and host.exists(path) else found


def is_young(stamp: tuple[int, ...] | None) -> bool:
    """Whether the file of a stamp that was taken now can change without another stamp."""
    if stamp is None:
        return False
    now = time.time_ns()
    written, changed = stamp[-2:]
    last = max(written, changed) if written <= now else changed  # FAT may tell when a file was made in place of changed
    return now - last < (YOUNG if last % COARSE else LONG)


def _function(module: str, name: str) -> Callable[..., Any]:
    if not module.startswith(SIGHTS) or not module.replace(".", "_").isidentifier():
        raise ValueError(f"{module!r} has no sights")
    __import__(PACKAGE + module)
    found: Callable[..., Any] = getattr(sys.modules[PACKAGE + module], name)
    return found
