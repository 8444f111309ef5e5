"""Small logs, and the states and histories they imply."""

from __future__ import annotations

import tradewind as tw
from tradewind.engine.propose import Proposer
from tradewind.log.events import Event, Finished, Proposed
from tradewind.log.state import StudyState
from tradewind.optimizer.history import History
from tradewind.types import Origin, Outcome

SPACE = tw.Space(
    {
        "x": tw.Float(0, 10),
        "kernel": tw.Categorical(["linear", "poly"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "size": tw.TrainSize([0.5, 1.0]),
    }
)


def proposed(number: int, x: float = 5.0, origin: Origin = Origin.DESIGN, **extra: object) -> Event:
    params = {"x": x, "kernel": "linear", "size": 0.5}
    return Proposed(number, params, origin, **{"seen": 0, **extra})  # type: ignore[arg-type]


def finished(
    number: int, value: float, cost: float | None = 1.0, folds: tuple[float, ...] = ()
) -> Event:
    return Finished(number, Outcome(value, cost, folds))


def state_of(*events: Event, seed: int = 0, maximize: bool = True) -> StudyState:
    state = StudyState(SPACE, seed=seed, maximize=maximize)
    state.apply(events)
    return state


def history(*events: Event, number: int = 99, maximize: bool = True) -> History:
    return Proposer(state_of(*events, maximize=maximize)).history(number)
