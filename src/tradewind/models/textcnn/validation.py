"""The texts on which the training of a TextCNN stops: given ones, or a part of the training
texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        kept = stratified_rows(labels[rows], 1 - fraction, seed=seed)
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


def stratified_rows(labels: NDArray[Any], fraction: float, *, seed: int) -> Indices:
    """A random `fraction` of the rows, sorted, with the same shares of all classes and at least one
    row of each. With two classes these are the rows of `tradewind.subsets.subset`."""
    n, rng = len(labels), np.random.default_rng(seed)
    _, first, classes = np.unique(labels, return_index=True, return_inverse=True)
    classes = np.argsort(np.argsort(first))[classes]  # numbered in order of appearance
    counts = np.bincount(classes)
    by_size = np.lexsort((rng.permutation(len(counts)), counts))  # the smallest class first
    place, counts = np.argsort(by_size)[classes], counts[by_size]
    rows = rng.permutation(n)
    rows = rows[np.argsort(place[rows], kind="stable")]  # class by class, each in random order
    own = place[rows]
    # a row stands at the middle of its part of the class, which spans 0 to 1
    middle = (np.arange(n) + 0.5 - (np.cumsum(counts) - counts)[own]) / counts[own]
    order = rows[np.argsort(middle, kind="stable")]
    front = np.unique(classes[order], return_index=True)[1]  # one row of each class is always in
    order = np.concatenate([order[np.sort(front)], np.delete(order, front)])
    return np.sort(order[: max(len(counts), round(fraction * n))])
