"""What the estimators of this package have in common."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, ClassifierMixin

from tradewind.models.saving import Saved


class Model(Saved, BaseEstimator):  # type: ignore[misc]
    """An estimator that can be saved, and set to a configuration of its space."""

    def set_params(self, **params: Any) -> Self:
        """As in scikit-learn, but that `train_size`, which a space may have, is left out: a model
        is not set to that, it gets so many rows. So a trial's parameters can be given as they are.
        """
        params.pop("train_size", None)
        super().set_params(**params)
        return self


class TextClassifier(ClassifierMixin, Model):  # type: ignore[misc]
    """A classifier of texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
