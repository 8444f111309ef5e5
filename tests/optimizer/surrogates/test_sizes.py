"""The Gaussian process along the training size: curves, extrapolation, covariance across sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tradewind.optimizer.surrogates.full_size import foresee, foresee_gradient
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor, NoSizeEffect
from tradewind.optimizer.surrogates.sizes import SizeCurve
from tradewind.space import Float, Space, TrainSize
from tradewind.types import Array, Normal

FRACTIONS = (0.1, 0.3, 1.0)
SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "size": TrainSize(FRACTIONS)})
QUALITY, COST = GaussianProcess(), GaussianProcess(size_power=0.0)


def rows(xy: Array, cell: int | Array) -> Array:
    return np.column_stack([xy, (np.broadcast_to(cell, len(xy)) + 0.5) / len(FRACTIONS)])


def sample(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Points (n, 2) and the cells of their sizes."""
    rng = np.random.default_rng(seed)
    return rng.random((n, 2)), rng.integers(len(FRACTIONS), size=n)


def accuracy(xy: Array, fraction: Array | float) -> Array:
    level = 0.9 - 0.3 * np.square(xy[:, 0] - 0.4) - 0.1 * xy[:, 1]
    return level - (0.05 + 0.04 * xy[:, 1]) * (np.asarray(fraction) ** -0.5 - 1.0)


def fitted(n: int = 30, model: GaussianProcess = QUALITY, seed: int = 0) -> GPPredictor:
    xy, cell = sample(n, seed)
    y = accuracy(xy, np.array(FRACTIONS)[cell])
    return model.fit(rows(xy, cell), y, columns=SPACE.columns, rng=np.random.default_rng(0))


# ---- the curve ----


def test_a_curve_falls_from_one_to_nothing_at_the_largest_size() -> None:
    for power in (0.0, 0.5, 2.0):
        curve = SizeCurve.of(SPACE.columns, power)
        assert curve.values[0] == 1.0
        assert curve.values[-1] == 0.0
        assert (np.diff(curve.values) < 0).all()


def test_the_curve_is_a_power_law_and_at_power_nothing_the_logarithm() -> None:
    s = np.array(FRACTIONS)
    half, log = SizeCurve.of(SPACE.columns, 0.5), SizeCurve.of(SPACE.columns, 0.0)
    np.testing.assert_allclose(half.values, (s**-0.5 - 1) / (0.1**-0.5 - 1))
    np.testing.assert_allclose(log.values, np.log(s) / np.log(0.1), atol=1e-15)


def test_sizes_are_relative_to_the_largest() -> None:
    small = Space({"size": TrainSize([0.05, 0.15, 0.5])})
    curve, same = SizeCurve.of(small.columns, 0.5), SizeCurve.of(SPACE.columns, 0.5)
    np.testing.assert_allclose(curve.values, same.values)


@pytest.mark.parametrize("parameter", [TrainSize([0.5]), Float(0.0, 1.0)], ids=["one", "none"])
def test_without_several_sizes_there_is_no_curve(parameter: Any) -> None:
    columns = Space({"x": parameter}).columns
    gp = QUALITY.fit(
        np.full((1, 1), 0.5), np.ones(1), columns=columns, rng=np.random.default_rng(0)
    )
    assert isinstance(gp.covariance.sizes, NoSizeEffect)
    assert len(gp.theta) == 1 + 2


# ---- the posterior ----


def test_the_posterior_is_that_of_the_stated_covariance() -> None:
    xy, cell = sample(25)
    X, y = rows(xy, cell), accuracy(xy, np.array(FRACTIONS)[cell])
    gp = QUALITY.fit(X, y, columns=SPACE.columns, rng=np.random.default_rng(0))
    at_xy, at_cell = sample(40, seed=1)
    at = rows(at_xy, at_cell)
    length = np.exp(gp.theta[:3])
    level, noise, own, shared = np.exp(gp.theta[3:])
    rho = (np.array(FRACTIONS) ** -0.5 - 1) / (0.1**-0.5 - 1)

    logs = np.log(FRACTIONS) / np.log(0.1)

    def cov(p: Array, c: Array, q: Array, e: Array) -> Array:
        p, q = np.column_stack([p, logs[c]]), np.column_stack([q, logs[e]])
        r = np.sqrt(5.0 * np.square((p[:, None] - q[None]) / length).sum(axis=2))
        both = np.outer(rho[c], rho[e])
        k = (1 + r + r**2 / 3) * np.exp(-r)
        return k * (level + own * both) + shared * both

    K = cov(xy, cell, xy, cell) + (noise + 1e-8 * level) * np.eye(len(y))
    inverse = np.linalg.inv(K)
    t = gp.scale.forward(y)
    ones = np.ones(len(t))
    c = (ones @ inverse @ t) / (ones @ inverse @ ones)
    k = cov(at_xy, at_cell, xy, cell)
    expected = c + k @ inverse @ (t - c)
    variance = np.diag(cov(at_xy, at_cell, at_xy, at_cell)) - np.einsum(
        "ij,jk,ik->i", k, inverse, k
    )
    predicted = gp.predict(at)
    np.testing.assert_allclose(gp.scale.forward(predicted.mean), expected, atol=1e-6)
    np.testing.assert_allclose(predicted.std / gp.scale.scale, np.sqrt(variance), atol=1e-4)
    # across sizes
    full = rows(at_xy, 2)
    across = (
        cov(at_xy, at_cell, at_xy, np.full(40, 2))
        - k @ inverse @ cov(at_xy, np.full(40, 2), xy, cell).T
    )
    moved = foresee(gp, at, full)
    np.testing.assert_allclose(moved.mean, gp.predict(full).mean)
    np.testing.assert_allclose(
        moved.std / gp.scale.scale,
        np.maximum(np.diag(across), 0.0) / np.sqrt(variance + noise),
        atol=1e-4,
    )


def test_the_gradients_are_those_of_the_predictions() -> None:
    gp, step = fitted(), 1e-5
    xy, cell = sample(12, seed=3)
    X = rows(xy, cell)
    full = rows(xy, 2)
    _, d_mean, d_std = gp.predict_gradient(X)
    _, e_mean, e_std = foresee_gradient(gp, X, full)
    for j in range(2):
        move = np.zeros(3)
        move[j] = step

        def slope(up: Normal, down: Normal) -> tuple[Array, Array]:
            return (up.mean - down.mean) / (2 * step), (up.std - down.std) / (2 * step)

        by_mean, by_std = slope(gp.predict(X + move), gp.predict(X - move))
        np.testing.assert_allclose(d_mean[:, j], by_mean, atol=1e-5)
        np.testing.assert_allclose(d_std[:, j], by_std, atol=1e-4)
        ahead = foresee(gp, X + move, full + move), foresee(gp, X - move, full - move)
        by_mean, by_std = slope(*ahead)
        np.testing.assert_allclose(e_mean[:, j], by_mean, atol=1e-5)
        np.testing.assert_allclose(e_std[:, j], by_std, atol=1e-4)
    assert not np.any([g[:, 2] for g in (d_mean, d_std, e_mean, e_std)])  # sizes are apart


def test_what_is_observed_at_full_size_moves_it_by_all_that_is_unknown() -> None:
    gp = fitted()
    X = rows(sample(20, seed=5)[0], 2)
    np.testing.assert_allclose(foresee(gp, X, X).std, gp.predict(X).std, rtol=0.05, atol=2e-4)


def test_a_smaller_run_tells_less() -> None:
    gp = fitted(15)
    xy, _ = sample(50, seed=6)
    stds = [foresee(gp, rows(xy, cell), rows(xy, 2)).std.mean() for cell in range(3)]
    assert stds[0] < stds[1] < stds[2]


def test_the_hyper_parameters_are_at_a_maximum() -> None:
    gp = fitted(25)
    values = gp.theta
    again = fitted(25, GaussianProcess(max_steps=500))
    np.testing.assert_allclose(values, again.theta, atol=0.2)


def test_conditioning_on_a_small_run_makes_the_large_one_surer() -> None:
    gp = fitted(10)
    point = np.array([[0.05, 0.95]])
    before, after = gp.predict(rows(point, 2)), gp.condition(rows(point, 0)).predict(rows(point, 2))
    assert after.std[0] < 0.95 * before.std[0]
    np.testing.assert_allclose(after.mean, before.mean)


# ---- what it is for ----


def test_quality_extrapolates_to_the_full_size() -> None:
    """Thirty small runs and three large ones tell how good the large ones are elsewhere."""
    xy, _ = sample(33)
    cell = np.array([0, 1] * 15 + [2] * 3)
    y = accuracy(xy, np.array(FRACTIONS)[cell])
    gp = QUALITY.fit(rows(xy, cell), y, columns=SPACE.columns, rng=np.random.default_rng(0))
    plain = GaussianProcess(size_power=None).fit(
        rows(xy, cell), y, columns=SPACE.columns, rng=np.random.default_rng(0)
    )
    at, _ = sample(200, seed=9)
    truth = accuracy(at, 1.0)
    ours = np.abs(gp.predict(rows(at, 2)).mean - truth).mean()
    theirs = np.abs(plain.predict(rows(at, 2)).mean - truth).mean()
    assert ours < 0.01
    assert ours < 0.7 * theirs


@pytest.mark.parametrize("exponent", [0.3, 1.0, 1.7])
def test_cost_extrapolates_as_a_power_of_the_size(exponent: float) -> None:
    xy, _ = sample(20)
    cell = np.array([0, 1] * 10)  # never the full size

    def log_cost(points: Array, fraction: Array | float) -> Array:
        return 1.0 + points[:, 0] + exponent * np.log(np.asarray(fraction))

    y = log_cost(xy, np.array(FRACTIONS)[cell])
    gp = COST.fit(rows(xy, cell), y, columns=SPACE.columns, rng=np.random.default_rng(0))
    at, _ = sample(100, seed=9)
    off = gp.predict(rows(at, 2)).mean - log_cost(at, 1.0)
    assert np.abs(off).mean() < 0.25  # of a factor of 10^exponent that was never seen
    assert np.abs(off).mean() < 0.2 * exponent * np.log(1 / 0.3) + 0.05


def test_small_runs_that_say_nothing_about_large_ones_are_found_out() -> None:
    rng = np.random.default_rng(0)
    xy, _ = sample(20)
    X = np.vstack([rows(xy, 0), rows(xy, 2)])
    true, unrelated = accuracy(xy, 1.0), 0.7 - 0.5 * np.square(xy[:, 1] - rng.random(20))
    faithful = np.concatenate([true - 0.1, true])
    deceptive = np.concatenate([unrelated, true])

    def correlation(y: Array) -> float:
        gp = QUALITY.fit(X, y, columns=SPACE.columns, rng=np.random.default_rng(0))
        at, _ = sample(50, seed=2)
        small, full = rows(at, 0), rows(at, 2)
        return float(np.mean(foresee(gp, small, full).std / gp.predict(full).std))

    assert correlation(faithful) > 0.7
    assert correlation(deceptive) < 0.5


def test_without_a_curve_the_size_is_a_parameter_like_the_others() -> None:
    gp = fitted(20, GaussianProcess(size_power=None))
    assert len(gp.theta) == len(SPACE) + 2
    assert gp.predict_gradient(rows(*sample(5, seed=4)))[1][:, 2].any()
