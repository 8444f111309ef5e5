"""Renewing leases: how a driver shows that it is still alive."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from tradewind.engine.session import Session
from tradewind.errors import StorageError, TrialError


def renew_lease(
    session: Session,
    number: int,
    seconds: float,
    *,
    driver: str | None = None,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Keep a leased trial for so many seconds from now, if `driver` still holds it. If `params` are
    given, the trial must have them."""
    state = session.read_state()
    trial = state.find(number, params)
    if number not in state.leased:
        raise TrialError(f"trial {number} has no lease to renew: it is {trial.state.value}")
    if driver is not None and state.holder.get(number) != driver:
        raise TrialError(f"another driver holds trial {number} by now")
    session.log.beat([number], seconds)


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
