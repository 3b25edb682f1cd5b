# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A value that is not known yet, or whose look failed: it can be carried, never used by mistake."""

from __future__ import annotations

from typing import Any, Callable, NoReturn, TypeVar, cast

from .errors import NotKnownYet, NotReady, StepFailed

T = TypeVar("T")


class Unknown:
    """Raises why it is not there on any use: comparing, iterating, printing, reading an attribute."""

    def __init__(self, why: Exception) -> None:
        self.__dict__["why"] = why

    def _no(self, *_given: object, **_named: object) -> NoReturn:
        raise self.__dict__["why"]

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _no
    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = __getattr__ = _no
    __str__ = __repr__ = __format__ = __add__ = __radd__ = _no
    __hash__ = _no


def later(ask: Callable[..., T], *given: Any) -> T:
    """The answer of `ask`, or a value that raises when a planner touches it.

    So one lane says that it is known later, waits or fails, where the others go on (`Todo.lane`).
    """
    try:
        return ask(*given)
    except (NotKnownYet, NotReady, StepFailed) as why:
        return cast(T, Unknown(why))


def is_known(value: object) -> bool:
    """Whether a value is there, and raises nothing when it is used."""
    return not isinstance(value, Unknown)
