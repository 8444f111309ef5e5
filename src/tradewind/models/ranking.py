"""How well candidates are ranked: precision at 1 and the mean reciprocal rank.

Candidates whose scores are equal could stand in any order, so each measure is the mean over all of
these orders: a model that scores everything alike gets what guessing gets, and no more.
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
    """The share of queries whose best-scored candidate is relevant, that is, has relevance > 0.

    Candidates stand one after the other, and `sizes` says how many each query has, or `qid` which
    query each belongs to, in any order. Without either, scores and relevance are two lists with an
    item for each query, or two arrays with a row for each.

    A query without a relevant candidate counts as 0: whoever searches a pool that a search engine
    made has to answer for it. `answerable=True` leaves such queries out of the mean.
    """
    ranked = _read(scores, relevance, sizes, qid)
    tied = ranked.scores == ranked.highest(np.ones(len(ranked.scores), dtype=bool))[ranked.query]
    return ranked.mean(ranked.count(tied & ranked.relevant), ranked.count(tied), answerable)


def reciprocal_rank(
    scores: Any, relevance: Any, sizes: Any = None, *, qid: Any = None, answerable: bool = False
) -> float:
    """The mean of 1/rank of the first relevant candidate of each query; all arguments, and queries
    without a relevant candidate, are as in `precision_at_1`."""
    ranked = _read(scores, relevance, sizes, qid)
    best = ranked.highest(ranked.relevant)[ranked.query]
    tied = ranked.scores == best
    found = ranked.count(tied & ranked.relevant)
    above = ranked.count(ranked.scores > best)
    value = _expected_reciprocal(above, ranked.count(tied), found)
    return ranked.mean(value, np.ones_like(value), answerable)


def _expected_reciprocal(above: Array, tied: Array, found: Array) -> Array:
    """E[1/(above + J)], where J is the place of the first of `found` relevant candidates among
    `tied` ones in random order; 0 where none was found.

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
    """n candidates, and which of the queries each of them belongs to."""

    scores: Array
    relevant: NDArray[np.bool_]
    query: NDArray[np.intp]
    queries: int

    def count(self, which: NDArray[np.bool_]) -> Array:
        """How many of these candidates each query has."""
        return np.bincount(self.query[which], minlength=self.queries).astype(np.float64)

    def highest(self, which: NDArray[np.bool_]) -> Array:
        """The highest score among these candidates of each query, -inf where it has none."""
        highest = np.full(self.queries, -np.inf)
        np.maximum.at(highest, self.query[which], self.scores[which])
        return highest

    def mean(self, value: Array, out_of: Array, answerable: bool) -> float:
        """The mean of value/out_of over the queries."""
        has_one = self.count(self.relevant) > 0
        if answerable and not has_one.any():
            raise ValueError("some query must have a relevant candidate, but none has")
        each = np.divide(value, out_of, out=np.zeros(self.queries), where=out_of > 0)
        return float(each[has_one].mean() if answerable else each.mean())


# ---- what is given ----


def _read(scores: Any, relevance: Any, sizes: Any, qid: Any) -> _Ranked:
    if sizes is not None and qid is not None:
        raise ValueError("sizes and qid both say which candidates belong together: give one")
    if sizes is None and qid is None:
        scores, sizes = _joined("scores", scores)
        relevance, theirs = _joined("relevance", relevance)
        if sizes != theirs:
            raise ValueError("scores and relevance must have the same number for each query")
    s, r = _numbers("scores", scores), _numbers("relevance", relevance)
    if s.shape != r.shape:
        raise ValueError(f"{len(s)} scores need as many relevances, but got {len(r)}")
    if (r < 0).any():
        raise ValueError(f"relevance must not be negative, but got {r.min():g}")
    query, queries = _numbered(qid, len(s)) if qid is not None else _repeated(sizes, len(s))
    if not queries:
        raise ValueError("at least one query is needed, but got none")
    return _Ranked(s, r > 0, query, queries)


def _joined(name: str, given: Any) -> tuple[Any, list[int]]:
    """Lists for each query as one array, and their lengths."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must have an item for each query, but got {given!r:.60}")
    parts = [np.asarray(part) for part in given]
    if any(part.ndim != 1 for part in parts):
        raise ValueError(
            f"{name} must have a list of candidates for each query; where candidates stand one "
            "after the other, sizes or qid say which belong together"
        )
    full = [part for part in parts if len(part)]
    return np.concatenate(full) if full else np.empty(0), [len(part) for part in parts]


def _numbers(name: str, given: Any) -> Array:
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"{name} must have a number for each candidate, but got {array.shape}")
    if array.dtype.kind not in "biuf" and len(array):
        raise ValueError(f"{name} must be numbers, but got {array.dtype}")
    numbers = array.astype(np.float64)
    if np.isnan(numbers).any():
        raise ValueError(f"{name} must have no NaN, but candidate {np.isnan(numbers).argmax()} is")
    return numbers


def _repeated(sizes: Any, n: int) -> tuple[NDArray[np.intp], int]:
    counts = np.asarray(sizes)
    whole = counts.ndim == 1 and (counts.dtype.kind in "iu" or not len(counts))
    if not whole or (counts < 0).any() or counts.sum() != n:
        raise ValueError(
            f"sizes must be whole numbers that add up to {n} candidates, but got {sizes!r:.60}"
        )
    return np.repeat(np.arange(len(counts)), counts.astype(np.intp)), len(counts)


def _numbered(qid: Any, n: int) -> tuple[NDArray[np.intp], int]:
    distinct, query = np.unique(query_ids(qid, n), return_inverse=True)
    return query, len(distinct)


def query_ids(qid: Any, n: int) -> NDArray[Any]:
    """The query of each of n candidates."""
    ids = np.asarray(qid)
    if ids.shape != (n,):
        raise ValueError(f"{n} candidates need a query id each, but got {ids.shape}")
    try:
        is_missing = ids.dtype.kind in "fO" and bool((ids != ids).any())  # NaN does not equal NaN
        if ids.dtype.kind == "O":
            np.unique(ids)
    except TypeError:
        raise ValueError("qid must be all strings or all numbers, but they are mixed") from None
    if is_missing:
        raise ValueError("qid must have no NaN: every candidate belongs to a query")
    return ids
