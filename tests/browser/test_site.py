"""The documentation in a browser, opened from the disk, as `make docs` leaves it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.watching import Watch
from tests.pages import ROOT

SMALL = """
import sys
from pathlib import Path
import build_site

folder = Path(sys.argv[1])
build_site.gather(folder)
for page in (folder / "docs").rglob("*.md"):
    if page.name not in ("index.md", "goals.md"):  # two pages are enough, and faster
        page.unlink()
build_site.build_site(folder)
"""


@pytest.mark.slow
def test_the_search_finds_a_page_without_a_server(
    chromium: Browser, watch: Watch, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-c", SMALL, tmp_path], cwd=ROOT / "tools", check=True)
    page = watch.over(chromium.new_page(viewport={"width": 1280, "height": 900}))
    page.goto((tmp_path / "site" / "index.html").as_uri())
    page.get_by_role("button", name="Search").click()
    box = page.get_by_placeholder("Search")
    box.press_sequentially("tolerances")  # key by key: each one is a message to the worker
    expect(box).to_have_value("tolerances")
    found = page.locator("a[href*='#limits-and-tolerances']", has_text="Which goal do I want?")
    expect(found).to_be_visible()
    page.close()
