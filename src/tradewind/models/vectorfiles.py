"""Reading word vectors from files: word2vec (binary and text), GloVe and NumPy. Text and binary
files are read as a stream, so that unwanted words never take memory."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradewind.errors import DataError
from tradewind.models.files import CHUNK, open_data, read_arrays

Table: TypeAlias = NDArray[np.float32]  # (words, dimensions)

_LONGEST = 1 << 20  # bytes of a line, or of a word in a binary file
_MOST_DIMENSIONS = 1 << 15  # this leaves 32 bytes of a line for each number
_BOM = b"\xef\xbb\xbf"  # some programs put it at the start of a text file
_HEADER = re.compile(rb"(\d{1,15})[ \t]+(\d{1,15})\s*")
_ZIP = b"PK\x03\x04"


def read_vector_file(path: Path, wanted: AbstractSet[str] | None) -> tuple[tuple[str, ...], Table]:
    """The wanted words of a file (None: all) and their vectors. If a word repeats, the first vector
    counts."""
    with open_data(path) as file:
        magic = file.read(len(_ZIP))
        if magic == _ZIP:
            return _read_npz(path, wanted)
        begin = len(_BOM) if magic.startswith(_BOM) else 0
        file.seek(begin)
        first = file.readline(_LONGEST)
        rows = _Rows(path, wanted)
        if header := _HEADER.fullmatch(first):
            rows.promised, rows.dimensions = int(header[1]), int(header[2])
            if not (rows.promised and rows.dimensions):
                raise DataError(f"{path} holds no vectors: its header is {first.strip()!r}")
            if rows.dimensions > _MOST_DIMENSIONS:
                raise DataError(
                    f"{path}: vectors must have up to {_MOST_DIMENSIONS} dimensions, but the "
                    f"header says {rows.dimensions}"
                )
            start = file.tell()
            second = file.readline(_LONGEST)
            file.seek(start)
            if _is_text(second, rows.dimensions):
                _read_text(rows, file, 2)
            else:
                _read_binary(rows, file)
        else:
            rows.dimensions = _dimensions(first)
            if not rows.dimensions:
                begins = f"it begins with {first[:40]!r}" if first else "it is empty"
                raise DataError(f"{path} holds no word vectors: {begins}")
            file.seek(begin)
            _read_text(rows, file, 1)
        return rows.finish()


class _Rows:
    """The rows to keep. Only these take memory, whatever the header promises, because the amount
    that is read at once is bounded."""

    def __init__(self, path: Path, wanted: AbstractSet[str] | None) -> None:
        self.path = path
        self.promised: int | None = None
        self.dimensions = 0
        self.count = 0
        # words are compared as bytes: most are skipped, and some files cut characters in half
        self._wanted: set[bytes] | None = None
        if wanted is not None:
            self._wanted = {word.encode("utf-8", "surrogatepass") for word in wanted}
        self._words: dict[bytes, None] = {}
        self._data = bytearray()

    def wants(self, word: bytes) -> bool:
        """Count the next row, the one of `word`, and return whether to keep it."""
        self.count += 1
        return (self._wanted is None or word in self._wanted) and word not in self._words

    def keep(self, word: bytes, vector: bytes) -> None:
        self._words[word] = None
        self._data += vector

    def finish(self) -> tuple[tuple[str, ...], Table]:
        if self.promised is not None and self.count < self.promised:
            raise DataError(
                f"{self.path} is cut off, or its header is wrong: it has {self.count} of "
                f"{self.promised} vectors"
            )
        table = np.frombuffer(self._data, dtype="<f4").reshape(-1, self.dimensions)
        table.setflags(write=False)
        words = tuple(map(self._decode, self._words))
        _check_finite(self.path, words, table)
        return words, table

    def _decode(self, word: bytes) -> str:
        try:
            return word.decode()
        except UnicodeDecodeError:
            raise DataError(
                f"{self.path}: the word {word[:40]!r} is not UTF-8; give the words that you need, "
                "then all others are skipped"
            ) from None


def first_not_finite(table: Table) -> int | None:
    """The first row that is not finite, or None. Only rows whose sum is not finite are searched."""
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(table.sum(axis=1)))
    return next((int(row) for row in suspects if not np.isfinite(table[row]).all()), None)


def _check_finite(path: Path, words: tuple[str, ...], table: Table) -> None:
    if (row := first_not_finite(table)) is not None:
        raise DataError(f"{path}: the vector of {words[row]!r} is not finite")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _is_text(line: bytes, dimensions: int) -> bool:
    """Whether a row is text, possibly damaged. At least half of a damaged row must be numbers."""
    numbers = [_is_number(field) for field in line.split()[1:]]
    is_intact = len(numbers) >= dimensions and all(numbers[-dimensions:])
    return is_intact or 2 * sum(numbers) >= max(len(numbers), dimensions)


def _dimensions(line: bytes) -> int:
    """How many numbers a line ends with. Its first field is a word, even if it is a number."""
    fields = line.rstrip().split(b" ")[1:]
    return next((i for i, f in enumerate(reversed(fields)) if not _is_number(f)), len(fields))


def _read_text(rows: _Rows, file: BinaryIO, first: int) -> None:
    """Read lines of a word and its numbers. Words may contain spaces, as in glove.840B."""
    path, d = rows.path, rows.dimensions
    for number, raw in enumerate(iter(lambda: file.readline(_LONGEST), b""), first):
        line = raw.rstrip()
        if not line:
            continue
        if len(raw) == _LONGEST:
            raise DataError(f"{path}, line {number}: lines must be shorter than {_LONGEST} bytes")
        if rows.count == rows.promised:
            raise DataError(
                f"{path}, line {number}: there are more than the {rows.promised} vectors that the "
                "header promises"
            )
        spaces = line.count(b" ")
        word = line[: line.find(b" ")] if spaces == d else line.rsplit(b" ", d)[0]
        # if the word ends with a number, the line has a number too many
        if spaces < d or not word or (spaces > d and _is_number(word.split(b" ")[-1])):
            raise DataError(
                f"{path}, line {number}: a line must have a word and {d} numbers, but this one has "
                f"{len(line.split())} fields"
            )
        if not rows.count and word.endswith(
            b" "
        ):  # then all words would end with a space, and none would be found
            raise DataError(f"{path}, line {number}: fields must be separated by single spaces")
        if rows.wants(word):
            try:
                values = [float(field) for field in line.rsplit(b" ", d)[1:]]
            except ValueError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
            with np.errstate(over="ignore"):
                vector = np.array(values, dtype="<f4")
            if not np.isfinite(vector).all():
                raise DataError(f"{path}, line {number}: the vector is not finite")
            rows.keep(word, vector.tobytes())


def _read_binary(rows: _Rows, file: BinaryIO) -> None:
    """Read rows of a word, a space and the bytes of its numbers. A line break may follow a row."""
    promised = rows.promised or 0
    size = 4 * rows.dimensions
    data, at = b"", 0
    while rows.count < promised:
        space = data.find(b" ", at, at + _LONGEST)
        if space < 0 and len(data) - at >= _LONGEST:
            raise DataError(
                f"{rows.path}, vector {rows.count + 1}: no word ends within {_LONGEST} bytes; the "
                "file is damaged, or its header is wrong"
            )
        if space < 0 or space + 1 + size > len(data):
            more = file.read(CHUNK)
            if not more:
                break
            data, at = data[at:] + more, 0
            continue
        word = data[at + (data[at] == ord("\n")) : space]
        at = space + 1 + size
        if not word or b"\n" in word or b"\0" in word:
            raise DataError(
                f"{rows.path}, vector {rows.count + 1}: {word[:40]!r} is not a word; the file is "
                "damaged, or its header is wrong"
            )
        if rows.wants(word):
            rows.keep(word, data[space + 1 : at])
    if rows.count < promised:
        raise DataError(
            f"{rows.path} is cut off in vector {rows.count + 1} of {promised}, or its header is "
            "wrong"
        )
    if data[at:].strip() or file.read(CHUNK).strip():
        raise DataError(
            f"{rows.path} has more data after the {promised} vectors that its header promises"
        )


def _read_npz(path: Path, wanted: AbstractSet[str] | None) -> tuple[tuple[str, ...], Table]:
    stored = read_arrays(path)
    if not {"words", "vectors"} <= stored.keys():
        raise DataError(f"{path} must have the arrays `words` and `vectors`, but has {[*stored]}")
    words, vectors = stored["words"], stored["vectors"]
    if words.dtype.kind != "U" or vectors.dtype.kind not in "fiu":
        raise DataError(
            f"{path}: words must be strings and vectors numbers, but got {words.dtype} and "
            f"{vectors.dtype}"
        )
    if words.ndim != 1 or vectors.ndim != 2 or len(words) != len(vectors) or not vectors.size:
        raise DataError(
            f"{path}: vectors must have a row for each word, but the shapes are {words.shape} and "
            f"{vectors.shape}"
        )
    rows: dict[str, int] = {}
    for row, word in enumerate(words.tolist()):
        if wanted is None or word in wanted:
            rows.setdefault(word, row)
    with np.errstate(over="ignore"):
        table = vectors[list(rows.values())].astype(np.float32)
    table.setflags(write=False)
    _check_finite(path, tuple(rows), table)
    return tuple(rows), table
