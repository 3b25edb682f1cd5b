# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A step, done on the machine: what came of it, in the words of a failed step where it came to nothing."""

from __future__ import annotations

import errno

from .errors import StepFailed
from .host import advice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .host import Host
    from .seen import Answer
    from .step import Step

DECLINES = (errno.EINVAL, errno.ERANGE, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP)  # of a value
MOST_SAID = 600  # characters of what a failed program said


def apply(host: Host, step: Step) -> None:
    """Do what the step says; raises StepFailed."""
    try:
        if step.kind == "write":
            host.write(step.path, step.text, step.mode)
        elif step.kind == "remove":
            host.remove(step.path)
        elif step.kind == "set":
            host.set(step.path, step.text)
        else:
            host.act(step)
    except OSError as fault:
        declined = step.kind == "set" and fault.errno in DECLINES
        message = f"cannot {step.action}: {fault.strerror or fault}{advice(fault)}"
        raise StepFailed(message, declined=declined) from None
    except UnicodeEncodeError:
        message = f"cannot {step.action}: it has half a character, which no file holds: correct what it is made of"
        raise StepFailed(message, retryable=False) from None


def judge(step: Step, answer: Answer) -> None:
    """Raise StepFailed for a program whose exit status does not mean success, with what it said."""
    if answer.rc not in step.ok:
        said = _end(" ".join((answer.err.strip() or answer.out.strip()).split())) or "it said nothing"
        raise StepFailed(f"cannot {step.action}: {' '.join(step.argv)} exited with {answer.rc}: {said}")


def _end(said: str) -> str:
    """The end of what a program said, in whole words: half a secret is none that could be masked."""
    return said if len(said) <= MOST_SAID else said[-MOST_SAID:].partition(" ")[2] or "..."
