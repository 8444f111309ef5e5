"""Values that processes must not share, such as connections."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """Holds a `value` made by `make()`. A forked process and a copy have a new one."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self.value = make()
        _all.add(self)

    def renew(self) -> None:
        """Make a new value in a forked process."""
        # The parent's value is kept: closing a connection here would end the parent's transaction.
        _inherited.append(self.value)
        self.value = self._make()

    def __reduce__(self) -> tuple[type[PerProcess[T]], tuple[Callable[[], T]]]:
        return PerProcess, (self._make,)


_all: weakref.WeakSet[PerProcess[Any]] = weakref.WeakSet()
_inherited: list[object] = []


def _renew_all() -> None:
    for owner in _all:
        owner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
