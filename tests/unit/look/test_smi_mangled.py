# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded text with a line lost, doubled or spoilt: a parser gives all of it or a fault, never less in silence."""

from __future__ import annotations

import random
from typing import Any, Callable

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.look import mig, mig_offers, smi, smi_lists
from tests.captures import names, session
from tests.unit.fake_host import FakeHost

TABLES: dict[str, Callable[[str], tuple[Any, ...]]] = {
    "-lgip": mig_offers.parse_lgip,
    "-lgi": mig.parse_lgi,
    "-lci": mig.parse_lci,
}
Parse = Callable[[str], tuple[Any, ...]]


def recorded(options: dict[str, Parse], mark: str) -> list[tuple[str, Parse, str]]:
    """(where from, parser, text) of every recorded listing."""
    found = []
    for name in names("smi") + names("real_mig_session"):
        for at, one in enumerate(session(name)):
            for option, parse in options.items():
                if option in one.argv and mark in one.text:
                    found.append((f"{name}[{at}] {option}", parse, one.text))
    return found


ALL_TABLES = recorded(TABLES, "|")
ALL_PLACEMENTS = recorded({"-lgipp": mig_offers.parse_lgipp}, "{")
ALL_LISTS = recorded({"-L": smi_lists.parse_list}, "UUID")


def each(listings: list[tuple[str, Parse, str]]) -> pytest.MarkDecorator:
    """A test of each listing, named by where it is from."""
    return pytest.mark.parametrize(
        ("where", "parse", "text"), listings, ids=[where for where, _parse, _text in listings]
    )


def parsed(parse: Parse, text: str) -> tuple[Any, ...] | None:
    """What the parser makes of it; None when it raises, as it should."""
    try:
        return parse(text)
    except StepFailed:
        return None


def joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_there_is_something_to_spoil() -> None:
    assert (len(ALL_TABLES), len(ALL_PLACEMENTS), len(ALL_LISTS)) == (27, 9, 14)


@each(ALL_TABLES)
def test_a_table_without_one_of_its_lines_is_a_fault(where: str, parse: Parse, text: str) -> None:
    """Its headings aside, which say nothing."""
    lines = text.splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("|="))
    for at in range(len(lines)):
        if at < 2 or at >= rule:
            assert parsed(parse, joined(lines[:at] + lines[at + 1 :])) is None, (where, lines[at])
        if at == 0 or at >= rule:
            assert parsed(parse, joined(lines[: at + 1] + lines[at:])) is None, (where, lines[at])
        if at < len(lines) - 1:
            assert parsed(parse, joined(lines[: at + 1])) in (None, *prefixes(parse, text)), where


def prefixes(parse: Parse, text: str) -> list[tuple[Any, ...]]:
    """What a table that ends after a whole row is: nothing in it tells that more rows followed."""
    whole = parse(text)
    return [whole[:at] for at in range(1, len(whole))]


@each(ALL_TABLES + ALL_PLACEMENTS + ALL_LISTS)
def test_a_spoilt_line_gives_as_many_rows_or_a_fault(where: str, parse: Parse, text: str) -> None:
    """Some of its characters replaced: a digit that becomes another is not told, but no row is lost."""
    dice = random.Random(where)
    whole = parse(text)
    lines = text.splitlines()
    for _throw in range(300):
        at = dice.randrange(len(lines))
        spoilt = list(lines[at])
        for _character in range(dice.randint(1, 6)):
            spoilt[dice.randrange(len(spoilt))] = dice.choice("0123456789 |+-=:,{}xMg\t")
        found = parsed(parse, joined([*lines[:at], "".join(spoilt), *lines[at + 1 :]]))
        if found is None:
            continue
        if parse is smi_lists.parse_list:
            assert [len(gpu.devices) for gpu in found] == [len(gpu.devices) for gpu in whole], (where, spoilt)
        assert len(found) == len(whole), (where, spoilt)


@each(ALL_TABLES + ALL_PLACEMENTS + ALL_LISTS)
@pytest.mark.parametrize("line", ["an error that no one knows", "|   0  something new", "Warning: look at this"])
def test_a_line_that_no_one_knows_is_named(where: str, parse: Parse, text: str, line: str) -> None:
    lines = text.splitlines()
    for at in (0, len(lines) // 2, len(lines)):
        with pytest.raises(StepFailed) as fault:
            parse(joined([*lines[:at], line, *lines[at:]]))
        assert " ".join(line.split()) in fault.value.message, (where, at)


@each(ALL_LISTS)
def test_a_listing_without_one_of_its_lines_is_shorter_by_its_last_only(where: str, parse: Parse, text: str) -> None:
    """Of the last GPU or device nothing tells that it was there; any other leaves a gap."""
    lines = text.splitlines()
    for at in range(len(lines)):
        last = at == len(lines) - 1 or (lines[at].startswith("  ") and not lines[at + 1].startswith("  "))
        found = parsed(parse, joined(lines[:at] + lines[at + 1 :]))
        assert (found is None) == (not last), (where, lines[at])


ROWS = "".join(f"{at}, GPU-{at}, 00000000:{at}0:00.0, NVIDIA A30, 4\n" for at in range(4))


def test_a_query_without_one_of_its_rows_is_a_fault() -> None:
    """The driver's own count tells of the last one too."""
    lines = ROWS.splitlines()
    fields = ("index", "uuid", "pci.bus_id", "name", "count")
    for at in range(len(lines)):
        for left in (lines[:at] + lines[at + 1 :], lines[: at + 1] + lines[at:]):
            answer = Answer(0, joined(left))
            host = FakeHost(programs={"nvidia-smi": lambda _host, _argv, answer=answer: answer})  # type: ignore[misc]
            with pytest.raises(StepFailed):
                smi.query(host, fields)


def test_a_query_with_a_spoilt_row_is_as_many_rows_or_a_fault() -> None:
    dice = random.Random(7)
    fields = ("index", "uuid", "pci.bus_id", "name")
    lines = [line.rpartition(", ")[0] for line in ROWS.splitlines()]
    for _throw in range(2000):
        at = dice.randrange(len(lines))
        spoilt = list(lines[at])
        for _character in range(dice.randint(1, 6)):
            spoilt[dice.randrange(len(spoilt))] = dice.choice("0123456789 ,[]GPU-x")
        found = parsed(
            lambda text: smi.parse_csv(text, fields), joined([*lines[:at], "".join(spoilt), *lines[at + 1 :]])
        )
        assert found is None or len(found) == 4
