# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's configuration: read strictly, believed only when no one else could have written it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.config import pinned, refuse_if_outside
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.config_text import parse_config
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.pins import Pins, pins
from tests.unit.fake_host import FakeHost

OUTSIDE = "host.unit: this host's configuration is managed outside bcd ([host] units = false in root's config.toml)"


def test_tables_of_strings_integers_and_booleans() -> None:
    text = """
# a comment
join_signing_key_pin = "sha256/ab+/="  # kept out of band
command_root_sha256 = 'x'

[host]
units = true
[kubernetes]
allowed_clusters = "https://a:6443#sha256:00"
retries = 3
"""
    assert parse_config(text) == {
        "": {"join_signing_key_pin": "sha256/ab+/=", "command_root_sha256": "x"},
        "host": {"units": True},
        "kubernetes": {"allowed_clusters": "https://a:6443#sha256:00", "retries": 3},
    }


@pytest.mark.parametrize(
    "line",
    [
        "units",
        "units = ",
        "units = flase",
        'units = "a',
        "units = true false",
        "[host",
        "[[host]]",
        "units = [1]",
        "a = 1\na = 2",
        "a = 1.5",
        "a = 1_000",
        "a = 0x10",
        "a = " + "1" * 5000,
        "a.b = 1",
        '"a" = 1',
        'a = "\\u0041"',
        'a = """b"""',
        "[a]\n[a]",
        "[]",
        "a = 1 b = 2",
    ],
)
def test_anything_else_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_config("\n" + line)
    assert refused.value.message.startswith(f"{CONFIG} line ")


def test_a_host_that_is_managed_outside_is_left_alone() -> None:
    with pytest.raises(Refused) as refused:
        refuse_if_outside(FakeHost({CONFIG: "[host]\nunits = false\n"}))
    assert refused.value.message == OUTSIDE
    refuse_if_outside(FakeHost({CONFIG: "[host]\nunits = true\n"}))
    refuse_if_outside(FakeHost({CONFIG: ""}))
    refuse_if_outside(FakeHost())
    with pytest.raises(Refused, match="set it to true or false"):
        refuse_if_outside(FakeHost({CONFIG: "[host]\nunits = 0\n"}))


@pytest.mark.parametrize("directory", ["/", "/etc", "/etc/bcd"])
@pytest.mark.parametrize("seen", [File("", 0o777, regular=False), File("", 0o755, uid=1000, regular=False)])
@pytest.mark.parametrize("there", [True, False])
def test_a_directory_in_which_others_could_have_swapped_it_is_refused(directory: str, seen: File, there: bool) -> None:
    host = FakeHost({CONFIG: "[host]\nunits = false\n"} if there else {})
    host.files[directory] = seen
    with pytest.raises(Refused, match=f"^{directory} is not a directory only root can write"):
        refuse_if_outside(host)
    host.files[directory] = File("", 0o755, regular=False)
    if not there:
        refuse_if_outside(host)


@pytest.mark.parametrize(
    "seen", [File("", mode=0o664), File("", mode=0o646), File("", uid=1000), File("", regular=False)]
)
def test_a_configuration_that_others_could_have_written_is_refused(seen: File) -> None:
    host = FakeHost()
    host.files[CONFIG] = seen
    with pytest.raises(Refused) as refused:
        refuse_if_outside(host)
    assert refused.value.message == f"{CONFIG} must be a regular file root owns that no one else can write"


def test_the_pins_are_read_from_it() -> None:
    digest, key = "0f" * 32, "sha256/" + "A" * 43 + "="
    text = f'command_root_sha256 = "{digest}"\n[helper]\njoin_signing_key_pin = "{key}"\n'
    assert pinned(FakeHost({CONFIG: text})) == Pins(frozenset({digest}), key)
    assert (
        pinned(FakeHost()) == pinned(FakeHost({CONFIG: 'command_root_sha256 = ""\n[host]\nunits = true\n'})) == Pins()
    )


def test_a_pin_that_is_none_stops_everything() -> None:
    for text in (
        'command_root_sha256 = "00"\n',
        "command_root_sha256 = 0\n",
        'join_signing_key_pin = "sha256/ab+/="\n',
    ):
        with pytest.raises(Refused, match=f"^{CONFIG}: .*: have root correct it$"):
            pinned(FakeHost({CONFIG: text}))


@pytest.mark.parametrize("seen", [File("", mode=0o664), File("", uid=1000), File("", regular=False)])
def test_pins_that_others_could_have_written_are_refused(seen: File) -> None:
    host = FakeHost()
    host.files[CONFIG] = seen
    with pytest.raises(Refused, match=r"must be a regular file root owns that no one else can write$"):
        pinned(host)


@given(st.text(st.sampled_from("abkru =\"'[]#\\\n.0123456789-_\t\u2028\udc80é") | st.characters(), max_size=200))
def test_whatever_stands_in_it_is_read_or_refused(text: str) -> None:
    try:
        tables = parse_config(text)
        pins(tables)
    except Refused as fault:
        told = fault.message
    else:
        told = CONFIG
        assert {type(value) for table in tables.values() for value in table.values()} <= {str, int, bool}
    assert told.startswith(CONFIG)


# What a line may be, as patterns: the grammar of our part of TOML.
TABLE = re.compile(r"\[\s*([A-Za-z0-9_.-]+)\s*\]\s*(#.*)?", re.DOTALL)
PAIR = re.compile(
    r"""([A-Za-z0-9_-]+)\s*=\s*("(?:[^"\\]|\\["\\])*"|'[^']*'|true\b|false\b|[+-]?[0-9]{1,18}(?![0-9]))\s*(#.*)?""",
    re.DOTALL,
)
PIECES = [
    "a",
    "b-1",
    "[",
    "]",
    "=",
    " ",
    "\t",
    '"',
    "'",
    "\\",
    '\\"',
    "#",
    "true",
    "false",
    "tru",
    "+",
    "-",
    "7",
    "1" * 18,
    ".",
]


@given(st.lists(st.sampled_from(PIECES) | st.characters(exclude_characters="\n"), max_size=12).map("".join))
def test_a_line_is_read_where_the_patterns_say_so(line: str) -> None:
    bare = line.strip()
    table, pair = TABLE.fullmatch(bare), PAIR.fullmatch(bare)
    try:
        found = parse_config(line)
    except Refused:
        assert (table, pair, not bare or bare.startswith("#")) == (None, None, False)
        return
    if table:
        assert found == {"": {}, table.group(1): {}}
    elif pair:
        assert found == {"": {pair.group(1): _meant(pair.group(2))}}
    else:
        assert (found, not bare or bare.startswith("#")) == ({"": {}}, True)


def _meant(value: str) -> Any:
    if value in ("true", "false"):
        return value == "true"
    if value.startswith("'"):
        return value[1:-1]
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value.startswith('"') else int(value)


STRINGS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
VALUES = st.booleans() | st.integers(-(10**17), 10**17) | STRINGS
KEYS = st.text("abz_-09", min_size=1, max_size=8)


@given(
    st.dictionaries(KEYS, VALUES, max_size=4),
    st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3),
)
def test_what_toml_says_is_what_is_read(top: dict[str, Any], tables: dict[str, dict[str, Any]]) -> None:
    """Written by the rules of TOML 1.0: basic strings, decimal integers, booleans, tables."""
    lines = [f"{key} = {_toml(value)}" for key, value in top.items()]
    for name, table in tables.items():
        lines += [f"[{name}]  # a table", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    assert parse_config("\n".join(lines)) == {"": top, **tables}


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower()
