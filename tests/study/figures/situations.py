"""Studies in all the situations in which somebody may look at them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tradewind as tw
from tests.studies import CONDITIONAL, MIXED, SPACE, create, told
from tradewind.log.events import Claimed, Event, Failed, Finished, Proposed, Started
from tradewind.space import Space
from tradewind.types import Origin, Outcome, Usage

HOSTILE = (
    "<script>alert(1)</script>",
    "</style>",
    "$x^2$ \\$ $",
    "a\nb\u2028c",
    "\ud800",
    "名前",
    "=1+1",
    '"; drop',
)


def ran(
    space: Space = MIXED,
    n: int = 40,
    *,
    folds: int = 0,
    workers: int = 3,
    failing: float = 0.1,
    error: str = "Traceback\nRuntimeError: out of memory: {} MiB",
    **options: object,
) -> tw.Study:
    """A study with n trials that ran on some workers, with times, costs and some failures."""
    study = create(space, **options)
    rng = np.random.default_rng(n)
    free, events = np.full(workers, 1.7e9), list[Event]()
    rows = space.sample(n, rng=rng)
    for i, (config, row) in enumerate(zip(space.decode(rows), rows, strict=True)):
        size = 1.0 if space.size_name is None else float(str(config[space.size_name]))
        value = 0.6 + 0.2 * float(np.nanmean(row)) + 0.1 * size + 0.01 * rng.normal()
        cost = float(np.exp(2.0 * np.nan_to_num(row[0]) + 0.2 * rng.normal())) * size
        worker = int(free.argmin())
        start = free[worker] + 0.1
        end = free[worker] = start + cost * max(folds, 1)
        events += [
            Claimed(i, "host:1:ab"),
            Proposed(i, config, Origin.MODEL, 4 * i, expected_cost=1.2 * cost if i > 4 else None),
            Started(i, "host:1:ab", False, start),
        ]
        scores = tuple((value + 0.02 * rng.normal(size=folds)).tolist())
        outcome = Outcome(value, cost, scores, trainings=max(folds, 1), costs={"money": 2 * cost})
        usage = Usage(cost * max(folds, 1), cost, memory=1e6 * (1 + i))
        fails = rng.random() < failing
        failed = Failed(i, error.format(i), cost, at=end)
        events.append(failed if fails else Finished(i, outcome, usage, at=end))
    study._session.log.append(events)
    return study


def _only_failed() -> tw.Study:
    study = create()
    for _ in range(3):
        study.fail(study.ask(), "no")
    return study


def _open() -> tw.Study:
    """Trials that wait and run, and one that was abandoned."""
    study = create()
    study.enqueue({"x": 0.5, "k": 3})
    study.abandon(study.ask(), "enough")
    study.ask()
    return study


def _repeats() -> tw.Study:
    study = create(goal=tw.Tradeoff(0.1))
    for i in range(24):
        study.add({"x": (i % 6) / 6, "k": 3}, 0.5 + 0.01 * (i % 5), cost=1.0 + i % 6)
    return study


def _stages() -> tw.Study:
    return ran(SPACE, 12, strategy=tw.recipes.wang2015(fractions=(0.3, 1.0), trials=6, k=2))


def _sizes_told() -> tw.Study:
    """Training sizes that no parameter says."""
    study = create()
    for i in range(12):
        study.add(
            {"x": (i % 4) / 4, "k": 1 + i % 4},
            0.1 * i,
            cost=1.0 + i,
            train_size=0.5 if i < 6 else 1.0,
        )
    return study


def _hostile_space() -> Space:
    named = {name: tw.Categorical([*HOSTILE, None, True, 1]) for name in HOSTILE}
    return tw.Space({**named, "x": tw.Float(0, 1)})


def _huge_space() -> Space:
    return tw.Space(
        {
            "a": tw.Float(-1e300, 1e300),
            "b": tw.Float(1e-300, 1e300, log=True),
            "c": tw.Int(2**60, 2**60 + 1000),
            "d": tw.Ordinal(list(range(300))),
            "e": tw.Categorical([f"choice {i}" for i in range(100)]),
        }
    )


def _extreme(values: list[float], costs: list[float]) -> tw.Study:
    study = create(_huge_space(), goal=tw.Tradeoff(0.1))
    rows = study.space.sample(len(values), rng=np.random.default_rng(0))
    for config, value, cost in zip(study.space.decode(rows), values, costs, strict=True):
        study.add(config, value, cost=cost)
    return study


def _two_days() -> tw.Study:
    """A search that was continued on the next day, by another process on a GPU."""
    study = create()
    events: list[Event] = []
    for i in range(8):
        driver, start = f"host:{1 + i // 4}:x", 1.7e9 + 10.0 * i + 86400.0 * (i // 4)
        config = {"x": i / 8, "k": 1 + i}
        events += [
            Claimed(i, driver),
            Proposed(i, config, Origin.DESIGN, 4 * i),
            Started(i, driver, False, start),
            Finished(i, Outcome(0.1 * i, 9.0), Usage(9.0, device="cuda:0"), at=start + 9.0),
        ]
    study._session.log.append(events)
    return study


SITUATIONS: dict[str, Callable[[], tw.Study]] = {
    "empty": create,
    "only failed": _only_failed,
    "open": _open,
    "one finished": lambda: told((0.5, 2.0)),
    "one without a cost": lambda: told((0.5, None)),
    "no costs": lambda: told(*((0.1 * i, None) for i in range(12))),
    "a cost is missing": lambda: told((0.5, 1.0), (0.7, None), (0.6, 3.0)),
    "all the same": lambda: told(*((0.5, 1.0) for _ in range(8))),
    "free": lambda: told(*((0.1 * i, 0.0) for i in range(8))),
    "quality": lambda: ran(),
    "minimize": lambda: ran(direction="minimize", goal=tw.Tradeoff(0.2)),
    "frontier": lambda: ran(goal=tw.Frontier()),
    "knee": lambda: ran(goal=tw.Knee()),
    "limit": lambda: ran(goal=tw.BestUnder(2.0)),
    "limit too low": lambda: ran(goal=tw.BestUnder(1e-9)),
    "cheapest": lambda: ran(goal=tw.CheapestWithin("1%")),
    "capped": lambda: ran(goal=tw.Tradeoff(0.2, 2.0, capped=True)),
    "folds": lambda: ran(folds=3, goal=tw.Tradeoff(0.1)),
    "repeats": _repeats,
    "conditional": lambda: ran(CONDITIONAL),
    "stages": _stages,
    "sizes": _sizes_told,
    "named cost": lambda: ran(goal=tw.Tradeoff(0.1, by="money")),
    "study of money": lambda: ran(cost="money"),
    "memory": lambda: ran(cost="memory", goal=tw.Tradeoff(0.1)),
    "cpu": lambda: ran(goal=tw.Tradeoff(0.1, by="cpu")),
    "unknown cost": lambda: ran(goal=tw.Tradeoff(0.1, by="nothing")),
    "two days": _two_days,
    "hostile": lambda: ran(_hostile_space(), error="\n".join(HOSTILE), name="<b>x</b>"),
    "huge": lambda: _extreme([1e299 * i for i in range(-6, 6)], [1e298 * i for i in range(1, 13)]),
    "tiny": lambda: _extreme([1e-300 * i for i in range(12)], [1e-300 * i for i in range(1, 13)]),
    "both": lambda: _extreme([10.0 ** (50 * i - 300) for i in range(12)], [1e-9, 1e9] * 6),
}
