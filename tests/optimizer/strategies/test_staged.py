"""Stages: who is carried over, what counts, what the inner strategy sees, and who may win."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.space.generate import spaces
from tradewind import recipes
from tradewind.engine.propose import Proposer
from tradewind.errors import SpaceError
from tradewind.goals import Goal
from tradewind.log.events import Abandoned, Claimed, Event, Failed, Finished, Proposed
from tradewind.log.state import StudyState
from tradewind.optimizer.history import History
from tradewind.seeds import proposal_rng
from tradewind.space import Space
from tradewind.strategies import (
    EI,
    Bayes,
    Design,
    GaussianProcess,
    Output,
    RandomSearch,
    Staged,
    Strategy,
)
from tradewind.types import Config, Mask, Origin, Outcome, Prediction, Proposal, State, Trial

SPACE = tw.Space({"x": tw.Float(0, 10), "kind": tw.Categorical(["a", "b"])})
QUALITY = tw.Quality()


@dataclass(frozen=True)
class Told:
    """A trial at x: finished with `value` if that is given, else what `end` says, else running."""

    x: float
    value: float | None = None
    size: float = 0.3
    cost: float | None = 1.0
    end: str | None = None
    folds: tuple[float, ...] = ()

    def events(self, number: int) -> list[Event]:
        params: Config = {"x": self.x, "kind": "a"}
        made = Proposed(number, params, Origin.DESIGN, seen=0, train_size=self.size)
        ends: dict[str | None, list[Event]] = {
            None: [],
            "failed": [Failed(number, "boom")],
            "ignored": [Failed(number, "boom", penalize=False)],
            "abandoned": [Abandoned(number, "stopped")],
        }
        finished: list[Event] = (
            []
            if self.value is None
            else [Finished(number, Outcome(self.value, self.cost, self.folds))]
        )
        return [Claimed(number), made, *finished, *ends[self.end]]


def history(*trials: Told, maximize: bool = True) -> History:
    state = StudyState(SPACE, seed=0, maximize=maximize)
    for number, trial in enumerate(trials):
        state.apply(trial.events(number))
    return Proposer(state).history(len(trials))


def small(*values: float | None, size: float = 0.3, start: int = 0) -> list[Told]:
    """Trials at x = start, start + 1, ... with these values; None still runs."""
    return [Told(float(start + i), value, size) for i, value in enumerate(values)]


@dataclass(frozen=True)
class Inner(Strategy):
    """Proposes what nobody else does, and remembers what it saw."""

    seen: list[History] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)

    def settle(self, goal: Goal, history: History) -> Goal:
        return goal.settle(history.cost[history.initial]).settle(history.cost)

    def propose(
        self, space: Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        self.seen.append(history)
        self.goals.append(goal)
        x = 9.0 + len(history.evaluated) / 1000
        row = SPACE.encode([{"x": x, "kind": "b"}])[0]
        return Proposal(row, Origin.MODEL, {"theta": [1.0]}, 7.0, 0.123)

    def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
        """The first, which is none of the best."""
        self.seen.append(history)
        self.goals.append(goal)
        return Prediction(0, 0.5, 2.0)


def staged(**options: Any) -> Staged:
    return Staged(**{"inner": Inner(), "trials": 4, "carried": 2, **options})


def proposal(
    strategy: Staged, *trials: Told, goal: Goal = QUALITY, maximize: bool = True
) -> Proposal:
    seen = history(*trials, maximize=maximize)
    return strategy.propose(SPACE, goal, seen, rng=proposal_rng(0, len(trials)))


def params_of(made: Proposal) -> Config:
    return SPACE.decode(made.row[None, :])[0]


def carried(*trials: Told, goal: Goal = QUALITY, **options: Any) -> tuple[Any, float | None] | None:
    """x and the fraction of what is carried over next; None if the inner strategy proposes."""
    made = proposal(staged(**options), *trials, goal=goal)
    params = params_of(made)
    assert (made.origin is Origin.CARRIED) == (params["kind"] == "a")
    return (params["x"], made.train_size) if made.origin is Origin.CARRIED else None


def stage(*trials: Told, **options: Any) -> float | None:
    """The fraction of the next trial."""
    return proposal(staged(**options), *trials).train_size


# ---- the algorithm, one trial after the other ----


def test_the_first_stage_is_the_inner_strategys() -> None:
    made = proposal(staged(), *small(0.1, 0.2, 0.3))
    assert (made.origin, made.train_size, made.handover) == (Origin.MODEL, 0.3, {"theta": [1.0]})


def test_the_best_of_the_first_stage_come_first_in_the_second() -> None:
    first = small(0.2, 0.4, 0.1, 0.3)
    assert carried(*first) == (1.0, 1.0)
    assert carried(*first, Told(1.0, 0.5, 1.0)) == (3.0, 1.0)
    assert carried(*first, Told(1.0, 0.5, 1.0), Told(3.0, 0.6, 1.0)) is None


def test_after_these_the_inner_strategy_goes_on_in_the_second_stage() -> None:
    second = [Told(1.0, 0.5, 1.0), Told(3.0, 0.6, 1.0)]
    for n in range(9):  # further trials stay in the last stage
        made = proposal(staged(), *small(0.2, 0.4, 0.1, 0.3), *second)
        assert (made.origin, made.train_size) == (Origin.MODEL, 1.0)
        second.append(Told(5.0 + n / 10, 0.1, 1.0))


def test_of_equals_the_first_is_carried_over() -> None:
    first = [Told(i / 10, 0.3 if i % 3 else 0.1) for i in range(80)]
    assert carried(*first, trials=80) == (0.1, 1.0)
    assert carried(*first, Told(0.1, 0.5, 1.0), trials=80) == (0.2, 1.0)


def test_a_configuration_that_was_evaluated_twice_is_one_of_the_best_once() -> None:
    first = [Told(1.0, 0.4), Told(1.0, 0.5), Told(3.0, 0.3), Told(2.0, 0.1)]
    assert carried(*first, Told(1.0, 0.5, 1.0)) == (3.0, 1.0)


def test_what_is_carried_over_is_trained_with_all_its_parameters() -> None:
    space = tw.Space(
        {
            "kernel": tw.Categorical(["linear", "poly"]),
            "degree": tw.Int(2, 5, when={"kernel": "poly"}),
            "C": tw.Float(1e-3, 1e3, log=True),
        }
    )
    study = tw.create_study(space, strategy=Staged(RandomSearch(), trials=6, carried=6), seed=0)
    study.optimize(lambda trial: trial.params["C"], n_trials=12)
    first, second = study.trials[:6], study.trials[6:]
    best_first = sorted(first, key=lambda t: -(t.value or 0.0))
    assert [t.params for t in second] == [t.params for t in best_first]
    assert {len(t.params) for t in first} == {2, 3}


def test_three_stages_follow_each_other() -> None:
    study = tw.create_study(
        SPACE,
        strategy=Staged(RandomSearch(), (0.1, 0.5, 1.0), trials=(5, 3, 4), carried=2),
        seed=0,
    )
    study.optimize(lambda trial: trial.params["x"], n_trials=14)
    sizes = [t.train_size for t in study.trials]
    assert sizes == [0.1] * 5 + [0.5] * 3 + [1.0] * 6
    was_carried = [t.number for t in study.trials if t.origin is Origin.CARRIED]
    assert was_carried == [5, 6, 8, 9]


@pytest.mark.parametrize("trials", [4, (4, 9)])
def test_trials_are_one_number_or_one_for_each_stage(trials: Any) -> None:
    assert stage(*small(0.1, 0.2, 0.3), trials=trials) == 0.3
    assert stage(*small(0.1, 0.2, 0.3, 0.4), trials=trials) == 1.0


def test_a_loss_is_minimized_in_every_stage() -> None:
    made = proposal(staged(), *small(0.2, 0.4, 0.1, 0.3), maximize=False)
    assert (params_of(made)["x"], made.origin) == (2.0, Origin.CARRIED)


def test_the_best_are_best_under_the_goal() -> None:
    costs = (8.0, 1.0, 2.0, 9.0)
    first = [Told(float(i), 0.5 + i / 100, cost=cost) for i, cost in enumerate(costs)]
    assert carried(*first, goal=tw.Quality()) == (3.0, 1.0)
    assert carried(*first, goal=tw.Tradeoff(alpha=0.5)) == (1.0, 1.0)
    capped = tw.Tradeoff(alpha=0.5, reference=0.5, capped=True)
    assert carried(*first, goal=capped) == (3.0, 1.0)


def test_trials_without_a_cost_come_last_under_a_goal_that_needs_one() -> None:
    first = [Told(0.0, 0.9, cost=None), *(Told(x, 0.1 * x, cost=1.0) for x in (1.0, 2.0, 3.0))]
    assert carried(*first, goal=tw.Tradeoff(alpha=0.1)) == (3.0, 1.0)


def test_a_stage_without_any_cost_is_ranked_by_quality() -> None:
    first = [Told(x, x, cost=None) for x in (1.0, 4.0, 2.0, 3.0)]
    assert carried(*first, goal=tw.Tradeoff(alpha=0.1)) == (4.0, 1.0)


def test_a_carried_trial_is_expected_to_cost_in_proportion_to_its_data() -> None:
    first = [Told(float(x), x / 10, cost=3.0 * (x + 1)) for x in range(4)]
    assert proposal(staged(), *first).expected_cost == pytest.approx(12.0 / 0.3)
    second = Told(3.0, 0.1, 1.0, cost=60.0)  # or by what others have cost more
    assert proposal(staged(), *first, second).expected_cost == pytest.approx(5 * 9.0)
    first = [Told(float(x), x / 10, cost=None) for x in range(4)]
    assert proposal(staged(), *first).expected_cost is None


def test_what_would_cost_too_much_is_carried_over_another_time() -> None:
    first = [Told(float(x), x / 10, cost=3.0) for x in range(4)]
    second = Told(3.0, 0.5, 1.0, cost=9.0)
    seen = history(*first, second)

    def limited(limit: float, seen: History) -> Proposal:
        rng = proposal_rng(0, 5)
        return staged().propose(SPACE, QUALITY, replace(seen, max_cost=limit), rng=rng)

    assert params_of(limited(9.5, seen))["x"] == 2.0
    assert limited(8.5, seen).origin is Origin.MODEL
    # as long as there is nothing to go by, it is better than anything drawn at random
    assert params_of(limited(8.5, history(*first)))["x"] == 3.0


def test_what_is_carried_over_a_stage_is_expected_to_cost_so_much_more() -> None:
    strategy = staged(fractions=(0.1, 0.3, 1.0), trials=(4, 2, 4))
    first = [Told(float(x), x / 10, 0.1, cost=3.0) for x in range(4)]
    both_run = [Told(3.0, None, 0.3), Told(2.0, None, 0.3)]
    made = proposal(strategy, *first, *both_run)
    assert (params_of(made)["x"], made.train_size) == (3.0, 1.0)
    assert made.expected_cost == pytest.approx(30.0)


# ---- while others run ----


def test_while_a_stage_ends_the_best_so_far_are_carried_over() -> None:
    assert carried(*small(0.2, None, 0.1, None)) == (0.0, 1.0)
    assert carried(*small(0.2, None, 0.1, None), Told(0.0, None, 1.0)) == (2.0, 1.0)


def test_a_trial_that_runs_counts_and_is_not_proposed_again() -> None:
    assert stage(*small(0.1, None, None)) == 0.3
    assert stage(*small(0.1, None, None, None)) == 1.0
    two_run = (Told(3.0, None, 1.0), Told(2.0, None, 1.0))
    assert carried(*small(0.1, 0.2, 0.3, 0.4), *two_run) == (1.0, 1.0)


def test_a_late_finisher_among_the_best_is_added() -> None:
    first = small(0.2, 0.5, 0.1, 0.3)  # 1 was the last to finish
    second = [Told(0.0, 0.5, 1.0), Told(3.0, 0.5, 1.0), Told(7.0, 0.4, 1.0)]
    assert carried(*first, *second) == (1.0, 1.0)
    assert carried(*first, *second, Told(1.0, None, 1.0)) is None


def test_a_late_finisher_that_is_not_among_the_best_is_not_added() -> None:
    second = [Told(0.0, 0.5, 1.0), Told(3.0, 0.5, 1.0)]
    assert carried(*small(0.4, 0.1, 0.2, 0.3), *second) is None


def test_a_late_finisher_is_added_to_a_stage_that_is_full() -> None:
    options: dict[str, Any] = {"fractions": (0.3, 0.6, 1.0), "trials": (4, 2, 4)}
    first = small(0.2, 0.5, 0.1, 0.3)
    full = [Told(0.0, 0.5, 0.6), Told(3.0, 0.4, 0.6)]
    assert carried(*first, *full, **options) == (1.0, 0.6)
    assert carried(*first, *full, Told(1.0, None, 0.6), **options) == (0.0, 1.0)
    # and so to the last, from that stage
    last = [Told(0.0, 0.1, 1.0), Told(3.0, 0.1, 1.0)]
    assert carried(*first, *full, Told(1.0, 0.9, 0.6), *last, **options) == (1.0, 1.0)


def test_as_long_as_nothing_has_finished_there_the_next_best_are_carried_over() -> None:
    first = small(0.2, 0.4, 0.1, 0.3)
    taken: list[Told] = []
    for x in (1.0, 3.0, 0.0, 2.0):
        assert carried(*first, *taken) == (x, 1.0)
        taken.append(Told(x, None, 1.0))
    assert carried(*first, *taken) is None


def test_once_something_has_finished_there_the_inner_strategy_goes_on() -> None:
    first = small(0.2, 0.4, 0.1, 0.3)
    assert carried(*first, Told(1.0, 0.9, 1.0), Told(3.0, None, 1.0)) is None


def test_the_next_best_are_not_added_to_a_stage_that_is_full() -> None:
    options: dict[str, Any] = {"fractions": (0.3, 0.6, 1.0), "trials": (4, 2, 4)}
    first = small(0.2, 0.4, 0.1, 0.3)
    full = [Told(1.0, None, 0.6), Told(3.0, None, 0.6)]
    # nothing has finished in the second stage: the best of the first go on to the third
    assert carried(*first, *full, **options) == (1.0, 1.0)
    assert carried(*first, *full, Told(1.0, None, 1.0), **options) == (3.0, 1.0)
    # and the best of the second as soon as there is one
    full = [Told(1.0, 0.1, 0.6), Told(3.0, None, 0.6)]
    assert carried(*first, *full, Told(3.0, None, 1.0), **options) == (1.0, 1.0)


def test_if_nothing_at_all_has_finished_the_inner_strategy_proposes_in_the_next_stage() -> None:
    made = proposal(staged(), *small(None, None, None, None))
    assert (made.origin, made.train_size) == (Origin.MODEL, 1.0)


def test_where_bayes_has_nothing_to_go_by_it_draws_a_point() -> None:
    made = proposal(staged(inner=Bayes()), *small(None, None, None, None))
    assert (made.origin, made.train_size) == (Origin.DESIGN, 1.0)


def test_bayes_makes_no_design_in_a_later_stage() -> None:
    strategy = staged(inner=Bayes(design=Design(30)), carried=1)
    first = small(0.2, 0.4, 0.1, 0.3)
    assert proposal(strategy, *first[:3]).origin is Origin.DESIGN
    assert proposal(strategy, *first, Told(1.0, 0.5, 1.0)).origin is Origin.MODEL
    failed = Told(1.0, size=1.0, end="failed")
    assert proposal(strategy, *first, failed, Told(3.0, 0.1, 1.0)).origin is Origin.MODEL


# ---- trials that show nothing ----


def test_failed_trials_count() -> None:
    first = [Told(float(x), end="failed") for x in range(3)]
    assert stage(*first) == 0.3
    assert carried(*first, Told(5.0, 0.1)) == (5.0, 1.0)


def test_a_stage_that_failed_throughout_is_left_too() -> None:
    made = proposal(staged(), *(Told(float(x), end="failed") for x in range(4)))
    assert (made.origin, made.train_size) == (Origin.MODEL, 1.0)


def test_a_carried_trial_that_failed_is_not_carried_over_again() -> None:
    first = small(0.2, 0.4, 0.1, 0.3)
    failed = Told(1.0, size=1.0, end="failed")
    assert carried(*first, failed) == (3.0, 1.0)
    assert carried(*first, failed, Told(3.0, 0.1, 1.0)) is None


@pytest.mark.parametrize("end", ["abandoned", "ignored"])
def test_abandoned_trials_do_not_count(end: str) -> None:
    first = [*small(0.1, 0.2, 0.3), Told(7.0, end=end)]
    assert stage(*first) == 0.3
    assert stage(*first, Told(8.0, 0.4)) == 1.0


@pytest.mark.parametrize("end", ["abandoned", "ignored"])
def test_a_stage_in_which_all_trials_are_abandoned_ends(end: str) -> None:
    given_up = [Told(float(x), end=end) for x in range(8)]
    assert stage(*given_up[:7]) == 0.3
    assert stage(*given_up) == 1.0


def test_a_carried_trial_that_was_abandoned_is_carried_over_once_more() -> None:
    first = small(0.2, 0.4, 0.1, 0.3)
    given_up = Told(1.0, size=1.0, end="abandoned")
    assert carried(*first, given_up) == (1.0, 1.0)
    assert carried(*first, given_up, given_up) == (3.0, 1.0)
    assert carried(*first, given_up, Told(1.0, None, 1.0)) == (3.0, 1.0)


def test_an_abandoned_trial_is_replaced_although_the_next_stage_has_begun() -> None:
    first = [*small(0.1, 0.2, 0.3), Told(7.0, end="abandoned")]
    assert stage(*first, Told(2.0, 0.5, 1.0)) == 0.3


# ---- what users add ----


def test_an_added_result_belongs_to_the_stage_of_its_fraction() -> None:
    added = [Told(5.0, 0.9, 1.0), Told(6.0, 0.8, 0.3)]
    assert stage(*added, *small(0.1, 0.2)) == 0.3
    assert carried(*added, *small(0.1, 0.2, 0.3)) == (6.0, 1.0)


def test_what_has_been_evaluated_on_all_data_is_not_carried_over() -> None:
    assert carried(Told(1.0, 0.9, 1.0), *small(0.2, 0.4, 0.1, 0.3)) == (3.0, 1.0)


def test_other_fractions_belong_to_no_stage() -> None:
    strangers = [Told(float(x), 0.9, 0.5) for x in range(6)]
    assert stage(*strangers) == 0.3
    assert carried(*strangers, *small(0.2, 0.4, 0.1, 0.3)) == (1.0, 1.0)
    strategy = staged()
    proposal(strategy, *strangers, *small(0.2, 0.4))
    assert strategy.inner.seen[0].X.shape == (2, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize("x", [1 / 3, 10 / 7, math.pi])
def test_a_number_of_the_users_own_is_carried_over_once(x: float) -> None:
    """It comes back rounded to 12 digits, and is the same nevertheless."""
    study = tw.create_study(SPACE, strategy=staged(), seed=0)
    study.add({"x": x, "kind": "a"}, 0.9, train_size=0.3)
    for _ in range(3):
        study.tell(study.ask(), 0.1)
    twice = [study.ask(), study.ask()]
    assert twice[0].params["x"] == pytest.approx(x, rel=1e-10)
    assert twice[1].params != twice[0].params
    study.abandon(twice[0])
    assert study.ask().params == twice[0].params


def test_a_number_of_the_users_own_that_was_given_for_all_data_is_not_carried_over() -> None:
    given = [Told(1 / 3, 0.9, 0.3), Told(1 / 3, 0.9, 1.0)]
    assert carried(*given, *small(0.1, 0.2, 0.3)) == (2.0, 1.0)


# ---- what the inner strategy sees ----


def test_the_inner_strategy_sees_the_trials_of_its_stage_only() -> None:
    strategy = staged(carried=1)
    first = [*small(0.2, 0.4), Told(7.0, end="failed"), Told(8.0), Told(8.5, end="abandoned")]
    second = [
        Told(1.0, 0.6, 1.0, cost=5.0, folds=(0.5, 0.7)),
        Told(9.1, end="failed", size=1.0),
        Told(9.2, None, 1.0),
        Told(9.3, end="abandoned", size=1.0),
    ]
    proposal(strategy, *first, *second)
    (seen,) = strategy.inner.seen  # type: ignore[attr-defined]
    assert seen.X[:, 0].tolist() == [0.1]
    assert (seen.quality.tolist(), seen.cost.tolist()) == ([0.6], [5.0])
    assert seen.noise.tolist() == pytest.approx([0.01])
    for group, x in [("failed", 0.91), ("pending", 0.92), ("ignored", 0.93)]:
        assert getattr(seen, group)[:, 0].tolist() == pytest.approx([x])
        assert getattr(seen.sizes, group).tolist() == [1.0]
    assert (seen.staged, seen.number) == (True, 9)


def test_the_first_stage_has_an_initial_design_of_its_own() -> None:
    strategy = staged()
    proposal(strategy, *small(0.2, 0.4))
    (seen,) = strategy.inner.seen  # type: ignore[attr-defined]
    assert not seen.staged
    assert seen.initial.all()


def test_in_later_stages_the_carried_trials_are_the_initial_ones() -> None:
    strategy = staged()
    second = [Told(3.0, 0.1, 1.0), Told(0.0, 0.9, 1.0), Told(1.0, 0.1, 1.0), Told(7.0, 0.9, 1.0)]
    proposal(strategy, *small(0.2, 0.4, 0.1, 0.3), *second)
    (seen,) = strategy.inner.seen  # type: ignore[attr-defined]
    assert seen.initial.tolist() == [True, False, True, False]


# ---- one stage is the inner strategy ----


@pytest.mark.parametrize("fraction", [1.0, 0.4])
@given(
    ends=st.lists(st.sampled_from(["failed", "ignored", "abandoned", None, 0.1, 0.7]), max_size=9)
)
@settings(max_examples=30)
def test_one_stage_is_the_inner_strategy(fraction: float, ends: list[Any]) -> None:
    told = [
        Told(float(x), *((end, fraction) if isinstance(end, float) else (None, fraction)))
        if not isinstance(end, str)
        else Told(float(x), size=fraction, end=end)
        for x, end in enumerate(ends)
    ]
    seen = history(*told)
    inner = RandomSearch() if len(ends) % 2 else Bayes(design=Design(3))
    only = Staged(inner, (fraction,), trials=1, carried=3)
    for goal in (QUALITY, tw.Tradeoff(alpha=0.3)):
        made = only.propose(SPACE, goal, seen, rng=proposal_rng(0, 1))
        alone = inner.propose(SPACE, goal, seen, rng=proposal_rng(0, 1))
        np.testing.assert_array_equal(made.row, alone.row)
        assert vars(made) | {"row": None} == vars(alone) | {"row": None, "train_size": fraction}
        assert only.settle(goal, seen) == inner.settle(goal, seen)
        if len(seen.X):
            assert only.recommend(SPACE, goal, seen) == inner.recommend(SPACE, goal, seen)
            assert only.eligible(seen).all()


# ---- any order of events ----


def tried(trials: list[Trial], size: float) -> list[Trial]:
    return [t for t in trials if t.train_size == size]


def alive(trials: list[Trial]) -> list[Trial]:
    return [t for t in trials if t.state is not State.ABANDONED]


def ranked(trials: list[Trial]) -> list[dict[str, Any]]:
    finished = [t for t in trials if t.finished]
    return [dict(t.params) for t in sorted(finished, key=lambda t: -(t.value or 0.0))]


def check_next(strategy: Staged, before: list[Trial], made: Trial) -> None:
    """That this is what may come next, by the words of the paper and of the docstring."""
    sizes, limits, k = strategy.fractions, strategy._limits, strategy.carried
    s = sizes.index(made.train_size)
    for size, limit in zip(sizes[:s], limits[:s], strict=True):  # earlier stages are full
        given_up = len(tried(before, size)) - len(alive(tried(before, size)))
        assert len(alive(tried(before, size))) + max(0, given_up - limit) >= limit
    here = tried(before, sizes[s])
    given_up = len(here) - len(alive(here))
    full = s < len(sizes) - 1 and len(alive(here)) + max(0, given_up - limits[s]) >= limits[s]
    there = [t.params for t in alive(here)]
    lost = [t.params for t in here if t.state is State.ABANDONED]
    waiting = [
        [p for p in ranked(tried(before, size)) if p not in there and lost.count(p) < 2]
        for size in sizes[:s]
    ]
    best = ranked(tried(before, sizes[s - 1]))[:k] if s else []
    entrants = [p for p in best if p not in there and lost.count(p) < 2]
    if made.origin is Origin.CARRIED:
        assert made.params not in there
        if entrants:
            assert made.params == entrants[0]
        else:  # the next best, because nothing has finished here
            assert not full
            assert not any(t.finished for t in here)
            latest = [stage for stage in waiting if stage][-1]
            assert made.params == latest[0]
    else:
        assert not full
        assert not entrants
        assert made.params not in [t.params for t in here]
        assert any(t.finished for t in here) or not any(waiting)


plans = st.sampled_from(
    [
        Staged(RandomSearch(), (0.3, 1.0), trials=4, carried=2),
        Staged(RandomSearch(), (0.1, 0.3, 1.0), trials=(5, 3, 4), carried=2),
        Staged(RandomSearch(), (0.2, 0.4, 0.6, 1.0), trials=(4, 2, 3, 2), carried=1),
        Staged(RandomSearch(), (0.5,), trials=2, carried=3),
    ]
)


@settings(max_examples=150)
@given(data=st.data(), strategy=plans, workers=st.integers(1, 8), seed=st.integers(0, 99))
def test_whatever_ends_when_every_trial_is_one_that_the_algorithm_allows(
    data: st.DataObject, strategy: Staged, workers: int, seed: int
) -> None:
    study = tw.create_study(SPACE, strategy=strategy, seed=seed)
    running: list[Trial] = []
    ends = st.sampled_from(["finish", "finish", "finish", "fail", "abandon", "requeue"])
    for _ in range(24):
        while len(running) < workers:  # nobody is idle
            before = study.trials
            made = study.ask()
            if made.number == len(before):
                check_next(strategy, before, made)
            running.append(made)
        ended = running.pop(data.draw(st.integers(0, len(running) - 1)))
        match data.draw(ends):
            case "finish":
                study.tell(ended, data.draw(st.integers(0, 20)) / 10, cost=1.0)
            case "fail":
                study.fail(ended)
            case "abandon":
                study.abandon(ended)
            case "requeue":
                study.requeue(ended)
    check_stages(strategy, study.trials)


def check_stages(strategy: Staged, trials: list[Trial]) -> None:
    for size in strategy.fractions:
        configs = [tuple(t.params.items()) for t in alive(tried(trials, size))]
        assert len(set(configs)) == len(configs)
    for s, (size, limit) in enumerate(
        zip(strategy.fractions[:-1], strategy._limits[:-1], strict=True)
    ):
        mine = alive(tried(trials, size))
        late = [t for t in mine[limit:] if t.origin is Origin.CARRIED]
        assert len(mine) <= limit + (len(late) if s else 0)


def test_a_search_in_a_finite_space_goes_through_all_stages() -> None:
    space = tw.Space({"flag": tw.Bool(), "kind": tw.Categorical(["a", "b"])})
    strategy = Staged(Bayes(design=Design(2)), (0.2, 0.5, 1.0), trials=6, carried=3)
    study = tw.create_study(space, strategy=strategy, seed=0)
    study.optimize(lambda trial: float(trial.params["flag"] is True), n_trials=20)
    assert [t.train_size for t in study.trials] == [0.2] * 6 + [0.5] * 6 + [1.0] * 8
    origins = [t.origin for t in study.trials[6:12]]
    assert origins == [Origin.CARRIED] * 3 + [Origin.MODEL] * 3
    assert len({tuple(t.params.items()) for t in study.trials[6:9]}) == 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    space=spaces().filter(lambda space: space.size_name is None),
    ends=st.lists(st.sampled_from("tttfr"), min_size=12, max_size=12),
    seed=st.integers(0, 2**32),
)
def test_every_proposal_is_a_configuration_of_the_space(
    space: tw.Space, ends: list[str], seed: int
) -> None:
    strategy = Staged(Bayes(design=Design(2)), (0.2, 0.5, 1.0), trials=(4, 3, 4), carried=2)
    study = tw.create_study(space, strategy=strategy, goal=tw.Tradeoff(alpha=0.3), seed=seed)
    for i, end in enumerate(ends):
        trial = study.ask()
        assert space.validate(trial.params) == trial.params
        if end == "t":
            study.tell(trial, value=float(i % 3), cost=1.0 + i)
        elif end == "f":
            study.fail(trial)


# ---- the reference cost ----

OPEN = tw.Tradeoff(alpha=0.5)


def reference(*trials: Told, strategy: Staged | None = None) -> float | None:
    settled = (strategy or staged()).settle(OPEN, history(*trials))
    assert isinstance(settled, tw.Tradeoff)
    return settled.reference


FIRST = [Told(float(x), 0.9 * x, cost=1.0 + x) for x in range(4)]


def test_the_reference_of_the_first_stage_is_the_inner_strategys() -> None:
    assert reference(*FIRST) == 4.0


def test_a_later_stage_has_a_say_once_it_has_a_cost() -> None:
    runs, unknown = Told(3.0, None, 1.0), Told(3.0, 0.5, 1.0, cost=None)
    assert reference(*FIRST, runs) == 4.0
    assert reference(*FIRST, unknown) == 4.0
    assert reference(*FIRST, Told(3.0, 0.5, 1.0, cost=12.0)) == 12.0


def test_in_a_later_stage_the_design_counts_at_what_it_would_cost_there() -> None:
    """Under a trade-off what is carried over is cheap: it does not say what much is."""
    first = [Told(float(x), 0.1, cost=2.0 + x) for x in range(4)]  # the cheapest are best
    once = [Told(0.0, 0.1, 1.0, cost=20.0)]
    assert reference(*first, *once) == pytest.approx(50.0)  # ten times the largest, 5
    twice = [*once, Told(1.0, 0.1, 1.0, cost=60.0)]
    assert reference(*first, *twice) == pytest.approx(75.0)  # ten or twenty times
    later = [Told(7.0, 0.1, 1.0, cost=5000.0), Told(8.0, 0.1, 1.0, cost=3.0)]
    assert reference(*first, *twice, *later) == pytest.approx(75.0)  # and there it stays


def test_a_carried_trial_that_costs_more_than_the_design_would_is_the_reference() -> None:
    second = [Told(3.0, 0.1, 1.0, cost=4.0), Told(2.0, 0.1, 1.0, cost=30.0)]
    assert reference(*FIRST, *second) == 30.0  # the median growth is 5.5


def test_as_long_as_the_growth_is_unknown_cost_is_in_proportion_to_the_data() -> None:
    failed = [Told(3.0, end="failed", size=1.0), Told(2.0, end="failed", size=1.0)]
    other = Told(7.0, 0.1, 1.0, cost=1.0)
    assert reference(*FIRST, *failed, other) == pytest.approx(4.0 / 0.3)
    free = [Told(float(x), 0.9 * x, cost=0.0) for x in range(4)]
    assert reference(*free, Told(3.0, 0.1, 1.0, cost=7.0)) == 7.0


def test_by_what_factor_cost_grows_is_seen_in_the_carried_trials_alone() -> None:
    again = [Told(0.0, 0.1, 1.0, cost=1000.0), Told(1.0, 0.1, 1.0, cost=1000.0)]
    assert reference(*FIRST, Told(3.0, 0.1, 1.0, cost=8.0), *again) == 8.0


def test_the_reference_grows_from_stage_to_stage() -> None:
    strategy = staged(fractions=(0.1, 0.3, 1.0), trials=(4, 2, 4), carried=1)
    first = [Told(float(x), 0.9 * x, 0.1, cost=4.0 - x) for x in range(4)]
    second = [Told(3.0, 0.9, 0.3, cost=2.0), Told(5.0, 0.1, 0.3, cost=99.0)]
    assert reference(*first, strategy=strategy) == 4.0
    assert reference(*first, *second, strategy=strategy) == 8.0
    third = Told(3.0, 0.9, 1.0, cost=10.0)
    assert reference(*first, *second, third, strategy=strategy) == 40.0


def test_the_largest_cost_so_far_is_that_of_all_stages_at_the_data_of_the_last() -> None:
    strategy = staged(inner=recipes.wang2020(), carried=1)
    second = [Told(3.0, 0.5, 1.0, cost=8.0)]
    assert reference(*FIRST, *second, strategy=strategy) == 8.0
    second.append(Told(8.0, 0.5, 1.0, cost=50.0))
    assert reference(*FIRST, *second, strategy=strategy) == 50.0


@pytest.mark.parametrize("costs", [(1e300, 1e-300), (1e-300, 1e300), (1e300, 1e300)])
def test_costs_may_be_as_large_as_numbers_go(costs: tuple[float, float]) -> None:
    first = [Told(float(x), 0.9 * x, cost=costs[0]) for x in range(4)]
    found = reference(*first, Told(3.0, 0.5, 1.0, cost=costs[1]))
    assert found is not None
    assert 0.0 < found <= 1e300


def test_what_cost_nothing_grows_to_nothing() -> None:
    first = [Told(float(x), 0.9 * x, cost=1e-300 * (x == 3)) for x in range(4)]
    assert reference(*first, Told(3.0, 0.5, 1.0, cost=1e300)) == 1e300


def test_the_inner_strategy_goes_on_towards_the_goal_of_its_stage() -> None:
    strategy = staged(carried=1)
    proposal(strategy, *FIRST[:2], goal=OPEN)
    proposal(strategy, *FIRST, Told(3.0, 0.1, 1.0, cost=20.0), goal=OPEN)
    strategy.recommend(SPACE, OPEN, history(*FIRST, Told(3.0, 0.1, 1.0, cost=20.0)))
    # the first stage makes a design to find the reference
    goals = strategy.inner.goals  # type: ignore[attr-defined]
    assert goals == [OPEN, tw.Tradeoff(0.5, 20.0), tw.Tradeoff(0.5, 20.0)]


@pytest.mark.parametrize(
    ("provisional", "last", "expected"),
    [
        (True, 0.6, True),  # trials of the first design still run
        (False, 0.6, False),
        (False, None, True),  # a carried trial still runs
    ],
)
def test_a_reference_is_provisional_while_a_trial_that_decides_it_runs(
    provisional: bool, last: float | None, expected: bool
) -> None:
    second = [Told(3.0, 0.5, 1.0, cost=12.0), Told(2.0, last, 1.0, cost=9.0)]
    seen = replace(history(*FIRST, *second), provisional=provisional)
    settled = staged(inner=Bayes()).settle(OPEN, seen)
    assert settled == tw.Tradeoff(0.5, 12.0, provisional=expected)


def test_a_reference_of_the_users_stays() -> None:
    goal = tw.Tradeoff(alpha=0.5, reference=7.0)
    assert staged().settle(goal, history(*small(0.1, 0.2), Told(1.0, 0.5, 1.0))) == goal


def test_without_any_result_of_a_stage_the_reference_is_what_there_is() -> None:
    goal = tw.Tradeoff(alpha=0.5)
    assert staged().settle(goal, history()) == goal
    settled = staged().settle(goal, history(Told(1.0, 0.5, 0.5, cost=8.0)))
    assert settled == tw.Tradeoff(0.5, 8.0)


@pytest.mark.parametrize("goal", [tw.Tradeoff(0.5), tw.Tradeoff(0.5, 7.0)], ids=repr)
def test_until_a_cost_is_known_stages_go_by_quality(goal: Goal) -> None:
    first = [Told(float(x), 0.1 * x, cost=None) for x in (2, 4, 1, 3)]
    assert carried(*first, goal=goal) == (4.0, 1.0)
    second = Told(4.0, 0.9, 1.0, cost=None)
    assert carried(*first, second, goal=goal) == (3.0, 1.0)
    rest = Told(3.0, 0.8, 1.0, cost=None)
    by_goal, by_quality = (
        proposal(staged(inner=Bayes()), *first, second, rest, goal=g) for g in (goal, QUALITY)
    )
    np.testing.assert_array_equal(by_goal.row, by_quality.row)


# ---- who may win ----

BOTH = [*small(0.9, 0.4, 0.1, 0.3), Told(1.0, 0.5, 1.0), Told(3.0, 0.6, 1.0), Told(5.0, 0.99, 0.5)]


@pytest.mark.parametrize(
    ("final", "may"),
    [
        ("last", [False] * 4 + [True, True, False]),
        ("all", [True] * 6 + [False]),
    ],
)
def test_the_rule_says_whose_trials_may_win(final: Any, may: list[bool]) -> None:
    assert staged(final=final).eligible(history(*BOTH)).tolist() == may


@pytest.mark.parametrize(
    ("final", "may"),
    [
        ("last", [False] * 4 + [True, False, False]),
        ("all", [True] + [False] * 3 + [True, False, False]),
    ],
)
def test_the_inner_strategy_says_who_may_win_within_a_stage(final: Any, may: list[bool]) -> None:
    class Picky(Inner):
        def eligible(self, history: History) -> Mask:
            return np.arange(len(history.X)) == 0

    assert staged(inner=Picky(), final=final).eligible(history(*BOTH)).tolist() == may


def test_what_the_inner_strategy_recommends_is_found_among_all_trials() -> None:
    class Picky(Inner):
        def eligible(self, history: History) -> Mask:
            return np.arange(len(history.X)) == 1

        def recommend(self, space: Space, goal: Goal, history: History) -> Prediction:
            return Prediction(1, 0.6, None)

    assert staged(inner=Picky()).recommend(SPACE, QUALITY, history(*BOTH)).index == 5


@pytest.mark.parametrize("final", ["last", "all"])
def test_before_the_last_stage_has_a_result_the_stage_before_may_win(final: Any) -> None:
    seen = history(*BOTH[:4], Told(1.0, None, 1.0), Told(3.0, size=1.0, end="failed"))
    assert staged(final=final).eligible(seen).all()


@pytest.mark.parametrize("final", ["last", "all"])
def test_where_no_stage_has_a_result_what_belongs_to_none_may_win(final: Any) -> None:
    strategy = staged(final=final, inner=RandomSearch())
    seen = history(Told(1.0, 0.1, 0.5), Told(2.0, 0.9, 0.6), Told(3.0, None, 0.3))
    assert strategy.eligible(seen).tolist() == [True, True]
    assert strategy.recommend(SPACE, QUALITY, seen).index == 1


def test_the_last_stages_model_recommends() -> None:
    """By the inner strategy, of which the index is one among all finished trials."""
    strategy = staged()
    assert strategy.recommend(SPACE, QUALITY, history(*BOTH)) == Prediction(4, 0.5, 2.0)
    (seen,) = strategy.inner.seen  # type: ignore[attr-defined]
    assert seen.quality.tolist() == [0.5, 0.6]


def test_as_published_the_best_result_of_all_stages_is_recommended() -> None:
    chosen = staged(final="all").recommend(SPACE, QUALITY, history(*BOTH))
    assert chosen == Prediction(0, 0.9, 1.0)
    chosen = staged(final="all").recommend(SPACE, QUALITY, history(BOTH[6], *BOTH[:6]))
    assert chosen == Prediction(1, 0.9, 1.0)


# ---- what stages can be made of ----


def test_stages_and_a_training_size_in_the_space_exclude_each_other() -> None:
    space = tw.Space({"x": tw.Float(0, 1), "size": tw.TrainSize()})
    with pytest.raises(SpaceError, match=r"so does a TrainSize: use one of them.* 'size'"):
        tw.create_study(space, strategy=Staged())
    Staged().suits(SPACE)


class Needy(RandomSearch):
    def suits(self, space: Space) -> None:
        raise SpaceError("this strategy needs a TrainSize")


def test_the_inner_strategy_must_suit_the_space_too() -> None:
    with pytest.raises(SpaceError, match="needs a TrainSize"):
        tw.create_study(SPACE, strategy=Staged(Needy()))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"inner": Bayes}, TypeError, r"got the class: write Bayes\(\)"),
        ({"inner": "auto"}, TypeError, r"inner must be an object such as Bayes\(\)"),
        ({"inner": Staged()}, TypeError, "inner must be a strategy without stages"),
        ({"fractions": ()}, ValueError, r"grow within \(0, 1\], but got \(\)"),
        ({"fractions": 0.3}, ValueError, "fractions must be numbers that grow"),
        ({"fractions": "ab"}, ValueError, "fractions must be numbers that grow"),
        ({"fractions": (1.0, 0.3)}, ValueError, "grow"),
        ({"fractions": (0.3, 0.3)}, ValueError, "grow"),
        ({"fractions": (0.0, 1.0)}, ValueError, "grow"),
        ({"fractions": (0.3, 1.5)}, ValueError, "grow"),
        ({"fractions": (0.3, math.nan)}, ValueError, "grow"),
        ({"fractions": (math.nan,)}, ValueError, "grow"),
        ({"fractions": (0.3, True)}, ValueError, "grow"),
        ({"fractions": (0.3, "1")}, ValueError, "grow"),
        ({"trials": 0}, ValueError, "trials must be a whole number from 1"),
        ({"trials": 2.5}, ValueError, "trials must be a whole number from 1"),
        ({"trials": True}, ValueError, "trials must be a whole number from 1"),
        ({"trials": None}, ValueError, "trials must be a whole number from 1"),
        ({"trials": (10, 10, 10)}, ValueError, "one for each of 2 stages"),
        (
            {"trials": (10, 0)},
            ValueError,
            "each of trials must be a whole number from 1 .* but got 0",
        ),
        ({"trials": (10,)}, ValueError, "one for each of 2 stages"),
        ({"carried": 0}, ValueError, "carried must be a whole number from 1 .* but got 0"),
        ({"carried": 1.5}, ValueError, "carried must be"),
        ({"carried": 11}, ValueError, "`carried ≤ trials` must hold in every stage"),
        ({"carried": 3, "trials": (9, 2)}, ValueError, r"got carried=3, trials=\(9, 2\)"),
        ({"final": "best"}, ValueError, "final must be one of 'last', 'all', but got 'best'"),
    ],
    ids=str,
)
def test_what_makes_no_stages_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Staged(**options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Staged(fractions=[0.3, 1], trials=[10, 20], carried=2),  # type: ignore[arg-type]
        lambda: Staged(
            fractions=np.array([0.3, 1.0]),  # type: ignore[arg-type]
            trials=np.array([10, 20]),  # type: ignore[arg-type]
            carried=np.int64(2),  # type: ignore[arg-type]
        ),
    ],
    ids=["lists", "arrays"],
)
def test_lists_and_arrays_become_tuples_of_numbers(make: Callable[[], Staged]) -> None:
    made = make()
    assert made == Staged(fractions=(0.3, 1.0), trials=(10, 20), carried=2)
    assert {type(f) for f in made.fractions} == {float}
    assert hash(made.fractions) == hash((0.3, 1.0))
    assert isinstance(made.trials, tuple)
    assert [type(v) for v in (*made.trials, made.carried)] == [int] * 3


def test_one_stage_may_be_shorter_than_what_would_be_carried_over() -> None:
    assert Staged(fractions=(1.0,), trials=1).trials == 1


# ---- as published ----


def test_wang2015_is_two_stages_of_gaussian_processes_and_expected_improvement() -> None:
    made = recipes.wang2015()
    assert (made.fractions, made.trials, made.carried) == ((0.3, 1.0), 10, 3)
    assert made.final == "all"
    assert isinstance(made.inner, Bayes)
    assert made.inner == Bayes(
        design=Design(3), surrogate=GaussianProcess(), acquisition=EI(), output=Output.IDENTITY
    )


def test_wang2015_takes_its_settings() -> None:
    made = recipes.wang2015(fractions=(0.1, 0.5, 1.0), trials=(9, 8, 7), k=2)
    assert (made.fractions, made.trials, made.carried) == ((0.1, 0.5, 1.0), (9, 8, 7), 2)
    assert isinstance(made.inner, Bayes)
    assert made.inner.design == Design(2)


def test_wang2015_unpublished_is_auto_in_stages() -> None:
    assert recipes.wang2015(published=False) == Staged(recipes.auto())
