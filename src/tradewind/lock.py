"""A lock for what is copied and pickled."""

from __future__ import annotations

import os
import threading


class Lock:
    """A lock that one thread may take several times. A copy of it, pickled or not, is a new one,
    so that what has a lock can be copied."""

    def __init__(self) -> None:
        self._lock, self._pid = threading.RLock(), os.getpid()

    def __enter__(self) -> None:
        if self._pid != os.getpid():  # a thread of the parent may have held it when this forked
            self._lock, self._pid = threading.RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()
