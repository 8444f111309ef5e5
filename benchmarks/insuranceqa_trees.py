"""How well TreeRanker finds answers in InsuranceQA (version 2), and how long it trains.

    python benchmarks/insuranceqa_features.py DIR
    python benchmarks/insuranceqa_trees.py DIR
    python benchmarks/insuranceqa_trees.py DIR --train train-100+ --leaves 31

DIR has the files that the first command wrote; its docstring explains the pools and the `+`. Trees
are trained with the defaults of the estimator, except for the given parameters, and compared with
BM25, which is one of their features. A question without a correct answer in its pool counts as not
answered.

Trees that are trained on `train-100+` reach 42 % on `test-100+` but 16 % on `test-500`. They seem
to learn to tell the added answers from those that a search engine found.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from insuranceqa_features import BM25

from tradewind.models import TreeRanker, load_letor, precision_at_1, reciprocal_rank

POOLS = ("valid-500+", "test-500", "test-500+", "test-100+")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="of the features")
    parser.add_argument("--train", default="train-100", help="the file to learn from")
    for name in ("trees", "leaves", "min_data_in_leaf"):
        parser.add_argument(f"--{name}", type=int, default=getattr(TreeRanker(), name))
    parser.add_argument("--learning_rate", type=float, default=TreeRanker().learning_rate)
    parser.add_argument("--seed", type=int, default=0)
    given = vars(parser.parse_args())
    folder, train, seed = given.pop("folder"), given.pop("train"), given.pop("seed")
    X, y, qid = load_letor(folder / f"{train}.letor.gz")
    model = TreeRanker(**given, random_state=seed).fit(X, y, qid)
    print(
        f"{train}: {len(np.unique(qid))} questions, {len(y)} candidates, {X.shape[1]} features; "
        f"{model.n_trees_} trees in {model.fit_seconds_:.1f} s; seed {seed}\n"
    )
    print("| pool | answerable | BM25: P@1 | MRR | trees: P@1 | MRR |")
    print("|---|---|---|---|---|---|")
    for pool in POOLS:
        X, y, qid = load_letor(folder / f"{pool}.letor.gz")
        cells = [f"{len(np.unique(qid[y > 0])) / len(np.unique(qid)):.1%}"]
        for scores in (X[:, BM25 - 1], model.predict(X)):
            cells.append(f"{precision_at_1(scores, y, qid=qid):.2%}")
            cells.append(f"{reciprocal_rank(scores, y, qid=qid):.3f}")
        print(f"| {pool} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
