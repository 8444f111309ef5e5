"""Steering studies from the page of the dashboard."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import tradewind as tw
from tests.browser.live import OpenPage, live, said, until
from tests.dashboard.pages import database
from tests.dashboard.serving import Dashboard, driver
from tradewind.types import State

pytestmark = pytest.mark.slow


def drag(page: Page, key: str) -> None:
    """Move the slider of the trade-off to one of its ends."""
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press(key)


def test_pause_and_resume_work_on_a_driver_in_another_process(
    study: tw.Study, server: Dashboard, tmp_path: Path, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    with driver(database(tmp_path), seconds=0.2):
        until(lambda: any(t.state is State.RUNNING for t in study.trials))
        page.get_by_role("button", name="Pause").click()
        page.get_by_label("Why?").fill("the GPU is needed")
        page.get_by_role("button", name="Pause the study").click()
        said(page, "The study is paused")
        expect(page.locator(".live-word")).to_contain_text("paused since")
        expect(page.locator(".notices")).to_contain_text("the GPU is needed")
        until(lambda: not any(t.state is State.RUNNING for t in study.trials))
        count = len(study.trials)
        time.sleep(1.0)
        assert len(study.trials) == count
        page.get_by_role("button", name="Resume").click()
        said(page, "The study goes on")
        study.pause("somebody else")
        expect(page.locator(".said")).to_have_text("")  # it does not go on any more
        study.resume()
        expect(page.locator(".live-word")).to_have_text("live")
        until(lambda: len(study.trials) > count)


def test_stopping_a_running_trial_ends_it_at_its_driver(
    study: tw.Study, server: Dashboard, tmp_path: Path, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    with driver(database(tmp_path), seconds=600.0):
        page.get_by_role("button", name="Stop trial 8").click()
        page.get_by_role("button", name="Let it run").click()
        assert study.trials[8].state is State.RUNNING  # a slip does no harm
        page.get_by_role("button", name="Stop trial 8").click()
        page.get_by_role("button", name="Stop trial 8", exact=True).click()
        said(page, "Trial 8 is stopped")
        until(lambda: len(study.trials) > 9)  # the driver goes on with the next one
        expect(page.locator("#running")).to_contain_text("Trial 9")
        expect(page.locator(".counts")).to_contain_text("1 abandoned")
    assert study.trials[8].state is State.ABANDONED


def test_a_queued_configuration_is_run_next(
    study: tw.Study, server: Dashboard, tmp_path: Path, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    page.get_by_role("button", name="Queue a configuration").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("degree")).to_be_hidden()  # it exists only for one kernel
    dialog.get_by_label("kernel").select_option(label="poly")
    dialog.get_by_label("degree").fill("9")
    dialog.get_by_role("button", name="Queue it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("degree")  # out of its range
    dialog.get_by_label("degree").fill("4")
    dialog.get_by_label("x").fill("0.125")
    dialog.get_by_role("button", name="Queue it").click()
    said(page, "The configuration is queued")
    expect(dialog).to_be_hidden()
    expect(page.locator(".live-bar .actions")).to_contain_text("1 configuration queued")
    with driver(database(tmp_path), seconds=0.2):
        until(lambda: len(study.trials) > 8)
        expect(page.locator(".live-bar .actions")).not_to_contain_text("queued")
    assert study.trials[8].params == {"x": 0.125, "kernel": "poly", "degree": 4}


def test_a_configuration_may_start_from_a_trial(
    study: tw.Study, server: Dashboard, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    page.locator("#table .pick").get_by_text("3", exact=True).click()
    page.get_by_role("button", name="Queue a configuration").click()
    page.get_by_role("button", name="Start from trial 3").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("kernel").locator("option:checked")).to_have_text("linear")
    assert float(dialog.get_by_label("x").input_value()) == pytest.approx(
        study.trials[3].params["x"]
    )
    dialog.get_by_label("x").fill("")  # drawn at random
    dialog.get_by_role("button", name="Queue it").click()
    said(page, "is queued")
    assert study.ask().params["kernel"] == "linear"


def test_the_readers_choice_becomes_the_goal_of_the_study(
    study: tw.Study, server: Dashboard, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    adopt = page.get_by_role("button", name="Make this the study’s goal")
    expect(adopt).to_be_hidden()
    before = page.locator(".sentence").inner_text()
    drag(page, "End")  # only cost counts
    expect(page.locator(".eyebrow")).to_have_text("Your choice")
    expect(page.locator(".sentence")).not_to_have_text(before)
    adopt.click()
    said(page, "The goal of the study is now")
    expect(page.locator(".eyebrow")).to_contain_text("The study’s choice")
    expect(adopt).to_be_hidden()
    goal = tw.load_study(server.get("/api/studies").json()["storage"]).goal
    assert isinstance(goal, tw.Tradeoff)
    assert goal.alpha > 0.1
    best = tw.load_study(server.get("/api/studies").json()["storage"]).best
    expect(page.locator(".figures dd").first).to_be_visible()
    assert page.evaluate("tradewind.page.selected().trial") == best.number


def test_another_page_sees_the_goal_change(
    study: tw.Study, server: Dashboard, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    study.change_goal(tw.BestUnder(4.0))
    expect(page.locator(".eyebrow")).to_contain_text("At most 4.")


def test_an_error_of_the_study_is_one_sentence(
    study: tw.Study, server: Dashboard, open_page: OpenPage
) -> None:
    trial = study.ask()
    page = live(open_page(server, expected=True))
    page.get_by_role("button", name=f"Stop trial {trial.number}").click()
    page.route(
        "**/api/study/stop*", lambda route: (study.tell(trial, 0.5, cost=1.0), route.continue_())
    )
    page.get_by_role("button", name=f"Stop trial {trial.number}", exact=True).click()
    said(page, f"trial {trial.number} is already finished")
    expect(page.locator(".said")).to_have_class(re.compile("problem"))


def test_everything_can_be_done_with_the_keyboard(
    study: tw.Study, server: Dashboard, open_page: OpenPage
) -> None:
    trial = study.ask()
    page = live(open_page(server))
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    page.keyboard.type("typed")
    page.keyboard.press("Escape")
    expect(page.locator(".question-bar")).to_be_hidden()
    expect(page.get_by_role("button", name="Pause")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    said(page, "The study is paused")
    stop = page.get_by_role("button", name=f"Stop trial {trial.number}")
    stop.focus()
    page.wait_for_timeout(2500)  # the time passes, and the page changes
    expect(stop).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    said(page, f"Trial {trial.number} is stopped")
    page.get_by_role("button", name="Queue a configuration").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
