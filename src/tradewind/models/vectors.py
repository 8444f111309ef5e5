"""Word vectors: reading them from the usual formats, and making them for words that have none."""

from __future__ import annotations

import hashlib
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tradewind.errors import DataMissing
from tradewind.models.files import data_folder
from tradewind.models.text import Tokens
from tradewind.models.vectorfiles import Table, first_not_finite, read_rows

_KIM = 0.25  # the spread of Kim (2014), which fits the Google News vectors
_LARGEST = float(np.finfo(np.float32).max)
_SOURCES = (
    "word2vec's are at code.google.com/archive/p/word2vec, GloVe's at "
    "nlp.stanford.edu/projects/glove"
)


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """Words and their vectors, a row each. Never changes, so copies are the thing itself.

    An array that could be written to is copied; one that is read-only is taken as it is.
    """

    words: tuple[str, ...]
    vectors: Table

    def __post_init__(self) -> None:
        words: Any = self.words
        if isinstance(words, (str, bytes)):
            raise ValueError(f"words must be many strings, but got only {words[:40]!r}")
        words = tuple(words.tolist() if isinstance(words, np.ndarray) else words)
        seen: set[str] = set()
        for word in words:
            if not isinstance(word, str):
                raise ValueError(f"every word must be a string, but got {word!r:.60}")
            if word in seen:
                raise ValueError(f"every word must be there once, but {word!r} is there again")
            seen.add(word)
        table = _read_only(self.vectors)
        if table.ndim != 2 or not table.shape[1] or len(table) != len(words):
            raise ValueError(
                f"vectors must be a row for each of {len(words)} words, but got an array of the "
                f"shape {table.shape}"
            )
        if (row := first_not_finite(table)) is not None:
            raise ValueError(f"vectors must be finite, but that of {words[row]!r} is not")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "vectors", table)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.vectors[self.rows[word]]
        return vector

    def __repr__(self) -> str:
        return f"<WordVectors: {len(self)} words, {self.dimensions} dimensions>"

    def __copy__(self) -> WordVectors:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> WordVectors:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {"words": self.words, "vectors": self.vectors}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state["vectors"].setflags(write=False)  # pickles forget it
        vars(self).update(state)

    @property
    def dimensions(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def spread(self) -> float:
        """What vectors drawn evenly from [-spread, spread] need to have the same variance."""
        return _spread(self.vectors)

    @cached_property
    def rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}


def _read_only(vectors: Any) -> Table:
    given = np.asarray(vectors)
    if given.dtype.kind not in "biufO":
        raise ValueError(f"vectors must be real numbers, but got {given.dtype}")
    with np.errstate(over="ignore"):  # what is too big for float32 becomes infinite, and is found
        if given.flags.writeable:
            table = np.array(given, dtype=np.float32, order="C")
        else:
            table = np.ascontiguousarray(given, dtype=np.float32)
    table.setflags(write=False)
    return table


def read_vectors(path: str | os.PathLike[str], words: Iterable[str] | None = None) -> WordVectors:
    """The vectors in a file: word2vec (binary or text), GloVe, or an .npz of `words` and `vectors`,
    each of them gzipped or not. The content tells the format, not the name.

    With `words`, only these are kept, in the order of the file, and no others are held in memory.
    Where a word repeats, its first vector counts. A name that is no file is looked for in
    `$TRADEWIND_DATA/wordvec`, with and without .npz.
    """
    if isinstance(words, str):
        raise ValueError(f"words must be many strings, but got only {words[:40]!r}")
    wanted = None if words is None else frozenset(words)
    for word in wanted or ():
        if not isinstance(word, str):
            raise ValueError(f"every word must be a string, but got {word!r:.60}")
    return WordVectors(*read_rows(_found(Path(path)), wanted))


def _found(path: Path) -> Path:
    """The file itself, or the one of this name among the data."""
    tried = [path]
    if (folder := data_folder("wordvec")) and path.name == str(path):
        tried += [folder / path, folder / f"{path}.npz"]
    for each in tried:
        if each.exists():
            return each
    raise DataMissing(f"no word vectors at {' or '.join(map(str, tried))}: {_SOURCES}")


def random_vectors(words: Sequence[str], dimensions: int, *, spread: float, seed: int) -> Table:
    """Vectors drawn evenly from [-spread, spread]. That of a word depends on the seed and on the
    word alone, not on the words beside it, the process or the machine."""
    start = hashlib.blake2b(f"{int(seed)}:".encode(), digest_size=8)
    keys = bytearray()
    for word in words:
        key = start.copy()
        key.update(word.encode("utf-8", "surrogatepass"))
        keys += key.digest()
    states = np.frombuffer(keys, dtype="<u8").astype(np.uint64)
    steps = np.arange(1, dimensions + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    table = np.empty((len(words), dimensions), dtype=np.float32)
    for at in range(0, len(words), 256):  # splitmix64, in pieces that stay in the cache
        z = states[at : at + 256, None] + steps
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        unit = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53  # in [0, 1)
        table[at : at + 256] = (2.0 * unit - 1.0) * spread
    return table


def word2vec(
    texts: Sequence[Tokens], words: Sequence[str], dimensions: int, *, window: int = 10, seed: int
) -> Table:
    """The vectors of `words`, trained on tokenized texts by gensim's word2vec, the same in every
    process. Words that the texts lack are drawn with the variance of those they have."""
    if any(isinstance(tokens, str) for tokens in texts):
        raise ValueError("every text must be a list of tokens, but there is a string: tokenize it")
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise ImportError(
            'word2vec needs gensim, which is not installed: pip install "tradewind[text]"'
        ) from None
    if not any(texts):
        return random_vectors(words, dimensions, spread=_KIM, seed=seed)
    trained = Word2Vec(
        sentences=texts,
        vector_size=dimensions,
        window=window,
        min_count=1,
        workers=1,  # the updates then come in one order
        seed=int(seed) % 2**32,
        hashfxn=_checksum,
    ).wv
    table, known = _looked_up(words, trained.key_to_index, trained.vectors)
    lacking = [word for word, is_known in zip(words, known, strict=True) if not is_known]
    table[~known] = random_vectors(lacking, dimensions, spread=_spread(trained.vectors), seed=seed)
    return table


def _checksum(word: str) -> int:
    """A hash that is the same in every process, as Python's own is not."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def embedding(
    words: Sequence[str],
    vectors: WordVectors | None,
    *,
    unknown: Literal["random", "word2vec"] = "random",
    texts: Sequence[Tokens] | None = None,
    dimensions: int = 300,
    window: int = 10,
    seed: int = 0,
) -> Table:
    """What turns the codes of `words` into vectors: (len(words) + 1, D). Row 0, which is padding,
    is zero; D is that of `vectors` where there are any.

    A word without a vector is drawn such that it has the variance of `vectors` (Kim 2014), whatever
    the words beside it. With "word2vec", those that `texts` have are trained on these instead, and
    then made as long as `vectors` are on the whole.
    """
    if unknown not in ("random", "word2vec"):
        raise ValueError(f"unknown must be 'random' or 'word2vec', but got {unknown!r}")
    if unknown == "word2vec" and texts is None:
        raise ValueError("unknown='word2vec' needs the texts to train on, but got none")
    if vectors is None:
        vectors = WordVectors((), np.empty((0, dimensions), dtype=np.float32))
    d = vectors.dimensions
    table = np.zeros((len(words) + 1, d), dtype=np.float32)
    table[1:], known = _looked_up(words, vectors.rows, vectors.vectors)
    lacking = [word for word, is_known in zip(words, known, strict=True) if not is_known]
    if not lacking:
        return table
    made = random_vectors(lacking, d, spread=vectors.spread, seed=seed)
    if unknown == "word2vec" and texts is not None:
        there = set(chain.from_iterable(texts))
        at = [i for i, word in enumerate(lacking) if word in there]
        trained = word2vec(texts, [lacking[i] for i in at], d, window=window, seed=seed)
        # from little text, frequent words come out many times as long as any given vector
        trained *= _length(vectors.spread, d) / np.linalg.norm(trained, axis=1, keepdims=True)
        made[at] = trained
    table[1:][~known] = made
    return table


def _looked_up(
    words: Sequence[str], rows: Mapping[str, int], table: Table
) -> tuple[Table, NDArray[np.bool_]]:
    """The vectors of words, zero for those without one, and which have one."""
    at = np.array([rows.get(word, -1) for word in words], dtype=np.intp)
    known = at >= 0
    found = np.zeros((len(words), table.shape[1]), dtype=np.float32)
    found[known] = table[at[known]]
    return found, known


def _length(spread: float, dimensions: int) -> float:
    """How long vectors of this spread are, in the root of the mean square."""
    return spread * math.sqrt(dimensions / 3.0)


def _spread(table: Table) -> float:
    """The half-width of an even distribution with the variance of these vectors: a²/3 (Kim 2014)"""
    total = squares = np.zeros(table.shape[1])
    for at in range(0, len(table), 4096):  # in pieces, for there may be gigabytes
        block = table[at : at + 4096].astype(np.float64) - table[0]
        total, squares = total + block.sum(axis=0), squares + np.square(block).sum(axis=0)
    n = max(len(table), 1)
    variance = float((squares / n - np.square(total / n)).mean())
    return min((3.0 * variance) ** 0.5, _LARGEST) if variance > 0 else _KIM
