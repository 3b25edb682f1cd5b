# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label expressions: the grammar, what a test means for labels that are there and that are not, hostile texts."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.label_expression import (
    DEEPEST,
    LONGEST,
    Expression,
    Joined,
    Negated,
    OfLabel,
    holds,
    parse,
)

LABELS: dict[str, Any] = {
    "rack": "r1",
    "cpu.vendor": "amd",
    "bcd.dev/site": "fra",
    "gpu": True,
    "slots": 4,
    "text-four": "4",
    "exact": "4.0",
    "release": "1.30",
    "minus": -2,
    "half": 0.5,
    "empty": "",
    "quoted": "'q'",
    "off": False,
    "words": "two words",
    "0a": "digit first",
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rack == 'r1'", True),
        ('rack == "r1"', True),
        ("rack == r1", True),
        ("rack==r1", True),
        ("rack == 'R1'", False),
        ("rack != 'r1'", False),
        ("rack != 'r2'", True),
        ("words == 'two words'", True),
        ("cpu.vendor == 'amd'", True),
        ("bcd.dev/site == fra", True),
        ("0a == 'digit first'", True),
        ("empty == ''", True),
        ("quoted == \"'q'\"", True),
        ("quoted == 'q'", False),
        ('quoted == "\'q"', False),
        # presence, whatever the value is
        ("gpu", True),
        ("off", True),
        ("empty", True),
        ("nothing", False),
        ("not nothing", True),
        # true and false as JSON writes them
        ("gpu == true", True),
        ("gpu == 'true'", True),
        ("off == false", True),
        ("off == true", False),
        # numbers, whether the label is one or reads as one
        ("slots == 4", True),
        ("slots == 4.0", True),
        ("slots == '4'", True),
        ("text-four == 4", True),
        ("text-four == '4'", True),
        ("exact == 4", True),
        ("exact == '4'", False),
        ("release == 1.3", True),
        ("release == '1.3'", False),
        ("rack == 4", False),
        ("rack != 4", True),
        ("slots < 5", True),
        ("slots < 4", False),
        ("slots <= 4", True),
        ("slots > 3.9", True),
        ("slots>=4", True),
        ("slots >= 5", False),
        ("text-four > 3", True),
        ("minus == -2", True),
        ("minus < -1", True),
        ("half <= 0.5", True),
        ("half < 0.5", False),
        ("rack < 5", False),
        ("rack >= 0", False),
        ("gpu > 0", False),
        # lists
        ("rack in [r0, 'r1', 3]", True),
        ("rack in [r0]", False),
        ("slots in [3, 4]", True),
        ("rack not in [r0, r2]", True),
        ("rack not in [r1]", False),
        # labels that are not there
        ("nothing == ''", False),
        ("nothing != ''", True),
        ("nothing < 1", False),
        ("nothing >= 0", False),
        ("nothing in [a]", False),
        ("nothing not in [a]", True),
        ("not nothing == a", True),
        # precedence: or is looser than and, not binds a test
        ("gpu or nothing and nothing", True),
        ("(gpu or nothing) and nothing", False),
        ("nothing and nothing or gpu", True),
        ("not nothing and gpu", True),
        ("not (nothing and gpu)", True),
        ("not gpu or gpu", True),
        ("not not gpu", True),
        ("rack == r1 and slots > 3 and gpu", True),
        (" ( ( gpu ) ) ", True),
        # a word that begins like an operator is a word
        ("order or android or notes or inside", False),
        ("rack == orange", False),
    ],
)
def test_an_expression_holds_by_the_labels(text: str, wanted: bool) -> None:
    assert holds(parse(text), LABELS) is wanted


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 1),
        ("   ", 4),
        ("rack ==", 8),
        ("rack = r1", 6),
        ("rack == r1 r2", 12),
        ("rack == 'r1", 9),
        ("== r1", 1),
        ("'rack' == r1", 1),
        ("rack == and", 9),
        ("and", 1),
        ("not", 4),
        ("rack not r1", 10),
        ("rack in r1", 9),
        ("rack in []", 10),
        ("rack in [a b]", 12),
        ("rack in [a", 11),
        ("rack < r1", 8),
        ("rack < '5'", 8),
        ("(rack", 6),
        ("rack)", 5),
        ("rack and", 9),
        ("rack or or gpu", 9),
        ("rack == -r1", 9),
        ("-rack", 1),
        ("rack & gpu", 6),
        ("rack && gpu", 6),
        ("!rack", 1),
        ("räck", 2),
        ("rack == {{ x }}", 9),
        ("rack == r1\x00", 11),
    ],
)
def test_what_is_none_is_refused_with_its_place(text: str, place: int) -> None:
    with pytest.raises(ValueError, match=rf"^at character {place} .*: correct it$"):
        parse(text)


def test_an_expression_is_a_tree_of_tests() -> None:
    assert parse("a and not b == 'c' or d in [e]") == Joined(
        "or",
        (Joined("and", (OfLabel("a", "there"), Negated(OfLabel("b", "==", ("c",))))), OfLabel("d", "in", ("e",))),
    )


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1000,
        "not " * 500 + "a",
        "(" * 900 + "a" + ")" * 900,
        "not (" * (DEEPEST // 2) + "not a" + ")" * (DEEPEST // 2),
        "a" * (LONGEST + 1),
        "a or " * 100000 + "a",
        "'" * LONGEST,
        "a in [" + "b," * 1000,
    ],
)
def test_a_hostile_text_is_refused_at_once(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match=r"(simplify|shorten|correct) it$"):
        parse(text)
    assert time.perf_counter() - started < 1


def test_as_deep_and_as_long_as_may_be_holds() -> None:
    assert holds(parse("(" * DEEPEST + "gpu" + ")" * DEEPEST), LABELS)
    long = "gpu and " * (LONGEST // 8 - 1) + "gpu"
    assert holds(parse(long.ljust(LONGEST)), LABELS)
    with pytest.raises(ValueError, match=f"has {LONGEST + 1}: shorten it$"):
        parse(long.ljust(LONGEST + 1))


@pytest.mark.parametrize(
    "label",
    ["9" * 100000, "9" * 31, "4." + "0" * 31, "1e999999999", "\u0661", " 4", "4 ", "+4", "0x4", "4.", ".4", "NaN"],
)
def test_a_label_that_only_looks_like_a_number_is_text(label: str) -> None:
    assert not holds(parse("a == 4 or a < 5 or a >= 5"), {"a": label})
    assert holds(parse("a"), {"a": label})


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (0.00001, "a > 0 and a < 1"),
        (1e300, "a > 4"),
        (10**40, "a > 4"),
        (-(10**40), "a < 4"),
        (0.1, "a == 0.1 and a <= 0.1"),
        (4.0, "a == 4"),
    ],
)
def test_a_label_that_is_a_number_counts_as_one_however_it_is_written(label: Any, text: str) -> None:
    assert holds(parse(text), {"a": label})


KEYS = st.sampled_from(["a", "b.c", "d/e"])
VALUES = st.one_of(st.integers(-99, 99), st.sampled_from(["x", "y z", "true"]))


def written(value: str | int) -> str:
    return repr(value)


def singles() -> st.SearchStrategy[tuple[str, Any]]:
    """A text, and what it is to say of labels."""
    return st.one_of(
        KEYS.map(lambda key: (key, lambda labels: key in labels)),
        st.tuples(KEYS, VALUES).map(
            lambda made: (
                f"{made[0]} == {written(made[1])}",
                lambda labels: made[0] in labels and labels[made[0]] == made[1],
            )
        ),
        st.tuples(KEYS, st.lists(VALUES, min_size=1, max_size=3)).map(
            lambda made: (
                f"{made[0]} not in [{', '.join(map(written, made[1]))}]",
                lambda labels: made[0] not in labels or labels[made[0]] not in made[1],
            )
        ),
    )


def wider(inside: st.SearchStrategy[tuple[str, Any]]) -> st.SearchStrategy[tuple[str, Any]]:
    return st.one_of(
        inside.map(lambda one: (f"not ({one[0]})", lambda labels: not one[1](labels))),
        st.tuples(inside, inside).map(
            lambda two: (f"({two[0][0]}) and ({two[1][0]})", lambda labels: two[0][1](labels) and two[1][1](labels))
        ),
        st.tuples(inside, inside).map(
            lambda two: (f"({two[0][0]}) or ({two[1][0]})", lambda labels: two[0][1](labels) or two[1][1](labels))
        ),
    )


@given(st.recursive(singles(), wider, max_leaves=6), st.dictionaries(KEYS, VALUES))
def test_it_means_what_python_means_by_the_same_words(made: tuple[str, Any], labels: dict[str, Any]) -> None:
    text, judge = made
    expression: Expression = parse(text)
    assert holds(expression, labels) is bool(judge(labels))


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_a_value_error(text: str) -> None:
    try:
        expression = parse(text)
    except ValueError as fault:
        said = str(fault)
        assert said.endswith("it"), said
        assert said.isprintable(), said
        return
    assert holds(expression, LABELS) in (True, False)
