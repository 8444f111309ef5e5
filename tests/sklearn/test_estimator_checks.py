"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from tradewind.sklearn import TradeoffSearchCV


# The checks fit what cannot be fitted. `RandomizedSearchCV` warns of that in the same checks.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.filterwarnings("ignore:.*does not support sample_weight")
@parametrize_with_checks(
    [
        TradeoffSearchCV(  # accuracies would tie, and then the measured time would decide
            LogisticRegression(), {"C": [0.1, 1.0]}, n_iter=2, cv=2, scoring="neg_log_loss"
        ),
        TradeoffSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, n_iter=2, cv=2),
    ]
)
def test_it_is_an_estimator_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
