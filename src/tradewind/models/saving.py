"""Fitted estimators as files: one .npz of plain arrays and one JSON document, nothing pickled.

A digest of the document tells when it was changed, by damage or by somebody's edit, before anything
makes use of it. It does not make a foreign file safe, since whoever changes a file on purpose can
change its digest, too: the trees of a `TreeRanker` are read by LightGBM, which trusts them.
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
from tradewind.models.files import arrays as arrays_in
from tradewind.models.vectors import WordVectors

_FORMAT = 1
_DOCUMENT = "document"  # the name of the JSON among the arrays
_DIGEST = "digest"


class Saved:
    """`save` and `load` for estimators in the manner of scikit-learn: all parameters and all fitted
    attributes (whose names end with _), as long as they are numbers, strings, arrays, word vectors
    or made of these."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this estimator to a file, which is replaced at once or not at all. A `RandomState`
        becomes None."""
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
        path = Path(path)
        if path.is_symlink():
            path = path.resolve()  # what it points to is replaced, and it stays a link
        if not path.parent.is_dir():
            raise DataMissing(f"there is no folder {path.parent}")
        aside = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with open(aside, "wb") as file:
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The estimator in a file that `save` wrote. A parameter that the file does not have, since
        it is older, takes its default."""
        arrays = arrays_in(Path(path))
        try:
            content = arrays.pop(_DOCUMENT).tobytes()
            document = json.loads(content)
            version, kind = document["format"], document["kind"]
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise DataError(f"{path} is not a saved model: {error!r}") from None
        if version != _FORMAT:
            raise DataError(
                f"{path} has format {version}, and only {_FORMAT} can be read: update Tradewind"
            )
        if kind != cls.__name__:
            raise DataError(f"{path} holds a {kind}: load it with {kind}.load")
        if _DIGEST not in arrays or arrays.pop(_DIGEST).tobytes() != _digest(content):
            raise DataError(f"{path} is damaged: it was changed since it was saved")
        model = cls()
        try:
            state = {name: _decode(value, arrays) for name, value in document["state"].items()}
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise DataError(f"{path} is damaged: {error!r}") from None
        for name in state:
            if name not in vars(model) and not _is_fitted(name):
                raise DataError(
                    f"{path} has {name!r:.60}, which is not of a {kind}: update Tradewind"
                )
        vars(model).update(state)
        return model


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _encode(name: str, value: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value as JSON; an array goes to `arrays`, and its name there is the JSON."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case np.generic() if isinstance(plain := value.item(), (bool, int, float)):
            return plain
        case np.ndarray() if isinstance(value, np.ma.MaskedArray):
            pass  # its mask would be lost
        case np.ndarray() if value.dtype.kind in "biufcSUmM":
            # one that several have, as given vectors and those of the fit, is written once
            same = (key for key, array in arrays.items() if array is value)
            key = next(same, f"a{len(arrays)}")
            arrays[key] = value
            return {"array": key}
        case np.ndarray() if value.dtype.kind in "OT":  # labels from a data frame are objects
            items = [_encode(name, item, arrays) for item in value.ravel().tolist()]
            return {"objects": [list(value.shape), items]}
        case WordVectors():
            # not as an array of strings, which would lose a \0 at their end
            return {"vectors": [list(value.words), _encode(name, value.vectors, arrays)]}
        case np.random.RandomState():
            return None  # of use to another fit alone
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
            for i, item in enumerate(items):  # one by one, since an item may be a row itself
                array[i] = _decode(item, arrays)
            return array.reshape(shape)
        case "vectors":
            words, vectors = content[0], _decode(content[1], arrays)
            vectors.setflags(write=False)  # and so not copied
            return WordVectors(tuple(words), vectors)
        case "list":
            return [_decode(item, arrays) for item in content]
        case "tuple":
            return tuple(_decode(item, arrays) for item in content)
        case "dict":
            return {_decode(key, arrays): _decode(item, arrays) for key, item in content}
    raise ValueError(f"the unknown form {tag!r}")
