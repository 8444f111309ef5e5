"""Scores of T = L − α·σ against their definitions, by numerical integration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import logsumexp

from tradewind.goals import Acquisition, Beat
from tradewind.optimizer.acquisition.ei import EI, log_ei
from tradewind.optimizer.acquisition.mgfi import MGFI
from tradewind.optimizer.acquisition.pi import PI
from tradewind.optimizer.acquisition.tradeoff import Improvement, Published, sigma_moments
from tradewind.optimizer.acquisition.ucb import UCB
from tradewind.types import Array, Normal, Partials

Worth = Callable[[float, float, float], float]  # (mean, std, threshold) -> acquisition

EXACT = Improvement(nodes=24)


def row(mean: float, std: float) -> Normal:
    return Normal(np.array([mean]), np.array([std]))


def improvement(
    mean: float,
    std: float,
    m: float,
    v: float,
    alpha: float,
    best: float,
    capped: bool = True,
    *,
    acquisition: Acquisition | None = None,
    rule: Improvement = EXACT,
) -> Partials:
    beat = Beat(score=best, quality=math.nan, sigma=math.nan, alpha=alpha, capped=capped)
    return rule.partials(acquisition or EI(), row(mean, std), row(m, v), beat=beat)


def sigma_at(log_cost: float, capped: bool) -> float:
    return math.exp(min(log_cost, 0.0 if capped else 700.0))


# ---- the definitions, integrated ----


def density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


def probability(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def expected_improvement(mean: float, std: float, threshold: float) -> float:
    z = (mean - threshold) / std
    return std * (density(z) + z * probability(z))


def probability_of_improvement(mean: float, std: float, threshold: float) -> float:
    return probability((mean - threshold) / std)


def moment_of_improvement(mean: float, std: float, threshold: float) -> float:
    """MGFI at t = 1: E[exp(L − threshold − 1); L > threshold]."""
    shifted = (mean - threshold) / std + std
    return probability(shifted) * math.exp(mean - threshold - 1.0 + 0.5 * std * std)


def pieces(integrand: Callable[[float], float], points: list[float]) -> float:
    options = {"epsabs": 0.0, "epsrel": 1e-10, "limit": 50}
    edges = sorted(points)
    return math.fsum(
        quad(integrand, a, b, **options)[0] for a, b in pairwise(edges) if b - a > 1e-12
    )


def over_cost(
    worth: Worth,
    mean: float,
    std: float,
    m: float,
    v: float,
    alpha: float,
    best: float,
    capped: bool = True,
) -> float:
    """E[worth(L; T* + α·σ)] with σ = c or min(1, c), c = exp(m + v·x), x standard normal.

    The integral is cut where the integrand bends: at the reference, and where the threshold
    passes multiples of std around the mean."""

    def integrand(x: float) -> float:
        sigma = sigma_at(m + v * x, capped)
        return worth(mean, std, best + alpha * sigma) * density(x)

    bends = [(mean - best + k * std) / alpha for k in range(-36, 37, 2)]
    edges = [-m / v, *((math.log(b) - m) / v for b in bends if b > 0.0)]
    inside = [x for x in edges if -38.0 < x < 38.0]
    return pieces(integrand, [*map(float, range(-38, 39, 2)), *inside])


def nested(
    gain: Callable[[float], float], mean: float, std: float, m: float, v: float, alpha: float,
    best: float, capped: bool = True,
) -> float:  # fmt: skip
    """E[gain(T − T*); T > T*] over L and c, with nothing done by hand."""

    def given_cost(x: float) -> float:
        threshold = best + alpha * sigma_at(m + v * x, capped)
        start = (threshold - mean) / std
        ends = [max(start, -12.0), max(start, -12.0) + 6.0, max(start, -12.0) + 24.0]
        return density(x) * pieces(lambda y: gain(mean + std * y - threshold) * density(y), ends)

    inside = [-m / v] if -12.0 < -m / v < 12.0 else []
    return pieces(given_cost, [-12.0, -4.0, 0.0, 4.0, 12.0, *inside])


RULES: list[tuple[Acquisition, Worth, Callable[[float], float]]] = [
    (EI(), expected_improvement, lambda gain: gain),
    (PI(), probability_of_improvement, lambda gain: 1.0),
    (MGFI(1.0), moment_of_improvement, lambda gain: math.exp(gain - 1.0)),
]
each_rule = pytest.mark.parametrize(
    ("acquisition", "worth", "gain"), RULES, ids=[repr(rule[0]) for rule in RULES]
)


@st.composite
def predictions(draw: st.DrawFn) -> dict[str, float]:
    """Quality known to 1e-3 or hardly at all, cost known to 0.1 % or within a factor of 20, from
    3e-4 to 50 times the reference; the improvement from certain to next to impossible."""
    std, v = 10.0 ** draw(st.floats(-3.0, 0.0)), 10.0 ** draw(st.floats(-3.0, 0.5))
    m, alpha = draw(st.floats(-8.0, 4.0)), 10.0 ** draw(st.floats(-2.0, 1.0))
    best, z = draw(st.floats(-3.0, 3.0)), draw(st.floats(-8.0, 8.0))
    capped = draw(st.booleans())
    likely = alpha * sigma_at(m, capped) if draw(st.booleans()) else 0.0
    case = {"mean": best + z * std + likely, "std": std, "m": m, "v": v}
    return {**case, "alpha": alpha, "best": best, "capped": capped}


@each_rule
@pytest.mark.filterwarnings("ignore:The integral is probably divergent")  # at 1e-10, it may be
@settings(max_examples=60)
@given(case=predictions())
def test_the_improvement_of_t_is_its_integral(
    acquisition: Acquisition, worth: Worth, gain: object, case: dict[str, float]
) -> None:
    expected = over_cost(worth, **case)
    value = improvement(**case, acquisition=acquisition).value[0]
    close = 1e-4 if isinstance(acquisition, MGFI) else 1e-6  # MGFI grows to e^70 here
    if expected > 1e-250:
        assert value == pytest.approx(math.log(expected), rel=0.0, abs=close)
    else:
        assert value < -500.0


@each_rule
@pytest.mark.parametrize("capped", [True, False])
@pytest.mark.parametrize(
    "case",
    [
        {"mean": 0.0, "std": 1.0, "m": -1.0, "v": 0.7, "alpha": 0.5, "best": 0.3},
        {"mean": 0.4, "std": 0.3, "m": 0.1, "v": 1.5, "alpha": 2.0, "best": 0.1},
        {"mean": -1.0, "std": 0.5, "m": -3.0, "v": 0.2, "alpha": 0.9, "best": -0.5},
        {"mean": 1.0, "std": 0.2, "m": 1.0, "v": 0.5, "alpha": 0.6, "best": 0.2},
    ],
    ids=lambda case: f"m={case['m']}",
)
def test_the_improvement_of_t_is_a_double_integral_over_quality_and_cost(
    acquisition: Acquisition,
    worth: object,
    gain: Callable[[float], float],
    case: dict[str, float],
    capped: bool,
) -> None:
    case = case | {"capped": capped}
    value = math.exp(improvement(**case, acquisition=acquisition).value[0])
    assert value == pytest.approx(nested(gain, **case), rel=1e-8)


@each_rule
@pytest.mark.parametrize("std", [1e-3, 1.0])
@pytest.mark.parametrize("v", [1e-3, 1.0])
@pytest.mark.parametrize("m", [-12.0, -1.0, 0.0, 6.0])
@pytest.mark.parametrize("lead", [-3.0, 0.0, 3.0])
def test_the_improvement_of_t_holds_at_the_corners_of_what_is_known(
    acquisition: Acquisition,
    worth: Worth,
    gain: object,
    std: float,
    v: float,
    m: float,
    lead: float,
) -> None:
    """`lead` standard deviations above the threshold at the likely cost."""
    mean = 0.2 + 0.7 * math.exp(min(m, 0.0)) + lead * std
    case = {"mean": mean, "std": std, "m": m, "v": v, "alpha": 0.7, "best": 0.2}
    value = improvement(**case, acquisition=acquisition).value[0]
    assert value == pytest.approx(math.log(over_cost(worth, **case)), rel=0.0, abs=1e-8)


@each_rule
@settings(max_examples=60)
@given(case=predictions())
def test_the_default_number_of_nodes_is_exact_to_a_few_per_cent(
    acquisition: Acquisition, worth: object, gain: object, case: dict[str, float]
) -> None:
    value = improvement(**case, acquisition=acquisition, rule=Improvement()).value[0]
    exact = improvement(**case, acquisition=acquisition).value[0]
    assert value == pytest.approx(exact, rel=0.0, abs=0.03)


# ---- where the value itself underflows ----


def log_over_cost(
    mean: float, std: float, m: float, v: float, alpha: float, best: float, capped: bool
) -> float:
    """log I_T by fine sums in logs around the peaks of the integrand, one below the reference and
    one above it if σ is capped."""

    def log_integrand(x: np.ndarray) -> np.ndarray:
        sigma = np.exp(np.minimum(m + v * x, 0.0 if capped else 300.0))
        return log_ei(mean, std, best + alpha * sigma) - 0.5 * x * x - 0.5 * math.log(2 * math.pi)

    def log_integral(start: float, end: float) -> float:
        low, high = start, end
        while high - low > 1e-6:  # the logarithm is concave: narrow down on its peak
            x = np.linspace(low, high, 41)
            top = int(np.argmax(log_integrand(x)))
            low, high = x[max(top - 2, 0)], x[min(top + 2, 40)]
        x = np.linspace(max(start, low - 12.0), min(end, high + 12.0), 4_001)
        seen = x[log_integrand(x) > log_integrand(x).max() - 40.0]
        x = np.linspace(seen[0], seen[-1], 20_001)
        ends = np.where((x == x[0]) | (x == x[-1]), math.log(0.5), 0.0)
        return float(logsumexp(log_integrand(x) + ends) + math.log(x[1] - x[0]))

    if not capped:
        return log_integral(-2e4, 100.0)
    return float(np.logaddexp(log_integral(-2e4, -m / v), log_integral(-m / v, 100.0)))


@pytest.mark.parametrize("z", [-1e4, -3e2, -20.0, 0.0, 5.0])
@pytest.mark.parametrize(("m", "v"), [(-2.0, 0.3), (0.5, 1.0), (3.0, 0.4), (2.0, 0.05)])
@pytest.mark.parametrize("capped", [True, False])
def test_the_log_form_is_right_where_the_value_underflows(
    z: float, m: float, v: float, capped: bool
) -> None:
    """Also where a threshold of 1 is only passed at a cost that is all but impossible."""
    std = 0.02
    case = {"mean": z * std, "std": std, "m": m, "v": v, "alpha": 1.0, "best": 0.0}
    case = case | {"capped": capped}
    expected = log_over_cost(**case)
    assert improvement(**case).value[0] == pytest.approx(expected, rel=1e-9, abs=1e-6)


@each_rule
@pytest.mark.parametrize("nodes", [8, 24])
def test_scores_and_derivatives_are_finite_from_minus_to_plus_ten_thousand(
    acquisition: Acquisition, worth: object, gain: object, nodes: int
) -> None:
    z = np.concatenate([-np.logspace(4, -3, 60), [0.0], np.logspace(-3, 4, 60)])
    costs = [(-20.0, 1e-3), (-3.0, 0.5), (-1.0, 1e-9), (0.0, 0.1), (2.0, 3.0), (9.0, 1e-3)]
    for std, capped in product((1e-3, 1.0), (True, False)):
        for m, v in costs:
            cost = Normal(np.full_like(z, m), np.full_like(z, v))
            worth_of = Improvement(nodes).partials(
                acquisition,
                Normal(z * std, np.full_like(z, std)),
                cost,
                beat=Beat(0.0, 0.0, alpha=0.5, capped=capped),
            )
            for part in vars(worth_of).values():
                assert np.isfinite(part).all()


# ---- what follows from the definition ----


@settings(max_examples=100)
@given(case=predictions())
def test_the_improvement_of_t_lies_between_those_at_the_full_cost_and_at_none(
    case: dict[str, float],
) -> None:
    value = improvement(**case | {"capped": True}).value[0]
    assert improvement(**case | {"capped": False}).value[0] <= value + 1e-8
    predicted, best, alpha = row(case["mean"], case["std"]), case["best"], case["alpha"]
    assert value <= EI()(predicted, best)[0] + 1e-8
    assert value >= EI()(predicted, best + alpha)[0] - 1e-8


@settings(max_examples=100)
@given(case=predictions())
def test_a_better_quality_raises_the_score_and_a_higher_cost_lowers_it(
    case: dict[str, float],
) -> None:
    worth = improvement(**case)
    assert worth.by_mean[0] > 0.0
    assert worth.by_std[0] > 0.0
    assert worth.by_cost_mean[0] <= 0.0


@settings(max_examples=100)
@given(case=predictions())
def test_a_cost_that_is_known_moves_the_threshold_and_no_more(case: dict[str, float]) -> None:
    case = case | {"v": 1e-9}
    threshold = case["best"] + case["alpha"] * sigma_at(case["m"], bool(case["capped"]))
    expected = EI()(row(case["mean"], case["std"]), threshold)[0]
    slack = 1e-8 * abs((case["mean"] - threshold) / case["std"]) * case["alpha"] / case["std"]
    slack *= max(sigma_at(case["m"], bool(case["capped"])), 1.0)
    assert improvement(**case).value[0] == pytest.approx(expected, rel=1e-7, abs=1e-8 + slack)


@settings(max_examples=50)
@given(case=predictions())
def test_without_a_price_the_cost_does_not_matter(case: dict[str, float]) -> None:
    worth = improvement(**case | {"alpha": 0.0})
    plain = EI().partials(row(case["mean"], case["std"]), case["best"])
    for name in ("value", "by_mean", "by_std"):
        assert getattr(worth, name) == pytest.approx(getattr(plain, name), rel=1e-9, abs=1e-9)
    assert worth.by_cost_mean[0] == worth.by_cost_std[0] == 0.0


def gaussian(mean: float, std: float, m: float, v: float, alpha: float, best: float) -> float:
    """EI of T if σ were normal: T ~ N(μ_L − α·μ_σ, s_L² + α²·s_σ²)."""
    mu, s = math.exp(m + 0.5 * v * v), math.exp(m + 0.5 * v * v) * math.sqrt(math.expm1(v * v))
    return expected_improvement(mean - alpha * mu, math.hypot(std, alpha * s), best)


@pytest.mark.parametrize("z", [-2.0, 0.0, 2.0])
def test_a_cost_that_is_nearly_gaussian_gives_the_closed_form(z: float) -> None:
    errors = []
    for v in (1e-1, 1e-2, 1e-3):
        # α·s_σ and s_L are about equal: both uncertainties matter
        std = 0.5 * math.exp(-2.0) * v
        mean = 0.1 + 0.5 * math.exp(-2.0) + z * std
        case = {"mean": mean, "std": std, "m": -2.0, "v": v, "alpha": 0.5, "best": 0.1}
        errors.append(abs(math.exp(improvement(**case).value[0]) / gaussian(**case) - 1.0))
    assert errors[0] < 0.2
    assert errors[1] < errors[0] / 5.0
    assert errors[2] < errors[1] / 5.0
    assert errors[2] < 2e-3


def test_rows_are_scored_independently() -> None:
    rng = np.random.default_rng(0)
    quality = Normal(rng.normal(size=20), rng.random(20) + 0.01)
    cost = Normal(rng.normal(size=20), rng.random(20) + 0.01)
    beat = Beat(0.3, 0.3, 0.1, alpha=0.4)
    together = Improvement().partials(EI(), quality, cost, beat=beat).value
    alone = [
        Improvement().partials(EI(), row(q, s), row(m, v), beat=beat).value[0]
        for q, s, m, v in zip(quality.mean, quality.std, cost.mean, cost.std, strict=True)
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-13)


def test_no_rows_have_no_scores() -> None:
    empty = Normal(np.empty(0), np.empty(0))
    worth = Improvement().partials(EI(), empty, empty, beat=Beat(0.0, 0.0, alpha=0.5))
    assert worth.value.shape == worth.by_cost_std.shape == (0,)


# ---- derivatives ----

PARTIALS = {"mean": "by_mean", "std": "by_std", "m": "by_cost_mean", "v": "by_cost_std"}


@dataclass(frozen=True)
class Curved:
    """An acquisition without a log form, whose derivatives are not constant."""

    log_form = False

    def __call__(self, predicted: Normal, best: Array | float) -> Array:
        return self.partials(predicted, best).value

    def partials(self, predicted: Normal, best: Array | float) -> Partials:
        gap = predicted.mean - best
        return Partials(
            np.tanh(gap) + gap * predicted.std, 1 / np.cosh(gap) ** 2 + predicted.std, gap
        )

    def at(self, number: int, *, pending: int = 0, rng: np.random.Generator) -> Curved:
        return self


ACQUISITIONS = [EI(), PI(), MGFI(1.0), MGFI(0.3), UCB(1.5), Curved()]


@pytest.mark.parametrize("acquisition", ACQUISITIONS, ids=repr)
@settings(max_examples=40)
@given(case=predictions())
def test_partials_are_the_derivatives_of_the_score(
    acquisition: Acquisition, case: dict[str, float]
) -> None:
    worth = improvement(**case, acquisition=acquisition)
    for name, partial in PARTIALS.items():
        h = 1e-4 * (case["std"] if name in ("mean", "std") else case["v"])
        value = [
            improvement(**case | {name: case[name] + k * h}, acquisition=acquisition).value[0]
            for k in (-2, -1, 1, 2)
        ]
        difference = (value[0] - 8.0 * value[1] + 8.0 * value[2] - value[3]) / (12.0 * h)
        blur = 1e-9 * (1.0 + abs(value[0])) / h  # of the quadrature, over the step
        assert getattr(worth, partial)[0] == pytest.approx(difference, rel=1e-5, abs=blur)


@settings(max_examples=60)
@given(case=predictions())
def test_the_derivatives_at_the_default_number_of_nodes_point_the_right_way(
    case: dict[str, float],
) -> None:
    exact, rough = improvement(**case), improvement(**case, rule=Improvement())
    assert rough.by_mean == pytest.approx(exact.by_mean, rel=0.05)
    assert rough.by_std == pytest.approx(exact.by_std, rel=0.05)
    assert rough.by_cost_mean == pytest.approx(exact.by_cost_mean, rel=0.05, abs=1e-3)


# ---- moments of σ, and UCB ----


@settings(max_examples=40)
@given(m=st.floats(-10.0, 5.0), v=st.floats(-3.0, 0.3).map(lambda e: 10.0**e), capped=st.booleans())
def test_the_moments_of_sigma_are_their_integrals(m: float, v: float, capped: bool) -> None:
    def moment(power: int) -> float:
        edges = [*map(float, range(-38, 39, 2)), *([-m / v] if abs(m / v) < 38.0 else [])]
        return pieces(lambda x: sigma_at(m + v * x, capped) ** power * density(x), edges)

    sigma = sigma_moments(row(m, v), capped=capped)
    assert sigma.mean[0] == pytest.approx(moment(1), rel=1e-8)
    variance = moment(2) - moment(1) ** 2
    assert sigma.variance[0] == pytest.approx(variance, rel=1e-6, abs=1e-9 * max(moment(2), 1.0))


def test_the_upper_bound_of_t_takes_its_first_two_moments() -> None:
    cost = row(-0.5, 0.8)
    sigma = sigma_moments(cost, capped=True)
    bound = improvement(0.7, 0.2, -0.5, 0.8, 0.6, 0.0, acquisition=UCB(2.0)).value[0]
    expected = 0.7 - 0.6 * sigma.mean[0] + 2.0 * math.sqrt(0.04 + 0.36 * sigma.variance[0])
    assert bound == pytest.approx(expected, rel=1e-12)


def test_an_acquisition_without_a_log_form_is_compared_with_the_best_t() -> None:
    cost = row(-0.5, 0.8)
    sigma = sigma_moments(cost, capped=True)
    found = improvement(0.7, 0.2, -0.5, 0.8, 0.6, 0.4, acquisition=Curved())
    of_t = row(0.7 - 0.6 * sigma.mean[0], math.sqrt(0.04 + 0.36 * sigma.variance[0]))
    assert found.value == pytest.approx(Curved()(of_t, 0.4))


# ---- the published rule ----


def test_the_rules_say_which_acquisitions_they_accept() -> None:
    assert [Improvement().accepts(a) for a in ACQUISITIONS] == [True] * 6
    assert [Published().accepts(a) for a in ACQUISITIONS] == [True] + [False] * 5


def test_the_rules_say_in_what_scale_they_want_the_cost() -> None:
    assert Improvement().log_cost
    assert not Published().log_cost


def published(
    mean: float, std: float, m: float, v: float, *, alpha: float, best: float, cheapest: float
) -> Partials:
    beat = Beat(score=math.nan, quality=best, sigma=cheapest, alpha=alpha)
    return Published().partials(EI(), row(mean, std), row(m, v), beat=beat)


def excess(mean: float, std: float, threshold: float) -> float:
    """E[max(y − threshold, 0)] for y ~ N(mean, std²), by integration."""
    start = (threshold - mean) / std
    low = max(start, -14.0)
    return pieces(
        lambda x: std * (x - start) * density(x), [low, low + 4.0, low + 14.0, low + 28.0]
    )


published_cases = {
    "mean": st.floats(-1.0, 2.0),
    "std": st.floats(0.05, 2.0),
    "m": st.floats(0.0, 1.2),
    "v": st.floats(0.05, 0.5),
    "alpha": st.floats(0.0, 3.0),
    "best": st.floats(0.0, 1.0),
    "cheapest": st.floats(0.0, 0.5),
}


@given(**published_cases)
def test_the_published_rule_is_expected_gain_minus_alpha_times_expected_excess_cost(
    mean: float, std: float, m: float, v: float, alpha: float, best: float, cheapest: float
) -> None:
    value = published(mean, std, m, v, alpha=alpha, best=best, cheapest=cheapest).value[0]
    expected = excess(mean, std, best) - alpha * excess(m, v, cheapest)
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_published_rule_without_a_price_is_expected_improvement_itself() -> None:
    worth = published(0.4, 0.3, 0.5, 0.2, alpha=0.0, best=0.6, cheapest=0.1)
    assert worth.value == pytest.approx(np.exp(EI()(row(0.4, 0.3), 0.6)), rel=1e-14)
    assert worth.by_cost_mean == 0.0


def test_the_published_rule_can_be_negative() -> None:
    assert published(0.0, 0.1, 0.9, 0.1, alpha=1.0, best=1.0, cheapest=0.1).value[0] < -0.7


@settings(max_examples=40)
@given(**published_cases)
def test_partials_are_the_derivatives_of_the_published_rule(
    mean: float, std: float, m: float, v: float, alpha: float, best: float, cheapest: float
) -> None:
    case = {"mean": mean, "std": std, "m": m, "v": v}
    fixed = {"alpha": alpha + 0.1, "best": best, "cheapest": cheapest}
    worth = published(**case, **fixed)
    for name, partial in PARTIALS.items():
        up, down = (
            published(**case | {name: case[name] + h}, **fixed).value[0] for h in (1e-5, -1e-5)
        )
        assert getattr(worth, partial)[0] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-7)
