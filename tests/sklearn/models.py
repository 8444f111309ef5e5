"""Estimators whose scores and fits are known beforehand."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

X = np.arange(40.0).reshape(20, 2)
y = np.tile([0, 1], 10)


class Known(ClassifierMixin, BaseEstimator):
    """Its score is its parameter, whatever the data; it remembers what it was fitted with."""

    def __init__(self, quality: float = 0.5, other: Any = None) -> None:
        self.quality = quality
        self.other = other

    def fit(self, X: Any, y: Any = None, **params: Any) -> Known:
        self.rows_ = len(X) if isinstance(X, list) else X.shape[0]
        self.params_ = params
        self.X_, self.y_ = X, y
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)

    def score(self, X: Any, y: Any = None) -> float:
        return float(self.quality)


class Fragile(Known):
    """Fails where its quality is at least `limit`."""

    def __init__(self, quality: float = 0.5, limit: float = 0.5) -> None:
        super().__init__(quality)
        self.limit = limit

    def fit(self, X: Any, y: Any = None, **params: Any) -> Fragile:
        if self.quality >= self.limit:
            raise RuntimeError(f"quality {self.quality} is too good to be true")
        super().fit(X, y)
        return self


class Slow(Known):
    """Takes `seconds` to fit, and writes down which process did."""

    def __init__(self, quality: float = 0.5, seconds: float = 0.0, folder: str = "") -> None:
        super().__init__(quality)
        self.seconds = seconds
        self.folder = folder

    def fit(self, X: Any, y: Any = None, **params: Any) -> Slow:
        if self.folder:
            Path(self.folder, str(os.getpid())).touch()
        time.sleep(self.seconds)
        super().fit(X, y)
        return self


class Learner(RegressorMixin, BaseEstimator):
    """Predicts the mean; its score grows with the rows that it has seen."""

    def __init__(self, quality: float = 0.0) -> None:
        self.quality = quality

    def fit(self, X: Any, y: Any) -> Learner:
        self.n_ = len(X)
        self.first_ = np.asarray(X)[:, 0]
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))

    def score(self, X: Any, y: Any) -> float:
        return float(self.quality - 1.0 / self.n_)


class Gate(Known):
    """Number 0 waits until four others have been fitted, and gives up after a minute."""

    def __init__(self, number: int = 0, folder: str = "") -> None:
        super().__init__()
        self.number = number
        self.folder = folder

    def fit(self, X: Any, y: Any = None, **params: Any) -> Gate:
        super().fit(X, y)
        Path(self.folder, f"{self.number}-{os.getpid()}").touch()
        until = time.monotonic() + 60
        while self.number == 0 and len(list(Path(self.folder).glob("[1-9]-*"))) < 4:
            if time.monotonic() > until:
                raise TimeoutError("nobody else is at work")
            time.sleep(0.01)
        return self


class Crashing(Known):
    """Takes its process with it where its quality is high."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Crashing:
        if self.quality > 0.5:
            os._exit(1)
        super().fit(X, y)
        return self
