"""Acquisitions against their definitions, by numerical integration."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from tradewind.goals import Acquisition
from tradewind.optimizer.acquisition.ei import EI, log_ei, log_h
from tradewind.optimizer.acquisition.mgfi import MGFI, log_mgfi
from tradewind.optimizer.acquisition.pi import PI, log_pi
from tradewind.optimizer.acquisition.schedules import Exponential, Linear, LogNormal
from tradewind.optimizer.acquisition.ucb import UCB
from tradewind.types import Normal

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)

means = st.floats(-10.0, 10.0)
stds = st.floats(-4.0, 2.0).map(lambda e: 10.0**e)
scores = st.floats(-40.0, 40.0)  # (mean − best) / std
ts = st.floats(0.0, 10.0)


def normal(mean: float, std: float) -> Normal:
    return Normal(np.array([mean]), np.array([std]))


# ---- the definitions, integrated ----


def log_moment(power: int, rate: float) -> float:
    """log ∫₀^∞ s^power exp(rate·s − s²/2) ds, with the peak of the exponential taken out."""
    if rate > 0.0:  # exp(rate·s − s²/2) = exp(rate²/2)·exp(−(s − rate)²/2)
        peak, points = 0.5 * rate**2, [rate]
        low, high = max(0.0, rate - 13.0), rate + 13.0
    else:
        peak, points = 0.0, None
        low, high = 0.0, min(13.0, 60.0 / max(-rate, 1e-9))

    def integrand(s: float) -> float:
        exponent = -0.5 * (s - rate) ** 2 if rate > 0.0 else rate * s - 0.5 * s * s
        return s**power * math.exp(exponent)

    options = {"epsabs": 0.0, "epsrel": 1e-11, "limit": 200}
    inside = quad(integrand, low, high, points=points, **options)[0]
    return math.log(inside) + peak


def integrated_log_ei(mean: float, std: float, best: float) -> float:
    """y = best + std·s: E[y − best; y > best] = ∫ std·s·φ(x + s) ds with x = (best − mean)/std."""
    x = (best - mean) / std
    return math.log(std) - 0.5 * x * x - LOG_SQRT_2PI + log_moment(1, -x)


def integrated_log_pi(mean: float, std: float, best: float) -> float:
    x = (best - mean) / std
    return -0.5 * x * x - LOG_SQRT_2PI + log_moment(0, -x)


def integrated_log_mgfi(mean: float, std: float, best: float, t: float) -> float:
    x = (best - mean) / std
    return -t - 0.5 * x * x - LOG_SQRT_2PI + log_moment(0, std * t - x)


def expectation(gain: Callable[[float], float], mean: float, std: float, best: float) -> float:
    """E[gain(y); y > best], straight from the definition."""

    def integrand(y: float) -> float:
        z = (y - mean) / std
        return gain(y) * math.exp(-0.5 * z * z) / (std * math.sqrt(2.0 * math.pi))

    low, high = max(best, mean - 14.0 * std), max(best, mean) + 14.0 * std
    return quad(integrand, low, high, epsabs=0.0, epsrel=1e-11, limit=200)[0]


@given(mean=means, std=stds, z=scores)
def test_log_ei_is_the_logarithm_of_its_integral(mean: float, std: float, z: float) -> None:
    best = mean - z * std
    expected = integrated_log_ei(mean, std, best)
    assert float(log_ei(mean, std, best)) == pytest.approx(expected, rel=1e-12, abs=1e-8)


@given(mean=means, std=stds, z=scores)
def test_log_pi_is_the_logarithm_of_its_integral(mean: float, std: float, z: float) -> None:
    best = mean - z * std
    expected = integrated_log_pi(mean, std, best)
    assert float(log_pi(mean, std, best)) == pytest.approx(expected, rel=1e-12, abs=1e-8)


@given(mean=means, std=stds, z=scores, t=ts)
def test_log_mgfi_is_the_logarithm_of_its_integral(
    mean: float, std: float, z: float, t: float
) -> None:
    best = mean - z * std
    expected = integrated_log_mgfi(mean, std, best, t)
    assert float(log_mgfi(mean, std, best, t)) == pytest.approx(expected, rel=1e-12, abs=1e-8)


@pytest.mark.parametrize("z", [-1e4, -3e3, -200.0, -50.001, -49.999, 200.0, 1e4])
def test_log_ei_is_right_where_the_value_itself_would_under_or_overflow(z: float) -> None:
    expected = integrated_log_ei(z, 1.0, 0.0)
    assert float(log_ei(z, 1.0, 0.0)) == pytest.approx(expected, rel=1e-11, abs=1e-8)


@given(mean=means, std=st.floats(0.01, 10.0), z=st.floats(-5.0, 5.0))
def test_ei_is_the_expected_improvement(mean: float, std: float, z: float) -> None:
    best = mean - z * std
    value = np.exp(EI()(normal(mean, std), best))[0]
    assert value == pytest.approx(expectation(lambda y: y - best, mean, std, best), rel=1e-8)


@given(mean=means, std=st.floats(0.01, 10.0), z=st.floats(-5.0, 5.0))
def test_pi_is_the_probability_of_improvement(mean: float, std: float, z: float) -> None:
    best = mean - z * std
    value = np.exp(PI()(normal(mean, std), best))[0]
    assert value == pytest.approx(expectation(lambda y: 1.0, mean, std, best), rel=1e-8)


@given(mean=means, std=st.floats(0.01, 2.0), z=st.floats(-5.0, 5.0), t=st.floats(0.0, 2.0))
def test_mgfi_is_the_moment_generating_function_of_the_improvement(
    mean: float, std: float, z: float, t: float
) -> None:
    best = mean - z * std
    value = np.exp(MGFI(t)(normal(mean, std), best))[0]
    expected = expectation(lambda y: math.exp(t * (y - best - 1.0)), mean, std, best)
    assert value == pytest.approx(expected, rel=1e-8)


# ---- what follows from the definitions ----


@pytest.mark.parametrize("edge", [-50.0, 0.0])
def test_the_improvement_at_std_1_joins_where_its_formula_changes(edge: float) -> None:
    below, at = log_h(np.array([np.nextafter(edge, -np.inf), edge]))
    assert below == pytest.approx(at, rel=0.0, abs=1e-10)


@given(mean=means, std=stds, z=scores)
def test_mgfi_at_no_t_is_the_probability_of_improvement(mean: float, std: float, z: float) -> None:
    predicted, best = normal(mean, std), mean - z * std
    assert MGFI(0.0)(predicted, best)[0] == PI()(predicted, best)[0]
    small = MGFI(1e-12)(predicted, best)[0]
    assert small == pytest.approx(PI()(predicted, best)[0], abs=1e-7)


@given(mean=means, std=stds, z=scores, shift=means, scale=stds)
def test_expected_improvement_scales_with_the_units_and_ignores_their_origin(
    mean: float, std: float, z: float, shift: float, scale: float
) -> None:
    # in units of 2**k nothing is rounded, and the equality is exact but for the logarithm
    unit = 2.0 ** round(math.log2(scale))
    best = mean - z * std
    plain = EI()(normal(mean, std), best)[0]
    scaled = EI()(normal(unit * mean, unit * std), unit * best)[0]
    assert scaled == pytest.approx(plain + math.log(unit), rel=1e-12, abs=1e-12)
    # a shift rounds (mean − best) / std by up to 1e-15·(|mean| + |shift|)/std
    moved = EI()(normal(mean + shift, std), best + shift)[0]
    blur = 1e-14 * (20.0 + abs(z) * std) / std
    assert moved == pytest.approx(plain, rel=1e-12, abs=1e-9 + blur * (abs(z) + 2.0))


@given(mean=means, std=stds, best=means, beta=st.floats(0.0, 10.0))
def test_the_upper_confidence_bound_is_beta_standard_deviations_above_the_mean(
    mean: float, std: float, best: float, beta: float
) -> None:
    assert UCB(beta)(normal(mean, std), best)[0] == mean + beta * std


# ---- schedules ----

SCHEDULES = [Linear, Exponential]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_cooling_goes_from_start_to_end_over_its_horizon_and_stays_there(
    schedule: type[Linear | Exponential],
) -> None:
    cooling = schedule(2.0, 0.1, horizon=40)
    ts = [cooling.at(i, rng=RNG) for i in range(100)]
    assert ts[0] == 2.0
    assert ts[40:] == pytest.approx([0.1] * 60)
    assert (np.diff(ts[:41]) < 0.0).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_cooling_is_as_published_by_default(schedule: type[Linear | Exponential]) -> None:
    assert schedule() == schedule(start=2.0, end=0.1, horizon=1000)


def test_linear_cooling_falls_by_equal_steps() -> None:
    steps = np.diff([Linear(2.0, 0.1, horizon=10).at(i, rng=RNG) for i in range(11)])
    np.testing.assert_allclose(steps, -0.19)


def test_exponential_cooling_falls_by_equal_factors() -> None:
    ts = np.array([Exponential(2.0, 0.1, horizon=10).at(i, rng=RNG) for i in range(11)])
    np.testing.assert_allclose(ts[1:] / ts[:-1], 20.0**-0.1)


def test_log_normal_draws_have_the_given_moments_of_log_t() -> None:
    rng = np.random.default_rng(1)
    logs = np.log([LogNormal(-0.5, 0.7).at(3, rng=rng) for _ in range(4000)])
    assert logs.mean() == pytest.approx(-0.5, abs=0.05)
    assert logs.std() == pytest.approx(0.7, abs=0.05)


def test_log_normal_draws_depend_on_the_generator_alone() -> None:
    a, b = (LogNormal().at(i, rng=np.random.default_rng(7)) for i in (0, 500))
    assert a == b > 0.0


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "bad",
    [{"start": 0.0}, {"end": -1.0}, {"start": math.inf}, {"end": math.nan}],
    ids=str,
)
def test_cooling_refuses_ends_that_are_not_positive(
    schedule: type[Linear | Exponential], bad: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match=r"(start|end) must be a number > 0, but got"):
        schedule(**bad)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("horizon", [0, -5, 2.5, True, "ten"])
def test_cooling_refuses_a_horizon_that_is_not_a_number_of_trials(
    schedule: type[Linear | Exponential], horizon: object
) -> None:
    with pytest.raises(
        ValueError, match="horizon must be a whole number from 1 to 1000000000, but got"
    ):
        schedule(horizon=horizon)


@pytest.mark.parametrize("bad", [(0.0, -1.0), (math.nan, 1.0), (math.inf, 1.0), (0.0, math.inf)])
def test_log_normal_refuses_what_is_not_a_distribution(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be a number from"):
        LogNormal(*bad)


# ---- MGFI and its t ----


def test_at_fixes_a_schedule_to_the_t_of_a_trial() -> None:
    fixed = MGFI(Linear(2.0, 1.0, horizon=10)).at(5, rng=RNG)
    assert fixed == MGFI(1.5)


def test_at_draws_another_t_for_every_proposal() -> None:
    rng = np.random.default_rng(0)
    scheduled = MGFI(LogNormal())
    assert scheduled.at(0, rng=rng) != scheduled.at(0, rng=rng)


@pytest.mark.parametrize("acquisition", [EI(), PI(), MGFI(1.5), UCB(3.0)], ids=repr)
def test_at_changes_nothing_where_nothing_varies(acquisition: Acquisition) -> None:
    assert acquisition.at(17, rng=RNG) == acquisition


@pytest.mark.parametrize("acquisition", [EI(), PI(), UCB(3.0)], ids=repr)
def test_only_mgfi_strikes_another_balance_while_others_run(acquisition: Acquisition) -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert acquisition.at(17, pending=5, rng=rng) == acquisition
    assert rng.bit_generator.state == before


def test_mgfi_draws_nothing_while_it_is_alone() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert MGFI(1.5).at(17, pending=0, rng=rng) == MGFI(1.5)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("call", ["__call__", "partials"])
def test_a_schedule_must_be_fixed_before_scoring(call: str) -> None:
    with pytest.raises(TypeError, match=r"call at\(number"):
        getattr(MGFI(Linear()), call)(normal(0.0, 1.0), 0.0)


@pytest.mark.parametrize("t", [-1e-9, math.inf, math.nan, np.float32(-1.0)])
def test_mgfi_refuses_a_t_that_is_not_a_finite_number_from_0(t: float) -> None:
    with pytest.raises(ValueError, match="t, unless it is a schedule, must be a number ≥ 0, but"):
        MGFI(t)


@pytest.mark.parametrize("t", [None, "one", True, [1.0]])
def test_mgfi_refuses_a_t_that_is_neither_number_nor_schedule(t: object) -> None:
    with pytest.raises(ValueError, match="t, unless it is a schedule, must be a number ≥ 0, but"):
        MGFI(t)


@pytest.mark.parametrize("t", [2, np.float64(2.0), np.float32(2.0), np.int64(2)], ids=repr)
def test_mgfi_takes_numbers_of_any_kind(t: float) -> None:
    assert MGFI(t) == MGFI(2.0)
    assert MGFI(t).at(0, rng=RNG) == MGFI(2.0)


def test_cooling_takes_a_horizon_from_numpy() -> None:
    assert Linear(horizon=np.int64(10)).at(10, rng=RNG) == pytest.approx(0.1)


@pytest.mark.parametrize("beta", [-0.1, math.inf, math.nan])
def test_ucb_refuses_a_beta_that_is_not_a_finite_number_from_0(beta: float) -> None:
    with pytest.raises(ValueError, match="beta must be a number ≥ 0, but got"):
        UCB(beta)
