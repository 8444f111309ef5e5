"""The Gaussian process: its posterior, its gradients, and what it does at the edges."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tradewind.optimizer.surrogates import gp, kernels, posterior
from tradewind.optimizer.surrogates.gp import GaussianProcess, GPPredictor, invert_factor
from tradewind.optimizer.surrogates.many_pairs import ManyPairs
from tradewind.space import Categorical, Float, Space
from tradewind.types import Array, Columns

SPACE = Space(
    {
        "x": Float(0.0, 1.0),
        "y": Float(0.0, 1.0),
        "kind": Categorical(["a", "b", "c"]),
        "nested": Float(0.0, 1.0, when={"kind": ["b", "c"]}),
    }
)
MIXED = len(SPACE)


def numbers(d: int) -> Columns:
    return Space({f"x{j}": Float(0.0, 1.0) for j in range(d)}).columns


def categories(cells: list[int]) -> Columns:
    return Space({f"c{j}": Categorical(list(range(k))) for j, k in enumerate(cells)}).columns


def fit(X: Array, y: Array, columns: Columns | None = None, **options: object) -> GPPredictor:
    model = options.pop("model", GaussianProcess())
    columns = columns or numbers(X.shape[1])
    return model.fit(X, y, columns=columns, rng=np.random.default_rng(0), **options)


def category(index: Array | int, cells: int) -> Array | float:
    return (index + 0.5) / cells


def mixed_data(n: int, seed: int = 0) -> tuple[Array, Array, Columns]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, MIXED))
    kind = rng.integers(3, size=n)
    X[:, 2] = category(kind, 3)
    X[kind == 0, 3] = np.nan
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2 + np.array([0.0, 0.7, -0.4])[kind]
    return X, y + 0.5 * np.nan_to_num(X[:, 3]), SPACE.columns


def smooth(X: Array) -> Array:
    return np.sin(3.0 * X).sum(axis=1)


# ---- against GPyTorch ----


def embedded(X: Array, *, apart: bool) -> Array:
    """The documented embedding: numbers as they are, inactive ones at the centre, or `apart`: on
    an arc of 2 radians and radius ½ around the point where they are inactive; categories one-hot,
    scaled by √½ so that any two are at squared distance 1."""
    if not apart:
        return embedded_at_centre(X)
    angle, active = 2.0 * np.nan_to_num(X[:, 3]), ~np.isnan(X[:, 3])
    arc = np.where(active, [np.cos(angle), np.sin(angle)], 0.0).T / 2.0
    one_hot = np.eye(3)[np.floor(X[:, 2] * 3.0).astype(int)]
    return np.hstack([X[:, :2], arc, one_hot * np.sqrt(0.5)])


def embedded_at_centre(X: Array) -> Array:
    one_hot = np.eye(3)[np.floor(X[:, 2] * 3.0).astype(int)]
    return np.hstack([X[:, :2], np.nan_to_num(X[:, 3:], nan=0.5), one_hot * np.sqrt(0.5)])


def noise_of(predictor: GPPredictor) -> Array:
    """The variances on the diagonal of K beside the prior's."""
    L = np.linalg.inv(predictor.W)
    return np.einsum("ij,ij->i", L, L) - predictor.covariance.level


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("known", [0.0, 0.05])
@pytest.mark.parametrize("apart", [False, True], ids=["centre", "apart"])
def test_the_posterior_is_that_of_gpytorch(n: int, known: float, apart: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        import gpytorch
        import torch

    X, y, columns = mixed_data(n)
    at = mixed_data(30, seed=1)[0]
    noise = known * np.random.default_rng(2).random(n)
    ours = fit(X, y, columns, noise=noise, model=GaussianProcess(apart=apart))
    features, features_at = embedded(X, apart=apart), embedded(at, apart=apart)

    def tensor(values: Array) -> torch.Tensor:
        return torch.as_tensor(np.array(values), dtype=torch.float64)

    class Theirs(gpytorch.models.ExactGP):
        def __init__(self, likelihood: object) -> None:
            super().__init__(tensor(features), tensor(ours.scale.forward(y)), likelihood)
            self.mean = gpytorch.means.ConstantMean()
            matern = gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=features.shape[1])
            self.kernel = gpytorch.kernels.ScaleKernel(matern)

        def forward(self, x: torch.Tensor) -> object:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    with gpytorch.settings.min_fixed_noise(double_value=1e-12), torch.no_grad():
        likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(tensor(noise_of(ours)))
        theirs = Theirs(likelihood).double()
        theirs.mean.initialize(constant=ours.constant)
        theirs.kernel.outputscale = ours.covariance.level
        theirs.kernel.base_kernel.lengthscale = tensor(1.0 / ours.covariance.roots)
        theirs.eval()
        with gpytorch.settings.fast_computations(False, False, False):
            posterior = theirs(tensor(features_at))
        mean, std = posterior.mean.numpy(), posterior.variance.sqrt().numpy()
    predicted = ours.predict(at)
    np.testing.assert_allclose(ours.scale.forward(predicted.mean), mean, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(predicted.std / ours.scale.scale, std, rtol=0.0, atol=1e-6)


# ---- what a Gaussian process does ----


def test_it_interpolates_data_without_noise() -> None:
    X = np.random.default_rng(0).random((30, 2))
    y = smooth(X)
    predicted = fit(X, y, model=GaussianProcess(noise_mean=-14.0, noise_std=0.1)).predict(X)
    np.testing.assert_allclose(predicted.mean, y, rtol=0.0, atol=2e-3 * y.std())
    assert (predicted.std < 2e-3 * y.std()).all()


def test_it_follows_smooth_data_closely_with_the_noise_it_learns() -> None:
    X = np.random.default_rng(0).random((30, 2))
    y = smooth(X)
    predicted = fit(X, y).predict(X)
    np.testing.assert_allclose(predicted.mean, y, rtol=0.0, atol=0.02 * y.std())


def test_it_predicts_smooth_data_between_the_points() -> None:
    rng = np.random.default_rng(1)
    X, at = rng.random((60, 2)), rng.random((200, 2))
    predicted = fit(X, smooth(X)).predict(at)
    assert np.abs(predicted.mean - smooth(at)).max() < 0.1 * smooth(at).std()


def test_far_away_it_reverts_to_its_constant_mean_and_prior_std() -> None:
    X = np.random.default_rng(0).random((20, 2))
    predictor = fit(X, smooth(X))
    far = predictor.predict(np.array([[1e4, 0.5], [-1e4, 1e4]]))
    mean = predictor.scale.inverse(np.array(predictor.constant))
    std = np.sqrt(predictor.covariance.level) * predictor.scale.scale
    np.testing.assert_allclose(far.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(far.std, std, rtol=1e-9)


def test_std_never_exceeds_the_prior_and_is_smallest_at_the_data() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((20, 2))
    predictor = fit(X, smooth(X))
    prior = predictor.predict(np.array([[1e4, 1e4]])).std[0]
    elsewhere = predictor.predict(rng.random((300, 2))).std
    assert (elsewhere <= prior * (1.0 + 1e-12)).all()
    assert predictor.predict(X).std.max() < np.median(elsewhere)


def test_the_units_of_y_do_not_matter() -> None:
    X, y, columns = mixed_data(25)
    at = mixed_data(40, seed=1)[0]
    plain, scaled = fit(X, y, columns).predict(at), fit(X, 1000.0 * y - 7.0, columns).predict(at)
    np.testing.assert_allclose(scaled.mean, 1000.0 * plain.mean - 7.0, rtol=1e-5, atol=1e-2)
    np.testing.assert_allclose(scaled.std, 1000.0 * plain.std, rtol=1e-3)


def test_permuting_the_rows_changes_nothing() -> None:
    X, y, columns = mixed_data(40)
    at = mixed_data(30, seed=1)[0]
    order = np.random.default_rng(3).permutation(len(y))
    a, b = fit(X, y, columns).predict(at), fit(X[order], y[order], columns).predict(at)
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-4)
    np.testing.assert_allclose(a.std, b.std, rtol=1e-3)


def test_relabelling_the_categories_changes_nothing() -> None:
    X, y, columns = mixed_data(40)
    at = mixed_data(30, seed=1)[0]

    def relabelled(rows: Array) -> Array:
        rows = rows.copy()
        rows[:, 2] = category(np.array([2, 0, 1])[np.floor(rows[:, 2] * 3.0).astype(int)], 3)
        return rows

    a = fit(X, y, columns).predict(at)
    b = fit(relabelled(X), y, columns).predict(relabelled(at))
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-4)
    np.testing.assert_allclose(a.std, b.std, rtol=1e-3)


def test_any_two_categories_are_equally_far_apart() -> None:
    X = category(np.array([[0.0], [1.0], [1.0]]), 4)
    predictor = fit(X, np.array([0.0, 1.0, 1.1]), categories([4]))
    unseen = predictor.predict(category(np.array([[2.0], [3.0]]), 4))
    assert unseen.mean[0] == pytest.approx(unseen.mean[1], rel=1e-12)
    assert unseen.std[0] == pytest.approx(unseen.std[1], rel=1e-12)


def test_where_a_column_is_inactive_may_be_equally_far_from_all_of_its_values() -> None:
    X, y, columns = mixed_data(60)
    inactive = np.isnan(X[:, 3])
    at = np.repeat(np.array([[0.4, 0.6, category(1, 3), 0.0]]), 5, axis=0)
    at[:, 3] = np.linspace(0.0, 1.0, 5)
    model = GaussianProcess(apart=True)
    predicted = fit(X[inactive], y[inactive], columns, model=model).predict(at)
    np.testing.assert_allclose(predicted.mean, predicted.mean[0], rtol=1e-9)
    np.testing.assert_allclose(predicted.std, predicted.std[0], rtol=1e-9)


def test_it_is_deterministic() -> None:
    X, y, columns = mixed_data(30)
    at = mixed_data(30, seed=1)[0]
    model = GaussianProcess()
    a, b = (
        model.fit(X, y, columns=columns, rng=np.random.default_rng(seed)).predict(at)
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(a.mean, b.mean)
    np.testing.assert_array_equal(a.std, b.std)


def test_rows_are_predicted_independently() -> None:
    X, y, columns = mixed_data(30)
    predictor = fit(X, y, columns)
    at = mixed_data(10, seed=1)[0]
    together = predictor.predict(at)
    alone = [predictor.predict(row[None, :]) for row in at]
    np.testing.assert_allclose(together.mean, [p.mean[0] for p in alone], rtol=1e-12)
    np.testing.assert_allclose(together.std, [p.std[0] for p in alone], rtol=1e-9)


# ---- known noise ----


def test_known_noise_widens_the_posterior_where_it_is() -> None:
    X = np.linspace(0.0, 1.0, 12)[:, None]
    y = smooth(X)
    noise = np.zeros(12)
    noise[5] = 4.0 * y.var()
    exact, noisy = fit(X, y), fit(X, y, noise=noise)
    widened = noisy.predict(X).std / exact.predict(X).std
    assert widened.argmax() == 5
    assert widened[5] > 1.5


def test_an_outlier_that_is_known_to_be_noisy_is_not_followed() -> None:
    X = np.linspace(0.0, 1.0, 12)[:, None]
    y = smooth(X)
    y[5] += 3.0
    noise = np.where(np.arange(12) == 5, 100.0, 0.0)
    believed = fit(X, y, noise=noise).predict(X[5:6]).mean[0]
    assert believed == pytest.approx(smooth(X)[5], abs=0.3)


def test_no_known_noise_is_the_same_as_none_given() -> None:
    X, y, columns = mixed_data(20)
    a, b = fit(X, y, columns), fit(X, y, columns, noise=np.zeros(20))
    np.testing.assert_array_equal(a.predict(X).mean, b.predict(X).mean)


def test_the_noise_of_repeated_measurements_is_learned() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((12, 1)), 6, axis=0)
    y = smooth(X) + rng.normal(scale=0.3, size=len(X))
    predictor = fit(X, y)
    learned = np.sqrt(noise_of(predictor)).mean() * predictor.scale.scale
    assert learned == pytest.approx(0.3, rel=0.3)


# ---- gradients ----


def test_gradients_are_those_of_the_predictions() -> None:
    X, y, columns = mixed_data(30)
    predictor = fit(X, y, columns)
    at = mixed_data(40, seed=1)[0]
    normal, d_mean, d_std = predictor.predict_gradient(at)
    predicted = predictor.predict(at)
    np.testing.assert_array_equal(normal.mean, predicted.mean)
    np.testing.assert_array_equal(normal.std, predicted.std)
    for j in (0, 1, 3):
        h = np.zeros(MIXED)
        h[j] = 1e-5
        up, down = predictor.predict(at + h), predictor.predict(at - h)
        np.testing.assert_allclose(d_mean[:, j], (up.mean - down.mean) / 2e-5, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(d_std[:, j], (up.std - down.std) / 2e-5, rtol=1e-4, atol=1e-5)


def test_gradients_vanish_along_categories_and_inactive_columns() -> None:
    X, y, columns = mixed_data(30)
    at = mixed_data(40, seed=1)[0]
    _, d_mean, d_std = fit(X, y, columns).predict_gradient(at)
    for slope in (d_mean, d_std):
        assert np.isfinite(slope).all()
        np.testing.assert_array_equal(slope[:, 2], 0.0)
        np.testing.assert_array_equal(slope[np.isnan(at)], 0.0)


def test_gradients_are_finite_at_the_data_themselves() -> None:
    X, y, columns = mixed_data(30)
    _, d_mean, d_std = fit(X, y, columns).predict_gradient(X)
    assert np.isfinite(d_mean).all()
    assert np.isfinite(d_std).all()


def test_gradients_hold_after_conditioning() -> None:
    X, y, columns = mixed_data(30)
    believed = fit(X, y, columns).condition(mixed_data(4, seed=2)[0])
    at = mixed_data(20, seed=1)[0]
    _, d_mean, d_std = believed.predict_gradient(at)
    h = np.array([1e-5, 0.0, 0.0, 0.0])
    up, down = believed.predict(at + h), believed.predict(at - h)
    np.testing.assert_allclose(d_mean[:, 0], (up.mean - down.mean) / 2e-5, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(d_std[:, 0], (up.std - down.std) / 2e-5, rtol=1e-4, atol=1e-5)


# ---- conditioning on pending rows ----


def test_conditioning_moves_the_mean_nowhere_and_takes_the_uncertainty_away() -> None:
    X, y, columns = mixed_data(30)
    pending, at = mixed_data(5, seed=2)[0], mixed_data(100, seed=1)[0]
    before = fit(X, y, columns)
    after = before.condition(pending)
    np.testing.assert_allclose(after.predict(at).mean, before.predict(at).mean, atol=1e-12)
    assert (after.predict(at).std <= before.predict(at).std * (1.0 + 1e-9)).all()
    prior = before.predict(np.full((1, MIXED), 1e4)).std[0]
    assert (after.predict(pending).std < 2e-3 * prior).all()


def test_conditioning_is_the_posterior_of_the_data_and_the_predicted_means() -> None:
    X, y, columns = mixed_data(25)
    pending, at = mixed_data(4, seed=2)[0], mixed_data(50, seed=1)[0]
    before = fit(X, y, columns)
    after = before.condition(pending).predict(at)

    def prior(A: Array, B: Array) -> Array:
        a, b = (embedded(C, apart=False) * before.covariance.roots for C in (A, B))
        r = np.sqrt(5.0) * np.linalg.norm(a[:, None] - b[None, :], axis=2)
        return before.covariance.level * (1.0 + r + r * r / 3.0) * np.exp(-r)

    rows = np.vstack([X, pending])
    t = before.scale.forward(np.concatenate([y, before.predict(pending).mean]))
    exactly = np.full(len(pending), 1e-6 * before.covariance.level)
    K = prior(rows, rows) + np.diag(np.concatenate([noise_of(before), exactly]))
    inverse, ones = np.linalg.inv(K), np.ones(len(t))
    constant = (ones @ inverse @ t) / (ones @ inverse @ ones)
    k = prior(at, rows)
    mean = constant + k @ inverse @ (t - constant)
    variance = before.covariance.level - np.einsum("ij,jk,ik->i", k, inverse, k)
    np.testing.assert_allclose(after.mean, before.scale.inverse(mean), atol=1e-7)
    np.testing.assert_allclose(after.std, np.sqrt(variance) * before.scale.scale, atol=1e-6)


def test_conditioning_leaves_the_predictor_as_it_was() -> None:
    X, y, columns = mixed_data(20)
    predictor = fit(X, y, columns)
    before = predictor.predict(X)
    predictor.condition(mixed_data(3, seed=2)[0])
    np.testing.assert_array_equal(predictor.predict(X).std, before.std)


def test_conditioning_one_by_one_is_conditioning_at_once() -> None:
    X, y, columns = mixed_data(20)
    pending, at = mixed_data(4, seed=2)[0], mixed_data(50, seed=1)[0]
    at_once = one_by_one = fit(X, y, columns)
    at_once = at_once.condition(pending)
    for row in pending:
        one_by_one = one_by_one.condition(row[None, :])
    np.testing.assert_allclose(
        one_by_one.predict(at).std, at_once.predict(at).std, rtol=1e-6, atol=1e-9
    )


def test_conditioning_on_nothing_changes_nothing() -> None:
    X, y, columns = mixed_data(20)
    predictor = fit(X, y, columns)
    at = mixed_data(20, seed=1)[0]
    same = predictor.condition(np.empty((0, MIXED)))
    np.testing.assert_array_equal(same.predict(at).std, predictor.predict(at).std)


def test_conditioning_takes_rows_that_were_seen_and_rows_that_repeat() -> None:
    X, y, columns = mixed_data(20)
    believed = fit(X, y, columns).condition(np.repeat(np.vstack([X, X[:1]]), 5, axis=0))
    predicted = believed.predict(mixed_data(50, seed=1)[0])
    assert np.isfinite(predicted.mean).all()
    assert np.isfinite(predicted.std).all()


# ---- degenerate inputs ----

rng = np.random.default_rng(0)
POINTS, TARGETS = rng.random((12, 3)), rng.normal(size=12)

DEGENERATE: dict[str, tuple[Array, Array, Columns]] = {
    "one observation": (POINTS[:1], TARGETS[:1], numbers(3)),
    "two observations": (POINTS[:2], TARGETS[:2], numbers(3)),
    "constant targets": (POINTS, np.full(12, 3.0), numbers(3)),
    "targets of 0": (POINTS, np.zeros(12), numbers(3)),
    "duplicated points": (np.repeat(POINTS, 5, axis=0), np.repeat(TARGETS, 5), numbers(3)),
    "contradicting duplicates": (np.repeat(POINTS[:2], 9, axis=0), rng.normal(size=18), numbers(3)),
    "one point only": (np.repeat(POINTS[:1], 30, axis=0), rng.normal(size=30), numbers(3)),
    "points within rounding": (0.5 + 1e-12 * rng.random((30, 3)), rng.normal(size=30), numbers(3)),
    "tiny targets": (POINTS, 1e-300 * TARGETS, numbers(3)),
    "huge targets": (POINTS, 1e300 * TARGETS, numbers(3)),
    "one outlier": (POINTS, np.append(TARGETS[:-1], -1e12), numbers(3)),
    "one dimension": (POINTS[:, :1], TARGETS, numbers(1)),
    "thirty dimensions": (rng.random((12, 30)), TARGETS, numbers(30)),
    "categories only": (category(rng.integers(3, size=(30, 2)), 3), rng.normal(size=30),
                        categories([3, 3])),
    "a category with one value": (np.full((5, 1), 0.5), TARGETS[:5], categories([1])),
    "an inactive column": (np.tile([0.3, 0.4, 0.5 / 3.0, np.nan], (12, 1)), TARGETS, SPACE.columns),
    "a thousand points": (rng.random((1000, 3)), rng.normal(size=1000), numbers(3)),
}  # fmt: skip


@pytest.mark.parametrize("case", DEGENERATE, ids=str)
def test_degenerate_data_give_finite_predictions(case: str) -> None:
    X, y, columns = DEGENERATE[case]
    predictor = fit(X, y, columns)
    at = np.vstack([X[:40], rng.random((40, X.shape[1]))])
    for model in (predictor, predictor.condition(X[:2])):
        predicted = model.predict(at)
        assert np.isfinite(predicted.mean).all()
        assert np.isfinite(predicted.std).all()
        assert (predicted.std >= 0.0).all()
        for slope in model.predict_gradient(at)[1:]:
            assert np.isfinite(slope).all()


@pytest.mark.parametrize("case", ["constant targets", "targets of 0"])
def test_constant_targets_are_predicted_everywhere(case: str) -> None:
    X, y, columns = DEGENERATE[case]
    predicted = fit(X, y, columns).predict(rng.random((40, 3)))
    np.testing.assert_allclose(predicted.mean, y[0], atol=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_predictions_keep_the_size_of_the_targets(size: float) -> None:
    at = rng.random((40, 3))
    plain, sized = fit(POINTS, TARGETS).predict(at), fit(POINTS, size * TARGETS).predict(at)
    np.testing.assert_allclose(sized.mean / size, plain.mean, atol=1e-4)
    np.testing.assert_allclose(sized.std / size, plain.std, rtol=1e-3)


def test_contradicting_duplicates_are_averaged() -> None:
    X = np.repeat(np.array([[0.2], [0.8]]), 20, axis=0)
    y = np.repeat([1.0, -1.0], 20) + np.tile([0.3, -0.3], 20)
    predicted = fit(X, y).predict(np.array([[0.2], [0.8]]))
    np.testing.assert_allclose(predicted.mean, [1.0, -1.0], atol=0.05)


# ---- the handover ----


def test_the_handover_is_plain_data_that_survives_json() -> None:
    X, y, columns = mixed_data(30)
    handover = fit(X, y, columns).handover
    assert json.loads(json.dumps(handover)) == handover


def test_a_warm_start_reaches_the_same_posterior() -> None:
    X, y, columns = mixed_data(40)
    at = mixed_data(50, seed=1)[0]
    cold = fit(X, y, columns)
    warm = fit(X, y, columns, start=json.loads(json.dumps(cold.handover)))
    np.testing.assert_allclose(warm.predict(at).mean, cold.predict(at).mean, atol=0.02 * y.std())
    np.testing.assert_allclose(warm.predict(at).std, cold.predict(at).std, rtol=0.1)


def test_a_warm_start_from_fewer_data_reaches_a_similar_posterior() -> None:
    X, y, columns = mixed_data(40)
    at = mixed_data(50, seed=1)[0]
    start = fit(X[:30], y[:30], columns).handover
    cold, warm = fit(X, y, columns).predict(at), fit(X, y, columns, start=start).predict(at)
    np.testing.assert_allclose(warm.mean, cold.mean, atol=0.05 * y.std())


@pytest.mark.parametrize(
    "start",
    [
        None,
        {},
        {"theta": "abc"},
        {"theta": [None] * 20},
        {"theta": 7},
        {"theta": [10**400] * 20},
        3,
        [],
    ],
    ids=lambda start: str(start)[:30],
)
def test_without_a_handover_it_starts_anew(start: Any) -> None:
    X, y, columns = mixed_data(20)
    a, b = fit(X, y, columns), fit(X, y, columns, start=start)
    np.testing.assert_array_equal(a.predict(X).mean, b.predict(X).mean)


def test_a_handover_from_another_space_is_ignored() -> None:
    X, y, columns = mixed_data(20)
    start = fit(X[:, :2], y).handover
    a, b = fit(X, y, columns), fit(X, y, columns, start=start)
    np.testing.assert_array_equal(a.predict(X).mean, b.predict(X).mean)


# ---- covariances that cannot be factorized ----


def test_conditioning_lifts_the_diagonal_of_a_covariance_that_is_not_definite() -> None:
    X, y, columns = mixed_data(20)
    before = fit(X, y, columns)
    wrong = replace(before, W=1.001 * before.W)  # explains more variance than there is
    at = wrong.cross(X[:3])
    S = wrong.covariance.between(at.points, at.points)[0] - at.V @ at.V.T
    assert np.linalg.eigvalsh(S).min() < -1e-6 * wrong.covariance.level
    L = np.linalg.inv(wrong.condition(X[:3]).W[20:, 20:])
    lift = L @ L.T - S
    np.testing.assert_allclose(lift, np.eye(3) * lift[0, 0], atol=1e-12)
    assert lift[0, 0] > 0.0


def test_conditioning_on_a_row_that_is_not_finite_is_refused() -> None:
    X, y, columns = mixed_data(20)
    row = X[:1].copy()
    row[0, 0] = np.inf
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(FloatingPointError, match="must be finite, but it is not: check"),
    ):
        fit(X, y, columns).condition(row)


def test_noise_that_is_not_a_number_is_refused() -> None:
    X, y, columns = mixed_data(20)
    with pytest.raises(FloatingPointError, match="must be finite, but it is not: check"):
        fit(X, y, columns, noise=np.full(20, np.nan))


def test_an_indefinite_matrix_is_lifted_as_little_as_needed() -> None:
    K = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-9]])
    W = invert_factor(K.copy(), lift=1e-6)
    L = np.linalg.inv(W)
    np.testing.assert_allclose(L @ L.T, K + 1e-6 * np.eye(2), atol=1e-12)


def test_a_definite_matrix_is_not_lifted() -> None:
    K = np.array([[2.0, 1.0], [1.0, 2.0]])
    W = invert_factor(K.copy(), lift=1e-6)
    np.testing.assert_allclose(W @ K @ W.T, np.eye(2), atol=1e-15)


# ---- many parameters ----


def test_up_to_the_number_that_matters_nothing_changes() -> None:
    X = np.random.default_rng(0).random((30, 4))
    plain, many = fit(X, smooth(X)), fit(X, smooth(X), model=GaussianProcess(matter=4))
    assert many.theta.tolist() == plain.theta.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_parameters_that_do_nothing_are_found_out(seed: int) -> None:
    X = np.random.default_rng(seed).random((40, 24))
    y = smooth(X[:, :3])
    tight, free = fit(X, y), fit(X, y, model=GaussianProcess(matter=14))
    new = np.random.default_rng(9).random((200, 24))
    truth = smooth(new[:, :3])
    errors = [float(np.abs(m.predict(new).mean - truth).mean()) for m in (tight, free)]
    assert errors[1] < 0.7 * errors[0]
    assert free.theta[3:24].min() > free.theta[:3].max()


def test_with_many_parameters_a_later_fit_is_another_guess_that_its_stream_decides() -> None:
    X = np.random.default_rng(0).random((12, 8))
    model, columns = GaussianProcess(matter=4), numbers(8)
    first = model.fit(X, smooth(X), columns=columns, rng=np.random.default_rng(0)).handover

    def lengths(seed: int, start: object) -> list[float]:
        rng = np.random.default_rng(seed)
        return model.fit(X, smooth(X), columns=columns, start=start, rng=rng).theta.tolist()

    assert lengths(0, None) == lengths(1, None)
    assert lengths(0, first) == lengths(0, first)
    assert lengths(0, first) != lengths(1, first)


def test_the_gradient_of_the_posterior_holds_with_many_parameters() -> None:
    X = np.random.default_rng(0).random((15, 6))
    problem = GaussianProcess(matter=2).prepare(X, smooth(X), columns=numbers(6))
    posterior = replace(problem, shift=np.linspace(-1, 1, 6)).posterior
    theta = posterior.prior_mean + np.linspace(-1.5, 1.5, 8)
    gradient = posterior.negative(theta)[1]
    steps = 1e-6 * np.eye(8)
    slopes = [
        (posterior.negative(theta + step)[0] - posterior.negative(theta - step)[0]) / 2e-6
        for step in steps
    ]
    assert gradient == pytest.approx(slopes, rel=1e-4, abs=1e-4)


def test_short_cuts_for_very_many_parameters_change_rounding_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y, columns = mixed_data(30)
    new = mixed_data(20, seed=1)[0]
    plain = fit(X, y, columns)
    expected = plain.predict_gradient(new)
    monkeypatch.setattr(posterior, "MANY", 2)
    monkeypatch.setattr(gp, "MANY", 2)
    quick = fit(X, y, columns)
    np.testing.assert_allclose(quick.theta, plain.theta, atol=1e-4)
    for i in (1, 2):
        slopes = quick.predict_gradient(new)[i]
        np.testing.assert_allclose(slopes, expected[i], rtol=1e-3, atol=1e-4)


def test_pairs_of_very_many_parameters_are_those_of_the_table() -> None:
    X, _, columns = mixed_data(30)
    embedding, rng = kernels.Embedding.of(columns, apart=True), np.random.default_rng(0)
    table, lean = (kind(embedding, embedding(X)) for kind in (kernels.Pairs, ManyPairs))
    w, factors = rng.random(MIXED), rng.normal(size=30 * 29 // 2)
    np.testing.assert_allclose(lean.distances(w), table.distances(w), atol=1e-12)
    np.testing.assert_allclose(lean.total(factors), table.total(factors), atol=1e-10)


def test_with_very_many_parameters_hyper_parameters_are_fitted_to_fewer_points() -> None:
    X = np.random.default_rng(0).random((50, 400))
    problem = GaussianProcess(fit_points=40).prepare(X, smooth(X[:, :2]), columns=numbers(400))
    assert problem.posterior.n == 20


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_noise_is_more_probable_where_there_is_some(noise: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    y = smooth(X) + noise * rng.standard_normal(40)
    exact, noisy = fit(X, y), fit(X, y, model=GaussianProcess(noise_mean=-6.0, noise_std=3.0))
    assert (noisy.log_density > exact.log_density + 3.0) == (noise > 0.0)


def test_matter_must_be_a_positive_number() -> None:
    with pytest.raises(ValueError, match="matter"):
        GaussianProcess(matter=0)
