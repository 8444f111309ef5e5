"""What every surrogate must do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from tradewind.optimizer.surrogates.surrogate import Predictor, Surrogate
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Space, TrainSize
from tradewind.testing.check import check_all, contract, must
from tradewind.types import Array, Normal

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
SPACES = (
    MIXED,
    Space({"x": Float(0.0, 1.0)}),
    Space({"flag": Bool(), "one": Categorical(["only"])}),
    Space({"n": Int(1, 2**40, log=True), "m": Int(-3, 3, when={"n": [1]})}),
)


# ---- rows, targets and predictions ----


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


def must_be_sound(predicted: Normal, m: int) -> None:
    mean, std = np.asarray(predicted.mean), np.asarray(predicted.std)
    shapes = mean.shape == (m,) and std.shape == (m,)
    must(shapes, f"for {m} rows, the mean has shape {mean.shape} and the std {std.shape}")
    must(np.isfinite(mean).all() and np.isfinite(std).all(), "a mean or std is not finite")
    must((std >= 0.0).all(), f"a std is negative: {std[std < 0.0]}")


def must_be_near(before: Array, after: Array, chance: float) -> None:
    moved = float(np.sqrt(np.mean((before - after) ** 2)))
    must(moved < chance, f"the means moved by {moved:.2g}, and at most {chance:g} is allowed")


def must_agree(found: Array, wanted: Array | float, *, rel: float, tolerance: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=rel, atol=tolerance)


# ---- the contract ----


def predicts_soundly(surrogate: Surrogate, space: Space, n: int, seed: int) -> None:
    X = rows(n, seed=seed, space=space)
    y = np.random.default_rng(seed).standard_normal(n)
    predictor = fitted(surrogate, X, y, space=space)
    must_be_sound(predictor.predict(rows(12, seed=seed + 1, space=space)), 12)


def predictions_are_finite_and_std_is_not_negative(surrogate: Surrogate) -> None:
    """Predictions are finite, and no std is negative, in any space."""
    for seed, space in enumerate(SPACES):
        for n in (1, 7, 25):
            predicts_soundly(surrogate, space, n, seed)


def the_same_generator_state_gives_the_same_model(surrogate: Surrogate) -> None:
    """Randomness comes from `rng` alone, so the same state gives the same model."""
    X, Q = rows(30), rows(20, seed=1)
    one, two = (fitted(surrogate, X, response(X)).predict(Q) for _ in range(2))
    must(np.array_equal(one.mean, two.mean), "the means of two fits differ")
    must(np.array_equal(one.std, two.std), "the stds of two fits differ")


def fitting_and_predicting_leave_their_arguments_alone(surrogate: Surrogate) -> None:
    """`fit`, `predict` and `condition` do not change the arrays that they get."""
    X, Q = rows(30), rows(20, seed=1)
    y = response(X)
    copies = X.copy(), y.copy(), Q.copy()
    predictor = fitted(surrogate, X, y)
    predictor.predict(Q)
    predictor.condition(Q).predict(Q)
    for name, given, copy in zip("XyQ", (X, y, Q), copies, strict=True):
        must(np.array_equal(given, copy, equal_nan=True), f"{name} was changed")


def what_is_learned_predicts_rows_not_seen(surrogate: Surrogate) -> None:
    """After 120 rows of a smooth function, 60% of the variance of other rows is explained."""
    X, Q = rows(120), rows(200, seed=1)
    error = response(Q) - fitted(surrogate, X, response(X)).predict(Q).mean
    left = float(error.var() / response(Q).var())
    must(left < 0.4, f"{1 - left:.0%} is explained")


def the_order_of_the_observations_does_not_matter(
    surrogate: Surrogate, chance: float = 0.1
) -> None:
    """The order of the observations moves the mean by no more than chance does."""
    X, Q = rows(60), rows(50, seed=1)
    shuffled = np.random.default_rng(2).permutation(len(X))
    before = fitted(surrogate, X, response(X)).predict(Q).mean
    after = fitted(surrogate, X[shuffled], response(X[shuffled])).predict(Q).mean
    must_be_near(before, after, chance)


def the_labels_of_categories_do_not_matter(surrogate: Surrogate, chance: float = 0.1) -> None:
    """The order in which categories are listed moves the mean by no more than chance does."""
    X, Q = rows(60), rows(50, seed=1)
    labels = np.array([2, 0, 3, 1])

    def relabelled(X: Array) -> Array:
        X = X.copy()
        X[:, 4] = (labels[(X[:, 4] * 4).astype(int)] + 0.5) / 4
        return X

    before = fitted(surrogate, X, response(X)).predict(Q).mean
    after = fitted(surrogate, relabelled(X), response(X)).predict(relabelled(Q)).mean
    must_be_near(before, after, chance)


def a_row_is_predicted_alone_as_in_company(surrogate: Surrogate) -> None:
    """A row is predicted the same, alone or together with other rows."""
    X, Q = rows(40), rows(300, seed=1)
    predictor = fitted(surrogate, X, response(X))
    together = predictor.predict(Q)
    for i in (0, 150, 299):
        alone = predictor.predict(Q[i : i + 1])
        must_agree(alone.mean, together.mean[i : i + 1], rel=1e-9, tolerance=1e-12)
        must_agree(alone.std, together.std[i : i + 1], rel=1e-6, tolerance=1e-9)


def no_rows_are_predicted_as_no_values(surrogate: Surrogate) -> None:
    """`predict` of no rows returns no values."""
    X = rows(10)
    must_be_sound(fitted(surrogate, X, response(X)).predict(X[:0]), 0)


def a_handful_of_observations_is_enough_to_fit(surrogate: Surrogate) -> None:
    """One, two or three observations are enough to fit."""
    for n in (1, 2, 3):
        X = rows(n)
        must_be_sound(fitted(surrogate, X, response(X)).predict(rows(20, seed=1)), 20)


def a_point_observed_many_times_with_one_value_fits(surrogate: Surrogate) -> None:
    """A configuration may be observed many times with the same value."""
    X = np.repeat(rows(2), 10, axis=0)
    must_be_sound(fitted(surrogate, X, response(X)).predict(rows(20, seed=1)), 20)


def a_point_observed_many_times_with_different_values_fits(surrogate: Surrogate) -> None:
    """A configuration observed many times with different values is predicted as their mean."""
    X = np.repeat(rows(1), 20, axis=0)
    y = np.random.default_rng(0).standard_normal(20)
    predictor = fitted(surrogate, X, y)
    must_be_sound(predictor.predict(rows(20, seed=1)), 20)
    must_agree(predictor.predict(X[:1]).mean, y.mean(), rel=0.0, tolerance=0.5)


def constant_targets_are_predicted_as_that_constant(surrogate: Surrogate) -> None:
    """If all values are the same, that value is predicted, however large or small it is."""
    for value in (0.0, 1.0, -3.5, 1e-300, 1e300):
        predicted = fitted(surrogate, rows(20), np.full(20, value)).predict(rows(20, seed=1))
        must_be_sound(predicted, 20)
        must_agree(predicted.mean, value, rel=1e-6, tolerance=1e-305)


def targets_of_any_magnitude_are_predicted_in_their_own_units(surrogate: Surrogate) -> None:
    """Values of any magnitude, from 1e-300 to 1e300, are predicted in their own units."""
    X, Q = rows(30), rows(20, seed=1)
    for scale in (1e-300, 1e-9, 1e9, 1e300):
        predicted = fitted(surrogate, X, scale * response(X)).predict(Q)
        must_be_sound(predicted, 20)
        mean = predicted.mean / scale
        must((np.abs(mean) < 10.0).all(), f"means of {np.abs(mean).max():.2g} units at {scale:g}")
        must(np.ptp(mean) > 0.1, f"all means are alike at {scale:g}")


def a_thousand_observations_fit(surrogate: Surrogate) -> None:
    """A thousand observations can be fitted."""
    X = rows(1000)
    must_be_sound(fitted(surrogate, X, response(X)).predict(rows(50, seed=1)), 50)


def known_noise_of_any_size_fits(surrogate: Surrogate) -> None:
    """The known noise of the values may be of any size, and zero."""
    X = rows(30)
    for level in (0.0, 1e-12, 0.1, 1e6):
        noise = level * np.random.default_rng(0).random(30)
        must_be_sound(fitted(surrogate, X, response(X), noise=noise).predict(X), 30)


def a_column_inactive_in_all_observations_can_be_active_in_a_prediction(
    surrogate: Surrogate,
) -> None:
    """A parameter that was inactive in all observations may be active in a prediction."""
    X, Q = rows(200), rows(200, seed=1)
    sgd = np.abs(Q[:, 4] - 0.125) < 0.01
    other = X[np.abs(X[:, 4] - 0.125) > 0.01][:40]
    must_be_sound(fitted(surrogate, other, response(other)).predict(Q[sgd]), int(sgd.sum()))


def a_column_active_in_all_observations_can_be_inactive_in_a_prediction(
    surrogate: Surrogate,
) -> None:
    """A parameter that was active in all observations may be inactive in a prediction."""
    X, Q = rows(300), rows(50, seed=1)
    sgd = X[np.abs(X[:, 4] - 0.125) < 0.01][:40]
    must_be_sound(fitted(surrogate, sgd, response(sgd)).predict(Q), 50)


# ---- conditioning: trials that are still running ----


def conditioning_removes_the_uncertainty_at_pending_points(surrogate: Surrogate) -> None:
    """`condition` makes the model certain at the given rows: a tenth of the std or less."""
    X, pending = rows(40), rows(5, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(pending), predictor.condition(pending).predict(pending)
    left = float((after.std / np.maximum(before.std, 1e-300)).max())
    must((after.std < 0.1 * before.std).all(), f"{left:.0%} of a std is left")


def conditioning_keeps_the_mean_at_pending_points(surrogate: Surrogate) -> None:
    """`condition` keeps the mean at the given rows."""
    X, pending = rows(40), rows(5, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(pending), predictor.condition(pending).predict(pending)
    must_agree(after.mean, before.mean, rel=1e-6, tolerance=1e-6)


def conditioning_raises_no_std_anywhere(surrogate: Surrogate) -> None:
    """`condition` raises the std nowhere."""
    X, Q = rows(40), rows(100, seed=2)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(Q), predictor.condition(rows(5, seed=1)).predict(Q)
    must((after.std <= before.std * (1 + 1e-6) + 1e-9).all(), "a std is larger than before")


def conditioning_leaves_the_predictor_itself_as_it_was(surrogate: Surrogate) -> None:
    """`condition` returns a new predictor, and does not change the old one."""
    X, pending = rows(40), rows(5, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before = predictor.predict(pending)
    predictor.condition(pending)
    must(np.array_equal(predictor.predict(pending).std, before.std), "the old one has changed")


def conditioning_on_nothing_changes_nothing(surrogate: Surrogate) -> None:
    """`condition` with no rows changes no prediction."""
    X, Q = rows(40), rows(20, seed=1)
    predictor = fitted(surrogate, X, response(X))
    before, after = predictor.predict(Q), predictor.condition(X[:0]).predict(Q)
    must(np.array_equal(after.mean, before.mean), "a mean has changed")
    must(np.array_equal(after.std, before.std), "a std has changed")


def conditioning_point_by_point_is_conditioning_at_once(surrogate: Surrogate) -> None:
    """`condition` on two rows and then on two more is the same as on all four."""
    X, pending, Q = rows(40), rows(4, seed=1), rows(50, seed=2)
    predictor = fitted(surrogate, X, response(X))
    once = predictor.condition(pending).predict(Q)
    twice = predictor.condition(pending[:2]).condition(pending[2:]).predict(Q)
    must_agree(twice.mean, once.mean, rel=1e-6, tolerance=1e-6)
    must_agree(twice.std, once.std, rel=1e-6, tolerance=1e-6)


def points_pending_twice_or_already_observed_are_harmless(surrogate: Surrogate) -> None:
    """`condition` takes rows that occur twice, and rows that were already observed."""
    X, Q = rows(40), rows(20, seed=1)
    pending = np.vstack([Q[:2], Q[:2], X[:2]])
    predictor = fitted(surrogate, X, response(X)).condition(pending)
    must_be_sound(predictor.predict(np.vstack([pending, Q])), 26)


def conditioning_works_where_nothing_varies(surrogate: Surrogate) -> None:
    """`condition` works if all values are the same."""
    X, Q = rows(10), rows(20, seed=1)
    predictor = fitted(surrogate, X, np.zeros(10)).condition(Q[:3])
    must_be_sound(predictor.predict(Q), 20)


def the_handover_is_plain_data_that_the_next_fit_takes(surrogate: Surrogate) -> None:
    """`handover` is plain data (JSON), and the next fit takes it as its `start`."""
    X, Q = rows(30), rows(20, seed=1)
    handover = fitted(surrogate, X, response(X)).handover
    start = json.loads(json.dumps(dict(handover)))
    rng = np.random.default_rng(2)
    predictor = surrogate.fit(X, response(X), columns=MIXED.columns, start=start, rng=rng)
    must_be_sound(predictor.predict(Q), 20)


RULES: Sequence[Callable[[Surrogate], None]] = (
    predictions_are_finite_and_std_is_not_negative,
    the_same_generator_state_gives_the_same_model,
    fitting_and_predicting_leave_their_arguments_alone,
    what_is_learned_predicts_rows_not_seen,
    the_order_of_the_observations_does_not_matter,
    the_labels_of_categories_do_not_matter,
    a_row_is_predicted_alone_as_in_company,
    no_rows_are_predicted_as_no_values,
    a_handful_of_observations_is_enough_to_fit,
    a_point_observed_many_times_with_one_value_fits,
    a_point_observed_many_times_with_different_values_fits,
    constant_targets_are_predicted_as_that_constant,
    targets_of_any_magnitude_are_predicted_in_their_own_units,
    a_thousand_observations_fit,
    known_noise_of_any_size_fits,
    a_column_inactive_in_all_observations_can_be_active_in_a_prediction,
    a_column_active_in_all_observations_can_be_inactive_in_a_prediction,
    conditioning_removes_the_uncertainty_at_pending_points,
    conditioning_keeps_the_mean_at_pending_points,
    conditioning_raises_no_std_anywhere,
    conditioning_leaves_the_predictor_itself_as_it_was,
    conditioning_on_nothing_changes_nothing,
    conditioning_point_by_point_is_conditioning_at_once,
    points_pending_twice_or_already_observed_are_harmless,
    conditioning_works_where_nothing_varies,
    the_handover_is_plain_data_that_the_next_fit_takes,
)
SURROGATE = contract(*RULES)


def check_surrogate(make: Callable[[], Surrogate]) -> None:
    """Check that a surrogate keeps its contract. `make` makes one, and is called for every rule.

    Raises an AssertionError that names the first rule that is broken.

    >>> tw.testing.check_surrogate(tw.strategies.GaussianProcess)  # doctest: +SKIP
    """
    check_all(SURROGATE, make)
