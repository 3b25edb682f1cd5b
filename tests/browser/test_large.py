# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A page of a thousand hosts: how large it is, and whether it stays as quick as a small one."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.conftest import Look, count, fleet, names

# How long each takes until the table is laid out again, in milliseconds; what is sought is another each time.
TYPING = """(sought) => sought.map((text) => {
  const input = document.getElementById("q");
  const start = performance.now();
  input.value = text;
  input.dispatchEvent(new Event("input", { bubbles: true }));
  document.getElementById("matrix").getBoundingClientRect();
  return performance.now() - start;
})"""
SORTING = """(columns) => columns.map((column) => {
  const start = performance.now();
  document.querySelectorAll("#matrix thead button")[column].click();
  document.getElementById("matrix").getBoundingClientRect();
  return performance.now() - start;
})"""
SOUGHT = ["s", "sa", "san", "sand", "sandb", "sandbo", "sandbox", "", "alloc", "fra", "refused", "GPU-", ""]
LOADED = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def cost(page: Page, script: str, given: list[str] | list[int]) -> float:
    """The least of several turns: what else the machine does only adds to it."""
    page.evaluate(TYPING, ["x", ""])  # what is sought is gathered once
    return float(min(page.evaluate(script, given)))


def test_a_thousand_hosts_cost_a_keystroke_little_more_than_a_hundred(look: Look) -> None:
    large, small = look(1000), look(100)
    assert (count(large), count(small)) == ("1000 hosts", "100 hosts")
    typed = cost(large, TYPING, SOUGHT * 2) / cost(small, TYPING, SOUGHT * 2)
    ordered = cost(large, SORTING, [0, 1, 2, 3] * 3) / cost(small, SORTING, [0, 1, 2, 3] * 3)
    print(f"typing {typed:.1f} times, sorting {ordered:.1f} times what a hundred hosts cost")
    assert typed < 8  # of ten times the hosts; the rows that are laid out are as many
    assert ordered < 8


def test_the_first_search_costs_less_than_the_page_did(look: Look) -> None:
    page = look(1000)
    first = page.evaluate(TYPING, ["sandbox"])[0]
    print(f"the first search: {first / page.evaluate(LOADED):.2f} of the time in which the page came")
    assert first < page.evaluate(LOADED)
    assert count(page) == "450 of 1000 hosts"


def test_rows_come_as_one_scrolls(look: Look) -> None:
    page = look(1000, "#sort=host")
    assert len(names(page)) == 100
    for _turn in range(30):
        page.locator(".grid").evaluate("(grid) => { grid.scrollTop = grid.scrollHeight; }")
        page.wait_for_timeout(50)
        if len(names(page)) == 1000:
            break
    assert len(set(names(page))) == 1000


def test_a_page_stays_small() -> None:
    # Of a thousand hosts in this fleet 530 have GPUs: 3,100 of them, with 9,800 holds.
    size = len(fleet(1000).encode())
    print(f"{size / 1e6:.2f} MB of a thousand hosts")
    assert size < 3.5e6
