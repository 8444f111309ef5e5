"""Single arguments, checked: each function gives what was meant as a plain Python value, or says
what is wrong by a ValueError, whatever the type of what was given.

Numbers of NumPy and its like are numbers; True and False are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")


def unpacked(given: Any) -> Any:
    """NumPy scalars as plain Python values; everything else as it is."""
    item = getattr(given, "item", None)
    return item() if callable(item) and getattr(given, "shape", None) == () else given


def is_whole(given: Any) -> bool:
    number = unpacked(given)
    return isinstance(number, Integral) and not isinstance(number, bool)


def real(given: Any) -> float:
    """A number as a float; NaN, which is in no range, for everything else."""
    number = unpacked(given)
    if isinstance(number, bool) or not isinstance(number, Real):
        return math.nan
    try:
        return float(number)
    except OverflowError:  # an integer beyond the floats
        return math.nan


def whole(name: str, given: Any, least: int = 0, most: int | None = None) -> int:
    number = unpacked(given)
    if not is_whole(number) or number < least or (most is not None and number > most):
        rule = f"≥ {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {rule}, but got {given!r}")
    return int(number)


def positive(name: str, given: Any) -> float:
    return _checked(name, given, "> 0", lambda number: 0 < number < math.inf)


def not_negative(name: str, given: Any) -> float:
    return _checked(name, given, "≥ 0", lambda number: 0 <= number < math.inf)


def fraction(name: str, given: Any) -> float:
    """A part that is not nothing."""
    return _checked(name, given, "in (0, 1]", lambda number: 0 < number <= 1)


def share(name: str, given: Any) -> float:
    """A part that is not everything."""
    return _checked(name, given, "in [0, 1)", lambda number: 0 <= number < 1)


def _checked(name: str, given: Any, rule: str, fits: Callable[[float], bool]) -> float:
    number = real(given)
    if not fits(number):
        raise ValueError(f"{name} must be a number {rule}, but got {given!r}")
    return number


def one_of(name: str, given: T, choices: Collection[str]) -> T:
    if not isinstance(given, str) or given not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {listed}, but got {given!r}")
    return given


def flag(name: str, given: Any) -> bool:
    value = unpacked(given)
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, but got {given!r}")
    return value


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn takes as `random_state`."""
    if isinstance(unpacked(random_state), Integral):
        return whole("random_state", random_state, 0, 2**63 - 1)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31))


def or_none(check: Callable[..., T], name: str, given: Any, *bounds: int) -> T | None:
    """None, or what the check gives."""
    return None if given is None else check(name, given, *bounds)
