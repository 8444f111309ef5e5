"""Precision at 1 and the reciprocal rank, against a loop over every order of equal scores."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.models.ranking import precision_at_1, reciprocal_rank

Measure = Callable[..., float]
Pool = list[tuple[float, int]]  # score and relevance of each candidate

MEASURES = [precision_at_1, reciprocal_rank]

CANDIDATE = st.tuples(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), st.integers(0, 2))
POOLS = st.lists(st.lists(CANDIDATE, max_size=5), min_size=1, max_size=6)


def naive(pool: Pool, measure: Measure) -> Fraction:
    """The mean over all orders that the scores allow."""
    values = []
    for order in permutations(pool):
        if all(a[0] >= b[0] for a, b in pairwise(order)):
            first = next((i for i, (_, r) in enumerate(order, 1) if r > 0), None)
            one = measure is precision_at_1
            values.append(Fraction(0 if first is None or (one and first > 1) else 1, first or 1))
    return sum(values, Fraction()) / len(values)


def flat(pools: list[Pool]) -> tuple[list[float], list[int], list[int]]:
    rows = [candidate for pool in pools for candidate in pool]
    return [s for s, _ in rows], [r for _, r in rows], [len(pool) for pool in pools]


# ---- what they measure ----


@pytest.mark.parametrize("measure", MEASURES)
@given(pools=POOLS)
def test_a_measure_is_the_mean_over_all_orders_of_equal_scores(
    measure: Measure, pools: list[Pool]
) -> None:
    expected = [naive(pool, measure) for pool in pools]
    assert measure(*flat(pools)) == pytest.approx(float(sum(expected) / len(pools)), abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
@given(pools=POOLS)
def test_queries_without_a_relevant_candidate_can_be_left_out(
    measure: Measure, pools: list[Pool]
) -> None:
    expected = [naive(pool, measure) for pool in pools if any(r for _, r in pool)]
    if expected:
        value = measure(*flat(pools), answerable=True)
        assert value == pytest.approx(float(sum(expected) / len(expected)), abs=1e-12)
    else:
        with pytest.raises(ValueError, match="at least one query must have a relevant candidate"):
            measure(*flat(pools), answerable=True)


@pytest.mark.parametrize("measure", MEASURES)
@given(pools=POOLS, seed=st.integers(0, 99))
def test_ids_in_any_order_lists_and_sizes_say_the_same(
    measure: Measure, pools: list[Pool], seed: int
) -> None:
    pools = [pool for pool in pools if pool] or [[(1.0, 1)]]
    scores, relevance, sizes = flat(pools)
    expected = measure(scores, relevance, sizes)
    ids = np.repeat([f"q{-i}" for i in range(len(pools))], sizes)
    shuffled = np.random.default_rng(seed).permutation(len(scores))
    rows = np.array(scores)[shuffled], np.array(relevance)[shuffled]
    assert measure(*rows, qid=ids[shuffled]) == pytest.approx(expected, abs=1e-12)
    lists = [[s for s, _ in pool] for pool in pools], [[r for _, r in pool] for pool in pools]
    assert measure(*lists) == pytest.approx(expected, abs=1e-12)


def test_a_table_has_a_query_in_each_row() -> None:
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]])
    relevance = np.array([[False, False, True], [True, False, False]])
    assert precision_at_1(scores, relevance) == 0.5
    assert reciprocal_rank(scores, relevance) == 0.75


def test_constant_scores_earn_what_guessing_earns() -> None:
    relevance = np.zeros(500)
    relevance[:2] = 1
    assert precision_at_1(np.zeros(500), relevance, [500]) == 2 / 500
    places = np.arange(1, 500)  # of the first of two among 500: P(j) = (500 − j)/C(500, 2)
    expected = np.sum((500 - places) / (500 * 499 / 2) / places)
    assert reciprocal_rank(np.zeros(500), relevance, [500]) == pytest.approx(expected)


def test_a_query_without_candidates_counts_as_not_answered() -> None:
    assert precision_at_1([0.5], [1], [1, 0]) == 0.5
    assert reciprocal_rank([[0.5], []], [[1], []]) == 0.5


@pytest.mark.parametrize("measure", MEASURES)
def test_scores_may_be_of_any_type_of_number(measure: Measure) -> None:
    for dtype in (np.float16, np.float32, np.int8, np.uint64, bool):
        assert measure(np.array([1, 0], dtype), np.array([1, 0], dtype), np.array([2])) == 1.0


def test_a_million_candidates_are_ranked_at_once() -> None:
    rng = np.random.default_rng(0)
    scores, relevance = rng.random(1_000_000), rng.random(1_000_000) < 0.01
    sizes = np.full(2000, 500)
    best = scores.reshape(2000, 500).argmax(axis=1) + 500 * np.arange(2000)
    assert precision_at_1(scores, relevance, sizes) == pytest.approx(relevance[best].mean())


# ---- what they refuse ----


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, np.nan], [0, 1], [2]), "scores must not be NaN, but candidate 1 is"),
        (([1.0, 2.0], [0, np.nan], [2]), "relevance must not be NaN"),
        (([1.0, 2.0], [0, -1], [2]), "relevance must not be negative, but got -1"),
        (([1.0, 2.0], [0], [2]), "must have equal lengths, but got 2 and 1"),
        (([1.0, 2.0], [0, 1], [3]), "add up to 2 candidates, but got [3]"),
        (([1.0, 2.0], [0, 1], [3, -1]), "whole numbers that add up"),
        (([1.0, 2.0], [0, 1], [2.0]), "whole numbers that add up"),
        (([1.0, 2.0], [0, 1], 2), "whole numbers that add up"),
        (([1.0, 2.0], [0, 1]), "in one list, give sizes or qid"),
        ((["a", "b"], [0, 1], [2]), "scores must be numbers"),
        (([[1.0]], [0], [1]), "scores must have a number for each candidate, but got (1, 1)"),
        (([[1.0, 2.0]], [[1], [0]]), "the same number of candidates for each query"),
        ((1.0, [1]), "scores must have a list for each query"),
        (("ab", [1]), "scores must have a list for each query"),
        (([], [], []), "at least one query is needed, but got none"),
        (([], []), "at least one query is needed, but got none"),
    ],
)
def test_wrong_arguments_are_named(
    measure: Measure, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        measure(*arguments)


@pytest.mark.parametrize("measure", MEASURES)
def test_wrong_ids_are_named(measure: Measure) -> None:
    with pytest.raises(
        ValueError, match=re.escape("a query for each of 2 candidates, but got the shape (1,)")
    ):
        measure([1.0, 2.0], [0, 1], qid=[7])
    with pytest.raises(ValueError, match="qid must not be NaN"):
        measure([1.0, 2.0], [0, 1], qid=[7.0, np.nan])
    for mixed in ([7, None], [None, None], np.array(["a", 7], dtype=object), [pd.NA, 7]):
        with pytest.raises(ValueError, match="qid must be all strings or all numbers"):
            measure([1.0, 2.0], [0, 1], qid=mixed)
    with pytest.raises(ValueError, match="qid must not be NaN"):
        measure([1.0, 2.0], [0, 1], qid=np.array([7.0, np.nan], dtype=object))
    with pytest.raises(ValueError, match="give one"):
        measure([1.0, 2.0], [0, 1], [2], qid=[7, 7])
