"""Small logs for the tests of what is made of them."""

from __future__ import annotations

import tradewind as tw
from tradewind.events import Event, Finished, Proposed
from tradewind.history import History
from tradewind.record import Record
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


def record(*events: Event, seed: int = 0, maximize: bool = True) -> Record:
    made = Record(SPACE, seed=seed, maximize=maximize)
    made.apply(events)
    return made


def history(*events: Event, number: int = 99, maximize: bool = True) -> History:
    return record(*events, maximize=maximize).history(number)
