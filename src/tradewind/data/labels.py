"""Labels, groups and time stamps: which rows belong together, and which came first.

They may be arrays, tensors, columns of a data frame, or lists of anything. subsets.py and folds.py
use the row numbers that come from here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import count
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradewind.types import Array, Indices

Column: TypeAlias = NDArray[Any] | list[Any]  # numbers, or hashable labels

_BINS = 10  # quantile bins of a numeric label


# ---- strata ----


def stratify(y: Any, n: int, kind: str) -> tuple[Indices, bool]:
    """The stratum of each row, numbered in order of appearance, and whether the strata are classes,
    of which every subset must keep a row."""
    column = None if kind == "random" else read_column(y)
    if column is not None and (
        kind == "classes" or (kind == "auto" and not _has_fractions(column))
    ):
        strata = number_distinct(column)
        if kind == "classes" or strata.max() < _most_classes(column):
            return strata, True
    if isinstance(column, np.ndarray):
        return _bin(column.astype(np.float64)), False
    if kind in ("auto", "random"):
        return np.zeros(n, np.intp), False
    needed = "a number" if kind == "bins" else "a label"
    raise TypeError(f"kind={kind!r} needs {needed} for each row, but y is {type(y).__name__}")


def find_classes(y: Any) -> Indices | None:
    """The class of each row, numbered in order of appearance; None if y does not have classes."""
    classes, are_classes = stratify(y, count_rows(y), "auto")
    return classes if are_classes else None


def _has_fractions(column: Column) -> bool:
    if isinstance(column, list) or column.dtype.kind != "f":
        return False
    return bool(np.any((column != np.floor(column)) & ~np.isnan(column)))


def _most_classes(column: Column) -> int:
    """The most distinct values that still count as classes.

    Names may take half as many values as there are rows; more would be texts or identifiers.
    Numbers and rows of several columns may be measurements, so fewer of them count as classes."""
    n = len(column)
    names = isinstance(column, list) and not isinstance(column[0], (bytes, tuple))
    return max(2, n // 2 if names else min(n // 2, max(20, n // 10)))


def _bin(values: Array) -> Indices:
    """Quantile bins. Equal values share a bin, and a value as common as zero often is fills one."""
    missing = np.isnan(values)
    present = values[~missing]
    at = np.maximum(np.arange(1, _BINS) * len(present) // _BINS - 1, 0)
    edges = np.partition(present, at)[at] if len(present) else present  # the last value of each bin
    return number_distinct(np.where(missing, _BINS, np.searchsorted(edges, values)))


def number_distinct(column: Column) -> Indices:
    """Values as numbers 0, 1, …, in order of appearance. Equal values get equal numbers."""
    if isinstance(column, list):
        return _number_labels(column)
    codes = np.unique(column, return_inverse=True)[1]
    appears = np.full(codes.max() + 1, len(codes))
    np.minimum.at(appears, codes, np.arange(len(codes)))
    return invert(np.argsort(appears))[codes]


def _number_labels(labels: list[Any]) -> Indices:
    numbers: dict[Any, int] = defaultdict(count().__next__)
    try:
        codes = np.fromiter(map(numbers.__getitem__, labels), np.intp, len(labels))
    except TypeError as error:
        raise TypeError(f"labels must be hashable, but got an {error}") from error
    missing = [number for label, number in numbers.items() if is_missing(label)]
    if len(missing) < 2:
        return codes
    merged = np.arange(len(numbers))  # one NaN is not equal to another
    merged[missing] = missing[0]
    return number_distinct(merged[codes])


def is_missing(label: Any) -> bool:
    """Whether it is None, NaN, NaT or pandas' NA, for which `==` returns neither True nor False."""
    same = label == label
    return label is None or not isinstance(same, (bool, np.bool_)) or not same


# ---- reading arguments ----


def read_column(values: Any) -> Column | None:
    """One value for each row, or None if the rows can only be counted."""
    if isinstance(values, (int, np.integer)) or is_sparse(values) or is_dataset(values):
        return None
    if isinstance(values, Sequence):
        return _read_list(list(values))
    array = to_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 1:
        return array if array.dtype.kind in "biuf" else _read_list(array.tolist())
    if array.ndim > 2 or array.shape[1] == 0 or _has_fractions(array[:1000]):
        return None
    if array.dtype == object:
        return list(map(tuple, array.tolist()))
    return [row.tobytes() for row in np.ascontiguousarray(array)]


def _read_list(values: list[Any]) -> Column | None:
    kinds = set(map(type, values))
    absent = {kind for kind in kinds if kind.__name__ in ("NoneType", "NAType")}
    if _are_numeric(kinds - absent):
        numbers = [math.nan if type(v) in absent else v for v in values] if absent else values
        array = np.asarray(numbers)
        return array if array.dtype.kind in "biuf" else values  # integers of more than 64 bits
    if any(kind.__hash__ is None or _is_array(kind) for kind in kinds):
        try:
            array = np.asarray(values)
        except ValueError:  # lists of different lengths
            return None
        return None if array.dtype == object and array.ndim == 1 else read_column(array)
    return values


def to_array(values: Any) -> NDArray[Any]:
    if hasattr(values, "detach"):  # a tensor, which may have a gradient or be on another device
        values = values.detach().cpu()
    return np.asarray(values)


def _are_numeric(kinds: set[type]) -> bool:
    return all(issubclass(kind, (Real, np.bool_)) for kind in kinds)


def _is_array(kind: type) -> bool:
    return hasattr(kind, "__array__") and not issubclass(kind, np.generic)


def is_sparse(data: Any) -> bool:
    return hasattr(data, "tocsr")


def is_dataset(data: Any) -> bool:
    """Whether it is a Hugging Face dataset. Its `select` takes rows; the one of a data frame takes
    columns."""
    return hasattr(data, "select") and not hasattr(data, "__array__")


def count_rows(y: Any) -> int:
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


def check_length(what: str, values: Any, n: int) -> None:
    if (length := _length(what, values)) != n:
        raise ValueError(f"{what} must be as long as y, but has {length} rows where y has {n}")


def read_stamps(time: Any) -> NDArray[Any]:
    if isinstance(time, Sequence):
        kinds = set(map(type, time))  # NumPy turns 1 and "a" into two strings, which would sort
        alike = len(kinds) == 1 or _are_numeric(kinds)
        stamps = np.asarray(time) if alike else np.fromiter(time, object, len(time))
    elif getattr(getattr(time, "dtype", None), "tz", None) is not None:
        stamps = np.asarray(time, dtype="datetime64[ns]")  # otherwise pandas makes objects of them
    else:
        stamps = to_array(time)
    if stamps.ndim != 1:
        raise ValueError(f"time must have one stamp for each row, but its shape is {stamps.shape}")
    missing = map(is_missing, stamps) if stamps.dtype == object else [np.any(stamps != stamps)]
    if any(missing):
        raise ValueError(
            "time must have no missing values, but some rows have no stamp: leave them out"
        )
    return stamps


def invert(order: Indices) -> Indices:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
