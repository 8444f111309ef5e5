"""What repeats and folds say about noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimizer.test_believed import seen
from tradewind.optimizer.repeats import Noise, configurations, noise_of, repeats


def test_without_repeats_or_folds_nothing_is_known() -> None:
    assert noise_of(seen((0.1, 1.0), (0.2, 1.0), (0.3, 2.0))) is Noise.UNKNOWN


def test_folds_tell_of_noise() -> None:
    history = seen((0.1, 1.0), (0.2, 2.0))
    assert noise_of(replace(history, noise=np.array([0.0, 0.1]))) is Noise.PRESENT


@given(st.floats(-1e300, 1e300), st.sampled_from([1e-300, 1.0, 1e300]))
def test_a_repeat_with_the_same_result_tells_that_there_is_no_noise(x: float, unit: float) -> None:
    history = seen((0.1, x), (0.1, x), (0.3, unit), (0.4, -unit))
    assert noise_of(history) is Noise.ABSENT


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
@pytest.mark.parametrize(("gap", "noise"), [(0.01, Noise.PRESENT), (1e-5, Noise.ABSENT)])
def test_a_gap_counts_by_the_spread_of_all_results(unit: float, gap: float, noise: Noise) -> None:
    history = seen((0.1, 0.5 * unit), (0.1, (0.5 + gap) * unit), (0.3, 0.0), (0.4, unit))
    assert noise_of(history) is noise


def test_one_diverged_trial_does_not_hide_the_noise() -> None:
    usual = [(0.1, 0.5), (0.1, 0.6), *((0.2 + 0.01 * i, 0.1 * i) for i in range(8))]
    assert noise_of(seen(*usual, (0.9, -1e6))) is Noise.PRESENT


def test_the_same_configuration_at_another_training_size_is_no_repeat() -> None:
    history = seen((0.1, 1.0), (0.1, 2.0))
    other = replace(history.sizes, finished=np.array([0.5, 1.0]))
    assert [rows.tolist() for rows in repeats(history)] == [[0, 1]]
    assert repeats(replace(history, sizes=other)) == []


@given(st.lists(st.sampled_from([0.0, 0.1, 0.1 + 1e-14, 0.25, 0.5, 0.75, 1 / 3]), min_size=1))
def test_trials_have_the_number_of_the_first_that_differs_by_rounding_only(xs: list[float]) -> None:
    rounded = [round(x, 10) for x in xs]
    expected = [rounded.index(x) for x in rounded]
    assert configurations(seen(*((x, 1.0) for x in xs))).tolist() == expected
