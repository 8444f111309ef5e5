"""The dashboard in a browser: live while drivers work in other processes, and safe."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

import tradewind as tw
from tests.browser.live import OpenPage, live, said
from tests.dashboard.pages import database, make_study
from tests.dashboard.serving import Dashboard, dashboard, driver
from tradewind.dashboard.changes import difference

pytestmark = pytest.mark.slow


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
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="Pause the study").click()
        said(page, "The dashboard does not answer")
        study.add({"x": 0.5, "kernel": "linear"}, value=0.99, cost=1.0)
        port = first.port
    with dashboard(database(tmp_path), token="the-same", port=port):
        expect(page.locator(".live-word")).to_have_text(re.compile("^live"))
        expect(page.locator(".counts")).to_contain_text("9 finished")
        expect(page.locator(".said")).to_have_text("")  # it does answer again
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
    expect(page.locator(".live-bar .dot")).to_be_visible()
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
