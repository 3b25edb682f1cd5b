# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our NamedTuple is typing's: each is made of the same class body, and both do the same."""

# The very type of a value decides here.
# pylint: disable=unidiomatic-typecheck

from __future__ import annotations

import copy
import importlib.util
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import named
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.named import NamedTuple
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.past import Past
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.seen import File


def made(base: Any) -> Any:
    """The class of one body."""

    class Value(base):  # type: ignore[misc]
        """A value."""

        name: str
        size: int = 3
        tags: tuple[str, ...] = ()

        @property
        def double(self) -> int:
            """Something that is made of it."""
            return self.size * 2

    return Value


Ours: Any = made(NamedTuple)
Theirs: Any = made(typing.NamedTuple)
Ours.__qualname__ = "Ours"  # where pickle finds it


class Derived(Ours):  # type: ignore[misc]
    """A class of its own above one."""

    __slots__ = ()


ACTS: dict[str, Callable[[Any], Any]] = {
    "all by place": lambda kind: kind("a", 1, ("x",)),
    "defaults": lambda kind: kind("a"),
    "by name": lambda kind: kind(tags=("y",), name="b"),
    "both": lambda kind: kind("a", tags=("y",)),
    "too few": lambda kind: kind(),
    "too many": lambda kind: kind("a", 1, (), 4),
    "unknown": lambda kind: kind("a", colour=1),
    "twice": lambda kind: kind("a", name="b"),
    "replaced": lambda kind: kind("a")._replace(size=9),
    "replaced wrongly": lambda kind: kind("a")._replace(colour=9),
    "as a mapping": lambda kind: kind("a")._asdict(),
    "made of a list": lambda kind: kind._make(["a", 2, ()]),
    "made of too few": lambda kind: kind._make(["a", 2]),
    "shown": lambda kind: repr(kind("a")),
    "its fields": lambda kind: (kind._fields, kind._field_defaults),
    "a field": lambda kind: (kind("a").name, kind("a").size, kind("a")[1], kind("a").double),
    "set": lambda kind: setattr(kind("a"), "size", 1),
    "set what is no field": lambda kind: setattr(kind("a"), "colour", 1),
    "equal": lambda kind: (kind("a") == ("a", 3, ()), hash(kind("a")), kind("a") < kind("b"), len(kind("a"))),
    "unpacked": lambda kind: [*kind("a")],
    "copied": lambda kind: (copy.copy(kind("a")), copy.deepcopy(kind("a"))),
    "said of it": lambda kind: kind.__doc__,
}


def done(act: Callable[[Any], Any], kind: Any) -> Any:
    try:
        return act(kind)
    except (TypeError, ValueError, AttributeError) as fault:  # a field that is none: by Python's version
        return "set" if isinstance(fault, AttributeError) else "refused"


@pytest.mark.parametrize("act", ACTS.values(), ids=[*ACTS])
def test_it_does_what_typing_s_does(act: Callable[[Any], Any]) -> None:
    assert done(act, Ours) == done(act, Theirs)


@pytest.mark.parametrize("act", ACTS.values(), ids=[*ACTS])
def test_it_does_without_what_python_promises_nobody(
    act: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("_collections._tuplegetter")
    there = importlib.util.spec_from_file_location("named_alone", str(named.__file__))
    assert there is not None
    assert there.loader is not None
    alone = importlib.util.module_from_spec(there)
    there.loader.exec_module(alone)
    assert done(act, made(alone.NamedTuple)) == done(act, Theirs)


@given(
    st.lists(st.integers(), max_size=5), st.dictionaries(st.sampled_from(["name", "size", "tags", "colour"]), st.text())
)
def test_it_takes_and_refuses_what_typing_s_does(by_place: list[int], by_name: dict[str, str]) -> None:
    assert done(lambda kind: kind(*by_place, **by_name), Ours) == done(lambda kind: kind(*by_place, **by_name), Theirs)
    assert done(lambda kind: kind("a")._replace(**by_name), Ours) == done(
        lambda kind: kind("a")._replace(**by_name), Theirs
    )


def test_a_copy_is_of_its_class() -> None:
    for value in (Ours("a", 1), File("text", 0o600), Past(boot_id="x")):
        for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):  # noqa: S301 - of our own
            assert (type(again), again) == (type(value), value)


def test_no_value_has_attributes_beside_its_fields() -> None:
    assert not hasattr(Ours("a"), "__dict__")


def test_what_is_derived_of_a_class_has_its_fields() -> None:
    value = Derived("a", size=4)
    assert (value.double, value._replace(name="b"), repr(value)) == (
        8,
        Derived("b", 4),
        "Derived(name='a', size=4, tags=())",
    )
    assert type(value._replace(name="b")) is Derived
