# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Label expressions, which say by a host's labels whether something is for it.

Operators, the loosest first: ``or``, ``and``, ``not``; parentheses. A test is a key alone (the label is there), a key
with ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` and a value, or a key with ``in`` or ``not in`` and a list such as
``[a, 'b c', 3]``. A value is a word, a text in quotes, or a number. Beside a number the label counts as a number too,
whether it is one or a text that reads as one; beside anything else it counts as text. No test of a label that is not
there holds, but for ``!=`` and ``not in``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Union

LONGEST = 2048  # characters of an expression
DEEPEST = 32  # parentheses and nots inside each other
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
NUMBER = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
RESERVED = ("and", "or", "not", "in")
ORDERED = ("<", "<=", ">", ">=")
TOKEN = re.compile(
    r"\s*(?:(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<word>-?[A-Za-z0-9][A-Za-z0-9._/-]*)|(?P<sign>==|!=|<=|>=|[<>()\[\],]))"
)


class OfLabel(NamedTuple):
    """A test of one label: `operator` is "there", "in", "not in", or a comparison; values are text or numbers."""

    key: str
    operator: str
    values: tuple[str | Decimal, ...] = ()


class Negated(NamedTuple):
    """`not` before what is inside."""

    inside: Expression


class Joined(NamedTuple):
    """Parts between which stands `word`, "and" or "or"."""

    word: str
    parts: tuple[Expression, ...]


Expression = Union[OfLabel, Negated, Joined]


class _Token(NamedTuple):
    """A piece of the text: `kind` is "quoted", "word", "sign" or "end", `at` its first character, counted from 1."""

    kind: str
    text: str
    at: int


def parse(text: str) -> Expression:
    """The expression of a text; raises ValueError with a sentence that says at which character it goes wrong."""
    if len(text) > LONGEST:
        raise ValueError(f"a label expression has at most {LONGEST} characters, and this has {len(text)}: shorten it")
    reader = _Reader(_tokens(text))
    found = reader.joined("or", DEEPEST)
    if reader.next.kind != "end":
        raise reader.wrong("and, or, or the end")
    return found


def holds(expression: Expression, labels: Mapping[str, Any]) -> bool:
    """Whether the expression holds for a host with these labels: texts, numbers, true and false by their keys."""
    if isinstance(expression, Negated):
        return not holds(expression.inside, labels)
    if isinstance(expression, Joined):
        judged = (holds(part, labels) for part in expression.parts)
        return all(judged) if expression.word == "and" else any(judged)
    if expression.operator == "there":
        return expression.key in labels
    is_negative = expression.operator in ("!=", "not in")
    if expression.key not in labels:
        return is_negative
    label = labels[expression.key]
    if expression.operator in ORDERED:
        return _in_order(label, expression.operator, expression.values[0])
    return any(_equal(label, value) for value in expression.values) is not is_negative


def text_of(label: Any) -> str:
    """A label as text: true and false as JSON writes them."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(label)


def _number(label: Any) -> Decimal | None:
    """What a label counts as beside a number: itself, or the number that its text reads as."""
    if isinstance(label, (int, float)) and not isinstance(label, bool):
        return Decimal(str(label))  # by its digits: 0.1 is no sum of powers of two
    return Decimal(label) if isinstance(label, str) and NUMBER.fullmatch(label) else None


def _equal(label: Any, value: str | Decimal) -> bool:
    return _number(label) == value if isinstance(value, Decimal) else text_of(label) == value


def _in_order(label: Any, operator: str, value: str | Decimal) -> bool:
    number = _number(label)
    if number is None or not isinstance(value, Decimal):
        return False
    return {"<": number < value, "<=": number <= value, ">": number > value, ">=": number >= value}[operator]


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            begins = at + len(text[at:]) - len(text[at:].lstrip())
            what = "a text whose quote does not end" if text[begins] in "'\"" else repr(text[begins])
            raise ValueError(f"at character {begins + 1} stands {what}, which no label expression has: correct it")
        found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1))
        at = match.end()
    return [*found, _Token("end", "", len(text) + 1)]


class _Reader:
    """Reads the tokens, one function for each level of the grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def next(self) -> _Token:
        return self._tokens[self._at]

    def takes(self, text: str) -> bool:
        """Whether the next token is this word or sign, which is then read."""
        taken = self.next.kind != "quoted" and self.next.text == text
        self._at += taken
        return taken

    def wrong(self, wanted: str) -> ValueError:
        token = self.next
        what = "the expression ends" if token.kind == "end" else f"stands {token.text!r}"
        return ValueError(f"at character {token.at} {what}, where {wanted} is wanted: correct it")

    def joined(self, word: str, levels: int) -> Expression:
        """Parts joined by the word: of `or` those of `and`, of `and` single ones."""
        parts = [self._part(word, levels)]
        while self.takes(word):
            parts.append(self._part(word, levels))
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _part(self, word: str, levels: int) -> Expression:
        return self.joined("and", levels) if word == "or" else self._single(levels)

    def _single(self, levels: int) -> Expression:
        if levels < 0:
            raise ValueError(
                f"at character {self.next.at} the expression is nested deeper than {DEEPEST} levels: simplify it"
            )
        if self.takes("not"):
            return Negated(self._single(levels - 1))
        if self.takes("("):
            inside = self.joined("or", levels - 1)
            if not self.takes(")"):
                raise self.wrong("and, or, or )")
            return inside
        return self._test()

    def _test(self) -> OfLabel:
        token = self.next
        if token.kind != "word" or token.text in RESERVED or not KEY.fullmatch(token.text):
            raise self.wrong("a label's key, not, or (")
        self._at += 1
        for operator in ("==", "!="):
            if self.takes(operator):
                return OfLabel(token.text, operator, (self._value(),))
        for operator in ORDERED:
            if self.takes(operator):
                if self.next.kind != "word" or not NUMBER.fullmatch(self.next.text):
                    raise self.wrong("a number")
                return OfLabel(token.text, operator, (self._value(),))
        if self.takes("in"):
            return OfLabel(token.text, "in", self._list())
        if self.takes("not"):
            if not self.takes("in"):
                raise self.wrong("in")
            return OfLabel(token.text, "not in", self._list())
        return OfLabel(token.text, "there")

    def _list(self) -> tuple[str | Decimal, ...]:
        if not self.takes("["):
            raise self.wrong("a list such as [a, 'b', 3]")
        values = [self._value()]
        while self.takes(","):
            values.append(self._value())
        if not self.takes("]"):
            raise self.wrong("a comma or ]")
        return tuple(values)

    def _value(self) -> str | Decimal:
        token = self.next
        if token.kind == "quoted":
            self._at += 1
            return token.text[1:-1]
        number = _number(token.text)
        if token.kind != "word" or token.text in RESERVED or (number is None and token.text.startswith("-")):
            raise self.wrong("a value")
        self._at += 1
        return token.text if number is None else number
