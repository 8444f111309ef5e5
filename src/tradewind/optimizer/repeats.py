"""Repeats of a configuration, and what they say about noise.

Nothing but a repeat tells noise from structure that a model does not see: two results of one
configuration are equal, or they are not.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from enum import Enum

import numpy as np

from tradewind.data.noise import repeat_noise
from tradewind.optimizer.history import History
from tradewind.optimizer.transforms import Clip, Standardize
from tradewind.types import Array, Indices

_NEGLIGIBLE = 1e-3  # of the spread of all results
_DIGITS = 10  # of a coordinate in [0, 1]


class Noise(Enum):
    """What the trials say about the noise of a result."""

    UNKNOWN = "unknown"  # nothing was repeated, and there are no folds
    ABSENT = "absent"
    PRESENT = "present"


def noise_of(history: History) -> Noise:
    """Whether results are noisy, as far as folds and repeats tell."""
    if history.noise.any():
        return Noise.PRESENT
    groups = repeats(history)
    if len(groups) == len(history.X):
        return Noise.UNKNOWN
    quality = Clip.of(history.quality).forward(history.quality)  # a diverged trial is no spread
    quality = Standardize.of(quality).forward(quality)
    noisy = repeat_noise(quality, groups) > np.square(_NEGLIGIBLE)
    return Noise.PRESENT if noisy else Noise.ABSENT


def configuration_keys(history: History) -> list[Hashable]:
    """A key for each finished trial. Trials with the same one are repeats of a configuration."""
    return list(zip(row_keys(history.X), history.sizes.finished.tolist(), strict=True))


def row_keys(X: Array) -> list[bytes]:
    """A key for each row. Rows that differ by rounding have the same one: a proposal is rounded
    when it is decoded, so the repeat of a configuration that a user added may not be exact."""
    return [row.tobytes() for row in np.round(X, _DIGITS)]


def repeats(history: History) -> list[Indices]:
    """The finished trials of each configuration, as indices."""
    members: dict[Hashable, list[int]] = {}
    for i, key in enumerate(configuration_keys(history)):
        members.setdefault(key, []).append(i)
    return [np.array(rows) for rows in members.values()]


def whole_runs(history: History, rows: Indices) -> Indices:
    """Those of the rows that were not raced, or all if all were."""
    whole = rows[~history.raced[rows]]
    return whole if len(whole) else rows


def with_repeats(history: History) -> History:
    """The history with the noise that repeats reveal, where folds do not."""
    variance = repeat_noise(history.quality, repeats(history))
    if variance == 0.0:
        return history
    return replace(history, noise=np.where(history.noise > 0.0, history.noise, variance))
