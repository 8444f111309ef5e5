"""What the browser tests of the dashboard share: a study, its dashboard, and pages of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect

import tradewind as tw
from tests.browser.watching import Watch
from tests.dashboard.pages import database, make_study
from tests.dashboard.serving import Dashboard, dashboard

SECONDS = 30_000  # milliseconds to wait for what a loaded machine may take
expect.set_options(timeout=SECONDS)

NO_PAGE = "Failed to load resource"  # what a browser logs when an answer is an error

OpenPage: TypeAlias = Callable[..., Page]


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Open an address of a dashboard, and check in the end that the page was quiet and asked
    nobody else. Errors that the browser itself logs about refused requests are `expected`."""
    opened: list[tuple[Any, Watch, str, bool]] = []

    def open_at(server: Dashboard, query: str = "", *, token: bool = True, **options: Any) -> Page:
        expected = options.pop("expected", False)
        options = {"viewport": {"width": 1280, "height": 900}, "locale": "en-US"} | options
        context, watch = chromium.new_context(**options), Watch()
        page = watch.over(context.new_page())
        page.set_default_timeout(SECONDS)
        opened.append((context, watch, server.url, expected))
        page.goto(f"{server.url}{query}" + f"#token={server.token}" * token)
        page.wait_for_selector("main")
        return page

    yield open_at
    for context, watch, url, expected in opened:
        context.close()
        logged = [it for it in watch.console if not (expected and NO_PAGE in it)]
        logged = [it for it in logged if "net::ERR_" not in it]  # the server has ended
        assert logged == []
        assert watch.dialogs == []
        assert [it for it in watch.requests if not it.startswith((url, "data:"))] == []


@pytest.fixture
def study(tmp_path: Path) -> tw.Study:
    return make_study(database(tmp_path), trials=8)


@pytest.fixture
def server(study: tw.Study, tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(database(tmp_path)) as found:
        yield found


def live(page: Page) -> Page:
    """The page, as soon as it is connected."""
    expect(page.locator(".live-word")).to_have_text(re.compile("^(live|paused)"))
    return page


def said(page: Page, text: str) -> None:
    expect(page.locator(".said")).to_contain_text(text)


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)
