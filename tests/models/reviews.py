"""Made-up reviews in which one word tells the class, and small networks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.models import TextCNN, WordVectors

GOOD, BAD = ("good", "great", "fine", "superb"), ("bad", "awful", "poor", "dull")
OTHERS = tuple(f"w{i}" for i in range(30))


def reviews(n: int = 120, classes: int = 2, seed: int = 0) -> tuple[list[str], NDArray[Any]]:
    """Texts in which one word tells the class."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for i in range(n):
        words = list(rng.choice(OTHERS, rng.integers(1, 10)))
        telling = ((), GOOD, BAD)[i % classes + (classes == 2)]
        if telling:
            words.insert(int(rng.integers(len(words) + 1)), str(rng.choice(telling)))
        texts.append(" ".join(words))
        labels.append(["pos", "neg"][i % 2] if classes == 2 else ["none", "pos", "neg"][i % 3])
    return texts, np.array(labels)


def vectors() -> WordVectors:
    """Good words and bad words are near each other."""
    rng = np.random.default_rng(0)
    base = {"good": rng.normal(size=8), "bad": rng.normal(size=8)}
    words, rows = [], []
    for kind, group in (("good", GOOD), ("bad", BAD)):
        for word in (*group, f"{kind}ish"):
            words.append(word)
            rows.append(base[kind] + 0.1 * rng.normal(size=8))
    return WordVectors(tuple(words), np.array(rows))


def small(**changes: Any) -> TextCNN:
    settings = {
        "vectors": vectors(),
        "filter_sizes": (1, 2),
        "filters": 8,
        "batch_size": 10,
        "max_epochs": 15,
        "random_state": 0,
    }
    return TextCNN(**{**settings, **changes})
