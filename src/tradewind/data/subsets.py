"""Nested training subsets: an order over the rows, of which every subset is a prefix.

A bigger fraction of the same seed therefore contains the smaller ones, and two trials differ by
what was added. Units are put in order: rows, or whole groups of rows. Labels only say which rows
belong together; neither their type nor their sorting changes the order.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tradewind import checks
from tradewind.data.labels import (
    column_of,
    count_rows,
    inverse,
    is_dataset,
    is_sparse,
    numbered,
    same_length,
    stamps_of,
    strata_of,
)
from tradewind.types import Array, Indices

__all__ = ["Order", "nested_order", "subset", "take"]

_KINDS = ("auto", "bins", "classes", "random")


@dataclass(frozen=True)
class Order:
    """Indices in the order in which they are taken.

    `place[i]` is the place of row i, shared by the rows of a group; places 0 to p hold `ends[p]`
    rows; the first `least` places belong to every subset.
    """

    place: Indices
    ends: Indices
    least: int = 1

    def first(self, fraction: float) -> Indices:
        """The rows, sorted, of the fewest places that hold round(fraction·n) rows."""
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
    """The rows of this fraction of a training set with the targets y: sorted, unique indices.

    Smaller fractions of the same seed are contained in larger ones, and 1 gives all n rows. Where
    there is nothing to stratify by, y may be the number of rows.

    - `kind="classes"`: each of the k classes keeps a row, so that there are m = max(k,
      round(fraction·n)). Where r classes have a row by that rule only, every other one has its
      share of the other m − r rows, to less than 2 rows (½ with two classes; less than 1 with
      three, or with classes of one size).
    - `kind="bins"`: the same for ten quantile bins of numbers, except that a bin may be empty.
    - `kind="random"`: m = max(1, round(fraction·n)) rows, whatever y is.
    - `kind="auto"`: classes where y has names, or whole numbers of which few are distinct, in
      either case with two rows each in the mean; bins for other numbers; random otherwise. With
      several columns, the distinct rows are classes where they are few.

    Missing values are a class or bin of their own. With `groups`, whole groups are taken until
    there are m rows; a group counts for its commonest class, which keeps shares roughly. With
    `time`, the latest m rows are taken, whatever their classes: it has a stamp for each row, or is
    True where the rows are in order of time.
    """
    return nested_order(y, seed=seed, kind=kind, groups=groups, time=time).first(fraction)


def nested_order(
    y: Any, *, seed: int = 0, kind: str = "auto", groups: Any = None, time: Any = None
) -> Order:
    """The order whose prefixes are the subsets, for those who need several fractions."""
    n = count_rows(y)
    rng = np.random.default_rng(checks.whole("seed", seed))
    checks.one_of("kind", kind, _KINDS)
    if time is not None and time is not False:
        if groups is not None or kind != "auto":
            raise ValueError("time excludes groups and kinds: the latest rows are just the latest")
        return _latest(n, time)
    strata, kept = strata_of(y, n, kind)
    if groups is None:
        unit, sizes, stratum = np.arange(n), np.ones(n, np.intp), strata
    else:
        unit, sizes, stratum = _grouped(groups, strata)
    order = _interleaved(stratum, sizes, rng)
    if not kept:
        return Order(inverse(order)[unit], np.cumsum(sizes[order]))
    earliest = np.full(strata.max() + 1, len(order))
    np.minimum.at(earliest, strata, inverse(order)[unit])
    front = np.unique(earliest)  # units that show a class for the first time: they move ahead
    order = np.concatenate([order[front], np.delete(order, front)])
    return Order(inverse(order)[unit], np.cumsum(sizes[order]), len(front))


def take(data: Any, rows: Any) -> Any:
    """These rows of an array, a tensor, a sparse matrix (as CSR), a pandas object (by position), a
    Hugging Face data set, a list or a tuple; None stays None."""
    index = np.asarray(rows)
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise TypeError(f"rows must be indices, one after the other, but got {rows!r}")
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


def _interleaved(strata: Indices, sizes: Indices, rng: np.random.Generator) -> Indices:
    """The units, each stratum in random order, such that every prefix has its share of each.

    A unit stands at the middle of its span of its stratum, which goes from 0 to 1. If all strata
    were sorted by that at once, many small ones would take their next row at the same moment, and
    crowd out a large one. So they are merged two by two, the lightest first, as in a Huffman code:
    a merge rounds by ½ row at most, and the heavier part has at most 2/3 of the weight unless it
    is a stratum; so roundings add up to less than ½/(1 − 2/3) + ½ = 2. Strata of equal weight do
    not crowd each other and are merged at once, which leaves at most sqrt(2n) merges.
    """
    weight = np.bincount(strata, weights=sizes)
    ascending = np.lexsort((rng.permutation(len(weight)), weight))
    number = inverse(ascending).astype(np.min_scalar_type(len(weight)))  # small ones sort faster
    strata, weight = number[strata], weight[ascending]
    units = rng.permutation(len(sizes))
    units = units[np.argsort(strata[units], kind="stable")]
    own = strata[units]
    start = np.cumsum(weight) - weight
    middle = (_middles(sizes[units]) - start[own]) / weight[own]
    edges = np.flatnonzero(np.diff(weight[own])) + 1
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


def _grouped(groups: Any, strata: Indices) -> tuple[Indices, Indices, Indices]:
    """The group of each row; of each group its size and its commonest stratum."""
    same_length("groups", groups, len(strata))
    column = column_of(groups)
    if column is None:
        raise TypeError(f"groups must have a label for each row, but got {type(groups).__name__}")
    unit = numbered(column)
    k = int(strata.max()) + 1
    pairs, counts = np.unique(unit * k + strata, return_counts=True)
    best = np.zeros(unit.max() + 1, np.intp)
    np.maximum.at(best, pairs // k, counts * k + (k - 1 - pairs % k))  # of equals, the first
    return unit, np.bincount(unit), k - 1 - best % k


def _latest(n: int, time: Any) -> Order:
    """From the latest to the earliest; of equal stamps the last row first."""
    ascending = np.arange(n)
    if time is not True:
        same_length("time", time, n)
        stamps = stamps_of(time)
        try:
            ascending = np.argsort(stamps, kind="stable")
        except TypeError as error:
            raise TypeError(f"time must be sortable, but {error}") from error
    return Order(inverse(ascending[::-1]), np.arange(1, n + 1))
