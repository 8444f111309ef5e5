"""The tasks of sizes.py: four models with their spaces and data, each trained with one thread.

A task splits its data into three disjoint parts with a fixed seed: a training part, a validation
part to score trials on, and a test part for the one model that a search chooses. With few rows, a
trial is trained and scored in folds instead. Features are computed once, from the training part.
"""

from __future__ import annotations

import gzip
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split

import tradewind as tw
from tradewind.subsets import subset

Data = tuple[Any, np.ndarray]

REVIEWS = "yelp_reviews.tsv.gz"
TRAIN, VALID = 16_000, 14_000  # reviews; the other 14,748 are the test set
LARGE = (1 / 27, 1 / 9, 1 / 3, 1.0)  # sizes of MultiFidelity, by how much data there is
SMALL = (0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Fold:
    train: Data
    valid: Data


@dataclass(frozen=True)
class Task:
    """`fit` trains a model with the given parameters. The final model is trained on `whole`: the
    training part or, with folds, all rows except the test part."""

    space: Mapping[str, Any]
    sizes: tuple[float, ...]
    fit: Callable[[Mapping[str, Any], Any, np.ndarray], Any]
    folds: list[Fold]
    whole: Data
    test: Data

    def evaluate(self, params: Mapping[str, Any], size: float, seed: int) -> tuple[float, float]:
        """The accuracy over all folds, and the CPU seconds of training."""
        right, seconds = 0, 0.0
        for fold in self.folds:
            X, y = fold.train
            rows = subset(y, size, seed=seed)
            model, took = self._fitted(params, X[rows], y[rows])
            right += int(np.sum(model.predict(fold.valid[0]) == fold.valid[1]))
            seconds += took
        return right / sum(len(fold.valid[1]) for fold in self.folds), seconds

    def final(self, params: Mapping[str, Any]) -> tuple[float, float]:
        """The accuracy of the final model on the test part, and the CPU seconds of training."""
        model, seconds = self._fitted(params, *self.whole)
        return float(np.mean(model.predict(self.test[0]) == self.test[1])), seconds

    def _fitted(self, params: Mapping[str, Any], X: Any, y: np.ndarray) -> tuple[Any, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # large C; scored as it is
            begin = time.process_time()
            model = self.fit(params, X, y)
            return model, time.process_time() - begin


def tasks(data: Path | None) -> Mapping[str, Callable[[], Task]]:
    """The tasks by name. Tasks on reviews need `data`, the folder of the reviews."""
    return {
        "svm-yelp": lambda: svm_yelp(data),
        "lightgbm-yelp": lambda: lightgbm_yelp(data),
        "svc-digits": svc_digits,
        "boosting-cancer": boosting_cancer,
    }


# ---- reviews: stars from the text ----


def svm_yelp(data: Path | None) -> Task:
    """A linear support-vector machine on the TF-IDF weights of words, stop words left out (W15)."""
    from sklearn.svm import LinearSVC

    def fit(params: Mapping[str, Any], X: Any, y: np.ndarray) -> Any:
        weight = None if params["class_weight"] == "none" else "balanced"
        given = {**params, "class_weight": weight}
        return LinearSVC(dual=True, random_state=0, **given).fit(X, y)

    space = {
        "C": tw.Float(1e-4, 1e3, log=True),
        "loss": tw.Categorical(["hinge", "squared_hinge"]),
        "class_weight": tw.Categorical(["none", "balanced"]),
        "intercept_scaling": tw.Float(0.1, 10.0, log=True),
        "tol": tw.Float(1e-5, 1e-1, log=True),
    }
    train, valid, test = _words(data)
    return Task(space, LARGE, fit, [Fold(train, valid)], train, test)


def lightgbm_yelp(data: Path | None) -> Task:
    """Boosted trees on 64 latent dimensions of the same weights."""
    from lightgbm import LGBMClassifier
    from sklearn.decomposition import TruncatedSVD

    def fit(params: Mapping[str, Any], X: Any, y: np.ndarray) -> Any:
        # with fewer bins the time of a tree depends on its rows, as it does with more data
        fixed = {"max_bin": 63, "subsample_freq": 1, "n_jobs": 1, "random_state": 0, "verbose": -1}
        return LGBMClassifier(**fixed, **params).fit(X, y)

    space = {
        "n_estimators": tw.Int(10, 150, log=True),
        "num_leaves": tw.Int(4, 64, log=True),
        "learning_rate": tw.Float(1e-2, 1.0, log=True),
        "min_child_samples": tw.Int(2, 200, log=True),
        "colsample_bytree": tw.Float(0.2, 1.0),
        "subsample": tw.Float(0.3, 1.0),
        "reg_lambda": tw.Float(1e-3, 1e2, log=True),
    }
    parts = _words(data)
    latent = TruncatedSVD(64, random_state=0).fit(parts[0][0])
    train, valid, test = ((latent.transform(X).astype(np.float32), y) for X, y in parts)
    return Task(space, LARGE, fit, [Fold(train, valid)], train, test)


@lru_cache(maxsize=1)
def _words(data: Path | None) -> tuple[Data, Data, Data]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    if data is None:
        raise SystemExit("the tasks on reviews need --data or TRADEWIND_DATA")
    with gzip.open(data / REVIEWS, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t", 2) for line in lines]
    stars = np.array([int(row[0]) for row in rows])
    order = np.random.default_rng(0).permutation(len(rows))
    parts = np.split(order, [TRAIN, TRAIN + VALID])
    texts = [[rows[i][2] for i in part] for part in parts]
    weights = TfidfVectorizer(min_df=2, sublinear_tf=True, stop_words="english").fit(texts[0])
    train, valid, test = (
        (weights.transform(text), stars[part]) for text, part in zip(texts, parts, strict=True)
    )
    return train, valid, test


# ---- small tables ----


def svc_digits() -> Task:
    """A support-vector machine with a kernel on 8 x 8 images of digits."""
    from sklearn.svm import SVC

    def fit(params: Mapping[str, Any], X: Any, y: np.ndarray) -> Any:
        return SVC(**params).fit(X, y)

    space = {
        "kernel": tw.Categorical(["rbf", "poly", "sigmoid"]),
        "C": tw.Float(1e-3, 1e3, log=True),
        "gamma": tw.Float(1e-6, 1e-1, log=True),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "coef0": tw.Float(0.0, 1.0, when={"kernel": ["poly", "sigmoid"]}),
    }
    return Task(space, SMALL, fit, *_table(*load_digits(return_X_y=True), k=10))


def boosting_cancer() -> Task:
    """Gradient boosting on 30 measurements of tumours."""
    from sklearn.ensemble import GradientBoostingClassifier

    def fit(params: Mapping[str, Any], X: Any, y: np.ndarray) -> Any:
        return GradientBoostingClassifier(random_state=0, **params).fit(X, y)

    space = {
        "n_estimators": tw.Int(5, 150, log=True),
        "learning_rate": tw.Float(1e-2, 1.0, log=True),
        "max_depth": tw.Int(1, 8),
        "min_samples_leaf": tw.Int(1, 50, log=True),
        "subsample": tw.Float(0.3, 1.0),
        "max_features": tw.Float(0.05, 1.0),
    }
    return Task(space, SMALL, fit, *_table(*load_breast_cancer(return_X_y=True), k=5))


def _table(X: np.ndarray, y: np.ndarray, k: int) -> tuple[list[Fold], Data, Data]:
    """k folds of three quarters of the rows, all rows of these folds, and the other quarter."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    folds = [
        Fold((X[train], y[train]), (X[valid], y[valid]))
        for train, valid in StratifiedKFold(k, shuffle=True, random_state=0).split(X, y)
    ]
    return folds, (X, y), (X_test, y_test)
