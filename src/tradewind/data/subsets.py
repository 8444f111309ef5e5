"""Nested training subsets: an order over the rows; every subset is a prefix of it.

With the same seed, a larger fraction therefore contains the smaller ones. The units of the order
are rows, or whole groups of rows. Labels only say which rows belong together; neither their type
nor their sort order changes the result.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind import checks
from tradewind.data.labels import (
    check_length,
    count_rows,
    invert,
    is_dataset,
    is_sparse,
    number_distinct,
    read_column,
    read_stamps,
    stratify,
)
from tradewind.types import Array, Indices

__all__ = ["Order", "nested_order", "subset", "take"]

_KINDS = ("auto", "bins", "classes", "random")


@dataclass(frozen=True)
class Order:
    """The order in which rows are taken.

    `place[i]` is the place of row i; the rows of a group share one. Places 0 to p have `ends[p]`
    rows together. The first `least` places are part of every subset.

    >>> order = tw.subsets.nested_order(["a", "a", "b", "b"])
    >>> len(order.first(0.5)), len(order.first(1.0))
    (2, 4)
    """

    place: Indices
    ends: Indices
    least: int = 1

    def first(self, fraction: float) -> Indices:
        """The sorted rows of the first places: just enough places for round(fraction·n) rows."""
        size = round(checks.fraction("fraction", fraction) * len(self.place))
        places = max(self.least, int(np.searchsorted(self.ends, size)) + 1)
        return np.flatnonzero(self.place < places)


def subset(
    y: Any,
    fraction: float,
    *,
    seed: int = 0,
    kind: str = "auto",
    groups: Any = None,
    time: Any = None,
) -> Indices:
    """A fraction of a training set with the labels y, as sorted, unique row numbers.

    With the same seed, larger fractions contain smaller ones, and the fraction 1 is all n rows. If
    there is nothing to stratify by, y may be the number of rows.

    - `kind="classes"`: each of the k classes keeps at least one row, so the subset has m = max(k,
      round(fraction·n)) rows. If r classes have a row only because of this rule, every other class
      has its share of the remaining m − r rows, to within less than 2 rows (½ with two classes;
      less than 1 with three classes or with classes of equal size).
    - `kind="bins"`: the same for ten quantile bins of numbers, except that a bin may be empty.
    - `kind="random"`: m = max(1, round(fraction·n)) rows, whatever y is.
    - `kind="auto"`: classes if y has names, or whole numbers with few distinct values, in both
      cases with at least two rows per class on average; bins for other numbers; random otherwise.
      If y has several columns, its distinct rows are the classes if they are few.

    Missing values form a class or bin. With `groups`, whole groups are taken until there are m
    rows; a group counts for its most common class, so shares are approximate. With `time`, the
    latest m rows are taken, whatever their classes. `time` has one stamp for each row, or is True
    if the rows are in order of time.

    >>> rows = tw.subsets.subset(["spam", "ham"] * 50, 0.2, seed=0)
    >>> len(rows)
    20
    """
    return nested_order(y, seed=seed, kind=kind, groups=groups, time=time).first(fraction)


def nested_order(
    y: Any, *, seed: int = 0, kind: str = "auto", groups: Any = None, time: Any = None
) -> Order:
    """The order whose beginnings are the subsets. Use it to take several fractions of one set.

    >>> order = tw.subsets.nested_order(["spam", "ham"] * 50, seed=0)
    >>> set(order.first(0.2)) <= set(order.first(0.4))
    True
    """
    n = count_rows(y)
    rng = np.random.default_rng(checks.whole("seed", seed))
    checks.one_of("kind", kind, _KINDS)
    if time is not None and time is not False:
        if groups is not None or kind != "auto":
            raise ValueError(
                "time cannot be combined with groups or kind: it always takes the latest rows"
            )
        return _order_by_time(n, time)
    strata, are_classes = stratify(y, n, kind)
    if groups is None:
        unit, sizes, stratum = np.arange(n), np.ones(n, np.intp), strata
    else:
        unit, sizes, stratum = _group(groups, strata)
    order = _interleave(stratum, sizes, rng)
    if not are_classes:
        return Order(invert(order)[unit], np.cumsum(sizes[order]))
    earliest = np.full(strata.max() + 1, len(order))
    np.minimum.at(earliest, strata, invert(order)[unit])
    front = np.unique(earliest)  # the first unit of each class moves to the front
    order = np.concatenate([order[front], np.delete(order, front)])
    return Order(invert(order)[unit], np.cumsum(sizes[order]), len(front))


def take(data: Any, rows: Any) -> Any:
    """These rows of an array, a tensor, a sparse matrix (returned as CSR), a pandas object (by
    position), a Hugging Face dataset, a list or a tuple. None stays None.

    >>> texts = ["a", "b", "c", "d"]
    >>> tw.subsets.take(texts, [0, 2])
    ['a', 'c']
    """
    index = np.asarray(rows)
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise TypeError(f"rows must be a one-dimensional list of row numbers, but got {rows!r}")
    index = index.astype(np.intp)
    if index.size and index.min() < 0:
        raise IndexError(f"rows must be ≥ 0, but got {index.min()}")
    if data is None:
        return None
    if hasattr(data, "iloc"):
        return data.iloc[index]
    if is_sparse(data):
        return data.tocsr()[index]
    if is_dataset(data):
        return data.select(index)
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        taken = [data[i] for i in index.tolist()]
        return tuple(taken) if isinstance(data, tuple) else taken
    if getattr(data, "shape", ()):
        return data[index]
    raise TypeError(f"data must be an array, a frame or a list, but got {type(data).__name__}")


# ---- orders ----


def _interleave(strata: Indices, sizes: Indices, rng: np.random.Generator) -> Indices:
    """The units in an order in which every prefix has its share of each stratum. Within a stratum
    the order is random.

    Each stratum is laid out on the interval from 0 to 1, and a unit has the position of its middle.
    If all strata were sorted by this position at once, many small strata would take their next row
    at the same moment and crowd out a large one. They are therefore merged two at a time, the
    lightest first, as in a Huffman code. A merge rounds by at most ½ row, and the heavier part has
    at most 2/3 of the weight unless it is a single stratum, so the roundings add up to less than
    ½/(1 − 2/3) + ½ = 2 rows. Strata of equal weight do not crowd each other out and are merged at
    once, which leaves at most sqrt(2n) merges.
    """
    weight = np.bincount(strata, weights=sizes)
    ascending = np.lexsort((rng.permutation(len(weight)), weight))
    number = invert(ascending).astype(np.min_scalar_type(len(weight)))  # small integers sort faster
    strata, weight = number[strata], weight[ascending]
    units = rng.permutation(len(sizes))
    units = units[np.argsort(strata[units], kind="stable")]
    stratum = strata[units]
    start = np.cumsum(weight) - weight
    middle = (_middles(sizes[units]) - start[stratum]) / weight[stratum]
    edges = np.flatnonzero(np.diff(weight[stratum])) + 1
    runs = [
        (float(sizes[run].sum()), tie, run[np.argsort(at, kind="stable")])
        for tie, (run, at) in enumerate(
            zip(np.split(units, edges), np.split(middle, edges), strict=True)
        )
    ]
    heapq.heapify(runs)
    while len(runs) > 1:
        a, _, light = heapq.heappop(runs)
        b, tie, heavy = heapq.heappop(runs)
        at = np.concatenate([_middles(sizes[light]) / a, _middles(sizes[heavy]) / b])
        merged = np.concatenate([light, heavy])[np.argsort(at, kind="stable")]
        heapq.heappush(runs, (a + b, tie, merged))
    return runs[0][2]


def _middles(sizes: Indices) -> Array:
    return np.cumsum(sizes) - 0.5 * sizes


def _group(groups: Any, strata: Indices) -> tuple[Indices, Indices, Indices]:
    """The group of each row, and the size and the most common stratum of each group."""
    check_length("groups", groups, len(strata))
    column = read_column(groups)
    if column is None:
        raise TypeError(f"groups must have a label for each row, but got {type(groups).__name__}")
    unit = number_distinct(column)
    k = int(strata.max()) + 1
    pairs, counts = np.unique(unit * k + strata, return_counts=True)
    best = np.zeros(unit.max() + 1, np.intp)
    np.maximum.at(
        best, pairs // k, counts * k + (k - 1 - pairs % k)
    )  # among equals the first stratum
    return unit, np.bincount(unit), k - 1 - best % k


def _order_by_time(n: int, time: Any) -> Order:
    """From the latest row to the earliest; among equal stamps, the last row first."""
    ascending = np.arange(n)
    if time is not True:
        check_length("time", time, n)
        stamps = read_stamps(time)
        try:
            ascending = np.argsort(stamps, kind="stable")
        except TypeError as error:
            raise TypeError(f"time must be sortable, but {error}") from error
    return Order(invert(ascending[::-1]), np.arange(1, n + 1))
