"""Words that people bring from other tools, durations as text, and misspelt names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tradewind.errors import ConfigError, NoSuchStudy
from tradewind.study.words import goal_in_words

SPACE = {"rate": (0.0, 1.0)}


def quality(trial: tw.Run) -> float:
    return 1.0 - float(trial.params["rate"])


def made(**options: Any) -> tw.Study:
    return tw.create_study(SPACE, seed=0, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: made(study_name="a"), r"no argument 'study_name': write name="),
        (lambda: made(directions=["minimize"]), 'write direction="maximize"'),
        (lambda: made(sampler=None), 'write strategy="auto"'),
        (
            lambda: made(directon="minimize"),
            r"\(did you mean 'direction'\?\): it takes space,",
        ),
        (lambda: tw.load_study(study_name="a"), r"load_study\(\) .* write name="),
        (lambda: made().optimize(quality, 1, n_jobs=2), "write n_workers=4"),
        (lambda: made().optimize(quality, 1, n_worker=2), r"did you mean 'n_workers'\?"),
    ],
)
def test_an_unknown_keyword_is_answered_by_the_line_to_write(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("name", ["suggest_float", "suggest_int", "suggest_categorical"])
def test_a_trial_that_should_suggest_says_where_parameters_are_declared(name: str) -> None:
    study = made()
    message = f"has no attribute '{name}': write \"x\": tw..* in the space, and read trial.params"
    with pytest.raises(AttributeError, match=message):
        getattr(study.ask(), name)

    def objective(trial: tw.Run) -> float:
        return float(getattr(trial, name)("rate", 0, 1))

    with pytest.raises(AttributeError, match=message):
        study.optimize(objective, 1, catch=(), show_progress=False)


def test_a_study_has_the_best_params_and_value_by_name() -> None:
    study = made()
    study.optimize(quality, 3, show_progress=False)
    assert study.best_params == study.best.params
    assert study.best_value == study.best.value
    with pytest.raises(AttributeError, match=r"no attribute 'best_trial': write study.best"):
        study.best_trial  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        study.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_limit_may_be_written_with_its_unit() -> None:
    study = made()
    study.optimize(quality, 2, timeout="1h30m", show_progress=False)
    assert len(study.trials) == 2
    with pytest.raises(ValueError, match="trial_timeout must be a number of seconds, or text"):
        study.optimize(quality, 2, trial_timeout="soon")


def test_a_misspelt_name_is_answered_by_the_nearest(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    made(storage=store, name="nightly")
    made(storage=store, name="reviews")
    for call in (
        lambda: tw.load_study(store, "nightyl"),
        lambda: tw.delete_study("nightyl", storage=store),
    ):
        with pytest.raises(NoSuchStudy, match=r"\(did you mean 'nightly'\?\); it has 'nightly'"):
            call()
    with pytest.raises(ConfigError, match=r"unknown parameter 'raet' \(did you mean 'rate'\?\)"):
        made().enqueue({"raet": 0.5})


@pytest.mark.parametrize(
    ("goal", "unit", "text"),
    [
        (tw.BestUnder(5700), "s", "at most 95 min"),
        (tw.BestUnder(5700), "", "at most 5700"),
        (tw.BestUnder(3.2, by="money"), "money", "a cost (money) of at most 3.2"),
        (tw.BestUnder(1.234e9), "bytes", "at most 1.234 GB"),
        (tw.BestUnder("61.7s"), "s", "at most 61.7 s"),
        (tw.BestUnder("90s"), "s", "at most 90 s"),
        (tw.BestUnder(1.5), "s", "at most 1.5 s"),
        (tw.Tradeoff(0.05, 0.2), "s", "a cost of 200 ms is worth 0.05"),
        (tw.Frontier(cost=(1, 3600)), "s", "from 1 s to 1 h"),
        (tw.Quality(), "s", "whatever it costs"),
    ],
)
def test_a_goal_is_said_in_the_unit_of_its_costs(goal: tw.Goal, unit: str, text: str) -> None:
    assert goal_in_words(goal, unit).endswith(text) or text in goal_in_words(goal, unit)
