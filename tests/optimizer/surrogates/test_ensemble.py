"""Ensembles of Gaussian processes, and functions drawn from them."""

from __future__ import annotations

import numpy as np
import pytest

import tradewind as tw
from tradewind.optimizer.surrogates.draws import FunctionDraws
from tradewind.optimizer.surrogates.ensemble import Ensemble, EnsemblePredictor, most_probable
from tradewind.optimizer.surrogates.gp import GaussianProcess, cost_process
from tradewind.types import Array

LINE = tw.Space({"x": tw.Float(0, 1)})
SIZED = tw.Space(
    {
        "x": tw.Float(0, 1),
        "C": tw.Float(1e-3, 1, log=True),
        "kind": tw.Categorical(["a", "b"]),
        "depth": tw.Int(1, 8, when={"kind": "b"}),
        "size": tw.TrainSize([0.1, 0.3, 1.0]),
    }
)
NOISY = GaussianProcess(noise_mean=-4.0, noise_std=3.0)


def rows(space: tw.Space, n: int, seed: int = 0) -> Array:
    return space.sample(n, rng=np.random.default_rng(seed))


def response(X: Array) -> Array:
    depth = np.nan_to_num(X[:, 3], nan=0.2)
    return np.asarray(np.sin(3 * X[:, 0]) + X[:, 1] + depth + 0.3 * np.sqrt(X[:, 4]))


def fitted(space: tw.Space, X: Array, y: Array, **options: object) -> EnsemblePredictor:
    rng = np.random.default_rng(1)
    return Ensemble(**options).fit(X, y, columns=space.columns, rng=rng)  # type: ignore[arg-type]


def test_one_setting_is_the_most_probable_one() -> None:
    X = rows(SIZED, 30)
    y = response(X)
    alone = fitted(SIZED, X, y, process=NOISY, count=1)
    problem = NOISY.prepare(X, y, columns=SIZED.columns)
    best = problem.at(problem.posterior.maximize(most_probable(problem.posterior)).theta)
    Q = rows(SIZED, 9, seed=1)
    assert alone.predict(Q).mean == pytest.approx(best.predict(Q).mean, abs=1e-6)


def test_several_settings_are_less_sure_than_one() -> None:
    X, Q = rows(SIZED, 12), rows(SIZED, 200, seed=1)
    y = response(X)
    one, many = (fitted(SIZED, X, y, process=NOISY, count=count) for count in (1, 16))
    assert many.predict(Q).std.mean() > 1.1 * one.predict(Q).std.mean()


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_values_of_any_magnitude_are_predicted(scale: float) -> None:
    X = rows(SIZED, 20)
    y = response(X)
    plain, scaled = (fitted(SIZED, X, it, process=NOISY, count=4) for it in (y, y * scale))
    assert scaled.predict(X).mean / scale == pytest.approx(plain.predict(X).mean)
    assert scaled.predict(X).std / scale == pytest.approx(plain.predict(X).std, rel=1e-3)
    assert scaled.noise_std / scale == pytest.approx(plain.noise_std, rel=1e-3)


def test_an_effect_that_rises_and_falls_is_not_taken_for_noise() -> None:
    space = tw.Space({f"x{i}": tw.Float(0, 1) for i in range(5)})
    X = rows(space, 60)
    y = np.sin(np.pi * (2 * X[:, 0] - 1)) + 1.4 * np.sin(np.pi * (2 * X[:, 1] - 1)) ** 2
    assert fitted(space, X, y, process=NOISY, count=1).noise_std < 0.2 * y.std()


@pytest.mark.parametrize("process", [NOISY, cost_process()], ids=["quality", "cost"])
def test_drawn_functions_have_the_moments_of_the_posterior(process: GaussianProcess) -> None:
    """With training sizes, a trend and a conditional parameter."""
    X, Q = rows(SIZED, 25), rows(SIZED, 40, seed=1)
    y = response(X) + 0.05 * np.random.default_rng(2).standard_normal(25)
    (member,) = fitted(SIZED, X, y, process=process, count=1).members
    # the cosines are random, too: several sets of them show what they are on average
    rng = np.random.default_rng(3)
    drawn = np.hstack([FunctionDraws.of(member, 200, rng=rng)(Q) for _ in range(10)])
    expected = member.predict(Q)
    assert drawn.mean(axis=1) == pytest.approx(expected.mean, abs=0.15 * expected.std.max())
    ratio = drawn.std(axis=1) / expected.std
    assert np.median(ratio) == pytest.approx(1.0, abs=0.08)
    assert (np.abs(ratio - 1.0) < 0.25).all()


def test_drawn_functions_go_through_exact_data() -> None:
    X = rows(LINE, 8)
    y = np.sin(4 * X[:, 0])
    (member,) = fitted(LINE, X, y, process=GaussianProcess(noise_mean=-14.0), count=1).members
    drawn = FunctionDraws.of(member, 5, rng=np.random.default_rng(0))(X)
    assert drawn == pytest.approx(np.repeat(y[:, None], 5, axis=1), abs=0.02)
