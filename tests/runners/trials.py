"""Trials to submit, and the ways to wait for them."""

from __future__ import annotations

import time
from typing import Any

from tradewind.runners.runner import Done, TrialLimits, Workers
from tradewind.types import Origin, State, Trial

NO_LIMITS = TrialLimits()
PATIENCE = 60.0  # seconds after which a test gives up; nothing should come near it


def trial(number: int = 0, **fields: Any) -> Trial:
    params = fields.pop("params", {"x": number / 10})
    return Trial(number, params, State.RUNNING, Origin.DESIGN, seed=1000 + number, **fields)


def all_of(workers: Workers, count: int) -> list[Done]:
    """The next `count` trials that come back; more, or none for a long time, is a failure."""
    done: list[Done] = []
    give_up = time.monotonic() + PATIENCE
    while len(done) < count:
        assert time.monotonic() < give_up, f"{len(done)} of {count} trials came back: {done}"
        done += workers.wait(1.0)
    assert len(done) == count
    return done


def the_one(workers: Workers, **fields: Any) -> Done:
    """What becomes of one trial."""
    within = fields.pop("within", None)
    workers.submit(trial(**fields), within=within)
    (done,) = all_of(workers, 1)
    return done
