"""Goals and strategies as plain data, for the log.

One closed table says which types there are: reading makes objects of these and calls nothing else.
What is not in the table, such as a strategy of the user's own, is written by its name and must be
given again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from tradewind.acquisition import EI, MGFI, PI, UCB, Exponential, Linear, LogNormal
from tradewind.errors import FormatError
from tradewind.events import Data
from tradewind.goals import Quality, Tradeoff
from tradewind.maximizers.evolution import MIES
from tradewind.maximizers.local import LocalSearch
from tradewind.strategies.bayes import Bayes
from tradewind.strategies.design import Design, RandomSearch, Sampling
from tradewind.strategies.fidelity import MultiFidelity
from tradewind.strategies.models import Output
from tradewind.strategies.staged import Staged
from tradewind.surrogates.forest import RandomForest
from tradewind.surrogates.gp import GaussianProcess
from tradewind.tradeoff import Improvement, Published

_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Quality, Tradeoff),
        *(Bayes, MultiFidelity, RandomSearch, Staged, Design, Sampling, Output),
        *(GaussianProcess, RandomForest),
        *(EI, PI, MGFI, UCB, Linear, Exponential, LogNormal),
        *(Improvement, Published),
        *(LocalSearch, MIES),
    )
}


def written(part: object) -> Data:
    """A goal, a strategy or a part of one as plain data: `{"type": "Tradeoff", "alpha": 0.3, ...}`,
    or `{"given": "module.Name"}` where it is not of the table."""
    kind = type(part)
    if _TYPES.get(kind.__name__) is not kind:
        return {"given": f"{kind.__module__}.{kind.__qualname__}"}
    if isinstance(part, Enum):
        return {"type": kind.__name__, "value": part.value}
    assert is_dataclass(part)
    return {"type": kind.__name__} | {f.name: _plain(getattr(part, f.name)) for f in fields(part)}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple) and all(map(_is_number, value)):
        return list(value)
    return written(value)


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def given_again(data: Any) -> list[str]:
    """The names of the parts that are not in the data and must be given again."""
    if not isinstance(data, Mapping):
        return []
    if "given" in data:
        return [str(data["given"])]
    return [name for value in data.values() for name in given_again(value)]


def read(data: Data) -> Any:
    """The object that `written` wrote; nothing in it may have to be given again."""
    if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
        raise FormatError(f"a part of a study is written as {{'type': ...}}, but got {data!r}")
    kind = _TYPES.get(data["type"])
    if kind is None:
        raise FormatError(f"no goal or strategy has a part of type {data['type']!r}")
    rest = {name: value for name, value in data.items() if name != "type"}
    try:
        if issubclass(kind, Enum):
            return kind(**rest)
        made = {name: _part(value) for name, value in rest.items()}
        _check_numbers(kind, made)
        return kind(**made)
    except (TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"a {data['type']} cannot be made of {rest!r}: {error}") from error
    except RecursionError:
        raise FormatError("a part of a study is nested without end") from None


def _part(value: Any) -> Any:
    if isinstance(value, Mapping):
        return read(value)
    if not isinstance(value, list):
        return value
    if not all(map(_is_number, value)):
        raise TypeError("a list holds numbers and nothing else")
    return tuple(value)


def _check_numbers(kind: type, made: dict[str, Any]) -> None:
    """Parts leave it to their users to give numbers where they take numbers."""
    for field in fields(kind):
        value, default = made.get(field.name, field.default), field.default
        if value is None and "None" in str(field.type):
            continue
        if type(default) in (int, float) and isinstance(value, (str, bool, type(None))):
            raise TypeError(f"{field.name} must be a number")
