"""What single figures show."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import CONDITIONAL, SPACE, create, told
from tests.study.figures.situations import SITUATIONS, ran
from tradewind.charts.chart import Bars, Chart, Line, Points, Spans, Strands
from tradewind.strategies import MultiFidelity
from tradewind.study.figures.draw import MOST, figures, thinned
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.failures import failures, failures_of, masked
from tradewind.study.figures.frontier import frontier
from tradewind.study.figures.importance import importance
from tradewind.study.figures.learning_curves import learning_curves
from tradewind.study.figures.parallel import parallel
from tradewind.study.figures.predicted_cost import predicted_cost
from tradewind.study.figures.progress import progress
from tradewind.study.figures.timeline import lanes_of, timeline
from tradewind.study.figures.times import WorkingTime
from tradewind.study.figures.values import ticks
from tradewind.study.insights import effects


def layer(chart: Chart, name: str, panel: int = 0) -> Any:
    """The layer with this name."""
    return next(it for it in chart.panels[panel].layers if getattr(it, "name", "") == name)


def facts(situation: str) -> Facts:
    return Facts.of(SITUATIONS[situation]())


# ---- numbers for drawing ----


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.23456789], [1.23457]),
        ([1e9 + 0.5, 1e9 + 1.5], [1e9 + 0.5, 1e9 + 1.5]),
        ([0.0, 1e-300], [0.0, 1e-300]),
        ([], []),
    ],
)
def test_numbers_keep_the_digits_that_can_be_seen(
    values: list[float], expected: list[float]
) -> None:
    assert figures(np.array(values)) == expected


def test_thinning_keeps_the_ends_and_what_must_stay() -> None:
    rows = np.arange(10_000)
    shown = thinned(rows, [1234])
    assert {0, 1234, 9999} <= set(shown.tolist())
    assert MOST <= len(shown) <= MOST + 1
    assert np.array_equal(shown, thinned(rows, [1234]))


# ---- one by one ----


def test_the_frontier_shows_each_trial_once_and_marks_the_choice() -> None:
    study = ran(goal=tw.Tradeoff(0.2))
    chart = frontier(Facts.of(study))
    efficient = layer(chart, "efficient").trials
    assert efficient == [t.number for t in study.frontier()]
    assert layer(chart, "best under the goal").trials == [study.best.number]
    others = set(layer(chart, "other trials").trials)
    finished = {t.number for t in study.trials if t.finished}
    assert others == finished - set(efficient)
    assert chart.panels[0].x.scale == "log"


def test_a_sentence_shows_what_is_believed_beside_what_was_measured() -> None:
    study = SITUATIONS["repeats"]()
    it = Facts.of(study)
    assert it.choice is not None
    believed = f"{it.value[it.choice]:.4g}"
    assert believed != f"{study.best.value:.4g}"
    said = f"({study.best.value:.4g}, believed {believed}, for {study.best.cost:g})"
    assert said in frontier(it).summary


def test_a_frontier_of_close_costs_has_a_linear_axis() -> None:
    chart = frontier(Facts.of(told((0.5, 1.0), (0.6, 2.0))))
    assert chart.panels[0].x.scale == "linear"
    assert layer(chart, "frontier").x == [1.0, 2.0]


def test_another_goal_chooses_another_trial() -> None:
    study = told((0.5, 1.0), (0.6, 2.0))
    for goal, number in ((tw.BestUnder(1.5), 0), (tw.Quality(), 1)):
        assert layer(study.plot.frontier(goal=goal).chart, "best under the goal").trials == [number]


def test_a_limit_is_on_the_axis_of_costs_and_the_quality_has_its_name() -> None:
    study = create(goal=tw.BestUnder(1.5), metric="accuracy")
    study.add({"x": 0.5, "k": 3}, 0.5, costs={"wall": 1.0})
    chart = frontier(Facts.of(study))
    assert chart.title == "Accuracy against cost"
    (panel,) = chart.panels
    assert panel.x.bound == (1.5, "limit: 1.5")
    assert panel.y.title == "accuracy (higher is better)"
    assert frontier(Facts.of(told((0.5, 1.0)))).panels[0].x.bound is None


@pytest.mark.parametrize(
    "goal", [tw.Quality(), tw.Tradeoff(0.2), tw.Frontier(), tw.BestUnder(2.0), tw.Knee()]
)
def test_the_best_so_far_ends_with_the_best_of_the_study(goal: tw.Quality) -> None:
    study = ran(goal=goal)
    for over in ("trials", "time", "cost"):
        chart = progress(Facts.of(study), over)  # type: ignore[arg-type]
        assert layer(chart, "best so far").y[-1] == pytest.approx(study.best.value, rel=1e-5)
        assert f"trial {study.best.number} " in chart.summary


def test_progress_by_cost_counts_all_that_was_spent() -> None:
    study = ran(folds=3)
    spent = sum(t.cost * t.trainings for t in study.trials if t.cost is not None and t.finished)
    spent += sum(t.cost for t in study.trials if t.cost is not None and not t.finished)
    last = max(layer(progress(Facts.of(study), "cost"), "each trial").x)
    assert last == pytest.approx(spent, rel=0.1)
    assert last <= spent * (1 + 1e-5)


def test_peak_memory_cannot_be_spent() -> None:
    assert "cannot be added up" in progress(facts("memory"), "cost").empty


def test_runs_of_one_lane_do_not_overlap() -> None:
    lanes = lanes_of(Facts.of(ran(workers=3)))
    assert [lane.label for lane in lanes] == ["worker 1", "worker 2", "worker 3"]
    for lane in lanes:
        for (_, end, _), (start, _, _) in itertools.pairwise(lane.runs):
            assert start >= end


def test_time_in_which_nothing_ran_is_left_out() -> None:
    it = facts("two days")
    times = WorkingTime.of(it)
    assert times is not None
    assert times.pauses == (86400.0 + 1.0,)
    assert times.total == pytest.approx(78.0)
    chart = timeline(it)
    assert chart.summary.startswith("1 worker ran ")
    assert " and was busy " in chart.summary
    assert "cuda:0" in chart.panels[0].y.labels[0]
    assert len(chart.panels[0].y.labels) == 1  # a continued search has the same worker
    assert "A pause of 24 h" in chart.note


def test_the_timeline_tells_states_apart() -> None:
    chart = timeline(Facts.of(ran(failing=0.5)))
    assert [it.name for it in chart.panels[0].layers if isinstance(it, Spans)] == [
        "finished",
        "failed",
    ]


def test_importance_agrees_with_the_study() -> None:
    study = ran()
    chart = importance(Facts.of(study))
    assert [panel.title for panel in chart.panels] == ["Quality", "Cost"]
    bars = chart.panels[0].layers[0]
    assert isinstance(bars, Bars)
    assert list(bars.values) == sorted(bars.values, reverse=True)
    assert set(chart.panels[0].y.labels) == set(study.space)
    most = r" matters most(, both)? for quality \(\d+% of the variance\)(,| and) "
    assert re.search(most, chart.summary)


def test_effects_are_those_of_the_single_answers() -> None:
    study = ran(n=20)
    shared = effects(study.space, study._session.history())
    assert shared.importance(level=0.9) == study.importance()
    alone = replace(study.partial_dependence("C"), unit="")  # a figure has an axis for that
    assert shared.dependence("C", points=20, level=0.9) == alone


def test_a_parameter_without_a_figure_of_its_own_is_refused_with_the_nearest() -> None:
    with pytest.raises(tw.errors.ConfigError, match="did you mean 'momentum'"):
        ran(n=3).plot.partial_dependence("momentun")


def test_strands_have_a_gap_where_a_parameter_is_inactive() -> None:
    study = ran()
    strands = parallel(Facts.of(study)).panels[0].layers[0]
    assert isinstance(strands, Strands)
    degree = list(strands.axes).index("degree")
    trials = {t.number: t for t in study.trials}
    for number, row in zip(strands.trials, strands.rows, strict=True):
        assert (row[degree] is None) == ("degree" not in trials[number].params)
    assert strands.shade[-1] == 1.0  # the best one is drawn last
    assert strands.trials[-1] == study.best.number


def test_axes_of_all_parameters_have_round_marks_between_their_ends() -> None:
    depth = tw.Int(1, 1000, log=True)
    for (place, text), n in zip(ticks(depth), (1, 3, 10, 30, 100, 300, 1000), strict=True):
        assert (text, place) == (str(n), pytest.approx(depth.to_unit(n), abs=1e-4))
    assert [text for _, text in ticks(tw.Float(0.02, 1.0))] == [
        *("0.02", "0.2", "0.4", "0.6", "0.8", "1"),
    ]
    study = told((0.5, 40.0), (0.913, 31.0), (0.6, 3.1))
    strands = parallel(Facts.of(study)).panels[0].layers[0]
    assert [[text for _, text in marks] for marks in strands.ticks[-2:]] == [
        ["3.1", "5", "10", "20", "40"],
        ["0.5", "0.6", "0.7", "0.8", "0.913"],
    ]


@pytest.mark.parametrize("draw", [frontier, progress, learning_curves])
def test_a_figure_says_that_it_shows_what_is_believed(draw: Callable[[Facts], Chart]) -> None:
    told_so = "Results are noisy: the figure shows what a model believes of each trial"
    assert told_so in draw(Facts.of(ran(folds=3, goal=tw.Tradeoff(0.1)))).note
    assert "noisy" not in draw(facts("quality")).note


def test_a_figure_says_why_better_trials_were_not_chosen() -> None:
    study = create(CONDITIONAL, strategy=MultiFidelity())
    for i, size in enumerate((0.5, 0.5, 1.0)):
        study.add({"kernel": "linear", "train_size": size}, 0.9 - 0.1 * i, cost=1.0 + i)
    for draw in (frontier, progress):
        note = "2 trials saw only part of the data or of the folds and cannot be chosen."
        assert note in draw(Facts.of(study)).note
        assert "chosen" not in draw(facts("quality")).note


def test_only_trials_with_a_prediction_are_compared_with_it() -> None:
    study = ran()
    chart = predicted_cost(Facts.of(study))
    shown = set(layer(chart, "each trial").trials)
    assert shown == {t.number for t in study.trials if t.finished and t.expected_cost}
    assert chart.summary.startswith("100% of ")


def test_learning_curves_join_the_runs_of_a_configuration() -> None:
    chart = learning_curves(facts("sizes"))
    line = layer(chart, "one configuration")
    assert isinstance(line, Line)
    assert [x for x in line.x if x is not None] == [0.5, 1.0] * 4


def test_a_model_draws_the_learning_curve_of_the_best_configuration() -> None:
    chart = learning_curves(Facts.of(ran()))
    expected = layer(chart, "expected")
    assert list(expected.x) == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert isinstance(layer(chart, "each trial"), Points)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("out of memory: 12 MiB", "out of memory: 9.5 MiB"),
        ("at 0x7f3a12 in f", "at 0x11 in f"),
        ("id deadbeef01", "id 0123456789"),
    ],
)
def test_messages_that_differ_in_numbers_are_the_same_failure(a: str, b: str) -> None:
    assert masked(a) == masked(b)
    assert masked(a) != masked("division by zero")


def test_failures_are_grouped_by_the_line_that_names_the_exception() -> None:
    study = create()
    traceback = 'Traceback (most recent call last):\n  File "a.py", line {0}, in f\n    g()\n'
    traceback += "ValueError: {0}\nand a second line of its message\n"
    for error in (traceback.format(1), traceback.format(2), "KeyError: 'x'\nlast words", ""):
        study.fail(study.ask(), error)
    found = failures_of(Facts.of(study))
    assert [(it.message, it.trials) for it in found] == [
        ("ValueError: 2", (0, 1)),
        ("KeyError: 'x'", (2,)),
        ("no message", (3,)),
    ]
    assert failures(Facts.of(study)).summary.startswith("4 trials failed for 3 reasons")


EMPTY: list[tuple[Callable[[Facts], Chart], str, str]] = [
    (frontier, "empty", "No trial has finished yet"),
    (frontier, "no costs", "No finished trial has a cost"),
    (progress, "only failed", "No trial has finished yet"),
    (timeline, "empty", "No trial has started yet"),
    (timeline, "all the same", "No trial has recorded when it started"),
    (importance, "one finished", "needs at least 5 finished trials"),
    (parallel, "empty", "No trial has finished yet"),
    (predicted_cost, "one finished", "no prediction"),
    (predicted_cost, "named cost", "named cost"),
    (learning_curves, "one finished", "trained on all of the data"),
    (failures, "one finished", "No trial has failed"),
]


@pytest.mark.parametrize(("draw", "situation", "words"), EMPTY)
def test_a_figure_with_nothing_to_show_says_why(
    draw: Callable[[Facts], Chart], situation: str, words: str
) -> None:
    it = facts(situation) if situation != "all the same" else Facts.of(_told_without_times())
    chart = draw(it)
    assert not chart.panels
    assert words in chart.empty
    assert chart.summary == chart.empty


def _told_without_times() -> tw.Study:
    study = create(SPACE)
    study.add({"x": 0.5, "k": 1}, 0.5, cost=1.0)
    return study
