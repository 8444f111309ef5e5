"""A study can be derived again from its log, proposal for proposal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import (
    CONDITIONAL,
    SPACE,
    configure,
    create,
    events_of,
    plain_lines,
    quick,
    score,
    study_of,
)
from tradewind import recipes
from tradewind.log.events import Event, Proposed
from tradewind.log.memory import MemoryLog, MemoryStore
from tradewind.runners.runner import Lost
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import MIES, Bayes, Design, RandomSearch
from tradewind.study.replay import Verdict
from tradewind.types import Origin, State, Trial

STRATEGIES: dict[str, Callable[[], Any]] = {
    "auto": recipes.auto,
    "random": recipes.random_search,
    "wang2020": recipes.wang2020,
    "mip_ego": lambda: recipes.mip_ego(loss="identity", trees=10, maximizer=MIES(generations=20)),
}


def costly(run: Any) -> dict[str, float]:
    x, k = run.params["x"], run.params["k"]
    return {"value": -((x - 0.3) ** 2) + 0.01 * k, "cost": 0.5 + x * k}


def mishap(trial: Trial) -> Any:
    """Some fail, some are lost; most are better the second time."""
    match trial.number % 7, trial.retries:
        case 3, 0:
            return "boom"
        case 5, 0:
            return Lost("gone")
        case 6, _:
            return "boom again"
    return None


def eventful(storage: Any = None, **options: Any) -> tw.Study:
    """A study to which everything happens that can."""
    study = create(storage=storage, **{"goal": tw.Tradeoff(alpha=0.2), **options})
    study.add({"x": 0.9, "k": 9}, 0.1, cost=9.0)
    study.enqueue({"x": 0.1})
    study.enqueue({})
    runner = SimulatedRunner(8, failure=mishap)
    study.optimize(costly, n_trials=14, runner=runner, max_retries=1)
    study.abandon(study.ask())
    study.add({"x": 0.2, "k": 5}, 0.2, cost=2.0)
    configure(study._session, goal=tw.Tradeoff(alpha=0.5, reference=4.0), strategy=study.strategy)
    study.optimize(costly, n_trials=3, runner=runner, on_error="ignore")
    study.ask(max_cost=3.0)  # and stays asked
    study.requeue(study.ask())
    study.optimize(costly, max_cost=12.0, timeout=9.0, runner=SimulatedRunner(4))
    return study


def verdicts(study: tw.Study) -> dict[int, Verdict]:
    return {p.number: p.verdict for p in tw.replay(study).proposals}


def changed(study: tw.Study, change: Callable[[Proposed], Proposed], number: int) -> tw.Study:
    """The study, with another proposal for one of its trials."""
    log = MemoryLog()
    log.append(
        [
            change(e) if isinstance(e, Proposed) and e.number == number else e
            for e in events_of(study)
        ]
    )
    return study_of(log)


# ---- the same again ----


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_sequential_study_is_derived_again(name: str) -> None:
    study = create(strategy=STRATEGIES[name](), goal=tw.Tradeoff(alpha=0.3))
    study.optimize(score, n_trials=14)
    replayed = tw.replay(study)
    assert len(replayed.proposals) == 14
    assert replayed.identical


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_study_to_which_everything_happened_is_derived_again(name: str) -> None:
    study = eventful(strategy=STRATEGIES[name]())
    happened = {t.state for t in study.trials}
    assert happened >= {State.FINISHED, State.FAILED, State.ABANDONED, State.RUNNING}
    assert {t.origin for t in study.trials} > {Origin.ADDED, Origin.ENQUEUED}
    assert any(t.retries for t in study.trials)
    assert any(isinstance(e, Proposed) and e.max_cost is not None for e in events_of(study))
    assert tw.replay(study).identical


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_what_was_saved_and_loaded_is_derived_again(name: str, tmp_path: Path) -> None:
    study = eventful(tmp_path / "runs.db", strategy=STRATEGIES[name]())
    loaded = tw.load_study(tmp_path / "runs.db")
    assert loaded.trials == study.trials
    replayed = tw.replay(loaded)
    assert replayed == tw.replay(study)
    assert replayed.identical


def test_what_was_exported_and_imported_is_derived_again(tmp_path: Path) -> None:
    eventful(strategy=Bayes(design=Design(4))).export(tmp_path / "study.jsonl")
    assert tw.replay(tw.import_study(tmp_path / "study.jsonl", storage=MemoryStore())).identical


def test_a_conditional_space_and_a_loss_are_derived_again() -> None:
    study = create(CONDITIONAL, strategy=Bayes(design=Design(4)), direction="minimize")
    study.optimize(lambda t: t.train_size + t.params.get("degree", 0), n_trials=12)
    assert tw.replay(study).identical


def test_replaying_changes_nothing() -> None:
    study = quick()
    study.optimize(score, n_trials=6)
    before = events_of(study)
    tw.replay(study)
    assert events_of(study) == before
    assert study.ask().number == 6


def test_a_new_study_has_nothing_to_replay() -> None:
    replayed = tw.replay(create())
    assert (replayed.proposals, replayed.identical) == ((), True)
    assert str(replayed) == "0 proposals: none"


def test_what_was_added_is_no_proposal() -> None:
    study = create()
    study.add({"x": 0.5, "k": 3}, 1.0)
    study.ask()
    assert [p.number for p in tw.replay(study).proposals] == [1]


def test_a_strategy_of_ones_own_is_taken_as_the_study_has_it() -> None:
    class Own(RandomSearch):
        """Not in the store."""

    study = create(strategy=Own())
    study.optimize(score, n_trials=5)
    assert tw.replay(study).identical


# ---- what was changed is found ----


def further(e: Proposed) -> Proposed:
    x = e.params["x"]
    return replace(e, params={**e.params, "x": x + 0.1 if x < 0.5 else x - 0.1})  # type: ignore[operator]


def nudged(e: Proposed) -> Proposed:
    x = e.params["x"]
    return replace(e, params={**e.params, "x": x + 1e-12 if x < 0.5 else x - 1e-12})  # type: ignore[operator]


@pytest.mark.parametrize(
    "strategy", [RandomSearch(), Bayes(design=Design(4))], ids=["random", "bayes"]
)
@pytest.mark.parametrize("number", [0, 3, 7])
def test_a_proposal_that_was_changed_is_different(strategy: Any, number: int) -> None:
    """It, and perhaps what was derived from it: a changed point teaches a model something else."""
    study = create(strategy=strategy)
    study.optimize(score, n_trials=8)
    found = verdicts(changed(study, further, number))
    assert found[number] is Verdict.DIFFERENT
    assert all(found[n] is Verdict.IDENTICAL for n in range(number))
    if isinstance(strategy, RandomSearch):
        assert [n for n, v in found.items() if v is not Verdict.IDENTICAL] == [number]


def test_the_last_proposal_that_was_changed_is_the_only_one_that_differs() -> None:
    study = quick()
    study.optimize(score, n_trials=9)
    replayed = tw.replay(changed(study, further, 8))
    assert [p.number for p in replayed.proposals if p.verdict is not Verdict.IDENTICAL] == [8]
    assert not replayed.identical
    assert str(replayed) == "9 proposals: 8 identical, 1 different (trials 8)"
    differing = replayed.proposals[8]
    assert differing.computed["x"] == study.trials[8].params["x"]
    assert differing.recorded["x"] != differing.computed["x"]


def test_a_trillionth_is_close() -> None:
    study = quick()
    study.optimize(score, n_trials=9)
    replayed = tw.replay(changed(study, nudged, 8))
    assert verdicts(changed(study, nudged, 8))[8] is Verdict.CLOSE
    assert str(replayed) == "9 proposals: 8 identical, 1 within 1e-9"
    assert not replayed.identical


def test_another_choice_or_another_set_of_parameters_is_different() -> None:
    study = create(CONDITIONAL)
    study.enqueue({"kernel": "poly", "degree": 3, "train_size": 1.0})
    study.enqueue({"kernel": "linear", "train_size": 1.0})
    for _ in range(2):
        study.ask()
    for number, params in [
        (0, {"kernel": "poly", "degree": 4, "train_size": 1.0}),
        (0, {"kernel": None, "train_size": 1.0}),
        (1, {"kernel": "linear", "train_size": 0.5}),
        (1, {"kernel": "poly", "degree": 3, "train_size": 1.0}),
    ]:
        other = changed(study, lambda e, p=params: replace(e, params=p), number)  # type: ignore[misc]
        found = verdicts(other)
        assert [n for n, v in found.items() if v is Verdict.DIFFERENT] == [number]


def test_another_seed_is_found() -> None:
    study = create()
    study.optimize(score, n_trials=5)
    log = MemoryLog()
    created, *rest = events_of(study)
    log.append([replace(created, seed=1), *rest])  # type: ignore[type-var]
    assert tw.replay(study_of(log)).count(Verdict.DIFFERENT) == 5


@pytest.mark.parametrize("seen", [0, 1, 10**6])
def test_a_place_in_the_log_that_cannot_be_is_no_crash(seen: int) -> None:
    study = quick()
    study.optimize(score, n_trials=6)
    tw.replay(changed(study, lambda e: replace(e, seen=seen), 5))


def test_a_log_in_lines_that_was_changed_by_hand_is_found(tmp_path: Path) -> None:
    study = create()
    study.optimize(score, n_trials=6)
    study.export(tmp_path / "study.jsonl")
    lines = plain_lines(tmp_path / "study.jsonl")
    (place,) = [i for i, e in enumerate(lines) if e["event"] == "proposed" and e["number"] == 2]
    lines[place]["params"]["k"] = lines[place]["params"]["k"] % 9 + 1
    (tmp_path / "study.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    replayed = tw.replay(tw.import_study(tmp_path / "study.jsonl", storage=MemoryStore()))
    assert [p.number for p in replayed.proposals if p.verdict is Verdict.DIFFERENT] == [2]


def test_a_proposal_from_the_queue_that_was_changed_is_different() -> None:
    study = create()
    study.enqueue({"x": 0.5, "k": 3})
    study.ask()
    assert verdicts(changed(study, further, 0)) == {0: Verdict.DIFFERENT}


# ---- in one go, or not ----


def outcomes(study: tw.Study) -> list[Any]:
    return [(t.params, t.value, t.cost, t.state) for t in study.trials]


@pytest.mark.parametrize("n_workers", [1, 8])
def test_two_runs_of_the_same_seed_are_the_same(n_workers: int) -> None:
    def run() -> tw.Study:
        study = quick(goal=tw.Tradeoff(alpha=0.3))
        study.optimize(costly, n_trials=20, runner=SimulatedRunner(n_workers))
        return study

    assert outcomes(run()) == outcomes(run())


def events(study: tw.Study, kind: type[Event]) -> Sequence[Event]:
    return [e for e in events_of(study) if isinstance(e, kind)]


def test_a_handover_is_data_that_survives_the_store(tmp_path: Path) -> None:
    """Fitted hyper-parameters go to the next fit through the log, to the last digit."""
    study = quick(storage=tmp_path / "runs.db")
    study.optimize(score, n_trials=8)
    for written, read in zip(
        events(study, Proposed), events(tw.load_study(tmp_path / "runs.db"), Proposed), strict=True
    ):
        assert written == read
    assert any(e.handover for e in events(study, Proposed))  # type: ignore[attr-defined]


def test_points_are_decoded_to_twelve_digits() -> None:
    study = tw.create_study(SPACE, seed=0, strategy="random")
    for _ in range(20):
        x = study.ask().params["x"]
        assert x == float(f"{x:.12g}")
        assert np.isfinite(x)


def test_only_a_study_can_be_replayed() -> None:
    with pytest.raises(TypeError, match="study must be a study"):
        tw.replay("runs.db")  # type: ignore[arg-type]
