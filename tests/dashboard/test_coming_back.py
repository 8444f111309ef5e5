"""A page comes back, a study cannot be shown, a figure fails: the others go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import tradewind as tw
from tests.dashboard.pages import database, make_study, paint
from tests.dashboard.test_watching import received, run, watching
from tradewind.dashboard import watched as watched_module
from tradewind.dashboard.guard import Refusal
from tradewind.dashboard.picture import Picture, with_rows
from tradewind.dashboard.shelf import Shelf
from tradewind.dashboard.stream import Stream
from tradewind.errors import StorageError
from tradewind.log.stores import open_store
from tradewind.study.following import Follower, News
from tradewind.types import Trial


def has_rows(count: int) -> Callable[[Picture], bool]:
    return lambda picture: len(picture["trials"]["rows"]) == count


def test_a_page_that_comes_back_after_its_study_was_let_go_loads_anew(tmp_path: Path) -> None:
    for name in ("study", "other"):
        make_study(database(tmp_path), name=name)

    async def look() -> None:
        stream = Stream()
        shelf = Shelf(open_store(database(tmp_path)), stream, paint)
        await shelf.watched("study")
        await shelf.watched("other")
        known = stream.last_id
        await shelf._drop(lambda watched: watched.name == "study")  # as `tidy` does
        with stream.page(["other"], known) as other:
            await shelf.watched("study")
            with stream.page(["study"], known) as page:
                (message,) = await received(page, 1)
            assert message.kind == "reset"
            stream.send("other", "rows", {})
            assert [m.kind for m in await received(other, 1) if m.study != "other"] == []
        await shelf.close()

    run(look())


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_study_that_cannot_be_shown_takes_no_room(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_study(database(tmp_path))

    async def look() -> None:
        shelf = Shelf(open_store(database(tmp_path)), Stream(), paint)
        with pytest.raises(Refusal) as refusal:
            await shelf.watched(name)
        assert refusal.value.status == 404
        assert not shelf._watched

    run(look())
    assert caplog.text == ""


def test_a_study_whose_first_picture_fails_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_study(database(tmp_path))
    failures = [ZeroDivisionError("no figure")]

    def fails_once(study: tw.Study, *, models: bool) -> Picture:
        if failures:
            raise failures.pop()
        return paint(study)

    async def look() -> None:
        shelf = Shelf(open_store(database(tmp_path)), Stream(), fails_once)
        with pytest.raises(Refusal) as refusal:
            await shelf.watched("study")
        assert (refusal.value.status, refusal.value.sentence) == (500, "No figure.")
        assert (await shelf.watched("study")).name == "study"
        await shelf.close()

    run(look())
    assert "could not be shown" in caplog.text


def test_studies_may_be_dropped_by_two_at_once(tmp_path: Path) -> None:
    for number in range(3):
        make_study(database(tmp_path), name=str(number), trials=0)

    async def look() -> None:
        shelf = Shelf(open_store(database(tmp_path)), Stream(), paint)
        for number in range(3):
            await shelf.watched(str(number))
        await asyncio.gather(shelf.close(), shelf.close())
        assert not shelf._watched

    run(look())


def test_a_best_trial_that_cannot_be_found_does_not_end_the_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(database(tmp_path))

    def broken(picture: Picture, study: tw.Study) -> Picture:
        raise ZeroDivisionError

    monkeypatch.setattr(watched_module, "with_choice", broken)

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        for count in (4, 5):
            study.add({"x": 0.1, "kernel": "linear"}, value=0.1, cost=1.0)
            await shown.until(has_rows(count))
        await watched.end()

    run(follow())
    assert "could not be found" in caplog.text


def test_an_outage_does_not_hide_that_a_study_must_be_loaded_again(tmp_path: Path) -> None:
    make_study(database(tmp_path))
    refused = [StorageError("the store is away")]

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        opened, look = watched._open, watched._follower.look

        def fails_once() -> News:
            watched._follower.look = look  # type: ignore[method-assign]
            raise ZeroDivisionError  # it may have taken over a part of what is new

        def open_later() -> tw.Study:
            if refused:
                raise refused.pop()
            return opened()

        watched._open, before = open_later, watched.study
        watched._follower.look = fails_once  # type: ignore[method-assign]
        await shown.until(lambda p: p["live"]["away"])
        await shown.until(lambda p: p["live"]["away"] is None)
        assert watched.study is not before
        await watched.end()

    run(follow())


def test_what_a_page_cannot_be_told_is_no_reason_to_go_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = make_study(database(tmp_path))
    failures = [OverflowError("too much")] * 2

    def broken(picture: Picture, trials: Sequence[Trial]) -> Picture:
        if failures:
            raise failures.pop()
        return with_rows(picture, trials)

    monkeypatch.setattr(watched_module, "with_rows", broken)

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        await shown.until(lambda p: p["live"]["away"] == "Too much.")
        study.add({"x": 0.1, "kernel": "linear"}, value=0.1, cost=1.0)
        await shown.until(lambda p: not p["live"]["away"] and has_rows(4)(p))
        await watched.end()

    run(follow())
    assert "could not be" in caplog.text


def test_figures_are_computed_while_others_look_at_the_log(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))
    inside: list[str] = []
    clashes: list[str] = []

    class Strict(Follower):
        """A follower that only one thread at a time may use."""

        def look(self) -> News:
            inside.append("look")
            time.sleep(0.2)
            found = super().look()
            inside.remove("look")
            return found

        def unpredicted(self) -> list[Trial]:
            clashes.extend(inside)
            return super().unpredicted()

        def predict(self, costs: Mapping[int, float | None]) -> None:
            clashes.extend(inside)
            super().predict(costs)

    async def follow() -> None:
        watched, shown = await watching(database(tmp_path))
        watched._follower.__class__ = Strict
        for count in range(4, 9):
            study.add({"x": 0.1, "kernel": "linear"}, value=0.1, cost=1.0)
            watched.wake()
            await shown.until(has_rows(count))
        await shown.until(lambda p: not p["live"]["painting"])
        await watched.end()
        assert clashes == []

    run(follow())


def test_what_waits_for_a_page_that_does_not_read_is_forgotten() -> None:
    async def connect() -> None:
        stream = Stream()
        with stream.page(["a"], stream.last_id) as page:
            for _ in range(40):
                stream.send("a", "charts", {"text": "x" * (1 << 20)})
            assert page._waiting.qsize() == 1  # that it must connect again
            assert stream.shown() == set()
            assert [message async for message in page.messages()] == []

    run(connect())
