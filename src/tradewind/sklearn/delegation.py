"""The methods that a fitted search passes on to its best estimator: `predict`, `score`, …"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _estimator_has(name: str) -> Callable[[Any], bool]:
    """A check, for `available_if`, that the estimator of a search has the attribute `name`."""

    def check(search: Any) -> bool:
        search._require_refit(name)
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check


def _delegate(name: str) -> Any:
    """A method that calls the method `name` of the best estimator."""

    def method(self: Delegation, X: Any) -> Any:
        return getattr(self._best(), name)(X)

    method.__name__, method.__qualname__ = name, f"Delegation.{name}"
    method.__doc__ = f"`{name}` of the best estimator."
    return available_if(_estimator_has(name))(method)


class Delegation:
    """The methods, attributes and tags that a search takes from its estimator."""

    estimator: Any
    best_estimator_: Any
    refit: Any
    scorer_: Any
    _metric: str

    def _require_refit(self, name: str) -> None:
        if not self.refit:
            raise AttributeError(
                f"This {type(self).__name__} instance was initialized with `refit={self.refit}`. "
                f"{name} is available only after refitting on the best parameters. You can refit "
                "an estimator manually using the `best_params_` attribute"
            )

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """The score of the best estimator, by the metric that the search optimized.

        `params` go to the scorer. They need scikit-learn's metadata routing."""
        self._require_refit("score")
        best = self._best()
        if sklearn.get_config()["enable_metadata_routing"]:
            params = process_routing(self, "score", **params).scorer["score"]
        elif params:
            raise ValueError(
                f"passing [{', '.join(sorted(params))}] to score is only supported if metadata "
                "routing is enabled: sklearn.set_config(enable_metadata_routing=True)"
            )
        scorer = self.scorer_[self._metric] if isinstance(self.scorer_, dict) else self.scorer_
        score = scorer(best, X, y, **params)
        return float(score[self._metric] if isinstance(score, dict) else score)

    predict = _delegate("predict")
    predict_proba = _delegate("predict_proba")
    predict_log_proba = _delegate("predict_log_proba")
    decision_function = _delegate("decision_function")
    score_samples = _delegate("score_samples")
    transform = _delegate("transform")
    inverse_transform = _delegate("inverse_transform")

    @available_if(lambda search: hasattr(search.estimator, "set_output"))  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: Any = None) -> Delegation:
        """Choose what `transform` returns: "default", "pandas" or "polars"."""
        for model in (self.estimator, getattr(self, "best_estimator_", None)):
            if model is not None:
                model.set_output(transform=transform)
        return self

    @property
    def n_features_in_(self) -> int:
        """The number of features that the best estimator was fitted with."""
        try:
            return int(self._best().n_features_in_)
        except NotFittedError as error:  # so that hasattr() returns False
            message = f"{type(self).__name__} object has no n_features_in_ attribute."
            raise AttributeError(message) from error

    @property
    def classes_(self) -> Any:
        """The classes of the best estimator."""
        _estimator_has("classes_")(self)
        return self.best_estimator_.classes_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.target_tags.multi_output = inner.target_tags.multi_output
        tags.input_tags.pairwise = (
            inner.input_tags.pairwise
        )  # splitting then selects rows and columns
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags
