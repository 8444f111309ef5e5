"""Measures of a ranking: precision at 1 and the mean reciprocal rank.

Candidates with equal scores could be in any order, so each measure is the mean over all these
orders. A model that gives all candidates the same score is as good as guessing, and no better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.types import Array


def precision_at_1(
    scores: Any, relevance: Any, sizes: Any = None, *, qid: Any = None, answerable: bool = False
) -> float:
    """The share of queries whose best-scored candidate is relevant (relevance > 0).

    The candidates of all queries are in one list. Either `sizes` gives the number of candidates of
    each query, or `qid` gives the query of each candidate, in any order. Without either, scores and
    relevance have a list (or the row of an array) for each query.

    A query without a relevant candidate counts as 0, because the user of a search engine gets a
    wrong answer in that case as well. `answerable=True` leaves such queries out of the mean.

    >>> tw.models.precision_at_1([[0.9, 0.1], [0.3, 0.8]], [[1, 0], [1, 0]])
    0.5
    """
    ranked = _read(scores, relevance, sizes, qid)
    tied = ranked.scores == ranked.highest(np.ones(len(ranked.scores), dtype=bool))[ranked.query]
    return ranked.mean(ranked.count(tied & ranked.relevant), ranked.count(tied), answerable)


def reciprocal_rank(
    scores: Any, relevance: Any, sizes: Any = None, *, qid: Any = None, answerable: bool = False
) -> float:
    """The mean over queries of 1/rank of the first relevant candidate. The arguments and the
    treatment of queries without a relevant candidate are as in `precision_at_1`.

    >>> tw.models.reciprocal_rank([[0.9, 0.1], [0.3, 0.8]], [[1, 0], [1, 0]])
    0.75
    """
    ranked = _read(scores, relevance, sizes, qid)
    best = ranked.highest(ranked.relevant)[ranked.query]
    tied = ranked.scores == best
    found = ranked.count(tied & ranked.relevant)
    above = ranked.count(ranked.scores > best)
    value = _expected_reciprocal(above, ranked.count(tied), found)
    return ranked.mean(value, np.ones_like(value), answerable)


def _expected_reciprocal(above: Array, tied: Array, found: Array) -> Array:
    """E[1/(above + J)], where J is the place of the first of `found` relevant candidates among
    `tied` ones in random order. 0 if found = 0.

    P(J = 1) = found/tied, and P(J = j + 1) = P(J = j)·(tied − found − j + 1)/(tied − j).
    """
    value = np.zeros(len(tied))
    going = np.flatnonzero(found)
    probability = found[going] / tied[going]
    place = 1
    while len(going):
        value[going] += probability / (above[going] + place)
        others = tied[going] - found[going]
        more = others >= place
        going, probability, others = going[more], probability[more], others[more]
        probability = probability * (others - place + 1) / (tied[going] - place)
        place += 1
    return value


@dataclass(frozen=True)
class _Ranked:
    """n candidates, and the query that each of them belongs to."""

    scores: Array
    relevant: NDArray[np.bool_]
    query: NDArray[np.intp]
    queries: int

    def count(self, which: NDArray[np.bool_]) -> Array:
        """For each query, the number of its candidates in `which`."""
        return np.bincount(self.query[which], minlength=self.queries).astype(np.float64)

    def highest(self, which: NDArray[np.bool_]) -> Array:
        """For each query, the highest score of its candidates in `which`, or -inf without any."""
        highest = np.full(self.queries, -np.inf)
        np.maximum.at(highest, self.query[which], self.scores[which])
        return highest

    def mean(self, value: Array, out_of: Array, answerable: bool) -> float:
        """The mean of value/out_of over the queries."""
        has_one = self.count(self.relevant) > 0
        if answerable and not has_one.any():
            raise ValueError("at least one query must have a relevant candidate, but none has")
        each = np.divide(value, out_of, out=np.zeros(self.queries), where=out_of > 0)
        return float(each[has_one].mean() if answerable else each.mean())


# ---- arguments ----


def _read(scores: Any, relevance: Any, sizes: Any, qid: Any) -> _Ranked:
    if sizes is not None and qid is not None:
        raise ValueError(
            "sizes and qid both say which candidates belong together: give one of them"
        )
    if sizes is None and qid is None:
        scores, sizes = _join("scores", scores)
        relevance, relevance_sizes = _join("relevance", relevance)
        if sizes != relevance_sizes:
            raise ValueError(
                "scores and relevance must have the same number of candidates for each query"
            )
    s, r = _read_numbers("scores", scores), _read_numbers("relevance", relevance)
    if s.shape != r.shape:
        raise ValueError(
            f"scores and relevance must have equal lengths, but got {len(s)} and {len(r)}"
        )
    if (r < 0).any():
        raise ValueError(f"relevance must not be negative, but got {r.min():g}")
    query, queries = _read_sizes(sizes, len(s)) if qid is None else _read_qid(qid, len(s))
    if not queries:
        raise ValueError("at least one query is needed, but got none")
    return _Ranked(s, r > 0, query, queries)


def _join(name: str, given: Any) -> tuple[Any, list[int]]:
    """The lists of all queries as one array, and their lengths."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must have a list for each query, but got {given!r:.60}")
    parts = [np.asarray(part) for part in given]
    if any(part.ndim != 1 for part in parts):
        raise ValueError(
            f"{name} must have a list of candidates for each query; if all candidates are in one "
            "list, give sizes or qid"
        )
    full = [part for part in parts if len(part)]
    return np.concatenate(full) if full else np.empty(0), [len(part) for part in parts]


def _read_numbers(name: str, given: Any) -> Array:
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"{name} must have a number for each candidate, but got {array.shape}")
    if array.dtype.kind not in "biuf" and len(array):
        raise ValueError(f"{name} must be numbers, but got {array.dtype}")
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        raise ValueError(f"{name} must not be NaN, but candidate {np.isnan(numbers).argmax()} is")
    return numbers


def _read_sizes(sizes: Any, n: int) -> tuple[NDArray[np.intp], int]:
    """The query of each candidate, and the number of queries."""
    counts = np.asarray(sizes)
    whole = counts.ndim == 1 and (counts.dtype.kind in "iu" or not len(counts))
    if not whole or (counts < 0).any() or counts.sum() != n:
        raise ValueError(
            f"sizes must be whole numbers that add up to {n} candidates, but got {sizes!r:.60}"
        )
    return np.repeat(np.arange(len(counts)), counts.astype(np.intp)), len(counts)


def _read_qid(qid: Any, n: int) -> tuple[NDArray[np.intp], int]:
    """The query of each candidate, and the number of queries."""
    distinct, query = np.unique(query_ids(qid, n), return_inverse=True)
    return query, len(distinct)


def query_ids(qid: Any, n: int) -> NDArray[Any]:
    """The query of each of n candidates."""
    ids = np.asarray(qid)
    if ids.shape != (n,):
        raise ValueError(
            f"qid must have a query for each of {n} candidates, but got the shape {ids.shape}"
        )
    try:
        is_missing = ids.dtype.kind in "fO" and bool((ids != ids).any())  # NaN does not equal NaN
        if ids.dtype.kind == "O":
            np.unique(ids)
    except TypeError:
        raise ValueError("qid must be all strings or all numbers, but they are mixed") from None
    if is_missing:
        raise ValueError("qid must not be NaN: every candidate belongs to a query")
    return ids
