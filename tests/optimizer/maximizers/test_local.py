"""The everyday maximizer on functions whose best is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.space.generate import spaces
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.maximizers.maximizer import Score
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Space, TrainSize
from tradewind.types import Array

MIXED = Space(
    {
        "lr": Float(1e-5, 1.0, log=True),
        "momentum": Float(0.0, 1.0),
        "layers": Int(1, 12),
        "width": Ordinal([16, 32, 64, 128, 256]),
        "kind": Categorical(["a", "b", "c", "d"]),
        "nested": Float(0.0, 1.0, when={"kind": ["b", "c"]}),
        "flag": Bool(),
        "size": TrainSize(),
    }
)
PEAK = {
    "lr": 0.01,
    "momentum": 0.3,
    "layers": 9,
    "width": 64,
    "kind": "c",
    "nested": 0.8,
    "flag": True,
    "size": 0.4,
}

SMALL = LocalSearch(candidates=20, mutations=5, climbers=2, steps=4, rounds=1)


class Hill:
    """Falls with the squared distance from a peak; a wrong category costs 0.3."""

    def __init__(self, space: Space, peak: dict[str, object]) -> None:
        self.space = space
        self.peak = space.encode([space.validate(peak)])[0]
        self.categorical = space.columns.categorical

    def __call__(self, X: Array) -> Array:
        D = X - self.peak
        numeric = np.where(self.categorical, 0.0, np.nan_to_num(D, nan=0.5)) ** 2
        wrong = np.where(self.categorical, np.nan_to_num(D, nan=1.0) != 0.0, False)
        return -4.0 * numeric.sum(axis=1) - 0.3 * wrong.sum(axis=1)


class SmoothHill(Hill):
    def gradient(self, X: Array) -> tuple[Array, Array]:
        slope = -8.0 * np.nan_to_num(X - self.peak)
        return self(X), np.where(self.categorical | np.isnan(X), 0.0, slope)


HILLS = pytest.mark.parametrize("hill", [Hill, SmoothHill])


def maximize(
    score: Score, space: Space, *, start: Array | None = None, seed: int = 0, **effort: int
) -> Array:
    rng = np.random.default_rng(seed)
    start = space.sample(1, rng=np.random.default_rng(99)) if start is None else start
    return LocalSearch(**effort).maximize(score, space, start=start, rng=rng)


def belongs(row: Array, space: Space) -> bool:
    """Snapped, allowed, and a valid configuration."""
    assert row.shape == (len(space),)
    np.testing.assert_array_equal(space.snap(row[None, :])[0], row)
    config = space.decode(row[None, :])[0]
    return space.validate(config) == config and bool(space.allowed(row[None, :])[0])


# ---- it stays in the space, and never falls below its start ----


def by_sum(X: Array) -> Array:
    return np.nansum(X, axis=1)


def by_waves(X: Array) -> Array:
    return np.sin(40.0 * np.nan_to_num(X, nan=0.3)).sum(axis=1)


class SmoothSum:
    def __call__(self, X: Array) -> Array:
        return by_sum(X)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        return by_sum(X), np.where(np.isnan(X), 0.0, 1.0)


@pytest.mark.parametrize("score", [by_sum, by_waves, SmoothSum()], ids=["sum", "waves", "smooth"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), seed=st.integers(0, 1000))
def test_it_never_leaves_the_space_nor_falls_below_its_start(
    score: Score, space: Space, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    start = space.sample(3, rng=rng)
    row = SMALL.maximize(score, space, start=start, rng=rng)
    assert belongs(row, space)
    assert score(row[None, :])[0] >= score(start).max()


def test_a_start_that_nothing_beats_is_returned() -> None:
    start = MIXED.sample(4, rng=np.random.default_rng(5))

    def only_the_third(X: Array) -> Array:
        same = [np.array_equal(row, start[2], equal_nan=True) for row in X]
        return np.where(same, 1.0, 0.0)

    np.testing.assert_array_equal(maximize(only_the_third, MIXED, start=start), start[2])


def test_the_given_starts_are_not_changed() -> None:
    start = MIXED.sample(4, rng=np.random.default_rng(5))
    before = start.copy()
    maximize(Hill(MIXED, PEAK), MIXED, start=start)
    np.testing.assert_array_equal(start, before)


# ---- it finds what is there ----


@HILLS
@pytest.mark.parametrize("seed", range(5))
def test_it_finds_the_peak_of_a_mixed_function(hill: type[Hill], seed: int) -> None:
    row = maximize(hill(MIXED, PEAK), MIXED, seed=seed)
    found = MIXED.decode(row[None, :])[0]
    for name in ("layers", "width", "kind", "flag", "size"):
        assert found[name] == PEAK[name]
    for name in ("momentum", "nested"):
        assert found[name] == pytest.approx(PEAK[name], abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_a_gradient_leads_closer_to_the_peak(seed: int) -> None:
    row = maximize(SmoothHill(MIXED, PEAK), MIXED, seed=seed)
    found = MIXED.decode(row[None, :])[0]
    assert found["momentum"] == pytest.approx(0.3, abs=1e-3)
    assert found["nested"] == pytest.approx(0.8, abs=1e-3)
    assert math.log10(found["lr"]) == pytest.approx(-2.0, abs=0.005)


@HILLS
def test_it_finds_a_peak_in_a_corner(hill: type[Hill]) -> None:
    space = Space({"x": Float(0.0, 1.0), "y": Float(-1.0, 1.0), "n": Int(1, 5)})
    score = hill(space, {"x": 1.0, "y": -1.0, "n": 5})
    found = space.decode(maximize(score, space)[None, :])[0]
    assert found["x"] == pytest.approx(1.0, abs=0.02)
    assert found["y"] == pytest.approx(-1.0, abs=0.04)
    assert found["n"] == 5


@HILLS
def test_it_finds_the_one_good_value_among_many_categories(hill: type[Hill]) -> None:
    space = Space({"one": Categorical(list(range(40))), "other": Categorical(list(range(25)))})
    score = hill(space, {"one": 31, "other": 7})
    assert space.decode(maximize(score, space)[None, :])[0] == {"one": 31, "other": 7}


@HILLS
def test_it_finds_the_peak_of_a_space_with_one_number(hill: type[Hill]) -> None:
    space = Space({"x": Float(0.0, 10.0)})
    row = maximize(hill(space, {"x": 7.0}), space)
    assert space.decode(row[None, :])[0]["x"] == pytest.approx(7.0, abs=0.05)


def test_it_searches_where_the_finite_columns_are_inactive_or_have_one_value() -> None:
    space = Space(
        {
            "kind": Categorical(["only"]),
            "x": Float(0.0, 1.0),
            "depth": Int(1, 5, when={"gate": "open"}),
            "gate": Categorical(["shut", "open"]),
        },
        forbid=[{"gate": "open"}],
    )
    score = Hill(space, {"kind": "only", "x": 0.25, "gate": "shut"})
    found = space.decode(maximize(score, space)[None, :])[0]
    assert found["x"] == pytest.approx(0.25, abs=0.02)


def test_it_starts_from_what_it_is_given() -> None:
    """A needle that random rows do not find is climbed from a start nearby."""
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(10)})

    def needle(X: Array) -> Array:
        return np.exp(-2000.0 * np.square(X - 0.5).mean(axis=1))

    start = np.full((1, 10), 0.53)
    row = maximize(needle, space, start=start)
    assert needle(row[None, :])[0] > 1.5 * needle(start)[0]


def test_more_effort_finds_no_less() -> None:
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(6)})
    score = by_waves
    start = space.sample(2, rng=np.random.default_rng(1))
    little = np.mean(
        [score(SMALL.maximize(score, space, start=start, rng=np.random.default_rng(s))[None, :])
         for s in range(5)]
    )  # fmt: skip
    much = np.mean([score(maximize(score, space, start=start, seed=s)[None, :]) for s in range(5)])
    assert much > little


# ---- what is forbidden, flat or blocked ----


@HILLS
def test_a_forbidden_peak_is_not_returned(hill: type[Hill]) -> None:
    free = Space({name: MIXED[name] for name in ("momentum", "kind", "layers", "nested")})
    peak = {name: PEAK[name] for name in free}
    space = Space(dict(free.items()), forbid=[{"kind": "c", "layers": [8, 9, 10]}])
    score = hill(free, peak)
    row = maximize(score, space)
    assert belongs(row, space)
    # the best that is left is the same with two layers more or less, 2/12 of the range away
    assert score(row[None, :])[0] == pytest.approx(-4.0 * (2.0 / 12.0) ** 2, abs=0.01)


@pytest.mark.parametrize("value", [0.0, -np.inf])
def test_a_flat_score_returns_a_row_of_the_space(value: float) -> None:
    row = maximize(lambda X: np.full(len(X), value), MIXED)
    assert belongs(row, MIXED)


class Blocked(SmoothHill):
    """Every row may not be proposed, though the slope says otherwise."""

    def __call__(self, X: Array) -> Array:
        return np.full(len(X), -np.inf)


def test_where_every_row_is_blocked_a_start_is_returned() -> None:
    start = MIXED.sample(3, rng=np.random.default_rng(5))
    row = maximize(Blocked(MIXED, PEAK), MIXED, start=start)
    assert belongs(row, MIXED)
    np.testing.assert_array_equal(row, start[0])


class Tried(SmoothHill):
    """The peak itself may not be proposed; the slope does not know."""

    def __call__(self, X: Array) -> Array:
        return np.where((X - self.peak == 0.0).all(axis=1), -np.inf, super().__call__(X))

    def gradient(self, X: Array) -> tuple[Array, Array]:
        return super().__call__(X), super().gradient(X)[1]


@pytest.mark.parametrize("smooth", [False, True])
def test_a_blocked_peak_gives_way_to_the_next_best_row(smooth: bool) -> None:
    space = Space({"n": Int(1, 9), "kind": Categorical(["a", "b", "c"])})
    score = Tried(space, {"n": 5, "kind": "b"})
    row = maximize(score if smooth else score.__call__, space)
    assert space.decode(row[None, :])[0] in ({"n": 4, "kind": "b"}, {"n": 6, "kind": "b"})


def test_a_space_of_one_configuration_has_one_answer() -> None:
    space = Space({"kind": Categorical(["only"]), "width": Ordinal([64])})
    row = maximize(by_sum, space)
    assert space.decode(row[None, :]) == [{"kind": "only", "width": 64}]


# ---- determinism, and what the score is asked ----


@HILLS
def test_the_same_generator_gives_the_same_row(hill: type[Hill]) -> None:
    score = hill(MIXED, PEAK)
    a, b = (maximize(score, MIXED, seed=3) for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_the_score_is_asked_about_snapped_rows_only() -> None:
    inner = Hill(MIXED, PEAK)
    asked: list[Array] = []

    def score(X: Array) -> Array:
        asked.append(X.copy())
        return inner(X)

    maximize(score, MIXED)
    rows = np.vstack(asked)
    np.testing.assert_array_equal(MIXED.snap(rows), rows)
