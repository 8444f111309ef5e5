"""The plan of a study, its goal and its strategy, as plain data for the log.

One closed table lists the types that can be stored: decoding creates objects of these types and
calls nothing else. A part that is not in the table, such as a user's own strategy, is stored by its
name only, and the user must supply it again when loading the study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from tradewind.amounts import GivenAmount
from tradewind.errors import FormatError, StorageError
from tradewind.goals import BestUnder, CheapestWithin, Frontier, Goal, Knee, Quality, Tradeoff
from tradewind.log.events import Configured, PlainData
from tradewind.log.state import StudyState
from tradewind.optimizer.acquisition.ei import EI
from tradewind.optimizer.acquisition.mgfi import MGFI
from tradewind.optimizer.acquisition.pi import PI
from tradewind.optimizer.acquisition.schedules import Exponential, Linear, LogNormal
from tradewind.optimizer.acquisition.tradeoff import Improvement, Published
from tradewind.optimizer.acquisition.ucb import UCB
from tradewind.optimizer.maximizers.evolution import MIES
from tradewind.optimizer.maximizers.local import LocalSearch
from tradewind.optimizer.strategies.bayes import Bayes
from tradewind.optimizer.strategies.design import Design, Sampling
from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.optimizer.strategies.random_search import RandomSearch
from tradewind.optimizer.strategies.staged import Staged
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.optimizer.strategies.worth import Output
from tradewind.optimizer.surrogates.forest import RandomForest
from tradewind.optimizer.surrogates.gp import GaussianProcess
from tradewind.plain import shown

_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Quality, Tradeoff, Frontier, BestUnder, CheapestWithin, Knee),
        *(Bayes, MultiFidelity, RandomSearch, Staged, Design, Sampling, Output),
        *(GaussianProcess, RandomForest),
        *(EI, PI, MGFI, UCB, Linear, Exponential, LogNormal),
        *(Improvement, Published),
        *(LocalSearch, MIES),
    )
}


def encode(part: object) -> PlainData:
    """A goal, a strategy or a part of one as plain data: `{"type": "Tradeoff", "alpha": 0.3, ...}`,
    or `{"given": "module.Name"}` if its type is not in the table."""
    kind = type(part)
    if _TYPES.get(kind.__name__) is not kind:
        return {"given": f"{kind.__module__}.{kind.__qualname__}"}
    if isinstance(part, Enum):
        return {"type": kind.__name__, "value": part.value}
    assert is_dataclass(part)
    stored = [f.name for f in fields(part) if f.metadata.get("stored", True)]
    return {"type": kind.__name__} | {name: _encode_value(getattr(part, name)) for name in stored}


def _encode_value(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, GivenAmount):
        return value.text
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, tuple) and all(map(_is_number, value)):
        return list(value)
    return encode(value)


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def must_be_supplied(data: Any) -> list[str]:
    """The names of the parts that are not in the data."""
    if not isinstance(data, Mapping):
        return []
    if "given" in data:
        return [str(data["given"])]
    return [name for value in data.values() for name in must_be_supplied(value)]


def decode(data: PlainData) -> Any:
    """The object that `encode` wrote. Every part of it must be in the data."""
    if not isinstance(data, Mapping) or not isinstance(data.get("type"), str):
        raise FormatError(f"a part of a study is stored as {{'type': ...}}, but got {shown(data)}")
    kind = _TYPES.get(data["type"])
    if kind is None:
        raise FormatError(f"this version of Tradewind has no part of type {shown(data['type'])}")
    rest = {name: value for name, value in data.items() if name != "type"}
    try:
        if issubclass(kind, Enum):
            return kind(**rest)
        values = {name: _decode_value(value) for name, value in rest.items()}
        if kind is Bayes and isinstance(values.get("rule"), Published):
            values["acquisition"] = EI()  # version 0.1 ignored any other, and stored it
        if kind is MGFI:
            values.setdefault("spread", 1.0)  # version 0.1 always drew for parallel trials
        if kind is BestUnder:
            values.setdefault("confidence", 0.5)  # version 0.1 had no margin
        if kind is Tradeoff:
            values.setdefault("capped", True)  # version 0.1 knew no other
        _check_numbers(kind, values)
        return kind(**values)
    except (TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"{shown(rest)} cannot be read as {data['type']}: {error}") from error
    except RecursionError:
        raise FormatError("a part of a study is nested too deeply") from None


def _decode_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return decode(value)
    if not isinstance(value, list):
        return value
    if not all(map(_is_number, value)):
        raise TypeError("a list must hold numbers only")
    return tuple(value)


def _check_numbers(kind: type, values: dict[str, Any]) -> None:
    """Not every part checks the type of its numbers and flags itself."""
    for field in fields(kind):
        value, default = values.get(field.name, field.default), field.default
        if value is None and "None" in str(field.type):
            continue
        if type(default) in (int, float) and isinstance(value, (str, bool, type(None))):
            raise TypeError(f"{field.name} must be a number")
        if type(default) is bool and type(value) is not bool:
            raise TypeError(f"{field.name} must be true or false")


def in_words(data: PlainData) -> str:
    """A stored goal or strategy for people."""
    missing = must_be_supplied(data)
    if missing:
        return missing[0]
    part = decode(data)
    return str(part.describe()) if hasattr(part, "describe") else repr(part)


@dataclass(frozen=True)
class Plan:
    """The goal and the strategy that a driver works with, and how the log has them."""

    goal: Goal
    strategy: Strategy
    data: tuple[PlainData, PlainData]

    @classmethod
    def of(cls, goal: Goal, strategy: Strategy) -> Plan:
        if isinstance(goal, Tradeoff) and goal.provisional:  # its reference is given now
            goal = replace(goal, provisional=False)
        return cls(goal, strategy, (encode(goal), encode(strategy)))

    def as_in(self, state: StudyState) -> Plan:
        """The plan that another driver has written to the log. A part that has not changed stays
        the same object, because it may be the user's own."""
        goal, strategy = self.data
        return Plan(
            self.goal if state.goal == goal else _decode_changed(state.goal),
            self.strategy if state.strategy == strategy else _decode_changed(state.strategy),
            (state.goal, state.strategy),
        )

    def with_goal(self, goal: Goal) -> Plan:
        """The plan with another goal, and with the strategy as it is, in the log and here."""
        new = Plan.of(goal, self.strategy)
        return Plan(new.goal, self.strategy, (new.data[0], self.data[1]))

    def change(self, state: StudyState, *, goal: bool, strategy: bool) -> Configured | None:
        """The event that gives the study this `goal`, this `strategy` or both; None if it has
        them."""
        goals = self.data[0] if goal and self.data[0] != state.goal else None
        strategies = self.data[1] if strategy and self.data[1] != state.strategy else None
        return Configured(goals, strategies) if goals or strategies else None


def _decode_changed(data: PlainData) -> Any:
    """A part of a plan that another driver has changed."""
    missing = must_be_supplied(data)
    if missing:
        raise StorageError(
            f"another driver now uses {missing[0]}, which is not stored with the study: "
            "load the study again and supply it"
        )
    return decode(data)
