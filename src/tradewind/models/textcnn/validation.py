"""The texts on which the training of a TextCNN stops: given ones, or a part of the training
texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.data.subsets import subset
from tradewind.errors import warn
from tradewind.types import Indices


def split_rows(
    labels: NDArray[Any], rows: Indices, valid: Indices | None, *, fraction: float, seed: int
) -> tuple[Indices, Indices]:
    """The rows to train on and the rows to stop on. If `valid` is None, this `fraction` of the
    training rows is held out for that."""
    classes = np.unique(labels[rows])
    if len(classes) < 2:
        raise ValueError(f"labels must have at least two classes, but all are {classes}")
    if valid is None:
        kept = subset(labels[rows], 1 - fraction, seed=seed, kind="classes")
        if fraction and len(kept) == len(rows):
            warn(
                f"validation_fraction={fraction} of {len(rows)} texts of {len(classes)} classes is "
                "less than one text: training does not stop early and keeps its last epoch, as "
                "with validation_fraction=0"
            )
        return rows[kept], np.delete(rows, kept)
    if not len(valid):
        raise ValueError("validation needs at least one text, but has none")
    unseen = labels[valid][~np.isin(labels[valid], classes)]
    if len(unseen):
        raise ValueError(
            f"validation has the label {str(unseen[0])!r}, which the training labels do not have"
        )
    return rows, valid
