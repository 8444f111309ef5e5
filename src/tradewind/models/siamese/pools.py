"""Reading questions, their correct answers and the pools to choose from, and numbering them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.models.text import texts_of

Integers = NDArray[np.int64]


def number_texts(texts: Iterable[str]) -> dict[str, int]:
    """The distinct texts, numbered in order of appearance."""
    return {text: i for i, text in enumerate(dict.fromkeys(texts))}


def correct_texts(answers: Any, questions: int, what: str = "answers") -> list[list[str]]:
    """The correct answers of each question, given as one text or a list of texts."""
    lists = [_as_texts(given, what) for given in _as_list(answers, what)]
    _check_count(questions, len(lists), what)
    _check_not_empty(lists)
    return lists


def _as_list(given: Any, what: str) -> list[Any]:
    if isinstance(given, (str, bytes)):
        raise ValueError(f"{what} must be a list, but got the single text {given[:40]!r}")
    try:
        return list(given)
    except TypeError:
        raise ValueError(f"{what} must be a list, but got {given!r:.60}") from None


def _as_texts(given: Any, what: str) -> list[str]:
    if isinstance(given, str):
        return [given]
    try:
        return texts_of(given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must have one text or a list of texts for each question, but got {given!r:.60}"
        ) from None


def match_texts(
    questions: Any, answers: Any, candidates: Any
) -> tuple[list[str], list[str], Integers]:
    """The distinct questions, the distinct answers including `candidates`, and the pairs (p, 2) of
    a question and a correct answer, sorted and distinct."""
    questions = texts_of(questions)
    if not questions:
        raise ValueError("at least one question is needed, but got none")
    right = correct_texts(answers, len(questions))
    asked = number_texts(questions)
    answered = number_texts(chain(*right, texts_of(_as_list(candidates, "candidates"))))
    if len(answered) < 2:
        raise ValueError(
            "at least two different answers are needed, but got one: give more, or candidates"
        )
    pairs = {
        (asked[question], answered[text])
        for question, texts in zip(questions, right, strict=True)
        for text in texts
    }
    return list(asked), list(answered), np.array(sorted(pairs), dtype=np.int64)


@dataclass(frozen=True)
class Pools:
    """A pool of answers for each question. `members` has the ids of all pools, pool after pool."""

    questions: list[str]
    answers: Mapping[int, str]
    members: Integers
    sizes: Integers  # the number of answers in each pool
    numbers: Mapping[str, int] | None  # the ids of texts, if the pools were given as texts

    @staticmethod
    def of(questions: Any, pools: Any, answers: Any = None) -> Pools:
        """Pools of texts, or of ids in `answers`, which is a mapping or a list of texts."""
        questions = texts_of(questions)
        if not questions:
            raise ValueError("at least one question is needed, but got none")
        pools = _as_list(pools, "pools")
        _check_count(len(questions), len(pools), "pools")
        numbers = None
        if answers is None:
            pools = [texts_of(_as_list(pool, f"pool {i}")) for i, pool in enumerate(pools)]
            numbers = number_texts(chain(*pools))
            answers = dict(enumerate(numbers))
            rows = [np.array([numbers[text] for text in pool], dtype=np.int64) for pool in pools]
        else:
            if not isinstance(answers, Mapping):
                answers = dict(enumerate(texts_of(_as_list(answers, "answers"))))
            rows = [_ids(pool, "pool", i) for i, pool in enumerate(pools)]
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        if not sizes.all():
            raise ValueError(
                f"every pool needs at least one answer, but pool {sizes.argmin()} is empty"
            )
        members = np.concatenate(rows)
        for id in np.unique(members).tolist():
            if id not in answers:
                raise ValueError(f"pools must have ids of answers, but there is no answer {id}")
        return Pools(questions, answers, members, sizes, numbers)

    @cached_property
    def used(self) -> tuple[list[str], Integers]:
        """The distinct answers in the pools, and for each member its place among these."""
        ids, columns = np.unique(self.members, return_inverse=True)
        return texts_of([self.answers[id] for id in ids.tolist()]), columns

    @property
    def texts(self) -> list[str]:
        """The questions, and the distinct answers in the pools."""
        return self.questions + self.used[0]

    @property
    def rows(self) -> Integers:
        """The question of each member."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Values of all members, as one array for each pool."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def relevance(self, correct: Any) -> NDArray[np.bool_]:
        """Whether each member is correct. `correct` has one or several correct answers for each
        question, as texts or ids like the pools. Answers that are in no pool are ignored."""
        count = len(self.sizes)
        if self.numbers is None:
            lists = [
                _ids(given, "correct", i) for i, given in enumerate(_as_list(correct, "correct"))
            ]
            _check_count(count, len(lists), "correct")
            _check_not_empty(lists)
        else:
            texts = correct_texts(correct, count, "correct")
            lists = [np.array([self.numbers.get(text, -1) for text in given]) for given in texts]
        pools = self.split(self.members)
        return np.concatenate([np.isin(pools[i], lists[i]) for i in range(count)])


def _ids(given: Any, what: str, i: int) -> Integers:
    """Ids of answers, given as a list or as a single id."""
    ids = np.atleast_1d(np.asarray(given))
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"{what} {i} must be a list of ids of answers, but got {given!r:.60}")
    return ids.astype(np.int64)


def _check_count(questions: int, count: int, what: str) -> None:
    if count != questions:
        raise ValueError(
            f"{what} must have an entry for each question, but got {count} for {questions}"
        )


def _check_not_empty(lists: Sequence[Sized]) -> None:
    for i, given in enumerate(lists):
        if not len(given):
            raise ValueError(f"every question needs a correct answer, but question {i} has none")
