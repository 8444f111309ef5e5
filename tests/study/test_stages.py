"""Stages end to end: studies on growing parts of the training set, run, stopped and replayed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import SPACE, events_of, params, states, timeless
from tests.study.test_replay import eventful
from tradewind import recipes
from tradewind.engine import plan
from tradewind.engine.propose import Proposer
from tradewind.errors import StorageError
from tradewind.goals import Goal
from tradewind.log.events import Proposed
from tradewind.log.memory import MemoryStore
from tradewind.log.sqlite import SqliteStore
from tradewind.log.state import StudyState
from tradewind.optimizer.history import History
from tradewind.runners.runner import Lost
from tradewind.runners.simulated import SimulatedRunner
from tradewind.space import Space
from tradewind.strategies import MIES, Bayes, Design, RandomSearch, Staged, Strategy
from tradewind.types import Origin, Proposal, State, Trial

QUICK = Staged(Bayes(design=Design(4)), (0.3, 1.0), trials=6, carried=2)
THREE = Staged(Bayes(design=Design(4)), (0.1, 0.4, 1.0), trials=(7, 5, 6), carried=2)
GOALS = {"quality": tw.Quality(), "tradeoff": tw.Tradeoff(alpha=0.3)}
INNER: dict[str, Callable[[], Any]] = {
    "auto": recipes.auto,
    "random": recipes.random_search,
    "wang2020": recipes.wang2020,
    "mip_ego": lambda: recipes.mip_ego(loss="identity", trees=10, maximizer=MIES(generations=20)),
}


def objective(run: Any) -> dict[str, Any]:
    """Better and dearer with more data; the best x moves a little."""
    x, k, size = run.params["x"], run.params["k"], run.train_size
    value = 0.8 - (x - 0.3 - 0.1 * size) ** 2 + 0.01 * k - 0.3 * (1.0 - size) ** 2
    return {"value": value, "cost": size * (1.0 + k * x)}


def duration(trial: Trial) -> float:
    """Log-normal, as the number says."""
    return float(np.random.default_rng(trial.number).lognormal(0.0, 1.0))


def create(strategy: Any = QUICK, **options: Any) -> tw.Study:
    return tw.create_study(SPACE, **{"seed": 0, "strategy": strategy, **options})


def ran(n: int, strategy: Any = QUICK, *, workers: int = 1, **options: Any) -> tw.Study:
    study = create(strategy, **options)
    study.optimize(objective, n_trials=n, runner=SimulatedRunner(workers, duration=duration))
    return study


def sizes(study: tw.Study) -> list[float]:
    return [t.train_size for t in study.trials]


def carried(study: tw.Study) -> list[Trial]:
    return [t for t in study.trials if t.origin is Origin.CARRIED]


def computed_again(study: tw.Study) -> list[Proposed]:
    """Every proposal that the strategy made, as the log implies it: what `replay` compares, and
    the fraction, the origin and the expected cost too."""
    events = events_of(study)
    made = [e for e in events if isinstance(e, Proposed)]
    again = []
    for event in made:
        if event.origin in (Origin.ADDED, Origin.ENQUEUED):
            continue
        state = StudyState.of(events[: event.seen])
        goal, strategy = plan.decode(state.goal), plan.decode(state.strategy)
        proposer = Proposer(state)
        again.append(proposer.propose(event.number, goal, strategy, max_cost=event.max_cost))
    return again


def proposals(study: tw.Study) -> list[Proposed]:
    chosen = (Origin.DESIGN, Origin.MODEL, Origin.CARRIED)
    return [e for e in events_of(study) if isinstance(e, Proposed) and e.origin in chosen]


# ---- one stage ----


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("name", INNER)
def test_one_stage_is_the_inner_strategy_proposal_for_proposal(name: str, goal: str) -> None:
    inner = INNER[name]()
    options: dict[str, Any] = {"goal": GOALS[goal], "workers": 3}
    alone = ran(14, inner, **options)
    one = ran(14, Staged(inner, (1.0,), trials=5), **options)
    assert timeless(one.trials) == timeless(alone.trials)
    assert (one.best.number, one.goal) == (alone.best.number, alone.goal)
    assert one.recommend().params == alone.recommend().params


@pytest.mark.parametrize("name", INNER)
def test_the_first_stage_is_the_inner_strategy_too(name: str) -> None:
    inner = INNER[name]()
    assert params(ran(8, Staged(inner, (0.999, 1.0), trials=8)))[:4] == params(ran(4, inner))


# ---- several ----


def test_a_study_in_stages_finds_the_best_on_all_data_with_few_trials_of_it() -> None:
    study = ran(16, Staged(Bayes(design=Design(4)), trials=10, carried=2))
    assert Counter(sizes(study)) == {0.3: 10, 1.0: 6}
    assert study.best.train_size == 1.0
    assert study.best.params["x"] == pytest.approx(0.4, abs=0.1)
    assert study.best.params["k"] == 9


def test_the_objective_is_told_what_to_train_with() -> None:
    seen: list[float] = []

    def remembering(run: Any) -> dict[str, float]:
        seen.append(run.train_size)
        return objective(run)

    study = create(THREE)
    study.optimize(remembering, n_trials=15)
    assert seen == sizes(study) == [0.1] * 7 + [0.4] * 5 + [1.0] * 3


def test_a_loss_is_minimized_in_the_same_way() -> None:
    def loss(run: Any) -> dict[str, float]:
        told = objective(run)
        return {**told, "value": -told["value"]}

    study = create(THREE, direction="minimize")
    study.optimize(loss, n_trials=20)
    as_quality = ran(20, THREE)
    assert params(study) == params(as_quality)
    assert sizes(study) == sizes(as_quality)
    assert study.best.number == as_quality.best.number
    assert study.recommend().value == -as_quality.recommend().value


def test_as_published_stages_are_told_from_each_other_by_their_fraction() -> None:
    study = ran(20, recipes.wang2015())
    assert sizes(study) == [0.3] * 10 + [1.0] * 10
    origins = [t.origin for t in study.trials]
    assert origins[:3] == [Origin.DESIGN] * 3
    assert origins[3:10] == [Origin.MODEL] * 7
    assert origins[10:13] == [Origin.CARRIED] * 3
    assert origins[13:] == [Origin.MODEL] * 7
    first = sorted(study.trials[:10], key=lambda t: -(t.value or 0.0))
    assert [t.params for t in study.trials[10:13]] == [t.params for t in first[:3]]


# ---- who wins ----


def optimistic(run: Any) -> dict[str, float]:
    """Little data makes for high scores, and for wrong ones."""
    x, size = run.params["x"], run.train_size
    return {"value": (1.0 - size) + (x if size < 1.0 else -x), "cost": size}


@pytest.mark.parametrize(("final", "size"), [("last", 1.0), ("all", 0.3)])
def test_only_the_last_stage_wins_unless_all_may(final: Any, size: float) -> None:
    study = create(Staged(Bayes(design=Design(4)), trials=6, carried=2, final=final))
    study.optimize(optimistic, n_trials=6)
    assert study.best.train_size == study.recommend().train_size == 0.3
    study.optimize(optimistic, n_trials=6)
    may = [t for t in study.trials if final == "all" or t.train_size == 1.0]
    best = max(may, key=lambda t: t.value or 0.0)
    assert study.best == study.recommend().trial == best
    assert best.train_size == study.recommend().train_size == size


def test_the_winner_under_another_goal_is_of_the_last_stage_too() -> None:
    study = ran(12)
    for goal in (tw.Quality(), tw.Tradeoff(alpha=0.9, reference=5.0), tw.Tradeoff(alpha=0.2)):
        assert study.best_for(goal).train_size == 1.0


# ---- at the same time ----


@pytest.mark.parametrize("strategy", [QUICK, THREE, recipes.wang2015(trials=6)], ids=str)
@pytest.mark.parametrize("workers", [2, 8])
def test_no_worker_waits_for_a_stage_to_end(strategy: Staged, workers: int) -> None:
    study, runner = create(strategy), SimulatedRunner(workers, duration=lambda trial: 1.0)
    study.optimize(objective, n_trials=24, runner=runner)
    assert runner.workers is not None
    assert runner.workers.now() == pytest.approx(24 / workers)
    assert runner.workers.utilization == pytest.approx(1.0)


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("workers", [3, 8])
def test_with_many_workers_the_stages_are_the_same_but_for_late_finishers(
    workers: int, goal: str
) -> None:
    study = ran(30, THREE, workers=workers, goal=GOALS[goal])
    assert all(t.finished for t in study.trials)
    counts = Counter(sizes(study))
    late = [t for t in carried(study) if t.train_size == 0.4][2:]
    assert counts[0.1] == 7
    assert 5 <= counts[0.4] <= 5 + len(late)
    for size in THREE.fractions:
        configs = [tuple(t.params.items()) for t in study.trials if t.train_size == size]
        assert len(set(configs)) == len(configs)
    for trial in carried(study):
        before = study.trials[: trial.number]
        assert trial.params in [t.params for t in before if t.train_size < trial.train_size]


def test_in_the_end_the_best_of_every_stage_have_been_carried_over() -> None:
    study = ran(30, THREE, workers=8)
    for before, after in zip(THREE.fractions, THREE.fractions[1:], strict=False):
        first = [t for t in study.trials if t.train_size == before]
        best = sorted(first, key=lambda t: -(t.value or 0.0))[:2]
        there = [t.params for t in study.trials if t.train_size == after]
        assert all(t.params in there for t in best)


@dataclass(frozen=True)
class Meanwhile(Strategy):
    """Stages of a slow driver: once, while it computes a proposal, another driver asks."""

    other: list[tw.Study] = field(default_factory=list)

    def settle(self, goal: Goal, history: History) -> Goal:
        return QUICK.settle(goal, history)

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        made = QUICK.propose(space, goal, history, rng=rng)
        while self.other:
            self.other.pop().ask()
        return made

    def recommend(self, space: Space, goal: Goal, history: History) -> Any:
        return QUICK.recommend(space, goal, history)


def test_two_drivers_at_once_do_not_carry_over_the_same_configuration() -> None:
    slow, store = Meanwhile(), MemoryStore()
    study = create(slow, storage=store)
    study.optimize(objective, n_trials=6)
    slow.other.append(tw.load_study(store, strategy=Meanwhile()))
    study.ask()
    first, second = study.trials[6:]
    assert [first.origin, second.origin] == [Origin.CARRIED] * 2
    assert first.params != second.params


# ---- a trade-off ----


def test_the_reference_of_a_trade_off_is_that_of_the_design_at_the_data_of_the_stage() -> None:
    study = create(QUICK, goal=tw.Tradeoff(alpha=2.0))
    study.optimize(objective, n_trials=6)
    design = max(t.cost or 0.0 for t in study.trials if t.origin is Origin.DESIGN)
    assert study.goal == tw.Tradeoff(2.0, design)
    study.optimize(objective, n_trials=10)
    reference = study.goal.reference  # type: ignore[attr-defined]
    assert reference == pytest.approx(design / 0.3)  # cost is in proportion to the data
    assert max(t.cost or 0.0 for t in carried(study)) < 0.5 * reference  # they are cheap
    study.optimize(objective, n_trials=4)
    assert study.goal.reference == reference  # type: ignore[attr-defined]


def test_the_winner_of_a_trade_off_is_the_best_trial_on_all_data() -> None:
    study = ran(24, goal=tw.Tradeoff(alpha=0.5), workers=3)
    full = [t for t in study.trials if t.train_size == 1.0]
    reference = study.goal.reference  # type: ignore[attr-defined]
    assert study.best == study.recommend().trial
    assert study.best == max(
        full, key=lambda t: (t.value or 0.0) - 0.5 * min(1.0, (t.cost or 0.0) / reference)
    )


# ---- folds ----


def test_noisy_folds_of_the_last_stage_are_judged_by_its_model() -> None:
    def folded(run: Any) -> dict[str, Any]:
        x, size = run.params["x"], run.train_size
        rng = np.random.default_rng(run.number)
        return {"folds": (size - (x - 0.4) ** 2 + 0.1 * rng.standard_normal(5)).tolist()}

    study = create(Staged(Bayes(design=Design(4)), trials=8, carried=3))
    study.optimize(folded, n_trials=24)
    advice = study.recommend()
    assert advice.train_size == 1.0
    assert advice.trial in study.trials[8:]
    _, history = study._session.snapshot()
    assert history.noise[history.sizes.finished == 1.0].min() > 0.0
    assert advice.value == pytest.approx(1.0, abs=0.1)
    assert advice.value != study.best.value  # which is lucky


# ---- failures ----


def test_what_fails_on_all_data_does_not_stop_the_search() -> None:
    def fragile(run: Any) -> dict[str, float]:
        if run.train_size == 1.0 and run.number in (6, 7):
            raise MemoryError("too much data")
        return objective(run)

    study = create()
    study.optimize(fragile, n_trials=14)
    assert states(study)[6:9] == ["failed", "failed", "finished"]
    assert sizes(study) == [0.3] * 6 + [1.0] * 8
    # both carried trials failed: the next best is carried over, then a model goes on
    assert [t.origin for t in study.trials[6:10]] == [Origin.CARRIED] * 3 + [Origin.MODEL]
    assert len({tuple(t.params.items()) for t in study.trials[6:]}) == 8
    assert study.best.train_size == 1.0


def test_where_little_data_always_fails_the_search_goes_on_with_more() -> None:
    def too_few_rows(run: Any) -> dict[str, float]:
        if run.train_size < 1.0:
            raise ValueError("each fold needs a row of every class")
        return objective(run)

    options: dict[str, Any] = {"n_trials": 16, "give_up_after": None}
    for on_error, until in (("penalize", 6), ("ignore", 12)):
        study = create()
        study.optimize(too_few_rows, on_error=on_error, **options)
        assert sizes(study) == [0.3] * until + [1.0] * (16 - until)
        assert study.best.train_size == 1.0


def test_lost_trials_run_again_in_their_stage() -> None:
    def mishap(trial: Trial) -> Any:
        return Lost("gone") if trial.number % 3 == 0 and not trial.retries else None

    study = create(THREE)
    runner = SimulatedRunner(4, duration=duration, failure=mishap)
    study.optimize(objective, n_trials=20, runner=runner)
    assert sum(t.retries for t in study.trials) >= 6
    counts = Counter(t.train_size for t in study.trials if t.finished)
    assert counts[0.1] == 7
    assert sum(counts.values()) == 20
    assert tw.replay(study).identical


def test_a_trial_of_a_killed_driver_goes_on_with_its_fraction(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    study = create(storage=path)
    study.optimize(objective, n_trials=6)
    lost = study.ask(lease=5.0)
    assert (lost.origin, lost.train_size) == (Origin.CARRIED, 1.0)
    later = tw.load_study(SqliteStore(path, clock=lambda: time.monotonic() + 1000.0))
    again = later.ask()
    assert (again.number, again.params, again.train_size) == (6, lost.params, 1.0)
    assert later.ask().params != lost.params


def test_what_a_limit_has_stopped_is_carried_over_again_with_the_next_search() -> None:
    study = create()
    study.optimize(objective, n_trials=6)
    slow = SimulatedRunner(1, duration=lambda trial: 100.0)
    study.optimize(objective, timeout=10.0, runner=slow)
    given_up = study.trials[-1]
    assert (given_up.state, given_up.origin) == (State.ABANDONED, Origin.CARRIED)
    study.optimize(objective, n_trials=3)
    assert [t.origin for t in study.trials[7:]] == [Origin.CARRIED] * 2 + [Origin.MODEL]
    assert study.trials[7].params == given_up.params


def test_near_a_limit_of_cost_a_carried_trial_that_would_exceed_it_is_not_started() -> None:
    study = create()
    study.optimize(objective, n_trials=6)
    best = max(study.trials, key=lambda t: t.value or 0.0)
    expected = (best.cost or 0.0) / 0.3  # in proportion to the data, as it will be
    study.optimize(objective, max_cost=0.8 * expected)
    declined = study.trials[-1]
    assert (declined.state, declined.started) == (State.ABANDONED, None)
    assert (declined.params, declined.expected_cost) == (best.params, pytest.approx(expected))
    study.optimize(objective, n_trials=2)
    assert [t.finished for t in carried(study)] == [False, True, True]
    assert study.trials[-2].cost == pytest.approx(expected)


# ---- what users add ----


def test_added_and_enqueued_trials_belong_to_the_stage_of_their_fraction() -> None:
    study = create()
    study.add({"x": 0.4, "k": 9}, 0.99, cost=2.0)
    study.add({"x": 0.3, "k": 9}, 0.98, cost=1.0, train_size=0.3)
    study.add({"x": 0.2, "k": 9}, 9.99, cost=1.0, train_size=0.5)
    study.enqueue({"x": 0.1, "k": 1}, train_size=0.3)
    assert study.best.number == 0
    study.optimize(objective, n_trials=7)
    assert sizes(study)[3:] == [0.3] * 5 + [1.0] * 2
    assert study.trials[8].params == {"x": 0.3, "k": 9}
    assert study.best.train_size == 1.0


# ---- kept ----


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("trials", [25, 15], ids=["in the first stage", "in the second stage"])
def test_twenty_and_twenty_trials_are_forty(trials: int, goal: str, tmp_path: Path) -> None:
    strategy = Staged(Bayes(design=Design(4)), trials=trials)
    options: dict[str, Any] = {"goal": GOALS[goal], "seed": 3}
    whole = create(strategy, **options)
    whole.optimize(objective, n_trials=40)
    parts = create(strategy, **options, storage=tmp_path / "runs.db")
    parts.optimize(objective, n_trials=20)
    parts = tw.load_study(tmp_path / "runs.db")
    assert parts.strategy == strategy
    parts.optimize(objective, n_trials=20)
    assert timeless(parts.trials) == timeless(whole.trials)
    assert Counter(sizes(parts)) == {0.3: trials, 1.0: 40 - trials}
    assert (parts.best, parts.goal) == (parts.trials[whole.best.number], whole.goal)


def test_a_study_that_is_loaded_for_every_trial_is_the_same(tmp_path: Path) -> None:
    whole = create(THREE)
    whole.optimize(objective, n_trials=18)
    create(THREE, storage=tmp_path / "runs.db")
    for _ in range(18):
        study = tw.load_study(tmp_path / "runs.db")
        trial = study.ask()
        tw.load_study(tmp_path / "runs.db").tell(trial, **objective(trial))
    assert timeless(tw.load_study(tmp_path / "runs.db").trials) == timeless(whole.trials)


@pytest.mark.parametrize("goal", GOALS)
def test_a_study_with_many_workers_is_computed_again(goal: str) -> None:
    study = ran(30, THREE, workers=8, goal=GOALS[goal])
    assert tw.replay(study).identical
    assert computed_again(study) == proposals(study)


def test_a_study_to_which_everything_happened_is_computed_again(tmp_path: Path) -> None:
    strategy = Staged(Bayes(design=Design(4)), (0.2, 0.6, 1.0), trials=(8, 5, 5), carried=2)
    study = eventful(tmp_path / "runs.db", strategy=strategy)
    assert {t.state for t in study.trials} >= {State.FINISHED, State.FAILED, State.ABANDONED}
    assert {t.train_size for t in study.trials} == {0.2, 0.6, 1.0}
    loaded = tw.load_study(tmp_path / "runs.db")
    assert loaded.trials == study.trials
    assert tw.replay(loaded).identical
    assert computed_again(loaded) == proposals(loaded)


def test_an_exported_study_keeps_its_stages(tmp_path: Path) -> None:
    study = ran(14, THREE)
    study.export(tmp_path / "study.jsonl")
    copy = tw.import_study(tmp_path / "study.jsonl", storage=MemoryStore())
    assert copy.trials == study.trials
    assert (copy.strategy, copy.best) == (study.strategy, study.best)
    assert (copy.ask().params, copy.trials[-1].train_size) == (study.ask().params, 1.0)


class Own(RandomSearch):
    """A strategy of the user's."""


def test_an_inner_strategy_of_ones_own_must_be_given_again(tmp_path: Path) -> None:
    strategy = Staged(Own(), trials=4)
    study = create(strategy, storage=tmp_path / "runs.db")
    study.optimize(objective, n_trials=3)
    with pytest.raises(StorageError, match=r"uses your own .*Own.*: give strategy= again"):
        tw.load_study(tmp_path / "runs.db")
    again = tw.load_study(tmp_path / "runs.db", strategy=strategy)
    again.optimize(objective, n_trials=3)
    assert sizes(again) == [0.3] * 4 + [1.0] * 2


def test_a_study_may_go_on_in_stages(tmp_path: Path) -> None:
    study = create(Bayes(design=Design(4)), storage=tmp_path / "runs.db")
    study.optimize(objective, n_trials=5)
    study = tw.load_study(tmp_path / "runs.db", strategy=QUICK)
    study.optimize(objective, n_trials=9)
    assert sizes(study) == [1.0] * 5 + [0.3] * 6 + [1.0] * 3
    assert [t.origin for t in study.trials[11:]] == [Origin.CARRIED] * 2 + [Origin.MODEL]
    assert study.best.train_size == 1.0
    assert tw.replay(study).identical
