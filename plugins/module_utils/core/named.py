# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NamedTuple for what every pass imports: typing's own costs a quiet pass more than all that it looks at.

A class is written as one of typing's, and behaves as one; under TYPE_CHECKING it is one. Its file begins so:

    TYPE_CHECKING = False
    if TYPE_CHECKING:
        from typing import NamedTuple
    else:
        from .named import NamedTuple

typing imports re, functools and collections, and makes each class by compiling a text; here nothing is compiled.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

try:  # as collections.namedtuple has it, and does without it
    from _collections import _tuplegetter  # type: ignore[import-not-found]
except ImportError:  # it is nobody's promise

    def _tuplegetter(at: int, doc: str) -> property:
        return property(lambda value: value[at], doc=doc)


class _Named(type):
    """Makes a tuple's class of the annotations of a class body."""

    def __new__(cls, name: str, bases: tuple[type, ...], inside: dict[str, Any]) -> Any:
        if bases == (tuple,) or bases[0]._fields:  # type: ignore[attr-defined]
            # NamedTuple itself, and what is derived from a class made here
            return super().__new__(cls, name, bases, inside)
        fields = tuple(inside["__annotations__"])  # as `from __future__ import annotations` has it in every Python
        defaults = {field: inside[field] for field in fields if field in inside}
        inside.update({field: _tuplegetter(at, f"Alias for field number {at}") for at, field in enumerate(fields)})
        inside.update(__slots__=(), __match_args__=fields, _fields=fields, _field_defaults=defaults)
        return super().__new__(cls, name, bases, inside)


class NamedTuple(tuple, metaclass=_Named):  # type: ignore[type-arg]
    """What a value of such a class can do, beside what a tuple can."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _field_defaults: dict[str, Any]

    def __new__(cls, *given: Any, **named: Any) -> Any:
        fields = cls._fields
        if len(given) == len(fields) and not named:
            return tuple.__new__(cls, given)
        if len(given) > len(fields):
            raise TypeError(f"{cls.__name__} takes {len(fields)} values, and {len(given)} were given")
        found = [*given]
        for field in fields[len(given) :]:
            if field in named:
                found.append(named.pop(field))
            elif field in cls._field_defaults:
                found.append(cls._field_defaults[field])
            else:
                raise TypeError(f"{cls.__name__} needs a value for {field}")
        if named:
            raise TypeError(f"{cls.__name__} does not take {', '.join(named)}, or was given it twice")
        return tuple.__new__(cls, found)

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        found = tuple(values)
        if len(found) != len(cls._fields):
            raise TypeError(f"{cls.__name__} takes {len(cls._fields)} values, and {len(found)} were given")
        return tuple.__new__(cls, found)

    def _replace(self, **named: Any) -> Any:
        found = [named.pop(field, value) for field, value in zip(self._fields, self)]
        if named:
            raise TypeError(f"{type(self).__name__} has no {', '.join(named)}")
        return tuple.__new__(type(self), found)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self))

    def __repr__(self) -> str:
        said = ", ".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
        return f"{type(self).__name__}({said})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)
