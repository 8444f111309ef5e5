"""What processes must not share, such as connections: each makes its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

# What a forked process got from its parent is kept: to close it there could end what the parent is
# in the middle of.
_inherited: list[object] = []


class PerProcess(Generic[T]):
    """One `make()` for every process that asks. A pickled copy is a new one, and a fork starts
    anew, even if a thread of the parent held a lock of the old one."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}  # by process

    def get(self) -> T:
        pid = os.getpid()
        made = self._made.get(pid)
        return self._made.setdefault(pid, self._make()) if made is None else made

    def __del__(self) -> None:
        pid = os.getpid()
        _inherited.extend(made for owner, made in self._made.items() if owner != pid)

    def __reduce__(self) -> tuple[type[PerProcess[T]], tuple[Callable[[], T]]]:
        return PerProcess, (self._make,)
