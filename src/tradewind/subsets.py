"""Nested training subsets: an order over the rows, of which every subset is a prefix.

A bigger fraction of the same seed therefore contains the smaller ones, and two trials differ by
what was added. Units are put in order: rows, or whole groups of rows. Labels only say which rows
belong together; neither their type nor their sorting changes the order.
"""

from __future__ import annotations

import heapq
import math
import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradewind.types import Array

Rows: TypeAlias = NDArray[np.intp]
Column: TypeAlias = NDArray[Any] | list[Any]  # numbers, or hashable labels

__all__ = ["Order", "nested_order", "subset", "take"]

_KINDS = ("auto", "bins", "classes", "random")
_BINS = 10


@dataclass(frozen=True)
class Order:
    """Rows in the order in which they are taken.

    `place[i]` is the place of row i, shared by the rows of a group; places 0 to p hold `ends[p]`
    rows; the first `least` places belong to every subset.
    """

    place: Rows
    ends: Rows
    least: int = 1

    def first(self, fraction: float) -> Rows:
        """The rows, sorted, of the fewest places that hold round(fraction·n) rows."""
        size = round(_fraction(fraction) * len(self.place))
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
) -> Rows:
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
    n = _rows(y)
    rng = np.random.default_rng(_seed(seed))
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {', '.join(_KINDS)}, but got {kind!r}")
    if time is not None and time is not False:
        if groups is not None or kind != "auto":
            raise ValueError("time excludes groups and kinds: the latest rows are just the latest")
        return _latest(n, time)
    strata, kept = _strata(y, n, kind)
    if groups is None:
        unit, sizes, stratum = np.arange(n), np.ones(n, np.intp), strata
    else:
        unit, sizes, stratum = _grouped(groups, strata)
    order = _interleaved(stratum, sizes, rng)
    if not kept:
        return Order(_inverse(order)[unit], np.cumsum(sizes[order]))
    earliest = np.full(strata.max() + 1, len(order))
    np.minimum.at(earliest, strata, _inverse(order)[unit])
    front = np.unique(earliest)  # units that show a class for the first time: they move ahead
    order = np.concatenate([order[front], np.delete(order, front)])
    return Order(_inverse(order)[unit], np.cumsum(sizes[order]), len(front))


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
    if _is_sparse(data):
        return data.tocsr()[index]
    if _is_dataset(data):
        return data.select(index)
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        taken = [data[i] for i in index.tolist()]
        return tuple(taken) if isinstance(data, tuple) else taken
    if getattr(data, "shape", ()):
        return data[index]
    raise TypeError(f"data must be an array, a frame or a list, but got {type(data).__name__}")


# ---- orders ----


def _interleaved(strata: Rows, sizes: Rows, rng: np.random.Generator) -> Rows:
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
    number = _inverse(ascending).astype(np.min_scalar_type(len(weight)))  # small ones sort faster
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


def _middles(sizes: Rows) -> Array:
    return np.cumsum(sizes) - 0.5 * sizes


def _inverse(order: Rows) -> Rows:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place


def _grouped(groups: Any, strata: Rows) -> tuple[Rows, Rows, Rows]:
    """The group of each row; of each group its size and its commonest stratum."""
    _same_length("groups", groups, len(strata))
    column = _column(groups)
    if column is None:
        raise TypeError(f"groups must have a label for each row, but got {type(groups).__name__}")
    unit = _numbered(column)
    k = int(strata.max()) + 1
    pairs, counts = np.unique(unit * k + strata, return_counts=True)
    best = np.zeros(unit.max() + 1, np.intp)
    np.maximum.at(best, pairs // k, counts * k + (k - 1 - pairs % k))  # of equals, the first
    return unit, np.bincount(unit), k - 1 - best % k


def _latest(n: int, time: Any) -> Order:
    """From the latest to the earliest; of equal stamps the last row first."""
    ascending = np.arange(n)
    if time is not True:
        _same_length("time", time, n)
        stamps = _stamps(time)
        try:
            ascending = np.argsort(stamps, kind="stable")
        except TypeError as error:
            raise TypeError(f"time must be sortable, but {error}") from error
    return Order(_inverse(ascending[::-1]), np.arange(1, n + 1))


def _stamps(time: Any) -> NDArray[Any]:
    if isinstance(time, Sequence):
        kinds = set(map(type, time))  # NumPy would make 1 and "a" two strings, which can be sorted
        alike = len(kinds) == 1 or _numeric(kinds)
        stamps = np.asarray(time) if alike else np.fromiter(time, object, len(time))
    elif getattr(getattr(time, "dtype", None), "tz", None) is not None:
        stamps = np.asarray(time, dtype="datetime64[ns]")  # else pandas makes objects of them
    else:
        stamps = _as_array(time)
    if stamps.ndim != 1:
        raise ValueError(f"time must have one stamp for each row, but its shape is {stamps.shape}")
    missing = map(_missing, stamps) if stamps.dtype == object else [np.any(stamps != stamps)]
    if any(missing):
        raise ValueError("time must have no missing values")
    return stamps


# ---- strata ----


def _strata(y: Any, n: int, kind: str) -> tuple[Rows, bool]:
    """The stratum of each row, numbered as they appear, and whether each of them must be kept."""
    column = None if kind == "random" else _column(y)
    if column is not None and (kind == "classes" or (kind == "auto" and not _fractional(column))):
        strata = _numbered(column)
        if kind == "classes" or strata.max() < _most_classes(column):
            return strata, True
    if isinstance(column, np.ndarray):
        return _binned(column.astype(np.float64)), False
    if kind in ("auto", "random"):
        return np.zeros(n, np.intp), False
    needed = "a number" if kind == "bins" else "a label"
    raise TypeError(f"kind={kind!r} needs {needed} for each row, but y is {type(y).__name__}")


def _fractional(column: Column) -> bool:
    if isinstance(column, list) or column.dtype.kind != "f":
        return False
    return bool(np.any((column != np.floor(column)) & ~np.isnan(column)))


def _most_classes(column: Column) -> int:
    """Names are classes unless most are distinct, as texts and identifiers are; numbers and rows
    of several columns, which may be measurements, only where they are few."""
    n = len(column)
    names = isinstance(column, list) and not isinstance(column[0], (bytes, tuple))
    return max(2, n // 2 if names else min(n // 2, max(20, n // 10)))


def _binned(values: Array) -> Rows:
    """Quantile bins. Equal values share one, and the many zeros of a target have theirs alone."""
    missing = np.isnan(values)
    present = values[~missing]
    at = np.maximum(np.arange(1, _BINS) * len(present) // _BINS - 1, 0)
    edges = np.partition(present, at)[at] if len(present) else present  # each the last of its bin
    return _numbered(np.where(missing, _BINS, np.searchsorted(edges, values)))


def _numbered(column: Column) -> Rows:
    """Equal values as equal numbers 0, 1, …, in the order in which they appear."""
    if isinstance(column, list):
        return _numbered_labels(column)
    codes = np.unique(column, return_inverse=True)[1]
    appears = np.full(codes.max() + 1, len(codes))
    np.minimum.at(appears, codes, np.arange(len(codes)))
    return _inverse(np.argsort(appears))[codes]


def _numbered_labels(labels: list[Any]) -> Rows:
    numbers: dict[Any, int] = defaultdict(count().__next__)
    try:
        codes = np.fromiter(map(numbers.__getitem__, labels), np.intp, len(labels))
    except TypeError as error:
        raise TypeError(f"labels must be hashable, but got an {error}") from error
    missing = [number for label, number in numbers.items() if _missing(label)]
    if len(missing) < 2:
        return codes
    merged = np.arange(len(numbers))  # one NaN is not equal to another
    merged[missing] = missing[0]
    return _numbered(merged[codes])


def _missing(label: Any) -> bool:
    """None, NaN, NaT, and pandas' NA, of which even `==` does not say yes or no."""
    same = label == label
    return label is None or not isinstance(same, (bool, np.bool_)) or not same


# ---- what is given ----


def _column(values: Any) -> Column | None:
    """One value for each row, or None where rows can only be counted."""
    if isinstance(values, (int, np.integer)) or _is_sparse(values) or _is_dataset(values):
        return None
    if isinstance(values, Sequence):
        return _listed(list(values))
    array = _as_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 1:
        return array if array.dtype.kind in "biuf" else _listed(array.tolist())
    if array.ndim > 2 or array.shape[1] == 0 or _fractional(array[:1000]):
        return None
    if array.dtype == object:
        return list(map(tuple, array.tolist()))
    return [row.tobytes() for row in np.ascontiguousarray(array)]


def _listed(values: list[Any]) -> Column | None:
    kinds = set(map(type, values))
    absent = {kind for kind in kinds if kind.__name__ in ("NoneType", "NAType")}
    if _numeric(kinds - absent):
        numbers = [math.nan if type(v) in absent else v for v in values] if absent else values
        array = np.asarray(numbers)
        return array if array.dtype.kind in "biuf" else values  # integers of more than 64 bits
    if any(kind.__hash__ is None or _is_array(kind) for kind in kinds):
        try:
            array = np.asarray(values)
        except ValueError:  # lists of different lengths
            return None
        return None if array.dtype == object and array.ndim == 1 else _column(array)
    return values


def _as_array(values: Any) -> NDArray[Any]:
    if hasattr(values, "detach"):  # a tensor, maybe with a gradient or on another device
        values = values.detach().cpu()
    return np.asarray(values)


def _numeric(kinds: set[type]) -> bool:
    return all(issubclass(kind, (Real, np.bool_)) for kind in kinds)


def _is_array(kind: type) -> bool:
    return hasattr(kind, "__array__") and not issubclass(kind, np.generic)


def _is_sparse(data: Any) -> bool:
    return hasattr(data, "tocsr")


def _is_dataset(data: Any) -> bool:
    """Hugging Face's `select` takes rows; data frames have one too, which takes columns."""
    return hasattr(data, "select") and not hasattr(data, "__array__")


def _rows(y: Any) -> int:
    whole = isinstance(y, (int, np.integer)) and not isinstance(y, bool)
    n = int(y) if whole else _length("y", y)
    if n < 1:
        raise ValueError(f"y must have at least one row, but got {n}")
    return n


def _length(what: str, values: Any) -> int:
    try:
        if isinstance(values, (str, bytes, Mapping, Set)):
            raise TypeError
        return int(values.shape[0]) if getattr(values, "shape", ()) else len(values)
    except TypeError:
        given = type(values).__name__
        raise TypeError(f"{what} must have an entry for each row, but got {given}") from None


def _same_length(what: str, values: Any, n: int) -> None:
    if (length := _length(what, values)) != n:
        raise ValueError(f"{what} must be as long as y, but has {length} rows where y has {n}")


def _fraction(given: float) -> float:
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"fraction must be a number in (0, 1], but got {given!r}")
    if not 0 < given <= 1:
        raise ValueError(f"fraction must be in (0, 1], but got {given!r}")
    return float(given)


def _seed(given: int) -> int:
    try:
        seed = operator.index(given)
    except TypeError:
        raise TypeError(f"seed must be an integer ≥ 0, but got {given!r}") from None
    if seed < 0:
        raise ValueError(f"seed must be an integer ≥ 0, but got {given!r}")
    return seed
