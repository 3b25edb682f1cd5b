# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TOML: read as the language's own tests say, refused with the line, and edited without touching the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import toml_reader
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.toml import document, parse
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.toml_text import render, value_text, with_key
from tests import captures

WORDS = st.text("abz-_. \"'#=[]\\\n\té☃𝄞", max_size=8)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)
TABLES = st.dictionaries(WORDS, VALUES, max_size=5)
# Lines as most files have them, and beside them some that differ from these by little.
NUMBERED = ["a = 1", "a=-0", "a = 01", "a = 1_0", "a = 0.02", "a = 1.", "a = 1e3", "b = 12345678901234567890"]
WORDED = ["a = true", "a = truely", "b = false", '"a" = "x"', "'a' = 'x # y' # z", 'b = ""', 'b = """"""', 'b = """x']
LISTED = ["c = []", "c = [ \"x\", 'y', ]", "c = [,]", 'c = ["x" "y"]', "c = [1]", "c = [", "]", "c = {}", "c = {d = 1}"]
HEADED = [
    "[a]",
    "[ a ]",
    "[a.b]",
    '  [a."b.c".d]',
    "[a.b]]",
    "[[a]]",
    "[a] # x",
    "[a] x",
    "[c]",
    '[""]',
    "['a'.b]",
    "[]",
]
OTHERS = ["", " \t", "# x", "# \x01", "\ufeff", "a", "= 1", "a = 1\r", "# \r", "a = 'x\x00'", "a.b = 1", r'b = "\t"']
LINES = st.sampled_from([*NUMBERED, *WORDED, *LISTED, *HEADED, *OTHERS])


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("", {}),
        ("# nothing\n\n", {}),
        ("a = 1\nb-c = 'x'\n", {"a": 1, "b-c": "x"}),
        ("a.b.c = 1\na.b.d = 2", {"a": {"b": {"c": 1, "d": 2}}}),
        ('"a.b"."c d" = true', {"a.b": {"c d": True}}),
        (
            '[plugins."io.containerd.grpc.v1.cri".cni]\nx=1',
            {"plugins": {"io.containerd.grpc.v1.cri": {"cni": {"x": 1}}}},
        ),
        ("[plugins . 'io.x']\n[plugins]\ny=1", {"plugins": {"io.x": {}, "y": 1}}),
        ("a = [1, 2,\n  # two\n  3, # three\n]", {"a": [1, 2, 3]}),
        ("a = [[1], [], ['x']]", {"a": [[1], [], ["x"]]}),
        ("a = { b = 1, c.d = 'x' }", {"a": {"b": 1, "c": {"d": "x"}}}),
        ("a = {}", {"a": {}}),
        ("[[a.b]]\nx=1\n[[a.b]]\n[a.b.c]\ny=2", {"a": {"b": [{"x": 1}, {"c": {"y": 2}}]}}),
        (
            "a = 0x1F\nb = 0o17\nc = 0b11\nd = 1_000\ne = -17\nf = +0",
            {"a": 31, "b": 15, "c": 3, "d": 1000, "e": -17, "f": 0},
        ),
        ("a = 0.02\nb = -1e3\nc = 6.02E+23\nd = inf", {"a": 0.02, "b": -1000.0, "c": 6.02e23, "d": math.inf}),
        (r'a = "x\ty\u00e9\U0001D11E\\\""', {"a": 'x\tyé𝄞\\"'}),
        ("a = 'C:\\x'", {"a": "C:\\x"}),
        ('a = """\nx\\\n   y\n""z"""', {"a": 'xy\n""z'}),
        ("a = '''\nx\n''y'''", {"a": "x\n''y"}),
        ("a = 'x'\r\n[b]\r\nc = 1\r\n", {"a": "x", "b": {"c": 1}}),
    ],
)
def test_what_is_read(text: str, table: dict[str, Any]) -> None:
    assert parse(text, "x.toml") == table


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\na = 2", 2),
        ("[a]\n[b]\n[a]", 3),
        ("a.b = 1\n[a]", 2),
        ("a = {b = 1}\n[a.c]", 2),
        ("a = {b = 1}\na.c = 1", 2),
        ("a = [1]\n[[a]]", 2),
        ("[[a]]\n[a]", 2),
        ("[a.b]\n[a]\nb.c = 1", 3),
        ("\na = 1 2", 2),
        ("a = [1 2]", 1),
        ("a = {b = 1,}", 1),
        ("a = {b = 1\n}", 1),
        ("a = 1979-05-27", 1),
        ("a = 07:32:00", 1),
        ("a = 010", 1),
        ("a = 1__0", 1),
        ("a = .5", 1),
        ("a = yes", 1),
        ("a =", 1),
        ("a", 1),
        ("= 1", 1),
        ("[a", 1),
        ("[a]]", 1),
        ("a = 'x", 1),
        ('a = "x\ny"', 1),
        (r'a = "\x"', 1),
        (r'a = "\ud800"', 1),
        ('a = """x', 1),
        ("a = 'x\x00'", 1),
        ("a = 1 # \x01", 1),
        ("a = 1\rb = 2", 1),
        ("a = " + "[" * 500, 1),
        pytest.param(" " * 100_000 + "?", 1, id="blanks, of which no reading takes the square of their number"),
    ],
)
def test_what_is_refused_names_file_and_line(text: str, line: int) -> None:
    with pytest.raises(Refused) as refused:
        parse(text, "/etc/x.toml")
    assert refused.value.message.startswith(f"/etc/x.toml line {line}: ")


@given(st.lists(LINES, max_size=6), st.sampled_from(["", "\n"]))
def test_plain_lines_are_read_as_all_of_toml_is(lines: list[str], end: str) -> None:
    """What `toml` reads by itself, `toml_reader` reads as well, with the same places; what is wrong, neither does."""
    text = "\n".join(lines) + end
    assert answer(document, text) == answer(toml_reader.read, text)


def answer(reader: Callable[[str, str], Any], text: str) -> str:
    try:
        found = reader(text, "x.toml")
    except Refused as fault:
        return fault.message
    return repr(found)  # in which 1 is not True, and the order of keys tells


@given(TABLES)
def test_what_is_written_is_read_back(table: dict[str, Any]) -> None:
    assert parse(render(table), "x.toml") == table
    assert parse(f"a = {value_text(table)}\n", "x.toml") == {"a": table}


@given(TABLES, st.booleans() | st.lists(WORDS, max_size=3))
def test_a_key_is_set_and_nothing_else_changes(table: dict[str, Any], value: Any) -> None:
    text = render(table)
    edited = with_key(text, "imports", value, "x.toml")
    assert parse(edited, "x.toml") == {**table, "imports": value}
    assert with_key(edited, "imports", value, "x.toml") == edited
    if "imports" not in table:
        line = f"imports = {value_text(value)}\n"
        assert edited.replace(line, "", 1) in (text, text + "\n")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", "k = false\n"),
        ("a = 1", "a = 1\nk = false\n"),
        ("a = 1\n\n[t]\nk = 2\n", "a = 1\nk = false\n\n[t]\nk = 2\n"),
        ("  k   =   true  # yes\n", "  k   =   false  # yes\n"),
        ("k = [\n 1, # one\n]\nb = 2\n", "k = false\nb = 2\n"),
        ("# k is\n#k = true\nb = 2\n", "# k is\n#k = true\nk = false\nb = 2\n"),
        ("[t]\n#k = true\n", "k = false\n[t]\n#k = true\n"),
        ('a = """\n#k = 1\n"""\n', 'a = """\n#k = 1\n"""\nk = false\n'),
    ],
)
def test_where_a_key_is_set(text: str, after: str) -> None:
    assert with_key(text, "k", False, "x.toml") == after


def test_the_toolkits_own_configuration() -> None:
    texts = [
        command.text for command in captures.session("ctk_config_set") if "nvidia-ctk config default" in command.line
    ]
    table = parse(texts[0], "config.toml")
    assert table["nvidia-container-cli"] == {"environment": [], "ldconfig": "@/sbin/ldconfig", "load-kmods": True}
    assert table["nvidia-container-runtime"]["modes"]["cdi"]["spec-dirs"] == ["/etc/cdi", "/var/run/cdi"]
    key = "accept-nvidia-visible-devices-envvar-when-unprivileged"
    edited = with_key(texts[0], key, False, "config.toml")
    assert edited.splitlines()[1:3] == [f"#{key} = true", f"{key} = false"]
    assert edited.replace(f"\n{key} = false", "") == texts[0]
