# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm: version, config validate, join and reset."""

from __future__ import annotations

import time
from typing import NamedTuple

from .join_configuration import Wrong, read
from .worker import Worker

TRACE = "To see the stack trace of this error execute with --v=5 or higher"


class Answer(NamedTuple):
    """What a program answered; `text` is both its outputs, as a terminal shows them."""

    rc: int
    out: str
    err: str
    text: str


class Stopped(Exception):
    """kubeadm ends with this error; `rc` its status."""

    def __init__(self, message: str, rc: int = 1) -> None:
        super().__init__(message)
        self.rc = rc


class Said:
    """What is printed, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def out(self, line: str) -> None:
        """A line of standard output."""
        self.lines.append(("out", line + "\n"))

    def err(self, line: str) -> None:
        """A line of standard error."""
        self.lines.append(("err", line + "\n"))

    def warn(self, where: str, line: str) -> None:
        """A warning of the log."""
        self.err(f"W{time.strftime('%m%d %H:%M:%S')}.000000 {4242:7d} {where}] {line}")

    def answer(self, rc: int) -> Answer:
        """All of it."""
        out, err = ("".join(line for kind, line in self.lines if kind == one) for one in ("out", "err"))
        return Answer(rc, out, err, "".join(line for _kind, line in self.lines))


def kubeadm(worker: Worker, argv: tuple[str, ...], stdin: str = "") -> Answer:
    """Run kubeadm with these words, the program's own first."""
    from . import kubeadm_join, kubeadm_reset

    said = Said()
    words = [word for word in argv[1:] if not word.startswith(("-v", "--v="))]
    try:
        if words[:1] == ["version"]:
            said.out(
                f"v{worker.version}"
                if options(words).get("output", options(words).get("o")) == "short"
                else _long(worker)
            )
        elif words[:2] == ["config", "validate"]:
            _validate(worker, options(words), said)
        elif words[:1] == ["join"]:
            kubeadm_join.join(worker, options(words), said)
        elif words[:1] == ["reset"]:
            kubeadm_reset.reset(worker, options(words), stdin, said)
        else:
            raise Stopped(f'unknown command "{" ".join(words)}" for "kubeadm"')
    except Stopped as fault:
        said.err(f"error: {fault}" if worker.minor >= 32 and str(fault) else str(fault))
        said.err(TRACE)
        return said.answer(fault.rc)
    return said.answer(0)


def _long(worker: Worker) -> str:
    return f'kubeadm version: &version.Info{{Major:"1", Minor:"{worker.minor}", GitVersion:"v{worker.version}"}}'


def options(words: list[str]) -> dict[str, str]:
    """--name=value, --name value, -o value and --name alone (""), without their dashes."""
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        if word.startswith("-"):
            name, equals, value = word.lstrip("-").partition("=")
            follows = words[at + 1] if at + 1 < len(words) and not words[at + 1].startswith("-") else ""
            found[name] = value if equals else follows if name not in ("force", "f") else ""
    return found


def _validate(worker: Worker, given: dict[str, str], said: Said) -> None:
    """kubeadm config validate, since 1.28: strict."""
    if worker.minor < 28:
        raise Stopped("unknown flag: --config")
    try:
        join = read(_file(worker, given), worker.minor, worker.hostname, strict=True)
    except Wrong as fault:
        raise Stopped(str(fault), status(worker, fault)) from None
    for line in join.warnings:
        said.warn("common.go:101", line)
    said.out("ok")


def status(worker: Worker, fault: Wrong) -> int:
    """3 was for validation once."""
    return 3 if fault.is_validation and worker.minor < 35 else 1


def _file(worker: Worker, given: dict[str, str]) -> str:
    path = given.get("config", "")
    text = worker.read(path)
    if text is None:
        raise Stopped(f'unable to read config from "{path}": open {path}: no such file or directory')
    return text


def configuration(worker: Worker, given: dict[str, str]) -> str:
    """The text of the file that --config names; raises Stopped."""
    return _file(worker, given)
