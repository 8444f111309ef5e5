"""What every acquisition must do. A new one is one more line in `ACQUISITIONS`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.goals import Acquisition
from tradewind.strategies import EI, MGFI, PI, UCB
from tradewind.types import Array, Normal, Partials

ACQUISITIONS: list[Acquisition] = [
    EI(),
    PI(),
    MGFI(0.0),
    MGFI(0.5),
    MGFI(2.0),
    UCB(0.0),
    UCB(1.5),
]
LOGARITHMIC = [a for a in ACQUISITIONS if a.log_form]


def normal(mean: float, std: float) -> Normal:
    return Normal(np.array([mean]), np.array([std]))


@pytest.mark.parametrize("acquisition", LOGARITHMIC, ids=repr)
def test_scores_are_finite_and_grow_with_the_mean_from_minus_to_plus_ten_thousand(
    acquisition: Acquisition,
) -> None:
    z = np.concatenate([-np.logspace(4, -6, 400), [0.0], np.logspace(-6, 4, 400)])
    value = acquisition(Normal(z, np.ones_like(z)), 0.0)
    assert np.isfinite(value).all()
    assert (np.diff(value) >= 0.0).all()
    assert (np.diff(value[z < 5.0]) > 0.0).all()


@pytest.mark.parametrize("acquisition", LOGARITHMIC, ids=repr)
def test_derivatives_are_finite_from_minus_to_plus_ten_thousand(
    acquisition: Acquisition,
) -> None:
    z = np.linspace(-1e4, 1e4, 1001)
    worth = acquisition.partials(Normal(z, np.ones_like(z)), 0.0)
    assert np.isfinite(worth.by_mean).all()
    assert np.isfinite(worth.by_std).all()


def by_differences(score: Callable[[Array, Array], Array], mean: float, std: float) -> tuple:
    """Central differences by mean and std, with steps of 1e-5 std."""
    h = 1e-5 * std
    up, down = np.array([mean + h, mean - h]), np.array([mean, mean])
    f = score(np.concatenate([up, down]), std + np.array([0.0, 0.0, h, -h]))
    actual = up[0] - up[1], (std + h) - (std - h)  # what is left of the steps after rounding
    return (f[0] - f[1]) / actual[0], (f[2] - f[3]) / actual[1]


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
@settings(max_examples=40)
@given(mean=st.floats(-1.0, 1.0), std=st.floats(0.1, 3.0), z=st.floats(-60.0, 30.0))
def test_partials_are_the_derivatives_of_the_score(
    acquisition: Acquisition, mean: float, std: float, z: float
) -> None:
    best = mean - z * std
    worth = acquisition.partials(normal(mean, std), best)
    by_mean, by_std = by_differences(lambda m, s: acquisition(Normal(m, s), best), mean, std)
    assert worth.by_mean[0] == pytest.approx(by_mean, rel=1e-5, abs=1e-6 / std)
    assert worth.by_std[0] == pytest.approx(by_std, rel=1e-5, abs=1e-6 / std)


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
def test_partials_give_the_same_value_as_the_call(acquisition: Acquisition) -> None:
    predicted = Normal(np.linspace(-30.0, 30.0, 101), np.geomspace(1e-3, 1e3, 101))
    worth = acquisition.partials(predicted, 0.3)
    assert isinstance(worth, Partials)
    np.testing.assert_allclose(worth.value, acquisition(predicted, 0.3), rtol=1e-14)
    assert worth.by_cost_mean is None
    assert worth.by_cost_std is None


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
def test_a_best_for_each_row_scores_each_row_against_its_own(acquisition: Acquisition) -> None:
    predicted = Normal(np.array([0.0, 1.0]), np.array([1.0, 0.5]))
    together = acquisition(predicted, np.array([0.2, -3.0]))
    alone = [
        acquisition(normal(0.0, 1.0), 0.2)[0],
        acquisition(normal(1.0, 0.5), -3.0)[0],
    ]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
def test_a_higher_mean_is_never_worth_less(acquisition: Acquisition) -> None:
    for std in (1e-3, 1.0, 1e3):
        mean = np.linspace(-3.0, 3.0, 61)
        assert (np.diff(acquisition(Normal(mean, np.full(61, std)), 0.5)) >= 0.0).all()


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
def test_at_fixes_it_for_one_trial_and_depends_on_the_generator_alone(
    acquisition: Acquisition,
) -> None:
    fixed = [acquisition.at(7, pending=3, rng=np.random.default_rng(5)) for _ in range(2)]
    assert fixed[0] == fixed[1]
    assert np.isfinite(fixed[0](normal(0.1, 1.0), 0.0)).all()
    assert fixed[0].log_form is acquisition.log_form
