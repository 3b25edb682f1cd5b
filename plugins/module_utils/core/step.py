# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps: the closed set of things that a pass may do to a machine, as values.

A unit's planner returns steps, the runner applies them, check mode prints them; nothing else changes a host.
"""

from __future__ import annotations

from typing import NamedTuple

from .outcome import DISRUPTIONS
from .seen import File

__all__ = (
    "DISRUPTIONS",
    "Effect",
    "File",
    "Step",
    "command_line",
    "fail",
    "known_after",
    "program_of",
    "remove",
    "run",
    "set_value",
    "write",
)

# Programs a unit runs are bounded: 20 minutes each.
TIMEOUT = 1200.0


class Effect(NamedTuple):
    """What a `run` step will have changed, declared for the predicted host of check mode.

    ``kind`` is one of

    * ``file``: ``path`` then holds ``value`` (a kernel value too),
    * ``gone``: ``path`` and all below it is absent then,
    * ``unknown``: what ``path`` holds is known only after ``value`` (a clause such as "the initramfs is rebuilt"),
    * ``appears``: what is absent under ``path`` now may be there after ``value``,
    * ``program``: the answers of the program named ``path``, or of command lines that begin so ("nvidia-smi -L"), are
      known only after ``value``,
    * ``answers``: the command line ``path`` (see ``command_line``) then exits 0 and prints ``value``,
    * ``fails``: the command line ``path`` then exits 1 and prints ``value``.
    """

    kind: str
    path: str
    value: str = ""


class Step(NamedTuple):
    """One change of the machine. Build it with the functions below; kinds never compare equal."""

    kind: str  # "write", "remove", "set", "run"; "fail": no means for it here; "later": known only after something
    action: str  # its sentence, in the imperative: "load the module tun"
    path: str = ""  # write, remove, set: the file
    text: str = ""  # write: the whole content; set: the value; run: standard input
    mode: int = 0o644  # write
    argv: tuple[str, ...] = ()  # run
    ok: tuple[int, ...] = (0,)  # run: exit statuses that mean success
    timeout: float = TIMEOUT  # run: seconds
    disruption: str = "none"
    lane: str = ""  # a step that failed or was held back ends its own lane only
    barrier: bool = False  # look and plan again before the rest of the lane
    settle: float = 0.0  # seconds that the lane may take, after a barrier, to stop being NotReady
    owes: tuple[str, ...] = ()  # follow-ups recorded before the step, in case the pass dies in between
    pays: tuple[str, ...] = ()  # follow-ups that this step settles
    effects: tuple[Effect, ...] = ()
    secret: str = ""  # run: the reference of the secret that takes the place of secret.SLOT in `text`
    tries: str = ""  # may come to nothing: under this name, what came of it is recorded for this boot
    # Tried before in this boot: counts as a change only if the read-back moves; run: counts for none by itself, as the
    # refresh of an index does; fail: retryable.
    retry: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What the step does, without its sentence: equal keys are the same change."""
        return (self.kind, self.path, self.text, self.mode, self.argv)


def program_of(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command line without an `env NAME=value ...` before it."""
    if argv[:1] != ("env",):
        return argv
    at = next((at for at, word in enumerate(argv[1:], 1) if "=" not in word), len(argv))
    return argv[at:]


def command_line(argv: tuple[str, ...], stdin: str = "") -> str:
    """How an effect names a command line: its words joined by a space, what it reads behind " <"."""
    return " ".join(argv) + (f" <{stdin.strip()}" if stdin else "")


# The builders, one a kind. All take the keywords that a step of any kind may have; those of its kind come first.


def write(
    path: str,
    text: str,
    action: str,
    *,
    mode: int = 0o644,
    lane: str = "",
    disruption: str = "none",
    barrier: bool = False,
    settle: float = 0.0,
    owes: tuple[str, ...] = (),
    pays: tuple[str, ...] = (),
    effects: tuple[Effect, ...] = (),
) -> Step:
    """Replace a file of ours, whole and atomically."""
    return Step(
        "write",
        action,
        path=path,
        text=text,
        mode=mode,
        lane=lane,
        disruption=disruption,
        barrier=barrier,
        settle=settle,
        owes=owes,
        pays=pays,
        effects=effects,
    )


def remove(
    path: str,
    action: str,
    *,
    lane: str = "",
    disruption: str = "none",
    barrier: bool = False,
    settle: float = 0.0,
    owes: tuple[str, ...] = (),
    pays: tuple[str, ...] = (),
    effects: tuple[Effect, ...] = (),
) -> Step:
    """Remove a file; one that is already absent counts as removed."""
    return Step(
        "remove",
        action,
        path=path,
        lane=lane,
        disruption=disruption,
        barrier=barrier,
        settle=settle,
        owes=owes,
        pays=pays,
        effects=effects,
    )


def set_value(
    path: str,
    value: str,
    action: str,
    *,
    tries: bool = False,
    retry: bool = False,
    lane: str = "",
    disruption: str = "none",
    barrier: bool = False,
    settle: float = 0.0,
    owes: tuple[str, ...] = (),
    pays: tuple[str, ...] = (),
    effects: tuple[Effect, ...] = (),
) -> Step:
    """Write a value to a file of /proc or /sys."""
    return Step(
        "set",
        action,
        path=path,
        text=value,
        tries=f"{path}={value}" if tries else "",
        retry=retry,
        lane=lane,
        disruption=disruption,
        barrier=barrier,
        settle=settle,
        owes=owes,
        pays=pays,
        effects=effects,
    )


def run(
    argv: tuple[str, ...],
    action: str,
    *,
    ok: tuple[int, ...] = (0,),
    timeout: float = TIMEOUT,
    stdin: str = "",
    secret: str = "",
    tries: str = "",
    retry: bool = False,
    lane: str = "",
    disruption: str = "none",
    barrier: bool = False,
    settle: float = 0.0,
    owes: tuple[str, ...] = (),
    pays: tuple[str, ...] = (),
    effects: tuple[Effect, ...] = (),
) -> Step:
    """Run a program; an exit status outside `ok` fails the step.

    `secret`: the reference of the secret that goes where `stdin` has core.secret.SLOT; while it is not given, the unit
    waits for it, and says so in `needs`.

    With `tries`, a name, a failure is no failed step: what was said is in `Past.tried` under the name for this boot,
    the lane ends, and the planner says what the unit waits for.
    """
    return Step(
        "run",
        action,
        argv=argv,
        ok=ok,
        timeout=timeout,
        text=stdin,
        secret=secret,
        tries=tries,
        retry=retry,
        lane=lane,
        disruption=disruption,
        barrier=barrier,
        settle=settle,
        owes=owes,
        pays=pays,
        effects=effects,
    )


def fail(action: str, message: str, *, lane: str = "", retryable: bool = True) -> Step:
    """A step that this host has no means for: it fails with the message, and ends its lane only."""
    return Step("fail", action, text=message, lane=lane, retry=retryable)


def known_after(what: str, after: str, *, lane: str = "") -> Step:
    """A line of check mode: `what` is known only after something has happened, and the lane ends."""
    return Step("later", f"{what}: known after {after}", path=what, lane=lane)
