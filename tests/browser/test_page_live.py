"""The page while its data changes, as in the dashboard; and what its scripts compute."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenReport
from tests.browser.sample import START, page_data
from tradewind.charts.chart import Axis, Chart, Panel, Points
from tradewind.charts.page import SCRIPTS, asset
from tradewind.study.words import cost_amount, number, percent, spoken

DATA, LATER = page_data(40), page_data(60)


@pytest.fixture
def page(open_report: OpenReport) -> Page:
    return open_report(DATA)


def update(page: Page, data: dict[str, Any]) -> None:
    page.evaluate("(data) => tradewind.page.update(data)", data)


def test_new_data_shows_everywhere(page: Page) -> None:
    update(page, LATER)
    assert page.locator(".sentence").inner_text() == LATER["best"]["sentence"]
    expect(page.locator(".count")).to_have_text("60 trials")
    finished = LATER["study"]["counts"]["finished"]
    expect(page.locator(".counts")).to_contain_text(f"{finished} finished")


def test_what_the_reader_has_set_up_stays(page: Page) -> None:
    page.get_by_role("radio", name="Cost limit").check(force=True)
    page.get_by_role("slider").focus()
    page.keyboard.press("PageDown")
    said = page.locator(".worth").inner_text()
    page.get_by_role("searchbox").fill("state=finished")
    page.locator("thead").get_by_role("button", name="accuracy").click()
    page.get_by_role("button", name="Select trial 3", exact=True).click()
    plot = page.locator("[data-chart=timeline] .plot")
    plot.focus()
    update(page, LATER)
    assert page.locator(".worth").inner_text() == said
    expect(page.get_by_role("searchbox")).to_have_value("state=finished")
    expect(page.locator("th[aria-sort=ascending]")).to_have_text("accuracy")
    expect(page.locator("[data-chart=frontier] .overlay .selected")).to_have_count(1)
    expect(plot).to_be_focused()


def test_the_readers_choice_does_not_drift_as_the_range_of_the_slider_grows(page: Page) -> None:
    page.get_by_role("slider").focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    chosen = page.evaluate("tradewind.page.selected().goal")
    for factor in (1.07, 1.19, 1.4):
        tradeoff = DATA["choices"]["tradeoff"]
        larger = tradeoff | {"max": factor * 10 * (tradeoff["max"] or 1.0)}
        update(page, {"choices": DATA["choices"] | {"tradeoff": larger}})
    assert page.evaluate("tradewind.page.selected().goal") == chosen


def test_rows_are_replaced_and_added(page: Page) -> None:
    row = [*DATA["trials"]["rows"][0]]
    row[2] = 0.12345
    extra = [40, *row[1:]]
    rows = [row, *DATA["trials"]["rows"][1:], extra]
    update(page, {"trials": DATA["trials"] | {"rows": rows}})
    expect(page.locator("tr[data-trial='0']")).to_contain_text("0.12345")
    expect(page.locator("tr[data-trial='40']")).to_contain_text("0.12345")
    expect(page.locator(".count")).to_have_text("41 trials")


def test_a_chart_alone_may_change(page: Page) -> None:
    chart = DATA["charts"]["frontier"] | {"panels": [], "empty": "It is gone."}
    update(page, {"charts": {"frontier": chart}})
    expect(page.locator("[data-chart=frontier] .empty")).to_have_text("It is gone.")
    update(page, {"charts": {"frontier": DATA["charts"]["frontier"]}})
    expect(page.locator("[data-chart=frontier] svg.picture")).to_be_visible()


def test_running_trials_come_and_go(page: Page) -> None:
    run = {
        "trial": 40,
        "worker": "worker 1",
        "started": START + 350.0,
        "expected_end": START + 420.0,
        "params": {"rate": 0.1},
    }
    update(page, {"running": [run]})
    expect(page.locator("#running .run")).to_contain_text("10 s so far, about 60 s left")
    update(page, {"running": []})
    expect(page.locator("#running")).to_have_count(0)


def test_a_paused_study_says_so(page: Page) -> None:
    update(page, {"study": DATA["study"] | {"paused": {"reason": "lunch", "at": START}}})
    expect(page.locator(".notice")).to_have_text("Paused: lunch")


# ---- what the scripts compute ----


@pytest.fixture(scope="module")
def scripts(chromium: Browser) -> Any:
    page = chromium.new_page()
    for name in SCRIPTS:
        page.add_script_tag(content=asset(name).decode())
    yield page
    page.close()


AMOUNTS = st.floats(1e-7, 1e12) | st.integers(1, 10**7).map(float) | st.floats(1e-9, 1.0)
TIES = [0.125, 2.5, 12.5, 0.375, 1e-4, 9.95, 10.05, 1e6, 999999.5, 89.9, 90.0, 129600.0, 5400.0]


def test_numbers_are_written_as_in_sentences(scripts: Page) -> None:
    found: list[float] = [*TIES]

    @settings(max_examples=300, database=None)
    @given(AMOUNTS)
    def collect(amount: float) -> None:
        found.append(amount)

    collect()
    written = scripts.evaluate(
        """(amounts) => amounts.map((x) => [tradewind.format.number(x), tradewind.format.spoken(x),
            tradewind.format.percent(x), tradewind.format.cost(x, 'bytes'),
            tradewind.format.cost(x, 'money')])""",
        found,
    )
    expected = [
        [number(x), spoken(x), percent(x), cost_amount(x, "bytes"), cost_amount(x, "money")]
        for x in found
    ]
    for x, ours, theirs in zip(found, expected, written, strict=True):
        assert theirs == ours, x


@pytest.mark.parametrize(
    ("rate", "unit", "points", "text"),
    [
        (0.1, "s", True, "One second is worth 10 points of accuracy."),
        (0.01 / 60, "s", True, "One minute is worth 1 point of accuracy."),
        (50.0, "s", True, "One millisecond is worth 5 points of accuracy."),
        (2e-9, "bytes", True, "One megabyte is worth 0.2 points of accuracy."),
        (0.03, "money", False, "One unit of money is worth 0.03 in accuracy."),
        (0.002 / 60, "s", False, "One minute is worth 0.002 in accuracy."),
        (0.0, "s", True, "Cost does not matter."),
    ],
)
def test_a_rate_is_said_in_fitting_units(
    scripts: Page, rate: float, unit: str, points: bool, text: str
) -> None:
    said = scripts.evaluate(
        """([rate, unit, points]) => tradewind.steps.worth(
            rate, {unit, reference: 60}, {points, name: "accuracy"})""",
        [rate, unit, points],
    )
    assert said == text


@pytest.mark.parametrize("kind", ["linear", "log"])
def test_ticks_lie_within_the_axis_and_ascend(scripts: Page, kind: str) -> None:
    for low, high in ((0.1, 0.2), (1e-6, 1e6), (3.0, 3.0001), (0.5, 1e9), (1e-300, 1e-290)):
        for form in ("number", "percent", "seconds", "bytes", "clock"):
            levels = scripts.evaluate(
                "([s, f, d]) => tradewind.scales.ticks({scale: s, format: f}, d, 400, 64)",
                [kind, form, [low, high]],
            )
            for level in levels:
                at = [tick["at"] for tick in level]
                assert at == sorted(set(at)), (kind, form, low, high)
                margin = (high - low) * 1e-6
                assert all(low - margin <= value <= high + margin for value in at)
                assert len(at) < 250


def test_a_point_beyond_the_limits_of_its_axis_stands_at_the_edge(scripts: Page) -> None:
    layers = (Points([1.0, 2.0, 3.0], [0.9, 0.1, 0.95], trials=[0, 1, 2]),)
    axis = Axis("value", limits=(0.8, 1.0))
    chart = Chart("x", "X", "X.", (Panel(Axis("cost"), axis, layers),))
    places = scripts.evaluate(
        """(chart) => {
            const { items, frames } = tradewind.charts.scene(chart, 600, {});
            return items.map((item) => (frames[0].bottom - item.y) / frames[0].bottom);
        }""",
        chart.to_dict(),
    )
    assert places[1] == min(places)
    assert 0.0 < places[1] < 0.05
    assert places[0] < places[2] < 1.0
