"""Scores that take the cost of a trial into account, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.goals import Beat
from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.price import per_cost, within_cost
from tradewind.optimizer.acquisition.tradeoff import Improvement
from tradewind.types import Normal, Partials


def row(mean: float, std: float) -> Normal:
    return Normal(np.array([mean]), np.array([std]))


def traded(m: float, v: float) -> Partials:
    """A score that depends on the cost already."""
    beat = Beat(score=0.2, quality=math.nan, alpha=0.6, capped=True)
    return Improvement(24).partials(EI(), row(0.4, 0.3), row(m, v), beat=beat)


# ---- scores per cost ----


def test_a_log_score_per_cost_falls_by_the_log_of_the_expected_cost() -> None:
    worth = per_cost(EI().partials(row(0.4, 0.3), 0.6), row(-1.5, 0.2), 0.5)
    drawn = np.exp(-1.5 + 0.2 * np.random.default_rng(0).standard_normal(1_000_000))
    expected = EI()(row(0.4, 0.3), 0.6) - 0.5 * np.log(drawn.mean())
    assert worth.value == pytest.approx(expected, abs=1e-3)
    assert worth.by_cost_mean == -0.5
    assert worth.by_cost_std == pytest.approx(-0.1)  # an uncertain cost is a higher one


def test_a_score_per_cost_to_the_power_0_is_the_score() -> None:
    worth = traded(-1.0, 0.5)
    assert per_cost(worth, row(-1.0, 0.5), 0.0) is worth


def test_a_score_per_cost_adds_to_what_the_cost_was_worth_before() -> None:
    worth = traded(-1.0, 0.5)
    divided = per_cost(worth, row(-1.0, 0.5), 1.0)
    assert divided.by_cost_mean == worth.by_cost_mean - 1.0
    assert divided.by_cost_std == worth.by_cost_std - 0.5


# ---- scores within a cost ----


@given(mean=st.floats(-5, 5), std=st.floats(0.05, 5), limit=st.floats(-5, 5))
def test_a_log_score_within_a_cost_falls_by_the_log_of_the_chance_to_stay_within(
    mean: float, std: float, limit: float
) -> None:
    plain = EI().partials(row(0.4, 0.3), 0.6)
    worth = within_cost(plain, row(mean, std), limit)
    chance = 0.5 * math.erfc((mean - limit) / (std * math.sqrt(2.0)))
    if chance > 1e-300:
        assert worth.value[0] == pytest.approx(plain.value[0] + math.log(chance), abs=1e-9)
    assert worth.value[0] <= plain.value[0]
    assert (worth.by_mean[0], worth.by_std[0]) == (plain.by_mean[0], plain.by_std[0])


@given(m=st.floats(-3, 3), v=st.floats(0.1, 3), limit=st.floats(-3, 3), weighed=st.booleans())
def test_the_slopes_of_a_score_within_a_cost_are_its_derivatives(
    m: float, v: float, limit: float, weighed: bool
) -> None:
    def worth(m: float, v: float) -> Partials:
        plain = EI().partials(row(0.4, 0.3), 0.6)
        before = traded(m, v) if weighed else plain
        return within_cost(before, row(m, v), limit)

    h, at = 1e-5, worth(m, v)
    by_mean = (worth(m + h, v).value[0] - worth(m - h, v).value[0]) / (2 * h)
    by_std = (worth(m, v + h).value[0] - worth(m, v - h).value[0]) / (2 * h)
    assert at.by_cost_mean is not None
    assert at.by_cost_std is not None
    assert at.by_cost_mean[0] == pytest.approx(by_mean, rel=1e-4, abs=1e-5)
    assert at.by_cost_std[0] == pytest.approx(by_std, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("limit", [-1e4, -50.0, 50.0, 1e4])
def test_a_score_within_a_cost_is_finite_however_unlikely_that_is(limit: float) -> None:
    worth = within_cost(EI().partials(row(0.4, 0.3), 0.6), row(0.0, 1.0), limit)
    for part in (worth.value, worth.by_cost_mean, worth.by_cost_std):
        assert np.isfinite(part).all()
