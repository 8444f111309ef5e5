"""One model across training sizes: what is run, what is recommended, and when small runs pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tradewind.errors import SpaceError
from tradewind.optimizer.surrogates.full_size import AtFullSize, SizeColumn
from tradewind.optimizer.surrogates.gp import GaussianProcess
from tradewind.strategies import Bayes, MultiFidelity, Output, RandomForest
from tradewind.types import Array, Origin, State, Trial

SIZES = (1 / 27, 1 / 9, 1 / 3, 1.0)
SPACE = tw.Space(
    {
        "x": tw.Float(0.0, 1.0),
        "y": tw.Float(0.0, 1.0),
        "kind": tw.Categorical(["a", "b"]),
        "size": tw.TrainSize(SIZES),
    }
)
Objective = Callable[[Trial], tuple[float, float]]


def level(params: object) -> float:
    p = dict(params)  # type: ignore[call-overload]
    return 0.9 - (p["x"] - 0.7) ** 2 - 0.5 * (p["y"] - 0.2) ** 2 - 0.05 * (p["kind"] == "b")


def proportional(trial: Trial) -> tuple[float, float]:
    """Training time is proportional to the data, and a small run ranks as a full one does."""
    s = trial.train_size
    shortfall = (0.02 + 0.01 * trial.params["y"]) * (s**-0.5 - 1.0)  # type: ignore[operator]
    return level(trial.params) - shortfall, 10.0 * s


def flat(trial: Trial) -> tuple[float, float]:
    """Small runs cost as much as full ones."""
    return proportional(trial)[0], 10.0


def deceptive(trial: Trial) -> tuple[float, float]:
    """Small runs cost half, and say nothing about full ones."""
    p = trial.params
    if trial.train_size == 1.0:
        return level(p), 10.0
    return 0.5 + 0.3 * np.sin(9.0 * p["x"] + 5.0 * p["y"]), 5.0  # type: ignore[operator]


def search(
    objective: Objective, *, budget: float, seed: int = 0, goal: object = None, sign: float = 1.0
) -> tw.Study:
    study = tw.create_study(
        SPACE,
        strategy=MultiFidelity(),
        seed=seed,
        goal=goal or tw.Quality(),
        direction="maximize" if sign > 0 else "minimize",
    )
    spent = 0.0
    while spent < budget:
        trial = study.ask(max_cost=budget - spent)
        value, cost = objective(trial)
        study.tell(trial, sign * value, cost=cost)
        spent += cost
    return study


def trial_of(params: dict[str, Any]) -> Trial:
    return Trial(0, params, State.RUNNING, Origin.ADDED, 0, params["size"])


def share_of_full(study: tw.Study) -> float:
    """How much of the cost went into full-size trials, the design left out."""
    chosen = study.trials[5:]
    full = sum(t.cost or 0.0 for t in chosen if t.train_size == 1.0)
    return full / sum(t.cost or 0.0 for t in chosen)


# ---- what is run ----


def test_the_design_goes_from_the_smallest_size_to_the_others() -> None:
    study = search(flat, budget=50.0)
    assert [t.train_size for t in study.trials[:5]] == [1 / 27, 1.0, 1 / 9, 1 / 3, 1 / 27]


def test_the_last_of_the_design_is_its_full_run_at_the_smallest_size() -> None:
    study = search(flat, budget=50.0)
    _, full, _, _, small = (dict(t.params) for t in study.trials[:5])
    assert small.pop("size") < full.pop("size")
    assert small == full
    assert study.trials[4].origin is Origin.DESIGN


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_where_training_time_is_proportional_to_size_small_runs_do_the_search(seed: int) -> None:
    study = search(proportional, budget=60.0, seed=seed)
    small = [t for t in study.trials if t.train_size < 1.0]
    assert len(small) > 2 * len(study.trials) / 3
    assert 0.9 - level(study.recommend().params) < 0.01


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("objective", [flat, deceptive])
def test_where_small_runs_do_not_pay_full_ones_are_made(objective: Objective, seed: int) -> None:
    study = search(objective, budget=200.0, seed=seed)
    assert share_of_full(study) > 0.6
    assert 0.9 - level(study.recommend().params) < 0.02


def test_small_runs_find_more_for_the_same_cost() -> None:
    """Against the same strategy with full runs only, in the mean of five seeds."""
    regrets = []
    for seed in range(5):
        full = tw.Space({**SPACE, "size": tw.TrainSize([1.0])})
        study = tw.create_study(full, strategy=Bayes(), seed=seed)
        for _ in range(6):
            trial = study.ask()
            study.tell(trial, proportional(trial)[0], cost=10.0)
        ours = search(proportional, budget=60.0, seed=seed)
        best = level(ours.recommend().params)
        regrets.append((0.9 - best, 0.9 - level(study.best.params)))
    with_small, without = np.mean(regrets, axis=0)
    assert with_small < 0.3 * without


def test_what_would_not_finish_in_time_is_not_proposed() -> None:
    study = search(proportional, budget=60.0)
    trial = study.ask(max_cost=2.0)
    assert trial.train_size < 1.0
    assert trial.expected_cost is not None
    assert trial.expected_cost <= 2.0


def test_parallel_proposals_differ() -> None:
    study = search(proportional, budget=40.0)
    rows = {tuple(study.ask().params.values()) for _ in range(6)}
    assert len(rows) == 6


def test_without_costs_it_runs_at_full_size() -> None:
    study = tw.create_study(SPACE, strategy=MultiFidelity(), seed=0)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, proportional(trial)[0])
    assert {t.train_size for t in study.trials[5:]} == {1.0}


def test_failures_and_folds_are_taken_in() -> None:
    study = tw.create_study(SPACE, strategy=MultiFidelity(), seed=0)
    rng = np.random.default_rng(0)
    for i in range(12):
        trial = study.ask()
        if i % 4 == 3:
            study.fail(trial, "out of memory")
            continue
        value, cost = proportional(trial)
        study.tell(trial, folds=value + 0.01 * rng.standard_normal(5), cost=cost)
    assert study.recommend().train_size == 1.0


# ---- what is recommended ----


def test_the_recommendation_is_for_full_size_also_where_that_was_not_run() -> None:
    study = tw.create_study(SPACE, strategy=MultiFidelity(), seed=0)
    rng = np.random.default_rng(1)
    for size, n in ((1 / 27, 20), (1.0, 4)):
        for _ in range(n):
            params = {"x": rng.random(), "y": rng.random(), "kind": "a", "size": size}
            value, cost = proportional(trial_of(params))
            study.add(params, value, cost=cost)
    best = {"x": 0.7, "y": 0.2, "kind": "a", "size": 1 / 27}
    value, cost = proportional(trial_of(best))
    study.add(best, value, cost=cost)
    chosen = study.recommend()
    assert chosen.params == {**best, "size": 1.0}
    assert chosen.train_size == 1.0
    assert chosen.trial is None  # nobody has run it
    assert chosen.value == pytest.approx(0.9, abs=0.03)
    assert chosen.cost == pytest.approx(10.0, rel=0.3)
    assert study.best.train_size == 1.0  # what has been run


def test_the_recommended_trial_is_given_where_there_is_one() -> None:
    study = search(flat, budget=300.0)
    chosen = study.recommend()
    assert chosen.trial is not None
    assert chosen.trial.train_size == 1.0
    assert chosen.trial.params == chosen.params


def test_before_a_full_run_the_largest_size_that_was_run_has_the_best() -> None:
    study = tw.create_study(SPACE, strategy=MultiFidelity(), seed=0)
    study.add({"x": 0.1, "y": 0.1, "kind": "a", "size": 1 / 27}, 0.9, cost=1.0)
    study.add({"x": 0.2, "y": 0.1, "kind": "a", "size": 1 / 3}, 0.7, cost=2.0)
    assert study.best.train_size == 1 / 3
    assert study.recommend().train_size == 1.0


def test_losses_are_minimized() -> None:
    study = search(proportional, budget=60.0, sign=-1.0)
    assert 0.9 - level(study.recommend().params) < 0.02
    assert study.recommend().value == pytest.approx(-0.9, abs=0.05)


def test_a_trade_off_is_one_of_full_sizes() -> None:
    """Cost grows with x at every size: the trade-off at full size prefers a smaller x."""

    def objective(trial: Trial) -> tuple[float, float]:
        value, _ = proportional(trial)
        return value, 10.0 * trial.train_size * (0.2 + trial.params["x"])  # type: ignore[operator]

    goal = tw.Tradeoff(alpha=0.5, reference=12.0)
    study = search(objective, budget=100.0, goal=goal)
    chosen = study.recommend()
    x = np.linspace(0.0, 1.0, 1001)
    best = x[np.argmax(0.9 - (x - 0.7) ** 2 - 0.5 * 10.0 * (0.2 + x) / 12.0)]
    assert chosen.train_size == 1.0
    assert chosen.params["x"] == pytest.approx(best, abs=0.12)


# ---- one proposal, one log ----


def test_a_resumed_search_goes_on_as_it_would_have(tmp_path: object) -> None:
    def run(n: int, **where: object) -> tw.Study:
        study = tw.create_study(
            SPACE,
            strategy=MultiFidelity(),
            seed=3,
            load_if_exists=True,
            **where,  # type: ignore[arg-type]
        )
        for _ in range(n):
            trial = study.ask()
            value, cost = proportional(trial)
            study.tell(trial, value, cost=cost)
        return study

    whole = run(12)
    storage = {"storage": f"{tmp_path}/s.db", "name": "s"}
    run(7, **storage)
    again = run(5, **storage)
    assert [t.params for t in again.trials] == [t.params for t in whole.trials]
    assert tw.replay(again).identical


# ---- what it is made of ----


def test_at_full_size_a_model_sees_its_own_uncertainty() -> None:
    rng = np.random.default_rng(0)
    X = SPACE.sample(20, rng=rng)
    gp = GaussianProcess().fit(X, rng.random(20), columns=SPACE.columns, rng=rng)
    sizes = SizeColumn.of(SPACE.columns)
    at = SPACE.sample(30, rng=rng)
    seen = AtFullSize(gp, sizes)

    def std(cell: int) -> Array:
        return seen.predict(sizes.at(at, cell)).std

    full = gp.predict(sizes.largest(at))
    np.testing.assert_allclose(seen.predict(at).mean, full.mean)
    assert (std(3) <= full.std * (1 + 1e-9)).all()
    assert (std(0) < std(3)).all()


def test_a_space_without_sizes_is_refused() -> None:
    for space in (tw.Space({"x": tw.Float(0, 1)}), tw.Space({"s": tw.TrainSize([1.0])})):
        with pytest.raises(SpaceError, match="TrainSize with several sizes"):
            tw.create_study(space, strategy=MultiFidelity())


def test_other_models_are_refused() -> None:
    with pytest.raises(TypeError, match="Gaussian process"):
        MultiFidelity(surrogate=RandomForest())
    with pytest.raises(TypeError, match="natural units"):
        MultiFidelity(output=Output.LOG_ERROR)


# ---- what goes wrong ----


def test_full_runs_that_fail_are_not_made_for_ever() -> None:
    study = tw.create_study(SPACE, strategy=MultiFidelity(), seed=0)
    for _ in range(30):
        trial = study.ask()
        value, cost = proportional(trial)
        if trial.train_size == 1.0:
            study.fail(trial, "out of memory")
        else:
            study.tell(trial, value, cost=cost)
    later = study.trials[10:]
    assert sum(t.train_size == 1.0 for t in later) < len(later) / 2


def test_sizes_that_change_what_a_configuration_is_are_refused() -> None:
    kind, size = tw.Categorical(["a", "b"]), tw.TrainSize([0.1, 1.0])
    forbidden = tw.Space({"kind": kind, "s": size}, forbid=[{"kind": "b", "s": 1.0}])
    conditional = tw.Space({"x": tw.Float(0, 1, when={"s": tw.at_least(0.5)}), "s": size})
    for space in (forbidden, conditional):
        with pytest.raises(
            SpaceError, match=r"must not depend on the size, but one of them names 's'"
        ):
            tw.create_study(space, strategy=MultiFidelity())


def test_one_size_is_enough_to_expect_another_cost_at_the_others() -> None:
    study = tw.create_study(SPACE, strategy=MultiFidelity(), seed=0)
    for i in range(8):
        study.add({"x": i / 8, "y": 0.5, "kind": "a", "size": 1 / 27}, 0.5 + 0.01 * i, cost=1.0)
    trial = study.ask(max_cost=5.0)
    assert trial.train_size < 0.2  # all of the data would cost 27


def test_a_small_finite_space_is_searched_through_at_full_size() -> None:
    space = tw.Space({"x": tw.Ordinal([1, 2, 3, 4]), "size": tw.TrainSize([0.5, 1.0])})
    study = tw.create_study(space, strategy=MultiFidelity(), seed=0)
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, float(trial.params["x"]), cost=1.0)  # type: ignore[arg-type]
    assert len({tuple(t.params.values()) for t in study.trials}) == 8


def test_a_reference_is_provisional_while_a_trial_of_the_design_runs() -> None:
    study = tw.create_study(SPACE, strategy=MultiFidelity(), goal=tw.Tradeoff(alpha=0.1), seed=0)
    waiting = study.ask()
    while (trial := study.ask()).origin is Origin.DESIGN:
        value, cost = proportional(trial)
        study.tell(trial, value, cost=cost)
    assert study.goal == tw.Tradeoff(0.1, 10.0, provisional=True)
    study.tell(waiting, 0.5, cost=1.0)
    assert study.goal == tw.Tradeoff(0.1, 10.0)


def test_it_is_not_a_bayes_but_has_the_same_parts() -> None:
    assert not isinstance(MultiFidelity(), Bayes)
    assert [f.name for f in fields(MultiFidelity)] == [f.name for f in fields(Bayes)]


def test_a_reference_comes_from_full_runs_of_the_design() -> None:
    def objective(trial: Trial) -> tuple[float, float]:
        return proportional(trial)

    study = search(objective, budget=60.0, goal=tw.Tradeoff(alpha=0.1))
    assert study.goal.reference == pytest.approx(10.0)  # type: ignore[attr-defined]
