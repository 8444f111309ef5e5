"""The process of log-costs: powers of what drives a cost, hiccups of a machine, and its load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.space.generate import spaces
from tradewind.optimizer.surrogates.full_size import expected_mean, foresee, foresee_gradient
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor, cost_process
from tradewind.space import Categorical, Float, Int, Ordinal, Space, TrainSize
from tradewind.types import Array

SPACE = Space(
    {
        "epochs": Int(1, 100, drives_cost=True),
        "width": Ordinal([16, 64, 128, 1024], drives_cost=True),
        "rate": Float(1e-4, 1e-1, log=True),
        "dropout": Float(0.0, 0.9),
        "kind": Categorical(["plain", "deep"]),
        "layers": Int(1, 32, log=True, when={"kind": "deep"}),
        "size": TrainSize([0.1, 0.3, 1.0]),
    }
)


def rows(n: int, seed: int = 0, space: Space = SPACE) -> Array:
    return space.sample(n, rng=np.random.default_rng(seed))


def fit(
    X: Array,
    y: Array,
    *,
    space: Space = SPACE,
    model: GaussianProcess | None = None,
    disturbance: Array | None = None,
) -> GPPredictor:
    model = model or cost_process()
    rng = np.random.default_rng(0)
    return model.fit(X, y, columns=space.columns, disturbance=disturbance, rng=rng)


def log_cost(X: Array, space: Space = SPACE) -> Array:
    """epochs · width^1.2 · layers^0.8 · size^0.9, and something smooth."""
    configs = space.decode(X)
    logs = [
        np.log(c["epochs"]) + 1.2 * np.log(c["width"]) + 0.8 * np.log(c.get("layers", 4))
        for c in configs
    ]
    size = np.array([c["size"] for c in configs])
    return np.array(logs) + 0.9 * np.log(size) + 0.2 * np.sin(5.0 * X[:, 3])


# ---- the posterior ----


def test_the_powers_are_those_of_bayesian_linear_regression() -> None:
    """If nothing but a product of powers is possible, the mean is that of the exact posterior."""
    space = Space({"a": Float(1.0, 50.0, log=True), "b": Int(1, 64, drives_cost=True)})
    rng = np.random.default_rng(0)
    X, at = rows(12, space=space), rows(30, seed=1, space=space)

    def logs(X: Array) -> Array:
        return np.log([[c["a"], c["b"]] for c in space.decode(X)])

    y = logs(X) @ [0.4, 1.5] + 0.1 * rng.standard_normal(12)
    problem = replace(cost_process(), power_std=0.7).prepare(X, y, columns=space.columns)
    gp = problem.at(np.array([0.0, 0.0, -20.0, -4.0]))  # a kernel that explains nothing
    noise = gp.noise * gp.scale.scale**2
    # the constant has a flat prior
    A = np.column_stack([logs(X), np.ones(12)])
    prior = np.diag([1 / 0.7**2, 1 / 0.7**2, 0.0])
    expected = np.array([0.0, 1.0, 0.0])
    precision = A.T @ A / noise + prior
    weights = np.linalg.solve(precision, A.T @ y / noise + prior @ expected)
    B = np.column_stack([logs(at), np.ones(30)])
    np.testing.assert_allclose(gp.predict(at).mean, B @ weights, atol=0.01)


def test_gradients_are_those_of_the_predictions() -> None:
    X, step = rows(40), 1e-6
    gp = fit(X, log_cost(X)).condition(rows(3, seed=8))
    # between the centres of cells: at a knot, the slope to the left is another one
    at = np.clip(rows(30, seed=1) + 0.003, 0.0, 1.0)
    at[:, [4, 6]] = rows(30, seed=1)[:, [4, 6]]
    sizes = at.copy()
    sizes[:, 6] = 5 / 6
    normal, d_mean, d_std = gp.predict_gradient(at)
    np.testing.assert_allclose(normal.mean, gp.predict(at).mean)
    np.testing.assert_allclose(expected_mean(gp, at), gp.predict(at).mean)
    _, e_mean, e_std = foresee_gradient(gp, at, sizes)
    for j in (0, 1, 2, 3, 5):
        move = np.zeros(at.shape[1])
        move[j] = step
        up, down = gp.predict(at + move), gp.predict(at - move)
        active = ~np.isnan(at[:, j])
        tolerance = {"rtol": 1e-3, "atol": 1e-4}
        by_mean, by_std = (up.mean - down.mean) / (2 * step), (up.std - down.std) / (2 * step)
        np.testing.assert_allclose(d_mean[active, j], by_mean[active], **tolerance)
        np.testing.assert_allclose(d_std[active, j], by_std[active], **tolerance)
        up, down = foresee(gp, at + move, sizes + move), foresee(gp, at - move, sizes - move)
        by_mean, by_std = (up.mean - down.mean) / (2 * step), (up.std - down.std) / (2 * step)
        np.testing.assert_allclose(e_mean[active, j], by_mean[active], **tolerance)
        np.testing.assert_allclose(e_std[active, j], by_std[active], rtol=1e-3, atol=1e-3)
        assert not d_mean[~active, j].any()
        assert not d_std[~active, j].any()
    assert not d_mean[:, [4, 6]].any()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(spaces(), st.integers(0, 100))
def test_any_space_has_finite_predictions_and_gradients(space: Space, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, at = space.sample(9, rng=rng), space.sample(5, rng=rng)
    gp = fit(X, 10.0 * rng.standard_normal(9), space=space)
    normal, d_mean, d_std = gp.predict_gradient(at)
    assert np.isfinite([normal.mean, normal.std]).all()
    assert (normal.std > 0).all()
    assert np.isfinite([d_mean, d_std]).all()


# ---- extrapolation ----


def test_costs_extrapolate_beyond_the_values_that_were_seen() -> None:
    X = rows(400)
    configs = SPACE.decode(X)
    small = np.array(
        [c["epochs"] <= 25 and c["size"] <= 0.3 and c["width"] <= 128 for c in configs]
    )
    large = np.array([c["epochs"] >= 60 and c["size"] == 1.0 and c["width"] > 128 for c in configs])
    known, unseen = X[small][:20], X[large]
    assert (len(known), len(unseen)) > (19, 9)
    off = np.abs(fit(known, log_cost(known)).predict(unseen).mean - log_cost(unseen))
    plain = GaussianProcess(size_power=None)
    blind = fit(known, log_cost(known), model=plain).predict(unseen).mean - log_cost(unseen)
    assert np.median(off) < np.log(1.5)  # of a cost that is about 50 times as large as any seen
    assert np.median(np.abs(blind)) > 2.0


def test_a_power_that_was_not_expected_is_learned() -> None:
    space = Space({"trees": Int(1, 1000, log=True), "x": Float(0.0, 1.0)})
    X = rows(40, space=space)
    cheap, costly = X[X[:, 0] < 0.5][:12], X[X[:, 0] > 0.9]
    y = 1.0 + 6.0 * cheap[:, 0]
    off = fit(cheap, y, space=space).predict(costly).mean - (1.0 + 6.0 * costly[:, 0])
    assert np.abs(off).max() < 0.5


def test_inactive_parameters_contribute_nothing() -> None:
    gp = fit(rows(20), log_cost(rows(20)))
    row = rows(50, seed=2)
    row = row[np.isnan(row[:, 5])]
    layers = gp.covariance.trend.uncertain.columns.tolist().index(5)
    assert not gp.covariance.trend.features(row)[:, layers].any()


def test_quality_has_no_trend() -> None:
    gp = fit(rows(10), np.arange(10.0), model=GaussianProcess())
    assert gp.covariance.trend.features(rows(5)).shape == (5, 0)
    assert gp.covariance.trend.mean(rows(5)) == 0.0


@pytest.mark.parametrize("std", [0.0, -1.0, np.inf, np.nan])
def test_how_uncertain_powers_are_is_checked(std: float) -> None:
    with pytest.raises(ValueError, match="power_std, unless it is None, must be a number from"):
        GaussianProcess(power_std=std)


# ---- hiccups ----


def noisy(n: int, seed: int) -> tuple[Array, Array]:
    X = rows(n, seed=seed)
    return X, log_cost(X) + 0.05 * np.random.default_rng(seed).standard_normal(n)


@pytest.mark.parametrize("seed", range(4))
def test_a_single_hiccup_is_not_believed(seed: int) -> None:
    X, y = noisy(24, seed)
    slow = y.copy()
    slow[seed] += np.log(10.0)
    at = rows(300, seed=50)
    clean, robust, believer = (
        np.abs(gp.predict(at).mean - log_cost(at)).mean()
        for gp in (
            fit(X, y),
            fit(X, slow),
            fit(X, slow, model=replace(cost_process(), robust=False)),
        )
    )
    assert robust < clean + 0.1
    assert robust < believer


def test_a_costly_region_is_no_hiccup() -> None:
    """Three runs of the only category that costs ten times as much are believed, and so is a steep
    wall that one in six runs has met."""
    X, y = noisy(24, 1)
    X[:, 4], X[:, 5] = 0.25, np.nan
    X[:3, 4], X[:3, 5] = 0.75, [0.2, 0.5, 0.8]
    y = log_cost(X) + np.where(X[:, 4] > 0.5, np.log(10.0), 0.0)
    at = X[:3].copy()
    at[:, 3] += 0.05
    off = fit(X, y).predict(at).mean - (log_cost(at) + np.log(10.0))
    assert np.abs(off).max() < 0.5
    X, y = noisy(24, 2)
    y += np.where(X[:, 3] > 5 / 6, np.log(10.0), 0.0)
    robust, plain = fit(X, y), fit(X, y, model=replace(cost_process(), robust=False))
    np.testing.assert_allclose(robust.theta, plain.theta)


def test_hiccups_need_others_to_compare_with() -> None:
    X, y = noisy(7, 0)
    y[0] += 5.0
    np.testing.assert_allclose(
        fit(X, y).theta, fit(X, y, model=replace(cost_process(), robust=False)).theta
    )


# ---- load ----


def test_a_busy_machine_explains_what_it_took_longer() -> None:
    X, y = noisy(24, 3)
    load = np.log(np.random.default_rng(0).choice([1.0, 4.0, 8.0], size=24))
    load -= np.median(load)
    at = rows(200, seed=60)
    aware, unaware = (
        fit(X, y + 0.8 * load, disturbance=known).predict(at).mean - log_cost(at)
        for known in (load, None)
    )
    assert np.abs(aware).mean() < 0.7 * np.abs(unaware).mean()
    same = fit(X, y, disturbance=np.zeros(24)).predict(at)
    np.testing.assert_array_equal(same.mean, fit(X, y).predict(at).mean)


# ---- how sure it is ----


def test_intervals_hold_most_new_runs() -> None:
    inside = []
    for seed in range(6):
        X, y = noisy(24, seed)
        at, true = noisy(200, seed + 100)
        gp = fit(X, y)
        predicted = gp.predict(at)
        std = np.sqrt(predicted.std**2 + gp.noise * gp.scale.scale**2)
        inside.append(np.abs(predicted.mean - true) < 1.645 * std)
    assert 0.8 < np.mean(inside) < 0.97
