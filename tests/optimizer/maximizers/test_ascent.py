"""Gradient ascent in the unit cube."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from tradewind.optimizer.maximizers import local
from tradewind.optimizer.maximizers.local import ascend
from tradewind.types import Array


class Quadratic:
    """−½ (x − c)' A (x − c) over the coordinates that are numbers; counts its calls."""

    def __init__(self, A: Array, c: Array) -> None:
        self.A, self.c, self.calls = A, c, 0

    def __call__(self, X: Array) -> Array:
        D = np.nan_to_num(X - self.c)
        return -0.5 * np.einsum("ij,jk,ik->i", D, self.A, D)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        self.calls += 1
        return self(X), -np.nan_to_num(X - self.c) @ self.A

    def highest(self) -> float:
        """In the unit cube, by another algorithm."""
        root = np.linalg.cholesky(self.A).T
        best = lsq_linear(root, root @ self.c, bounds=(0.0, 1.0), tol=1e-14)
        return float(self(best.x[None, :])[0])


class Waves:
    """Not concave: many hills, and slopes that mislead."""

    def __call__(self, X: Array) -> Array:
        return np.sin(9.0 * X).sum(axis=1) + np.prod(X, axis=1)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        product = np.prod(X, axis=1, keepdims=True)
        return self(X), 9.0 * np.cos(9.0 * X) + product / np.maximum(X, 1e-12)


class Fixed:
    """A value and a slope that are the same everywhere."""

    def __init__(self, value: float, slope: float) -> None:
        self.value, self.slope = value, slope

    def __call__(self, X: Array) -> Array:
        return np.full(len(X), self.value)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        return self(X), np.full(X.shape, self.slope)


def everywhere(X: Array) -> Array:
    return np.ones(X.shape, dtype=bool)


def quadratic(d: int, rng: np.random.Generator, *, inside: bool) -> Quadratic:
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    A = turn @ np.diag(np.exp(rng.uniform(0.0, np.log(30.0), size=d))) @ turn.T
    return Quadratic(A, rng.uniform(0.2, 0.8, size=d) if inside else rng.uniform(-0.5, 1.5, size=d))


@pytest.mark.parametrize("d", [1, 2, 5, 12])
@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_top_of_a_concave_quadratic(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    score = quadratic(d, rng, inside=True)
    X, f = ascend(score, rng.random((4, d)), free=np.ones((4, d), dtype=bool), steps=100)
    np.testing.assert_allclose(X, np.broadcast_to(score.c, (4, d)), atol=0.02)
    np.testing.assert_allclose(f, 0.0, atol=1e-3)


@pytest.mark.parametrize("d", [1, 2, 5, 12])
@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_top_at_the_bounds_where_the_peak_lies_outside(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    score = quadratic(d, rng, inside=False)
    _, f = ascend(score, rng.random((4, d)), free=np.ones((4, d), dtype=bool), steps=100)
    np.testing.assert_allclose(f, score.highest(), atol=2e-3)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_curvature_that_is_kept_leanly_leads_the_same_way(
    seed: int, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    score, start = quadratic(8, rng, inside=inside), rng.random((4, 8))
    dense = ascend(score, start, free=everywhere(start), steps=10)
    monkeypatch.setattr(local, "_MANY", 4)
    lean = ascend(score, start, free=everywhere(start), steps=10)
    np.testing.assert_allclose(lean[0], dense[0], atol=1e-6)
    np.testing.assert_allclose(lean[1], dense[1], atol=1e-6)


def test_it_climbs_into_a_corner_and_stays_there() -> None:
    score = Quadratic(np.eye(3), np.array([3.0, -2.0, 5.0]))
    X, _ = ascend(score, np.full((2, 3), 0.5), free=np.ones((2, 3), dtype=bool), steps=50)
    np.testing.assert_array_equal(X, [[1.0, 0.0, 1.0]] * 2)


def test_it_leaves_a_corner_that_is_the_worst_place() -> None:
    score = Quadratic(np.eye(2), np.array([0.7, 0.6]))
    X, _ = ascend(score, np.array([[0.0, 1.0]]), free=np.ones((1, 2), dtype=bool), steps=50)
    np.testing.assert_allclose(X, [[0.7, 0.6]], atol=0.01)


@pytest.mark.parametrize("steps", [0, 1, 3, 20])
def test_no_row_ends_lower_than_it_began_or_outside_the_cube(steps: int) -> None:
    start = np.random.default_rng(0).random((50, 4))
    X, f = ascend(Waves(), start, free=everywhere(start), steps=steps)
    assert (f >= Waves()(start)).all()
    assert ((X >= 0.0) & (X <= 1.0)).all()
    np.testing.assert_allclose(f, Waves()(X), rtol=1e-12)


def test_it_climbs_most_hills() -> None:
    start = np.random.default_rng(0).random((50, 4))
    X, f = ascend(Waves(), start, free=everywhere(start), steps=40)
    slope = Waves().gradient(X)[1]
    blocked = ((X == 0.0) & (slope < 0.0)) | ((X == 1.0) & (slope > 0.0))
    level = np.abs(np.where(blocked, 0.0, slope)).max(axis=1) < 0.2
    assert level.mean() > 0.9
    assert (f - Waves()(start)).mean() > 1.0


def test_coordinates_that_are_not_free_do_not_move() -> None:
    start = np.array([[0.2, 0.3, np.nan], [0.9, 0.1, 0.4]])
    free = np.array([[True, False, False], [False, True, True]])
    score = Quadratic(np.eye(3), np.array([0.6, 0.6, 0.6]))
    X, _ = ascend(score, start, free=free, steps=50)
    np.testing.assert_array_equal(X[~free], start[~free])
    np.testing.assert_allclose(X[free], 0.6, atol=0.01)


def test_rows_with_nothing_free_stay_where_they_are() -> None:
    start = np.random.default_rng(0).random((3, 2))
    score = Quadratic(np.eye(2), np.array([0.5, 0.5]))
    X, f = ascend(score, start, free=np.zeros((3, 2), dtype=bool), steps=20)
    np.testing.assert_array_equal(X, start)
    np.testing.assert_array_equal(f, score(start))


def test_rows_that_the_bounds_block_stay_where_they_are() -> None:
    score = Quadratic(np.eye(2), np.array([2.0, -1.0]))
    X, _ = ascend(score, np.array([[1.0, 0.0]]), free=np.ones((1, 2), dtype=bool), steps=20)
    np.testing.assert_array_equal(X, [[1.0, 0.0]])


def test_rows_climb_independently_of_each_other() -> None:
    rng = np.random.default_rng(0)
    start = rng.random((6, 3))
    score = quadratic(3, rng, inside=True)
    together, _ = ascend(score, start, free=everywhere(start), steps=100)
    for row, alone in zip(start, together, strict=True):
        X, _ = ascend(score, row[None, :], free=np.ones((1, 3), dtype=bool), steps=100)
        np.testing.assert_allclose(X[0], alone, atol=0.01)


@pytest.mark.parametrize("slope", [0.0, 1.0, -1e-300, 1e100])
@pytest.mark.parametrize("value", [0.0, -np.inf])
def test_a_score_that_never_rises_leaves_no_row_lower(value: float, slope: float) -> None:
    start = np.random.default_rng(0).random((3, 2))
    X, f = ascend(Fixed(value, slope), start, free=everywhere(start), steps=10)
    np.testing.assert_array_equal(f, value)
    assert ((X >= 0.0) & (X <= 1.0)).all()


def test_a_slope_that_is_not_a_number_leaves_the_row_where_it_is() -> None:
    start = np.random.default_rng(0).random((3, 2))
    X, _ = ascend(Fixed(0.0, np.nan), start, free=everywhere(start), steps=10)
    np.testing.assert_array_equal(X, start)


def test_it_stops_early_where_there_is_nothing_to_gain() -> None:
    score = Quadratic(np.eye(2), np.array([0.5, 0.5]))
    ascend(score, np.full((2, 2), 0.5), free=np.ones((2, 2), dtype=bool), steps=1000)
    assert score.calls < 20


def test_the_given_rows_are_not_changed() -> None:
    start = np.random.default_rng(0).random((3, 2))
    before = start.copy()
    ascend(Waves(), start, free=everywhere(start), steps=10)
    np.testing.assert_array_equal(start, before)
