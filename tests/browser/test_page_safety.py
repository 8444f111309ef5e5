"""Whatever users and programs write, it stays text, and the page says what it cannot show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenReport, Watch
from tests.browser.sample import empty_data, page_data
from tradewind.charts.page import write_page

HOSTILE = (
    '<img src=x onerror="alert(1)">',
    "</script><script>alert(2)</script>",
    "${alert(3)} {{title}} `x`",
    "\u202egnp.exe\u2066",
    "n" * 10_000,
    "👩‍🔬 Ünï©ødé 漢字",
    "a\x00b\x1b[31m\u2028\u2029",
    "__proto__",
    "constructor",
    '"><svg onload=alert(4)>',
    "javascript:alert(5)",
)


def spoiled(value: Any, text: str, key: str = "") -> Any:
    """The data with `text` wherever something is written for people to read."""
    if isinstance(value, dict):
        fixed = ("id", "kind", "scale", "format", "role", "key", "charts", "sections")
        return {
            k: v if k in fixed and not isinstance(v, dict) else spoiled(v, text, k)
            for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [spoiled(item, text, key) for item in value]
    return text if isinstance(value, str) and key not in ("direction", "unit") else value


def hostile_data(text: str) -> dict[str, Any]:
    data = page_data(40)
    sections, charts = data["sections"], data["charts"]
    data = spoiled(data, text) | {"sections": sections}
    for name, chart in charts.items():
        data["charts"][name]["name"] = chart["name"]
    for section in data["sections"]:
        section["title"] = section["text"] = text
    data["best"]["params"] = {text: text, "rate": 0.1}
    data["study"]["paused"] = {"reason": text, "at": 0.0}
    data["study"]["stopped"] = text
    data["running"] = [
        {"trial": 1, "worker": text, "started": 0.0, "expected_end": None, "params": {text: text}}
    ]
    return data


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:12].encode().hex() for text in HOSTILE])
def test_hostile_texts_stay_texts(open_report: OpenReport, text: str) -> None:
    page = open_report(hostile_data(text))
    for image in ("img", "script[src]", "iframe", "object", "svg[onload]", "[onerror]"):
        expect(page.locator(image)).to_have_count(0)
    expect(page.locator(".broken")).to_have_count(0)
    visit(page)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1280


def visit(page: Page) -> None:
    """Use what shows texts: slider, tooltips, disclosures, the selected trial, the filter."""
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    page.locator("[data-chart=frontier] .plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    for closed in page.locator("details:not(.menu) > summary").all():
        closed.click()
    page.get_by_role("searchbox").fill("x")


def test_marks_that_turn_text_around_are_shown_as_what_they_are(open_report: OpenReport) -> None:
    page = open_report(hostile_data("\u202egnp.exe"))
    expect(page.locator(".study-name")).to_have_text("\\u202egnp.exe")


def test_a_parameter_named_proto_is_a_parameter(open_report: OpenReport) -> None:
    data = page_data(20)
    data["trials"]["columns"][5]["title"] = "__proto__"
    page = open_report(data | {"best": None, "parameters": []})
    params = page.evaluate("JSON.stringify(tradewind.page.store.params(0))")
    assert '"__proto__":"' in params


# ---- nothing to show ----


def test_a_study_without_trials_says_so(open_report: OpenReport) -> None:
    page = open_report(empty_data())
    expect(page.locator(".sentence")).to_have_text("No trial has finished yet.")
    expect(page.locator("[data-chart=frontier] .empty")).to_contain_text("No trial has finished")
    expect(page.locator("td.nothing")).to_have_text("There are no trials yet.")
    expect(page.locator("main > section")).to_have_count(3)


def test_a_section_that_would_only_repeat_this_is_left_out(open_report: OpenReport) -> None:
    data = page_data(2)
    data["study"]["counts"]["finished"] = 0
    for name in ("importance", "parallel", "predicted_cost"):
        data["charts"][name] |= {"panels": [], "empty": "No trial has finished yet."}
    page = open_report(data)
    shown = page.locator("main > section").evaluate_all("all => all.map((one) => one.id)")
    assert {"answer", "timeline", "failures", "table", "reproduce"} <= set(shown)
    assert not {"importance", "parallel", "predicted", "learning"} & set(shown)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (page_data(5, format=2), "written by a newer Tradewind (format 2)"),
        (page_data(5, format=0), "data that it cannot read"),
        ({}, "not a study of Tradewind"),
        ([], "holds no study"),
    ],
)
def test_data_that_cannot_be_read_is_explained(
    open_report: OpenReport, data: Any, words: str
) -> None:
    page = open_report(data)
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing to show")
    expect(page.locator("main")).to_contain_text(words)


def test_a_broken_part_does_not_take_the_others_with_it(open_report: OpenReport) -> None:
    data = page_data(20)
    data["charts"]["timeline"]["panels"][0]["x"] = None
    page = open_report(data)
    expect(page.locator("#timeline .broken")).to_contain_text("This chart cannot be drawn")
    expect(page.locator("[data-chart=parallel] svg.picture")).to_be_visible()


def test_the_policy_stops_scripts_that_do_not_belong_to_the_page(
    chromium: Browser, tmp_path: Path
) -> None:
    """The policy is the second line of defence: a page with a smuggled script does not run it."""
    text = write_page(page_data(5), title="x")
    path = tmp_path / "smuggled.html"
    smuggled = "<script>document.title = 'smuggled'</script><img src=x onerror=\"alert(1)\">"
    path.write_text(text.replace("</body>", f"{smuggled}</body>"), "utf-8")
    page, seen = chromium.new_page(), Watch()
    seen.over(page).goto(path.as_uri())
    assert page.title() == "digits · Tradewind"
    assert seen.dialogs == []
    assert any("Content Security Policy" in line for line in seen.console)
    page.close()


def test_without_scripts_the_page_says_what_is_missing(chromium: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(write_page(page_data(5), title="x"), "utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    expect(page.locator("main")).to_contain_text("JavaScript")
    context.close()


def test_the_largest_and_the_smallest_numbers_have_a_place(open_report: OpenReport) -> None:
    page = open_report(page_data(4))
    found = page.evaluate(
        """[[1e-300, 1e300], [1, 1e300], [5e-324, 1.7e308], [3, 3]].map(([low, high]) => {
            const axis = { scale: "log", format: "number" }, steps = [{ from: low }];
            const domain = tradewind.scales.domain([low, high], axis);
            const ticks = tradewind.scales.ticks(axis, domain, 600, 64);
            const { positions } = tradewind.steps.limit({ low, high, steps });
            return [...domain, ...positions, ticks.length].every(Number.isFinite);
        })"""
    )
    assert found == [True] * 4
