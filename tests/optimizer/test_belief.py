"""What finished trials say about quality and cost."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tradewind as tw
from tests.studies import MIXED
from tradewind.optimizer.belief import Belief, comparable, usual_costs
from tradewind.optimizer.history import History
from tradewind.types import Array, Origin, State, Trial, Usage

PLAIN = tw.Space({f"x{i}": tw.Float(0, 1) for i in range(3)})


def smooth(X: Array) -> Array:
    return np.asarray(np.sin(4.0 * X[:, 0]) + X[:, 1] * X[:, 2])


def mixed(X: Array) -> Array:
    degree = np.nan_to_num(X[:, 2], nan=0.0)
    return np.asarray(X[:, 0] - 2.0 * (X[:, 4] - 0.4) ** 2 + 0.5 * degree + 0.3 * np.sqrt(X[:, 5]))


def step(X: Array) -> Array:
    return np.asarray(np.abs(X[:, 0] - 0.4) + 0.5 * (X[:, 1] > 0.6))


FUNCTIONS = {"smooth": (PLAIN, smooth), "mixed": (MIXED, mixed), "step": (PLAIN, step)}


def history_of(
    space: tw.Space, X: Array, quality: Array, cost: Array | None = None, **options: object
) -> History:
    study = tw.create_study(space, strategy="random", seed=0)
    costs = [None] * len(X) if cost is None else cost.tolist()
    for params, value, price in zip(space.decode(X), quality.tolist(), costs, strict=True):
        study.add(params, value, cost=price, **options)  # type: ignore[arg-type]
    return study._session.snapshot()[1]


def belief_of(space: tw.Space, history: History, settings: int = 16) -> Belief:
    return Belief.of(space, history, rng=np.random.default_rng(0), settings=settings)


def coverage(noise: float, n: int) -> tuple[float, float]:
    """The share of new runs that lie in their 90 % interval, for quality and for cost. The noise is
    relative to the spread of the function."""
    inside: list[list[float]] = [[], []]
    for k, (space, f) in enumerate(FUNCTIONS.values()):
        for seed in range(3):
            rng = np.random.default_rng([seed, k, n])
            X = space.sample(n + 200, rng=rng)
            y = f(X) / f(X).std()
            quality = y + noise * rng.standard_normal(len(y))
            cost = np.exp(1.5 * (y + noise * rng.standard_normal(len(y))))
            belief = belief_of(space, history_of(space, X[:n], quality[:n], cost[:n]))
            levels = np.array([0.05, 0.95])
            for i, (bounds, true) in enumerate(
                [
                    (belief.quality_quantiles(X[n:], levels), quality[n:]),
                    (belief.cost_quantiles(X[n:], levels), cost[n:]),
                ]
            ):
                assert bounds is not None
                inside[i].append(float(((bounds[:, 0] <= true) & (true <= bounds[:, 1])).mean()))
    return float(np.mean(inside[0])), float(np.mean(inside[1]))


@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0])
def test_a_90_percent_interval_holds_85_to_95_percent_of_new_runs(noise: float, n: int) -> None:
    quality, cost = coverage(noise, n)
    assert 0.85 <= quality <= 0.955
    assert 0.85 <= cost <= 0.955


def test_the_noise_of_one_run_is_learned() -> None:
    rng = np.random.default_rng(0)
    X = PLAIN.sample(80, rng=rng)
    quality = smooth(X) + 0.2 * rng.standard_normal(80)
    cost = np.exp(X[:, 0] + 0.1 * rng.standard_normal(80))
    belief = belief_of(PLAIN, history_of(PLAIN, X, quality, cost))
    assert belief.quality_noise == pytest.approx(0.2, rel=0.25)
    assert belief.cost_noise == pytest.approx(0.1, rel=0.25)


def test_known_noise_is_part_of_the_noise_of_one_run() -> None:
    X = PLAIN.sample(30, rng=np.random.default_rng(0))
    history = history_of(PLAIN, X, smooth(X))
    noisy = replace(history, noise=np.full(30, 0.04))
    assert belief_of(PLAIN, history).quality_noise < 0.1
    assert belief_of(PLAIN, noisy).quality_noise == pytest.approx(0.2, rel=0.1)


def test_the_same_history_gives_the_same_belief() -> None:
    X = MIXED.sample(20, rng=np.random.default_rng(0))
    history = history_of(MIXED, X, mixed(X), np.exp(mixed(X)))
    first, second = (belief_of(MIXED, history).quality(X) for _ in range(2))
    assert (first.mean == second.mean).all()
    assert (first.std == second.std).all()


def test_without_costs_nothing_is_believed_of_them() -> None:
    X = PLAIN.sample(6, rng=np.random.default_rng(0))
    belief = belief_of(PLAIN, history_of(PLAIN, X, smooth(X)))
    assert belief.log_cost(X) is None
    assert belief.cost_quantiles(X, np.array([0.5])) is None


# ---- collapsed models ----


def collapsing(X: Array, rng: np.random.Generator) -> Array:
    """Good and bad models, and where x0 > 0.8 collapsed ones far below them."""
    collapsed = -50.0 - 20.0 * rng.random(len(X))
    return np.where(X[:, 0] > 0.8, collapsed, smooth(X))


def test_a_few_collapsed_models_do_not_flatten_the_good_end() -> None:
    rng = np.random.default_rng(0)
    X, Q = PLAIN.sample(60, rng=rng), PLAIN.sample(200, rng=rng)
    Q = Q[Q[:, 0] < 0.6]
    belief = belief_of(PLAIN, history_of(PLAIN, X, collapsing(X, rng)))
    assert np.abs(belief.quality(Q).mean - smooth(Q)).mean() < 0.25
    assert (belief.quality(X).mean > -10.0).all()


def test_predictions_of_collapsed_models_are_not_cut_off() -> None:
    rng = np.random.default_rng(0)
    X, Q = PLAIN.sample(60, rng=rng), PLAIN.sample(400, rng=rng)
    Q = Q[Q[:, 0] > 0.9]
    belief = belief_of(PLAIN, history_of(PLAIN, X, collapsing(X, rng)))
    bounds = belief.quality_quantiles(Q, np.array([0.05, 0.5, 0.95]))
    true = collapsing(Q, rng)
    assert ((bounds[:, 0] <= true) & (true <= bounds[:, 2])).mean() > 0.8
    assert (np.diff(bounds, axis=1) >= 0.0).all()


def test_what_matters_to_the_goal_is_never_cut_off() -> None:
    rng = np.random.default_rng(0)
    X = PLAIN.sample(40, rng=rng)
    history = history_of(PLAIN, X, collapsing(X, rng))
    belief = Belief.of(PLAIN, history, rng=rng, matters_above=-100.0)
    assert belief.floor == -100.0
    assert not len(belief.collapsed)


def test_what_is_usual_is_told_by_the_initial_design() -> None:
    """A search that has found the good region must not cut off everything else."""
    study = tw.create_study(PLAIN, seed=0)
    study.optimize(lambda trial: smooth_of(trial.params), n_trials=25, show_progress=False)
    assert len(belief_of(PLAIN, study._session.snapshot()[1], 1).collapsed) == 0


def smooth_of(params: object) -> float:
    return float(smooth(PLAIN.encode([params]))[0])  # type: ignore[list-item]


# ---- training sizes ----


def test_without_a_size_parameter_only_the_largest_size_counts() -> None:
    rng = np.random.default_rng(0)
    X = PLAIN.sample(24, rng=rng)
    study = tw.create_study(PLAIN, strategy="random", seed=0)
    for i, params in enumerate(PLAIN.decode(X)):
        small = i % 2 == 0
        value = float(smooth(X[i : i + 1])[0]) - 5.0 * small
        study.add(params, value, train_size=0.3 if small else 1.0)
    history = study._session.snapshot()[1]
    belief = belief_of(PLAIN, history)
    assert belief.trials == 12
    assert (belief.quality(X).mean > -3.0).all()
    assert (comparable(PLAIN, history, 0.3).sizes.finished == 0.3).all()


def test_with_a_size_parameter_the_models_span_the_sizes() -> None:
    rng = np.random.default_rng(0)
    X = MIXED.sample(40, rng=rng)
    belief = belief_of(MIXED, history_of(MIXED, X, mixed(X), 10.0 * np.exp(X[:, 5])))
    small, large = X.copy(), X.copy()
    small[:, 5], large[:, 5] = 0.1, 0.9
    assert belief.trials == 40
    assert (belief.quality(large).mean - belief.quality(small).mean).mean() > 0.1


# ---- how much costs vary ----


def spread_found(
    n: int, noise: float, *, measured: bool = False, repeated: int = 0, k: int = 1
) -> float:
    """How much n costs with this noise seem to vary. The first few rows are `repeated` ones."""
    rng = np.random.default_rng(n)
    X = PLAIN.sample(n, rng=rng)
    X[1 : 1 + repeated] = X[0]
    cost = np.exp(smooth(X) + noise * rng.standard_normal(n))
    clock = Usage(1.0, clock="wall" if measured else "reported")
    trial = Trial(0, {}, State.FINISHED, Origin.DESIGN, 0, value=0.0, usage=clock, trainings=k)
    return usual_costs(PLAIN, history_of(PLAIN, X, np.zeros(n), cost), [trial])[0]


@pytest.mark.parametrize(("measured", "repeated"), [(True, 0), (True, 3), (False, 3)])
@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_costs_tell_how_much_they_vary(noise: float, measured: bool, repeated: int) -> None:
    found = spread_found(40, noise, measured=measured, repeated=repeated)
    assert 0.6 * noise < found < 1.6 * noise


@pytest.mark.parametrize(("n", "noise", "repeated"), [(40, 0.0, 0), (40, 0.0, 3), (4, 0.2, 0)])
def test_given_costs_are_exact_unless_noise_is_seen(n: int, noise: float, repeated: int) -> None:
    assert spread_found(n, noise, repeated=repeated) == 0.0


def test_given_costs_that_do_not_follow_the_parameters_are_taken_for_noisy() -> None:
    assert 0.1 < spread_found(60, 0.2) < 0.3


def test_a_few_costs_vary_if_a_clock_measured_them_or_a_repeat_shows_it() -> None:
    assert spread_found(4, 0.1, measured=True) > 0.0
    assert spread_found(4, 0.1, repeated=3) > 0.0
    assert spread_found(1, 0.1, measured=True) == 0.0


def test_one_training_varies_more_than_the_mean_of_several_folds() -> None:
    one, five = (spread_found(40, 0.1, measured=True, k=k) for k in (1, 5))
    assert 1.7 * one < five < math.sqrt(5.0) * one  # how uncertain the model is remains the same
