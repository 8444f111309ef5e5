"""Chromium, without a window and a network, for the tests of the report and the dashboard."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.live import open_page, server, study
from tests.browser.watching import Watch
from tradewind.charts.page import write_page

__all__ = ["open_page", "server", "study"]  # fixtures of the dashboard

INSTALLED = shutil.which("chromium") or shutil.which("google-chrome")
CHROMIUM = Path(os.environ.get("CHROMIUM") or INSTALLED or "/usr/bin/chromium")
ARGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


OpenReport: TypeAlias = Callable[..., Page]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A browser with a fresh user folder. It must be there: nothing is skipped without it. It ends
    with these tests, because others cannot run an event loop beside that of Playwright."""
    if not CHROMIUM.exists():
        pytest.fail(
            f"the browser tests need Chromium at {CHROMIUM}: install Debian's package `chromium`, "
            "or set the environment variable CHROMIUM to its path"
        )
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*ARGS])
        yield browser
        browser.close()


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Nothing may be logged, asked or requested, whatever a test does with a page."""
    seen = Watch()
    yield seen
    assert seen.console == []
    assert seen.dialogs == []
    assert seen.outside() == []


@pytest.fixture
def open_report(chromium: Browser, watch: Watch, tmp_path: Path) -> Iterator[OpenReport]:
    """Write a report of page data, open it, and watch it: `open_report(data, width=390)`."""
    contexts = []

    def open_page(
        data: dict[str, Any], *, width: int = 1280, height: int = 900, **settings: Any
    ) -> Page:
        path = tmp_path / "report.html"
        path.write_text(write_page(data, title="A study"), "utf-8")
        context = chromium.new_context(
            viewport={"width": width, "height": height}, locale="en-US", **settings
        )
        contexts.append(context)
        page = watch.over(context.new_page())
        page.set_default_timeout(10_000)
        page.goto(path.as_uri())
        page.wait_for_selector("main")
        return page

    yield open_page
    for context in contexts:
        context.close()
