"""Arguments are checked when a search is fitted, and not before."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression

import tradewind as tw
from tests.sklearn.models import Known, X, y
from tests.studies import environment
from tradewind.errors import SpaceError
from tradewind.sklearn import TradeoffSearchCV


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("estimator", 3, TypeError, "estimator must be an object such as"),
        ("estimator", LogisticRegression, TypeError, r"write LogisticRegression\(\)"),
        ("estimator", tw.Quality(), TypeError, r"estimator must be .* which has no fit\(\)"),
        ("space", None, TypeError, "give either space or param_distributions, but got neither"),
        ("space", 3, TypeError, "a space is a Space"),
        ("param_distributions", {"quality": [0.1]}, TypeError, "but got both"),
        ("space", {}, SpaceError, "at least one parameter"),
        ("space", {"quality": 3}, SpaceError, "'quality'"),
        ("space", {"unknown": [1, 2]}, ValueError, "Invalid parameter 'unknown'"),
        ("goal", "best", ValueError, "a goal is quality, tradeoff:ALPHA"),
        ("goal", tw.Quality, TypeError, r"goal must be .* write Quality\(\)"),
        ("n_iter", 0, ValueError, "n_iter must be a whole number"),
        ("n_iter", 2.5, ValueError, "n_iter must be a whole number"),
        ("n_iter", True, ValueError, "n_iter must be a whole number"),
        ("n_iter", None, ValueError, "a search needs a limit"),
        ("train_sizes", 0.5, TypeError, "train_sizes must be a list"),
        ("stages", "all", TypeError, "stages must be a list"),
        ("strategy", "best", ValueError, "strategy must be one of 'auto', 'random'"),
        ("strategy", 3, TypeError, "strategy must be an object such as"),
        ("scoring", 3, TypeError, "scoring must be"),
        ("scoring", "unknown", ValueError, "'unknown'"),
        ("scoring", ["accuracy", "accuracy"], ValueError, "[Dd]uplicate"),
        ("n_jobs", 1.5, ValueError, "n_jobs must be"),
        ("n_jobs", "all", ValueError, "n_jobs must be"),
        ("refit", 3, TypeError, "refit must be"),
        ("refit", None, TypeError, "refit must be"),
        ("cv", "five", ValueError, "Expected .?cv.? as an integer"),
        ("cv", 1, ValueError, "at least one train/test split"),
        ("verbose", "loud", ValueError, "verbose must be"),
        ("verbose", -1, ValueError, "verbose must be"),
        ("random_state", "seed", ValueError, "cannot be used to seed"),
        ("random_state", -1, ValueError, "random_state must be"),
        ("random_state", True, ValueError, "random_state must be"),
        ("error_score", "ignore", ValueError, "error_score must be"),
        ("error_score", None, ValueError, "error_score must be"),
        ("return_train_score", "yes", ValueError, "return_train_score must be"),
        ("racing", 0.0, ValueError, "racing must be a number in"),
        ("racing", 1, ValueError, "racing must be a number in"),
        ("racing", "fast", ValueError, "racing must be a number in"),
        ("timeout", -1, ValueError, "timeout must be"),
        ("timeout", "an hour", ValueError, "timeout must be a number of seconds, or text such as"),
        ("max_cost", -1, ValueError, "max_cost must be"),
        ("storage", 3, TypeError, "a storage is"),
        ("name", 3, TypeError, "the name of a study must be text"),
        ("name", "", ValueError, "the name of a study must not be empty"),
    ],
)
def test_a_wrong_argument_is_an_error_when_the_search_is_fitted(
    name: str, value: Any, error: type[Exception], message: str
) -> None:
    given = {"estimator": Known(), "space": {"quality": [0.1, 0.2]}, "n_iter": 2} | {name: value}
    made = TradeoffSearchCV(**given)
    with pytest.raises(error, match=message):
        made.fit(X, y)


def test_nothing_is_changed_by_the_constructor() -> None:
    space = {"C": [1, 2]}
    made = TradeoffSearchCV(Known, space, n_iter="many", cv="bad")  # type: ignore[arg-type]
    assert made.estimator is Known
    assert made.space is space
    assert made.get_params(deep=False)["n_iter"] == "many"


def test_scikit_learn_is_loaded_only_with_the_search() -> None:
    code = "import sys, tradewind; print('sklearn' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
