"""What all models have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin

from tradewind.models.saving import Savable
from tradewind.space import Parameter, TrainSize


class Model(Savable, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator with `save` and `load`."""


class TextClassifier(ClassifierMixin, Model):  # type: ignore[misc]
    """A classifier of texts."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def add_train_size(
    parameters: Mapping[str, Parameter], train_sizes: Iterable[float] | None
) -> dict[str, Parameter]:
    """The parameters of a space, plus the training size if `train_sizes` are given."""
    size = {} if train_sizes is None else {"train_size": TrainSize(list(train_sizes))}
    return {**parameters, **size}
