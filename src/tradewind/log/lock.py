"""A lock for objects that are copied, pickled and inherited by forked processes."""

from __future__ import annotations

import os
import weakref
from _thread import RLock


class Lock(RLock):  # type: ignore[misc]  # only typeshed says that it is final
    """A reentrant lock. A copy of it, pickled or not, is a new lock. A forked process finds it
    free, even if another thread of the parent held it."""

    def __init__(self) -> None:
        _locks.add(self)

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _free_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
