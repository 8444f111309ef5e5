"""Every random stream of a study, in one place, so that no two of them can be the same.

A stream depends on the study's seed and on its purpose, never on who asks or when.
"""

from __future__ import annotations

import numpy as np

# A stream's key is [seed, number, purpose]; the key of a proposal ends after the number. No
# purpose may be 0: NumPy pads short keys with zeros, so [seed, number, 0] is [seed, number].
_TRIAL, _DESIGN, _QUEUE, _DATA = 1, 2, 3, 4


def proposal_rng(seed: int, number: int) -> np.random.Generator:
    """The stream of the proposal of trial `number`."""
    return np.random.default_rng(np.random.SeedSequence([seed, number]))


def design_rng(seed: int) -> np.random.Generator:
    """The stream of the initial design."""
    return np.random.default_rng(np.random.SeedSequence([seed, 0, _DESIGN]))


def queue_rng(seed: int, place: int) -> np.random.Generator:
    """The stream that completes the queue entry at `place`."""
    return np.random.default_rng(np.random.SeedSequence([seed, place, _QUEUE]))


def trial_seed(seed: int, number: int) -> int:
    """The seed that the objective of trial `number` receives, a 31-bit number."""
    return _first_31_bits([seed, number, _TRIAL])


def data_seed(seed: int) -> int:
    """The seed that all trials of a study share, for subsets and folds; a 31-bit number."""
    return _first_31_bits([seed, 0, _DATA])


def shared_data_seed(seed: int) -> int:
    """The data seed of a study that does not store one. It is the first number in the stream of
    proposal 2, which is why newer studies use `data_seed` and store it."""
    return _first_31_bits([seed, 2])


def fold_seed(data_seed: int, number: int) -> int:
    """The seed of the training subset of fold `number`, a 32-bit number."""
    return int(np.random.SeedSequence([data_seed, number]).generate_state(1)[0])


def _first_31_bits(key: list[int]) -> int:
    words = np.array(key, dtype=np.uint32) if max(key) < 2**32 else key  # the same, but faster
    return int(np.random.SeedSequence(words).generate_state(1)[0]) & 0x7FFFFFFF
