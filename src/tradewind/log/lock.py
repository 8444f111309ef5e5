"""A lock for objects that are copied, pickled and inherited by forked processes, and for programs
in which an exception may arrive anywhere."""

from __future__ import annotations

import os
import weakref
from _thread import RLock
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Lock(RLock):  # type: ignore[misc]  # only typeshed says that it is final
    """A reentrant lock. A copy of it, pickled or not, is a new lock. A forked process finds it
    free, even if another thread of the parent held it."""

    _is_owned: Callable[[], bool]  # by this thread; typeshed does not know it

    def __init__(self) -> None:
        _locks.add(self)

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()

    def hold(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call `work` while this thread holds the lock.

        Ctrl-C raises an exception between any two steps of a program. Wherever it arrives, the lock
        is free afterwards. A context manager cannot promise that, because it may arrive after the
        lock is taken and before the `with` block begins, or before the block's end frees it."""
        if self._is_owned():
            return work(*args, **options)  # the outer call frees it
        try:
            try:
                self.acquire()
                return work(*args, **options)
            finally:
                self._free()
        finally:  # in case that the exception arrives just before the first call has freed it
            self._free()

    def _free(self) -> None:
        if self._is_owned():
            self.release()


def locked(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], T]:
    """A method that holds the `_lock` of its object."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **options: P.kwargs) -> T:
        lock: Lock = self._lock  # type: ignore[attr-defined]
        return lock.hold(method, self, *args, **options)

    return call


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _free_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
