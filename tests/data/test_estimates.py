"""Means and differences with their uncertainty: against scipy, and against simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tradewind.data.estimates import (
    Estimate,
    ResultNoise,
    difference_of_means,
    mean_of_folds,
    mean_of_runs,
    paired_difference,
)
from tradewind.data.noise import repeat_noise

samples = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8)


def bounds(estimate: Estimate, level: float) -> tuple[float, float]:
    interval = estimate.interval(level)
    assert interval is not None
    return interval


def test_runs_vary_as_much_as_the_noise_of_the_study_says() -> None:
    noise = ResultNoise(0.3, 4.0, "repeats")
    assert mean_of_runs([1.0, 2.0, 6.0], noise) == Estimate(3.0, pytest.approx(0.3 / 3**0.5), 4.0)
    estimate = difference_of_means([1.0, 3.0], [5.0], noise)
    assert estimate == Estimate(3.0, pytest.approx(0.3 * math.sqrt(1.5)), 4.0)
    assert difference_of_means([5.0], [1.0, 3.0], noise).error == estimate.error
    low, high = bounds(mean_of_runs([0.0], noise), 0.9)
    assert high == -low == pytest.approx(0.3 * stats.t.ppf(0.95, 4))


def test_where_all_repeats_agree_only_what_was_repeated_is_known_to_be_exact() -> None:
    exact = ResultNoise(0.0, 1.0, "repeats")
    assert mean_of_runs([2.0], exact) == difference_of_means([1.0], [3.0], exact) == Estimate(2.0)
    assert mean_of_runs([2.0, 2.0], exact).error == 0.0
    assert difference_of_means([1.0, 1.0], [3.0], exact).probability_positive == 1.0
    assert difference_of_means([1.0, 1.0], [1.0], exact).probability_positive == 0.5


def test_single_runs_and_single_folds_say_nothing_about_the_noise() -> None:
    for unknown in (
        mean_of_runs([2.0], None),
        mean_of_folds([2.0], held_out=0.2),
        difference_of_means([1.0], [3.0], None),
        paired_difference([1.0], [3.0], held_out=0.2),
    ):
        assert unknown == Estimate(2.0)
        assert unknown.interval(0.9) is unknown.margin(0.9) is unknown.probability_positive is None


def test_without_correction_the_paired_difference_is_the_paired_t_test() -> None:
    a, b = [0.8, 0.7, 0.9, 0.6], [0.85, 0.78, 0.91, 0.7]
    expected = stats.ttest_rel(b, a).confidence_interval(0.95)
    low, high = bounds(paired_difference(a, b, held_out=0.0), 0.95)
    assert (low, high) == pytest.approx((expected.low, expected.high))


def test_the_correction_is_that_of_nadeau_and_bengio() -> None:
    a, b = [0.0] * 5, [0.1, 0.2, 0.3, 0.4, 0.5]
    plain = paired_difference(a, b, held_out=0.0)
    corrected = paired_difference(a, b, held_out=1 / 5)
    assert plain.error is not None
    assert corrected.error is not None
    assert (corrected.error / plain.error) ** 2 == pytest.approx((1 / 5 + 1 / 4) / (1 / 5))
    assert corrected == mean_of_folds(b, held_out=1 / 5)


@pytest.mark.parametrize("k", [3, 5, 10])
def test_intervals_of_correlated_folds_hold_the_truth_as_often_as_they_say(k: int) -> None:
    rng = np.random.default_rng(k)
    shared = rng.normal(size=(4000, 1)) * math.sqrt(1 / k)  # correlation 1/k between folds
    differences = shared + rng.normal(size=(4000, k)) * math.sqrt(1 - 1 / k)
    zeros = [0.0] * k

    def coverage(held_out: float) -> float:
        intervals = [
            bounds(paired_difference(zeros, d, held_out=held_out), 0.9) for d in differences
        ]
        return float(np.mean([low < 0.0 < high for low, high in intervals]))

    assert coverage(1 / k) == pytest.approx(0.9, abs=0.02)
    assert coverage(0.0) < 0.85


@given(samples, st.floats(1e-3, 1e3))
def test_estimates_do_not_depend_on_the_unit(sample: list[float], unit: float) -> None:
    zeros = [0.0] * len(sample)
    small, large = (
        paired_difference(zeros, [s * x for x in sample], held_out=0.2) for s in (1.0, unit)
    )
    assert small.error is not None
    assert large.error is not None
    size = max(map(abs, sample))
    assert large.mean == pytest.approx(unit * small.mean, rel=1e-9, abs=1e-12 * unit * size)
    assert large.error == pytest.approx(unit * small.error, rel=1e-6, abs=1e-12 * unit * size)


def test_huge_values_have_a_mean_too() -> None:
    assert mean_of_runs([1e300, 3e300], None).mean == pytest.approx(2e300)
    low, high = bounds(paired_difference([1e300, 3e300], [5e300, 6e300], held_out=0.5), 0.9)
    assert -math.inf < low < high < math.inf


def test_known_variance_gives_a_normal_interval() -> None:
    estimate = Estimate(1.0, 2.0)
    assert estimate.margin(0.95) == pytest.approx(2.0 * stats.norm.ppf(0.975))
    assert estimate.probability_positive == pytest.approx(stats.norm.cdf(0.5))


def test_the_noise_of_repeats_is_pooled_over_configurations() -> None:
    values = np.array([1.0, 3.0, 10.0, 7.0, 7.0, 10.0])
    groups = [np.array(rows) for rows in ([0, 1], [2], [3, 4], [5])]
    assert repeat_noise(values, groups) == pytest.approx(2.0 / 2)
    assert repeat_noise(values, [np.array([i]) for i in range(6)]) == 0.0
    assert repeat_noise(np.array([1e300, -1e300]), groups[:1]) == pytest.approx(1e300)
    assert repeat_noise(np.zeros(2), groups[:1]) == 0.0
