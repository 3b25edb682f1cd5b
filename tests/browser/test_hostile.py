# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a host, a pool or a message is called, on the page it is text; and the page's policy holds."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report import fleet_document
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_page import render_page
from tests.browser import fleet_sample
from tests.browser.conftest import Look, fleet

HOSTILE = [
    "</script><script>window.struck=1</script>",
    "\"><img src=x onerror='window.struck=1'>",
    "<svg onload=window.struck=1>",
    "'-alert(1)-'",
    "</style><style>body{display:none}</style>",
    "<!--<script>",
    "line\u2028separator\u2029and\u0085more",
    "${window.struck=1}{{7*7}}",
    "javascript:window.struck=1",
    "a&b=c#state=failed&host=x",
    "__proto__",
    "\u202egnp.exe",
]


def hostile_page() -> str:
    """A fleet in which every text that a host or an inventory can choose is one of them."""
    results, facts, places = {}, {}, {}
    for number, text in enumerate(HOSTILE):
        name = f"{text}{number}"
        told = fleet_sample.unit(
            text,
            "progressing",
            steps=[fleet_sample.step(text, text)],
            pending=[{"reason": text, "message": text}, {"reason": "RebootRequired", "message": f"{name} {text}"}],
            conditions=[{"type": text, "status": "true", "reason": text, "message": text}],
            notes=[text],
            diff=[{"before_header": text, "after_header": text, "before": f"{text}\na\n", "after": f"b\n{text}\n"}],
        )
        section: dict[str, Any] = {
            "state": "PROGRESSING",
            "message": text,
            "observed_generation": 1,
            "conditions": told["conditions"],
        }
        results[name] = {"units": [told, fleet_sample.unit("cpu")], "section": section, "reboot_required": True}
        held = fleet_sample.hold(number, [f"{text}/s1"], text)
        held["allocation_id"] = text
        process = {"pid": 1, "name": text}
        gpu = fleet_sample.gpu_of(number, 0, text, uuid=text, layout=text, allocations=[text], processes=[process])
        facts[name] = fleet_sample.facts_of(fleet_sample.POOLS[0], number)
        facts[name]["ansible_facts"]["bcd"].update(gpus=[gpu], holds=[held], kernel=text, driver={"loaded": text})
        places[name] = {"pool": text, "site": text, "class": text}
    document = dict(fleet_document(results, {}, facts, places))
    runs = fleet_sample.runs_of(document, 3)
    runs[0]["at"] = runs[1]["source"] = HOSTILE[0]
    return render_page(document, HOSTILE[0], runs)


def seen(text: str) -> str:
    """The text as the page writes it: what would turn it around, or that a browser would swallow, by its number."""
    return "".join(f"\\u{ord(char):04x}" if char in "\u0085\u202e" else char for char in text)


def test_hostile_texts_are_text(look: Look) -> None:
    page = look(hostile_page())
    expect(page.locator("#count")).to_have_text(f"{len(HOSTILE)} hosts")
    expect(page.locator("body")).to_be_visible()
    for number, text in enumerate(HOSTILE):
        name = seen(f"{text}{number}")
        link = page.locator(".matrix th a", has_text=f"{name}")
        link.click()
        panel = page.locator("#panel")
        assert panel.locator("h2").evaluate("(head) => head.textContent") == name
        assert seen(text) in panel.inner_text()
        page.keyboard.press("Escape")
    assert page.locator("img, iframe, object, embed, link, base").count() == 0
    assert (page.locator("script").count(), page.locator("style").count()) == (2, 1)
    assert page.evaluate("window.struck") is None
    assert (
        page.evaluate(
            "[...document.querySelectorAll('*')].some((e) => e.getAttributeNames().some((n) => n.startsWith('on')))"
        )
        is False
    )


def test_a_hostile_view_is_only_a_view(look: Look) -> None:
    page, again = look(hostile_page()), look(hostile_page())
    for text in HOSTILE:
        page.get_by_label("Pool", exact=True).select_option(seen(text))
        page.locator(".matrix th a").first.click()
        again.evaluate("(fragment) => { location.hash = fragment; }", page.evaluate("location.hash"))
        expect(again.locator("#count")).to_have_text(f"1 of {len(HOSTILE)} hosts")
        expect(again.locator("#panel h2")).to_have_text(page.locator("#panel h2").inner_text())
        page.keyboard.press("Escape")
    assert again.evaluate("window.struck") is None


def test_the_policy_stops_what_is_not_the_pages_own(browser: Browser, tmp_path: Any) -> None:
    path = tmp_path / "page.html"
    bad = "<script>window.struck=1</script><img src='https://example.org/x.png'><p style='color:red' id='red'>x</p>"
    path.write_text(fleet(100).replace("<main>", f"<main>{bad}"), encoding="utf-8")
    page = browser.new_page()
    asked: list[str] = []
    page.on("requestfinished", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    assert page.evaluate("window.struck") is None
    assert page.locator("#red").evaluate("(red) => getComputedStyle(red).color") != "rgb(255, 0, 0)"
    assert page.evaluate("fetch('https://example.org').then(() => 'reached', () => 'stopped')") == "stopped"
    assert (
        page.evaluate(
            "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'written'; } catch { return 'stopped'; } })()"
        )
        == "stopped"
    )
    assert asked == [path.as_uri()]
    page.close()


def endless(text: str) -> str:
    """A page on which one host says the text wherever it can, beside one that is well."""
    told = fleet_sample.unit(
        "sysctl",
        "progressing",
        steps=[fleet_sample.step(text, text)],
        pending=[{"reason": text, "message": text}],
        conditions=[{"type": text, "status": "true", "reason": text, "message": text}],
        notes=[text],
        diff=[{"before_header": text, "after_header": text, "before": text, "after": "b\n"}],
    )
    strange = {**told, "unit": text}
    section = {"state": "PROGRESSING", "message": text, "observed_generation": 1, "conditions": told["conditions"]}
    result = {"units": [told, strange], "section": section, "reboot_required": False}
    well = fleet_sample.plan_of(fleet_sample.POOLS[0], 20)
    facts = fleet_sample.facts_of(fleet_sample.POOLS[0], 1)
    gpu = fleet_sample.gpu_of(1, 0, text, uuid=text, allocations=[text], sharing={"mode": text, "replicas": 10**9})
    facts["ansible_facts"]["bcd"].update(gpus=[gpu], kernel=text, unreadable=[text])
    places = {"strange": {"pool": text, "site": text, "class": text}}
    return render_page(dict(fleet_document({"strange": result, "well": well}, {}, {"strange": facts}, places)))


@pytest.mark.parametrize("text", ["w" * 100_000, "word " * 20_000])
@pytest.mark.parametrize("width", [375, 1280])
def test_a_text_without_end_leaves_the_page_as_it_is(look: Look, text: str, width: int) -> None:
    page = look(endless(text), width=width)
    wide = "[document.documentElement, document.querySelector('dialog')].map((e) => e.scrollWidth > e.clientWidth)"
    page.locator("details:not(.host)").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
    assert page.evaluate(wide) == [False, False]
    assert page.locator("#matrix").evaluate("(table) => table.scrollWidth") < 2 * 1280
    assert page.locator("#matrix").evaluate("(table) => table.tHead.offsetHeight") < 100
    page.locator(".matrix th a", has_text="strange").click()
    expect(page.locator("#panel")).to_be_visible()
    assert page.evaluate(wide) == [False, False]
