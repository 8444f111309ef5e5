"""From texts to numbers: tokens, a vocabulary, rows of codes of one length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Tokens: TypeAlias = list[str]
Codes: TypeAlias = NDArray[np.int32]  # (texts, length)

PADDING = 0  # the code of no word: behind the end of a text, and for words nobody knows

_TAG = re.compile(r"<(?:/?[a-zA-Z]|!)[^<>]*>")  # and not what stands between 1 < 2 and 3 > 2
_TOKEN = re.compile(
    r"""
      n't\b | '(?:s|ve|re|d|ll)\b                          # what is contracted, on its own
    | [,()!?]                                              # the punctuation that counts
    | [^\W_]+? (?=n't\b)                                   # do|n't
    | [^\W_]+ (?: ' (?!(?:s|ve|re|d|ll)\b) [^\W_]+ )*      # words; o'brien is one
    """,
    re.VERBOSE,
)


def tokenize(text: str) -> Tokens:
    """The tokens of a text as Hader cuts them (section 5.1): HTML tags go, case goes, commas,
    parentheses, exclamation and question marks and 's, 've, 're, n't, 'd, 'll are tokens of their
    own, periods and everything else that is no word are left out."""
    return _TOKEN.findall(_TAG.sub(" ", text).lower().replace("’", "'"))


def texts_of(X: Any) -> list[str]:
    """The texts somebody gave: a list, a column or an array of strings."""
    if isinstance(X, (str, bytes)):
        raise ValueError(f"a list of texts is needed, but got the single text {X[:40]!r}")
    if getattr(X, "ndim", 1) != 1:
        raise ValueError(f"texts must be a single column, but got the shape {X.shape}")
    texts = X.tolist() if hasattr(X, "tolist") else list(X)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"every text must be a string, but text {i} is {text!r:.60}")
    return texts


@dataclass(frozen=True)
class Vocabulary:
    """The words a model knows. The code of the first is 1, since 0 is padding."""

    words: tuple[str, ...]

    @staticmethod
    def of(texts: Iterable[Tokens]) -> Vocabulary:
        """The words of tokenized texts, the most frequent first."""
        counts = Counter(chain.from_iterable(texts))
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
