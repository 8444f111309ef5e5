"""The final model: trained once, tested once, recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.studies import create, events_of, study_of, told
from tradewind.errors import AlreadyTested, FormatError, NothingFinished, OutcomeError
from tradewind.log.events import Confirming, Event, FinalTested, FinalTrained
from tradewind.log.memory import MemoryLog
from tradewind.runners.run import Run

SIZED = tw.Space({"x": tw.Float(0, 1), "size": tw.TrainSize([0.4, 1.0])})


def looks(study: tw.Study) -> list[Event]:
    return [e for e in events_of(study) if isinstance(e, (FinalTrained, FinalTested))]


def train(run: Run) -> str:
    return "a model"


def never(given: Any) -> float:
    raise AssertionError("this must not be called")


def test_the_chosen_model_is_trained_with_its_size_and_tested_once(tmp_path: Path) -> None:
    study = create(SIZED, storage=tmp_path / "runs.db")
    study.add({"x": 0.2, "size": 1.0}, 0.5)
    study.add({"x": 0.7, "size": 0.4}, 0.9)
    runs: list[Run] = []

    def remember(run: Run) -> dict[str, Any]:
        runs.append(run)
        with run.timer():
            return {"rows": run.subset(range(100), kind="random")}

    final = study.finish(remember, lambda model: {"value": 0.87, "f1": [0.8, 0.9]})
    (run,) = runs
    assert (run.params, run.settings) == ({"x": 0.7, "size": 0.4}, {"x": 0.7})
    assert (run.seed, run.train_size) == (study.trials[1].seed, 0.4)
    assert len(final.model["rows"]) == 40
    assert (final.trial.number, final.value, final.looks) == (1, 0.87, 1)
    assert final.cost == run.timed
    assert dict(final.attributes) == {"f1": [0.8, 0.9]}
    loaded = tw.load_study(tmp_path / "runs.db").final
    assert loaded == final  # without the model
    assert loaded is not None
    assert loaded.model is None
    assert "0.87 on the test set, 0.9 in the search" in str(loaded)
    assert str(loaded).startswith("trial 1, trained again on 40% of the data in ")


def test_a_second_look_is_refused_before_it_is_trained_for_unless_asked_for() -> None:
    study = told((0.5, 1.0))
    assert study.final is None
    study.finish(train, lambda model: 0.4)
    with pytest.raises(AlreadyTested, match=r"looked at on .* for trial 0, and gave 0\.4") as error:
        study.finish(never, never)
    assert "again=True" in str(error.value)
    final = study.finish(train, lambda model: 0.6, again=True)
    assert (final.value, final.looks) == (0.6, 2)
    assert study.final == final
    assert "look 2 at the test set" in str(final)


def test_a_training_that_fails_is_no_look() -> None:
    study = told((0.5, 1.0))
    with pytest.raises(ZeroDivisionError):
        study.finish(lambda run: 1 / 0, never)
    assert looks(study) == []
    assert study.finish(train, lambda model: 0.4).looks == 1


@pytest.mark.parametrize(
    ("test", "error"),
    [(lambda model: 1 / 0, ZeroDivisionError), (lambda model: float("nan"), OutcomeError)],
)
def test_a_test_that_fails_is_a_look(test: Any, error: type[Exception]) -> None:
    study = told((0.5, 1.0))
    with pytest.raises(error):
        study.finish(train, test)
    assert study.final is not None
    assert study.final.value is None
    assert "its test began, but no result was recorded" in str(study.final)
    with pytest.raises(AlreadyTested, match="its result was never recorded"):
        study.finish(never, never)
    assert study.finish(train, lambda model: 0.4, again=True).looks == 2


def test_the_look_is_in_the_log_before_the_test_begins() -> None:
    study = told((0.5, 1.0))
    seen: list[list[Event]] = []

    def test(model: str) -> float:
        seen.append(looks(study))
        return 0.4

    study.finish(train, test)
    assert [type(e) for e in seen[0]] == [FinalTrained]
    assert [type(e) for e in looks(study)] == [FinalTrained, FinalTested]


def test_of_two_drivers_only_one_may_look() -> None:
    log = MemoryLog()
    first = told((0.5, 1.0))
    log.append(events_of(first))
    one, other = study_of(log), study_of(log)

    def late(run: Run) -> str:
        other.finish(train, lambda model: 0.4)  # while this one is still training
        return "a model"

    with pytest.raises(AlreadyTested):
        one.finish(late, never)
    assert len(looks(one)) == 2


@pytest.mark.parametrize(
    "event",
    [
        FinalTrained(7),
        FinalTrained(1),  # which has not finished
        FinalTested(0, 0.5),
        Confirming((7,), 1, {}, 0),
        Confirming((1,), 1, {}, 0),
        Confirming((0,), 1, {}, 9),
    ],
)
def test_what_cannot_have_happened_is_refused(event: Event) -> None:
    study = told((0.5, 1.0))
    study.ask()
    study._session.log.append([event])
    with pytest.raises(FormatError, match="cannot have happened"):
        _ = study.final


def test_another_goal_or_trial_can_be_finished() -> None:
    study = told((0.5, 1.0), (0.9, 100.0), (0.7, 50.0))
    goal = tw.Tradeoff(alpha=1.0, reference=100.0)
    assert study.finish(train, lambda model: 0.4, goal=goal).trial.number == 0
    for given in (2, study.trials[2]):
        final = study.finish(train, lambda model: 0.4, trial=given, again=True)
        assert final.trial.number == 2


def test_wrong_arguments_are_refused() -> None:
    study = told((0.5, 1.0))
    with pytest.raises(TypeError, match="train must be a function, but got 'fit'"):
        study.finish("fit", never)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="test must be a function"):
        study.finish(train, None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="again must be True or False"):
        study.finish(train, never, again=1)  # type: ignore[arg-type]
    with pytest.raises(NothingFinished):
        create().finish(train, never)
    assert looks(study) == []


def test_a_final_model_changes_nothing_in_the_search() -> None:
    study, other = told((0.5, 1.0)), told((0.5, 1.0))
    study.finish(train, lambda model: 0.4)
    assert study.ask().params == other.ask().params
    assert tw.replay(study).identical
