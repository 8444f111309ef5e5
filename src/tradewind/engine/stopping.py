"""Rules that end a search before its limits do."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.engine.propose import single_threaded
from tradewind.engine.session import Session
from tradewind.log.events import Stopped
from tradewind.optimizer.belief import with_spread
from tradewind.optimizer.stopping import StoppingRule
from tradewind.output import logger as _logger
from tradewind.plain import shown


def why_stop(session: Session, rules: Sequence[StoppingRule]) -> str | None:
    """The reason of the first rule that wants to stop, by what the log says now."""
    plan = session.plan
    history = session.history(by=plan.goal.by)
    if not len(history.X):
        return None
    goal = plan.strategy.settle(plan.goal, history)
    trials = list(session.state.trials.values())  # another thread may add to them
    goal = single_threaded(with_spread, session.state.space, goal, history, trials)
    for rule in rules:
        reason: object = single_threaded(rule.reason, session.state.space, goal, history)
        if isinstance(reason, str):
            return str.__str__(reason)
        if reason is not None:
            raise TypeError(
                "a stopping rule must return why to stop, as text, or None, but "
                f"{shown(rule)} returned {shown(reason)}"
            )
    return None


def record_stop(session: Session, reason: str) -> None:
    """Record in the log why this search stops."""
    event = Stopped(reason, session.clock())
    session.record(lambda state: (None, [event]))
    _logger.info("the search stops: %s", reason)
