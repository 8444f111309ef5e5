"""What a cost model says, in the user's own unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradewind as tw
from tradewind import recipes
from tradewind.optimizer.strategies.costs import CostScale, fit_price, relative_load
from tradewind.optimizer.surrogates.gp import GaussianProcess, cost_process
from tradewind.strategies import Bayes, Design
from tradewind.types import Origin

LINE = tw.Space({"x": tw.Float(0, 1)})
GOALS = [tw.Quality(), tw.Tradeoff(alpha=0.3, reference=7.0)]
STRATEGIES: dict[str, Any] = {
    "bayes": Bayes(design=Design(4)),
    "auto": recipes.auto(),
    "wang2020": recipes.wang2020(),
    "mip_ego": recipes.mip_ego(loss="identity", trees=20),
}

costs = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8)


@pytest.mark.parametrize("goal", GOALS, ids=["quality", "tradeoff"])
@pytest.mark.parametrize("log", [True, False], ids=["log", "linear"])
@given(cost=costs, other=st.floats(1e-6, 1e6))
def test_a_cost_comes_back_from_the_scale_of_its_model(
    goal: Any, log: bool, cost: list[float], other: float
) -> None:
    scale = CostScale.of(goal, np.array(cost), log=log)
    assert scale.inverse(scale.forward(other)) == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize("goal", GOALS, ids=["quality", "tradeoff"])
@pytest.mark.parametrize("log", [True, False], ids=["log", "linear"])
@given(cost=st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=8))
def test_the_scale_of_a_model_is_that_of_the_goal(goal: Any, log: bool, cost: list[float]) -> None:
    scaled = goal.cost_scale(np.array(cost), log=log)
    scale = CostScale.of(goal, np.array(cost), log=log)
    for c, s in zip(cost, scaled, strict=True):
        if log or goal.reference is None or c <= goal.reference:  # σ is cut above
            assert scale.forward(c) == pytest.approx(s, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("log", [True, False], ids=["log", "linear"])
def test_costs_of_nothing_and_of_no_end_have_a_scale_too(log: bool) -> None:
    for cost in ([0.0], [0.0, 1.0], [1e300, 1e-300]):
        scale = CostScale.of(tw.Quality(), np.array(cost), log=log)
        for scaled in (-1e6, 0.0, 1.0, 1e6):
            assert scale.inverse(scaled) >= 0.0 or log
            assert not np.isnan(scale.inverse(scaled))


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize(
    "goal", [tw.Quality(), tw.Tradeoff(alpha=0.1)], ids=["quality", "tradeoff"]
)
@pytest.mark.parametrize("unit", [1.0, 3600.0, 1e-4])
def test_what_a_trial_is_expected_to_cost_is_near_what_it_costs(
    name: str, goal: Any, unit: float
) -> None:
    study = tw.create_study(LINE, strategy=STRATEGIES[name], goal=goal, seed=0)
    for i in range(21):
        study.add({"x": i / 20}, value=float(np.sin(7 * i)), cost=unit * (1.0 + 3.0 * i / 20))
    trial = study.ask(max_cost=2.5 * unit)
    assert trial.origin is Origin.MODEL
    actual = unit * (1.0 + 3.0 * trial.params["x"])
    assert trial.expected_cost == pytest.approx(actual, rel=0.35)
    assert actual <= 3.0 * unit


def test_without_any_known_cost_a_limit_is_no_hindrance() -> None:
    study = tw.create_study(LINE, strategy=Bayes(design=Design(4)), seed=0)
    for i in range(6):
        study.add({"x": i / 5}, value=float(i))
    trial = study.ask(max_cost=1.0)
    assert (trial.origin, trial.expected_cost) == (Origin.MODEL, None)


def test_a_limit_that_nothing_stays_within_still_gives_a_trial() -> None:
    study = tw.create_study(LINE, strategy=Bayes(design=Design(4)), seed=0)
    for i in range(6):
        study.add({"x": i / 5}, value=float(i), cost=10.0 + i)
    trial = study.ask(max_cost=1e-9)
    assert trial.expected_cost == pytest.approx(10.0, rel=0.3)  # the cheapest there is
    assert study.ask(max_cost=0.0).number == 7


def test_the_recorded_load_explains_what_trials_beside_others_took_longer() -> None:
    """Trials in the upper half ran three at a time and took twice as long for that alone."""
    rng = np.random.default_rng(0)
    study = tw.create_study(LINE, seed=0)
    x = rng.random(24)
    load = np.where(rng.random(24) < 0.5, 1.0, 3.0)
    for at, busy in zip(x.tolist(), load.tolist(), strict=True):
        study.add({"x": at}, value=0.0, cost=float(np.exp(at)) * (2.0 if busy > 1.0 else 1.0))
    history = replace(study._session.snapshot()[1], load=load)
    goal = tw.Quality()

    def spread(surrogate: GaussianProcess) -> float:
        price = fit_price(
            surrogate, goal, history, log=True, columns=LINE.columns, rng=np.random.default_rng(0)
        )
        off = [price.median(np.array([u])) / np.exp(u) for u in np.linspace(0, 1, 20)]
        return float(np.std(np.log(off)))

    assert spread(cost_process()) < 0.03
    assert spread(replace(cost_process(), power_std=None)) > 0.06  # as studies stored before


def test_the_load_counts_relative_to_the_usual_one() -> None:
    np.testing.assert_allclose(relative_load(np.array([4.0, 2.0, 1.0])), np.log([2.0, 1.0, 0.5]))
    assert not relative_load(np.full(3, 8.0)).any()
    assert not relative_load(np.array([0.2, 1.0, 1.0])).any()  # no trial is less than one
