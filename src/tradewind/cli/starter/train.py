"""What a trial does: train a model with its parameters, and return how good it is.

This example needs NumPy only: a linear classifier, trained step by step on made-up data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

N_TRAIN, N_VALID, N_FEATURES = 4000, 2000, 30


def make_data() -> tuple[Any, Any, Any, Any]:
    """Points on two sides of a plane, with a tenth of the labels wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_TRAIN + N_VALID, N_FEATURES))
    y = np.sign(X @ rng.normal(size=N_FEATURES) + rng.normal(size=len(X)))
    y[rng.random(len(y)) < 0.1] *= -1
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


X_train, y_train, X_valid, y_valid = make_data()


def train(X: Any, y: Any, params: dict[str, Any], rng: np.random.Generator) -> Any:
    """The weights of a linear classifier."""
    w = mean = np.zeros(X.shape[1])
    for epoch in range(params["epochs"]):
        for rows in np.array_split(rng.permutation(len(X)), max(1, len(X) // 50)):
            margin = y[rows] * (X[rows] @ w)
            if params["loss"] == "hinge":
                push = (margin < 1.0).astype(float)
            else:
                push = 1.0 / (1.0 + np.exp(np.clip(margin, -30.0, 30.0)))
            w = w + params["learning_rate"] / (1 + epoch) * (push * y[rows]) @ X[rows] / len(rows)
        mean = mean + (w - mean) / (1 + epoch)
    return mean if params["averaged"] else w


def objective(trial: Any) -> float:
    """The accuracy of this trial's model. The time that this takes is its cost."""
    rows = trial.subset(y_train)  # the share of the data that this trial trains with
    rng = np.random.default_rng(trial.seed)
    w = train(X_train[rows], y_train[rows], trial.params, rng)
    return float(np.mean(np.sign(X_valid @ w) == y_valid))
