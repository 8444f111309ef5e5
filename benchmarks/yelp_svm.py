"""How well UnigramSVM predicts the stars of Yelp reviews, and how long it trains.

    python benchmarks/yelp_svm.py                # about four minutes
    python benchmarks/yelp_svm.py --folds 0      # one split only, half a minute

TRADEWIND_DATA names a folder with yelp/. There are two protocols, both stratified by stars. One
splits the data into training, validation and test sets of 80, 10 and 10 % as in W20 and trains on
the first. The other is a cross-validation: the mean over folds, with its standard error. The
defaults of the model were chosen without the test set of seed 0, but with rows of every fold.
Seconds are those of one `fit`, from texts to weights, and those of the solver alone, with one
thread.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from tradewind.models import UnigramSVM, load_yelp

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "binary": {"weighting": "binary"},
    "hinge, C = 1": {"loss": "hinge", "C": 1.0},
    "l1, C = 0.3": {"penalty": "l1", "C": 0.3},
    "with stop words": {"remove_stop_words": False},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folds", type=int, default=10, help="of all reviews; 0 for none")
    parser.add_argument("--seed", type=int, default=0, help="of splits and solver")
    given = parser.parse_args()
    texts, stars = load_yelp()
    reviews = np.array(texts, dtype=object)
    rest, test = train_test_split(
        np.arange(len(stars)), test_size=0.1, stratify=stars, random_state=given.seed
    )
    train, valid = train_test_split(
        rest, test_size=1 / 9, stratify=stars[rest], random_state=given.seed
    )
    largest = np.bincount(stars).max() / len(stars)
    print(f"{len(stars)} reviews, {largest:.2%} of them of one class; seed {given.seed}")
    print(f"{len(train)} for training, {len(valid)} for validation, {len(test)} for test\n")
    print(f"| | validation | test | {given.folds} folds | fit, s | solver, s |")
    print("|---|---|---|---|---|---|")
    for name, settings in SETTINGS.items():
        model = UnigramSVM(**settings, random_state=given.seed).fit(reviews[train], stars[train])
        cells = [f"{model.score(reviews[part], stars[part]):.2%}" for part in (valid, test)]
        cells.append(folds(reviews, stars, settings, given.folds, given.seed))
        cells += [f"{model.fit_seconds_:.1f}", f"{model.solver_seconds_:.1f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def folds(
    reviews: np.ndarray, stars: np.ndarray, settings: dict[str, Any], k: int, seed: int
) -> str:
    """The mean accuracy over k folds and its standard error."""
    if not k:
        return ""
    scores = []
    for train, test in StratifiedKFold(k, shuffle=True, random_state=seed).split(reviews, stars):
        model = UnigramSVM(**settings, random_state=seed).fit(reviews[train], stars[train])
        scores.append(model.score(reviews[test], stars[test]))
    return f"{np.mean(scores):.2%} ± {100 * np.std(scores, ddof=1) / np.sqrt(k):.2f}"


if __name__ == "__main__":
    main()
