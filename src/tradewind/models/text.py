"""From texts to numbers: tokens, a vocabulary, rows of codes of one length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, TypeAlias
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

Tokens: TypeAlias = list[str]
Codes: TypeAlias = NDArray[np.int32]  # (texts, length)

PADDING = 0  # the code of no word: behind the end of a text, and for words nobody knows

_TAG = re.compile(r"<(?:/?[a-zA-Z]|!)[^<>]*>")  # and not what stands between 1 < 2 and 3 > 2


@cache
def _marks() -> frozenset[str]:
    """Accents and vowel signs apart from their letters. The selectors of emoji (FE0x) are marks,
    too, but belong to no word."""
    marks = (char for char in map(chr, range(0x300, 0x20000)) if category(char) in ("Mn", "Mc"))
    return frozenset(char for char in marks if not "\ufe00" <= char <= "\ufe0f")


def _cut(begin: str, letter: str, end: str) -> re.Pattern[str]:
    """Tokens whose words begin, go on and end like this."""
    return re.compile(
        rf"""
          n't{end} | '(?:s|ve|re|d|ll){end}                               # contracted, on its own
        | [,()!?]                                                         # punctuation that counts
        | {begin}{letter}+? (?=n't{end})                                  # do|n't
        | {begin}{letter}+ (?: ' (?!(?:s|ve|re|d|ll){end}) {letter}+ )*   # words; o'brien is one
        """,
        re.VERBOSE,
    )


_PLAIN = _cut("", r"[^\W_]", r"\b")


@cache
def _marked() -> re.Pattern[str]:
    """Tokens of a text with marks, made when there is one. Slower, so it looks at the range of a
    character before it looks for it among all marks."""
    mark = rf"(?![\0-\u02ff])[{''.join(sorted(_marks()))}]"
    return _cut(rf"(?!{mark})", rf"(?:[^\W_]|{mark})", rf"\b(?!{mark})")


def tokenize(text: str) -> Tokens:
    """The tokens of a text as Hader cuts them (section 5.1): HTML tags go, case goes, commas,
    parentheses, exclamation and question marks and 's, 've, 're, n't, 'd, 'll are tokens of their
    own, periods and everything else that is no word are left out. Letters are composed with their
    accents (NFC), and an accent or vowel sign that stays apart belongs to its word."""
    text = _TAG.sub(" ", normalize("NFC", text.lower())).replace("’", "'")
    plain = text.isascii() or _marks().isdisjoint(text)
    return (_PLAIN if plain else _marked()).findall(text)


def texts_of(X: Any) -> list[str]:
    """The texts somebody gave: a list, a column or an array of strings."""
    if isinstance(X, (str, bytes)):
        raise ValueError(f"a list of texts is needed, but got the single text {X[:40]!r}")
    if getattr(X, "ndim", 1) != 1:
        raise ValueError(f"texts must be a single column, but got the shape {X.shape}")
    try:
        texts = X.tolist() if hasattr(X, "tolist") else list(X)
    except TypeError:
        raise ValueError(f"a list of texts is needed, but got {X!r:.60}") from None
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"every text must be a string, but text {i} is {text!r:.60}")
    return texts


@dataclass(frozen=True)
class Vocabulary:
    """The words a model knows. The code of the first is 1, since 0 is padding."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.words)) < len(self.words):
            word = next(word for word, n in Counter(self.words).items() if n > 1)
            raise ValueError(f"every word must be there once, but {word!r:.60} is there again")

    @staticmethod
    def of(texts: Iterable[Tokens]) -> Vocabulary:
        """The words of tokenized texts, the most frequent first."""
        counts: Counter[str] = Counter()
        for tokens in texts:
            if isinstance(tokens, str):
                raise ValueError(
                    f"every text must be a list of tokens, but there is {tokens!r:.60}: tokenize it"
                )
            counts.update(tokens)
        return Vocabulary(tuple(sorted(counts, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def codes(self) -> dict[str, int]:
        return {word: code for code, word in enumerate(self.words, PADDING + 1)}

    def encode(self, texts: Sequence[Tokens], length: int | None = None) -> Codes:
        """The texts as codes, padded behind their end or cut to `length` (that of the longest by
        default). A word that is not in the vocabulary keeps its place, as padding."""
        if length is None:
            length = max(map(len, texts), default=0)
        rows = np.full((len(texts), length), PADDING, dtype=np.int32)
        codes = self.codes
        for row, tokens in zip(rows, texts, strict=True):
            found = [codes.get(word, PADDING) for word in tokens[:length]]
            row[: len(found)] = found
        return rows


@lru_cache(maxsize=4)
def codes_of(words: tuple[str, ...]) -> dict[str, int]:
    """The codes of a vocabulary, kept: for a large one, making them takes longer than a small
    prediction."""
    return Vocabulary(words).codes
