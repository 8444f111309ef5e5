"""Racing: what is clearly behind stops, and what is as good hardly ever does (racing.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.data.racing import FIRST_LOOK, is_behind, level, project
from tradewind.types import Array, Rival

N = 2000  # simulated trials: a rate of 5 % is known to ±1 %


def stopped_after(own: Array, other: Array, **options: Any) -> int:
    """Of how many folds the loop of a worker runs."""
    k = len(own)
    rival = Rival(tuple(other), options.pop("sign", 1.0), options.pop("margin", 0.0))
    for j in range(1, k):
        if is_behind(tuple(own[:j]), rival, **options):
            return j
    return k


def lengths(draw: Callable[[np.random.Generator], tuple[Array, Array]], n: int = N) -> Array:
    rng = np.random.default_rng(0)
    return np.array([stopped_after(*draw(rng)) for _ in range(n)])


# ---- the error: two configurations that are as good as each other ----


def independent(rng: np.random.Generator, k: int) -> tuple[Array, Array]:
    return rng.normal(0.8, 0.02, k), rng.normal(0.8, 0.02, k)


def with_hard_folds(rng: np.random.Generator, k: int) -> tuple[Array, Array]:
    hard = rng.normal(0.0, 0.05, k)
    return rng.normal(0.8, 0.02, k) + hard, rng.normal(0.8, 0.02, k) + hard


def correlated(rng: np.random.Generator, k: int) -> tuple[Array, Array]:
    """As overlapping training sets make them: a part 1/k of the variance is common to all folds."""
    shared = math.sqrt(1 / k) * rng.standard_normal()
    return shared + math.sqrt(1 - 1 / k) * rng.standard_normal(k), np.zeros(k)


def with_heavy_tails(rng: np.random.Generator, k: int) -> tuple[Array, Array]:
    return rng.standard_t(3, k), np.zeros(k)


def with_both(rng: np.random.Generator, k: int) -> tuple[Array, Array]:
    noise = math.sqrt(1 - 1 / k) * rng.standard_t(3, k) / math.sqrt(3)
    return math.sqrt(1 / k) * rng.standard_normal() + noise, rng.normal(0, 0.5, k)


def accuracies(p: float, agree: float = 0.5) -> Callable[..., tuple[Array, Array]]:
    """On 50 rows a fold, of which a share is answered alike."""

    def draw(rng: np.random.Generator, k: int) -> tuple[Array, Array]:
        alike = rng.binomial(50, agree, k)
        common = rng.binomial(alike, p)
        return (
            (common + rng.binomial(50 - alike, p)) / 50,
            (common + rng.binomial(50 - alike, p)) / 50,
        )

    return draw


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize(
    "draw",
    [
        independent,
        with_hard_folds,
        correlated,
        with_heavy_tails,
        with_both,
        accuracies(0.9),
        accuracies(0.98, agree=0.0),
        accuracies(0.995),
    ],
)
def test_what_is_as_good_is_stopped_in_at_most_5_percent(
    draw: Callable[..., tuple[Array, Array]], k: int
) -> None:
    false = np.mean(lengths(lambda rng: draw(rng, k)) < k)
    assert false <= 0.05


def test_the_error_can_be_chosen() -> None:
    rng = np.random.default_rng(0)
    pairs = [correlated(rng, 5) for _ in range(N)]
    false = [np.mean([stopped_after(*p, error=e) < 5 for p in pairs]) for e in (0.02, 0.1, 0.3)]
    assert false[0] < 0.02
    assert 0.05 < false[1] < 0.1
    assert 0.15 < false[2] < 0.3


def test_the_first_look_alone_keeps_its_level_under_the_correlation_it_assumes() -> None:
    rng = np.random.default_rng(1)
    rival = Rival((0.0,) * 3, 1.0)
    at_two = [is_behind(tuple(correlated(rng, 3)[0][:2]), rival, error=0.2) for _ in range(4 * N)]
    assert np.mean(at_two) == pytest.approx(0.2, abs=0.012)


@pytest.mark.parametrize("k", [3, 4, 5, 10, 100])
def test_the_shares_of_the_looks_add_up_to_the_error(k: int) -> None:
    shares = [level(j, k, 0.05) for j in range(FIRST_LOOK, k)]
    assert sum(shares) == pytest.approx(0.05)
    assert shares == sorted(shares, reverse=True)


def test_one_that_would_have_won_over_all_folds_is_hardly_ever_stopped() -> None:
    rng = np.random.default_rng(0)
    would_win, stopped = 0, 0
    for _ in range(N):
        own, other = with_hard_folds(rng, 5)
        won = own.mean() > other.mean()
        would_win += won
        stopped += won and stopped_after(own, other) < 5
    assert would_win > 0.4 * N
    assert stopped <= 0.01 * would_win


# ---- the power ----


def lagging(gap: float, k: int) -> Callable[[np.random.Generator], tuple[Array, Array]]:
    """By so many standard deviations of the differences, on folds of unequal hardness."""

    def draw(rng: np.random.Generator) -> tuple[Array, Array]:
        hard = rng.standard_normal(k)
        return hard + correlated(rng, k)[0] - gap, hard

    return draw


@pytest.mark.parametrize(
    ("gap", "k", "folds"),
    [(3.0, 5, 3.7), (3.0, 10, 4.4), (5.0, 5, 2.9), (5.0, 10, 3.1), (20.0, 5, 2.1), (20.0, 10, 2.2)],
)
def test_what_is_far_behind_is_stopped_after_few_folds(gap: float, k: int, folds: float) -> None:
    after = lengths(lagging(gap, k), 1000)
    assert after.mean() < folds


def test_what_is_ahead_is_hardly_ever_stopped() -> None:
    assert np.mean(lengths(lagging(-1.0, 10), 1000) < 10) <= 0.002


def test_further_behind_is_stopped_no_later() -> None:
    means = [lengths(lagging(gap, 10), 300).mean() for gap in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)]
    assert means == sorted(means, reverse=True)


# ---- sides, margins, units ----

WORSE, BETTER = (0.70, 0.72, 0.71), (0.90, 0.93, 0.91, 0.92, 0.90)


def test_the_sign_says_which_side_is_worse() -> None:
    assert is_behind(WORSE, Rival(BETTER, 1.0))
    assert not is_behind(WORSE, Rival(BETTER, -1.0))
    assert not is_behind(BETTER[:3], Rival((*WORSE, 0.7, 0.7), 1.0))
    assert is_behind(BETTER[:3], Rival((*WORSE, 0.7, 0.7), -1.0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_margin_is_forgiven(sign: float) -> None:
    worse, better = (WORSE, BETTER) if sign > 0 else (BETTER[:3], (*WORSE, 0.7, 0.7))
    assert is_behind(worse, Rival(better, sign, margin=0.1))
    assert not is_behind(worse, Rival(better, sign, margin=0.2))
    assert not is_behind(worse, Rival(better, sign, margin=1.0))


@given(
    scale=st.sampled_from([1e-300, 1e-9, 1e9, 1e305]),
    shift=st.floats(-10, 10),
    gap=st.floats(0, 20),
    seed=st.integers(0, 999),
)
@settings(deadline=None)
def test_units_do_not_matter(scale: float, shift: float, gap: float, seed: int) -> None:
    own, other = lagging(gap, 5)(np.random.default_rng(seed))
    plain = stopped_after(own, other, margin=0.5)
    assert stopped_after(own * scale, other * scale, margin=0.5 * scale) == plain
    assert stopped_after(own + shift, other + shift, margin=0.5) == plain
    assert stopped_after(-own, -other, sign=-1.0, margin=0.5) == plain


# ---- ties ----


def test_equal_differences_are_no_certainty() -> None:
    """Accuracies on 50 rows, one row worse in both folds."""
    other = (0.90, 0.94, 0.92, 0.88, 0.96)
    own = tuple(f - 0.02 for f in other)
    assert not is_behind(own[:2], Rival(other, 1.0))


def test_equal_differences_that_are_large_for_these_folds_are_clear() -> None:
    other = (0.90, 0.94, 0.92, 0.88, 0.96)
    assert is_behind(tuple(f - 0.5 for f in other[:2]), Rival(other, 1.0))


@pytest.mark.parametrize("gap", [0.0, 1e-17, 0.02, 0.9])
def test_where_nothing_varies_nothing_is_clear(gap: float) -> None:
    rival = Rival((1.0,) * 10, 1.0)
    assert not any(is_behind((1.0 - gap,) * j, rival) for j in range(11))


def test_rounding_is_no_spread() -> None:
    assert not is_behind((0.1 + 0.2, 0.3), Rival((0.7,) * 5, 1.0))


# ---- what is not evidence ----


@pytest.mark.parametrize("j", [0, 1, 5, 6, 9])
def test_there_is_no_look_before_the_second_fold_nor_after_the_last(j: int) -> None:
    rng = np.random.default_rng(0)
    assert not is_behind(tuple(rng.normal(-1e6, 1, j)), Rival(tuple(rng.normal(0, 1, 5)), 1.0))


@pytest.mark.parametrize("folds", [(), (0.9,), (0.9, 0.8)])
def test_a_rival_with_two_folds_or_fewer_races_nothing(folds: tuple[float, ...]) -> None:
    assert not any(is_behind(own, Rival(folds, 1.0)) for own in [(), (0.1,), (0.1, 0.2)])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_stops_nothing(bad: float) -> None:
    assert not is_behind((bad, *WORSE[1:]), Rival(BETTER, 1.0))
    assert not is_behind((*WORSE[:2], bad), Rival(BETTER, 1.0))
    assert not is_behind(WORSE, Rival((bad, *BETTER[1:]), 1.0))
    assert not is_behind(WORSE, Rival((*BETTER[:4], bad), 1.0))
    assert not is_behind(WORSE, Rival(BETTER, 1.0, margin=abs(bad)))


def test_the_largest_numbers_there_are_do_not_overflow() -> None:
    huge = (1.7e308, 1.6e308, 1.7e308, 1.5e308, 1.7e308)
    assert is_behind(tuple(-f for f in huge[:4]), Rival(huge, 1.0))
    assert not is_behind(huge[:3], Rival(huge, 1.0, margin=1.7e308))


@given(
    own=st.lists(st.floats(), max_size=12),
    other=st.lists(st.floats(), max_size=12),
    margin=st.floats(0),
    held_out=st.none() | st.floats(0.01, 0.99),
)
def test_whatever_is_compared_gives_an_answer(
    own: list[float], other: list[float], margin: float, held_out: float | None
) -> None:
    stop = is_behind(own, Rival(tuple(other), 1.0, margin), held_out=held_out)
    assert not (stop and own[0] + margin > other[0] and own[1] + margin > other[1] and len(own) < 3)


@pytest.mark.parametrize("error", [0.0, 1.0, -0.1, math.nan])
def test_an_error_outside_of_0_and_1_is_refused(error: float) -> None:
    with pytest.raises(ValueError, match="error must be a number in"):
        is_behind(WORSE, Rival(BETTER, 1.0), error=error)


def test_more_rows_held_out_ask_for_more_evidence() -> None:
    rng = np.random.default_rng(0)
    pairs = [lagging(2.0, 10)(rng) for _ in range(200)]
    little, much = (
        np.mean([stopped_after(*p, held_out=share) for p in pairs]) for share in (0.05, 0.5)
    )
    assert little < much


# ---- the estimate ----


def test_the_estimate_is_the_rivals_mean_and_the_paired_difference() -> None:
    rival = Rival((0.9, 0.8, 0.7, 0.6), 1.0, margin=0.3)
    assert project((0.8, 0.6), rival) == pytest.approx(0.75 - 0.15)


def test_over_all_folds_the_estimate_is_the_mean() -> None:
    assert project((0.8, 0.6), Rival((0.9, 0.8), 1.0)) == pytest.approx(0.7)
    assert project((0.8, 0.6, 0.1), Rival((0.9, 0.8), 1.0)) == pytest.approx(0.5)


def test_the_estimate_is_nearer_than_the_mean_of_the_first_folds() -> None:
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(300):
        own, other = with_hard_folds(rng, 5)
        rival = Rival(tuple(other), 1.0)
        errors.append((project(own[:2], rival) - own.mean(), own[:2].mean() - own.mean()))
    paired, plain = np.sqrt(np.mean(np.square(errors), axis=0))
    assert paired < 0.7 * plain
