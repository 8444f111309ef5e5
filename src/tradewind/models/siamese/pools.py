"""What people give, as numbers: the correct answers of questions, and pools to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.models.text import texts_of

Rows = NDArray[np.int64]


def distinct(texts: Iterable[str]) -> dict[str, int]:
    """The texts without repetition, numbered in the order in which they came."""
    return {text: i for i, text in enumerate(dict.fromkeys(texts))}


def correct_texts(answers: Any, questions: int, what: str = "answers") -> list[list[str]]:
    """The correct answers of each question, a text or several."""
    lists = [_texts(given, what) for given in _list(answers, what)]
    _one_for_each(questions, len(lists), what)
    _none_empty(lists)
    return lists


def _list(given: Any, what: str) -> list[Any]:
    if isinstance(given, (str, bytes)):
        raise ValueError(f"{what} must be a list, but got the single text {given[:40]!r}")
    try:
        return list(given)
    except TypeError:
        raise ValueError(f"{what} must be a list, but got {given!r:.60}") from None


def _texts(given: Any, what: str) -> list[str]:
    if isinstance(given, str):
        return [given]
    try:
        return texts_of(given)
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must have a text or several for each question, but got {given!r:.60}"
        ) from None


def matched(questions: Any, answers: Any, candidates: Any) -> tuple[list[str], list[str], Rows]:
    """The different questions, the different answers with those of `candidates`, and which belong
    together: pairs (p, 2), sorted, none twice."""
    questions = texts_of(questions)
    if not questions:
        raise ValueError("at least one question is needed, but got none")
    right = correct_texts(answers, len(questions))
    asked = distinct(questions)
    answered = distinct(chain(*right, texts_of(_list(candidates, "candidates"))))
    if len(answered) < 2:
        raise ValueError("at least two different answers are needed, but got one")
    pairs = {
        (asked[question], answered[text])
        for question, texts in zip(questions, right, strict=True)
        for text in texts
    }
    return list(asked), list(answered), np.array(sorted(pairs), dtype=np.int64)


@dataclass(frozen=True)
class Pools:
    """For each question a pool of answers, as ids in `answers`, pool after pool."""

    questions: list[str]
    answers: Mapping[int, str]
    members: Rows
    sizes: Rows  # of the pools
    numbers: Mapping[str, int] | None  # the ids of texts, where people gave texts

    @staticmethod
    def of(questions: Any, pools: Any, answers: Any = None) -> Pools:
        """From pools of texts, or of ids in `answers`: a mapping, or a list of texts."""
        questions = texts_of(questions)
        if not questions:
            raise ValueError("at least one question is needed, but got none")
        pools = _list(pools, "pools")
        _one_for_each(len(questions), len(pools), "pools")
        numbers = None
        if answers is None:
            pools = [texts_of(_list(pool, f"pool {i}")) for i, pool in enumerate(pools)]
            numbers = distinct(chain(*pools))
            answers = dict(enumerate(numbers))
            rows = [np.array([numbers[text] for text in pool], dtype=np.int64) for pool in pools]
        else:
            if not isinstance(answers, Mapping):
                answers = dict(enumerate(texts_of(_list(answers, "answers"))))
            rows = [_ids(pool, "pool", i) for i, pool in enumerate(pools)]
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        if not sizes.all():
            raise ValueError(f"every pool needs an answer, but pool {sizes.argmin()} is empty")
        members = np.concatenate(rows)
        for id in np.unique(members).tolist():
            if id not in answers:
                raise ValueError(f"pools must hold ids of answers, but there is no answer {id}")
        return Pools(questions, answers, members, sizes, numbers)

    @cached_property
    def used(self) -> tuple[list[str], Rows]:
        """The different answers in the pools, and which of these each member is."""
        ids, columns = np.unique(self.members, return_inverse=True)
        return texts_of([self.answers[id] for id in ids.tolist()]), columns

    @property
    def texts(self) -> list[str]:
        """The questions, and the different answers in the pools."""
        return self.questions + self.used[0]

    @property
    def rows(self) -> Rows:
        """The question that each member is for."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Values of the members, pool by pool."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def relevance(self, correct: Any) -> NDArray[np.bool_]:
        """Whether each member is correct. `correct` is given as the pools are, one or several for
        each question; what is in no pool counts for nothing."""
        count = len(self.sizes)
        if self.numbers is None:
            lists = [_ids(given, "correct", i) for i, given in enumerate(_list(correct, "correct"))]
            _one_for_each(count, len(lists), "correct")
            _none_empty(lists)
        else:
            texts = correct_texts(correct, count, "correct")
            lists = [np.array([self.numbers.get(text, -1) for text in given]) for given in texts]
        pools = self.split(self.members)
        return np.concatenate([np.isin(pools[i], lists[i]) for i in range(count)])


def _ids(given: Any, what: str, i: int) -> Rows:
    """Ids of answers; a single one is a list of one."""
    ids = np.atleast_1d(np.asarray(given))
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"{what} {i} must be a list of ids of answers, but got {given!r:.60}")
    return ids.astype(np.int64)


def _one_for_each(questions: int, count: int, what: str) -> None:
    if count != questions:
        raise ValueError(
            f"{what} must have an entry for each question, but got {count} for {questions}"
        )


def _none_empty(lists: Sequence[Sized]) -> None:
    for i, given in enumerate(lists):
        if not len(given):
            raise ValueError(f"every question needs a correct answer, but question {i} has none")
