"""Repeats of a configuration, and what they say about noise.

Nothing but a repeat tells noise from structure that a model does not see: two results of one
configuration are equal, or they are not.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import numpy as np

from tradewind.data.noise import repeat_noise
from tradewind.optimizer.history import History
from tradewind.optimizer.transforms import Clip, Standardize
from tradewind.types import Array, Indices

_NEGLIGIBLE = 1e-3  # of the spread of all results
_DIGITS = 10  # of a coordinate in [0, 1]
_ODD = np.uint64(0x9E3779B97F4A7C15)  # its powers make sums of different rows different


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
    if not groups:
        return Noise.UNKNOWN
    quality = Clip.of(history.quality).forward(history.quality)  # a diverged trial is no spread
    quality = Standardize.of(quality).forward(quality)
    noisy = repeat_noise(quality, groups) > np.square(_NEGLIGIBLE)
    return Noise.PRESENT if noisy else Noise.ABSENT


def configurations(history: History) -> Indices:
    """A number for the configuration and the training size of each finished trial (n,): the index
    of the first trial that has them."""
    keys = _rounded(np.column_stack([history.X, history.sizes.finished]))
    words = keys.view(np.uint64)
    words = words ^ (words >> np.uint64(32))  # the last bits of simple fractions are all 0
    checksums = (words * _ODD ** np.arange(words.shape[1], dtype=np.uint64)).sum(axis=1)
    _, which, counts = np.unique(checksums, return_inverse=True, return_counts=True)
    numbers = np.arange(len(keys))
    first: dict[bytes, int] = {}
    for i in np.flatnonzero(counts[which] > 1).tolist():  # all others have no equal
        numbers[i] = first.setdefault(keys[i].tobytes(), i)
    return numbers


def row_keys(X: Array) -> list[bytes]:
    """A key for each row. Rows that differ by rounding have the same one."""
    return [row.tobytes() for row in _rounded(X)]


def _rounded(X: Array) -> Array:
    """A proposal is rounded when it is decoded, so the repeat of a configuration that a user added
    may not be exact."""
    return np.ascontiguousarray(np.round(X, _DIGITS))


def repeats(history: History) -> list[Indices]:
    """The finished trials of each configuration that has more than one, as indices."""
    numbers = configurations(history)
    members: dict[int, list[int]] = {}
    for i in np.flatnonzero(numbers < np.arange(len(numbers))).tolist():
        members.setdefault(int(numbers[i]), [int(numbers[i])]).append(i)
    return [np.array(members[first]) for first in sorted(members)]


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
