# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet document as one HTML page that needs nothing else: no network, no script; it prints, and follows the
reader's light or dark setting. Everything that opens and closes is a <details>, so the keyboard works by itself."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from ..module_utils.plan import section
from .devices_table import devices_table
from .markup import Html, element, join
from .report import is_failing
from .report_style import STYLE
from .said import ALL, WAITS, of_all_units, only_says, reasons, steps_in_rows, told

# A state's mark and word: never the colour alone.
MARKS = {
    "converged": ("✓", "converged"),
    "progressing": ("●", "progressing"),
    "failed": ("✕", "failed"),
    "unreachable": ("!", "unreachable"),
    "unknown": ("?", "not planned"),
}
FIRST = ("failed", "unreachable", "unknown")
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_page(document: Mapping[str, Any], at: str = "") -> str:
    """The page of a fleet document (report.py says its shape); `at` is the time to show, empty for none."""
    hosts = _failing_first(document["hosts"])
    anchors = {name: f"host-{number}" for number, name in enumerate(hosts)}
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "Fleet report"),
        element("style", Html(STYLE)),
    )
    body = element(
        "body",
        element("a", "Skip to the hosts", href="#hosts", class_="skip"),
        element("header", element("h1", "Fleet report"), element("p", f"Planned {at}" if at else "", class_="at")),
        _tiles(document["summary"], hosts),
        element("main", _matrix(hosts, anchors), _waits(hosts, anchors), _hosts(hosts, anchors)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _failing_first(hosts: Mapping[str, Any]) -> dict[str, Any]:
    """The hosts in the order of the page: those that need a person, then the others by name."""
    return dict(sorted(hosts.items(), key=lambda item: (_shown(item[1]) not in FIRST, item[0])))


def _shown(host: Mapping[str, Any]) -> str:
    """The state that the page shows: a host with a failed unit is failed, though the others go on."""
    return "failed" if is_failing(host) else str(host["state"])


def _shown_unit(unit: Mapping[str, Any]) -> str:
    return "failed" if "reason" in unit else str(unit["state"])


# -- the head of the page


def _tiles(summary: Mapping[str, int], hosts: Mapping[str, Any]) -> Html:
    states = [_shown(host) for host in hosts.values()]
    counts = [
        ("hosts", summary["hosts"], "plain"),
        *((MARKS[state][1], states.count(state), state) for state in MARKS),
        ("with drift", summary["drifted"], "plain"),
        ("wait for a reboot", summary["reboot_required"], "plain"),
        ("will wait, after converge", summary["reboot_later"], "later"),
    ]
    return element(
        "dl",
        *(
            element("div", element("dt", word), element("dd", str(count)), class_=f"tile {kind}")
            for word, count, kind in counts
            if count or kind in ("plain", "failed", "converged", "progressing")
        ),
        class_="tiles",
    )


def _badge(state: str) -> Html:
    mark, word = MARKS.get(state, ("?", state))
    return element("span", element("span", mark, aria_hidden="true"), f" {word}", class_=f"badge {state}")


# -- hosts against units


def _matrix(hosts: Mapping[str, Any], anchors: Mapping[str, str]) -> Html:
    units = list(dict.fromkeys(unit["unit"] for host in hosts.values() for unit in host["units"]))
    header = element("tr", *(element("th", word, scope="col") for word in ("host", "state", *units)))
    rows = (
        element(
            "tr",
            element("th", element("a", name, href=f"#{anchors[name]}", class_="name"), scope="row"),
            element("td", _badge(_shown(host))),
            *_cells(host, units, anchors[name]),
        )
        for name, host in hosts.items()
    )
    table = element("table", element("thead", header), element("tbody", *rows), class_="matrix")
    return element(
        "section",
        element("h2", "Hosts and units"),
        element("div", table, class_="wide", tabindex="0", role="region", aria_label="Hosts and units"),
    )


def _cells(host: Mapping[str, Any], units: list[str], anchor: str) -> Iterator[Html]:
    by_name = {unit["unit"]: unit for unit in host["units"]}
    for name in units:
        unit = by_name.get(name)
        if unit is None:
            yield element("td", "-", class_="none")
        else:
            words = element("a", _short(unit), href=f"#{anchor}") if unit["state"] != "converged" else _short(unit)
            yield element("td", words, class_=_shown_unit(unit))


def _short(unit: Mapping[str, Any]) -> str:
    """A unit in a word or two: what it is refused for, waits for, or has left to do."""
    mark = MARKS.get(_shown_unit(unit), ("?", ""))[0]
    due = sum(1 for step in unit["steps"] if not step["done"])
    words = list(dict.fromkeys(reason for reason, _message in reasons(unit)))
    if due:
        words.insert(len(words) if "reason" in unit else 0, f"{due} step{'s' if due > 1 else ''}")
    return f"{mark} {', '.join(words) or unit['state']}"


# -- what waits for what


def _waits(hosts: Mapping[str, Any], anchors: Mapping[str, str]) -> Html:
    groups: dict[str, dict[tuple[str, str], list[str]]] = {}
    for name, host in hosts.items():
        for title, unit, message in told(host):
            groups.setdefault(title, {}).setdefault((unit, message), []).append(name)
    if not groups:
        return element("section", element("h2", "What waits"), element("p", "Nothing waits, and nothing was refused."))
    known = [reason for reason in WAITS if reason in groups]
    blocks = (_wait_group(reason, groups[reason], anchors) for reason in [*known, *sorted(set(groups) - set(known))])
    return element("section", element("h2", "What waits for what"), *blocks)


def _wait_group(reason: str, lines: Mapping[tuple[str, str], list[str]], anchors: Mapping[str, str]) -> Html:
    rows = (
        element(
            "tr",
            element("th", unit, scope="row"),
            element("td", message, class_="message"),
            element("td", *_links(names, anchors)),
        )
        for (unit, message), names in lines.items()
    )
    header = element("tr", *(element("th", word, scope="col") for word in ("unit", "message", "hosts")))
    table = element("table", element("thead", header), element("tbody", *rows))
    return join(element("h3", WAITS.get(reason, reason)), element("div", table, class_="wide", tabindex="0"))


def _links(names: list[str], anchors: Mapping[str, str]) -> Iterator[Html]:
    for number, name in enumerate(names):
        yield join(", " if number else "", element("a", name, href=f"#{anchors[name]}", class_="name"))


# -- host by host


def _hosts(hosts: Mapping[str, Any], anchors: Mapping[str, str]) -> Html:
    blocks = (_host(name, host, anchors[name]) for name, host in hosts.items())
    return element("section", element("h2", "Host by host", id="hosts"), *blocks)


def _host(name: str, host: Mapping[str, Any], anchor: str) -> Html:
    loud = [unit for unit in host["units"] if _has_something_to_say(unit)]
    quiet = [unit["unit"] for unit in host["units"] if not _has_something_to_say(unit)]
    # The section's message and conditions are those of its units, once more.
    said = [element("p", host["message"]), *(_condition(each) for each in host["conditions"])] if not loud else []
    once = of_all_units(host)
    content = [
        *(said if host["message"] else []),
        *(element("p", element("strong", f"{ALL}: {reason}"), f": {message}") for reason, message in once),
        *(_unit(unit, once) for unit in loud if not only_says(unit, once)),
        devices_table(host["devices"]) if host.get("devices") else Html(),
        element("p", f"Nothing to do: {', '.join(quiet)}.", class_="quiet") if quiet else Html(),
    ]
    summary = element("summary", element("h3", name), _badge(_shown(host)))
    opened = {} if host["state"] == "converged" and not loud else {"open": ""}
    return element("details", summary, *content, id=anchor, class_="host", **opened)


def _has_something_to_say(unit: Mapping[str, Any]) -> bool:
    parts = ("steps", "pending", "conditions", "notes", "diff")
    return unit["state"] != "converged" or any(unit[part] for part in parts)


def _condition(each: Mapping[str, str]) -> Html:
    return element("p", element("strong", f"{each['type']}"), f" ({each['reason']}): {each['message']}", class_="note")


def _unit(unit: Mapping[str, Any], once: list[tuple[str, str]]) -> Html:
    name = unit["unit"]
    said = [
        element("li", element("strong", line[0]), f": {section.unnamed(name, line[1])}")
        for line in reasons(unit)
        if line not in once
    ]
    steps = [
        element("li", section.unnamed(name, action), element("span", _disruption(step), class_="quiet"), class_="step")
        for action, step in steps_in_rows(unit["steps"])
    ]
    return element(
        "article",
        element("h4", name, " ", _badge(_shown_unit(unit))),
        element("ul", *said, class_="said") if said else Html(),
        element("ol", *steps) if steps else Html(),
        *(_condition(each) for each in unit["conditions"]),
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
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "have", "want", lineterm=""))
    marked = (element("span", line + "\n", class_=_kind(line, number)) for number, line in enumerate(lines))
    return element("figure", element("figcaption", path), element("pre", *marked, tabindex="0"))


def _pair(word: str, value: str) -> tuple[Html, Html]:
    return element("dt", word), element("dd", element("code", value))


def _kind(line: str, number: int) -> str:
    if number < 2 or line.startswith("@@"):
        return "at"
    return {"+": "add", "-": "del"}.get(line[:1], "same")
