"""Boosted regression trees that rank candidates: LightGBM's LambdaMART (W15's question task)."""

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
from tradewind.errors import missing
from tradewind.models.base import Model, add_train_size
from tradewind.models.ranking import precision_at_1, query_ids
from tradewind.space import Float, Int, Parameter, Space
from tradewind.types import Array

_MOST_RELEVANT = 30  # LightGBM's gains, 2**relevance − 1, go up to this
_MOST_CANDIDATES = 10_000  # LightGBM's limit for one query
_MOST_THREADS = 1024  # a hundred thousand crash Python


class TreeRanker(Model):
    """Boosted trees that score the candidates of a query so that relevant ones come first. They are
    trained with LightGBM's lambdarank objective. The defaults were chosen on InsuranceQA's
    validation set, where three times as many trees at half the learning rate are no better.

    A smaller training set should have fewer queries, not queries with fewer candidates. In an
    objective, pass the queries as groups to take whole queries:

    >>> def objective(trial):
    ...     rows = trial.subset(y, groups=qid)
    ...     model = TreeRanker().set_params(**trial.settings).fit(X[rows], y[rows], qid[rows])
    ...     return {"value": model.score(X_valid, y_valid, qid_valid), "cost": model.fit_seconds_}

    Parameters
    ----------
    trees, leaves : the number of trees, and the largest number of leaves of each.
    learning_rate : the factor by which each tree is scaled.
    min_data_in_leaf : the smallest number of candidates in a leaf.
    feature_fraction, bagging_fraction : the share of features and of candidates that each tree
        sees.
    patience : with a `validation`, training stops when the NDCG at 1 has not improved for this many
        trees, and the trees up to the best are kept.
    random_state : the same number gives the same trees, whatever `n_jobs` is.
    n_jobs : the number of threads.

    Attributes
    ----------
    model_ : the trees, as LightGBM writes them. LightGBM trusts what it reads: `load` detects a
        damaged file by a digest, but not a malicious one.
    n_features_in_ : the number of features.
    n_trees_ : the number of trees that were kept.
    fit_seconds_ : the time of training, including LightGBM's binning of the features.
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
        """The parameters to search. With `train_sizes`, the share of training queries as well."""
        parameters: dict[str, Parameter] = {
            "trees": Int(20, 1000, log=True),
            "leaves": Int(4, 128, log=True),
            "learning_rate": Float(0.01, 0.5, log=True),
            "min_data_in_leaf": Int(5, 1000, log=True),
            "feature_fraction": Float(0.2, 1.0),
            "bagging_fraction": Float(0.2, 1.0),
        }
        return Space(add_train_size(parameters, train_sizes))

    # ---- learning ----

    def fit(
        self, X: Any, y: Any, qid: Any, *, validation: tuple[Any, Any, Any] | None = None
    ) -> Self:
        """Train on candidates X (n, features), their relevance y (whole numbers, 0 for irrelevant)
        and the query of each. The candidates of a query must be next to each other. Missing
        features are NaN. `validation` is another (X, y, qid), for early stopping."""
        lightgbm = _lightgbm()
        settings = self._settings()
        features, relevance, sizes = _read_candidates(X, y, qid)
        if not _has_differences(relevance, sizes):
            raise ValueError(
                "at least one query must have candidates of different relevance, but none has: "
                "there is nothing to learn"
            )
        n, d = features.shape
        if int(n * settings["bagging_fraction"]) < 1:
            raise ValueError(
                f"bagging_fraction must leave at least one candidate, but {self.bagging_fraction} "
                f"of {n} leaves none"
            )
        held_out = None if validation is None else _read_validation(validation, d)
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
        """LightGBM's parameters. Checks ours."""
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
            "force_row_wise": True,  # otherwise LightGBM chooses a way by its speed
            "verbosity": -1,
        }

    # ---- predicting ----

    def predict(self, X: Any) -> Array:
        """The score of each candidate. Within a query, higher is better."""
        check_is_fitted(self, "model_")
        features = _read_features(X)
        if features.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have {self.n_features_in_} features as in fit, but has {features.shape[1]}"
            )
        threads = whole("n_jobs", self.n_jobs, 1, _MOST_THREADS)
        scores: Array = _booster(self.model_).predict(features, num_threads=threads)
        return scores

    def ranks(self, X: Any, qid: Any) -> NDArray[np.intp]:
        """The rank of each candidate in its query, from 1 for the best. Candidates with equal
        scores keep their order."""
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
    """The trees, ready to predict. They are cached, because reading them takes longer than scoring
    one query."""
    return _lightgbm().Booster(model_str=text)


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise missing("TreeRanker", "lightgbm") from error
    return lightgbm


# ---- arguments ----


def _read_candidates(X: Any, y: Any, qid: Any) -> tuple[Any, NDArray[np.intp], NDArray[np.intp]]:
    """Features, relevance, and the number of candidates of each query."""
    features = _read_features(X)
    n = features.shape[0]
    relevance = np.asarray(y)
    if relevance.shape != (n,):
        raise ValueError(
            f"y must have a relevance for each of {n} candidates, but got {relevance.shape}"
        )
    is_valid = relevance.dtype.kind in "biuf" and np.isin(relevance, np.arange(_MOST_RELEVANT + 1))
    if not np.all(is_valid):
        wrong = relevance[~np.broadcast_to(is_valid, n)][0]
        raise ValueError(
            f"relevance must be whole numbers from 0 to {_MOST_RELEVANT}, but got {wrong}"
        )
    ids = query_ids(qid, n)
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    if len(starts) != len(np.unique(ids)):
        raise ValueError(
            "the candidates of a query must be next to each other: sort the rows by qid"
        )
    sizes = np.diff(np.append(starts, n))
    if sizes.max() > _MOST_CANDIDATES:
        raise ValueError(
            f"a query may have up to {_MOST_CANDIDATES} candidates, but one has {sizes.max()}"
        )
    return features, relevance.astype(np.intp), sizes


def _read_validation(validation: Any, d: int) -> tuple[Any, NDArray[np.intp], NDArray[np.intp]]:
    if not isinstance(validation, (list, tuple)) or len(validation) != 3:
        raise ValueError(f"validation must be (X, y, qid), but got {validation!r:.60}")
    features, relevance, sizes = _read_candidates(*validation)
    if features.shape[1] != d:
        raise ValueError(f"validation must have {d} features, but has {features.shape[1]}")
    return features, relevance, sizes


def _read_features(X: Any) -> Any:
    return check_array(
        X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
    )


def _has_differences(relevance: NDArray[np.intp], sizes: NDArray[np.intp]) -> bool:
    """Whether a query has candidates of different relevance."""
    starts = np.cumsum(sizes) - sizes
    different = np.minimum.reduceat(relevance, starts) < np.maximum.reduceat(relevance, starts)
    return bool(different.any())
