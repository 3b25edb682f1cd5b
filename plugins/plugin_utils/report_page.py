# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet document as one HTML page that needs nothing else, and may reach nothing else: no network, one style and
one script, each named by its digest. Without the script it is the same page, to be read from top to bottom."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .markup import Html, element
from .report_page_devices import Pictures
from .report_page_fleet import pools, waits
from .report_page_history import history, past
from .report_page_host import host_part
from .report_page_matrix import column_names, matrix
from .report_page_stories import Stories, stories_section
from .report_page_words import MARKS, failing_first, shown

# With scripts, what the browser need not lay out before the script has taken it over.
EARLY = Html('document.documentElement.classList.add("scripted");')
SOURCES = {"plan": "Planned", "status": "Seen"}
STYLES, SCRIPTS = ("report_page.css",), ("report_page_rows.js", "report_page_panel.js")


def render_page(document: Mapping[str, Any], at: str = "", runs: Sequence[Mapping[str, Any]] = ()) -> str:
    """The page of a fleet document (report.py says its shape).

    at: the time to show, "" for none. runs: those that are kept, each with `at`, `source`, `summary` and `hosts` (see
    report_history.py), the oldest first and this one the last.
    """
    hosts = failing_first(document["hosts"])
    anchors = {name: f"h{number}" for number, name in enumerate(hosts)}
    links = {name: element("a", name, href=f"#{anchor}", class_="name") for name, anchor in anchors.items()}
    stories, pictures = Stories(hosts), Pictures()
    style = _embedded(_text(*STYLES) + _narrow(column_names(hosts)))
    script = _embedded(_text(*SCRIPTS))
    parts = [host_part(name, host, anchors[name], stories, pictures, past(name, runs)) for name, host in hosts.items()]
    body = element(
        "body",
        element("a", "Skip to the hosts", href="#hosts", class_="skip"),
        element("header", element("h1", "Fleet report"), element("p", _when(document, at), class_="at")),
        _tiles(document["summary"], hosts),
        element(
            "main",
            element("div", pools(hosts), history(hosts, runs, links), class_="sides"),
            matrix(hosts, links, stories),
            waits(hosts, links),
            stories_section(stories, links),
            element("section", element("h2", "Host by host"), *parts, id="each"),
        ),
        pictures.grounds(),
        element("script", script),
    )
    return f"<!DOCTYPE html>\n{element('html', _head(style, script), body, lang='en')}\n"


def _head(style: Html, script: Html) -> Html:
    policy = (
        "default-src 'none'",
        f"style-src 'sha256-{_digest(style)}'",
        f"script-src 'sha256-{_digest(EARLY)}' 'sha256-{_digest(script)}'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content="; ".join(policy)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "Fleet report"),
        element("style", style),
        element("script", EARLY),
    )


@cache
def _text(*names: str) -> str:
    """The files beside this one, one after the other."""
    folder = Path(__file__).parent
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


def _embedded(text: str) -> Html:
    """A style or a script in the page, whose element nothing in it can end."""
    if "</" in text or "<!--" in text:
        raise ValueError(
            'a style or script of the page holds "</" or "<!--", at which a browser would end it: split it'
        )
    return Html(text)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _narrow(rules: str) -> str:
    return f"@media screen and (max-width:46rem){{{rules}}}\n"


def _when(document: Mapping[str, Any], at: str) -> str:
    word = SOURCES.get(str(document.get("source")), SOURCES["plan"])
    return f"{word} {at}" if at else ""


def _tiles(summary: Mapping[str, Any], hosts: Mapping[str, Any]) -> Html:
    states = [shown(host) for host in hosts.values()]
    counts = [
        ("hosts", summary["hosts"], "plain", "all"),
        *((MARKS[state][1], states.count(state), state, f"state={state}") for state in MARKS),
        ("with drift", summary["drifted"], "plain", "is=drift"),
        ("wait for a reboot", summary["reboot_required"], "plain", "why=RebootRequired"),
        ("will wait, after converge", summary["reboot_later"], "later", "why=RebootLater"),
    ]
    return element(
        "dl",
        *(
            element("div", element("dt", word), element("dd", f"{count:,}"), class_=f"tile {kind}", data_show=query)
            for word, count, kind, query in counts
            if count or kind in ("plain", "failed", "converged", "progressing")
        ),
        class_="tiles",
    )
