"""Reading judged documents in the format of LETOR and SVMlight, for models that rank."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.checks import flag, or_none, whole
from tradewind.errors import DataError, DataMissing
from tradewind.models.files import bounded_lines, most_unpacked, open_data, read_lines

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_JUDGED = re.compile(rf"{_NUMBER}\s+qid:\d{{1,18}}(?:\s+\d{{1,18}}:{_NUMBER})*")
_MOST_FEATURES = 1 << 16
_ROWS = 1000  # to read at once
_MOST_RELEVANT = 1 << 31


def load_letor(
    path: str | os.PathLike[str], *, n_features: int | None = None, zero_based: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Judged documents in the format of LETOR and SVMlight, `2 qid:1 1:0.5 2:0.1 # comment`.
    Returns features (documents, features), relevance and query ids. The rows of a query must be
    next to each other.

    A file leaves out features that are zero, so it does not say how many features there are.
    Without `n_features`, the largest number in the file is the last column. Give the same
    `n_features` for files that belong together, such as training and test sets, so that they get
    the same columns. Features are numbered from 1, as in LETOR, unless `zero_based` is True.

    >>> from pathlib import Path
    >>> _ = Path("train.txt").write_text("2 qid:1 1:0.5 2:0.1\\n0 qid:1 1:0.2\\n")
    >>> X, relevance, qid = tw.models.load_letor("train.txt")
    >>> X.shape, relevance.tolist(), qid.tolist()
    ((2, 2), [2, 0], [1, 1])
    """
    n_features = or_none(whole, "n_features", n_features, 1, _MOST_FEATURES)
    zero_based = flag("zero_based", zero_based)
    path = Path(path)
    if not path.exists():
        raise DataMissing(f"there is no file {path}")
    try:
        X, relevance, queries = _read_svmlight(path)
    except (OverflowError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{_first_bad_line(path)}: {error}") from None
    if len(queries) != len(relevance):
        raise DataError(
            f"{_first_bad_line(path)}: every row needs a query id, as in `2 qid:1 1:0.5`"
        )
    if not len(relevance):
        raise DataError(f"{path} is empty")
    if not zero_based:
        rule = "features must be numbered from 1 unless zero_based=True"
        _check_row(path, X[:, :1].getnnz(axis=1) == 0, rule)
    features = _dense_features(path, X if zero_based else X[:, 1:], n_features)
    _check_row(path, np.all(np.isfinite(features), axis=1), "features must be finite")
    natural = (relevance >= 0) & (relevance < _MOST_RELEVANT) & (relevance == np.floor(relevance))
    _check_row(path, natural, f"relevance must be 0, 1, 2, ... below {_MOST_RELEVANT}")
    starts = np.flatnonzero(np.concatenate([[True], queries[1:] != queries[:-1]]))
    together = np.ones(len(queries), dtype=bool)
    together[np.delete(starts, np.unique(queries[starts], return_index=True)[1])] = False
    _check_row(
        path, together, "the rows of a query must be next to each other, but this query comes back"
    )
    return features, relevance.astype(np.int64), queries.astype(np.int64)


def _read_svmlight(path: Path) -> tuple[Any, NDArray[np.float64], NDArray[np.int64]]:
    """Sparse features, relevance and query ids. The file is read piece by piece, because with query
    ids the time of scikit-learn's reader grows with the square of the number of rows."""
    from scipy.sparse import vstack
    from sklearn.datasets import load_svmlight_file

    parts = []
    with open_data(path) as file:
        lines = bounded_lines(path, file)
        while piece := list(islice(lines, _ROWS)):
            if any(line.split(b"#")[0].strip() for line in piece):
                block = io.BytesIO(b"".join(piece))
                read = load_svmlight_file(block, dtype=np.float32, query_id=True, zero_based=True)
                parts.append(read)
    if not parts:
        raise DataError(f"{path} is empty")
    width = max(X.shape[1] for X, _, _ in parts)
    for X, _, _ in parts:
        X.resize((X.shape[0], width))
    X = vstack([part[0] for part in parts], format="csr")
    return X, np.concatenate([part[1] for part in parts]), np.concatenate([p[2] for p in parts])


def _dense_features(path: Path, X: Any, n_features: int | None) -> NDArray[np.float32]:
    """The features as a dense array with `n_features` columns, or as many as the file has."""
    rows, n_found = X.shape
    if n_features is None and n_found > _MOST_FEATURES:
        raise DataError(
            f"{path}: there may be up to {_MOST_FEATURES} features, but there are {n_found}"
        )
    if n_features is not None:
        few = X[:, n_features:].getnnz(axis=1) == 0
        _check_row(path, few, f"feature numbers must not exceed n_features={n_features}")
        X.resize((rows, n_features))
    elif rows * n_found * 4 > most_unpacked(path):  # few numbers in a file can mean many columns
        raise DataError(
            f"{path}: {rows} rows of {n_found} features take far more memory than the file is "
            f"large. If that is right, give n_features={n_found}"
        )
    features: NDArray[np.float32] = X.toarray()
    return features


def _data_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a LETOR file that have data, with their numbers, without comments."""
    for number, line in read_lines(path):
        if row := line.split("#")[0].strip():
            yield number, row


def _check_row(path: Path, holds: NDArray[np.bool_], rule: str) -> None:
    """Raise an error that shows the first row for which the rule does not hold."""
    if not holds.all():
        number, row = next(islice(_data_lines(path), int(np.argmin(holds)), None))
        raise DataError(f"{path}, line {number}: {rule}: {row:.40}")


def _first_bad_line(path: Path) -> str:
    """The place of the first row that is not in LETOR's format, for a message."""
    bad = (number for number, row in _data_lines(path) if not _JUDGED.fullmatch(row))
    return next((f"{path}, line {number}" for number in bad), str(path))
