"""What a page is told of a study: nothing is missed, nothing comes twice, and outages pass."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.dashboard.pages import database, make_study, paint
from tests.studies import Unreachable
from tradewind.dashboard.changes import apply
from tradewind.dashboard.guard import Refusal
from tradewind.dashboard.picture import Picture, painter
from tradewind.dashboard.shelf import MOST_WATCHED, Shelf
from tradewind.dashboard.stores import open_shared, open_study, place
from tradewind.dashboard.stream import MOST_PAGES, Page, Stream
from tradewind.dashboard.watched import Watched
from tradewind.errors import StorageError
from tradewind.log.stores import open_store


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


class Shown:
    """A page that applies every message to what it has loaded."""

    def __init__(self, watched: Watched) -> None:
        self.watched, self.picture = watched, json.loads(json.dumps(watched.picture))
        self.kinds: list[str] = []

    def take(self, study: str, kind: str, data: Any) -> None:
        change = json.loads(json.dumps(data["change"]))
        self.kinds.append(kind)
        self.picture = apply(self.picture, change)

    async def until(self, holds: Callable[[Picture], Any]) -> None:
        while not holds(self.picture):
            await asyncio.sleep(0.02)


async def watching(storage: str, name: str = "study", **options: Any) -> tuple[Watched, Shown]:
    messages: list[Any] = []
    send = lambda *message: messages.append(message)  # noqa: E731
    store = open_store(storage)
    options = {"open_study": lambda: open_study(store, name), "paint": paint} | options
    watched = Watched(name, send=send, **options)
    await watched.begin()
    shown = Shown(watched)
    watched._send = shown.take
    for message in messages:
        shown.take(*message)
    return watched, shown


def test_a_page_follows_what_others_do(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        trial = study.ask()
        await shown.until(lambda p: p["study"]["counts"]["running"] == 1)
        assert [one["trial"] for one in shown.picture["running"]] == [trial.number]
        study.tell(trial, value=0.9, cost=1.0)
        await shown.until(lambda p: p["trials"]["rows"][-1][:4] == [3, "finished", 0.9, 1.0])
        await shown.until(lambda p: p["best"]["trial"] == 3)
        assert "trial 3 (0.9 for 1)" in shown.picture["charts"]["frontier"]["summary"]
        study.pause("lunch")
        await shown.until(lambda p: p["study"]["paused"])
        assert shown.picture["study"]["paused"]["reason"] == "lunch"
        study.enqueue({"x": 0.5})
        await shown.until(lambda p: p["study"]["queued"] == 1)
        await shown.until(lambda p: not p["live"]["painting"])
        assert {"rows", "status"} <= set(shown.kinds)
        await watched.end()
        assert json.dumps(shown.picture) == json.dumps(watched.picture)

    run(follow())


@pytest.mark.parametrize("ticks", range(6))
def test_watching_ends_at_any_moment_after_a_command(tmp_path: Path, ticks: int) -> None:
    make_study(database(tmp_path))

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        await shown.until(lambda p: not p["live"]["painting"])
        await asyncio.sleep(0.1)  # both tasks wait for the next command
        watched.wake()
        for _ in range(ticks):
            await asyncio.sleep(0)
        await watched.end()

    run(follow())


def test_a_trial_whose_driver_gives_no_sign_of_life_is_marked(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))

    async def follow() -> None:
        kept, trial = study.ask(lease=600.0), study.ask(lease=0.01)
        watched, shown = await watching(database(tmp_path))
        await shown.until(lambda p: p["live"]["lost"] == [trial.number])
        assert [one["trial"] for one in shown.picture["running"]] == [kept.number, trial.number]
        study.beat(trial, lease=600.0)
        await shown.until(lambda p: p["live"]["lost"] == [])
        await watched.end()

    run(follow())


def test_a_change_of_the_goal_by_somebody_else_is_painted(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        study.change_goal(tw.BestUnder(4.0))
        await shown.until(lambda p: p["study"]["goal"] == tw.BestUnder(4.0).describe())
        await watched.end()

    run(follow())


def test_the_whole_picture_arrives_after_the_sketch(tmp_path: Path) -> None:
    make_study(database(tmp_path), trials=8)

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path), paint=painter("here"))
        assert "importance" not in json.loads(gzip.decompress(await watched.packed()))["charts"]
        await shown.until(lambda p: "importance" in p["charts"])
        assert shown.picture["study"]["storage"] == "here"
        assert {"frontier", "timeline", "parallel"} <= shown.picture["charts"].keys()
        active = {p["name"]: p["active"] for p in shown.picture["parameters"]}
        assert active["degree"] == [{"parent": "kernel", "values": ["poly"]}]
        await watched.end()

    run(follow())


def test_a_store_that_does_not_answer_is_shown_and_recovers(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))
    away = Unreachable(study._session.log)

    def opened() -> tw.Study:
        found = open_study(open_store(database(tmp_path)), "study")
        found._session.log = found._session.journal.log = away  # type: ignore[assignment]
        return found

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path), open_study=opened)
        away.asked, away.times = 0, 2
        await shown.until(lambda p: p["live"]["away"])
        assert shown.picture["live"]["away"] == "The network is down."
        assert len(shown.picture["trials"]["rows"]) == 3  # what is known stays
        await shown.until(lambda p: p["live"]["away"] is None)
        await watched.end()

    run(follow())


def test_a_study_that_was_deleted_and_made_again_is_loaded_again(tmp_path: Path) -> None:
    make_study(database(tmp_path))

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        tw.delete_study("study", storage=database(tmp_path))
        await shown.until(lambda p: p["live"]["away"])
        assert "there is no longer the study" in shown.picture["live"]["away"].lower()
        make_study(database(tmp_path), trials=1)
        await shown.until(lambda p: not p["live"]["away"] and len(p["trials"]["rows"]) == 1)
        await watched.end()

    run(follow())


def test_figures_that_cannot_be_computed_do_not_end_the_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = make_study(database(tmp_path))

    def broken(study: tw.Study, *, models: bool) -> Picture:
        if models:
            raise ZeroDivisionError
        return paint(study)

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path), paint=broken)
        await shown.until(lambda p: not p["live"]["painting"])
        study.add({"x": 0.1, "kernel": "linear"}, value=0.1, cost=1.0)
        await shown.until(lambda p: len(p["trials"]["rows"]) == 4)
        await watched.end()

    run(follow())
    assert "could not be computed" in caplog.text


def test_a_study_that_is_not_there_is_refused(tmp_path: Path) -> None:
    make_study(database(tmp_path))

    async def look() -> None:
        shelf = Shelf(open_store(database(tmp_path)), Stream(), paint)
        with pytest.raises(Refusal) as refusal:
            await shelf.watched("other")
        assert refusal.value.status == 404
        tw.create_study(tw.Space({"x": tw.Int(0, 3)}), storage=database(tmp_path), name="other")
        assert (await shelf.watched("other")).name == "other"  # by now it is there
        await shelf.close()

    run(look())


def test_studies_that_no_page_shows_make_room_for_others(tmp_path: Path) -> None:
    for number in range(MOST_WATCHED + 1):
        make_study(database(tmp_path), name=str(number), trials=0)

    async def look() -> None:
        shelf = Shelf(open_store(database(tmp_path)), Stream(), paint)
        for number in range(MOST_WATCHED + 1):
            await shelf.watched(str(number))
        assert "0" not in shelf._watched
        assert len(shelf._watched) == MOST_WATCHED
        await shelf.close()

    run(look())


# ---- the stream ----


async def received(page: Page, count: int) -> list[Any]:
    messages = page.messages()
    return [await anext(messages) for _ in range(count)]


def test_a_page_that_was_cut_off_gets_the_rest() -> None:
    async def connect() -> None:
        stream = Stream()
        stream.send("a", "rows", {"n": 1})
        known = stream.last_id
        stream.send("a", "rows", {"n": 2})
        stream.send("b", "rows", {"n": 3})
        with stream.page(["a"], known) as page:
            stream.send("a", "rows", {"n": 4})
            found = await received(page, 2)
        assert [json.loads(m.body)["n"] for m in found] == [2, 4]

    run(connect())


@pytest.mark.parametrize("last_id", [None, "", "other-1", "x", "-", "🙂-1", "1" * 500])
def test_a_page_that_knows_nothing_of_this_server_loads_anew(last_id: str | None) -> None:
    async def connect() -> None:
        stream = Stream()
        with stream.page(["a"], last_id) as page:
            (message,) = await received(page, 1)
        assert message.kind == "reset"

    run(connect())


def test_a_page_that_missed_more_than_is_kept_loads_anew() -> None:
    async def connect() -> None:
        stream = Stream()
        known = stream.last_id
        for _ in range(1000):
            stream.send("a", "rows", {})
        with stream.page(["a"], known) as page:
            (message,) = await received(page, 1)
        assert message.kind == "reset"

    run(connect())


def test_a_page_that_does_not_read_is_let_go() -> None:
    async def connect() -> None:
        stream = Stream()
        with stream.page(["a"], stream.last_id) as page:
            for number in range(1000):
                stream.send("a", "rows", {"n": number})
            found = [message async for message in page.messages()]
        assert len(found) < 1000

    run(connect())


def test_there_is_a_heartbeat_and_an_end() -> None:
    async def connect() -> None:
        stream = Stream()
        with stream.page(["a"], stream.last_id) as page:
            messages = page.messages(heartbeat=0.01)
            assert await anext(messages) is None
            stream.close()
            assert [message async for message in messages if message] == []

    run(connect())


def test_only_so_many_pages_are_served() -> None:
    async def connect() -> None:
        stream = Stream()
        open_pages = [stream.page(["a"], None) for _ in range(MOST_PAGES)]
        for page in open_pages:
            stream.check_room()
            page.__enter__()
        with pytest.raises(Refusal) as refusal:
            stream.check_room()
        assert refusal.value.status == 503
        for page in open_pages:
            page.__exit__(None, None, None)
        stream.check_room()

    run(connect())


def test_a_message_is_one_line_whatever_is_in_it() -> None:
    async def connect() -> None:
        stream = Stream()
        with stream.page(["a\n\nevent: x"], stream.last_id) as page:
            stream.send("a\n\nevent: x", "rows", {"text": "\r\n\n\u2028data: <script>"})
            (message,) = await received(page, 1)
        text = stream.text(message)
        assert text.endswith(b"\n\n")
        assert len(text.rstrip(b"\n").splitlines()) == 3

    run(connect())


# ---- stores ----


def test_a_password_never_reaches_the_page() -> None:
    url = "postgresql://tester:hush%21@localhost:1/runs"
    store = open_shared(url)
    assert "hush" not in place(store)
    assert "localhost:1" in place(store)


@pytest.mark.parametrize("storage", [None, ""])
def test_a_study_in_memory_cannot_be_served(storage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRADEWIND_STORAGE", raising=False)
    with pytest.raises(StorageError, match="in memory"):
        open_shared(storage)


def test_a_memory_store_cannot_be_served() -> None:
    with pytest.raises(StorageError, match="in memory"):
        open_shared(open_store(None))


def test_stores_are_asked_with_little_patience(tmp_path: Path) -> None:
    assert open_shared(tmp_path / "a.db").file._patience < 10  # type: ignore[attr-defined]
    given = open_shared("sqlite:///a.db?patience=77")
    assert given.file._patience == 77  # type: ignore[attr-defined]


def test_a_painting_that_began_before_a_change_does_not_undo_it(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))
    began, go_on = threading.Event(), threading.Event()

    def slow(study: tw.Study, *, models: bool) -> Picture:
        picture = paint(study)
        if models and not began.is_set():
            began.set()
            go_on.wait(60)
        return picture

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path), paint=slow)
        while not began.is_set():
            await asyncio.sleep(0.01)
        study.change_goal(tw.BestUnder(4.0))
        study.add({"x": 0.3, "kernel": "linear"}, value=0.9, cost=3.0)
        await shown.until(lambda p: (p.get("best") or {}).get("trial") == 3)
        go_on.set()
        await shown.until(lambda p: not p["live"]["painting"])
        assert shown.picture["best"]["trial"] == 3
        assert shown.picture["study"]["goal"] == tw.BestUnder(4.0).describe()
        assert len(shown.picture["trials"]["rows"]) == 4
        await watched.end()

    run(follow())
