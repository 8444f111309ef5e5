"""Reading the public data sets of the papers from your own files, either as their authors publish
them or in a tidy form. Without a path, files are looked for in the folder that the environment
variable TRADEWIND_DATA names."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradewind.errors import DataError, DataMissing
from tradewind.models.files import (
    FOLDER,
    data_folder,
    open_data,
    read_arrays,
    read_columns,
    read_lines,
)

Location: TypeAlias = str | os.PathLike[str]

_SOURCES = {
    "mr": "cs.cornell.edu/people/pabo/movie-review-data (sentence polarity dataset v1.0)",
    "yelp": "yelp.com/dataset",
    "insuranceqa": "github.com/shuzi/insuranceQA (folder V2)",
}
_MR = (("mr.pos.txt", "mr.neg.txt", "utf-8"), ("rt-polarity.pos", "rt-polarity.neg", "cp1252"))
_YELP = ("yelp_reviews.tsv", "yelp_academic_dataset_review.json")
_STARS: dict[str | float, int] = {form: n for n in range(1, 6) for form in (n, str(n))}
_V2_ANSWERS = "InsuranceQA.label2answer.raw.encoded"
_V2_QUESTIONS = "InsuranceQA.question.anslabel.raw.{}.pool.solr.{}.encoded"
_POOLS = {
    "train": (100, 500, 1000, 1500),
    "valid": (500, 100, 1000, 1500),
    "test": (500, 100, 1000, 1500),
}  # sizes of the published pools, the preferred one first


# ---- MR and Yelp ----


def load_mr(path: Location | None = None) -> tuple[list[str], NDArray[np.int64]]:
    """Movie reviews of one sentence each (Pang and Lee 2005): texts and labels, 1 for positive and
    0 for negative.

    The folder must have mr.pos.txt and mr.neg.txt in UTF-8, or rt-polarity.pos and rt-polarity.neg
    as published.

    >>> from pathlib import Path
    >>> for name, text in {"pos": "a fine film", "neg": "long and dull"}.items():
    ...     _ = Path(f"mr.{name}.txt").write_text(text, encoding="utf-8")
    >>> texts, labels = tw.models.load_mr(".")
    >>> len(texts), labels.tolist()
    (2, [1, 0])
    """
    folder = _locate("mr", path)
    for positive, negative, encoding in _MR:
        if _find(folder, positive) or _find(folder, negative):
            good = _read_sentences(_require("mr", folder, positive), encoding)
            bad = _read_sentences(_require("mr", folder, negative), encoding)
            labels = np.repeat(np.array([1, 0], dtype=np.int64), [len(good), len(bad)])
            return good + bad, labels
    raise _missing("mr", folder, [name for *pair, _ in _MR for name in pair])


def _read_sentences(path: Path, encoding: str) -> list[str]:
    texts = [" ".join(line.split()) for _, line in read_lines(path, encoding)]
    texts = [text for text in texts if text]
    if not texts:
        raise DataError(f"{path} is empty")
    return texts


def load_yelp(path: Location | None = None) -> tuple[list[str], NDArray[np.int64]]:
    """Yelp reviews: texts and stars from 1 to 5.

    `path` is a file, or a folder with yelp_reviews.tsv (columns: stars, source, text) or with
    Yelp's own yelp_academic_dataset_review.json.

    >>> texts, stars = tw.models.load_yelp("yelp_academic_dataset_review.json")  # doctest: +SKIP
    """
    place = _locate("yelp", path)
    file = next(filter(None, (_find(place, name) for name in _YELP)), None)
    if place.is_file():
        file = place
    if file is None:
        raise _missing("yelp", place, _YELP)
    texts, stars = [], []
    for number, given, text in _read_reviews(file):
        if given not in _STARS:
            raise DataError(
                f"{file}, line {number}: stars must be 1, 2, 3, 4 or 5, but got {given!r:.40}"
            )
        stars.append(_STARS[given])
        texts.append(text)
    if not texts:
        raise DataError(f"{file} is empty")
    return texts, np.array(stars, dtype=np.int64)


def _read_reviews(path: Path) -> Iterator[tuple[int, str | float, str]]:
    """Line number, stars as they are in the file, and text of each review."""
    with open_data(path) as file:
        is_json = file.read(1) == b"{"
    if not is_json:
        for number, (stars, _, text) in read_columns(path, 3):
            yield number, stars, text
        return
    for number, line in read_lines(path):
        try:
            review = json.loads(line)
            stars, text = review["stars"], review["text"]
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}, line {number}: a review must have `stars` and `text`, but reading it "
                f"failed: {error!r:.80}"
            ) from None
        if type(stars) not in (int, float) or not isinstance(
            text, str
        ):  # JSON's true is not a number of stars
            raise DataError(
                f"{path}, line {number}: stars must be a number and text a string, but got "
                f"{stars!r:.40} and {text!r:.40}"
            )
        yield number, stars, text


# ---- InsuranceQA ----


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions with the ids of their correct answers, and a pool of answer ids to choose from.
    The pool is what a search engine found, so it may lack the correct answers."""

    texts: tuple[str, ...]
    domains: tuple[str, ...]
    answers: tuple[tuple[int, ...], ...]
    pool: NDArray[np.int32]  # (questions, candidates)

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, eq=False)
class InsuranceQA:
    """Questions about insurance and their answers (Feng et al. 2015), version 2."""

    answers: Mapping[int, str]  # by id
    train: Questions
    valid: Questions
    test: Questions


def load_insuranceqa(path: Location | None = None) -> InsuranceQA:
    """InsuranceQA, version 2.

    The folder must have answers.tsv, questions.{train,valid,test}.tsv and pools.npz, or the raw
    files as published. If there are pools of several sizes, training questions use those of 100
    answers, the others those of 500.

    >>> tw.models.load_insuranceqa("data/insuranceqa")  # doctest: +SKIP
    """
    folder = _locate("insuranceqa", path)
    if file := _find(folder, "answers.tsv"):
        return _load_tidy(folder, file)
    if file := _find(folder, _V2_ANSWERS):
        return _load_published(folder, file)
    raise _missing("insuranceqa", folder, ["answers.tsv", _V2_ANSWERS])


def _load_tidy(folder: Path, file: Path) -> InsuranceQA:
    texts = _read_answers(file, None)
    pools = _require("insuranceqa", folder, "pools.npz")
    stored = read_arrays(pools)
    parts = {}
    for split, sizes in _POOLS.items():
        questions = _require("insuranceqa", folder, f"questions.{split}.tsv")
        names = [f"{split}_{size}" for size in sizes]
        pool = next((stored[name] for name in names if name in stored), None)
        if pool is None:
            raise DataError(f"{pools} must have one of {', '.join(names)}, but has {[*stored]}")
        parts[split] = _read_questions(texts, questions, pool, pools)
    return InsuranceQA(texts, **parts)


def _read_questions(
    texts: Mapping[int, str], file: Path, pool: NDArray[Any], pools: Path
) -> Questions:
    """The questions of one tidy file. `pool` is their array in the file `pools`."""
    rows = [
        (domain, question, _read_ids(texts, answers, f"{file}, line {number}"))
        for number, (domain, question, answers) in read_columns(file, 3)
    ]
    if pool.dtype.kind not in "iu" or pool.ndim != 2 or len(pool) != len(rows):
        raise DataError(
            f"{pools} must have a row of ids for each of the {len(rows)} questions of {file.name}, "
            f"but got an array of {pool.dtype} with the shape {pool.shape}"
        )
    known = np.isin(pool, np.fromiter(texts, dtype=np.int64, count=len(texts)))
    if not known.all():
        row, column = np.argwhere(~known)[0]
        raise DataError(
            f"{pools}: the pool of question {row + 1} of {file.name} has the answer "
            f"{pool[row, column]}, which does not exist"
        )
    return _make_questions(file, rows, pool)


def _load_published(folder: Path, file: Path) -> InsuranceQA:
    """The files as the authors publish them. Their words are codes, listed in a vocabulary."""
    vocabulary = _require("insuranceqa", folder, "vocabulary")
    words = {code: word for _, (code, word) in read_columns(vocabulary, 2)}
    texts = _read_answers(file, words)
    parts = {}
    for split, sizes in _POOLS.items():
        names = [_V2_QUESTIONS.format(size, split) for size in sizes]
        found = next(filter(None, (_find(folder, name) for name in names)), None)
        if found is None:
            raise _missing("insuranceqa", folder, names)
        rows, pool = [], []
        for number, (domain, question, answers, candidates) in read_columns(found, 4):
            place = f"{found}, line {number}"
            text = _spell_out(question, words, place)
            rows.append((domain, text, _read_ids(texts, answers, place)))
            pool.append(_read_ids(texts, candidates, place))
            if len(pool[-1]) != len(pool[0]):
                raise DataError(
                    f"{place}: all pools must have {len(pool[0])} answers like the first, but this "
                    f"one has {len(pool[-1])}"
                )
        parts[split] = _make_questions(found, rows, np.array(pool))
    return InsuranceQA(texts, **parts)


def _make_questions(
    file: Path, rows: list[tuple[str, str, tuple[int, ...]]], pool: NDArray[Any]
) -> Questions:
    if not rows:
        raise DataError(f"{file} is empty")
    domains, texts, answers = zip(*rows, strict=True)
    pool = pool.astype(np.int32)
    pool.setflags(write=False)
    return Questions(texts, domains, answers, pool)


def _read_answers(path: Path, words: Mapping[str, str] | None) -> dict[int, str]:
    texts: dict[int, str] = {}
    for number, (id, text) in read_columns(path, 2):
        if not id.isdecimal() or len(id) > 9 or int(id) in texts:
            raise DataError(
                f"{path}, line {number}: every answer needs a distinct number, but got {id!r:.40}"
            )
        texts[int(id)] = _spell_out(text, words, f"{path}, line {number}")
    if not texts:
        raise DataError(f"{path} is empty")
    return texts


def _spell_out(text: str, words: Mapping[str, str] | None, place: str) -> str:
    """Replace the codes in a text by their words. Without a vocabulary, there are no codes."""
    if words is None:
        return text
    try:
        spelled = (words[t] if t.startswith("idx_") else t for t in text.split())
        return " ".join(html.unescape(" ".join(spelled)).split())
    except KeyError as error:
        raise DataError(f"{place}: the vocabulary does not have the code {error}") from None


def _read_ids(texts: Mapping[int, str], given: str, place: str) -> tuple[int, ...]:
    """Ids of existing answers, at least one."""
    try:
        ids = tuple(map(int, given.split()))
    except ValueError:
        raise DataError(f"{place}: ids must be numbers, but got {given!r:.60}") from None
    if not ids:
        raise DataError(f"{place}: there must be at least one answer id, but there is none")
    for id in ids:
        if id not in texts:
            raise DataError(f"{place}: there is no answer with the id {id}")
    return ids


# ---- files ----


def _locate(name: str, path: Location | None) -> Path:
    folder = data_folder(name) if path is None else Path(path)
    if folder is None:
        raise DataError(
            f"give a path, or set {FOLDER} to a folder that contains {name}/; the data are at "
            f"{_SOURCES[name]}"
        )
    return folder


def _find(folder: Path, name: str) -> Path | None:
    return next((f for f in (folder / name, folder / f"{name}.gz") if f.is_file()), None)


def _require(kind: str, folder: Path, name: str) -> Path:
    file = _find(folder, name)
    if file is None:
        raise _missing(kind, folder, [name])
    return file


def _missing(kind: str, folder: Path, names: Iterable[str]) -> DataMissing:
    return DataMissing(
        f"{folder} has no {' or '.join(names)}, gzipped or not; the data are at {_SOURCES[kind]}"
    )
