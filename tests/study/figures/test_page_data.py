"""The data of the page, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

import tradewind as tw
from tests.space.generate import property_test, spaces
from tests.studies import CONDITIONAL, create
from tests.study.figures.situations import SITUATIONS, ran
from tradewind.engine import plan
from tradewind.errors import StorageError
from tradewind.goals import Goal
from tradewind.strategies import Bayes, Design, GaussianProcess, MultiFidelity, Output, Strategy
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.page_data import answer, page_data
from tradewind.study.figures.reproduce import python_code, versions


def made_again(study: tw.Study) -> tw.Study:
    """The study that the code of the report makes."""
    namespace: dict[str, object] = {}
    exec(python_code(Facts.of(study)), namespace)
    again = namespace["study"]
    assert isinstance(again, tw.Study)
    return again


def plans(study: tw.Study) -> object:
    return plan.encode(study._session.plan.goal), plan.encode(study.strategy)


GOALS: list[Goal] = [
    tw.Quality(),
    tw.Tradeoff(0.3),
    tw.Tradeoff(0.3, 60.0, capped=True, by="cpu"),
    tw.Frontier(cost=(1.0, 2.0)),
    tw.CheapestWithin("1%"),
    tw.Knee(),
]
STRATEGIES: list[Strategy] = [
    tw.recipes.auto(),
    tw.recipes.random_search(),
    tw.recipes.wang2020(),
    tw.recipes.wang2015(),
    tw.recipes.mip_ego(),
    Bayes(design=Design(7), surrogate=GaussianProcess(matter=3), output=Output.IDENTITY),
]


@pytest.mark.parametrize("goal", GOALS, ids=repr)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: type(s).__name__)
def test_the_code_of_the_report_makes_the_same_study(goal: Goal, strategy: Strategy) -> None:
    study = create(goal=goal, strategy=strategy, seed=12, name="a 'b'", cost="cpu")
    again = made_again(study)
    assert plans(again) == plans(study)
    assert (again.space, again.seed, again.name) == (study.space, study.seed, study.name)
    assert (again.direction, again.cost_name) == (study.direction, study.cost_name)


@property_test
@given(spaces())
def test_the_code_of_the_report_makes_any_space(space: tw.Space) -> None:
    assert made_again(create(space, direction="minimize")).space == space


def test_a_training_size_needs_no_more_than_its_strategy() -> None:
    study = create(CONDITIONAL, strategy=MultiFidelity())
    assert plans(made_again(study)) == plans(study)


class Own(Bayes):
    """A strategy that no log can hold."""


def test_the_code_says_what_must_be_put_in_by_hand() -> None:
    code = python_code(Facts.of(create(strategy=Own())))
    assert "# This study used 'Own' of your own, which must be put in by hand." in code


def test_versions_name_what_results_depend_on() -> None:
    assert set(versions()) == {"python", "tradewind", "numpy", "scipy", "scikit-learn"}


def test_the_table_has_what_was_recorded_in_full() -> None:
    study = ran(goal=tw.Tradeoff(0.2))
    table = page_data(study)["trials"]
    keys = [column["key"] for column in table["columns"]]
    assert keys[:5] == ["number", "state", "value", "cost", "score"]
    assert {"cost_money", "duration", "started", "worker", "error"} <= set(keys)
    assert [c["title"] for c in table["columns"] if c["parameter"]] == list(study.space)
    for trial, row in zip(study.trials, table["rows"], strict=True):
        cells = dict(zip(keys, row, strict=True))
        assert cells["value"] == trial.value
        assert cells["cost"] == trial.cost
        assert all(cells[f"params_{name}"] == trial.params.get(name) for name in study.space)


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        ("empty", "No trial has finished yet."),
        ("only failed", "Every trial that has ended has failed."),
        ("unknown cost", "The goal needs costs. No finished trial has a cost."),
        (
            "limit too low",
            "No finished trial is within ",
        ),
        ("quality", ""),
    ],
)
def test_the_page_says_why_there_is_no_answer(situation: str, words: str) -> None:
    data = answer(Facts.of(SITUATIONS[situation]()))
    assert data["unanswered"].startswith(words)
    assert (data["best"] is None) == bool(words)


@pytest.mark.parametrize(
    ("goal", "kind", "said"),
    [
        (tw.Tradeoff(0.1, 0.5), "tradeoff", "500 ms is worth 10 points of accuracy."),
        (tw.Tradeoff(0.1), "tradeoff", ""),
        (tw.BestUnder(5700), "limit", "At most 95 min."),
    ],
)
def test_own_prices_and_limits_are_said_as_they_were_given(
    goal: Goal, kind: str, said: str
) -> None:
    choices = page_data(ran(n=8, goal=goal, metric="accuracy"), models=False)["choices"]
    assert choices[kind]["said"] == said


def test_running_trials_say_when_they_should_end() -> None:
    study = create()
    study.tell(study.ask(), 0.5, cost=1.0)
    trial = study.ask()
    (running,) = page_data(study)["running"]
    assert running["trial"] == trial.number
    assert running["params"] == trial.params
    assert running["started"] == trial.started


def test_a_paused_study_says_so() -> None:
    study = create()
    study.enqueue({"x": 0.1, "k": 2})
    study.pause("lunch")
    about = page_data(study, storage="runs.db")["study"]
    assert about["paused"]["reason"] == "lunch"
    assert (about["queued"], about["storage"]) == (1, "runs.db")


def test_a_thousand_trials_with_many_parameters_make_a_small_page() -> None:
    wide = tw.Space({f"p{i}": tw.Float(0, 1) for i in range(15)})
    data = page_data(ran(wide, 1000))
    assert len(json.dumps(data)) < 2e6


def test_parameters_are_described_for_people_and_forms() -> None:
    space = tw.Space(
        {
            "kernel": tw.Categorical(["linear", "poly"]),
            "degree": tw.Int(2, 9, log=True, when={"kernel": "poly"}),
            "rate": tw.Float(0.0, 1.0, step=0.25, when={"degree": tw.at_least(3)}),
            "size": tw.TrainSize([0.5, 1.0]),
        }
    )
    kernel, degree, rate, size = page_data(create(space))["parameters"]
    assert kernel["values"] == {"choices": ["linear", "poly"]}
    assert degree["range"] == "2 to 9, log scale"
    assert degree["when"] == "kernel is 'poly'"
    assert rate["range"] == "0 to 1, in steps of 0.25"
    assert rate["when"] == "degree is at_least(3)"
    assert size["kind"] == "train_size"


# ---- the report ----


@pytest.mark.parametrize("situation", ["empty", "only failed", "quality", "hostile"])
def test_a_report_is_one_file(situation: str, tmp_path: Path) -> None:
    study = SITUATIONS[situation]()
    study.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "<script>alert(1)" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_report_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "report.HTML"
    path.write_text("old")
    create().report(path)
    assert "old" not in path.read_text("utf-8")[:10]


def test_a_report_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a report is an \.html file, but got '\.pdf'"):
        create().report(tmp_path / "report.pdf")
    with pytest.raises(StorageError, match="cannot be written"):
        create().report(tmp_path / "nowhere" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(StorageError, match="folder, not a file"):
        create().report(tmp_path / "folder.html")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


def test_choices_that_are_numbers_are_columns_of_numbers() -> None:
    space = tw.Space(
        {"width": tw.Ordinal([32, 64]), "on": tw.Bool(), "kind": tw.Categorical(["a", "b"])}
    )
    columns = page_data(create(space))["trials"]["columns"]
    formats = {it["title"]: it["format"] for it in columns if it["parameter"]}
    assert formats == {"width": "number", "on": "text", "kind": "text"}


def test_the_goal_is_said_with_the_metric_and_in_the_units_of_the_costs() -> None:
    study = create(goal=tw.BestUnder(90.0), metric="accuracy")
    study.optimize(lambda trial: 1.0, n_trials=1)
    said = page_data(study)["study"]["goal"]
    assert said == "the best accuracy with a cost of at most 90 s"
