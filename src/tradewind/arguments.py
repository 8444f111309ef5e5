"""What users pass to a study, checked: each function gives what was meant or says what is wrong."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from tradewind import recipes
from tradewind.goals import Goal
from tradewind.space import Space
from tradewind.strategies.strategy import Strategy

T = TypeVar("T")


def goal(given: Goal) -> Goal:
    if not _offers(given, "cost_scale", "score", "settle", "utility"):
        raise TypeError(f"a goal such as Quality() or Tradeoff(alpha=0.3) is needed, got {given!r}")
    return given


def strategy(given: Strategy | str) -> Strategy:
    if isinstance(given, str):
        named: dict[str, Callable[[], Strategy]] = {
            "auto": recipes.auto,
            "random": recipes.random_search,
        }
        return named[one_of("strategy", given, tuple(named))]()
    if not _offers(given, "propose", "recommend", "settle"):
        raise TypeError(
            "a strategy is 'auto', 'random' or an object with propose(), recommend() and settle(), "
            f"but got {given!r}"
        )
    return given


def suited(by: Strategy, space: Space) -> Strategy:
    """The strategy, if it can search this space."""
    suits = getattr(by, "suits", None)
    if suits is not None:
        suits(space)
    return by


def fraction(what: str, given: float | None) -> float | None:
    item = given.item() if isinstance(given, np.generic) else given
    if item is None:
        return None
    if isinstance(item, bool) or not isinstance(item, (int, float)) or not 0 < item <= 1:
        raise ValueError(f"{what} must be a fraction in (0, 1], but got {given!r}")
    return float(item)


def _offers(thing: object, *methods: str) -> bool:
    """Whether it is an object with these methods; a class is not, though it has them too."""
    return not isinstance(thing, type) and all(callable(getattr(thing, m, None)) for m in methods)


def seed(given: int | None) -> int:
    if given is None:
        return secrets.randbits(31)
    item = given.item() if isinstance(given, np.generic) else given
    if isinstance(item, bool) or not isinstance(item, int) or item < 0:
        raise ValueError(f"seed must be an integer ≥ 0, but got {given!r}")
    return item


def one_of(what: str, given: Any, choices: tuple[str, ...]) -> Any:
    if not isinstance(given, str) or given not in choices:
        named = " or ".join(map(repr, choices))
        raise ValueError(f"{what} is {named}, but got {given!r}")
    return given


def limit(what: str, given: float | None) -> float | None:
    """None, like infinity, is no limit."""
    number = math.inf if given is None else _not_negative(what, given)
    return None if math.isinf(number) else number


def positive_limit(what: str, given: float | None) -> float | None:
    number = limit(what, given)
    return None if number is None else positive(what, number)


def positive(what: str, given: float) -> float:
    number = _not_negative(what, given)
    if not 0 < number < math.inf:
        raise ValueError(f"{what} must be a number > 0, but got {given!r}")
    return number


def count(what: str, given: int | None) -> int | None:
    if given is None:
        return None
    number = _not_negative(what, given)
    if math.isinf(number) or number != int(number):
        raise ValueError(f"{what} must be a whole number, but got {given!r}")
    return int(number)


def _not_negative(what: str, given: float) -> float:
    item = given.item() if isinstance(given, np.generic) else given
    if isinstance(item, bool) or not isinstance(item, (int, float)) or not item >= 0:
        raise ValueError(f"{what} must be a number ≥ 0, but got {given!r}")
    return item


def exceptions(
    catch: type[BaseException] | tuple[type[BaseException], ...],
) -> tuple[type[BaseException], ...]:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"catch is an exception class or a tuple of them, but got {catch!r}")
    return kinds


def functions(callbacks: Iterable[Callable[..., T]]) -> tuple[Callable[..., T], ...]:
    called = tuple(callbacks) if isinstance(callbacks, Iterable) else (callbacks,)
    if not isinstance(callbacks, Iterable) or not all(map(callable, called)):
        raise TypeError(f"callbacks are functions of (study, trial) in a list, got {callbacks!r}")
    return called
