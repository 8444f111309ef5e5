"""Boosted regression trees that rank candidates: LambdaMART, by LightGBM (W15's question task)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from tradewind.checks import fraction, positive, seed_of, whole
from tradewind.models.base import Model, with_sizes
from tradewind.models.ranking import precision_at_1, query_ids
from tradewind.space import Float, Int, Parameter, Space
from tradewind.types import Array

_MOST_RELEVANT = 30  # LightGBM's gains, 2**relevance − 1, end there
_MOST_CANDIDATES = 10_000  # of a query, in LightGBM
_MOST_THREADS = 1024  # a hundred thousand end Python


class TreeRanker(Model):
    """Boosted trees that score the candidates of a query so that relevant ones come first: the
    objective is LightGBM's lambdarank. The defaults were chosen on InsuranceQA's validation set,
    where they are as good as three times the trees at half the rate.

    A smaller training set has fewer queries, not queries with fewer candidates. The objective of a
    study takes whole queries by naming them as groups:

    >>> def objective(trial):
    ...     rows = trial.subset(y, groups=qid)
    ...     model = TreeRanker().set_params(**trial.settings).fit(X[rows], y[rows], qid[rows])
    ...     return {"value": model.score(X_valid, y_valid, qid_valid), "cost": model.fit_seconds_}

    Parameters
    ----------
    trees, leaves : how many trees, and how many leaves each may have.
    learning_rate : how much of a tree is added.
    min_data_in_leaf : candidates that a leaf must have.
    feature_fraction, bagging_fraction : the share of features and of candidates that a tree sees.
    patience : with validation queries, stop when so many trees have not improved their NDCG at 1,
        and keep those up to the best.
    random_state, n_jobs : the same number gives the same trees, in any number of threads.

    Attributes
    ----------
    model_ : the trees, as LightGBM writes them. It trusts what it reads: `load` tells a damaged
        file by a digest, but not one that was made to do harm.
    n_features_in_, n_trees_ : features, and trees that were kept.
    fit_seconds_ : the time training took, with LightGBM's binning of the features.
    """

    def __init__(
        self,
        *,
        trees: int = 100,
        leaves: int = 15,
        learning_rate: float = 0.1,
        min_data_in_leaf: int = 20,
        feature_fraction: float = 1.0,
        bagging_fraction: float = 1.0,
        patience: int = 50,
        random_state: Any = None,
        n_jobs: int = 1,
    ) -> None:
        self.trees = trees
        self.leaves = leaves
        self.learning_rate = learning_rate
        self.min_data_in_leaf = min_data_in_leaf
        self.feature_fraction = feature_fraction
        self.bagging_fraction = bagging_fraction
        self.patience = patience
        self.random_state = random_state
        self.n_jobs = n_jobs

    @staticmethod
    def space(train_sizes: Iterable[float] | None = None) -> Space:
        """What there is to search; with `train_sizes`, the share of the training queries, too."""
        parameters: dict[str, Parameter] = {
            "trees": Int(20, 1000, log=True),
            "leaves": Int(4, 128, log=True),
            "learning_rate": Float(0.01, 0.5, log=True),
            "min_data_in_leaf": Int(5, 1000, log=True),
            "feature_fraction": Float(0.2, 1.0),
            "bagging_fraction": Float(0.2, 1.0),
        }
        return Space(with_sizes(parameters, train_sizes))

    # ---- learning ----

    def fit(
        self, X: Any, y: Any, qid: Any, *, validation: tuple[Any, Any, Any] | None = None
    ) -> Self:
        """Learn from candidates X (n, features), their relevance y (whole numbers, 0 for none) and
        the query each belongs to; candidates of a query stand together. Missing features are NaN.
        `validation` is another such (X, y, qid), to stop on."""
        lightgbm = _lightgbm()
        settings = self._settings()
        features, relevance, sizes = _judged(X, y, qid)
        if not _teaches(relevance, sizes):
            raise ValueError(
                "some query must have candidates of different relevance, but none has: there is "
                "nothing to learn"
            )
        n, d = features.shape
        if int(n * settings["bagging_fraction"]) < 1:
            raise ValueError(
                f"bagging_fraction must leave a candidate, but {self.bagging_fraction} of {n} "
                "leaves none"
            )
        held_out = None if validation is None else _held_out(validation, d)
        begin = time.perf_counter()
        data = lightgbm.Dataset(features, relevance, group=sizes, params=settings)
        callbacks, sets = [], []
        if held_out is not None:
            X_valid, y_valid, valid_sizes = held_out
            sets = [lightgbm.Dataset(X_valid, y_valid, group=valid_sizes, reference=data)]
            callbacks = [lightgbm.early_stopping(self.patience, verbose=False)]
        booster = lightgbm.train(settings, data, self.trees, valid_sets=sets, callbacks=callbacks)
        self.fit_seconds_ = time.perf_counter() - begin
        self.n_features_in_ = d
        self.n_trees_ = booster.best_iteration if sets else booster.current_iteration()
        self.model_: str = booster.model_to_string(num_iteration=self.n_trees_)
        return self

    def _settings(self) -> dict[str, Any]:
        """LightGBM's parameters, and with that a check of ours."""
        whole("trees", self.trees, 1)
        whole("patience", self.patience, 1)
        bagging = fraction("bagging_fraction", self.bagging_fraction)
        return {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [1],
            "num_leaves": whole("leaves", self.leaves, 2, 131_072),
            "learning_rate": positive("learning_rate", self.learning_rate),
            "min_data_in_leaf": whole("min_data_in_leaf", self.min_data_in_leaf, 1, 2**31 - 1),
            "feature_fraction": fraction("feature_fraction", self.feature_fraction),
            "bagging_fraction": bagging,
            "bagging_freq": int(bagging < 1),
            "seed": seed_of(self.random_state) % 2**31,
            "num_threads": whole("n_jobs", self.n_jobs, 1, _MOST_THREADS),
            "deterministic": True,
            "force_row_wise": True,  # else the quicker way is found out by a watch
            "verbosity": -1,
        }

    # ---- predicting ----

    def predict(self, X: Any) -> Array:
        """The score of each candidate: within a query, higher is better."""
        check_is_fitted(self, "model_")
        features = _features(X)
        if features.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have {self.n_features_in_} features as in fit, but has {features.shape[1]}"
            )
        threads = whole("n_jobs", self.n_jobs, 1, _MOST_THREADS)
        scores: Array = _booster(self.model_).predict(features, num_threads=threads)
        return scores

    def ranks(self, X: Any, qid: Any) -> NDArray[np.intp]:
        """The rank of each candidate in its query, 1 for the best; equal scores by their order."""
        scores = self.predict(X)
        query = np.unique(query_ids(qid, len(scores)), return_inverse=True)[1]
        order = np.lexsort((-scores, query))
        starts = np.searchsorted(query[order], query[order])
        ranks = np.empty(len(order), np.intp)
        ranks[order] = np.arange(len(order)) - starts + 1
        return ranks

    def score(self, X: Any, y: Any, qid: Any) -> float:
        """Precision at 1: the share of queries whose best-scored candidate is relevant."""
        return precision_at_1(self.predict(X), y, qid=qid)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


@lru_cache(maxsize=4)
def _booster(text: str) -> Any:
    """Trees that are ready to predict; reading them takes longer than scoring one query."""
    return _lightgbm().Booster(model_str=text)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError('TreeRanker needs LightGBM: pip install "tradewind[trees]"') from error
    return lightgbm


# ---- what is given ----


def _judged(X: Any, y: Any, qid: Any) -> tuple[Any, NDArray[np.intp], NDArray[np.intp]]:
    """Features, relevance, and how many candidates each query has."""
    features = _features(X)
    n = features.shape[0]
    relevance = np.asarray(y)
    if relevance.shape != (n,):
        raise ValueError(f"{n} candidates need a relevance each, but got {relevance.shape}")
    right = relevance.dtype.kind in "biuf" and np.isin(relevance, np.arange(_MOST_RELEVANT + 1))
    if not np.all(right):
        wrong = relevance[~np.broadcast_to(right, n)][0]
        raise ValueError(
            f"relevance must be whole numbers from 0 to {_MOST_RELEVANT}, but got {wrong}"
        )
    ids = query_ids(qid, n)
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    if len(starts) != len(np.unique(ids)):
        raise ValueError("candidates of a query must stand together: sort the rows by qid")
    sizes = np.diff(np.append(starts, n))
    if sizes.max() > _MOST_CANDIDATES:
        raise ValueError(
            f"a query may have {_MOST_CANDIDATES} candidates, but one has {sizes.max()}"
        )
    return features, relevance.astype(np.intp), sizes


def _held_out(validation: Any, d: int) -> tuple[Any, NDArray[np.intp], NDArray[np.intp]]:
    if not isinstance(validation, (list, tuple)) or len(validation) != 3:
        raise ValueError(f"validation must be (X, y, qid), but got {validation!r:.60}")
    judged = _judged(*validation)
    if judged[0].shape[1] != d:
        raise ValueError(f"validation must have {d} features, but has {judged[0].shape[1]}")
    return judged


def _features(X: Any) -> Any:
    return check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
    )


def _teaches(relevance: NDArray[np.intp], sizes: NDArray[np.intp]) -> bool:
    starts = np.cumsum(sizes) - sizes
    different = np.minimum.reduceat(relevance, starts) < np.maximum.reduceat(relevance, starts)
    return bool(different.any())
