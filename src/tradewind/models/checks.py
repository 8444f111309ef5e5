"""What a model is given, checked when it is fitted: settings, texts, labels, rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from tradewind.models.text import texts_of
from tradewind.models.vectors import WordVectors
from tradewind.targets import Rows


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number of at least `low` and at most `high`."""
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if not fits or value < low or (high is not None and value > high):
        rule = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be a whole number {rule}, but got {value!r}")
    return int(value)


def share(name: str, value: Any) -> float:
    """A number in [0, 1)."""
    if not _is_real(value) or not 0 <= value < 1:
        raise ValueError(f"{name} must be in [0, 1), but got {value!r}")
    return float(value)


def positive(name: str, value: Any) -> float:
    if not _is_real(value) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number, but got {value!r}")
    return float(value)


def one_of(name: str, value: Any, choices: Collection[str]) -> Any:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, but got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False; NumPy's will do."""
    if value is not True and value is not False and type(value).__name__ not in ("bool", "bool_"):
        raise ValueError(f"{name} must be True or False, but got {value!r}")
    return bool(value)


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn takes as `random_state`."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return whole("random_state", random_state, 0, 2**63 - 1)
    return int(check_random_state(random_state).randint(2**31))


def or_none(check: Callable[..., Any], name: str, value: Any, *bounds: Any) -> Any:
    """None, or what the check gives."""
    return None if value is None else check(name, value, *bounds)


def whole_numbers(name: str, given: Any, low: int) -> tuple[int, ...]:
    try:
        numbers = [] if isinstance(given, (str, bytes)) else list(given)
    except TypeError:  # no list, or an array that is a single number
        numbers = []
    if not numbers:
        raise ValueError(f"{name} must be whole numbers, but got {given!r}")
    return tuple(whole(f"each of {name}", number, low) for number in numbers)


def word_vectors(name: str, given: Any) -> WordVectors | None:
    if given is None or isinstance(given, WordVectors):
        return given
    hint = "read_vectors(path) reads them"
    if hasattr(given, "index_to_key"):
        hint = "from gensim: WordVectors(kv.index_to_key, kv.vectors)"
    raise ValueError(f"{name} must be WordVectors or None, but got {given!r:.60}; {hint}")


def labelled(X: Any, y: Any) -> tuple[list[str], NDArray[Any]]:
    """Texts, and a label for each."""
    texts, labels = texts_of(X), np.asarray(y)
    if not texts:
        raise ValueError("at least one text is needed, but got none")
    if labels.shape != (len(texts),):
        raise ValueError(f"{len(texts)} texts need as many labels, but got {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("labels must be finite, but there is NaN or infinity among them")
    if labels.dtype.kind == "U" and isinstance(y, (list, tuple)):
        labels = np.array(y, dtype=object)  # NumPy would make strings of numbers beside them
    if labels.dtype.kind in "OT":  # as pandas has strings
        kinds = {str if isinstance(y, str) else int if _is_whole(y) else None for y in labels}
        if len(kinds) > 1 or None in kinds:
            raise ValueError("labels must be all strings or all whole numbers, but they are mixed")
        labels = np.array(labels.tolist())
    check_classification_targets(labels)
    return texts, labels


def rows_of(given: Any, n: int) -> Rows:
    """Rows of a fold: numbers or a mask."""
    rows = np.asarray(given)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(f"a mask of rows must have {n} entries, but got {rows.shape}")
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
        raise ValueError(f"a fold needs rows to train on and to test, but got {given!r:.60}")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"rows must be from 0 to {n - 1}, but got {rows.min()} to {rows.max()}")
    return rows.astype(np.intp)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (Integral, np.bool_))


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
