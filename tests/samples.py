"""Events for tests: at least one of each kind."""

from __future__ import annotations

from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Confirming,
    Created,
    Enqueued,
    Event,
    Failed,
    FinalTested,
    FinalTrained,
    Finished,
    Paused,
    Proposed,
    Requeued,
    Resumed,
    Spent,
    Started,
    Stopped,
    Unknown,
)
from tradewind.types import Origin, Outcome, Usage

FIRST = Created(
    space={"format": 1, "parameters": {"x": {"type": "float", "low": 0.0, "high": 1.0}}},
    goal={"type": "quality"},
    strategy={"type": "bayes", "options": {"n": [1, 2.5, None, True]}},
    maximize=True,
    seed=2**80,
    at=1.7e9,
    metric="accuracy",
)
LATER: list[Event] = [
    Configured(goal={"type": "tradeoff", "alpha": 0.5}),
    Configured(),
    Configured(metric="λ"),
    Enqueued({"x": 0.5, "kernel": "poly", "none": None, "flag": True}),
    Claimed(0, enqueued=0),
    Claimed(1, driver="λ \x00 \ud800"),
    Proposed(0, {"x": 1, "y": 1.0, "z": True}, Origin.ENQUEUED, seen=1),
    Proposed(1, {"x": 0.25}, Origin.MODEL, seen=4, handover={"quality": {"theta": [0.1, -2.0]}}),
    Proposed(2, {"x": 0.1}, Origin.DESIGN, seen=4, max_cost=1e-300, expected_cost=2.5),
    Started(0, driver="a", leased=True, at=1.7e9),
    Started(1),
    Stopped("nothing is left to gain", at=1.7e9),
    Stopped("enough"),
    Paused("the data is being replaced", at=1.7e9),
    Paused(),
    Resumed(at=1.7e9),
    Resumed(),
    Finished(0, Outcome(0.9, 12.5, (0.8, 1.0)), Usage(13.0, 12.0, 2.5, "cuda:0"), at=1.7e9),
    Finished(1, Outcome(-1e300)),
    Failed(
        2, "Traceback: λ ≤ \x00\n", cost=0.0, penalize=False, usage=Usage(1.0, data="y: 3 rows")
    ),
    Failed(3, ""),
    Abandoned(4, "stopped", cost=1.0, at=1.7e9),
    Spent(4, 2.5, at=1.7e9),
    Spent(4, 0.0),
    Requeued(5, "its worker died"),
    Requeued(5, "its machine was taken away", retry=False),
    Confirming((0, 1), 2, {"type": "quality"}, 6, at=1.7e9),
    FinalTrained(0, 12.5),
    FinalTrained(0),
    FinalTested(0, 0.9, {"f1": 0.8, "by class": [0.5, None]}, at=1.7e9),
    Unknown({"format": 1, "event": "from a later version", "what": [{"a": 1}, None, 1.5]}),
]
