"""The dashboard in a browser: live while drivers work in other processes, and steering them."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

import tradewind as tw
from tests.browser.conftest import Watch
from tests.dashboard.pages import database, make_study
from tests.dashboard.serving import Dashboard, dashboard, driver
from tradewind.dashboard.changes import difference
from tradewind.types import State

pytestmark = pytest.mark.slow

SECONDS = 30_000  # milliseconds to wait for what a loaded machine may take
expect.set_options(timeout=SECONDS)

NO_PAGE = "Failed to load resource"  # what a browser logs when an answer is an error

OpenPage = Callable[..., Page]


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


def drag(page: Page, key: str) -> None:
    """Move the slider of the trade-off to one of its ends."""
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press(key)


# ---- looking ----


def test_what_a_driver_does_is_seen_while_it_does_it(
    server: Dashboard, tmp_path: Path, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    assert page.locator("#running").count() == 0
    with driver(database(tmp_path), seconds=0.5):
        expect(page.locator("#running .run")).to_have_count(1)
        expect(page.locator("#running .run")).to_contain_text("so far, ")
        expect(page.locator(".counts")).to_contain_text(re.compile(r"1\d finished"))
        expect(page.locator("#table")).to_contain_text("10")
        expect(page.locator("#importance")).to_be_attached()


def test_the_token_leaves_the_address_and_stays_in_the_tab(
    server: Dashboard, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    assert server.token not in page.url
    page.reload()
    expect(live(page).get_by_role("button", name="Pause")).to_be_enabled()
    assert page.context.cookies() == []


def test_a_list_is_shown_where_there_are_several_studies(
    study: tw.Study, tmp_path: Path, open_page: OpenPage
) -> None:
    for name in ("second", "third"):
        make_study(database(tmp_path), name=name, trials=6)
    with dashboard(database(tmp_path)) as server:
        page = open_page(server)
        expect(page.locator(".study-list li")).to_have_count(3)
        make_study(database(tmp_path), name="fourth", trials=0)
        expect(page.locator(".study-list li")).to_have_count(4)
        button = page.get_by_role("button", name="Show side by side")
        expect(button).to_be_disabled()
        for name in ("study", "third"):
            page.get_by_role("checkbox", name=f"Choose {name}").check()
        button.click()
        expect(page.locator(".column")).to_have_count(2)
        live(page)
        page.get_by_role("link", name="All studies").click()
        page.get_by_role("link", name="second").click()
        expect(page.locator(".study-name")).to_have_text("second")
        expect(page.get_by_role("button", name="Pause")).to_be_enabled()  # the token came along


def test_several_studies_stand_side_by_side_and_follow_their_logs(
    study: tw.Study, tmp_path: Path, open_page: OpenPage
) -> None:
    other = make_study(database(tmp_path), name="other", trials=5)
    with dashboard(database(tmp_path)) as server:
        page = live(open_page(server, "?study=study&study=other"))
        columns = page.locator(".column")
        expect(columns.nth(0)).to_contain_text("8 finished")
        expect(columns.nth(1)).to_contain_text("5 finished")
        assert page.locator(".pair svg.picture").count() == 2
        tops = [column.locator(".choice-of").bounding_box() for column in columns.all()]
        assert len({box["y"] for box in tops if box}) == 1  # rows are aligned
        other.add({"x": 0.99, "kernel": "linear"}, value=0.99, cost=1.0)
        expect(columns.nth(1)).to_contain_text("6 finished")
        expect(columns.nth(1).locator(".choice-of")).to_contain_text("rial 5")
        other.pause()
        expect(columns.nth(1)).to_contain_text("paused")
        expect(columns.nth(0)).not_to_contain_text("paused")


def test_a_study_that_is_not_there_yet_appears(
    study: tw.Study, server: Dashboard, tmp_path: Path, open_page: OpenPage
) -> None:
    page = open_page(server, "?study=later", expected=True)
    expect(page.locator("h1").last).to_have_text("No such study")
    make_study(database(tmp_path), name="later", trials=2)
    expect(live(page).locator(".study-name")).to_have_text("later")


def test_the_browser_applies_changes_as_the_server_means_them(
    server: Dashboard, open_page: OpenPage
) -> None:
    rng = random.Random(0)

    def data(depth: int) -> Any:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice([None, True, False, 0, 1, 2.5, "", "a", "<b>"])
        if rng.random() < 0.5:
            return [data(depth - 1) for _ in range(rng.randrange(6))]
        return {k: data(depth - 1) for k in ("a", "__proto__", "=", "[", "{") if rng.random() < 0.6}

    pairs = [(data(4), data(4)) for _ in range(300)]
    cases = [json.dumps([old, difference(old, new)]) for old, new in pairs]
    apply = """cases => cases.map((text) => {
        const [old, change] = JSON.parse(text);
        return JSON.stringify(tradewind.live.apply(old, change));
    })"""
    found = live(open_page(server)).evaluate(apply, cases)
    assert [json.loads(text) for text in found] == [new for _, new in pairs]


# ---- steering ----


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
    expect(page.locator(".eyebrow")).to_contain_text(tw.BestUnder(4.0).describe())


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


# ---- who may ----


def test_without_the_token_a_page_may_look_but_not_steer(
    study: tw.Study, server: Dashboard, open_page: OpenPage
) -> None:
    study.ask()
    page = live(open_page(server, token=False, expected=True))
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    expect(page.get_by_role("button", name="Queue")).to_be_disabled()
    expect(page.locator("#running")).to_be_visible()
    assert page.get_by_role("button", name="Stop trial").count() == 0
    expect(page.locator(".slot")).to_contain_text("open the address that the terminal shows")
    status = page.evaluate(
        """async () => (await fetch("/api/study/study/pause", {method: "POST", body: "{}",
        headers: {"Content-Type": "application/json"}})).status"""
    )
    assert (status, study.paused) == (401, None)


def test_a_page_of_another_origin_can_neither_steer_nor_read(
    study: tw.Study, server: Dashboard, chromium: Browser, tmp_path: Path
) -> None:
    make_study(str(tmp_path / "evil.db"), name="evil")
    attack = """async ([url, token]) => {
      const found = {};
      const attempt = async (name, work) => {
        try { found[name] = await work(); } catch (error) { found[name] = "refused"; }
      };
      const json = {"Content-Type": "application/json", "X-Tradewind-Token": token};
      await attempt("read", async () => (await fetch(url + "api/studies")).text());
      await attempt("events", () => new Promise((done) => {
        const source = new EventSource(url + "api/events?study=study");
        source.onopen = () => done("open");
        source.onerror = () => { source.close(); done("refused"); };
      }));
      const send = (options) =>
        fetch(url + "api/study/study/pause", {method: "POST", body: "{}", ...options});
      await attempt("json", async () => (await send({headers: json})).status);
      await attempt("simple", async () => (await send({mode: "no-cors"})).type);
      await attempt("script", () => new Promise((done) => {
        const script = document.createElement("script");
        script.src = url + "assets/live.js";
        script.onload = () => done("loaded");
        script.onerror = () => done("refused");
        document.head.append(script);
      }));
      return found;
    }"""
    with dashboard(str(tmp_path / "evil.db")) as other:  # same machine, another port
        context = chromium.new_context(bypass_csp=True)
        page = context.new_page()
        page.goto(other.url)
        found = page.evaluate(attack, [server.url, server.token])
        context.close()
    refused = {"read", "events", "json", "script"}
    assert {name for name, what in found.items() if what == "refused"} >= refused
    assert found["simple"] in ("opaque", "refused")  # it was sent, and not obeyed
    assert study.paused is None


def test_the_page_cannot_be_put_into_a_frame(
    server: Dashboard, chromium: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "frame.html"
    path.write_text(f'<iframe src="{server.url}"></iframe>', "utf-8")
    context = chromium.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_timeout(1000)
    assert not any(f.locator("main").count() for f in page.frames[1:] if "error" not in f.url)
    context.close()


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '"><script>alert(2)</script>',
    "'; alert(3); '",
    "</script><script>alert(4)</script>",
    "\u202egnp.exe",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_stay_text(name: str, tmp_path: Path, open_page: OpenPage) -> None:
    space = tw.Space(
        {
            name: tw.Categorical([name, "b"]),
            "__proto__": tw.Int(1, 3),
            "x": tw.Float(0.0, 1.0, when={name: name}),
        }
    )
    storage = database(tmp_path)
    study = tw.create_study(space, seed=0, storage=storage, name=name)
    for number in range(6):
        params = {name: "b", "__proto__": 1 + number % 3}
        study.add(params, value=0.1 * number, cost=1.0, attributes={name: name})
    study.fail(study.ask(), name)
    trial = study.ask()
    study.pause(name)
    make_study(storage, name="other")
    with dashboard(storage) as server:
        page = open_page(server)
        expect(page.locator(".study-list li")).to_have_count(2)
        page.locator(".study-link").first.click()
        live(page)
        page.get_by_role("button", name="Queue a configuration").click()
        dialog = page.get_by_role("dialog")
        dialog.locator("select").first.select_option(index=1)
        dialog.get_by_label("__proto__").fill("2")
        dialog.get_by_role("button", name="Queue it").click()
        said(page, "is queued")
        page.get_by_role("button", name=f"Stop trial {trial.number}").click()
        page.get_by_role("button", name=f"Stop trial {trial.number}", exact=True).click()
        said(page, "is stopped")
        page.goto(f"{server.url}?study={quote(name)}&study=other")
        live(page)
        expect(page.locator(".column")).to_have_count(2)
        made = page.evaluate("document.querySelectorAll('img, iframe, script:not([src])').length")
    assert made == 0
    study.resume()
    assert study.ask().params | {"x": 0} == {name: name, "__proto__": 2, "x": 0}


# ---- when things go wrong ----


def test_the_page_connects_again_after_the_server_was_restarted(
    study: tw.Study, tmp_path: Path, open_page: OpenPage
) -> None:
    with dashboard(database(tmp_path), token="the-same") as first:
        page = live(open_page(first, expected=True))
        first.tell()
        expect(page.locator(".live-word")).to_contain_text("reconnecting")
        study.add({"x": 0.5, "kernel": "linear"}, value=0.99, cost=1.0)
        port = first.port
    with dashboard(database(tmp_path), token="the-same", port=port):
        expect(page.locator(".live-word")).to_have_text(re.compile("^live"))
        expect(page.locator(".counts")).to_contain_text("9 finished")
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Pause the study").click()
        said(page, "The study is paused")
    assert study.paused is not None


def test_a_study_that_is_deleted_is_said_to_be_gone(
    study: tw.Study, server: Dashboard, tmp_path: Path, open_page: OpenPage
) -> None:
    page = live(open_page(server))
    tw.delete_study("study", storage=database(tmp_path))
    expect(page.locator(".live-word")).to_contain_text("cannot be read: There is no")
    expect(page.locator(".counts")).to_contain_text("8 finished")  # what is known stays
    make_study(database(tmp_path), trials=2)
    expect(page.locator(".counts")).to_contain_text("2 finished")
    expect(page.locator(".live-word")).to_have_text(re.compile("^live"))


def test_an_empty_store_says_so_until_there_is_a_study(tmp_path: Path, open_page: OpenPage) -> None:
    with dashboard(database(tmp_path)) as server:
        page = open_page(server)
        expect(page.locator(".lead")).to_contain_text("There is no study in")
        make_study(database(tmp_path), name="first", trials=0)
        expect(page.locator(".study-list li")).to_have_count(1)
        page.get_by_role("link", name="first").click()
        expect(live(page).locator(".sentence")).to_contain_text("No trial has finished yet")


def test_the_page_fits_a_phone(server: Dashboard, open_page: OpenPage) -> None:
    page = live(open_page(server, viewport={"width": 390, "height": 844}))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Queue a configuration").click()
    box = page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
