"""What every acquisition must do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tradewind.goals import Acquisition
from tradewind.testing.check import check_all, contract, must
from tradewind.types import Array, Normal, Partials


def normal(mean: float, std: float) -> Normal:
    return Normal(np.array([mean]), np.array([std]))


def scores_are_finite_and_grow_with_the_mean_from_minus_to_plus_ten_thousand(
    acquisition: Acquisition,
) -> None:
    """A score in logarithms is finite and grows with the mean, even 10,000 stds from the best."""
    if not acquisition.log_form:
        return
    z = np.concatenate([-np.logspace(4, -6, 400), [0.0], np.logspace(-6, 4, 400)])
    value = acquisition(Normal(z, np.ones_like(z)), 0.0)
    must(np.isfinite(value).all(), f"it is not finite at z = {z[~np.isfinite(value)][:3]}")
    must((np.diff(value) >= 0.0).all(), "a higher mean has a lower score")
    must((np.diff(value[z < 5.0]) > 0.0).all(), "two different means have the same score")


def derivatives_are_finite_from_minus_to_plus_ten_thousand(acquisition: Acquisition) -> None:
    """The derivatives of a score in logarithms are finite, even 10,000 stds from the best."""
    if not acquisition.log_form:
        return
    z = np.linspace(-1e4, 1e4, 1001)
    worth = acquisition.partials(Normal(z, np.ones_like(z)), 0.0)
    must(np.isfinite(worth.by_mean).all(), "a derivative by the mean is not finite")
    must(np.isfinite(worth.by_std).all(), "a derivative by the std is not finite")


def by_differences(
    score: Callable[[Array, Array], Array], mean: float, std: float
) -> tuple[float, float]:
    """Central differences by mean and std, with steps of 1e-5 std."""
    h = 1e-5 * std
    up, down = np.array([mean + h, mean - h]), np.array([mean, mean])
    f = score(np.concatenate([up, down]), std + np.array([0.0, 0.0, h, -h]))
    actual = up[0] - up[1], (std + h) - (std - h)  # what is left of the steps after rounding
    return float((f[0] - f[1]) / actual[0]), float((f[2] - f[3]) / actual[1])


def partials_are_right_at(acquisition: Acquisition, mean: float, std: float, z: float) -> None:
    best = mean - z * std
    worth = acquisition.partials(normal(mean, std), best)
    wanted = by_differences(lambda m, s: acquisition(Normal(m, s), best), mean, std)
    found = worth.by_mean[0], worth.by_std[0]
    where = f"at mean {mean:g}, std {std:g}, z {z:g}"
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 / std, err_msg=where)


def partials_are_the_derivatives_of_the_score(acquisition: Acquisition) -> None:
    """`partials` returns the derivatives of the score by the mean and by the std."""
    for mean, std in ((0.0, 1.0), (-0.7, 0.1), (0.9, 3.0)):
        for z in (-60.0, -8.0, -1.3, 0.2, 2.0, 30.0):
            partials_are_right_at(acquisition, mean, std, z)


def partials_give_the_same_value_as_the_call(acquisition: Acquisition) -> None:
    """`partials` returns the same value as the call, and no derivatives by cost."""
    predicted = Normal(np.linspace(-30.0, 30.0, 101), np.geomspace(1e-3, 1e3, 101))
    worth = acquisition.partials(predicted, 0.3)
    must(isinstance(worth, Partials), f"it returned {type(worth).__name__}, not Partials")
    np.testing.assert_allclose(worth.value, acquisition(predicted, 0.3), rtol=1e-14)
    by_cost = (worth.by_cost_mean, worth.by_cost_std)
    must(by_cost == (None, None), "an acquisition knows nothing of costs")


def a_best_for_each_row_scores_each_row_against_its_own(acquisition: Acquisition) -> None:
    """`best` may be an array: each row is then compared with its own."""
    predicted = Normal(np.array([0.0, 1.0]), np.array([1.0, 0.5]))
    together = acquisition(predicted, np.array([0.2, -3.0]))
    alone = [acquisition(normal(0.0, 1.0), 0.2)[0], acquisition(normal(1.0, 0.5), -3.0)[0]]
    np.testing.assert_array_equal(together, alone)


def a_higher_mean_is_never_worth_less(acquisition: Acquisition) -> None:
    """With the same std, a higher mean is never worth less."""
    for std in (1e-3, 1.0, 1e3):
        mean = np.linspace(-3.0, 3.0, 61)
        value = acquisition(Normal(mean, np.full(61, std)), 0.5)
        must((np.diff(value) >= 0.0).all(), f"it is, at std {std:g}")


def at_fixes_it_for_one_trial_and_depends_on_the_generator_alone(
    acquisition: Acquisition,
) -> None:
    """`at` returns the acquisition for one trial, the same for the same state of `rng`."""
    fixed, again = (acquisition.at(7, pending=3, rng=np.random.default_rng(5)) for _ in range(2))
    must(fixed == again, f"{fixed} is not {again}")
    must(np.isfinite(fixed(normal(0.1, 1.0), 0.0)).all(), "its score is not finite")
    must(fixed.log_form is acquisition.log_form, "its log_form is another one")


ACQUISITION = contract(
    scores_are_finite_and_grow_with_the_mean_from_minus_to_plus_ten_thousand,
    derivatives_are_finite_from_minus_to_plus_ten_thousand,
    partials_are_the_derivatives_of_the_score,
    partials_give_the_same_value_as_the_call,
    a_best_for_each_row_scores_each_row_against_its_own,
    a_higher_mean_is_never_worth_less,
    at_fixes_it_for_one_trial_and_depends_on_the_generator_alone,
)


def check_acquisition(make: Callable[[], Acquisition]) -> None:
    """Check that an acquisition keeps its contract. `make` makes one.

    Raises an AssertionError that names the first rule that is broken.

    >>> tw.testing.check_acquisition(lambda: tw.strategies.UCB(beta=1.5))
    """
    check_all(ACQUISITION, make)
