# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report's page as a person uses it: filter, order, keys, a view that is sent on, colours, paper, any width."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report import fleet_document
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.report_page import render_page
from ansible_collections.bettercompute.bcd.plugins.plugin_utils.said import titles
from tests.browser import fleet_sample
from tests.browser.conftest import Look, count, fleet, names

HOSTS = fleet_sample.document_of(200)["hosts"]
FAILED = sorted(name for name, host in HOSTS.items() if host["failing"])
REBOOT = sorted(name for name, host in HOSTS.items() if "RebootRequired" in {title for _unit, title in titles(host)})
ONE = "mig-ams-015"
# The text of every element that is seen, with less contrast to what is behind it than WCAG's AA asks: 4.5 to 1.
PALE = """() => {
  const part = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colour, behind) => {
    canvas.globalAlpha = 1;
    canvas.fillStyle = behind;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (given) => {
    const [red, green, blue] = given.map((value) => part(value / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    const stack = [];
    for (let each = element; each; each = each.parentElement) stack.push(getComputedStyle(each).backgroundColor);
    return stack.reduceRight((behind, colour) => `rgb(${rgb(colour, behind)})`, "white");
  };
  const pale = new Set();
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (!text || element.disabled || element.closest("script, svg") || !element.checkVisibility()) continue;
    const behind = ground(element);
    const one = light(rgb(getComputedStyle(element).color, behind)), other = light(rgb(behind, behind));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) pale.add(`${element.tagName}.${element.className} "${text.slice(0, 30)}": ${ratio.toFixed(2)}`);
  }
  return [...pale];
}"""


def open_all(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


# -- filter and order


def test_a_search_finds_names_messages_and_allocations(look: Look) -> None:
    page = look(200)
    expect(page.locator("#count")).to_have_text("200 hosts")
    search = page.get_by_label("Search")
    search.fill("core_pattern REFUSED")
    assert sorted(names(page)) == sorted(
        name for name, host in HOSTS.items() if any("core_pattern" in unit.get("msg", "") for unit in host["units"])
    )
    held = HOSTS[ONE]["holds"][0]["allocation_id"]
    search.fill(held)
    assert names(page) == [ONE]
    search.fill("no host says this")
    assert names(page) == []
    expect(page.get_by_text("No host is like that")).to_be_visible()
    page.get_by_role("button", name="Clear").click()
    assert count(page) == "200 hosts"


def test_choices_narrow_each_other(look: Look) -> None:
    page = look(200)
    page.get_by_label("State", exact=True).select_option("failed")
    assert sorted(names(page)) == FAILED
    page.get_by_label("Pool", exact=True).select_option("train-fra")
    wanted = [name for name in FAILED if name.startswith("train-fra")]
    assert (names(page), count(page)) == (wanted, f"{len(wanted)} of 200 hosts")
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Needs", exact=True).select_option(label="Waiting for a reboot")
    page.get_by_label("Unit not converged").select_option("cpu")
    assert sorted(names(page)) == REBOOT
    page.get_by_label("Unit not converged").select_option("mig-layout")
    assert names(page) == []


def test_every_count_shows_what_it_counts(look: Look) -> None:
    page = look(200)
    for tile in page.locator(".tile:has(button)").all():
        number = tile.locator("dd").inner_text()
        tile.locator("button").click()
        assert count(page).split()[0] == number, tile.inner_text()
    for title in page.locator("h3:has(button)").all():
        found = re.search(r"(\d+) hosts?", title.inner_text())
        title.get_by_role("button").click()
        assert found is not None
        assert count(page).split()[0] == found[1], title.inner_text()
    page.get_by_role("button", name="mig-ams: show its hosts").click()
    assert count(page) == "30 of 200 hosts"


def test_heads_sort_up_down_and_back(look: Look) -> None:
    page = look(200)
    first = names(page)
    assert sorted(first[: len(FAILED)]) == FAILED  # who needs a person comes first
    head = page.locator("#matrix thead th").first
    head.get_by_role("button").click()
    assert names(page) == sorted(HOSTS)[:100]
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert names(page) == sorted(HOSTS, reverse=True)[:100]
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert (names(page), head.get_attribute("aria-sort")) == (first, None)
    page.get_by_role("button", name="sysctl", exact=True).click()
    refused = {name for name in FAILED if name.startswith("sandbox")}
    assert set(names(page)[: len(refused)]) == refused


# -- keys


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.closest('tr')?.cells[0].textContent ?? document.activeElement.id"))


def test_keys_walk_the_table_and_open_a_host(look: Look) -> None:
    page = look(200, "#sort=host")
    everyone = sorted(HOSTS)
    page.locator("#matrix tbody [tabindex='0']").focus()
    for key, row in (("ArrowDown", 1), ("PageDown", 11), ("ArrowRight", 11), ("ArrowUp", 10), ("Control+End", 199)):
        page.keyboard.press(key)
        assert focused(page) == everyone[row], key
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name=everyone[1])
    expect(panel).to_be_visible()
    expect(panel.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert focused(page) == everyone[1]
    page.keyboard.press("/")
    assert focused(page) == "q"
    page.keyboard.type("a/b")
    assert page.get_by_label("Search").input_value() == "a/b"


def test_tab_stops_once_in_the_table(look: Look) -> None:
    page = look(200)
    page.get_by_role("button", name="k8s-join", exact=True).focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('#matrix tbody th')")
    page.keyboard.press("Tab")
    assert not page.evaluate("document.activeElement.closest('#matrix') !== null")


def test_a_cell_leads_to_its_unit_in_the_panel(look: Look) -> None:
    page = look(200, f"#q={REBOOT[0]}")
    page.get_by_role("link", name="● reboot").nth(1).click()
    panel = page.get_by_role("dialog", name=REBOOT[0])
    assert panel.locator(".here h4").inner_text().startswith("cpu")
    assert "CPUs 4-63,68-127 are isolated" in panel.locator(".here").inner_text()
    assert "<its name>" not in panel.inner_text()


def test_the_panel_goes_through_what_the_filter_left(look: Look) -> None:
    page = look(200, "#state=failed&sort=host")
    page.get_by_role("link", name=FAILED[0], exact=True).first.click()
    for name in FAILED[1:]:
        page.get_by_role("button", name="Next").click()
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
    expect(page.get_by_role("button", name="Next")).to_be_disabled()


# -- a view that is sent on


def test_the_fragment_holds_the_view(look: Look) -> None:
    page = look(200)
    page.get_by_label("Pool", exact=True).select_option("sandbox-fra")
    page.get_by_label("Search").fill("boot")
    page.get_by_role("button", name="host", exact=True).click()
    page.get_by_role("link", name=REBOOT[3], exact=True).first.click()
    seen, fragment = names(page), page.evaluate("location.hash")
    again = look(200, fragment)
    assert (names(again), again.evaluate("location.hash")) == (seen, fragment)
    expect(again.get_by_role("dialog", name=REBOOT[3])).to_be_visible()
    assert again.locator("#f-pool").input_value() == "sandbox-fra"
    again.keyboard.press("Escape")
    assert "host=" not in again.evaluate("location.hash")


# -- who reads otherwise


def test_it_says_to_a_screen_reader_what_it_shows(look: Look) -> None:
    page = look(200)
    grid = page.get_by_role("grid")
    assert grid.get_attribute("aria-rowcount") == "201"
    assert grid.get_by_role("columnheader").count() == 15
    assert page.locator("#count").get_attribute("aria-live") == "polite"
    page.get_by_role("link", name=ONE, exact=True).first.click()
    panel = page.get_by_role("dialog", name=ONE)
    pictures = panel.get_by_role("img")
    assert pictures.count() == 8
    held = [sum(bool(part["allocation_id"]) for part in gpu["mig_devices"]) for gpu in HOSTS[ONE]["gpus"]]
    parts = [len(gpu["mig_devices"]) for gpu in HOSTS[ONE]["gpus"]]
    assert [each.get_attribute("aria-label") for each in pictures.all()] == [
        f"{some} of {all_} parts held" for some, all_ in zip(held, parts)
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(look: Look, scheme: str) -> None:
    page = look(100, color_scheme=scheme)
    open_all(page)
    assert page.evaluate(PALE) == []
    page.get_by_role("link", name=REBOOT[0], exact=True).first.click()
    assert page.evaluate(PALE) == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 22, 26)") == (scheme == "dark")


def test_colours_can_be_switched_and_stay(look: Look) -> None:
    page = look(200, color_scheme="light")
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark == "rgb(20, 22, 26)"
    page.get_by_label("Colours").select_option("as the system")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


@pytest.mark.parametrize("width", [360, 768, 1280, 1920, 2560])
def test_no_width_makes_the_page_scroll_sideways(look: Look, width: int) -> None:
    page = look(100, width=width)
    open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name=ONE, exact=True).first.click()
    assert page.evaluate("document.querySelector('#panel').scrollWidth") <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_shows_cards_that_name_what_is_not_converged(look: Look) -> None:
    page = look(200, f"#q={REBOOT[0]}", width=360)
    row = page.locator("#matrix tbody tr").first
    shown = [
        cell.evaluate("(cell) => getComputedStyle(cell, '::before').content")
        for cell in row.locator("td:visible").all()
    ]
    assert shown == ["none", "none", '"hugepages"', '"cpu"', '"iommu"']
    page.get_by_label("Order").select_option("host")
    assert "sort=host" in page.evaluate("location.hash")


# -- paper, and no script


def test_paper_has_every_row_and_every_story(look: Look) -> None:
    page = look(100, color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    assert len(names(page)) == 100
    expect(page.locator("#filter")).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".story article").count() > 5
    assert all(
        each.evaluate("(each) => each.getBoundingClientRect().height > 0")
        for each in page.locator(".story article").all()
    )
    assert page.evaluate(PALE) == []
    assert page.pdf().startswith(b"%PDF")


def test_an_open_host_is_printed_alone(look: Look) -> None:
    page = look(200, f"#host={ONE}")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator("#matrix")).to_be_hidden()
    assert page.locator("#one svg:visible").count() == 8
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#one > *").count() == 0


def test_without_scripts_the_page_is_read_from_top_to_bottom(look: Look) -> None:
    page = look(200, java_script_enabled=False)
    expect(page.locator("#filter")).to_be_hidden()
    assert len(names(page)) == 200
    page.get_by_role("link", name=ONE, exact=True).first.click()
    part = page.locator(".host", has=page.get_by_role("heading", name=ONE, exact=True))
    expect(part).to_be_in_viewport()
    part.locator("summary").click()
    expect(part.get_by_text("8 GPUs")).to_be_visible()
    assert "<noscript" not in fleet(200)


def test_an_empty_fleet_is_a_page_too(look: Look) -> None:
    page = look(render_page(fleet_document({})))
    assert count(page) == "0 hosts"
    expect(page.get_by_text("There is no host in this report.")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("x")
    expect(page.get_by_text("Nothing waits")).to_be_visible()
    expect(page.get_by_text("No host is like that")).not_to_be_visible()


def test_a_fleet_of_one_is_counted_as_one(look: Look) -> None:
    page = look(1)
    assert count(page) == "1 host"
    page.keyboard.press("/")
    page.keyboard.type("nowhere")
    expect(page.locator("#count")).to_have_text("0 of 1 host")
    expect(page.get_by_text("No host is like that")).to_be_visible()
