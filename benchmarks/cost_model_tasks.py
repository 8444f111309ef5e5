"""The tasks of cost_model.py: twelve models of scikit-learn and LightGBM, each with a space and
data, most of them made up. A run trains one configuration on a part of the rows, with one thread.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification, make_regression

import tradewind as tw

SIZES = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """`model` makes an estimator. The data have `rows` rows and `columns` columns; without rows,
    they are the digits that ship with scikit-learn. `tuned` says that the priors of the cost model
    were chosen with this task, among others."""

    model: Callable[[Params], Any]
    parameters: Mapping[str, Any]
    rows: int
    columns: int = 20
    regression: bool = False
    tuned: bool = False

    @property
    def space(self) -> tw.Space:
        return tw.Space({**self.parameters, "train_size": tw.TrainSize(SIZES)})

    def seconds(self, params: Params, seed: int) -> float:
        """The CPU seconds of one training."""
        X, y = _data(self.rows, self.columns, self.regression)
        settings = {name: value for name, value in params.items() if name != "train_size"}
        rows = np.random.default_rng(seed).permutation(len(y))[
            : round(params["train_size"] * len(y))
        ]
        X, y, model = X[rows], y[rows], self.model(settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # runs that do not converge are runs, too
            begin = time.process_time()
            model.fit(X, y)
            return time.process_time() - begin

    def accuracy(self, params: Params) -> float:
        """The accuracy on the last third of the rows of a model trained on a part of the others."""
        X, y = _data(self.rows, self.columns, self.regression)
        settings = {name: value for name, value in params.items() if name != "train_size"}
        most = len(y) * 2 // 3
        rows = slice(round(params["train_size"] * most))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = self.model(settings).fit(X[rows], y[rows])
        return float(model.score(X[most:], y[most:]))


@lru_cache(maxsize=1)
def _data(rows: int, columns: int, regression: bool) -> tuple[np.ndarray, np.ndarray]:
    if not rows:
        digits = load_digits()
        return digits.data, digits.target
    if regression:
        X, y = make_regression(rows, columns, n_informative=columns // 2, noise=5.0, random_state=0)
    else:
        X, y = make_classification(
            rows, columns, n_informative=columns // 2, n_classes=3, flip_y=0.05, random_state=0
        )
    return X, y


def _forest(p: Params) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**p, random_state=0)


def _extra_trees(p: Params) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(**p, random_state=0)


def _boosting(p: Params) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(**p, random_state=0)


def _histograms(p: Params) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(**p, early_stopping=False, random_state=0)


def _svc(p: Params) -> Any:
    from sklearn.svm import SVC

    return SVC(**p, max_iter=20_000)


def _perceptron(p: Params) -> Any:
    from sklearn.neural_network import MLPClassifier

    hidden = (p["units"],) * p["layers"]
    return MLPClassifier(
        hidden,
        activation=p["activation"],
        max_iter=p["epochs"],
        batch_size=p["batch"],
        learning_rate_init=p["learning_rate"],
        tol=0.0,
        n_iter_no_change=1000,
        random_state=0,
    )


def _logistic(p: Params) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(**p, random_state=0)


def _lightgbm(p: Params) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(**p, n_jobs=1, verbose=-1, random_state=0)


def _lightgbm_regressor(p: Params) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(**p, n_jobs=1, verbose=-1, random_state=0)


def _sgd(p: Params) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(**p, tol=None, random_state=0)


def _kernel_ridge(p: Params) -> Any:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(**p)


def _elastic_net(p: Params) -> Any:
    from sklearn.linear_model import ElasticNet

    return ElasticNet(**p, max_iter=20_000, random_state=0)


TASKS: Mapping[str, Task] = {
    "random forest": Task(
        _forest,
        {
            "n_estimators": tw.Int(10, 200, log=True),
            "max_depth": tw.Int(2, 20),
            "max_features": tw.Float(0.1, 1.0),
            "min_samples_leaf": tw.Int(1, 50, log=True),
            "criterion": tw.Categorical(["gini", "entropy"]),
        },
        rows=1500,
        tuned=True,
    ),
    "gradient boosting": Task(
        _boosting,
        {
            "n_estimators": tw.Int(10, 150, drives_cost=True),
            "max_depth": tw.Int(1, 6),
            "subsample": tw.Float(0.3, 1.0),
            "learning_rate": tw.Float(0.01, 0.5, log=True),
            "criterion": tw.Categorical(["friedman_mse", "squared_error"]),
        },
        rows=1500,
        regression=True,
        tuned=True,
    ),
    "histogram boosting": Task(
        _histograms,
        {
            "max_iter": tw.Int(5, 60, log=True),
            "max_leaf_nodes": tw.Int(4, 64, log=True),
            "learning_rate": tw.Float(0.01, 0.5, log=True),
            "min_samples_leaf": tw.Int(5, 100, log=True),
            "l2_regularization": tw.Float(1e-3, 10.0, log=True),
        },
        rows=12_000,
        tuned=True,
    ),
    "support vectors": Task(
        _svc,
        {
            "C": tw.Float(1e-2, 1e2, log=True),
            "kernel": tw.Categorical(["linear", "poly", "rbf"]),
            "gamma": tw.Float(1e-3, 1.0, log=True, when={"kernel": ["poly", "rbf"]}),
            "degree": tw.Int(2, 4, when={"kernel": "poly"}),
            "shrinking": tw.Bool(),
        },
        rows=2500,
        tuned=True,
    ),
    "perceptron": Task(
        _perceptron,
        {
            "units": tw.Int(8, 128, log=True),
            "layers": tw.Int(1, 3),
            "epochs": tw.Int(2, 30, drives_cost=True),
            "batch": tw.Ordinal([32, 64, 128, 256]),
            "activation": tw.Categorical(["relu", "tanh"]),
            "learning_rate": tw.Float(1e-4, 1e-1, log=True),
        },
        rows=4000,
        tuned=True,
    ),
    "logistic regression": Task(
        _logistic,
        {
            "C": tw.Float(1e-3, 1e3, log=True),
            "solver": tw.Categorical(["lbfgs", "newton-cg", "saga"]),
            "max_iter": tw.Int(20, 300, log=True),
            "fit_intercept": tw.Bool(),
        },
        rows=0,
        tuned=True,
    ),
    "extra trees": Task(
        _extra_trees,
        {
            "n_estimators": tw.Int(10, 200, drives_cost=True),
            "max_depth": tw.Int(2, 20),
            "max_features": tw.Float(0.1, 1.0),
            "min_samples_split": tw.Int(2, 50, log=True),
            "bootstrap": tw.Bool(),
        },
        rows=0,
    ),
    "LightGBM": Task(
        _lightgbm,
        {
            "n_estimators": tw.Int(10, 150, log=True),
            "num_leaves": tw.Int(4, 128, log=True),
            "learning_rate": tw.Float(0.01, 0.5, log=True),
            "colsample_bytree": tw.Float(0.3, 1.0),
            "min_child_samples": tw.Int(5, 100, log=True),
        },
        rows=8000,
    ),
    "LightGBM with dropout": Task(
        _lightgbm_regressor,
        {
            "n_estimators": tw.Int(10, 200, drives_cost=True),
            "num_leaves": tw.Int(4, 64, log=True),
            "boosting_type": tw.Categorical(["gbdt", "dart"]),
            "drop_rate": tw.Float(0.05, 0.5, when={"boosting_type": "dart"}),
            "max_depth": tw.Int(2, 12),
        },
        rows=6000,
        regression=True,
    ),
    "stochastic gradient": Task(
        _sgd,
        {
            "max_iter": tw.Int(5, 100, drives_cost=True),
            "loss": tw.Categorical(["hinge", "log_loss", "modified_huber"]),
            "penalty": tw.Categorical(["l2", "l1", "elasticnet"]),
            "alpha": tw.Float(1e-6, 1e-1, log=True),
            "average": tw.Bool(),
        },
        rows=8000,
    ),
    "kernel ridge": Task(
        _kernel_ridge,
        {
            "alpha": tw.Float(1e-3, 10.0, log=True),
            "kernel": tw.Categorical(["linear", "poly", "rbf", "laplacian"]),
            "gamma": tw.Float(1e-3, 1.0, log=True, when={"kernel": ["poly", "rbf", "laplacian"]}),
            "degree": tw.Int(2, 4, when={"kernel": "poly"}),
        },
        rows=2000,
        regression=True,
    ),
    "elastic net": Task(
        _elastic_net,
        {
            "alpha": tw.Float(1e-4, 10.0, log=True),
            "l1_ratio": tw.Float(0.05, 1.0),
            "selection": tw.Categorical(["cyclic", "random"]),
            "tol": tw.Float(1e-6, 1e-2, log=True),
        },
        rows=20_000,
        columns=200,
        regression=True,
    ),
}
