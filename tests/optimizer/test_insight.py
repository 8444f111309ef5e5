"""Shares of variance and averages, against functions whose shares are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tradewind as tw
from tradewind.optimizer import insight
from tradewind.optimizer.insight import PRECISION, Shares, averages, draw_functions, variance_shares
from tradewind.optimizer.surrogates.draws import FunctionDraws
from tradewind.optimizer.surrogates.ensemble import Ensemble
from tradewind.optimizer.surrogates.gp import GaussianProcess
from tradewind.types import Array

# Independent uniform numbers have the variance 1/12, so c·x has c²/12.
ADDITIVE = tw.Space({f"x{i}": tw.Float(0, 1) for i in range(5)})
POWERS = np.array([4.0, 2.0, 1.0, 0.5, 0.0])


def additive(X: Array) -> Array:
    return np.asarray(X @ POWERS)


ADDITIVE_SHARES = np.square(POWERS) / np.square(POWERS).sum()

# kind b adds 1, and 2·(depth − ½) with variance 1/3. So the variance is 1/4 (kind) + 1/6 (depth,
# half of the time) + 1/12 (x). Of the 1/6, depth explains half alone: its mean effect is depth − ½,
# with variance 1/12. The other half is its interaction with kind.
CONDITIONAL = tw.Space(
    {
        "kind": tw.Categorical(["a", "b"]),
        "depth": tw.Float(0, 1, when={"kind": "b"}),
        "x": tw.Float(0, 1),
        "nothing": tw.Float(0, 1),
    }
)


def conditional(X: Array) -> Array:
    depth = np.where(np.isnan(X[:, 1]), 0.0, 2.0 * (X[:, 1] - 0.5))
    return np.asarray((X[:, 0] > 0.5) + depth + X[:, 2])


CONDITIONAL_ALONE = np.array([3.0, 1.0, 1.0, 0.0]) / 6.0
CONDITIONAL_TOTAL = np.array([4.0, 2.0, 1.0, 0.0]) / 6.0


def product(X: Array) -> Array:
    """All its variance is interaction."""
    return np.asarray((X[:, 0] - 0.5) * (X[:, 1] - 0.5))


def functions_of(
    space: tw.Space, f: Callable[[Array], Array], n: int, *, noise: float = 0.0, seed: int = 0
) -> list[FunctionDraws]:
    rng = np.random.default_rng([seed, n])
    X = space.sample(n, rng=rng)
    y = f(X)
    y = y + noise * y.std() * rng.standard_normal(n)
    process = GaussianProcess(noise_mean=-4.0, noise_std=3.0)
    model = Ensemble(process, insight.SETTINGS).fit(X, y, columns=space.columns, rng=rng)
    return draw_functions(model, rng=rng)


def shares_of(space: tw.Space, functions: list[FunctionDraws]) -> Shares:
    return variance_shares(space, functions, rng=np.random.default_rng(1))


def test_the_shares_of_an_additive_function() -> None:
    shares = shares_of(ADDITIVE, functions_of(ADDITIVE, additive, 60))
    assert np.median(shares.alone, axis=0) == pytest.approx(ADDITIVE_SHARES, abs=0.03)
    assert np.median(shares.total, axis=0) == pytest.approx(ADDITIVE_SHARES, abs=0.03)


def test_the_shares_of_a_conditional_function() -> None:
    shares = shares_of(CONDITIONAL, functions_of(CONDITIONAL, conditional, 80))
    assert np.median(shares.alone, axis=0) == pytest.approx(CONDITIONAL_ALONE, abs=0.03)
    assert np.median(shares.total, axis=0) == pytest.approx(CONDITIONAL_TOTAL, abs=0.03)


def test_an_interaction_counts_for_all_who_take_part_but_for_none_alone() -> None:
    shares = shares_of(ADDITIVE, functions_of(ADDITIVE, product, 80))
    assert np.median(shares.total, axis=0)[:2] == pytest.approx(1.0, abs=0.08)
    assert (np.median(shares.alone, axis=0) < 0.08).all()


@pytest.mark.parametrize(
    ("space", "f", "alone", "total"),
    [
        pytest.param(ADDITIVE, additive, ADDITIVE_SHARES, ADDITIVE_SHARES, id="additive"),
        pytest.param(
            CONDITIONAL, conditional, CONDITIONAL_ALONE, CONDITIONAL_TOTAL, id="conditional"
        ),
    ],
)
@pytest.mark.parametrize("n", [30, 80])
def test_90_percent_intervals_hold_the_true_shares(
    space: tw.Space, f: Callable[[Array], Array], alone: Array, total: Array, n: int
) -> None:
    inside = []
    for seed in range(6):
        shares = shares_of(space, functions_of(space, f, n, noise=0.3, seed=seed))
        for draws, true in ((shares.alone, alone), (shares.total, total)):
            low, high = np.quantile(draws, [0.05, 0.95], axis=0)
            inside.append((low - PRECISION <= true) & (true <= high + PRECISION))
    assert np.mean(inside) >= 0.85


def test_forbidden_combinations_are_left_out() -> None:
    """Where a and b must agree, x alone makes a difference beside them."""
    space = tw.Space(
        {"a": tw.Bool(), "b": tw.Bool(), "x": tw.Float(0, 1)},
        forbid=[{"a": True, "b": False}, {"a": False, "b": True}],
    )
    functions = functions_of(space, lambda X: X[:, 2] + 5.0 * (X[:, 0] != X[:, 1]), 40)
    total = np.median(shares_of(space, functions).total, axis=0)
    assert total[2] == pytest.approx(1.0, abs=0.1)
    assert (total[:2] < 0.05).all()


def test_a_constant_has_no_shares_to_speak_of() -> None:
    shares = shares_of(ADDITIVE, functions_of(ADDITIVE, lambda X: np.ones(len(X)), 20))
    assert np.isfinite(shares.alone).all()
    assert np.isfinite(shares.total).all()


# ---- averages ----


def test_averages_follow_the_parameter_where_it_is_active() -> None:
    functions = functions_of(CONDITIONAL, conditional, 60)
    coordinates = np.array([0.0, 0.5, 1.0])
    found = averages(CONDITIONAL, functions, 1, coordinates, rng=np.random.default_rng(0))
    expected = 1.0 + 2.0 * (coordinates - 0.5) + 0.5  # kind is b, and x is ½ on average
    assert np.median(found, axis=0) == pytest.approx(expected, abs=0.12)


def test_an_average_that_no_configuration_allows_is_refused() -> None:
    space = tw.Space(
        {"a": tw.Bool(), "b": tw.Bool(), "x": tw.Float(0, 1)},
        forbid=[{"a": True, "b": [True, False]}],
    )
    functions = functions_of(space, lambda X: X[:, 2], 20)
    with pytest.raises(ValueError, match=r"'a' is so rarely active, or so often forbidden"):
        averages(space, functions, 0, np.array([0.25, 0.75]), rng=np.random.default_rng(0))
