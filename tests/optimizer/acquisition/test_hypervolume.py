"""The expected growth of the dominated area against its definition, by numerical integration."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.optimizer.acquisition.hypervolume import log_ehvi
from tradewind.types import Array, Normal, Partials

FRONT = [([0.3], [-1.0]), ([0.1, 0.3, 0.9], [-2.0, -1.0, 0.5]), ([], [])]


def area(quality: Array, cost: Array, worst: float, low: float, high: float) -> float:
    """What these trials dominate between `worst` and the qualities, `low` and `high`."""
    order = np.argsort(cost)
    edges = [*np.maximum(cost[order], low), high]
    best = np.maximum.accumulate(np.append(worst, quality[order]))[1:]
    steps = zip(pairwise(edges), best, strict=True)
    return sum(max(min(b, high) - a, 0.0) * max(q - worst, 0.0) for (a, b), q in steps if a < high)


def growth(y: float, c: float, quality: Array, cost: Array, corner: tuple[float, ...]) -> float:
    more = area(np.append(quality, y), np.append(cost, c), *corner)
    return more - (area(quality, cost, *corner) if len(cost) else 0.0)


def partials(
    mean: float, std: float, m: float, v: float, quality: Array, cost: Array,
    corner: tuple[float, float, float] = (0.0, -math.inf, 1.0),
) -> Partials:  # fmt: skip
    worst, low, high = corner
    return log_ehvi(
        Normal(np.array([mean]), np.array([std])),
        Normal(np.array([m]), np.array([v])),
        np.array([worst, *quality]),
        np.array([low, *np.maximum(cost, low), high]),
    )


@pytest.mark.parametrize("front", FRONT, ids=str)
@pytest.mark.parametrize("low", [-1.5, -8.0])
@settings(max_examples=10, deadline=None)
@given(
    mean=st.floats(-0.5, 1.5), std=st.floats(0.1, 1), m=st.floats(-3, 2), v=st.floats(0.1, 1)
)  # fmt: skip
def test_it_is_the_expected_growth_of_the_area(
    front: tuple[list[float], list[float]], low: float, mean: float, std: float, m: float, v: float
) -> None:
    quality, cost = map(np.array, front)
    corner = (0.0, low, 1.0)
    x, w = np.polynomial.hermite_e.hermegauss(150)
    total = sum(
        wi * wj * growth(mean + std * xi, m + v * xj, quality, cost, corner)
        for xi, wi in zip(x, w, strict=True)
        for xj, wj in zip(x, w, strict=True)
        if wi * wj > 1e-12
    ) / (2 * math.pi)
    found = math.exp(partials(mean, std, m, v, quality, cost, corner).value[0])
    assert found == pytest.approx(total, rel=0.05, abs=2e-3)  # the growth has kinks


def test_a_known_prediction_gives_the_growth_itself() -> None:
    quality, cost = map(np.array, FRONT[1])
    for y, c in [(0.5, -1.5), (0.95, 0.9), (0.2, -3.0), (2.0, -4.0), (0.31, 0.4)]:
        found = math.exp(partials(y, 1e-9, c, 1e-9, quality, cost, (0.0, -50.0, 1.0)).value[0])
        expected = growth(y, c, quality, cost, (0.0, -50.0, 1.0))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_an_inefficient_row_is_worth_less_the_surer_it_is() -> None:
    quality, cost = map(np.array, FRONT[1])
    values = [partials(0.05, s, 0.3, s, quality, cost).value[0] for s in (0.5, 0.1, 0.02)]
    assert values[0] > values[1] > values[2]


@settings(max_examples=60)
@given(
    mean=st.floats(-3, 3), std=st.floats(0.05, 2), m=st.floats(-5, 4), v=st.floats(0.05, 2),
    front=st.sampled_from(FRONT), low=st.sampled_from([-math.inf, -1.5]),
)  # fmt: skip
def test_partials_are_the_derivatives(
    mean: float, std: float, m: float, v: float, front: tuple[list[float], list[float]], low: float
) -> None:
    quality, cost = map(np.array, front)
    at = [mean, std, m, v]
    found = partials(*at, quality, cost, (0.0, low, 1.0))
    for k, name in enumerate(["by_mean", "by_std", "by_cost_mean", "by_cost_std"]):
        h = 1e-5
        up, down = ([x + s * h * (i == k) for i, x in enumerate(at)] for s in (1, -1))
        slope = (
            partials(*up, quality, cost, (0.0, low, 1.0)).value[0]
            - partials(*down, quality, cost, (0.0, low, 1.0)).value[0]
        ) / (2 * h)
        assert getattr(found, name)[0] == pytest.approx(slope, rel=1e-3, abs=1e-4)


def test_it_is_finite_from_certain_to_impossible_and_for_strips_without_width() -> None:
    quality, cost = np.array([0.1, 0.2, 0.2 + 1e-15]), np.array([-1.0, -1.0 + 1e-16, -1.0])
    for z in (-1e4, -50.0, 0.0, 1e4):
        for std in (1e-6, 1.0):
            for m in (-1e3, 0.0, 1e3):
                found = partials(z * std, std, m, 0.3, quality, cost)
                for part in vars(found).values():
                    assert np.isfinite(part).all(), (z, std, m)
