"""Saving fitted models: an .npz file with plain arrays and one JSON document. Nothing is pickled.

A digest detects a document that was damaged or edited before anything uses it. It does not make a
file from a stranger safe, because an attacker can change the digest as well: the trees of a
`TreeRanker` are read by LightGBM, which trusts them.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tradewind.errors import DataError, DataMissing
from tradewind.models.files import read_arrays
from tradewind.models.vectors import WordVectors
from tradewind.paths import check_file, replace_file
from tradewind.plain import LONGEST

_FORMAT = 1
_DOCUMENT = "document"  # the name of the JSON among the arrays
_DIGEST = "digest"
_MOST_WRITTEN = 10  # how many times the size of a gzipped file its document may take; see LONGEST


class Savable:
    """`save` and `load` for scikit-learn estimators.

    All parameters and all fitted attributes (names that end with _) are saved. They must be
    numbers, strings, arrays, word vectors, or lists, tuples and dicts of these."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this estimator to a file. An existing file is replaced as a whole or not at all. A
        `RandomState` is saved as None."""
        arrays: dict[str, Any] = {}
        parameters = vars(type(self)())
        document = {
            "format": _FORMAT,
            "kind": type(self).__name__,
            "state": {
                name: _encode(name, value, arrays)
                for name, value in vars(self).items()
                if name in parameters or _is_fitted(name)
            },
        }
        content = json.dumps(document).encode()
        arrays[_DOCUMENT] = np.frombuffer(content, dtype=np.uint8)
        arrays[_DIGEST] = np.frombuffer(_digest(content), dtype=np.uint8)
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            raise DataMissing(f"there is no folder {folder}")
        try:
            check_file(path)
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror}") from None
        with replace_file(path) as file:
            np.savez(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load an estimator from a file that `save` wrote. A parameter that an older file does not
        have gets its default."""
        arrays = read_arrays(Path(path))
        try:
            content = arrays.pop(_DOCUMENT).tobytes()
            if len(content) > max(LONGEST, _MOST_WRITTEN * os.path.getsize(path)):
                raise ValueError("its document is larger than the file")
            document = json.loads(content)
            version, kind = document["format"], document["kind"]
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise DataError(f"{path} is not a saved model: {error!r:.200}") from None
        if version != _FORMAT:
            raise DataError(
                f"{path} has format {version!r:.60}, but only {_FORMAT} can be read: update "
                "Tradewind"
            )
        if kind != cls.__name__:
            raise DataError(f"{path} holds a {kind!s:.60}: load it with {kind!s:.60}.load")
        if _DIGEST not in arrays or arrays.pop(_DIGEST).tobytes() != _digest(content):
            raise DataError(f"{path} is damaged: it was changed since it was saved")
        model = cls()
        try:
            state = {name: _decode(value, arrays) for name, value in document["state"].items()}
        except (
            *(AttributeError, KeyError, MemoryError, OverflowError, RecursionError, TypeError),
            ValueError,
        ) as error:
            raise DataError(f"{path} is damaged: {error!r:.200}") from None
        for name in state:
            if name not in vars(model) and not _is_fitted(name):
                raise DataError(
                    f"{path} has {name!r:.60}, which a {kind} does not have: update Tradewind"
                )
        vars(model).update(state)
        return model


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _encode(name: str, value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value as JSON. An array is added to `arrays`, and the JSON holds its key there."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic() if isinstance(plain := value.item(), (bool, int, float)):
            return plain
        case np.ndarray() if isinstance(value, np.ma.MaskedArray):
            pass  # an error, because its mask would be lost
        case np.ndarray() if value.dtype.kind in "biufcSUmM":
            # an array that several attributes share, such as the word vectors, is written once
            same = (key for key, array in arrays.items() if array is value)
            key = next(same, f"a{len(arrays)}")
            arrays[key] = value
            return {"array": key}
        case np.ndarray() if (
            value.dtype.kind in "OT"
        ):  # labels from a data frame have the dtype object
            items = [_encode(name, item, arrays) for item in value.ravel().tolist()]
            return {"objects": [list(value.shape), items]}
        case WordVectors():
            # a list, because an array of strings would lose \0 at the end of a word
            return {"vectors": [list(value.words), _encode(name, value.vectors, arrays)]}
        case np.random.RandomState():
            return None  # only another fit would use it
        case list():
            return {"list": [_encode(name, item, arrays) for item in value]}
        case tuple() | range():
            return {"tuple": [_encode(name, item, arrays) for item in value]}
        case dict():
            pairs = [[_encode(name, each, arrays) for each in pair] for pair in value.items()]
            return {"dict": pairs}
    raise TypeError(f"{name} cannot be saved: {value!r:.80} is a {type(value).__name__}")


def _decode(value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    match tag:
        case "array":
            return arrays[content]
        case "objects":
            shape, items = content
            array = np.empty(len(items), dtype=object)
            for i, item in enumerate(items):  # one by one, because an item may itself be a sequence
                array[i] = _decode(item, arrays)
            return array.reshape(shape)
        case "vectors":
            words, vectors = content[0], _decode(content[1], arrays)
            vectors.setflags(write=False)  # so that WordVectors does not copy them
            return WordVectors(tuple(words), vectors)
        case "list":
            return [_decode(item, arrays) for item in content]
        case "tuple":
            return tuple(_decode(item, arrays) for item in content)
        case "dict":
            return {_decode(key, arrays): _decode(item, arrays) for key, item in content}
    raise ValueError(f"unknown tag {tag!r}")
