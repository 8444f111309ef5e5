"""Renewing a lease: how somebody with a loop of their own shows that they are still alive. For a
search, `Lookout` does it (lookout.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.engine.session import Session
from tradewind.errors import TrialError


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
