"""From texts to numbers: tokens, a vocabulary, and rows of codes of equal length."""

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

PADDING = 0  # the code after the end of a text, and of words that are not in the vocabulary

_TAG = re.compile(r"<(?:/?[a-zA-Z]|!)[^<>]*>")  # but not "< 2 and 3 >" in 1 < 2 and 3 > 2


@cache
def _marks() -> frozenset[str]:
    """Accents and vowel signs that are characters of their own. Emoji selectors (FE0x) are marks
    too, but they are not part of a word."""
    marks = (char for char in map(chr, range(0x300, 0x20000)) if category(char) in ("Mn", "Mc"))
    return frozenset(char for char in marks if not "\ufe00" <= char <= "\ufe0f")


def _token_pattern(begin: str, letter: str, end: str) -> re.Pattern[str]:
    """A pattern of tokens, from patterns of the begin, the letters and the end of a word."""
    return re.compile(
        rf"""
          n't{end} | '(?:s|ve|re|d|ll){end}                               # contracted, on its own
        | [,()!?]                                                         # punctuation that counts
        | {begin}{letter}+? (?=n't{end})                                  # do|n't
        | {begin}{letter}+ (?: ' (?!(?:s|ve|re|d|ll){end}) {letter}+ )*   # words; o'brien is one
        """,
        re.VERBOSE,
    )


_PLAIN = _token_pattern("", r"[^\W_]", r"\b")


@cache
def _marked_pattern() -> re.Pattern[str]:
    """The pattern of tokens for texts with marks, built on first use. It is slower, so it checks
    the range of a character before it looks for the character among all marks."""
    mark = rf"(?![\0-\u02ff])[{''.join(sorted(_marks()))}]"
    return _token_pattern(rf"(?!{mark})", rf"(?:[^\W_]|{mark})", rf"\b(?!{mark})")


def tokenize(text: str) -> Tokens:
    """Split a text into tokens as Hader does (section 5.1).

    HTML tags are removed and letters become lower case. Commas, parentheses, exclamation and
    question marks are tokens, and so are 's, 've, 're, n't, 'd and 'll. Periods and everything
    else that is not a word are dropped. Letters are composed with their accents (NFC); an accent
    or vowel sign that cannot be composed stays part of its word.

    >>> tw.models.tokenize("It isn't a bad film.")
    ['it', 'is', "n't", 'a', 'bad', 'film']
    """
    text = _TAG.sub(" ", normalize("NFC", text.lower())).replace("’", "'")
    plain = text.isascii() or _marks().isdisjoint(text)
    return (_PLAIN if plain else _marked_pattern()).findall(text)


def texts_of(X: Any) -> list[str]:
    """Texts as a list. They may come as a list, a column of a data frame or an array."""
    if isinstance(X, (str, bytes)):
        raise ValueError(f"texts must be a list of strings, but got the single text {X[:40]!r}")
    if getattr(X, "ndim", 1) != 1:
        raise ValueError(f"texts must have one dimension, but got the shape {X.shape}")
    try:
        texts = X.tolist() if hasattr(X, "tolist") else list(X)
    except TypeError:
        raise ValueError(f"texts must be a list of strings, but got {X!r:.60}") from None
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"every text must be a string, but text {i} is {text!r:.60}")
    return texts


@dataclass(frozen=True)
class Vocabulary:
    """The words that a model knows. The first word has the code 1, because 0 is padding.

    >>> tw.models.Vocabulary(("good", "film")).words
    ('good', 'film')
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.words)) < len(self.words):
            word = next(word for word, n in Counter(self.words).items() if n > 1)
            raise ValueError(f"words must be distinct, but {word!r:.60} is given twice")

    @staticmethod
    def of(texts: Iterable[Tokens]) -> Vocabulary:
        """The words of tokenized texts, most frequent first."""
        counts: Counter[str] = Counter()
        for tokens in texts:
            if isinstance(tokens, str):
                raise ValueError(
                    f"every text must be a list of tokens, but got {tokens!r:.60}: tokenize it"
                )
            counts.update(tokens)
        return Vocabulary(tuple(sorted(counts, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def codes(self) -> dict[str, int]:
        return {word: code for code, word in enumerate(self.words, PADDING + 1)}

    def encode(self, texts: Sequence[Tokens], length: int | None = None) -> Codes:
        """The texts as rows of codes, padded or cut to `length` (by default that of the longest
        text). A word that is not in the vocabulary becomes padding."""
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
    """The codes of a vocabulary. They are cached, because building them for a large vocabulary
    takes longer than a small prediction."""
    return Vocabulary(words).codes
