"""Warnings point at the line of the user's that gave cause for them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

import tradewind as tw
from tests.sklearn.models import Fragile, Known, X, y
from tradewind.errors import warn
from tradewind.runners import processes


def caught(work: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        work()
    return found


def search(estimator: Any, **options: Any) -> tw.TradeoffSearchCV:
    options = {"n_iter": 4, "cv": 2, "random_state": 0} | options
    return tw.TradeoffSearchCV(estimator, {"quality": [0.1, 0.3, 0.5, 0.7]}, **options)


def blind(estimator: Any, X: Any, y: Any) -> float:
    if estimator.quality > 0.4:
        raise ZeroDivisionError("nothing to see")
    return 1.0


@pytest.fixture
def _one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "usable_cores", lambda: 1)


def test_a_warning_is_the_callers() -> None:
    (one,) = caught(lambda: warn("beware", DeprecationWarning))
    assert (one.category, str(one.message)) == (DeprecationWarning, "beware")
    assert one.filename == __file__


def test_a_warning_names_the_line() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        search(Known(), n_iter=9).fit(X, y)
    assert [(one.filename, one.lineno) for one in found] == [(__file__, line)]
    assert "smaller than n_iter=9" in str(found[0].message)


@pytest.mark.parametrize(
    ("made", "messages"),
    [
        (search(Fragile()), ["fits failed", "scores are non-finite"]),
        (search(Known(), scoring=blind), ["Scoring failed", "scores are non-finite"]),
    ],
    ids=["fits", "scores"],
)
def test_what_fails_in_a_search_is_told_at_the_line_of_its_fit(
    made: tw.TradeoffSearchCV, messages: list[str]
) -> None:
    found = caught(lambda: made.fit(X, y))
    assert [one.filename for one in found] == [__file__] * len(messages)
    for one, message in zip(found, messages, strict=True):
        assert message in str(one.message)
    assert (found[0].category is FitFailedWarning) == ("fits failed" in messages[0])


def test_weights_that_are_not_scored_with_are_told_at_the_line_of_the_fit() -> None:
    class Weighed(Known):
        def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Weighed:
            super().fit(X, y)
            return self

    made = search(Weighed(), scoring=lambda e, X, y: 1.0)
    (one,) = caught(lambda: made.fit(X, y, sample_weight=np.ones(20)))
    assert "does not support sample_weight" in str(one.message)
    assert one.filename == __file__


@pytest.mark.usefixtures("_one_core")
@pytest.mark.parametrize(
    "work",
    [
        lambda: tw.create_study({"x": (0.0, 1.0)}).optimize(lambda t: 1.0, 2, n_workers=2),
        lambda: search(Known(), n_iter=2, n_jobs=2).fit(X, y),
    ],
    ids=["study", "search"],
)
def test_workers_that_share_a_core_are_told_at_the_line_that_asks_for_them(
    work: Callable[[], Any],
) -> None:
    (one,) = caught(work)
    assert "2 workers share 1 core" in str(one.message)
    assert one.filename == __file__
