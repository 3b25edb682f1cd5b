# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit of a host would change and why it waits, each distinct story once: many hosts of a fleet tell the same.

So a page of a thousand hosts stays small, and whoever reads it reads each difference once, with the hosts that have it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..module_utils.plan import section
from ..module_utils.plan.unit_names import ORDER
from .markup import Html, element, join
from .report_page_words import badge, counted, short, shown_unit
from .said import of_all_units, of_any_host, only_says, reasons, steps_in_rows

MANY = 5  # names that stand in a row
LINES = 1000  # of a file, that are compared: more take longer by the square of their number


class Story(NamedTuple):
    """What one unit says, the same on all of `hosts`."""

    anchor: str
    unit: str
    state: str
    short: str
    article: Html
    hosts: list[str]


class Stories:
    """The distinct stories of a fleet, in the order of the units' turns; `anchors` has by host and unit which it is."""

    def __init__(self, hosts: Mapping[str, Any]) -> None:
        found: dict[Html, list[tuple[str, Mapping[str, Any], list[tuple[str, str]]]]] = {}
        for name, host in hosts.items():
            once = of_all_units(host)
            for unit in host["units"]:
                if has_something_to_say(unit) and not only_says(unit, once):
                    found.setdefault(_article(_of_any(name, unit), once), []).append((name, unit, once))
        told = sorted(found.items(), key=lambda item: (_turn(item[1][0][1]["unit"]), -len(item[1])))
        self.anchors: dict[tuple[str, str], str] = {}
        self.all: list[Story] = []
        for number, (article, tellers) in enumerate(told):
            _first, unit, once = tellers[0]
            names = [name for name, _unit, _once in tellers]
            # One host alone says it with its own name.
            text = article if len(names) > 1 else _article(unit, once)
            story = Story(f"u{number}", unit["unit"], shown_unit(unit), short(unit), text, names)
            self.all.append(story)
            self.anchors.update({(name, unit["unit"]): story.anchor for name in names})


def stories_section(stories: Stories, links: Mapping[str, Html]) -> Html:
    """Unit by unit: each story with its hosts, closed until somebody opens it."""
    if not stories.all:
        return Html()
    blocks = []
    for unit in dict.fromkeys(story.unit for story in stories.all):
        mine = [story for story in stories.all if story.unit == unit]
        blocks.append(element("h3", unit))
        blocks += [_story(story, links) for story in mine]
    return element(
        "section",
        element("h2", "Unit by unit", id="units"),
        element(
            "p",
            "What each unit would change, and what it says: what several hosts have alike is one entry.",
            class_="quiet",
        ),
        *blocks,
    )


def hosts_of(names: list[str], links: Mapping[str, Html]) -> Html:
    """The hosts' names, each leading to its host; many of them are closed until somebody opens them."""
    listed = join(*(join(", " if number else "", links[name]) for number, name in enumerate(names)))
    if len(names) <= MANY:
        return listed
    return element("details", element("summary", counted(len(names), "host")), listed, class_="names")


def has_something_to_say(unit: Mapping[str, Any]) -> bool:
    """Whether there is more to it than that it is converged."""
    parts = ("steps", "pending", "conditions", "notes", "diff")
    return unit["state"] != "converged" or any(unit[part] for part in parts)


def condition(each: Mapping[str, str]) -> Html:
    """A condition in a line."""
    return element("p", element("strong", f"{each['type']}"), f" ({each['reason']}): {each['message']}", class_="note")


def _turn(unit: str) -> tuple[int, str]:
    return (ORDER.index(unit) if unit in ORDER else len(ORDER), unit)


def _story(story: Story, links: Mapping[str, Html]) -> Html:
    count = story.hosts[0] if len(story.hosts) == 1 else counted(len(story.hosts), "host")
    # A converged unit has a note or two beside its state.
    words = "notes" if story.short == "converged" else story.short
    summary = element("summary", badge(story.state), f" {words} ", element("span", count, class_="quiet"))
    where = element("p", "On ", hosts_of(story.hosts, links), class_="on")
    return element("details", summary, where, story.article, class_="story", id=story.anchor)


def _of_any(host: str, given: Any) -> Any:
    """The value with every text as any host would say it."""
    if isinstance(given, str):
        return of_any_host(host, given)
    if isinstance(given, Mapping):
        return {key: _of_any(host, value) for key, value in given.items()}
    return [_of_any(host, value) for value in given] if isinstance(given, list) else given


def _article(unit: Mapping[str, Any], once: Iterable[tuple[str, str]]) -> Html:
    name = unit["unit"]
    said = [
        element("li", element("strong", reason), f": {section.unnamed(name, message)}")
        for reason, message in reasons(unit)
        if (reason, message) not in once
    ]
    steps = [
        element("li", section.unnamed(name, action), element("span", _disruption(step), class_="quiet"))
        for action, step in steps_in_rows(unit["steps"])
    ]
    return element(
        "article",
        element("h4", name, " ", badge(shown_unit(unit))),
        element("ul", *said, class_="said") if said else Html(),
        element("ol", *steps) if steps else Html(),
        *(condition(each) for each in unit["conditions"]),
        *(element("p", section.unnamed(name, note), class_="note") for note in unit["notes"]),
        *(_difference(each) for each in unit["diff"]),
    )


def _disruption(step: Mapping[str, Any]) -> str:
    words = [step["disruption"]] if step["disruption"] not in ("", "none") else []
    words += ["done"] if step["done"] else []
    return f" ({', '.join(words)})" if words else ""


def _difference(each: Mapping[str, str]) -> Html:
    """Have and want: side by side in words for a single value, line by line for a file."""
    before, after = each["before"], each["after"]
    path = each["after_header"] or each["before_header"]
    if each["before_header"] not in ("", path):
        path = f"{each['before_header']} → {path}"
    if before == after:
        return element("figure", element("figcaption", path))
    if max(before.count("\n"), after.count("\n")) <= 1 and before:
        have, want = before.strip("\n"), after.strip("\n")
        pairs = element("dl", *_pair("have", have or "nothing"), *_pair("want", want or "nothing"), class_="pair")
        return element("figure", element("figcaption", path), pairs)
    have_lines, want_lines = before.splitlines(), after.splitlines()
    rest = max(len(have_lines), len(want_lines)) - LINES
    lines = difflib.unified_diff(have_lines[:LINES], want_lines[:LINES], "have", "want", lineterm="")
    marked = [element("span", line + "\n", class_=_kind(line, number)) for number, line in enumerate(lines)]
    if rest > 0:
        marked.append(element("span", f"… and {counted(rest, 'line')} more\n", class_="at"))
    return element("figure", element("figcaption", path), element("pre", *marked, tabindex="0"))


def _pair(word: str, value: str) -> tuple[Html, Html]:
    return element("dt", word), element("dd", element("code", value))


def _kind(line: str, number: int) -> str:
    if number < 2 or line.startswith("@@"):
        return "at"
    return {"+": "add", "-": "del"}.get(line[:1], "same")
