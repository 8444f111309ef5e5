"""Proposals while others run: each knows the others, and is another one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import MIXED, create, events_of
from tradewind import recipes
from tradewind.goals import Acquisition
from tradewind.log.events import Finished, Proposed
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import MGFI, MIES, Bayes, Design, Exponential, LogNormal
from tradewind.types import Array, Origin, Trial

ALIKE = 0.0099  # of the range of every parameter


def objective(run: Any) -> dict[str, float]:
    """Best at C = 1 and full momentum, better and dearer with more data and width."""
    p = run.params
    quality = 0.9 - 0.05 * np.log10(p["C"]) ** 2 - 0.3 * (1.0 - p["train_size"]) ** 2
    quality -= 0.1 * (1.0 - p["momentum"]) ** 2 + 0.02 * abs(p.get("degree", 3) - 3)
    return {"value": float(quality), "cost": p["train_size"] * p["width"] / 32}


def duration(trial: Trial) -> float:
    """Log-normal with mean 5 s, as the number says."""
    return float(np.random.default_rng(trial.number).lognormal(np.log(5.0) - 0.5, 1.0))


def asynchronous(n: int = 40, **options: Any) -> tw.Study:
    study = tw.create_study(MIXED, **{"seed": 0, **options})
    study.optimize(objective, n_trials=n, runner=SimulatedRunner(8, duration=duration))
    assert all(t.finished for t in study.trials)
    return study


def gap(a: Array, b: Array) -> float:
    """The largest difference of a coordinate; what is active in one only differs wholly."""
    apart = np.where(np.isnan(a) & np.isnan(b), 0.0, np.abs(a - b))
    return float(np.where(np.isnan(apart), 1.0, apart).max())


def pending_gaps(study: tw.Study) -> Iterator[float]:
    """The distance of each proposal to all that were pending when it was made."""
    rows: dict[int, Array] = {}
    for event in events_of(study):
        if isinstance(event, Proposed):
            row = study.space.encode([event.params])[0]
            yield from (gap(row, other) for other in rows.values())
            rows[event.number] = row
        elif isinstance(event, Finished):
            del rows[event.number]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "goal", [tw.Quality(), tw.Tradeoff(alpha=0.3)], ids=["quality", "tradeoff"]
)
def test_no_two_pending_proposals_are_nearly_the_same(seed: int, goal: Any) -> None:
    gaps = list(pending_gaps(asynchronous(seed=seed, goal=goal)))
    assert len(gaps) > 200
    assert min(gaps) > ALIKE


def test_a_batch_of_proposals_from_one_log_is_spread_out() -> None:
    study = asynchronous(12)
    rows = study.space.encode([study.ask().params for _ in range(8)])
    assert min(gap(a, b) for a, b in itertools.combinations(rows, 2)) > ALIKE


def test_a_pending_trial_does_not_change_what_is_best_so_far() -> None:
    study = asynchronous(12)
    best = study.best
    study.ask()
    assert study.best == best


# ---- another balance for each ----


@pytest.mark.parametrize("t", [1.0, Exponential()], ids=["constant", "cooling"])
def test_with_a_spread_each_proposal_strikes_another_balance_while_others_run(t: Any) -> None:
    drawn = MGFI(t, spread=1.0)
    fixed = [drawn.at(7, pending=2, rng=np.random.default_rng(seed)).t for seed in range(20)]
    assert len(set(fixed)) == 20
    alone = drawn.at(7, rng=np.random.default_rng(0)).t
    ratios = np.array(fixed, dtype=float) / alone  # type: ignore[operator]
    assert ratios.min() < 1.0 < ratios.max()


def test_a_log_normal_balance_is_drawn_once() -> None:
    drawn = MGFI(LogNormal(), spread=1.0).at(7, pending=3, rng=np.random.default_rng(5))
    assert drawn == MGFI(LogNormal().at(7, rng=np.random.default_rng(5)))


@pytest.mark.parametrize("pending", [0, 3])
@pytest.mark.parametrize("t", [1.0, Exponential(), LogNormal()], ids=repr)
def test_without_a_spread_t_is_that_of_its_schedule_whatever_runs(t: Any, pending: int) -> None:
    fixed = MGFI(t).at(7, pending=pending, rng=np.random.default_rng(5))
    assert fixed == MGFI(t).at(7, rng=np.random.default_rng(5))


class Noted(MGFI):
    """Remembers what it was fixed to."""

    seen: list[float] = []  # noqa: RUF012

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> Acquisition:
        fixed = super().at(number, pending=pending, rng=rng)
        self.seen.append(float(fixed.t))  # type: ignore[attr-defined, arg-type]
        return fixed


def test_parallel_proposals_of_a_study_draw_different_balances() -> None:
    strategy = Bayes(design=Design(4), acquisition=Noted(1.0, spread=0.5))
    study = create(strategy=strategy)
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, value=float(trial.params["x"]))
    Noted.seen.clear()
    for _ in range(6):
        study.ask()
    assert Noted.seen[0] == 1.0  # nobody else runs
    assert len(set(Noted.seen)) == 6


def test_mip_ego_proposes_different_points_to_workers_of_the_same_moment() -> None:
    strategy = recipes.mip_ego(trees=10, maximizer=MIES(generations=20))
    study = asynchronous(10, strategy=strategy)
    rows = study.space.encode([study.ask().params for _ in range(6)])
    assert min(gap(a, b) for a, b in itertools.combinations(rows, 2)) > 0.0


# ---- the reference of a trade-off ----


def test_the_reference_is_that_of_the_design_though_only_cheap_trials_finished_first() -> None:
    study = create(strategy=Bayes(design=Design(4)), goal=tw.Tradeoff(alpha=0.3))
    design = [study.ask() for _ in range(4)]
    study.tell(design[0], value=0.5, cost=1.0)  # the cheap ones come first
    study.tell(design[1], value=0.6, cost=2.0)
    model = study.ask()
    assert model.origin is Origin.MODEL
    assert study.goal == tw.Tradeoff(alpha=0.3, reference=2.0, provisional=True)
    study.tell(design[2], value=0.7, cost=50.0)
    study.tell(design[3], value=0.8, cost=80.0)
    assert study.goal == tw.Tradeoff(alpha=0.3, reference=80.0)
    study.tell(model, value=0.9, cost=1000.0)
    study.tell(study.ask(), value=0.9, cost=2000.0)
    assert study.goal == tw.Tradeoff(alpha=0.3, reference=80.0)  # and there it stays
    assert tw.replay(study).identical


@pytest.mark.slow
def test_the_reference_of_a_parallel_search_is_the_largest_cost_of_its_design() -> None:
    def dear_is_slow(run: Any) -> dict[str, float]:
        p = run.params
        return {"value": p["momentum"], "cost": 10.0 ** (2.0 * p["train_size"])}

    study = tw.create_study(MIXED, goal=tw.Tradeoff(alpha=0.3), seed=0)
    study.optimize(dear_is_slow, n_trials=30, runner=SimulatedRunner(8))
    design = [t for t in study.trials if t.origin is Origin.DESIGN]
    assert len(design) < 30
    # what was started before the first model proposed, however late it finished
    first = min(t.number for t in study.trials if t.origin is Origin.MODEL)
    assert study.goal.reference == max(  # type: ignore[attr-defined]
        t.cost for t in study.trials if t.number < first and t.cost is not None
    )
    assert tw.replay(study).identical
