# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet page: whatever a host says stays text, and everything that the document holds is there to read."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.plugin_utils import markup, report, report_page, said

from .plans import REBOOT, WRITE, governors, holds, plan, refused, stuck, unit, waits

VOID = {"meta", "br", "input"}
BARE = REBOOT.removeprefix("cpu: ")  # beside the unit's name
HOSTILE = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&<!--"


class Page(HTMLParser):
    """Reads a page, and fails where its elements do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.comments: list[str] = []
        self.embedded: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.embedded.append((self.open[-1], data))
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def text(self) -> str:
        """All that can be read, as it would be."""
        return "".join(self.texts)

    def all(self, tag: str, key: str) -> list[str]:
        return [attributes[key] or "" for name, attributes in self.tags if name == tag and key in attributes]


def page_of(**results: Any) -> Page:
    return Page(report_page.render_page(report.fleet_document(results)))


def everything(text: str) -> dict[str, Any]:
    """A host's result with the text wherever a text can be."""
    told = unit(
        text,
        "progressing",
        steps=[{"action": text, "disruption": text, "done": False}],
        pending=waits(text, text),
        conditions=[{"type": text, "status": "true", "reason": text, "message": text}],
        notes=[text],
        diff=[{"before_header": text, "after_header": text + "2", "before": f"{text}\na\n", "after": f"b\n{text}\n"}],
        reason=text,
        msg=text,
    )
    result = plan("PROGRESSING", told, message=text)
    result["section"]["conditions"] = told["conditions"]
    return result


def test_no_text_becomes_a_tag() -> None:
    quiet = page_of(host=everything("plain"))
    page = Page(report_page.render_page(report.fleet_document({HOSTILE: everything(HOSTILE)}), at=HOSTILE))
    assert [tag for tag, _unused in page.tags if tag in ("script", "img")] == ["script", "script"]
    assert page.embedded == quiet.embedded
    assert page.comments == []
    assert {key for _unused, attributes in page.tags for key in attributes if key.startswith("on")} == set()
    assert len(page.tags) == len(quiet.tags)
    assert page.text.count(HOSTILE) >= 15


@given(st.text(max_size=40))
def test_any_text_keeps_the_page_whole(text: str) -> None:
    page = Page(report_page.render_page(report.fleet_document({text: everything(text)})))
    assert [tag for tag, _unused in page.tags].count("script") == 2
    assert page.embedded == page_of(host=plan("CONVERGED")).embedded


def test_the_page_asks_for_nothing_outside_itself() -> None:
    page = page_of(host=everything(HOSTILE))
    assert page.all("link", "href") == page.all("img", "src") == page.all("script", "src") == []
    assert all(href.startswith("#") for href in page.all("a", "href"))


def test_nothing_but_the_pages_own_style_and_script_is_allowed() -> None:
    page = page_of(host=everything(HOSTILE))
    policy = dict(part.split(" ", 1) for part in page.all("meta", "content")[0].split("; "))
    assert (policy["default-src"], policy["base-uri"], policy["form-action"]) == ("'none'",) * 3
    allowed: dict[str, list[str]] = {"style": [], "script": []}
    for kind, text in page.embedded:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[kind].append(f"'sha256-{digest}'")
    assert policy["style-src"].split() == allowed["style"]
    assert policy["script-src"].split() == allowed["script"]
    assert "style" not in {key for _tag, attributes in page.tags for key in attributes}  # the policy would refuse it


def test_every_link_leads_somewhere() -> None:
    page = page_of(one=everything("x"), two=plan("CONVERGED", unit("cpu")), three={"unreachable": True, "msg": "gone"})
    ids = {attributes["id"] for _unused, attributes in page.tags if "id" in attributes}
    links = set(page.all("a", "href"))
    assert {"#h0", "#h1", "#h2", "#hosts", "#u0"} == links
    assert links <= {f"#{name}" for name in ids}


def test_hosts_stand_against_units() -> None:
    page = page_of(
        one=plan("PROGRESSING", unit("sysctl", "progressing", steps=[WRITE, WRITE]), unit("cpu")),
        two=plan("PROGRESSING", unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT))),
        three=plan("FAILED", refused("sysctl", "never")),
        four={"unreachable": True, "msg": "no route to host"},
    )
    for text in (
        "2 steps",
        "reboot",
        "RebootRequired",
        "refused",
        "no route to host",
        "unreachable",
        WRITE["action"],
        BARE,
    ):
        assert str(text) in page.text


def test_one_reason_of_many_hosts_is_one_line() -> None:
    told = plan("PROGRESSING", unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT)))
    page = page_of(one=told, two=told)
    before = page.text.index("Waiting for a reboot")
    section = page.text[before : page.text.index("Unit by unit")]
    assert section.count(BARE) == 1
    assert "one, two" in section
    assert page.text.count(BARE) == 2  # and once as the story of both
    assert REBOOT not in page.text


def waiting(*left: dict[str, Any]) -> dict[str, Any]:
    """A host that waits for a reboot, with these steps before it."""
    told = unit("cpu", "progressing", steps=list(left), pending=waits("RebootRequired", REBOOT), reboot_required=True)
    return plan("PROGRESSING", told, reboot_required=True)


def tiles(page: Page) -> dict[str, str]:
    """The counts at the head of the page."""
    head = page.texts[: page.texts.index("Hosts and units")]
    return {word: count for word, count in zip(head, head[1:]) if count.isdigit()}


def test_a_reboot_that_comes_after_converge_is_told_apart() -> None:
    page = page_of(planned=waiting(WRITE), written=waiting())
    assert (tiles(page)["wait for a reboot"], tiles(page)["will wait, after converge"]) == ("1", "1")
    titles = ["Waiting for a reboot", BARE, "written", "Will wait for a reboot, after converge", BARE, "planned"]
    told = page.text[page.text.index("What waits for what") : page.text.index("Unit by unit")]
    assert re.search(".*".join(map(re.escape, titles)), told)
    assert "1 step, reboot" in page.text


def test_failures_are_failed_and_come_first() -> None:
    waits_too = unit("cpu", "progressing", pending=waits("RebootRequired", REBOOT))
    page = page_of(
        a_waiting=plan("PROGRESSING", waits_too),
        b_mixed=plan("PROGRESSING", refused("sysctl", "no"), waits_too),
        c_stuck=plan("PROGRESSING", stuck("cpu", "I/O error")),
        d_converged=plan("CONVERGED", unit("cpu")),
    )
    counts = {word: tiles(page)[word] for word in ("hosts", "failed", "progressing", "converged")}
    assert counts == {"hosts": "4", "failed": "2", "progressing": "1", "converged": "1"}
    matrix = page.text[page.text.index("not managed") : page.text.index("What waits")]
    order = [matrix.index(name) for name in ("b_mixed", "c_stuck", "a_waiting", "d_converged")]
    assert order == sorted(order)
    assert "✕ step failed" in matrix
    cells = page.all("td", "class")
    assert cells.count("failed") == 2
    titles = page.text[page.text.index("What waits") : page.text.index("Unit by unit")]
    assert titles.index("Refused") < titles.index("another run may help") < titles.index("Waiting for a reboot")


@pytest.mark.parametrize(
    ("told", "title"),
    [
        (refused("cpu", "cpu: CPU 0 is never isolated"), "no run will help before the settings change"),
        (
            refused("cpu", "host.unit: managed outside bcd ([host] units = false in root's config.toml)"),
            "Refused by the host's own configuration",
        ),
        (
            refused("k8s-join", "k8s-join: https://a is not in /etc/bcd/config.toml: have root add it there"),
            "Refused by the host's own configuration",
        ),
        (
            refused("container-toolkit", "containerd: /etc/containerd/config.toml line 3 is no TOML: correct it"),
            "no run will help before the settings change",
        ),
        (stuck("cpu", "applied.json is not a record", retryable=False), "before a person has mended it"),
        (stuck("cpu", "cannot read /sys/x"), "another run may help"),
        (
            unit("cpu", "progressing", pending=waits("HeldBack", "x")),
            "Held back by max_disruption",
        ),
    ],
)
def test_a_title_says_what_must_happen(told: dict[str, Any], title: str) -> None:
    page = page_of(one=plan("FAILED", told))
    titles = [text.strip() for text in page.texts if text.strip() in said.WAITS.values() and text.endswith(" ")]
    assert len(titles) == 1
    assert title in titles[0]


def test_what_strikes_every_unit_is_told_once() -> None:
    lock = "another pass holds the lock: run again when it has ended"
    page = page_of(one=plan("PROGRESSING", *(stuck(name, lock) for name in ("sysctl", "cpu", "iommu"))))
    assert page.text.count(lock) == 2  # among what waits, and at the host
    assert page.text.count("all units") == 2
    assert "all units: StepFailed" in page.text
    partly = page_of(one=plan("PROGRESSING", stuck("sysctl", lock), stuck("cpu", lock), unit("iommu")))
    assert "sysctl, cpu" in partly.texts


def test_what_many_cpus_have_to_do_is_one_line() -> None:
    page = page_of(one=plan("PROGRESSING", unit("cpu", "progressing", steps=governors(128))))
    assert page.text.count("set the governor of CPU") == 1
    assert f"{governors(1)[0]['action']}, and 127 more like it" in page.texts
    assert "128 steps" in page.text
    few = page_of(one=plan("PROGRESSING", unit("cpu", "progressing", steps=governors(2))))
    assert few.text.count("set the governor of CPU") == 2


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("60\n", "10\n", ("have", "60", "want", "10")),
        ("10\n", "", ("have", "10", "want", "nothing")),
        ("a\nb\n", "a\nc\n", ("-b", "+c")),
        ("", "a\n", ("+a",)),
    ],
)
def test_drift_shows_have_and_want(before: str, after: str, wanted: tuple[str, ...]) -> None:
    entry = {"before_header": "/etc/x", "after_header": "/etc/x", "before": before, "after": after}
    page = page_of(one=plan("PROGRESSING", unit("sysctl", "progressing", steps=[WRITE], diff=[entry])))
    assert "/etc/x" in page.texts
    shown = [text.rstrip("\n") for text in page.texts]
    assert [text for text in shown if text in wanted] == list(wanted)


def test_a_file_and_its_mode_are_told_apart() -> None:
    entry = {
        "before_header": "/etc/x (mode 0666)",
        "after_header": "/etc/x (mode 0644)",
        "before": "a\n",
        "after": "a\n",
    }
    page = page_of(one=plan("PROGRESSING", unit("sysctl", "progressing", steps=[WRITE], diff=[entry])))
    assert "/etc/x (mode 0666) → /etc/x (mode 0644)" in page.texts
    assert "want" not in page.texts


def test_what_turns_text_around_is_shown() -> None:
    assert markup.text("a\u202eb\x1b") == "a\\u202eb\\u001b"


@pytest.mark.parametrize("unseen", ["\u200f", "\u200e", "\u061c", "\u200b", "\u2066", "\ufeff", "\xad", "\ud800", "\r"])
def test_what_nobody_would_see_is_shown(unseen: str) -> None:
    shown = markup.text(f"node-1{unseen}\n\tnode-2")
    assert shown == f"node-1\\u{ord(unseen):04x}\n\tnode-2"
    assert shown.encode()


def test_of_a_text_without_end_the_beginning_is_shown() -> None:
    message = "word " * 20_000
    page = page_of(one=everything(message))
    assert max(map(len, page.texts)) < 5_000
    assert "… and 96,000 characters more" in page.text
    whole = "x" * 4_000
    assert markup.element("p", whole) == f"<p>{whole}</p>"
    assert markup.element("path", d=whole + "y").endswith('xy"/>')  # a picture is no text


def test_of_a_difference_without_end_the_beginning_is_compared() -> None:
    before = "".join(f"{number}\n" for number in range(30_000))
    after = "".join(f"{number}\n" for number in reversed(range(20_000)))
    entry = {"before_header": "/etc/x", "after_header": "/etc/x", "before": before, "after": after}
    page = page_of(one=plan("PROGRESSING", unit("sysctl", "progressing", steps=[WRITE], diff=[entry])))
    assert "… and 29,000 lines more" in page.text
    assert len(page.texts) < 5_000


def test_only_html_goes_unescaped() -> None:
    bold = markup.element("b", "1 < 2")
    assert bold == "<b>1 &lt; 2</b>"
    assert markup.element("p", bold) == "<p><b>1 &lt; 2</b></p>"
    assert markup.element("p", bold + "") == "<p>&lt;b&gt;1 &amp;lt; 2&lt;/b&gt;</p>"
    assert markup.element("a", "x", class_='"', aria_label="y") == '<a class="&quot;" aria-label="y">x</a>'


def test_who_holds_what_is_a_table_of_the_host() -> None:
    held = [
        {"allocation_id": f"alloc_{number}", "binding": "BINDING_KUBERNETES", "devices": [f"GPU-{number}"]}
        for number in (1, 2)
    ]
    lost: dict[str, Any] = {"allocation_id": HOSTILE, "binding": None, "devices": [], "generation": None}
    result = holds(
        "failed", ("alloc_5", HOSTILE), kept=["alloc_1"], released=["alloc_2"], bound=["alloc_4"], holds=[*held, lost]
    )
    document = report.fleet_document({"a": plan("CONVERGED", unit("sysctl"))}, {"a": result})
    page = Page(report_page.render_page(document))
    table = page.text.partition("Holds")[2]
    for row in (
        "alloc_1GPU-1kubernetesstays",
        "alloc_2GPU-2kuberneteswould be released",
        f"{HOSTILE}every GPUstays",
        "alloc_4would be bound",
        f"alloc_5overlap: {HOSTILE}",
    ):
        assert row in table
    assert [tag for tag, _attributes in page.tags].count("script") == 2


def test_a_host_that_holds_nothing_has_no_table() -> None:
    document = report.fleet_document({"a": plan("CONVERGED")}, {"a": holds("converged")})
    assert "Holds" not in Page(report_page.render_page(document)).texts
