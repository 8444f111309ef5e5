"""The sliders of the report: they move the chosen model, its sentence and its mark."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenReport
from tests.browser.sample import page_data

DATA = page_data()


@pytest.fixture
def page(open_report: OpenReport) -> Page:
    return open_report(DATA)


def slider(page: Page) -> Any:
    return page.get_by_role("slider")


def sentence(page: Page) -> str:
    return page.locator(".sentence").inner_text()


def mark(page: Page, chart: str = "frontier") -> str | None:
    return page.locator(f"[data-chart={chart}] .overlay .role-chosen").get_attribute("d")


def steps(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DATA["choices"][kind]["steps"]
    return found


def test_at_first_the_studys_own_choice_is_shown(page: Page) -> None:
    assert sentence(page) == DATA["best"]["sentence"]
    expect(page.get_by_role("button", name="Reset to the study’s goal")).to_be_hidden()


def test_the_ends_of_the_slider_choose_the_first_and_the_last_model(page: Page) -> None:
    slider(page).focus()
    page.keyboard.press("End")
    assert sentence(page) == steps("tradeoff")[-1]["sentence"]
    page.keyboard.press("Home")
    assert sentence(page) == steps("tradeoff")[0]["sentence"]


def test_every_model_that_is_ever_chosen_can_be_reached_by_arrow_keys(page: Page) -> None:
    slider(page).focus()
    page.keyboard.press("Home")
    seen = [sentence(page)]
    for _ in range(int(slider(page).get_attribute("max") or 0)):
        page.keyboard.press("ArrowRight")
        if sentence(page) != seen[-1]:
            seen.append(sentence(page))
    assert seen == [step["sentence"] for step in steps("tradeoff")]


def test_a_move_by_mouse_moves_the_model_its_mark_and_the_row(page: Page) -> None:
    before = mark(page), mark(page, "progress_trials")
    box = slider(page).bounding_box()
    page.mouse.move(box["x"] + 12, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    last = steps("tradeoff")[-1]
    assert sentence(page) == last["sentence"]
    after = mark(page), mark(page, "progress_trials")
    assert before[0] != after[0]
    assert before[1] != after[1]
    chosen = page.locator("tr.chosen")
    assert chosen.get_attribute("data-trial") == str(last["trial"])


def test_the_slider_says_what_it_means(page: Page) -> None:
    slider(page).focus()
    page.keyboard.press("Home")
    first = f"Trial {steps('tradeoff')[0]['trial']}."
    expect(slider(page)).to_have_attribute("aria-valuetext", f"Cost does not matter. {first}")
    page.keyboard.press("End")
    text = slider(page).get_attribute("aria-valuetext") or ""
    assert text.startswith("One ")
    assert "worth" in text
    assert text.endswith(f"Trial {steps('tradeoff')[-1]['trial']}.")


def test_a_page_of_the_slider_is_more_than_a_step(page: Page) -> None:
    slider(page).focus()
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    at = int(slider(page).input_value())
    assert at > 1
    page.keyboard.press("PageDown")
    assert slider(page).input_value() == "0"


def test_a_cost_limit_chooses_by_cost(page: Page) -> None:
    page.get_by_role("radio", name="Cost limit").check(force=True)
    slider(page).focus()
    page.keyboard.press("Home")
    assert sentence(page) == steps("limit")[0]["sentence"]
    expect(page.locator(".guides .guide-name")).to_have_text("limit")
    page.keyboard.press("End")
    assert sentence(page) == steps("limit")[-1]["sentence"]


def test_the_way_back_leads_to_the_studys_own_choice(page: Page) -> None:
    slider(page).focus()
    page.keyboard.press("End")
    page.get_by_role("button", name="Reset to the study’s goal").click()
    assert sentence(page) == DATA["best"]["sentence"]


def test_a_change_of_the_choice_is_announced(page: Page) -> None:
    assert page.locator(".sentence").get_attribute("aria-live") == "polite"


def test_other_scripts_hear_of_the_choice(page: Page) -> None:
    page.evaluate(
        "document.addEventListener('tradewind:choice', (event) => { window.heard = event.detail })"
    )
    slider(page).focus()
    page.keyboard.press("End")
    heard = page.evaluate("window.heard")
    assert heard["trial"] == steps("tradeoff")[-1]["trial"]
    assert heard["goal"]["kind"] == "tradeoff"


def test_the_studys_own_trade_off_is_where_the_slider_starts(open_report: OpenReport) -> None:
    tradeoff = DATA["choices"]["tradeoff"]
    own = tradeoff["steps"][2]
    choices = DATA["choices"] | {"tradeoff": tradeoff | {"alpha": own["from"]}}
    best = DATA["best"] | {"trial": own["trial"], "sentence": own["sentence"]}
    page = open_report(DATA | {"choices": choices, "best": best})
    assert f"Trial {own['trial']}." in (slider(page).get_attribute("aria-valuetext") or "")
    slider(page).focus()
    page.keyboard.press("Home")
    page.get_by_role("button", name="Reset to the study’s goal").click()
    assert f"Trial {own['trial']}." in (slider(page).get_attribute("aria-valuetext") or "")


def test_the_studys_own_limit_is_where_the_slider_starts(open_report: OpenReport) -> None:
    limit = DATA["choices"]["limit"]
    own = limit["steps"][1]
    choices = DATA["choices"] | {"limit": limit | {"own": own["from"]}}
    best = DATA["best"] | {"trial": own["trial"], "sentence": own["sentence"]}
    page = open_report(DATA | {"choices": choices, "best": best})
    expect(page.get_by_role("radio", name="Cost limit")).to_be_checked()
    assert f"Trial {own['trial']}." in (slider(page).get_attribute("aria-valuetext") or "")
    expect(page.locator(".guides .guide-name")).to_have_text("limit")
    expect(page.locator(".legend").first.get_by_text("equally good")).to_be_hidden()


def with_limit(own: float, **changes: Any) -> dict[str, Any]:
    limit = DATA["choices"]["limit"] | {"own": own, "said": "At most this."}
    return DATA | {"choices": DATA["choices"] | {"limit": limit}} | changes


def thumb_and_part(page: Page) -> tuple[float, dict[str, float] | None]:
    """The middle of the thumb, and the box of the marked part of the strip, if there is one."""
    box, part = slider(page).bounding_box(), page.locator(".part.current")
    share = int(slider(page).input_value()) / int(slider(page).get_attribute("max") or 1)
    return box["x"] + 10 + share * (box["width"] - 20), (
        part.bounding_box() if part.count() else None
    )


@pytest.mark.parametrize("place", [None, "Home", "End"])
def test_the_thumb_stands_on_the_part_of_its_model(open_report: OpenReport, place: str) -> None:
    last = steps("limit")[-1]
    best = DATA["best"] | {"trial": last["trial"], "sentence": last["sentence"]}
    page = open_report(with_limit(3.0 * last["from"], best=best))
    slider(page).focus()
    if place:
        page.keyboard.press(place)
    thumb, part = thumb_and_part(page)
    assert part is not None
    assert part["x"] - 1 <= thumb <= part["x"] + part["width"] + 1
    strip = page.locator(".strip").bounding_box()
    assert strip is not None
    ends = {"Home": strip["x"], "End": strip["x"] + strip["width"], None: thumb}
    assert thumb == pytest.approx(ends[place], abs=1)
    expect(page.locator(".strip-name")).to_have_text("The trial that is chosen")


def test_a_limit_beyond_the_axis_is_not_drawn(open_report: OpenReport) -> None:
    page = open_report(with_limit(1e6))
    expect(page.locator(".guides > *")).to_have_count(0)


def test_where_no_trial_meets_the_goal_the_page_says_so_and_marks_none(
    open_report: OpenReport,
) -> None:
    why = "No finished trial meets the goal: trial 3 comes closest."
    low = steps("limit")[0]["from"]
    page = open_report(with_limit(low / 9, best=None, unanswered=why))
    assert sentence(page) == why
    expect(page.locator(".eyebrow")).to_have_text("The study’s goal · At most this.")
    assert thumb_and_part(page)[1] is None
    assert (slider(page).get_attribute("aria-valuetext") or "").endswith("No trial.")
    expect(page.locator(".points.moving")).to_have_count(0)
    slider(page).focus()
    page.keyboard.press("End")
    assert sentence(page) == steps("limit")[-1]["sentence"]
    page.keyboard.press("Home")
    assert sentence(page) == "No trial keeps this limit."


def test_the_box_writes_the_value_as_the_sentence_and_shows_what_is_believed(
    open_report: OpenReport,
) -> None:
    table = DATA["trials"]
    number, seen = DATA["best"]["trial"], 0.83776
    columns = [*table["columns"][:3], {**table["columns"][2], "key": "believed"}]
    rows = [[*row[:2], seen if row[0] == number else row[2], 0.8401] for row in table["rows"]]
    page = open_report(DATA | {"trials": {"columns": columns, "rows": rows}})
    assert page.locator(".figures").inner_text().split("\n")[:4] == [
        *("Accuracy, measured", "0.8378", "Accuracy, believed", "0.8401"),
    ]


def test_nothing_is_wider_than_a_phone_or_leaves_its_picture(open_report: OpenReport) -> None:
    page = open_report(with_limit(steps("limit")[-1]["from"] * 0.98), width=360, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    outside = """
        () => [...document.querySelectorAll("svg.picture")].flatMap((picture) => {
          const box = picture.getBoundingClientRect();
          return [...picture.querySelectorAll("text, .guide, .beyond")].filter((mark) => {
            const { left, right } = mark.getBoundingClientRect();
            return left < box.left - 1 || right > box.right + 1;
          }).map((mark) => mark.textContent);
        })
    """
    assert page.evaluate(outside) == []


def test_without_costs_there_is_no_slider(open_report: OpenReport) -> None:
    page = open_report(DATA | {"choices": None})
    expect(slider(page)).to_have_count(0)
    assert sentence(page) == DATA["best"]["sentence"]
