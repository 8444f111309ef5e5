"""Units and scales: what goes forward comes back, at any size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from tradewind.goals.goal import log_relative_cost
from tradewind.optimizer.log_error import LogError
from tradewind.optimizer.transforms import Clip, Standardize
from tradewind.types import Normal

sizes = st.sampled_from([1e-300, 1e-150, 1e-9, 1.0, 1e9, 1e150, 1e300])
units = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30).map(np.array)
qualities = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30).map(np.array)


# ---- Standardize ----


@given(unit=units, size=sizes)
def test_standardizing_inverts_at_any_size(unit: np.ndarray, size: float) -> None:
    y = unit * size
    scale = Standardize.of(y)
    np.testing.assert_allclose(
        scale.inverse(scale.forward(y)), y, rtol=1e-12, atol=1e-12 * float(np.abs(y).max())
    )


@given(unit=units, size=sizes)
def test_standardized_values_are_finite_at_any_size(unit: np.ndarray, size: float) -> None:
    scale = Standardize.of(unit * size)
    assert scale.scale > 0.0
    assert np.isfinite(scale.forward(unit * size)).all()


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_standardized_data_have_mean_0_and_standard_deviation_1(size: float) -> None:
    y = np.random.default_rng(0).normal(size=50) * size
    t = Standardize.of(y).forward(y)
    assert t.mean() == pytest.approx(0.0, abs=1e-12)
    assert t.std() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("value", [-3.0, 0.0, 1e-300, 1e300, 5e-324])
@pytest.mark.parametrize("n", [1, 7])
def test_constant_data_standardize_to_0(value: float, n: int) -> None:
    y = np.full(n, value)
    np.testing.assert_allclose(Standardize.of(y).forward(y), 0.0, atol=1e-12)


def test_the_smallest_numbers_there_are_do_not_make_the_scale_0() -> None:
    y = np.array([0.0, 0.0, 5e-324])
    assert np.isfinite(Standardize.of(y).forward(y)).all()


def test_no_data_standardize_to_themselves() -> None:
    assert Standardize.of(np.empty(0)) == Standardize(0.0, 1.0)


@given(unit=units, mean=st.floats(-3.0, 3.0), std=st.floats(0.0, 3.0))
def test_a_standardized_marginal_returns_to_natural_units(
    unit: np.ndarray, mean: float, std: float
) -> None:
    scale = Standardize.of(unit)
    natural = scale.natural(Normal(np.array([mean]), np.array([std])))
    assert natural.mean[0] == pytest.approx(mean * scale.scale + scale.shift)
    assert natural.std[0] == pytest.approx(std * scale.scale)


# ---- Clip ----


@given(y=qualities)
def test_clipping_keeps_the_order(y: np.ndarray) -> None:
    clipped = Clip.of(y).forward(y)
    order = np.argsort(y, kind="stable")
    assert (np.diff(clipped[order]) >= 0.0).all()


@given(y=qualities)
def test_clipping_changes_nothing_from_the_median_up(y: np.ndarray) -> None:
    clipped = Clip.of(y).forward(y)
    good = y >= np.median(y)
    np.testing.assert_array_equal(clipped[good], y[good])


def test_collapsed_outcomes_count_as_three_times_as_far_from_the_median_as_the_best() -> None:
    y = np.array([0.9, 0.8, 0.7, 0.6, -1e6])
    np.testing.assert_allclose(Clip.of(y).forward(y), [0.9, 0.8, 0.7, 0.6, 0.1])


def test_reach_says_how_far_outcomes_may_fall() -> None:
    y = np.array([0.9, 0.8, 0.7, 0.6, -1e6])
    assert Clip.of(y, reach=1.0).floor == pytest.approx(0.5)


@pytest.mark.parametrize("value", [-2.0, 0.0, 1e-300, 1e300])
def test_clipping_leaves_constant_data_alone(value: float) -> None:
    y = np.full(5, value)
    np.testing.assert_array_equal(Clip.of(y).forward(y), y)


def test_clipping_leaves_no_data_alone() -> None:
    assert Clip.of(np.empty(0)).floor == -math.inf


def test_a_majority_that_ties_at_the_best_does_not_hide_the_differences_among_the_others() -> None:
    y = np.array([1.0, 1.0, 1.0, 1.0, 0.9, 0.8, -1e6])
    clipped = Clip.of(y).forward(y)
    np.testing.assert_array_equal(clipped[:6], y[:6])
    assert 0.0 < clipped[6] < 0.8


@given(y=qualities, ties=st.integers(1, 40))
def test_clipping_never_makes_data_constant_that_are_not(y: np.ndarray, ties: int) -> None:
    y = np.concatenate([y, np.full(ties, y.max())])
    if y.min() < y.max():
        assert Clip.of(y).forward(y).min() < y.max()


@pytest.mark.parametrize("size", [1e300, 1e308])
def test_a_floor_beyond_the_largest_number_is_no_floor(size: float) -> None:
    y = np.array([-1.0, 0.5, 1.0]) * size
    assert np.isfinite(Clip.of(y).forward(y)).all()


@pytest.mark.parametrize("transform", [Clip(0.3), Clip(-np.inf)], ids=repr)
def test_marginals_of_quality_that_was_not_bent_are_in_natural_units_already(
    transform: Clip,
) -> None:
    marginal = Normal(np.array([0.1, 0.5]), np.array([0.2, 0.3]))
    assert transform.natural(marginal) == marginal
    np.testing.assert_array_equal(transform.slope(marginal.mean), 1.0)


@given(y=qualities)
def test_the_identity_changes_nothing(y: np.ndarray) -> None:
    np.testing.assert_array_equal(Clip(-np.inf).forward(y), y)


# ---- LogError ----


@given(y=st.floats(-1e3, 1.0 - 2e-6))
def test_the_log_error_inverts(y: float) -> None:
    back = LogError().inverse(LogError().forward(np.array([y])))[0]
    assert back == pytest.approx(y, rel=1e-12, abs=1e-12)


def test_the_log_error_grows_with_accuracy_and_ends_at_the_smallest_error() -> None:
    y = np.array([-0.5, 0.0, 0.5, 0.9, 0.99, 0.99999, 1.0])
    t = LogError(smallest=1e-4).forward(y)
    assert (np.diff(t[:6]) > 0.0).all()
    assert t[1] == 0.0
    assert t[5] == t[6] == pytest.approx(-math.log(1e-4))


def test_the_log_error_refuses_what_is_no_accuracy() -> None:
    with pytest.raises(ValueError, match=r"needs values up to 1, but got 1\.5"):
        LogError().forward(np.array([0.5, 1.5]))


@given(y=st.floats(-10.0, 0.999))
def test_the_slope_of_the_log_error_is_its_derivative(y: float) -> None:
    h = 1e-6 * (1.0 - y)
    up, down = LogError().forward(np.array([y + h, y - h]))
    assert LogError().slope(np.array([y]))[0] == pytest.approx((up - down) / (2.0 * h), rel=1e-6)


@given(mean=st.floats(-2.0, 10.0), std=st.floats(0.01, 2.0))
def test_a_marginal_of_the_log_error_returns_with_the_moments_of_accuracy(
    mean: float, std: float
) -> None:
    def expected(power: int) -> float:
        """E[error^power] with error = exp(−t), t ~ N(mean, std²)."""

        def integrand(x: float) -> float:
            return math.exp(-power * (mean + std * x) - 0.5 * x * x) / math.sqrt(2.0 * math.pi)

        peak = -power * std
        return quad(integrand, peak - 12.0, peak + 12.0, epsabs=0.0, epsrel=1e-11)[0]

    natural = LogError().natural(Normal(np.array([mean]), np.array([std])))
    assert 1.0 - natural.mean[0] == pytest.approx(expected(1), rel=1e-9, abs=1e-15)
    variance = expected(2) - expected(1) ** 2
    assert natural.std[0] == pytest.approx(math.sqrt(variance), rel=1e-6, abs=1e-11)


@pytest.mark.parametrize("std", [0.0, 1e-12, 30.0, 1e3])
@pytest.mark.parametrize("mean", [-1e3, 0.0, 1e3])
def test_a_marginal_of_the_log_error_is_finite_however_uncertain(mean: float, std: float) -> None:
    natural = LogError().natural(Normal(np.array([mean]), np.array([std])))
    assert np.isfinite(natural.mean[0])
    assert np.isfinite(natural.std[0])
    assert natural.std[0] > 0.0


# ---- costs ----


@given(
    ratio=st.floats(-20.0, 20.0),
    reference=st.sampled_from([1e-12, 1e-3, 1.0, 3600.0, 1e12]),
)
def test_the_log_relative_cost_of_a_cost_inverts(ratio: float, reference: float) -> None:
    cost = reference * np.exp(np.array([ratio]))
    assert log_relative_cost(cost, reference)[0] == pytest.approx(ratio, rel=1e-12, abs=1e-12)


def test_a_cost_of_nothing_counts_as_a_billionth_of_the_reference() -> None:
    ratios = log_relative_cost(np.array([0.0, 1e-30, 60.0]), 60.0)
    np.testing.assert_allclose(ratios, [math.log(1e-9), math.log(1e-9), 0.0])
