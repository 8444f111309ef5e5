"""The table of all trials in the report."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenReport
from tests.browser.sample import page_data

DATA = page_data()
ROWS = DATA["trials"]["rows"]


@pytest.fixture
def page(open_report: OpenReport) -> Page:
    return open_report(DATA)


def shown(page: Page) -> list[int]:
    """The trials in the table, from top to bottom, on this page of it."""
    return [int(it) for it in page.locator("tbody .pick").all_inner_texts() if it]


def sort_by(page: Page, title: str) -> None:
    page.locator("table.grid thead").get_by_role("button", name=title, exact=True).click()


def fill(page: Page, text: str) -> None:
    page.get_by_role("searchbox", name="Filter the trials").fill(text)


def expected(keep: object) -> list[int]:
    assert callable(keep)
    return [row[0] for row in ROWS if keep(row)][:50]


def test_a_click_on_a_title_sorts_and_another_one_turns_it_round(page: Page) -> None:
    known = sorted((row for row in ROWS if row[2] is not None), key=lambda row: row[2])
    sort_by(page, "accuracy")
    assert shown(page) == [row[0] for row in known][:50]
    head = page.locator("th", has_text="accuracy").first
    expect(head).to_have_attribute("aria-sort", "ascending")
    sort_by(page, "accuracy")
    assert shown(page)[:5] == [row[0] for row in known[::-1]][:5]
    expect(head).to_have_attribute("aria-sort", "descending")


def test_texts_are_sorted_as_texts_and_gaps_come_last(page: Page) -> None:
    sort_by(page, "model")
    models = page.locator("tbody tr td:nth-child(6)").all_inner_texts()
    assert models == sorted(models)
    sort_by(page, "depth")
    depths = page.locator("tbody tr td:nth-child(8)").all_inner_texts()
    assert "–" not in depths[: sum(row[7] is not None for row in ROWS)]


def test_words_are_found_in_every_column(page: Page) -> None:
    fill(page, "MemoryError")
    assert shown(page) == expected(lambda row: row[-1] == "MemoryError")


@pytest.mark.parametrize(
    ("text", "keep"),
    [
        ("accuracy>0.9", lambda row: row[2] is not None and row[2] > 0.9),
        ("value >= 0.9 model=forest", lambda row: (row[2] or 0) >= 0.9 and row[5] == "forest"),
        ("state=failed", lambda row: row[1] == "failed"),
        ("state!=failed", lambda row: row[1] != "failed"),
        ("cost<500ms", lambda row: row[3] < 0.5),
        ('"training size"<=40%', lambda row: row[4] <= 0.4),
        ("training size<=40% Accuracy>0.5", lambda row: row[4] <= 0.4 and (row[2] or 0) > 0.5),
        ("model~oost", lambda row: row[5] == "boosting"),
        ('"is not finite"', lambda row: "is not finite" in str(row[-1])),
    ],
)
def test_comparisons_filter(page: Page, text: str, keep: object) -> None:
    fill(page, text)
    assert shown(page) == expected(keep)


def test_percentages_of_a_column_have_equally_many_decimals(open_report: OpenReport) -> None:
    data = page_data()
    place = [it["key"] for it in data["trials"]["columns"]].index("train_size")
    for row, share in zip(data["trials"]["rows"], (0.5, 0.125, 1.0), strict=False):
        row[place] = share
    cells = open_report(data).locator(f"tbody tr td:nth-child({place + 1})")
    assert cells.all_inner_texts()[:3] == ["50.0%", "12.5%", "100.0%"]


def test_an_unknown_column_is_named(page: Page) -> None:
    fill(page, "colour>3")
    expect(page.locator(".problem")).to_have_text("No column is called “colour”.")


def test_a_filter_that_nothing_passes_says_so(page: Page) -> None:
    fill(page, "no such words")
    expect(page.locator("td.nothing")).to_have_text("No trial passes the filter.")
    expect(page.locator(".count")).to_have_text("0 of 60 trials")


def test_states_are_buttons(page: Page) -> None:
    chip = page.get_by_role("group", name="States").get_by_role("button", name="failed")
    chip.click()
    expect(chip).to_have_attribute("aria-pressed", "true")
    assert shown(page) == expected(lambda row: row[1] == "failed")
    chip.click()
    assert len(shown(page)) == 50


def test_the_table_has_pages(page: Page) -> None:
    page.get_by_role("button", name="Next page").click()
    assert shown(page) == [row[0] for row in ROWS][50:]
    expect(page.get_by_role("button", name="Next page")).to_be_disabled()


def test_columns_can_be_hidden(page: Page) -> None:
    page.locator("details.menu summary").click()
    page.get_by_role("checkbox", name="model").uncheck()
    expect(page.locator("thead th", has_text="model")).to_have_count(0)
    page.get_by_role("checkbox", name="model").check()
    expect(page.locator("thead th", has_text="model")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("checkbox", name="model")).to_be_hidden()


def test_a_selected_row_is_marked_in_the_charts(page: Page) -> None:
    page.get_by_role("button", name="Select trial 3", exact=True).click()
    expect(page.locator("tr[data-trial='3']")).to_have_class("selected")
    for chart in ("frontier", "progress_trials", "timeline", "parallel", "predicted_cost"):
        expect(page.locator(f"[data-chart={chart}] .overlay .selected")).to_have_count(1)
    page.get_by_role("complementary").get_by_role("button", name="Clear").click()
    expect(page.locator(".overlay .selected")).to_have_count(0)


def test_a_trial_is_found_in_the_table_whatever_the_filter(page: Page) -> None:
    fill(page, "state=failed")
    page.get_by_role("button", name="Show in table").click()
    best = DATA["best"]["trial"]
    expect(page.locator(f"tr[data-trial='{best}'] .pick")).to_be_focused()


@pytest.mark.parametrize(("name", "text"), [("Python", "None"), ("JSON", "null")])
def test_a_configuration_is_copied(open_report: OpenReport, name: str, text: str) -> None:
    best = DATA["best"] | {"params": {"model": "it's", "rate": 0.1, "flag": True, "none": None}}
    page = open_report(DATA | {"best": best}, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name=f"Copy as {name}").click()
    expect(page.locator(".answer .button", has_text="Copied")).to_have_count(1)
    copied = page.evaluate("navigator.clipboard.readText()")
    assert (eval if name == "Python" else json.loads)(copied) == best["params"]
    assert text in copied


def test_the_rows_are_downloaded_as_csv(page: Page, tmp_path: Path) -> None:
    fill(page, "state=failed")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download these rows as CSV").click()
    assert waiting.value.suggested_filename == "digits-trials.csv"
    waiting.value.save_as(tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text("utf-8")
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == [column["key"] for column in DATA["trials"]["columns"]]
    assert [int(row[0]) for row in rows] == expected(lambda row: row[1] == "failed")


def test_the_rows_are_downloaded_as_json(page: Page, tmp_path: Path) -> None:
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download these rows as JSON").click()
    waiting.value.save_as(tmp_path / "rows.json")
    records = json.loads((tmp_path / "rows.json").read_text("utf-8"))
    assert [list(record.values()) for record in records] == ROWS


def test_a_spreadsheet_takes_no_text_for_a_formula(open_report: OpenReport) -> None:
    page = open_report(DATA)
    text = page.evaluate(
        "tradewind.table.csv([{key: 'a'}, {key: 'b'}], [[1, '=1+1'], [-2, 'say \"x\", y']])"
    )
    assert text == 'a,b\r\n1,\'=1+1\r\n-2,"say ""x"", y"\r\n'


@pytest.mark.slow
def test_ten_thousand_trials_stay_usable(open_report: OpenReport) -> None:
    page = open_report(page_data(10_000))
    page.set_default_timeout(60_000)
    expect(page.locator(".count")).to_have_text("10,000 trials")
    dots = page.locator("[data-chart=frontier] .dots").first
    assert float(dots.evaluate("(node) => parseFloat(getComputedStyle(node).strokeWidth)")) > 2.0
    fill(page, "accuracy>0.9")
    sort_by(page, "accuracy")
    assert page.locator("tbody tr").count() == 50
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    expect(page.locator("[data-chart=frontier] .overlay .role-chosen")).to_have_count(1)
