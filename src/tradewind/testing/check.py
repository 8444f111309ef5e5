"""A rule that every implementation of a seam keeps, and how a broken one is reported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Check(Generic[T]):
    """One rule of a contract. Call it with a function that makes the object to be checked.

    If the rule is broken, it raises an AssertionError that begins with the rule.

    >>> for check in tw.testing.GOAL:
    ...     check(lambda: tw.Quality())
    """

    name: str
    rule: str
    run: Callable[[T], None] = field(repr=False)

    def __call__(self, make: Callable[[], T]) -> None:
        try:
            self.run(make())
        except Exception as error:
            found = str(error) if isinstance(error, AssertionError) else repr(error)
            raise AssertionError(f"{self.rule} But: {found.strip()}") from error

    def __str__(self) -> str:
        return self.name


def contract(*rules: Callable[[T], None]) -> tuple[Check[T], ...]:
    """The checks of these functions. The docstring of each is its rule."""
    return tuple(
        Check(rule.__name__, " ".join((inspect.getdoc(rule) or "").split()), rule) for rule in rules
    )


def check_all(checks: Iterable[Check[T]], make: Callable[[], T]) -> None:
    for check in checks:
        check(make)


def must(holds: object, otherwise: str) -> None:
    """What `assert` does, but also under `python -O`."""
    if not holds:
        raise AssertionError(otherwise)
