"""Rules that end a search before its limits do."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tradewind.engine.propose import single_threaded
from tradewind.engine.session import Session
from tradewind.log.events import Stopped
from tradewind.optimizer.stopping import StoppingRule

_logger = logging.getLogger("tradewind")


def why_stop(session: Session, rules: Sequence[StoppingRule]) -> str | None:
    """The reason of the first rule that wants to stop, by what the log says now."""
    plan = session.plan
    _, history = session.snapshot(by=plan.goal.by)
    if not len(history.X):
        return None
    goal = plan.strategy.settle(plan.goal, history)
    reasons = (rule.reason(session.state.space, goal, history) for rule in rules)
    with single_threaded():
        return next((reason for reason in reasons if reason is not None), None)


def record_stop(session: Session, reason: str) -> None:
    """Record in the log why this search stops."""
    event = Stopped(reason, session.clock())
    session.record(lambda state: (None, [event]))
    _logger.info("the search stops: %s", reason)
