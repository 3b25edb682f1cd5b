# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong, as the planners and the runner raise it.

Every message is one sentence: the thing, the value, and what the operator does next.
"""

from __future__ import annotations


class Fault(Exception):
    """A fault with a sentence for the operator; the kinds below say what follows from it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Refused(Fault):
    """The settings ask for something that will never be done: terminal, and nothing is written."""


class NotReady(Fault):
    """What a whole unit needs is not there yet; a later pass goes on."""


class StepFailed(Fault):
    """A step, or a look that it needs, failed; retryable unless trying again cannot help.

    `declined`: the kernel does not take this value from anyone, which is no passing fault.
    """

    def __init__(self, message: str, retryable: bool = True, declined: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.declined = declined


class Hung(StepFailed):
    """A program did not end in its time."""


class Unreadable(StepFailed):
    """A path exists and cannot be read: an I/O error, or a permission that this account lacks."""

    def __init__(self, message: str, denied: bool = False) -> None:
        super().__init__(message)
        self.denied = denied


SEEN_AS_ROOT = "it is seen as root"  # after what an unprivileged look knows the rest


class NotKnownYet(Exception):
    """The predicted host cannot know this before `after` has happened (a clause: "the module tun is loaded")."""

    def __init__(self, after: str) -> None:
        super().__init__(after)
        self.after = after
