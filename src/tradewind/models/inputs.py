"""Checks of what the models are given: texts, labels, word vectors and the rows of folds."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from tradewind.models.text import texts_of
from tradewind.models.vectors import WordVectors
from tradewind.types import Indices


def check_vectors(name: str, given: Any) -> WordVectors | None:
    if given is None or isinstance(given, WordVectors):
        return given
    hint = "read_vectors(path) reads them"
    if hasattr(given, "index_to_key"):
        hint = "from gensim: WordVectors(kv.index_to_key, kv.vectors)"
    raise ValueError(f"{name} must be WordVectors or None, but got {given!r:.60}; {hint}")


def texts_and_labels(X: Any, y: Any) -> tuple[list[str], NDArray[Any]]:
    """Texts, and a label for each: all strings or all whole numbers."""
    texts, labels = texts_of(X), np.asarray(y)
    if not texts:
        raise ValueError("at least one text is needed, but got none")
    if labels.shape != (len(texts),):
        raise ValueError(
            f"every text needs a label, but got {len(texts)} texts and labels of the shape "
            f"{labels.shape}"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("labels must be finite, but some are NaN or infinite")
    if labels.dtype.kind == "U" and isinstance(y, (list, tuple)):
        labels = np.array(y, dtype=object)  # in a mixed list, NumPy turns numbers into strings
    if labels.dtype.kind in "OT":  # pandas stores strings this way
        kinds = {str if isinstance(y, str) else int if _is_whole(y) else None for y in labels}
        if len(kinds) > 1 or None in kinds:
            raise ValueError("labels must be all strings or all whole numbers, but they are mixed")
        labels = np.array(labels.tolist())
    check_classification_targets(labels)
    return texts, labels


def fold_rows(given: Any, n: int) -> Indices:
    """The rows of a fold, given as row numbers or as a mask over n rows."""
    rows = np.asarray(given)
    if rows.dtype == bool:
        if rows.shape != (n,):
            raise ValueError(f"a mask of rows must have {n} entries, but got {rows.shape}")
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
        raise ValueError(f"a fold needs training rows and test rows, but got {given!r:.60}")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"rows must be from 0 to {n - 1}, but got {rows.min()} to {rows.max()}")
    return rows.astype(np.intp)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (Integral, np.bool_))
