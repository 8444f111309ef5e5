"""What every surrogate must do; a new one is one more line in CASES."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.space.generate import spaces
from tradewind.optimizer.surrogates.forest import RandomForest
from tradewind.optimizer.surrogates.gp import GaussianProcess
from tradewind.optimizer.surrogates.surrogate import Predictor, Surrogate
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Space, TrainSize
from tradewind.types import Array, Normal


@dataclass(frozen=True)
class Case:
    """A surrogate, and by how much (of y's std, root mean square) its mean may move when only
    what it draws at random, or the order in which it sums, has changed."""

    surrogate: Surrogate
    chance: float


CASES = {
    "forest": Case(RandomForest(), chance=0.1),
    "gp": Case(GaussianProcess(), chance=1e-3),
}

MIXED = Space(
    {
        "lr": Float(1e-5, 1e-1, log=True),
        "dropout": Float(0.0, 0.9),
        "layers": Int(1, 6),
        "width": Ordinal([32, 64, 128, 256]),
        "optimizer": Categorical(["sgd", "adam", "adadelta", "lion"]),
        "momentum": Float(0.0, 0.99, when={"optimizer": "sgd"}),
        "nesterov": Bool(when={"optimizer": "sgd"}),
        "train_size": TrainSize(),
    }
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def surrogate(case: Case) -> Surrogate:
    return case.surrogate


def response(X: Array) -> Array:
    """Smooth along the numbers, one category ahead, better with more data; std near 1."""
    u = np.nan_to_num(X, nan=0.5)
    ahead = np.abs(u[:, 4] - 0.625) < 0.01
    y: Array = np.sin(4.0 * u[:, 0]) - 3.0 * (u[:, 1] - 0.4) ** 2 + 1.5 * ahead + u[:, 7]
    return y - 1.0


def fitted(
    surrogate: Surrogate, X: Array, y: Array, *, space: Space = MIXED, noise: Array | None = None
) -> Predictor:
    rng = np.random.default_rng(1)
    return surrogate.fit(X, y, columns=space.columns, noise=noise, rng=rng)


def rows(n: int, *, seed: int = 0, space: Space = MIXED) -> Array:
    return space.sample(n, rng=np.random.default_rng(seed))


def sound(predicted: Normal, m: int) -> bool:
    mean, std = predicted.mean, predicted.std
    shapes = mean.shape == (m,) and std.shape == (m,)
    return bool(shapes and np.isfinite(mean).all() and np.isfinite(std).all() and (std >= 0).all())


def moved(before: Array, after: Array) -> float:
    return float(np.sqrt(np.mean((before - after) ** 2)))


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), n=st.integers(1, 25), seed=st.integers(0, 2**32 - 1))
def test_predictions_are_finite_and_std_is_not_negative_in_any_space(
    name: str, space: Space, n: int, seed: int
) -> None:
    X = rows(n, seed=seed, space=space)
    y = np.random.default_rng(seed).standard_normal(n)
    predictor = fitted(CASES[name].surrogate, X, y, space=space)
    assert sound(predictor.predict(rows(12, seed=seed + 1, space=space)), 12)


def test_the_same_generator_state_gives_the_same_model(surrogate: Surrogate) -> None:
    X, Q = rows(30), rows(20, seed=1)
    one, two = (fitted(surrogate, X, response(X)).predict(Q) for _ in range(2))
    assert np.array_equal(one.mean, two.mean)
    assert np.array_equal(one.std, two.std)


def test_fitting_and_predicting_leave_their_arguments_alone(surrogate: Surrogate) -> None:
    X, Q = rows(30), rows(20, seed=1)
    y = response(X)
    copies = X.copy(), y.copy(), Q.copy()
    predictor = fitted(surrogate, X, y)
    predictor.predict(Q)
    predictor.condition(Q).predict(Q)
    for given_, copy in zip((X, y, Q), copies, strict=True):
        assert np.array_equal(given_, copy, equal_nan=True)


def test_what_is_learned_predicts_rows_not_seen(surrogate: Surrogate) -> None:
    X, Q = rows(120), rows(200, seed=1)
    error = response(Q) - fitted(surrogate, X, response(X)).predict(Q).mean
    assert error.var() < 0.4 * response(Q).var()


def test_the_order_of_the_observations_does_not_matter(case: Case) -> None:
    X, Q = rows(60), rows(50, seed=1)
    shuffled = np.random.default_rng(2).permutation(len(X))
    before = fitted(case.surrogate, X, response(X)).predict(Q).mean
    after = fitted(case.surrogate, X[shuffled], response(X[shuffled])).predict(Q).mean
    assert moved(before, after) < case.chance


def test_the_labels_of_categories_do_not_matter(case: Case) -> None:
    X, Q = rows(60), rows(50, seed=1)
    labels = np.array([2, 0, 3, 1])

    def relabelled(X: Array) -> Array:
        X = X.copy()
        X[:, 4] = (labels[(X[:, 4] * 4).astype(int)] + 0.5) / 4
        return X

    before = fitted(case.surrogate, X, response(X)).predict(Q).mean
    after = fitted(case.surrogate, relabelled(X), response(X)).predict(relabelled(Q)).mean
    assert moved(before, after) < case.chance


def test_a_row_is_predicted_alone_as_in_company(surrogate: Surrogate) -> None:
    X, Q = rows(40), rows(300, seed=1)
    predictor = fitted(surrogate, X, response(X))
    together = predictor.predict(Q)
    for i in (0, 150, 299):
        alone = predictor.predict(Q[i : i + 1])
        assert alone.mean == pytest.approx(together.mean[i : i + 1], rel=1e-9, abs=1e-12)
        assert alone.std == pytest.approx(together.std[i : i + 1], rel=1e-6, abs=1e-9)


def test_no_rows_are_predicted_as_no_values(surrogate: Surrogate) -> None:
    X = rows(10)
    assert sound(fitted(surrogate, X, response(X)).predict(X[:0]), 0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_observations_is_enough_to_fit(surrogate: Surrogate, n: int) -> None:
    X = rows(n)
    assert sound(fitted(surrogate, X, response(X)).predict(rows(20, seed=1)), 20)


def test_a_point_observed_many_times_with_one_value_fits(surrogate: Surrogate) -> None:
    X = np.repeat(rows(2), 10, axis=0)
    assert sound(fitted(surrogate, X, response(X)).predict(rows(20, seed=1)), 20)


def test_a_point_observed_many_times_with_different_values_fits(surrogate: Surrogate) -> None:
    X = np.repeat(rows(1), 20, axis=0)
    y = np.random.default_rng(0).standard_normal(20)
    predictor = fitted(surrogate, X, y)
    assert sound(predictor.predict(rows(20, seed=1)), 20)
    assert predictor.predict(X[:1]).mean[0] == pytest.approx(y.mean(), abs=0.5)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e-300, 1e300])
def test_constant_targets_are_predicted_as_that_constant(
    surrogate: Surrogate, value: float
) -> None:
    predicted = fitted(surrogate, rows(20), np.full(20, value)).predict(rows(20, seed=1))
    assert sound(predicted, 20)
    assert predicted.mean == pytest.approx(value, rel=1e-6, abs=1e-305)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
def test_targets_of_any_magnitude_are_predicted_in_their_own_units(
    surrogate: Surrogate, scale: float
) -> None:
    X, Q = rows(30), rows(20, seed=1)
    predicted = fitted(surrogate, X, scale * response(X)).predict(Q)
    assert sound(predicted, 20)
    assert (np.abs(predicted.mean / scale) < 10.0).all()
    assert np.ptp(predicted.mean / scale) > 0.1


def test_a_thousand_observations_fit(surrogate: Surrogate) -> None:
    X = rows(1000)
    assert sound(fitted(surrogate, X, response(X)).predict(rows(50, seed=1)), 50)


@pytest.mark.parametrize("level", [0.0, 1e-12, 0.1, 1e6])
def test_known_noise_of_any_size_fits(surrogate: Surrogate, level: float) -> None:
    X = rows(30)
    noise = level * np.random.default_rng(0).random(30)
    assert sound(fitted(surrogate, X, response(X), noise=noise).predict(X), 30)


def test_a_column_inactive_in_all_observations_can_be_active_in_a_prediction(
    surrogate: Surrogate,
) -> None:
    X, Q = rows(200), rows(200, seed=1)
    sgd = np.abs(Q[:, 4] - 0.125) < 0.01
    other = X[np.abs(X[:, 4] - 0.125) > 0.01][:40]
    assert np.isnan(other[:, 5]).all()
    assert sound(fitted(surrogate, other, response(other)).predict(Q[sgd]), int(sgd.sum()))


def test_a_column_active_in_all_observations_can_be_inactive_in_a_prediction(
    surrogate: Surrogate,
) -> None:
    X, Q = rows(300), rows(50, seed=1)
    sgd = X[np.abs(X[:, 4] - 0.125) < 0.01][:40]
    assert sound(fitted(surrogate, sgd, response(sgd)).predict(Q), 50)


def test_conditioning_removes_the_uncertainty_at_pending_points(surrogate: Surrogate) -> None:
    X, pending = rows(40), rows(5, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(pending), predictor.condition(pending).predict(pending)
    assert (after.std < 0.1 * before.std).all()


def test_conditioning_keeps_the_mean_at_pending_points(surrogate: Surrogate) -> None:
    X, pending = rows(40), rows(5, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(pending), predictor.condition(pending).predict(pending)
    assert after.mean == pytest.approx(before.mean, abs=1e-6)


def test_conditioning_raises_no_std_anywhere(surrogate: Surrogate) -> None:
    X, Q = rows(40), rows(100, seed=2)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(Q), predictor.condition(rows(5, seed=1)).predict(Q)
    assert (after.std <= before.std * (1 + 1e-6) + 1e-9).all()


def test_conditioning_leaves_the_predictor_itself_as_it_was(surrogate: Surrogate) -> None:
    X, pending = rows(40), rows(5, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before = predictor.predict(pending)
    predictor.condition(pending)
    assert np.array_equal(predictor.predict(pending).std, before.std)


def test_conditioning_on_nothing_changes_nothing(surrogate: Surrogate) -> None:
    X, Q = rows(40), rows(20, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(Q), predictor.condition(X[:0]).predict(Q)
    assert np.array_equal(after.mean, before.mean)
    assert np.array_equal(after.std, before.std)


def test_conditioning_point_by_point_is_conditioning_at_once(surrogate: Surrogate) -> None:
    X, pending, Q = rows(40), rows(4, seed=1), rows(50, seed=2)
    predictor = fitted(surrogate, X, response(X))
    once = predictor.condition(pending).predict(Q)
    twice = predictor.condition(pending[:2]).condition(pending[2:]).predict(Q)
    assert twice.mean == pytest.approx(once.mean, abs=1e-6)
    assert twice.std == pytest.approx(once.std, abs=1e-6)


def test_points_pending_twice_or_already_observed_are_harmless(surrogate: Surrogate) -> None:
    X, Q = rows(40), rows(20, seed=1)
    pending = np.vstack([Q[:2], Q[:2], X[:2]])
    predictor = fitted(surrogate, X, response(X)).condition(pending)
    assert sound(predictor.predict(np.vstack([pending, Q])), 26)


def test_conditioning_works_where_nothing_varies(surrogate: Surrogate) -> None:
    X, Q = rows(10), rows(20, seed=1)
    predictor = fitted(surrogate, X, np.zeros(10)).condition(Q[:3])
    assert sound(predictor.predict(Q), 20)


def test_the_handover_is_plain_data_that_the_next_fit_takes(surrogate: Surrogate) -> None:
    X, Q = rows(30), rows(20, seed=1)
    handover = fitted(surrogate, X, response(X)).handover
    start = json.loads(json.dumps(dict(handover)))
    rng = np.random.default_rng(2)
    predictor = surrogate.fit(X, response(X), columns=MIXED.columns, start=start, rng=rng)
    assert sound(predictor.predict(Q), 20)
