"""How quick the page is with many trials: opening it, the slider, the table, pointing at a chart.

Run: python benchmarks/page.py [--trials 10000]

Each interaction is timed in Chromium from the event to the end of the next frame.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.conftest import ARGS, CHROMIUM
from tests.browser.sample import page_data

from tradewind.charts.page import write_page

REPEATS = 7
FRAME = """(act) => new Promise((done) => {
    const began = performance.now();
    act();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
})"""
ACTIONS = {
    "move the slider": """() => {
        const slider = document.querySelector('input[type=range]');
        slider.value = (Number(slider.value) + 41) % Number(slider.max);
        slider.dispatchEvent(new Event('input'));
    }""",
    "type into the filter": """() => {
        const box = document.querySelector('input[type=search]');
        box.value = box.value ? '' : 'accuracy>0.85 network';
        box.dispatchEvent(new Event('input'));
    }""",
    "sort the table": "() => document.querySelector('th[data-key=value] button').click()",
    "point at the frontier": """() => {
        const plot = document.querySelector('[data-chart=frontier] .plot');
        const box = plot.getBoundingClientRect();
        const place = {clientX: box.left + box.width * Math.random(), clientY: box.top + 200};
        plot.dispatchEvent(new PointerEvent('pointermove', place));
    }""",
    "point at the parallel axes": """() => {
        const plot = document.querySelector('[data-chart=parallel] .plot');
        const box = plot.getBoundingClientRect();
        const place = {clientX: box.left + box.width * Math.random(), clientY: box.top + 200};
        plot.dispatchEvent(new PointerEvent('pointermove', place));
    }""",
    "select a trial": "() => tradewind.page.store.select(Math.floor(9000 * Math.random()))",
    "take new rows": "() => tradewind.page.rows(tradewind.page.store.rows.slice(0, 5))",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    n = parser.parse_args().trials
    data = page_data(n)
    began = time.perf_counter()
    text = write_page(data, title="benchmark")
    print(f"{n:,} trials")
    print(f"write the page               {1e3 * (time.perf_counter() - began):7.0f} ms")
    print(f"size of the page             {len(text) / 1e6:7.1f} MB")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        path = Path(folder) / "page.html"
        path.write_text(text, "utf-8")
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*ARGS])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        began = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector("[data-chart=parallel] svg.picture")
        print(f"open it                      {1e3 * (time.perf_counter() - began):7.0f} ms")
        for name, action in ACTIONS.items():
            times = [timed(page, action) for _ in range(REPEATS)]
            print(f"{name:28} {median(times):7.0f} ms (at most {max(times):.0f})")
        browser.close()


def timed(page: Page, action: str) -> float:
    """Milliseconds from an action to the end of the frame after it."""
    return float(page.evaluate(f"() => ({FRAME})({action})"))


if __name__ == "__main__":
    main()
