"""Renewing leases: how a driver shows that it is still alive."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tradewind.engine.session import Session
from tradewind.errors import StorageError


@contextmanager
def keep_leases(session: Session, seconds: float) -> Iterator[None]:
    """Renew the leases of `seconds` that a session holds, three times within that time, in a
    background thread."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(min(seconds / 3, 3600.0)):
            held = [number for number, each in list(session.held.items()) if each == seconds]
            with suppress(StorageError):  # the next attempt may succeed; the loop notices, too
                if held:
                    session.log.beat(held, seconds)

    thread = threading.Thread(target=renew, name="tradewind leases", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
