"""Word vectors: reading them from files, and making them for words that have none."""

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

from tradewind.checks import one_of
from tradewind.errors import DataMissing, missing
from tradewind.models.files import data_folder
from tradewind.models.text import Tokens
from tradewind.models.vectorfiles import Table, first_not_finite, read_vector_file

_KIM = 0.25  # the spread in Kim (2014), which fits the Google News vectors
_LARGEST = float(np.finfo(np.float32).max)
_SOURCES = (
    "word2vec's vectors are at code.google.com/archive/p/word2vec, GloVe's at "
    "nlp.stanford.edu/projects/glove"
)


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """Words and their vectors, one row for each word. Immutable, so copying returns the object
    itself.

    A writeable array is copied; a read-only one is used as it is.

    >>> import numpy as np
    >>> tw.models.WordVectors(("good", "film"), np.eye(2)).words
    ('good', 'film')
    """

    words: tuple[str, ...]
    vectors: Table

    def __post_init__(self) -> None:
        words: Any = self.words
        if isinstance(words, (str, bytes)):
            raise ValueError(f"words must be a list of strings, but got {words[:40]!r}")
        words = tuple(words.tolist() if isinstance(words, np.ndarray) else words)
        seen: set[str] = set()
        for word in words:
            if not isinstance(word, str):
                raise ValueError(f"every word must be a string, but got {word!r:.60}")
            if word in seen:
                raise ValueError(f"words must be distinct, but {word!r} is given twice")
            seen.add(word)
        table = _read_only(self.vectors)
        if table.ndim != 2 or not table.shape[1] or len(table) != len(words):
            raise ValueError(
                f"vectors must have a row for each of {len(words)} words, but got an array of the "
                f"shape {table.shape}"
            )
        if (row := first_not_finite(table)) is not None:
            raise ValueError(f"vectors must be finite, but the vector of {words[row]!r} is not")
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
        state["vectors"].setflags(write=False)  # pickling loses this flag
        vars(self).update(state)

    @property
    def dimensions(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def spread(self) -> float:
        """The s for which the uniform distribution on [-s, s] has the variance of these vectors."""
        return _spread(self.vectors)

    @cached_property
    def rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}


def _read_only(vectors: Any) -> Table:
    given = np.asarray(vectors)
    if given.dtype.kind not in "biufO":
        raise ValueError(f"vectors must be real numbers, but got {given.dtype}")
    with np.errstate(
        over="ignore"
    ):  # numbers too big for float32 become infinite and are reported later
        if given.flags.writeable:
            table = np.array(given, dtype=np.float32, order="C")
        else:
            table = np.ascontiguousarray(given, dtype=np.float32)
    table.setflags(write=False)
    return table


def read_vectors(path: str | os.PathLike[str], words: Iterable[str] | None = None) -> WordVectors:
    """Read word vectors from a file: word2vec (binary or text), GloVe, or an .npz file with the
    arrays `words` and `vectors`, gzipped or not. The content decides the format, not the name.

    With `words`, only these words are kept, in the order of the file, and a file of text or binary
    vectors takes no memory for the others. If a word repeats, its first vector counts. A name that
    is not a file is looked for in `$TRADEWIND_DATA/wordvec`, with and without .npz.

    >>> from pathlib import Path
    >>> _ = Path("vectors.txt").write_text("good 1 0\\nfilm 0 1\\n")
    >>> tw.models.read_vectors("vectors.txt").words
    ('good', 'film')
    """
    if isinstance(words, str):
        raise ValueError(f"words must be a list of strings, but got {words[:40]!r}")
    wanted = None if words is None else frozenset(words)
    for word in wanted or ():
        if not isinstance(word, str):
            raise ValueError(f"every word must be a string, but got {word!r:.60}")
    return WordVectors(*read_vector_file(_find_file(Path(path)), wanted))


def _find_file(path: Path) -> Path:
    """The file at this path, or the one of this name in the data folder."""
    tried = [path]
    if (folder := data_folder("wordvec")) and path.name == str(path):
        tried += [folder / path, folder / f"{path}.npz"]
    for each in tried:
        if each.exists():
            return each
    raise DataMissing(f"there are no word vectors at {' or '.join(map(str, tried))}: {_SOURCES}")


def random_vectors(words: Sequence[str], dimensions: int, *, spread: float, seed: int) -> Table:
    """Random vectors, uniform on [-spread, spread]. The vector of a word depends only on the seed
    and the word, not on the other words, the process or the machine."""
    start = hashlib.blake2b(f"{int(seed)}:".encode(), digest_size=8)
    keys = bytearray()
    for word in words:
        key = start.copy()
        key.update(word.encode("utf-8", "surrogatepass"))
        keys += key.digest()
    states = np.frombuffer(keys, dtype="<u8").astype(np.uint64)
    steps = np.arange(1, dimensions + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    table = np.empty((len(words), dimensions), dtype=np.float32)
    for at in range(0, len(words), 256):  # splitmix64, in blocks that fit into the cache
        z = states[at : at + 256, None] + steps
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        unit = ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53  # in [0, 1)
        table[at : at + 256] = (2.0 * unit - 1.0) * spread
    return table


def word2vec(
    texts: Sequence[Tokens], words: Sequence[str], dimensions: int, *, window: int = 10, seed: int
) -> Table:
    """The vectors of `words`, trained on tokenized texts by gensim's word2vec. They are the same in
    every process. Words that do not occur in the texts get random vectors of the same variance."""
    if any(isinstance(tokens, str) for tokens in texts):
        raise ValueError("every text must be a list of tokens, but one is a string: tokenize it")
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise missing("word2vec (which needs Python 3.13 or older)", "gensim") from None
    if not any(texts):
        return random_vectors(words, dimensions, spread=_KIM, seed=seed)
    trained = Word2Vec(
        sentences=texts,
        vector_size=dimensions,
        window=window,
        min_count=1,
        workers=1,  # so that updates have a fixed order
        seed=int(seed) % 2**32,
        hashfxn=_checksum,
    ).wv
    table, known = _look_up(words, trained.key_to_index, trained.vectors)
    lacking = [word for word, is_known in zip(words, known, strict=True) if not is_known]
    table[~known] = random_vectors(lacking, dimensions, spread=_spread(trained.vectors), seed=seed)
    return table


def _checksum(word: str) -> int:
    """A hash that is the same in every process, unlike Python's own."""
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
    """A table with the vectors of `words`, by their codes: (len(words) + 1, D). Row 0 is padding
    and zero. D is that of `vectors` if they are given, otherwise `dimensions`.

    A word without a vector gets a random one with the variance of `vectors` (Kim 2014), independent
    of the other words. With unknown="word2vec", such words are trained on `texts` if they occur
    there, and then scaled to the typical length of `vectors`.
    """
    one_of("unknown", unknown, ("random", "word2vec"))
    if unknown == "word2vec" and texts is None:
        raise ValueError("unknown='word2vec' needs the texts to train on, but got none")
    if vectors is None:
        vectors = WordVectors((), np.empty((0, dimensions), dtype=np.float32))
    d = vectors.dimensions
    table = np.zeros((len(words) + 1, d), dtype=np.float32)
    table[1:], known = _look_up(words, vectors.rows, vectors.vectors)
    lacking = [word for word, is_known in zip(words, known, strict=True) if not is_known]
    if not lacking:
        return table
    made = random_vectors(lacking, d, spread=vectors.spread, seed=seed)
    if unknown == "word2vec" and texts is not None:
        there = set(chain.from_iterable(texts))
        at = [i for i, word in enumerate(lacking) if word in there]
        trained = word2vec(texts, [lacking[i] for i in at], d, window=window, seed=seed)
        # trained on little text, frequent words get vectors far longer than any given one
        trained *= _typical_length(vectors.spread, d) / np.linalg.norm(
            trained, axis=1, keepdims=True
        )
        made[at] = trained
    table[1:][~known] = made
    return table


def _look_up(
    words: Sequence[str], rows: Mapping[str, int], table: Table
) -> tuple[Table, NDArray[np.bool_]]:
    """The vectors of words, zero for words without one, and a mask of the words that have one."""
    at = np.array([rows.get(word, -1) for word in words], dtype=np.intp)
    known = at >= 0
    found = np.zeros((len(words), table.shape[1]), dtype=np.float32)
    found[known] = table[at[known]]
    return found, known


def _typical_length(spread: float, dimensions: int) -> float:
    """The root mean square length of vectors with this spread."""
    return spread * math.sqrt(dimensions / 3.0)


def _spread(table: Table) -> float:
    """The half-width a of the uniform distribution whose variance a²/3 is that of these vectors
    (Kim 2014)."""
    total = squares = np.zeros(table.shape[1])
    for at in range(0, len(table), 4096):  # in blocks, because there may be gigabytes
        block = table[at : at + 4096].astype(np.float64) - table[0]
        total, squares = total + block.sum(axis=0), squares + np.square(block).sum(axis=0)
    n = max(len(table), 1)
    variance = float((squares / n - np.square(total / n)).mean())
    return min((3.0 * variance) ** 0.5, _LARGEST) if variance > 0 else _KIM
