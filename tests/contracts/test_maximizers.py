"""What every maximizer must do; a new one is one more line in MAXIMIZERS."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.space.generate import spaces
from tradewind.optimizer.maximizers.evolution import MIES
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.maximizers.maximizer import Maximizer, Score
from tradewind.space import (
    Bool,
    Categorical,
    Float,
    Int,
    Ordinal,
    Parameter,
    Space,
    TrainSize,
    at_least,
)
from tradewind.types import Array, Value

MAXIMIZERS: dict[str, Maximizer] = {
    "mies": MIES(),
    "local": LocalSearch(),
}

MIXED = Space(
    {
        "x": Float(0.0, 1.0),
        "lr": Float(1e-5, 1e-1, log=True),
        "k": Int(1, 40),
        "batch": Int(8, 512, log=True),
        "width": Ordinal([16, 32, 64, 128, 256]),
        "kind": Categorical(["a", "b", "c", "d", "e"]),
        "flag": Bool(),
    }
)
NESTED = Space(
    {
        "model": Categorical(["linear", "tree", "net"]),
        "layers": Int(1, 4, when={"model": "net"}),
        "dropout": Float(0.0, 1.0, when={"layers": at_least(3)}),
        "activation": Categorical(["relu", "elu", "tanh"], when={"layers": at_least(2)}),
        "slope": Float(0.0, 1.0, when={"activation": "elu"}),
    }
)
ONE_PARAMETER: dict[str, Parameter] = {
    "float": Float(-1.0, 1.0),
    "int": Int(0, 99),
    "log int": Int(1, 100_000, log=True),
    "ordinal": Ordinal([1, 2, 4]),
    "categorical": Categorical(list("abcdefgh")),
    "bool": Bool(),
    "train size": TrainSize(),
    "a single value": Categorical(["only"]),
}


@pytest.fixture(params=MAXIMIZERS)
def maximizer(request: pytest.FixtureRequest) -> Maximizer:
    return MAXIMIZERS[request.param]


def found(
    maximizer: Maximizer, score: Score, space: Space, *, start: Array | None = None, seed: int = 0
) -> Array:
    rng = np.random.default_rng(seed)
    start = space.sample(5, rng=rng) if start is None else start
    return maximizer.maximize(score, space, start=start, rng=rng)


def is_snapped_and_allowed(X: Array, space: Space) -> bool:
    return np.array_equal(space.snap(X), X, equal_nan=True) and bool(space.allowed(X).all())


def nearness(space: Space, target: Mapping[str, Value]) -> Score:
    """0 at the target and less elsewhere: unequal categories cost 1, numbers their distance²."""
    goal = space.encode([target])[0]
    categorical = space.columns.categorical

    def score(X: Array) -> Array:
        gap = np.abs(np.nan_to_num(X, nan=-1.0) - np.nan_to_num(goal, nan=-1.0))
        return -np.asarray(np.where(categorical, gap > 1e-9, gap**2).sum(axis=1))

    return score


def ripples(seed: int) -> Score:
    """A bounded score without a structure to exploit, and forbidden in places."""
    w = np.random.default_rng(seed).normal(size=8)

    def score(X: Array) -> Array:
        t = np.nan_to_num(X, nan=-0.3) @ np.resize(w, X.shape[1])
        return np.where(np.sin(23.0 * t) > 0.9, -np.inf, np.cos(7.0 * t))

    return score


# ---- what it returns ----


@pytest.mark.parametrize("name", MAXIMIZERS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), n=st.integers(1, 8), seed=st.integers(0, 2**32 - 1))
def test_the_result_is_a_snapped_allowed_row_no_worse_than_any_start(
    name: str, space: Space, n: int, seed: int
) -> None:
    start = space.sample(n, rng=np.random.default_rng(seed))
    score = ripples(seed)
    row = found(MAXIMIZERS[name], score, space, start=start, seed=seed)
    assert row.shape == (len(space),)
    assert is_snapped_and_allowed(row[None], space)
    assert score(row[None])[0] >= score(start).max()


@pytest.mark.parametrize("name", MAXIMIZERS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), seed=st.integers(0, 2**32 - 1))
def test_only_snapped_rows_are_scored(name: str, space: Space, seed: int) -> None:
    def score(X: Array) -> Array:
        assert np.array_equal(space.snap(X), X, equal_nan=True)
        return ripples(seed)(X)

    found(MAXIMIZERS[name], score, space, seed=seed)


def test_the_same_generator_state_gives_the_same_row(maximizer: Maximizer) -> None:
    one, two = (found(maximizer, ripples(3), MIXED, seed=4) for _ in range(2))
    assert np.array_equal(one, two, equal_nan=True)


def test_the_start_is_left_as_it_was(maximizer: Maximizer) -> None:
    start = NESTED.sample(5, rng=np.random.default_rng(0))
    copy = start.copy()
    row = found(maximizer, ripples(1), NESTED, start=start)
    row[:] = 0.0
    assert np.array_equal(start, copy, equal_nan=True)


# ---- what it finds ----


@pytest.mark.parametrize("seed", range(3))
def test_the_best_row_of_a_mixed_space_is_found(maximizer: Maximizer, seed: int) -> None:
    goal: dict[str, Value] = {
        "x": 0.3,
        "lr": 1e-3,
        "k": 33,
        "batch": 20,
        "width": 128,
        "kind": "d",
        "flag": True,
    }
    score = nearness(MIXED, goal)
    assert score(found(maximizer, score, MIXED, seed=seed)[None])[0] > -1e-3


@pytest.mark.parametrize("kind", ONE_PARAMETER)
def test_the_best_value_of_a_single_parameter_is_found(maximizer: Maximizer, kind: str) -> None:
    space = Space({"only": ONE_PARAMETER[kind]})
    goal = space.sample(1, rng=np.random.default_rng(8))
    score = nearness(space, space.decode(goal)[0])
    assert score(found(maximizer, score, space)[None])[0] > -1e-4


def test_the_best_row_of_categories_only_is_found(maximizer: Maximizer) -> None:
    space = Space({name: Categorical(list("abcde")) for name in "pqrstu"})
    score = nearness(space, dict(zip("pqrstu", "edcbae", strict=True)))
    assert score(found(maximizer, score, space)[None])[0] == 0.0


def test_the_best_row_behind_nested_conditions_is_found(maximizer: Maximizer) -> None:
    goal: dict[str, Value] = {
        "model": "net",
        "layers": 4,
        "dropout": 0.7,
        "activation": "elu",
        "slope": 0.2,
    }
    score = nearness(NESTED, goal)
    start = NESTED.encode([{"model": "linear"}])
    assert score(found(maximizer, score, NESTED, start=start)[None])[0] > -1e-3


def test_the_best_allowed_row_is_found_beside_a_forbidden_one(maximizer: Maximizer) -> None:
    space = Space(
        {"a": Categorical(list("pqr")), "k": Int(1, 9), "x": Float(0.0, 1.0)},
        forbid=[{"a": "q", "k": [4, 5, 6]}],
    )
    score = nearness(Space(dict(space)), {"a": "q", "k": 5, "x": 0.5})
    row = found(maximizer, score, space)
    assert space.decode(row[None])[0]["k"] in (3, 7)
    assert score(row[None])[0] == pytest.approx(-((2 / 9) ** 2), abs=1e-4)


# ---- scores that say little ----


def test_a_flat_score_gives_some_allowed_row(maximizer: Maximizer) -> None:
    row = found(maximizer, lambda X: np.zeros(len(X)), NESTED)
    assert is_snapped_and_allowed(row[None], NESTED)


def test_where_everything_else_may_not_be_proposed_the_start_is_returned(
    maximizer: Maximizer,
) -> None:
    start = MIXED.sample(1, rng=np.random.default_rng(5))

    def score(X: Array) -> Array:
        return np.where((np.abs(X - start[0]) < 1e-12).all(axis=1), 1.0, -np.inf)

    assert np.array_equal(found(maximizer, score, MIXED, start=start), start[0])


def test_where_nothing_may_be_proposed_the_row_is_still_an_allowed_one(
    maximizer: Maximizer,
) -> None:
    row = found(maximizer, lambda X: np.full(len(X), -np.inf), NESTED)
    assert is_snapped_and_allowed(row[None], NESTED)


def test_a_start_that_may_not_be_proposed_is_left(maximizer: Maximizer) -> None:
    start = MIXED.sample(4, rng=np.random.default_rng(5))

    def score(X: Array) -> Array:
        taken = (np.abs(X[:, None] - start).max(axis=2) < 1e-12).any(axis=1)
        return np.where(taken, -np.inf, X[:, 0])

    row = found(maximizer, score, MIXED, start=start)
    assert np.isfinite(score(row[None])[0])


def test_more_starts_than_are_needed_are_all_considered(maximizer: Maximizer) -> None:
    start = MIXED.sample(200, rng=np.random.default_rng(5))
    needle = start[150]

    def score(X: Array) -> Array:
        return np.where((np.abs(X - needle) < 1e-12).all(axis=1), 1.0, 0.0)

    assert np.array_equal(found(maximizer, score, MIXED, start=start), needle)
