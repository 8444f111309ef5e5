"""A bar if somebody is watching, plain lines elsewhere, and nothing about a short search that
nobody asked about."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tradewind as tw
from tests.studies import Clock, create
from tradewind.errors import StorageError
from tradewind.runners.simulated import SimulatedRunner
from tradewind.study.bars import TerminalBar
from tradewind.study.progress import Progress
from tradewind.types import Origin, State, Trial

SPACE = tw.Space({"x": tw.Float(0, 1)})


def trial(
    number: int, value: float | None, cost: float | None = None, state: State | None = None
) -> Trial:
    state = state or (State.FAILED if value is None else State.FINISHED)
    return Trial(number, {"x": 0.5}, state, Origin.DESIGN, seed=0, value=value, cost=cost)


def never() -> Trial:
    raise AssertionError("nothing is shown, so nothing must be computed")


class Scripted(tw.Study):
    """A study whose best trial is whatever `choose` returns."""

    choose: Callable[[], Trial]

    @property
    def best(self) -> Trial:
        return self.choose()


def progress(
    total: int | None = 2,
    *,
    show: bool | None = None,
    best: Callable[[], Trial] = never,
    timeout: float | None = None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Progress:
    study = Scripted(create(SPACE)._session, name="study")
    study.choose = best
    return Progress(total=total, timeout=timeout, show=show, study=study, clock=clock)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody is watching a terminal."""
    monkeypatch.setattr("tradewind.study.progress._is_watched", lambda: True)
    monkeypatch.setattr("tradewind.study.bars.open_bar", TerminalBar)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that decides when a plain line is printed."""
    clock = Clock()
    monkeypatch.setattr("tradewind.study.progress.time.monotonic", clock)
    return clock


Printed = pytest.CaptureFixture[str]


# ---- where nobody looks ----


def test_a_short_search_that_nobody_asked_about_prints_nothing(capsys: Printed) -> None:
    tw.create_study(SPACE, seed=0).optimize(lambda trial: 1.0, n_trials=2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("show", [False, None])
def test_where_nothing_is_shown_nobody_asks_for_the_best(show: bool | None) -> None:
    with progress(show=show) as shown:
        shown.started(1)
        shown.done(trial(0, 1.0), 0)


def test_a_search_that_is_to_say_nothing_says_nothing_at_a_terminal_either(
    capsys: Printed, watched: None, watch: Clock
) -> None:
    with progress(show=False) as shown:
        watch.now += 1e6
        shown.done(trial(0, 1.0), 0)
        shown.started(1)
    assert capsys.readouterr() == ("", "")


def test_without_a_console_there_is_no_bar(monkeypatch: pytest.MonkeyPatch, watch: Clock) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress() as shown:
        watch.now += 1e6
        shown.done(trial(0, 1.0), 0)
        shown.started(1)


def test_without_a_console_nothing_goes_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress(show=True, best=lambda: trial(0, 1.0)) as shown:
        shown.done(trial(0, 1.0), 0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("show", "seconds"), [(True, 5.0), (None, 30.0)])
def test_elsewhere_a_plain_line_is_said_now_and_then(
    capsys: Printed, watch: Clock, show: bool | None, seconds: float
) -> None:
    with progress(9, show=show, best=lambda: trial(1, 0.5, 12.0)) as shown:
        watch.now += seconds - 1.0
        shown.done(trial(0, 0.25), 1)
        shown.started(2)
        assert capsys.readouterr().err == ""
        watch.now += 1.0
        shown.done(trial(1, 0.5), 1)
        shown.started(2)
        assert capsys.readouterr().err.splitlines() == [
            "tradewind: 2/9 trials done, best 0.5 in 12 (#1), 0:00 left, 2 running"
        ]
        watch.now += 1.0
        shown.started(3)
        shown.done(trial(2, 0.25), 0)
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err.splitlines() == [
        "tradewind: 3/9 trials done, best 0.5 in 12 (#1)"
    ]


def test_a_search_that_was_asked_about_says_in_the_end_what_came_of_it(capsys: Printed) -> None:
    study = tw.create_study(SPACE, seed=0)
    study.optimize(
        lambda trial: {"value": [0.5, 0.75, 0.25][trial.number], "cost": 12.0},
        n_trials=3,
        show_progress=True,
    )
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "tradewind: 3/3 trials done, best 0.75 in 12 (#1)"


def test_the_last_line_knows_the_best_of_the_end(capsys: Printed, watch: Clock) -> None:
    best = [trial(0, 0.25)]
    with progress(3, show=True, best=lambda: best[-1]) as shown:
        watch.now += 10.0
        shown.done(best[-1], 0)
        shown.started(1)
        best.append(trial(1, 0.75))
        shown.done(best[-1], 0)
    assert capsys.readouterr().err.splitlines()[-1].endswith("2/3 trials done, best 0.75 (#1)")


def test_the_last_line_is_printed_once(capsys: Printed, watch: Clock) -> None:
    study = tw.create_study(SPACE, seed=0)

    def slow(trial: Any) -> float:
        watch.now += 10.0
        return 1.0

    study.optimize(slow, n_trials=2, show_progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("tradewind: 2/2 trials done, best 1")
    assert len(set(lines)) == len(lines)


def test_a_store_that_is_down_at_the_end_does_not_spoil_the_search(capsys: Printed) -> None:
    def unreachable() -> Trial:
        raise StorageError("the network is down")

    with progress(show=True, best=unreachable) as shown:
        shown.done(trial(0, 1.0), 0)
    assert capsys.readouterr().err == ""


def test_failures_are_counted_even_when_nothing_has_finished(capsys: Printed) -> None:
    with progress(show=True) as shown:
        shown.done(trial(0, None), 1)
        shown.done(trial(1, None), 0)
    assert "2/2 trials done, 2 failed" in capsys.readouterr().err


def test_when_everything_was_given_up_there_is_no_best_to_show(capsys: Printed) -> None:
    study = create()
    runner = SimulatedRunner(2, duration=lambda trial: 60.0)
    study.optimize(lambda trial: 1.0, timeout=10.0, runner=runner, show_progress=True)
    assert [t.state for t in study.trials][:2] == [State.ABANDONED] * 2
    assert "best" not in capsys.readouterr().err


def test_failures_are_shown_beside_the_best(capsys: Printed) -> None:
    with progress(show=True, best=lambda: trial(0, 0.5)) as shown:
        shown.done(trial(0, 0.5), 1)
        shown.done(trial(1, None), 0)
    assert "best 0.5 (#0), 1 failed" in capsys.readouterr().err


def test_a_search_without_a_number_of_trials_is_counted_too(capsys: Printed) -> None:
    study = tw.create_study(SPACE, seed=0)
    study.optimize(lambda trial: {"value": 1.0, "cost": 1.0}, max_cost=3, show_progress=True)
    assert "tradewind: 3 trials done" in capsys.readouterr().err


def test_a_search_that_ends_with_an_error_says_how_far_it_came(capsys: Printed) -> None:
    study = tw.create_study(SPACE, seed=0)
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda trial: 1 / 0, n_trials=3, catch=(), show_progress=True)
    assert capsys.readouterr().err.endswith("tradewind: 1/3 trials done, 1 failed\n")


def test_a_failure_is_logged_where_there_is_no_bar(caplog: pytest.LogCaptureFixture) -> None:
    with progress(show=False) as shown:
        shown.done(trial(0, None), 0)
    assert [r.message for r in caplog.records] == ["trial 0 failed: "]


# ---- the bar ----


@pytest.mark.parametrize("show", [None, True])
def test_on_a_terminal_there_is_a_bar(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, show: bool | None
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress(show=show):
        pass
    assert "|          | 0/" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["IPython", "ipykernel"])
def test_a_package_that_is_only_loaded_is_no_notebook(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module = SimpleNamespace(get_ipython=lambda: None)
    monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
    with progress():
        pass
    assert capsys.readouterr() == ("", "")


def test_a_stream_that_is_closed_shows_nothing_and_raises_nothing(
    monkeypatch: pytest.MonkeyPatch, watch: Clock
) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress(show=True, best=lambda: trial(0, 1.0)) as shown:
        watch.now += 1e6
        shown.done(trial(0, 1.0), 0)
        shown.started(1)


def test_the_bar_counts_trials_and_shows_the_best(capsys: Printed, watched: None) -> None:
    study = tw.create_study(SPACE, seed=0)
    study.optimize(
        lambda trial: {"value": [0.5, 0.75, 0.25][trial.number], "cost": 12.0}, n_trials=3
    )
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "best 0.75 in 12 (#1)" in shown


def test_the_bar_says_how_many_run_and_how_many_failed(capsys: Printed, watched: None) -> None:
    with progress(3, best=lambda: trial(0, 0.5)) as shown:
        shown.started(1)
        shown.started(2)
        shown.done(trial(0, 0.5), 1)
        shown.done(trial(1, None), 1)
    printed = capsys.readouterr().err
    assert "2 running" in printed
    assert "best 0.5 (#0), 0:00 left, 1 running, 1 failed" in printed


@pytest.mark.parametrize(("columns", "shown"), [(200, "abcd"), (80, "abc"), (50, "bc"), (30, "")])
def test_the_bar_leaves_out_what_the_terminal_has_no_room_for(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, columns: int, shown: str
) -> None:
    parts = {"a": "best 0.9123 in 12 s (#7)", "b": "4:10 left", "c": "3 running", "d": "1 failed"}
    bar = TerminalBar(100, lambda: (50, list(parts.values())))
    monkeypatch.setattr(bar._bar, "dynamic_ncols", lambda stream: (columns, 24))
    bar.close()
    line = capsys.readouterr().err.split("\r")[-1].rstrip()
    assert len(line) <= columns
    assert "█" in line
    assert "".join(name for name, part in parts.items() if f", {part}" in line) == shown


def test_the_bar_keeps_its_width_whatever_is_said_after_it(capsys: Printed, watched: None) -> None:
    with progress(4, best=lambda: trial(0, 0.5)) as shown:
        shown.started(1)
        shown.done(trial(0, 0.5), 1)
        shown.started(2)
    bars = [line.split("|")[1] for line in capsys.readouterr().err.split("\r") if "|" in line]
    assert len(bars) > 2
    assert {len(bar) for bar in bars} == {10}


def test_looking_for_the_best_trial_takes_a_tenth_of_the_time_at_most(
    capsys: Printed, watched: None, watch: Clock
) -> None:
    looks: list[float] = []

    def best() -> Trial:
        looks.append(watch.now)
        watch.now += 2.0
        return trial(len(looks), 0.5)

    with progress(100, best=best) as shown:
        for number in range(100):
            watch.now += 1.0
            shown.done(trial(number, 0.5), 0)
    assert 4 <= len(looks) <= 7
    assert f"best 0.5 (#{len(looks)})" in capsys.readouterr().err  # it looks again at the end


def test_a_failure_is_reported_above_the_bar(capsys: Printed, watched: None) -> None:
    study = tw.create_study(SPACE, seed=0)
    study.optimize(lambda trial: 1 / 0, n_trials=1)
    shown = capsys.readouterr().err
    assert "trial 0 failed: ZeroDivisionError: division by zero\n" in shown
    assert shown.count("ZeroDivisionError") == 1
    assert "trials failed" not in shown


def test_the_bar_says_that_nothing_meets_the_goal(capsys: Printed, watched: None) -> None:
    study = tw.create_study(SPACE, goal=tw.BestUnder(1.0, confidence=0.5), seed=0)
    study.optimize(lambda trial: {"value": 1.0, "cost": 2.0}, n_trials=1)
    assert "none meets the goal" in capsys.readouterr().err


def test_a_bar_without_a_number_of_trials_counts_them(capsys: Printed, watched: None) -> None:
    study = tw.create_study(SPACE, seed=0)
    study.optimize(lambda trial: {"value": 1.0, "cost": 1.0}, max_cost=3)
    assert "3 trials" in capsys.readouterr().err


def test_the_bar_is_closed_when_the_search_ends_with_an_error(
    capsys: Printed, watched: None
) -> None:
    study = tw.create_study(SPACE, seed=0)
    with pytest.raises(ZeroDivisionError):
        study.optimize(lambda trial: 1 / 0, n_trials=3, catch=())
    assert capsys.readouterr().err.endswith("\n")


@pytest.mark.parametrize(
    ("done", "total", "timeout", "left"),
    [
        (1, 5, None, "6:40 left"),  # 100 s each
        (1, 5, 250.0, "2:30 left"),
        (1, 500, None, "13:51:40 left"),
        (0, 5, 7300.0, "2:00:00 left"),
        (1, None, None, ""),
    ],
)
def test_the_time_that_is_left_is_the_shortest_of_what_is_known(
    capsys: Printed,
    watched: None,
    done: int,
    total: int | None,
    timeout: float | None,
    left: str,
) -> None:
    clock = Clock(0.0)
    with progress(total, timeout=timeout, clock=clock, best=lambda: trial(0, 0.5)) as shown:
        clock.now = 100.0
        for i in range(done):
            shown.done(trial(i, 0.5), 1)
        shown.started(2)
        printed = capsys.readouterr().err
    assert left in printed if left else "left" not in printed
