"""The public data of the experiments, from files that the user has: each in the form in which its
authors publish it, and in a tidy one. Without a path, in the folder that TRADEWIND_DATA names."""

from __future__ import annotations

import html
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tradewind.checks import flag, or_none, whole
from tradewind.errors import DataError, DataMissing
from tradewind.models.files import CHUNK, FOLDER, arrays, columns, data_folder, lines, opened

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
}  # sizes, the preferred first
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_JUDGED = re.compile(rf"{_NUMBER}\s+qid:\d{{1,18}}(?:\s+\d{{1,18}}:{_NUMBER})*")
_MOST_FEATURES = 1 << 16
_MOST_RELEVANT = 1 << 31


# ---- MR and Yelp ----


def load_mr(path: Location | None = None) -> tuple[list[str], NDArray[np.int64]]:
    """Movie reviews of a sentence each (Pang and Lee 2005): the texts, and 1 where one is positive.

    The folder has mr.pos.txt and mr.neg.txt in UTF-8, or rt-polarity.pos and .neg as published.
    """
    folder = _folder("mr", path)
    for positive, negative, encoding in _MR:
        if _there(folder, positive) or _there(folder, negative):
            good = _sentences(_needed("mr", folder, positive), encoding)
            bad = _sentences(_needed("mr", folder, negative), encoding)
            labels = np.repeat(np.array([1, 0], dtype=np.int64), [len(good), len(bad)])
            return good + bad, labels
    raise _missing("mr", folder, [name for *pair, _ in _MR for name in pair])


def _sentences(path: Path, encoding: str) -> list[str]:
    texts = [" ".join(line.split()) for _, line in lines(path, encoding)]
    texts = [text for text in texts if text]
    if not texts:
        raise DataError(f"{path} is empty")
    return texts


def load_yelp(path: Location | None = None) -> tuple[list[str], NDArray[np.int64]]:
    """Reviews and their stars, 1 to 5. The file, or one in the folder, is yelp_reviews.tsv (stars,
    source, text) or Yelp's own yelp_academic_dataset_review.json."""
    place = _folder("yelp", path)
    file = next(filter(None, (_there(place, name) for name in _YELP)), None)
    if place.is_file():
        file = place
    if file is None:
        raise _missing("yelp", place, _YELP)
    texts, stars = [], []
    for number, given, text in _reviews(file):
        if given not in _STARS:
            raise DataError(
                f"{file}, line {number}: stars must be 1, 2, 3, 4 or 5, but got {given!r:.40}"
            )
        stars.append(_STARS[given])
        texts.append(text)
    if not texts:
        raise DataError(f"{file} is empty")
    return texts, np.array(stars, dtype=np.int64)


def _reviews(path: Path) -> Iterator[tuple[int, str | float, str]]:
    """Line by line, the stars as they are given and the text."""
    with opened(path) as file:
        is_json = file.read(1) == b"{"
    if not is_json:
        for number, (stars, _, text) in columns(path, 3):
            yield number, stars, text
        return
    for number, line in lines(path):
        try:
            review = json.loads(line)
            stars, text = review["stars"], review["text"]
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise DataError(
                f"{path}, line {number}: a review with `stars` and `text` is needed, but: {error}"
            ) from None
        if type(stars) not in (int, float) or not isinstance(text, str):  # true is no star
            raise DataError(
                f"{path}, line {number}: stars must be a number and text a string, but they are "
                f"{stars!r:.40} and {text!r:.40}"
            )
        yield number, stars, text


# ---- InsuranceQA ----


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions with the ids of their right answers, and those of the answers to choose from. The
    right ones need not be among these: a pool is what a search engine found."""

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
    """The folder has answers.tsv, questions.{train,valid,test}.tsv and pools.npz, or the raw files
    of version 2 as published. Of several pools, training takes that of 100, the others of 500."""
    folder = _folder("insuranceqa", path)
    if file := _there(folder, "answers.tsv"):
        return _tidy(folder, file)
    if file := _there(folder, _V2_ANSWERS):
        return _published(folder, file)
    raise _missing("insuranceqa", folder, ["answers.tsv", _V2_ANSWERS])


def _tidy(folder: Path, file: Path) -> InsuranceQA:
    texts = _texts_by_id(file, None)
    pools = _needed("insuranceqa", folder, "pools.npz")
    stored = arrays(pools)
    parts = {}
    for split, sizes in _POOLS.items():
        questions = _needed("insuranceqa", folder, f"questions.{split}.tsv")
        names = [f"{split}_{size}" for size in sizes]
        pool = next((stored[name] for name in names if name in stored), None)
        if pool is None:
            raise DataError(f"{pools} must have one of {', '.join(names)}, but has {[*stored]}")
        parts[split] = _asked(texts, questions, pool, pools)
    return InsuranceQA(texts, **parts)


def _asked(texts: Mapping[int, str], file: Path, pool: NDArray[Any], pools: Path) -> Questions:
    rows = [
        (domain, question, _ids(texts, answers, f"{file}, line {number}"))
        for number, (domain, question, answers) in columns(file, 3)
    ]
    if pool.dtype.kind not in "iu" or pool.ndim != 2 or len(pool) != len(rows):
        raise DataError(
            f"{pools}: a row of ids for each of the {len(rows)} questions of {file.name} is "
            f"needed, but there is {pool.dtype} of the shape {pool.shape}"
        )
    known = np.isin(pool, np.fromiter(texts, dtype=np.int64, count=len(texts)))
    if not known.all():
        row, column = np.argwhere(~known)[0]
        raise DataError(
            f"{pools}: question {row + 1} of {file.name} has the answer {pool[row, column]} in its "
            "pool, which there is not"
        )
    return _questions(file, rows, pool)


def _published(folder: Path, file: Path) -> InsuranceQA:
    """Version 2 of the authors: its words are codes, which a vocabulary spells out."""
    vocabulary = _needed("insuranceqa", folder, "vocabulary")
    words = {code: word for _, (code, word) in columns(vocabulary, 2)}
    texts = _texts_by_id(file, words)
    parts = {}
    for split, sizes in _POOLS.items():
        names = [_V2_QUESTIONS.format(size, split) for size in sizes]
        found = next(filter(None, (_there(folder, name) for name in names)), None)
        if found is None:
            raise _missing("insuranceqa", folder, names)
        rows, pool = [], []
        for number, (domain, question, answers, candidates) in columns(found, 4):
            place = f"{found}, line {number}"
            text = _spelled(question, words, place)
            rows.append((domain, text, _ids(texts, answers, place)))
            pool.append(_ids(texts, candidates, place))
            if len(pool[-1]) != len(pool[0]):
                raise DataError(
                    f"{place}: the pool must have {len(pool[0])} answers as those before, but has "
                    f"{len(pool[-1])}"
                )
        parts[split] = _questions(found, rows, np.array(pool))
    return InsuranceQA(texts, **parts)


def _questions(
    file: Path, rows: list[tuple[str, str, tuple[int, ...]]], pool: NDArray[Any]
) -> Questions:
    if not rows:
        raise DataError(f"{file} is empty")
    domains, texts, answers = zip(*rows, strict=True)
    pool = pool.astype(np.int32)
    pool.setflags(write=False)
    return Questions(texts, domains, answers, pool)


def _texts_by_id(path: Path, words: Mapping[str, str] | None) -> dict[int, str]:
    texts: dict[int, str] = {}
    for number, (id, text) in columns(path, 2):
        if not id.isdecimal() or len(id) > 9 or int(id) in texts:
            raise DataError(
                f"{path}, line {number}: every answer needs a number of its own, but got {id!r:.40}"
            )
        texts[int(id)] = _spelled(text, words, f"{path}, line {number}")
    if not texts:
        raise DataError(f"{path} is empty")
    return texts


def _spelled(text: str, words: Mapping[str, str] | None, place: str) -> str:
    """A text of codes as words. Without a vocabulary there are no codes."""
    if words is None:
        return text
    try:
        spelled = (words[t] if t.startswith("idx_") else t for t in text.split())
        return " ".join(html.unescape(" ".join(spelled)).split())
    except KeyError as error:
        raise DataError(f"{place}: the vocabulary does not have the word {error}") from None


def _ids(texts: Mapping[int, str], given: str, place: str) -> tuple[int, ...]:
    """Ids of answers, at least one, each of an answer that there is."""
    try:
        ids = tuple(map(int, given.split()))
    except ValueError:
        raise DataError(f"{place}: ids must be numbers, but got {given!r:.60}") from None
    if not ids:
        raise DataError(f"{place}: there must be an answer, but there is none")
    for id in ids:
        if id not in texts:
            raise DataError(f"{place}: there is no answer with the id {id}")
    return ids


# ---- LETOR ----


def load_letor(
    path: Location, *, n_features: int | None = None, zero_based: bool = False
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Judged documents in the format of LETOR and SVMlight, `2 qid:1 1:0.5 2:0.1 # comment`:
    features (documents, features), relevance and query ids. Rows of a query stand together.

    A file leaves out features that are zero, so it does not tell how many there are, or whether
    they are numbered from 0. Without `n_features`, the last that some document has is the last
    column: files that belong together, as training and test sets, need the same number to have the
    same columns. Features are numbered from 1, as LETOR does, unless `zero_based` is True.
    """
    n_features = or_none(whole, "n_features", n_features, 1, _MOST_FEATURES)
    zero_based = flag("zero_based", zero_based)
    path = Path(path)
    if not path.exists():
        raise DataMissing(f"there is no file {path}")
    try:
        X, relevance, queries = _svmlight(path)
    except (OverflowError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{_first_foreign(path)}: {error}") from None
    if len(queries) != len(relevance):
        raise DataError(f"{_first_foreign(path)}: every row needs a query, as in `2 qid:1 1:0.5`")
    if not len(relevance):
        raise DataError(f"{path} is empty")
    if not zero_based:
        rule = "features must be numbered from 1 unless zero_based=True is given"
        _check_row(path, X[:, :1].getnnz(axis=1) == 0, rule)
    features = _columns(path, X if zero_based else X[:, 1:], n_features)
    _check_row(path, np.all(np.isfinite(features), axis=1), "features must be finite")
    natural = (relevance >= 0) & (relevance < _MOST_RELEVANT) & (relevance == np.floor(relevance))
    _check_row(path, natural, f"relevance must be 0, 1, 2, ... below {_MOST_RELEVANT}")
    starts = np.flatnonzero(np.concatenate([[True], queries[1:] != queries[:-1]]))
    together = np.ones(len(queries), dtype=bool)
    together[np.delete(starts, np.unique(queries[starts], return_index=True)[1])] = False
    _check_row(path, together, "rows of a query must stand together, but this one comes again")
    return features, relevance.astype(np.int64), queries.astype(np.int64)


def _svmlight(path: Path) -> tuple[Any, NDArray[np.float64], NDArray[np.int64]]:
    """Features by their numbers (sparse), relevance and query ids, read piece by piece:
    scikit-learn's reader takes time by the square of the rows where there are query ids."""
    from scipy.sparse import vstack
    from sklearn.datasets import load_svmlight_file

    parts = []
    with opened(path) as file:
        while piece := file.readlines(CHUNK):
            if any(line.split(b"#")[0].strip() for line in piece):
                block = io.BytesIO(b"".join(piece))
                read = load_svmlight_file(block, dtype=np.float32, query_id=True, zero_based=True)
                parts.append(read)
    if not parts:
        raise DataError(f"{path} is empty")
    width = max(X.shape[1] for X, _, _ in parts)
    for X, _, _ in parts:
        X.resize((X.shape[0], width))
    X = vstack([part[0] for part in parts], format="csr")
    return X, np.concatenate([part[1] for part in parts]), np.concatenate([p[2] for p in parts])


def _columns(path: Path, X: Any, n_features: int | None) -> NDArray[np.float32]:
    """The features as an array of n_features, or of as many as there are."""
    rows, there = X.shape
    if n_features is None and there > _MOST_FEATURES:
        raise DataError(
            f"{path}: features must number up to {_MOST_FEATURES}, but there are {there}"
        )
    if n_features is not None:
        few = X[:, n_features:].getnnz(axis=1) == 0
        _check_row(path, few, f"features must number up to n_features={n_features}")
        X.resize((rows, n_features))
    features: NDArray[np.float32] = X.toarray()
    return features


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a LETOR file that are more than a comment."""
    for number, line in lines(path):
        if row := line.split("#")[0].strip():
            yield number, row


def _check_row(path: Path, right: NDArray[np.bool_], rule: str) -> None:
    if not right.all():
        number, row = next(islice(_rows(path), int(np.argmin(right)), None))
        raise DataError(f"{path}, line {number}: {rule}: {row:.40}")


def _first_foreign(path: Path) -> str:
    """The place of the first row that is not as LETOR has them, for a message."""
    foreign = (number for number, row in _rows(path) if not _JUDGED.fullmatch(row))
    return next((f"{path}, line {number}" for number in foreign), str(path))


# ---- finding files ----


def _folder(name: str, path: Location | None) -> Path:
    folder = data_folder(name) if path is None else Path(path)
    if folder is None:
        raise DataError(
            f"a path is needed, or {FOLDER}, which names a folder with {name}/ in it; the data are "
            f"at {_SOURCES[name]}"
        )
    return folder


def _there(folder: Path, name: str) -> Path | None:
    return next((f for f in (folder / name, folder / f"{name}.gz") if f.is_file()), None)


def _needed(kind: str, folder: Path, name: str) -> Path:
    file = _there(folder, name)
    if file is None:
        raise _missing(kind, folder, [name])
    return file


def _missing(kind: str, folder: Path, names: Iterable[str]) -> DataMissing:
    return DataMissing(
        f"{folder} has no {' or '.join(names)}, gzipped or not; the data are at {_SOURCES[kind]}"
    )
