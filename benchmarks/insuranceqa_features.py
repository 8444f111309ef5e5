"""Features of questions and their candidate answers in InsuranceQA (version 2), as LETOR files.

    python benchmarks/insuranceqa_features.py DIR                          # five files
    python benchmarks/insuranceqa_features.py DIR --files test-500 test-500+

TRADEWIND_DATA names a folder with insuranceqa/ and wordvec/. `test-500.letor.gz` has, for each test
question, the pool of 500 answers that a search engine found; 4 of 5 pools have a correct answer.
`test-500+.letor.gz` has the correct answers added, which is what papers usually report, and
`test-100+.letor.gz` has them added to the first 100 answers. The files of `train` and `valid` have
similar names. Training pools have 100 answers, without additions: in `train-100+`, a correct answer
is often one that no search engine would find, and trees seem to look for that. A line is
`1 qid:7 1:2 2:0.5 ...`, with 1 for a correct answer. Pools keep their order, and added answers come
last; the order is not a feature.

Words are stems (Porter) without stop words and punctuation; idf is over all answers.

|  column | feature                                                                              |
|--------:|--------------------------------------------------------------------------------------|
|       1 | how many of the question's distinct words the answer has                             |
|    2, 3 | that as a share of the question's distinct words, and of the answer's                |
|       4 | the idf of these words together                                                      |
|    5, 6 | that as a share of the idf of the question's distinct words, and of the answer's     |
|    7, 8 | tokens of the question and of the answer, stop words and all                         |
|       9 | BM25 (k1 = 1.2, b = 0.75)                                                            |
|      10 | cosine of TF-IDF vectors, (1 + log tf)·idf                                           |
|  11, 12 | cosine of the mean word vectors (GloVe), plain and weighted by idf                   |
|  13, 14 | how many of the question's distinct pairs of neighbours the answer has, and the share |
|  15, 16 | the largest cosine of each word of the question with any of the answer's, in the     |
|         | mean, plain and weighted by idf                                                      |
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.preprocessing import normalize
from snowballstemmer import stemmer

from tradewind.models import WordVectors, load_insuranceqa, read_vectors, tokenize
from tradewind.models.datasets import InsuranceQA, Questions

FILES = ("train-100", "valid-500+", "test-500", "test-500+", "test-100+")
NAME = re.compile(r"(train|valid|test)-(\d+)(\+?)")
VECTORS = "wordvec/glove_6b_100d.npz"
K1, B = 1.2, 0.75
AT_ONCE = 250  # questions, against all answers

BM25 = 9  # the column of the baseline


# ---- texts as matrices ----


@dataclass(frozen=True)
class Texts:
    """What the features need to know about n texts."""

    lengths: np.ndarray  # (n,) tokens
    words: csr_matrix  # (n, stems) counts
    pairs: csr_matrix  # (n, pairs of stems) 1 where there is one
    vectors: csr_matrix  # (n, words with a vector) counts, words with the same stem apart

    def __getitem__(self, rows: slice) -> Texts:
        return Texts(self.lengths[rows], self.words[rows], self.pairs[rows], self.vectors[rows])


def read(texts: Sequence[str], known: WordVectors) -> Texts:
    """Read questions and answers together, so that their columns have the same meaning."""
    stem = stemmer("porter").stemWord
    stems: dict[str, str] = {}
    content: list[list[str]] = []  # tokens that are no stop words
    lengths = []
    for text in texts:
        tokens = [token for token in tokenize(text) if token[-1].isalnum()]
        lengths.append(len(tokens))
        content.append([token for token in tokens if token not in ENGLISH_STOP_WORDS])
    for token in set(chain.from_iterable(content)):
        stems[token] = stem(token)
    stemmed = [[stems[token] for token in tokens] for tokens in content]
    pairs = counted([list(pairwise(tokens)) for tokens in stemmed])
    pairs.data[:] = 1
    vectors = counted(
        [[known.rows[t] for t in ts if t in known.rows] for ts in content], len(known)
    )
    return Texts(np.array(lengths), counted(stemmed), pairs, vectors)


def counted(items: Sequence[Sequence], width: int | None = None) -> csr_matrix:
    """How often each item occurs in each text. Without a width, items are numbered in order of
    appearance."""
    number: dict = {}
    flat = chain.from_iterable(items)
    if width is None:
        flat = (number.setdefault(item, len(number)) for item in flat)
    columns = np.fromiter(flat, np.int32)
    ends = np.concatenate([[0], np.cumsum([len(item) for item in items])])
    shape = (len(items), len(number) if width is None else width)
    counts = csr_matrix((np.ones(len(columns), np.float32), columns, ends), shape=shape)
    counts.sum_duplicates()
    return counts


# ---- features ----


class Features:
    """Precomputes what depends only on the answers. A call gives the features of questions and
    their pools."""

    def __init__(self, answers: Texts, vectors: WordVectors) -> None:
        n = len(answers.lengths)
        present = present_in(answers.words)
        self.idf = inverse(present)
        tokens = np.asarray(answers.words.sum(axis=1)).ravel()
        saturated = answers.words.copy()
        length = np.repeat(1 - B + B * tokens / tokens.mean(), np.diff(saturated.indptr))
        saturated.data = saturated.data * (K1 + 1) / (saturated.data + K1 * length)
        frequency = np.bincount(present.indices, minlength=present.shape[1])
        weight = np.log1p((n - frequency + 0.5) / (frequency + 0.5))
        self.lengths = answers.lengths
        self.distinct = np.diff(present.indptr)
        self.rarity = present @ self.idf
        self.present = present.T.tocsr()
        self.bm25 = (saturated @ diags(weight)).T.tocsr()
        self.tfidf = tfidf(answers.words, self.idf).T.tocsr()
        self.pairs = answers.pairs.T.tocsr()
        self.table = normalize(vectors.vectors.astype(np.float32))
        self.plain = vectors.vectors.astype(np.float32)
        self.rare = inverse(present_in(answers.vectors))
        self.means = self.mean_vectors(answers.vectors)
        self.has = answers.vectors  # the words of each answer that have vectors

    def mean_vectors(self, counts: csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """Unit mean word vectors, plain and weighted by idf; 0 if no word has a vector."""
        return (
            normalize(counts @ self.plain),
            normalize((counts @ diags(self.rare)).astype(np.float32) @ self.plain),
        )

    def of(self, asked: Texts, pools: Sequence[np.ndarray]) -> np.ndarray:
        """Features (pairs, 16) of questions and their candidates, question after question."""
        query = np.repeat(np.arange(len(pools)), [len(pool) for pool in pools])
        answer = np.concatenate(pools)
        present = present_in(asked.words)

        def of_all(left: csr_matrix, right: csr_matrix) -> np.ndarray:
            return (left @ right).toarray()[query, answer]

        def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
            return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)

        shared = of_all(present, self.present)
        rare = of_all(present @ diags(self.idf), self.present)
        pairs = of_all(asked.pairs, self.pairs)
        means = [
            np.einsum("ij,ij->i", ours[query], theirs[answer])
            for ours, theirs in zip(self.mean_vectors(asked.vectors), self.means, strict=True)
        ]
        columns = [
            shared,
            share(shared, np.diff(present.indptr)[query]),
            share(shared, self.distinct[answer]),
            rare,
            share(rare, (present @ self.idf)[query]),
            share(rare, self.rarity[answer]),
            asked.lengths[query],
            self.lengths[answer],
            of_all(asked.words, self.bm25),
            of_all(tfidf(asked.words, self.idf), self.tfidf),
            *means,
            pairs,
            share(pairs, np.diff(asked.pairs.indptr)[query]),
            *self.closest(asked.vectors, pools),
        ]
        return np.stack(columns, axis=1).astype(np.float32)

    def closest(self, counts: csr_matrix, pools: Sequence[np.ndarray]) -> np.ndarray:
        """Features 15 and 16 (2, pairs)."""
        found = [np.zeros((2, len(pool)), np.float32) for pool in pools]
        for i, pool in enumerate(pools):
            words = counts.indices[counts.indptr[i] : counts.indptr[i + 1]]
            some = pool[np.diff(self.has.indptr)[pool] > 0]
            if not len(words) or not len(some):
                continue
            theirs = self.has[some]
            used, place = np.unique(theirs.indices, return_inverse=True)
            cosines = (self.table[words] @ self.table[used].T)[:, place]
            best = np.maximum.reduceat(cosines, theirs.indptr[:-1], axis=1)
            kept = np.isin(pool, some)
            found[i][0, kept] = best.mean(axis=0)
            found[i][1, kept] = np.average(best, axis=0, weights=self.rare[words])
        return np.concatenate(found, axis=1)


def present_in(counts: csr_matrix) -> csr_matrix:
    present = counts.copy()
    present.data[:] = 1
    return present


def inverse(present: csr_matrix) -> np.ndarray:
    """The idf of each column."""
    frequency = np.bincount(present.indices, minlength=present.shape[1])
    return 1 + np.log((1 + present.shape[0]) / (1 + frequency))


def tfidf(counts: csr_matrix, idf: np.ndarray) -> csr_matrix:
    logs = counts.copy()
    logs.data = 1 + np.log(logs.data)
    return normalize(logs @ diags(idf))


# ---- files ----


def pools_of(part: Questions, size: int, added: bool) -> list[list[int]]:
    """The ids of the candidates of each question. Correct ones, if added, come last."""
    pools = part.pool[:, :size].tolist()
    more = part.answers if added else [()] * len(pools)
    return [list(dict.fromkeys([*pool, *ids])) for pool, ids in zip(pools, more, strict=True)]


def chunks(
    make: Features, asked: Texts, part: Questions, row: dict[int, int], size: int, added: bool
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Features, relevance and the number of the question, for some questions at a time."""
    pools = pools_of(part, size, added)
    for begin in range(0, len(pools), AT_ONCE):
        some = pools[begin : begin + AT_ONCE]
        rows = [np.array([row[id] for id in pool]) for pool in some]
        right = [np.isin(pool, part.answers[begin + i]) for i, pool in enumerate(some)]
        qid = np.repeat(np.arange(begin, begin + len(some)) + 1, [len(pool) for pool in some])
        yield make.of(asked[begin : begin + len(some)], rows), np.concatenate(right), qid


def write(path: Path, parts: Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> int:
    """Write everything to a file, which replaces the old one when it is complete. Returns the
    number of lines."""
    aside = path.with_name(f".{path.name}.part")
    lines = 0
    with gzip.open(aside, "wt", compresslevel=1, encoding="ascii") as out:
        for features, relevance, qid in parts:
            line = "%d qid:%d " + " ".join(f"{j + 1}:%.5g" for j in range(features.shape[1])) + "\n"
            for row, right, query in zip(features.tolist(), relevance, qid, strict=True):
                out.write(line % (right, query, *row))
            lines += len(qid)
    aside.replace(path)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--files", nargs="+", default=FILES, metavar="SPLIT-SIZE[+]")
    given = parser.parse_args()
    names = [NAME.fullmatch(name) for name in given.files]
    if not all(names):
        parser.error(f"files are named as {', '.join(FILES)}, but got {' '.join(given.files)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    data: InsuranceQA = load_insuranceqa()
    vectors = read_vectors(Path(os.environ["TRADEWIND_DATA"]) / VECTORS)
    splits = {"train": data.train, "valid": data.valid, "test": data.test}
    texts = read([*data.answers.values(), *chain(*(p.texts for p in splits.values()))], vectors)
    row = {id: i for i, id in enumerate(data.answers)}
    make = Features(texts[: len(row)], vectors)
    asked, start = {}, len(row)
    for split, part in splits.items():
        asked[split] = texts[start : start + len(part)]
        start += len(part)
    print(f"texts read in {time.perf_counter() - begin:.0f} s", flush=True)
    for name in names:
        split, size, added = name.groups()
        begin = time.perf_counter()
        parts = chunks(make, asked[split], splits[split], row, int(size), bool(added))
        path = given.folder / f"{name.string}.letor.gz"
        lines = write(path, parts)
        print(f"{path}: {lines} lines in {time.perf_counter() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
