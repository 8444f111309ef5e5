"""Keeping leases: the thread that tells a log that its driver is alive."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tradewind.errors import StorageError
from tradewind.log.log import Log


class Heart:
    """A thread that renews the leases of the trials that `held()` gives, three times in the life
    of each."""

    def __init__(self, log: Log, held: Callable[[], list[int]], lease: float) -> None:
        self._log, self._held, self._lease = log, held, lease
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="tradewind leases", daemon=True)

    def __enter__(self) -> Heart:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(min(self._lease / 3, 3600.0)):
            held = self._held()
            try:
                if held:
                    self._log.beat(held, self._lease)
            except StorageError:  # the next beat may come through; the loop hears of it too
                continue
