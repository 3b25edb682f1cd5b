# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages in a real Chromium. A test gets `look`, opens what it wants with it, and fails when a page complained: an error
or a warning on its console, or a request for anything but itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser import chromium, fleet_sample

Look = Callable[..., Page]
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        path, words = chromium.found(), chromium.arguments()
        started = driver.chromium.launch(executable_path=path, args=words, timeout=120_000)
        yield started
        started.close()


@cache
def fleet(count: int) -> str:
    """The page of a fleet of so many hosts, made once."""
    return fleet_sample.page_of(count)


@pytest.fixture
def look(browser: Browser, tmp_path: Path) -> Iterator[Look]:
    """Opens a page: `what` is HTML, or how many hosts the fleet has."""
    complaints: list[str] = []
    opened: list[BrowserContext] = []

    def look(what: str | int, fragment: str = "", width: int = 1280, height: int = 900, **options: Any) -> Page:
        path = tmp_path / f"{len(opened)}.html"
        path.write_text(fleet(what) if isinstance(what, int) else what, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        context.set_default_timeout(120_000)  # the machine may have other things to do
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(f"console: {said.text}"))
        page.on("pageerror", lambda fault: complaints.append(f"error: {fault}"))
        page.on("request", lambda asked: complaints.append(asked.url) if not is_itself(asked.url, path) else None)
        page.goto(f"{path.as_uri()}{fragment}")
        return page

    yield look
    for context in opened:
        context.close()
    assert complaints == []


def is_itself(url: str, path: Path) -> bool:
    return url.partition("#")[0] == path.as_uri()


def count(page: Page) -> str:
    """What the page says of how many hosts it shows."""
    return page.locator("#count").inner_text()


def names(page: Page) -> list[str]:
    """The hosts whose rows are in the table now, in their order."""
    return page.locator("#matrix tbody th").all_inner_texts()
