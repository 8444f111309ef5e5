"""The bar of a notebook, with a notebook that is scripted."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import tradewind as tw
from tests.test_html import HOSTILE, Seen
from tradewind.study import bars
from tradewind.study.bars import NotebookBar, open_bar

Bundle = dict[str, str]


class Cell:
    """The output of a cell: what it shows, and what it has shown before."""

    def __init__(self) -> None:
        self.shown: list[Bundle] = []
        self.updated = threading.Event()

    def update(self, bundle: Bundle, *, raw: bool) -> None:
        self.shown.append(bundle)
        self.updated.set()

    @property
    def text(self) -> str:
        return self.shown[-1]["text/plain"]

    @property
    def html(self) -> str:
        return self.shown[-1]["text/html"]


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """A notebook whose clock stands still."""
    cell = Cell()

    def show(bundle: Bundle) -> Cell:
        cell.shown.append(bundle)
        return cell

    monkeypatch.setattr(bars, "_show", show)
    monkeypatch.setattr(bars, "_in_notebook", lambda: True)
    monkeypatch.setattr("tradewind.study.progress._is_watched", lambda: True)
    monkeypatch.setattr("tradewind.study.bars.time.monotonic", lambda: 0.0)
    return cell


def test_a_notebook_gets_its_own_bar(cell: Cell) -> None:
    bar = open_bar(10, lambda: (0, []))
    assert isinstance(bar, NotebookBar)
    bar.close()
    assert cell.text == "tradewind: 0/10 trials in 0:00:00"
    assert "0/10 trials" in cell.html


def test_the_bar_shows_what_has_changed_without_being_asked(cell: Cell) -> None:
    status = [(0, ["1 running"])]
    bar = NotebookBar(4, lambda: status[-1])
    status.append((1, ["best 0.9 (#0)", "2 running"]))
    assert cell.updated.wait(30.0)
    assert cell.text == "tradewind: 1/4 trials in 0:00:00, best 0.9 (#0), 2 running"
    bar.close()


def test_nothing_is_sent_while_nothing_changes(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "_PAUSE", 1e-3)
    looks = threading.Semaphore(0)

    def status() -> tuple[int, list[str]]:
        looks.release()
        return 0, ""

    bar = NotebookBar(4, status)
    for _ in range(20):
        assert looks.acquire(timeout=30.0)
    bar.close()
    assert len(cell.shown) <= 3  # the first, one by the thread, the last


def test_the_bar_says_how_far_the_search_is(cell: Cell) -> None:
    bar = NotebookBar(4, lambda: (3, []))
    bar.close()
    assert 'role="progressbar"' in cell.html
    assert 'aria-valuenow="75"' in cell.html
    assert "width:75%" in cell.html


def test_without_a_number_of_trials_there_is_only_text(cell: Cell) -> None:
    NotebookBar(None, lambda: (3, ["best 1 (#0)"])).close()
    assert cell.text == "tradewind: 3 trials in 0:00:00, best 1 (#0)"
    assert "progressbar" not in cell.html


def test_the_latest_messages_are_shown_below_the_bar(cell: Cell) -> None:
    bar = NotebookBar(4, lambda: (0, []))
    for i in range(5):
        bar.message(f"trial {i} failed: {HOSTILE}")
    bar.close()
    assert cell.text.splitlines()[1:] == [f"trial {i} failed: {HOSTILE}" for i in (2, 3, 4)]
    assert "<script" not in cell.html
    assert set(Seen(cell.html).tags) == {"div"}


def test_a_notebook_that_is_gone_does_not_end_a_search(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*args: Any, **options: Any) -> None:
        raise ConnectionError("the notebook was closed")

    monkeypatch.setattr(cell, "update", gone)
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(lambda trial: 1.0, n_trials=2)
    assert len(study.trials) == 2


def test_without_a_display_there_are_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = SimpleNamespace(kernel=object())
    broken = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", broken)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", None)  # type: ignore[arg-type]
    tw.create_study({"x": (0.0, 1.0)}, seed=0).optimize(
        lambda trial: 1.0, n_trials=2, show_progress=True
    )
    assert capsys.readouterr().err.startswith("tradewind: 2/2 trials done")
