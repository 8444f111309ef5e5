"""What notebooks show of spaces, trials, studies and answers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradewind as tw
from tests.test_html import HOSTILE, Seen
from tradewind.types import Trials

SPACE = tw.Space(
    {
        "C": tw.Float(1e-4, 1e3, log=True),
        "rate": tw.Float(0, 1, step=0.25),
        "kernel": tw.Categorical(["linear", "poly", None]),
        "degree": tw.Int(2, 10, step=2, when={"kernel": ["poly", None], "layers": tw.at_least(2)}),
        "layers": tw.Int(1, 9),
        "width": tw.Ordinal([32, 64]),
        "shuffle": tw.Bool(),
        "train_size": tw.TrainSize([0.25, 1.0]),
    },
    forbid=[{"kernel": "linear", "layers": tw.at_least(8)}, {"shuffle": True, "width": [32, 64]}],
)


def finished(
    n: int = 8, name: str = "study", parameter: str = "x", metric: str | None = None
) -> tw.Study:
    """A study with results and costs."""
    study = tw.create_study({parameter: (0.0, 1.0)}, seed=0, name=name, metric=metric)
    for i in range(n):
        x = i / n
        study.add({parameter: x}, 1.0 - (x - 0.5) ** 2, cost=1.0 + x, attributes={"f1": 0.5})
    return study


def shown(thing: Any) -> Seen:
    return Seen(thing._repr_html_())


# ---- spaces ----


def test_a_space_is_a_table_of_its_parameters() -> None:
    rows = shown(SPACE).cells
    assert rows[4:] == [
        *("C", "real number", "0.0001 to 1000, on a log scale", "always"),
        *("rate", "real number", "0 to 1, in steps of 0.25", "always"),
        *("kernel", "category", "'linear', 'poly', None", "always"),
        "degree",
        "integer",
        "2 to 10, in steps of 2",
        "kernel is 'poly' or None and layers is at least 2",
        *("layers", "integer", "1 to 9", "always"),
        *("width", "ordered choice", "32, 64", "always"),
        *("shuffle", "yes or no", "False, True", "always"),
        *("train_size", "training size", "25%, 100%", "always"),
    ]


def test_a_space_says_what_is_never_proposed() -> None:
    page = SPACE._repr_html_()
    assert "Never proposed: kernel is &#x27;linear&#x27; and layers is at least 8; " in page
    assert "shuffle is True and width is 32 or 64" in page
    assert "Never" not in tw.Space({"x": tw.Bool()})._repr_html_()


# ---- trials ----


def test_a_trial_shows_its_result_and_its_parameters() -> None:
    cells = shown(finished().trials[3]).cells
    facts = dict(zip(cells[2::2], cells[3::2], strict=True))
    assert facts["value"] == "0.9844"
    assert facts["cost"] == "1.4"
    assert facts["x"] == "0.375"
    assert facts["f1 (attribute)"] == "0.5"


def test_a_failed_trial_shows_the_last_line_of_its_error() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(lambda trial: 1 / 0, n_trials=1)
    assert "ZeroDivisionError: division by zero" in shown(study.trials[0]).cells


def test_measured_costs_have_units_and_others_their_names() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(lambda trial: 1.0, n_trials=1)
    assert shown(study.trials).cells[8].endswith("s")
    money = tw.create_study({"x": (0.0, 1.0)}, seed=0, cost="money")
    money.add({"x": 0.5}, 1.0, cost=3.25)
    assert shown(money.trials).cells[8] == "3.2 (money)"


def test_trials_are_a_list_and_a_table() -> None:
    trials = finished().trials
    assert isinstance(trials, list)
    assert [t.number for t in trials] == list(range(8))
    assert len(shown(trials).cells) == 5 * 9
    assert trials == list(trials)


def test_a_slice_of_trials_is_shown_as_a_table_too() -> None:
    trials = finished().trials
    assert isinstance(trials[2:4], Trials)
    assert [t.number for t in trials[::-2]] == [7, 5, 3, 1]
    assert trials[1] is trials[0:2][1]
    assert isinstance(pickle.loads(pickle.dumps(trials)), Trials)


def test_the_frontier_is_a_list_that_shows_what_one_chooses_by() -> None:
    frontier = finished().frontier()
    assert isinstance(frontier, list)
    first = ["0", "0.75", "1", "100%", "x=0"]
    heads = ["trial", "value", "cost", "training size", "parameters"]
    assert shown(frontier).cells[:10] == heads + first
    assert str(frontier[:1]).split() == " ".join(heads + first).split()
    assert [t.number for t in pickle.loads(pickle.dumps(frontier))] == [t.number for t in frontier]
    noisy = tw.create_study({"x": (0.0, 1.0)}, seed=0, cost="money", metric="accuracy")
    for i in range(9):
        folds = [0.5 + i % 3 / 10, 0.6 + i % 2 / 10, 0.55]
        noisy.add({"x": i / 10}, folds=folds, cost=1.0 + i, train_size=0.5)
    table = shown(noisy.frontier()).cells
    assert table[:4] == ["trial", "accuracy", "believed", "cost"]
    assert table[9:11] == ["1 (money)", "50%"]


def test_a_study_in_which_nothing_meets_the_goal_says_so_and_shows_its_frontier() -> None:
    study = finished()
    study.change_goal(tw.BestUnder(0.5))
    page = study._repr_html_()
    assert "No finished trial is within a cost of 0.5" in page
    assert "comes closest" in page
    assert "Efficient trials, cheapest first" in page


def test_trials_as_text_are_one_line_each() -> None:
    trials = finished(30).trials
    assert len(repr(trials).splitlines()) == 21
    assert repr(trials).endswith("… and 10 more]")
    assert repr(trials[:1]) == f"[{trials[0]!r}]"
    assert repr(Trials()) == "[]"


# ---- studies and answers ----


def test_a_study_shows_its_goal_its_trials_the_best_and_the_efficient_ones() -> None:
    page = finished()._repr_html_()
    assert "the best quality, whatever it costs" in page
    assert "8 finished" in page
    assert "Trial 4 has the best value: 1 at a cost of 1.5." in page
    assert "Efficient trials, cheapest first" in page


def test_an_empty_study_says_so() -> None:
    study = tw.create_study(SPACE, seed=0)
    page = study._repr_html_()
    assert "none" in shown(study).cells
    assert "no trial of this study has finished" in page


def test_a_study_of_failures_says_what_went_wrong() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.optimize(lambda trial: 1 / 0, n_trials=1)
    said = "no trial of this study has finished; the last failure was: ZeroDivisionError: division"
    assert said in study._repr_html_()


def test_a_study_without_costs_shows_no_frontier() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0, direction="minimize")
    study.add({"x": 0.5}, 1.0)
    assert "a loss of 1" in study._repr_html_()
    assert "Efficient" not in study._repr_html_()


Answer = Callable[[tw.Study], Any]
ANSWERS = [
    pytest.param(lambda study: study.leaderboard(), id="leaderboard"),
    pytest.param(lambda study: study.explain(), id="explain"),
    pytest.param(lambda study: study.compare(0, 4), id="compare"),
    pytest.param(lambda study: study.forecast(4), id="forecast"),
    pytest.param(lambda study: study.importance(), id="importance"),
    pytest.param(lambda study: study.predict([{study.space.names[0]: 0.3}]), id="predict"),
    pytest.param(lambda study: study.confirm(lambda run: 1.0, 2, repeats=1), id="confirm"),
    pytest.param(lambda study: study.finish(lambda run: 1, lambda model: 0.5), id="finish"),
    pytest.param(tw.replay, id="replay"),
]


@pytest.mark.parametrize("ask", ANSWERS)
def test_every_answer_is_shown_as_it_is_printed(ask: Answer) -> None:
    answer = ask(finished())
    page = answer._repr_html_()
    assert Seen(page).tags
    if not isinstance(answer, list):
        words = str(answer).split()
        assert all(word.replace("'", "&#x27;") in page for word in words[-3:])


def test_a_recommendation_says_what_to_train_and_what_to_expect() -> None:
    study = finished(parameter="n")
    assert str(study.recommend()) == "Train n=0.5: expect value 1 at a cost of 1.5 (trial 4)."
    cells = shown(study.recommend()).cells
    assert cells[:2] == ["recommended", "trial 4"]
    assert cells[2:] == ["value", "1", "cost", "1.5", "training size", "100%", "n", "0.5"]


def test_tables_call_the_quality_what_the_user_calls_it() -> None:
    study = finished(metric="F1")
    board, winner = study.leaderboard(), study.confirm(lambda run: 1.0, 1, repeats=1)
    assert "F1" in str(board).splitlines()[0].split()
    assert "F1" in str(winner).splitlines()[0].split()
    effect = study.partial_dependence("x", points=2)
    for thing in (study, study.trials, study.best, board, winner, effect, study.recommend()):
        cells = shown(thing).cells
        assert "F1" in cells
        assert "value" not in cells


def test_the_effect_of_a_parameter_is_a_row_for_each_value() -> None:
    effect = finished().partial_dependence("x", points=3)
    cells = shown(effect).cells
    assert cells[:3] == ["x", "value", "cost"]
    assert cells[3::3] == ["0", "0.5", "1"]
    assert cells[4::3] == [str(it) for it in effect.value]


def test_the_studies_of_a_store_are_a_table(tmp_path: Any) -> None:
    tw.create_study(SPACE, seed=0, storage=tmp_path / "runs.db", name=HOSTILE)
    found = tw.list_studies(tmp_path / "runs.db")
    assert isinstance(found, list)
    assert shown(found).cells[4:7] == [HOSTILE, "0", ""]


def test_a_repair_is_shown_line_by_line(tmp_path: Any) -> None:
    tw.create_study(SPACE, seed=0, storage=tmp_path / "runs.db")
    done = tw.repair(tmp_path / "runs.db")
    assert "is not damaged" in done._repr_html_()


# ---- hostile names ----


@given(st.text(min_size=1, max_size=20))
def test_names_and_values_are_never_markup(name: str) -> None:
    space = tw.Space({name: tw.Categorical([name, name + "."])})
    study = tw.create_study(space, seed=0)
    study.add({name: name}, 1.0, attributes={name: name})
    for thing, cells in ((space, 8), (study.trials, 10), (study.trials[0], None)):
        seen = shown(thing)
        assert set(seen.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert cells in (None, len(seen.cells))


@pytest.mark.parametrize("ask", [lambda s: s, lambda s: s.trials, lambda s: s.trials[0]])
def test_hostile_names_stay_text(ask: Answer) -> None:
    study = finished(name=HOSTILE, parameter=HOSTILE)
    page = ask(study)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    Seen(page)
