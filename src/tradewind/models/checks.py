"""What a model is given, checked when it is fitted: settings, texts, labels, rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from tradewind.checks import whole
from tradewind.models.text import texts_of
from tradewind.models.vectors import WordVectors
from tradewind.types import Indices


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


def rows_of(given: Any, n: int) -> Indices:
    """Indices of a fold: numbers or a mask."""
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
