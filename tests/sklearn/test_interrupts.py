"""A search that is ended early refits the best so far, and begins nothing more."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from scipy import stats

import tradewind as tw
from tests.sklearn.models import Learner, X, y
from tradewind.sklearn import TradeoffSearchCV
from tradewind.strategies import MultiFidelity

CONTINUOUS = {"quality": stats.uniform(0, 1)}


class Ended(Learner):
    """Ends the search while fit number `last` is made, each candidate having two."""

    fits = 0
    last = 0
    how: Any = None

    def fit(self, X: Any, y: Any) -> Ended:
        Ended.fits += 1
        if Ended.fits == Ended.last:
            Ended.how()
        super().fit(X, y)
        return self


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def search(how: Any, last: int, **options: Any) -> TradeoffSearchCV:
    Ended.fits, Ended.last, Ended.how = 0, last, staticmethod(how)
    options = {"n_iter": 8, "cv": 2, "random_state": 0, "train_sizes": [0.25, 1.0]} | options
    return TradeoffSearchCV(Ended(), CONTINUOUS, **options)


def test_one_interrupt_ends_a_search_over_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    fitted = search(interrupt, last=5).fit(X, y)
    assert isinstance(fitted.study_.strategy, MultiFidelity)
    assert len(fitted.study_.trials) == len(fitted.cv_results_["params"]) == 3
    assert capsys.readouterr().err.count("finishing the running trials") == 1
    assert fitted.best_estimator_.n_ == 20


def test_stopping_the_study_ends_a_search_over_sizes() -> None:
    made = search(lambda: made.study_.stop(), last=5)
    assert len(made.fit(X, y).study_.trials) == 3


def test_a_search_over_sizes_that_was_ended_goes_on_to_its_full_number(tmp_path: Any) -> None:
    options = {"storage": tmp_path / "runs.db"}
    search(interrupt, last=5, **options).fit(X, y)
    fitted = search(interrupt, last=0, **options).fit(X, y)
    assert len(fitted.cv_results_["params"]) == 8
    assert fitted.cv_results_["train_size"][-1] == 1.0


def test_where_only_little_data_were_tried_any_choice_is_refitted_with_all() -> None:
    fitted = search(interrupt, last=1).fit(X, y)
    assert list(fitted.cv_results_["train_size"]) == [0.25]
    assert fitted.best_estimator_.n_ == 20
    assert fitted.select(tw.Tradeoff(0.5, 1.0)).best_estimator_.n_ == 20
    assert fitted.best_train_size_ == 1.0
