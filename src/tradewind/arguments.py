"""What users pass to a study, checked: each function gives what was meant or says what is wrong."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable
from typing import TypeVar

from tradewind import recipes
from tradewind.checks import not_negative, one_of, or_none, real, unpacked, whole
from tradewind.goals import Goal
from tradewind.space import Space
from tradewind.strategies.strategy import Strategy

T = TypeVar("T")


def goal(given: Goal) -> Goal:
    if not _offers(given, "cost_scale", "score", "settle", "utility"):
        raise TypeError(
            f"a goal such as Quality() or Tradeoff(alpha=0.3) is needed, but got {given!r}"
        )
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


def _offers(thing: object, *methods: str) -> bool:
    """Whether it is an object with these methods; a class is not, though it has them too."""
    return not isinstance(thing, type) and all(callable(getattr(thing, m, None)) for m in methods)


def seed(given: int | None) -> int:
    return secrets.randbits(31) if given is None else whole("seed", given)


def limit(
    what: str, given: float | None, check: Callable[[str, float], float] = not_negative
) -> float | None:
    """None, like infinity, is no limit."""
    return None if given is None or real(given) == math.inf else check(what, given)


def count(what: str, given: int | None) -> int | None:
    """None, or a whole number; 5.0 is one, too."""
    number = unpacked(given)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return or_none(whole, what, number)


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
        raise TypeError(
            f"callbacks are functions of (study, trial) in a list, but got {callbacks!r}"
        )
    return called
