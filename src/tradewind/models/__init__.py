"""The models of the papers as scikit-learn estimators, and readers for their data and vectors.

Each name is loaded when it is first used, because the models need different packages: PyTorch and
gensim are the extra `text`, LightGBM is the extra `trees`.

>>> tw.models.precision_at_1([[0.9, 0.1], [0.2, 0.3]], [[1, 0], [1, 0]])
0.5
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tradewind.errors import missing

if TYPE_CHECKING:
    from tradewind.models.datasets import load_insuranceqa as load_insuranceqa
    from tradewind.models.datasets import load_mr as load_mr
    from tradewind.models.datasets import load_yelp as load_yelp
    from tradewind.models.letor import load_letor as load_letor
    from tradewind.models.ranking import precision_at_1 as precision_at_1
    from tradewind.models.ranking import reciprocal_rank as reciprocal_rank
    from tradewind.models.siamese import SiameseBiLSTM as SiameseBiLSTM
    from tradewind.models.svm import UnigramSVM as UnigramSVM
    from tradewind.models.text import Vocabulary as Vocabulary
    from tradewind.models.text import tokenize as tokenize
    from tradewind.models.textcnn import TextCNN as TextCNN
    from tradewind.models.trees import TreeRanker as TreeRanker
    from tradewind.models.vectors import WordVectors as WordVectors
    from tradewind.models.vectors import read_vectors as read_vectors

_HOMES = {
    "SiameseBiLSTM": "siamese",
    "TextCNN": "textcnn",
    "TreeRanker": "trees",
    "UnigramSVM": "svm",
    "Vocabulary": "text",
    "WordVectors": "vectors",
    "load_insuranceqa": "datasets",
    "load_letor": "letor",
    "load_mr": "datasets",
    "load_yelp": "datasets",
    "precision_at_1": "ranking",
    "read_vectors": "vectors",
    "reciprocal_rank": "ranking",
    "tokenize": "text",
}
_PACKAGES = ("torch", "gensim", "snowballstemmer", "lightgbm")

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"{__name__}.{_HOMES[name]}")
    except ModuleNotFoundError as error:
        if error.name not in _PACKAGES:
            raise
        raise missing(name, error.name) from None
    return getattr(home, name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
