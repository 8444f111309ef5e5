"""A short text that tells one data set from another: its shape, and a digest of a sample.

Every trial records the fingerprint of the data that its objective was given, so that a study
notices when they change. Equal data have equal fingerprints, whether they are lists, arrays,
tensors, columns or sparse matrices, and however they lie in memory.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.data.labels import count_rows, is_dataset, is_missing, is_sparse, to_array
from tradewind.data.subsets import take
from tradewind.types import Indices

_MOST_ROWS, _FEWEST_ROWS = 1000, 8  # of the sample
_MOST_CELLS = 32_000  # of the sample, if they are numbers
_MOST_WORDS = 1_000  # of the sample, if they are not: reading one takes a hundred times as long
_ENDS, _EACH = 80, 4  # letters at each end of a text, and entries at each end of a list


def fingerprint(**parts: Any) -> str:
    """The fingerprint of these parts of a data set. Parts that are None are left out.

    A change goes unnoticed if it leaves the shape and the sampled rows as they are.

    >>> from tradewind.data.fingerprint import fingerprint
    >>> fingerprint(y=[0, 1, 1]) == fingerprint(y=np.array([0.0, 1.0, 1.0]))
    True
    >>> print(fingerprint(X=np.zeros((3, 2)), y=["a", "b", "a"]))
    X: 3 × 2 numbers, y: 3 values (...)
    """
    digest, words = hashlib.blake2b(digest_size=5), []
    for name, data in parts.items():
        if data is not None:
            shape, kind, content = _read(data)
            words.append(f"{name}: {' × '.join(f'{size:,}' for size in shape)} {kind}")
            digest.update(f"{words[-1]}:{len(content)}:".encode() + content)
    return f"{', '.join(words)} ({digest.hexdigest()})"


def _read(data: Any) -> tuple[tuple[int, ...], str, bytes]:
    """The shape of the data, their kind, and some of their rows as bytes."""
    shape: tuple[int, ...] = ()
    with suppress(Exception):  # reading the user's objects may raise anything
        shape = (count_rows(data), *getattr(data, "shape", ())[1:])
        if not isinstance(data, (int, np.integer)) and not is_dataset(data):
            return _read_sample(data, shape)
    return shape, "rows", b""


def _read_sample(data: Any, shape: tuple[int, ...]) -> tuple[tuple[int, ...], str, bytes]:
    n = shape[0]
    if is_sparse(data):
        sample = take(data, _spread(n, _MOST_CELLS, data.nnz // n))
        sample.sum_duplicates()  # this also sorts: one matrix can be stored in several ways
        places = np.concatenate([sample.indptr, sample.indices]).astype(np.int64)
        return shape, "numbers", places.tobytes() + _number_bytes(sample.data)
    first = to_array(take(data, [0]))
    if first.dtype.kind in "biuf":
        sample = take(data, _spread(n, _MOST_CELLS, first.size))
        with suppress(ValueError):  # rows of different lengths
            rows = to_array(sample)
            cells = rows.reshape(len(rows), -1)[:, :: -(-rows.size // _MOST_CELLS)]
            if rows.dtype.kind in "biuf":
                return (n, *rows.shape[1:]), "numbers", _number_bytes(cells)
    sample = take(data, _spread(n, _MOST_WORDS, first.size))
    words = sample if isinstance(sample, (list, tuple)) else to_array(sample).ravel().tolist()
    return shape, "values", "\0".join(map(_word, words)).encode(errors="surrogatepass")


def _spread(n: int, most: int, wide: int) -> Indices:
    """Rows from the first to the last that have about `most` cells, if a row has `wide` of them."""
    k = min(n, _MOST_ROWS, max(_FEWEST_ROWS, most // max(wide, 1)))
    return np.linspace(0, n - 1, k).astype(np.intp)


def _number_bytes(cells: NDArray[Any]) -> bytes:
    """Numbers in 32 bits: the same data are often stored with either precision."""
    with np.errstate(over="ignore"):
        numbers = cells.astype(np.float32) + np.float32(0.0)  # −0 becomes 0
    numbers[np.isnan(numbers)] = np.nan  # NaN has many bit patterns
    return numbers.tobytes()


def _word(cell: Any) -> str:
    """A cell as text. Of an object that is neither a number nor text only the type counts."""
    if isinstance(cell, bytes):
        cell = cell[: 2 * _ENDS].decode("latin-1")
    if isinstance(cell, str):
        return cell if len(cell) <= 2 * _ENDS else f"{cell[:_ENDS]}{len(cell)}{cell[-_ENDS:]}"
    if isinstance(cell, (list, tuple)):
        return f"{len(cell)} {[_word(each) for each in (*cell[:_EACH], *cell[-_EACH:])]}"
    if hasattr(cell, "__array__") and not isinstance(cell, np.generic):
        return _word(to_array(cell).ravel().tolist())
    if is_missing(cell):
        return ""
    return repr(float(cell)) if isinstance(cell, Real) else type(cell).__name__
