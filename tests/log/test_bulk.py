"""Long logs: read in pieces, and without looking for garbage."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

import pytest

from tests.samples import FIRST, LATER
from tradewind.errors import LogDiverged
from tradewind.log import rows
from tradewind.log.bulk import paused_gc
from tradewind.log.sqlite import SqliteStore


def test_the_search_for_garbage_goes_on_after_a_pause_as_before() -> None:
    with suppress(KeyError), paused_gc():
        assert not gc.isenabled()
        with paused_gc():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with paused_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("at_once", [1, 2, 3, 1000])
def test_a_log_is_the_same_in_pieces_of_any_size(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_AT_ONCE", at_once)
    store, events = SqliteStore(tmp_path / "a.db"), [FIRST, *LATER]
    store.create("study", FIRST, LATER)
    for known in (0, 1, 2, len(events)):  # how much was read before
        log = store.open("study")
        if known:
            log.read(0)
        for after in range(len(events) + 1):
            assert log.read(after) == events[after:]
    behind, ahead = store.open("study"), store.open("study")
    behind.read(0)
    ahead.append(LATER[-1:] * 5)
    assert behind.read(len(events) - 1) == [*events[-1:], *LATER[-1:] * 5]
    store.delete("study")


@pytest.mark.parametrize("at_once", [1, 2, 1000])
@pytest.mark.parametrize("length", [1, 3])
def test_a_log_that_went_back_is_noticed_in_pieces_of_any_size(
    at_once: int, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_AT_ONCE", at_once)
    store = SqliteStore(tmp_path / "a.db")
    log = store.create("study", FIRST, LATER[:4])
    log.read(0)
    query = "DELETE FROM events WHERE position >= ?"
    store.file.run(lambda db: db.execute(query, (length,)), write=True)
    for after in (0, 5):
        with pytest.raises(LogDiverged):
            log.read(after)
