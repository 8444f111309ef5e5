"""The report for everyone: keyboard, names for screen readers, small screens, dark rooms, paper."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenReport
from tests.browser.sample import page_data

DATA = page_data()
WIDTHS = (390, 768, 1280)


@pytest.fixture
def page(open_report: OpenReport) -> Page:
    return open_report(DATA)


# ---- keyboard ----


def test_the_keyboard_reaches_every_control_and_leaves_the_page_again(page: Page) -> None:
    wanted = page.evaluate(
        """() => {
            const all = 'a[href], button, input, summary, [tabindex="0"]';
            const seen = [...document.querySelectorAll(all)].filter(
                (node) => node.checkVisibility({visibilityProperty: true})
                    && !node.disabled && node.tabIndex >= 0);
            seen.forEach((node, i) => { node.dataset.stop = i });
            // of a group of radio buttons, Tab reaches only the chosen one
            return seen.filter((node) => node.type !== 'radio' || node.checked)
                .map((node) => node.dataset.stop);
        }"""
    )
    reached = []
    for _ in range(2 * len(wanted)):
        page.keyboard.press("Tab")
        stop = page.evaluate("document.activeElement.dataset.stop ?? null")
        if stop is None:
            break
        reached.append(stop)
    assert reached == wanted


def test_a_chart_is_one_stop_and_arrow_keys_walk_through_its_points(page: Page) -> None:
    chart = page.locator("[data-chart=frontier]")
    assert chart.locator("[tabindex='0']:visible").count() == 1
    chart.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    said = chart.locator("[aria-live]").inner_text()
    assert said.startswith("Trial ")
    assert said.endswith(" of 72.") or " 1 of " in said
    page.keyboard.press("End")
    last = chart.locator("[aria-live]").inner_text()
    assert last != said
    page.keyboard.press("Home")
    assert chart.locator("[aria-live]").inner_text() == said
    expect(chart.locator(".tip")).to_be_visible()
    page.keyboard.press("Escape")
    expect(chart.locator(".tip")).to_be_hidden()


def test_enter_selects_the_trial_that_is_pointed_at(page: Page) -> None:
    plot = page.locator("[data-chart=parallel] .plot")
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    bar = page.get_by_role("complementary", name="Selected trial")
    expect(bar).to_be_visible()
    page.keyboard.press("Enter")
    expect(bar).to_be_hidden()


def test_the_pointer_finds_the_nearest_point(page: Page) -> None:
    plot = page.locator("[data-chart=frontier] .plot")
    box, star = plot.bounding_box(), plot.locator(".overlay .role-chosen").bounding_box()
    assert box is not None
    assert star is not None
    page.mouse.move(star["x"] + star["width"] / 2 + 4, star["y"] + star["height"] / 2 + 4)
    tip = plot.locator(".tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(f"Trial {DATA['best']['trial']}")
    page.mouse.move(box["x"] + 1, box["y"] - 30)
    expect(tip).to_be_hidden()


# ---- names ----


def test_every_control_has_a_name_and_every_chart_a_description(page: Page) -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('a, button, input, summary, .plot, svg[role=img]')]
            .filter((node) => !(node.getAttribute('aria-label') || node.textContent.trim()
                || (node.labels && node.labels.length)))
            .map((node) => node.outerHTML.slice(0, 120))"""
    )
    assert nameless == []
    tree = page.locator("body").aria_snapshot()
    for line in (
        *("banner", "main", 'slider "What is a second worth?"', 'heading "How to reproduce"'),
        *('button "Theme: auto"', 'navigation "Sections"', 'table "All trials"'),
        'img "Quality against cost. ',
    ):
        assert f"- {line}" in tree or f"- '{line}" in tree, line


def test_headings_do_not_skip_a_level(page: Page) -> None:
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((node) => Number(node.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert levels.count(1) == 1


def test_the_numbers_of_a_chart_can_be_read_as_a_table(page: Page) -> None:
    chart = page.locator("[data-chart=importance]")
    chart.get_by_text("Show as table").click()
    expect(chart.locator("table")).to_have_count(2)
    expect(chart.locator("tbody tr").first).to_contain_text("rate")


# ---- sizes ----


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_in_charts_do_not_overlap(open_report: OpenReport, width: int) -> None:
    page = open_report(labelled(), width=width)
    expect(page.locator("svg.picture")).to_have_count(8)
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll('svg.picture')].flatMap((picture) => {
            const boxes = [...picture.querySelectorAll('.tick, .axis-title, .panel-title')]
                .map((node) => [node.textContent, node.getBoundingClientRect()]);
            const name = picture.closest('figure').dataset.chart;
            return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
                .filter(([, q]) => p.left < q.right - 1 && q.left < p.right - 1
                    && p.top < q.bottom - 3 && q.top < p.bottom - 3)
                .map(([b]) => `${name}: ${a} | ${b}`));
        })"""
    )
    assert overlaps == []


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_makes_the_page_scroll_sideways(open_report: OpenReport, width: int) -> None:
    page = open_report(labelled(), width=width)
    page.get_by_role("button", name="Select trial 3", exact=True).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def labelled() -> dict[str, Any]:
    """Data with long labels on axes."""
    data = page_data(80)
    names = tuple(f"{word} with a long name" for word in ("one", "two", "three", "four"))
    panel = dict(data["charts"]["dependence_model"]["panels"][0])
    panel["x"] = panel["x"] | {"labels": names}
    many = {"labels": tuple(f"choice {i}" for i in range(30))}
    crowd = panel | {"x": panel["x"] | many}
    data["charts"]["dependence_model"]["panels"] = [panel]
    data["charts"]["dependence_rate"]["panels"] = [crowd]
    lanes = data["charts"]["timeline"]["panels"][0]
    lanes["y"] = lanes["y"] | {"labels": names + many["labels"]}
    strands = data["charts"]["parallel"]["panels"][0]["layers"][0]
    strands["axes"] = [names[0], "another long name", *strands["axes"][2:]]
    return data


def test_the_header_holds_a_long_name_on_a_phone(open_report: OpenReport) -> None:
    data = page_data(5)
    data["study"]["name"] = "a study with a long name " * 3
    page = open_report(data, width=390)
    right = page.evaluate(
        """() => [...document.querySelectorAll('.study-name, .count-of, .theme-toggle')]
            .map((node) => node.getBoundingClientRect()).filter((box) => box.width)
            .map((box) => [box.left, box.right])"""
    )
    assert len(right) == 3
    assert all(a[1] < b[0] for a, b in itertools.pairwise(right))


@pytest.mark.parametrize("width", [390, 1280])
def test_panels_below_each_other_begin_at_the_same_place(
    open_report: OpenReport, width: int
) -> None:
    data = page_data(20)
    chart = data["charts"]["dependence_rate"]
    (panel,) = chart["panels"]
    line = panel["layers"][1]
    large = line | {"y": [1e5 * value for value in line["y"]]}
    chart["panels"] = [panel, panel | {"layers": [large]}]
    page = open_report(data, width=width)
    starts = page.locator("[data-chart=dependence_rate] .axis.x .base").evaluate_all(
        "lines => lines.map((line) => line.getAttribute('x1'))"
    )
    assert len(starts) == 2
    assert len(set(starts)) == 1


def test_the_legend_shows_each_mark_as_it_is_drawn(open_report: OpenReport) -> None:
    page = open_report(DATA)
    chosen = page.locator("[data-chart=timeline] .legend li", has_text="chosen model")
    expect(chosen.locator("rect.frame-of")).to_have_count(1)
    page = open_report(page_data(20, best=None, choices=None))
    expect(page.locator("[data-chart=timeline] svg.picture")).to_be_visible()
    expect(page.locator(".legend li", has_text="chosen model")).to_have_count(0)


def test_a_failed_trial_that_took_no_time_can_be_seen(open_report: OpenReport) -> None:
    data = page_data(20)
    (layer,) = data["charts"]["timeline"]["panels"][0]["layers"]
    failed = layer | {"role": "bad", "name": "failed"}
    short = failed | {"end": [start + 0.01 for start in layer["start"]]}
    for shown, crossed in ((failed, 1), (short, 0)):
        data["charts"]["timeline"]["panels"][0]["layers"] = [shown]
        page = open_report(data)
        expect(page.locator("[data-chart=timeline] .picture .spans.role-bad")).to_have_count(1)
        expect(page.locator("[data-chart=timeline] .crossed")).to_have_count(crossed)


def test_charts_follow_the_width_of_the_window(open_report: OpenReport) -> None:
    page = open_report(DATA)
    picture = page.locator("[data-chart=timeline] svg.picture")
    wide = picture.bounding_box()
    page.set_viewport_size({"width": 640, "height": 900})
    assert wide is not None
    expect(picture).not_to_have_attribute("width", f"{wide['width']:.0f}")
    narrow = picture.bounding_box()
    assert narrow is not None
    assert narrow["width"] < 640


# ---- themes, motion, paper ----


def background(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_the_theme_goes_round_and_is_remembered(page: Page) -> None:
    assert background(page) == "rgb(255, 255, 255)"
    for theme in ("light", "dark"):
        page.get_by_role("button", name="Theme:").click()
        expect(page.get_by_role("button", name=f"Theme: {theme}")).to_be_visible()
    dark = background(page)
    assert dark != "rgb(255, 255, 255)"
    page.reload()
    assert background(page) == dark
    page.get_by_role("button", name="Theme: dark").click()
    assert background(page) == "rgb(255, 255, 255)"


def test_without_a_choice_the_theme_is_that_of_the_system(open_report: OpenReport) -> None:
    assert background(open_report(DATA, color_scheme="dark")) != "rgb(255, 255, 255)"


def test_who_wants_no_motion_gets_none(open_report: OpenReport) -> None:
    page = open_report(DATA, reduced_motion="reduce")
    assert page.evaluate("tradewind.motion()") == "auto"
    moving = page.evaluate(
        """[...document.querySelectorAll('*')].filter((node) =>
            getComputedStyle(node).transitionDuration !== '0s').length"""
    )
    assert moving == 0


def test_paper_is_white_and_has_no_controls(open_report: OpenReport, tmp_path: Path) -> None:
    page = open_report(DATA, color_scheme="dark")
    page.emulate_media(media="print")
    assert background(page) == "rgb(255, 255, 255)"
    for gone in (".jump", ".toolbar", ".theme-toggle", ".actions", ".as-table"):
        expect(page.locator(gone).first).to_be_hidden()
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 10_000
