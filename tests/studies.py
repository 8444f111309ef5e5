"""Small studies, sessions and stand-ins for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import tradewind as tw
from tradewind.engine import plan
from tradewind.engine.session import Session
from tradewind.errors import StorageError
from tradewind.goals import Goal
from tradewind.log.events import (
    Abandoned,
    Claimed,
    Created,
    Event,
    Failed,
    Finished,
    Proposed,
    Requeued,
)
from tradewind.log.log import Log
from tradewind.log.memory import MemoryLog
from tradewind.log.state import StudyState
from tradewind.runners.run import Objective
from tradewind.runners.runner import Done, Result, TrialLimits, Workers
from tradewind.strategies import Bayes, Design, RandomSearch, Strategy
from tradewind.types import State, Trial

T = TypeVar("T")

ROOT = Path(__file__).parents[1]

SPACE = tw.Space({"x": tw.Float(0, 1), "k": tw.Int(1, 9)})
CONDITIONAL = tw.Space(
    {
        "kernel": tw.Categorical(["linear", "poly", None]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "train_size": tw.TrainSize([0.5, 1.0]),
    }
)
MIXED = tw.Space(
    {
        "C": tw.Float(1e-4, 1e3, log=True),
        "kernel": tw.Categorical(["linear", "poly", "rbf"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "width": tw.Ordinal([32, 64, 128]),
        "momentum": tw.Float(0, 1),
        "train_size": tw.TrainSize(),
    }
)


# ---- studies ----


def create(space: tw.Space = SPACE, **options: Any) -> tw.Study:
    return tw.create_study(space, **{"seed": 0, "strategy": "random", **options})


def quick(**options: Any) -> tw.Study:
    """A study whose model takes over after four trials."""
    return create(strategy=Bayes(design=Design(4)), **options)


def score(trial: Any) -> dict[str, float]:
    x, k = trial.params["x"], trial.params["k"]
    return {"value": -((x - 0.3) ** 2) + 0.01 * k, "cost": 1.0 + k * x}


def told(*outcomes: tuple[float, float | None], **options: Any) -> tw.Study:
    """A study with these values and costs."""
    study = create(**options)
    for value, cost in outcomes:
        study.tell(study.ask(), value=value, cost=cost)
    return study


def params(study: tw.Study) -> list[dict[str, Any]]:
    return [dict(t.params) for t in study.trials]


def numbers(trials: list[tw.Trial]) -> list[int]:
    return [t.number for t in trials]


def states(study: tw.Study) -> list[str]:
    return [t.state.value for t in study.trials]


def timeless(trials: Iterable[tw.Trial]) -> list[tw.Trial]:
    """The trials without what depends on the driver and the clock."""
    return [replace(t, driver=None, started=None, ended=None, usage=None) for t in trials]


# ---- logs and sessions ----


class Clock:
    """A clock that shows `now`."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def never() -> float:
    """A clock that stands still."""
    return 0.0


def created(
    space: tw.Space = SPACE,
    *,
    goal: Goal | None = None,
    strategy: Strategy | None = None,
    seed: int = 0,
    maximize: bool = True,
) -> Created:
    return Created(
        space=space.to_dict(),
        goal=plan.encode(goal or tw.Quality()),
        strategy=plan.encode(strategy or RandomSearch()),
        maximize=maximize,
        seed=seed,
        at=0.0,
    )


def configure(session: Session, *, goal: Goal, strategy: Strategy) -> None:
    """Continue a study with this goal and this strategy, as one that is loaded with them does."""
    session.plan = plan.Plan.of(goal, strategy)
    session._new_goal = session._new_strategy = True
    while session.change_plan(session.journal.read().state):
        pass


def drive(
    log: Log | None = None,
    *,
    goal: Goal | None = None,
    strategy: Strategy | None = None,
    clock: Callable[[], float] = never,
    **options: Any,
) -> Session:
    """A session on a log. An empty log gets its first event."""
    log = MemoryLog() if log is None else log
    if not log.read(0):
        log.append([created(goal=goal, strategy=strategy, **options)])
    return Session(
        log,
        StudyState.of(log.read(0)[:1]),
        goal=goal or tw.Quality(),
        strategy=strategy or RandomSearch(),
        clock=clock,
    )


def study_of(log: Log, *, goal: Goal | None = None, strategy: Strategy | None = None) -> tw.Study:
    """The study in a log."""
    first = log.read(0)[0]
    assert isinstance(first, Created)
    session = Session(
        log,
        StudyState.of([first]),
        goal=goal or plan.decode(first.goal),
        strategy=strategy or plan.decode(first.strategy),
    )
    return tw.Study(session, name="study")


def events_of(study: tw.Study) -> list[Event]:
    return list(study._session.log.read(0))


class Busy(MemoryLog):
    """A log in which another driver writes one of `others` just before each append."""

    def __init__(self, *, clock: Callable[[], float] = never) -> None:
        super().__init__(clock=clock)
        self.others: list[Event] = []

    def append(self, events: Sequence[Event], **options: Any) -> int:
        if self.others:
            super().append([self.others.pop(0)])
        return super().append(events, **options)


@dataclass
class Unreachable:
    """A log whose operations fail `times` times, after `after` of them have succeeded.

    With `late`, a failing operation is carried out, and only its answer is lost."""

    inner: Log
    times: int = 0
    after: int = 0
    late: bool = False
    asked: int = 0

    @property
    def id(self) -> int:
        return self.inner.id

    @property
    def spool(self) -> tuple[str, ...]:
        return self.inner.spool

    def _reach(self, ask: Callable[[], T]) -> T:
        self.asked += 1
        if self.asked <= self.after or self.times == 0:
            return ask()
        self.times -= 1
        if self.late:
            ask()
        raise StorageError("the network is down")

    def append(self, events: Sequence[Event], **options: Any) -> int:
        return self._reach(lambda: self.inner.append(events, **options))

    def read(self, after: int) -> Sequence[Event]:
        return self._reach(lambda: self.inner.read(after))

    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        return self._reach(lambda: self.inner.beat(trials, seconds))


def _ends(events: Sequence[Event], *kinds: type[Any]) -> Counter[int]:
    return Counter(e.number for e in events if isinstance(e, kinds))


def check_whole(log: Log, asked: list[int]) -> None:
    """Check what must hold for every log. `asked` are the numbers that sessions returned."""
    events = log.read(0)
    state = StudyState.of(events)
    claimed = {e.number for e in events if isinstance(e, Claimed)}
    assert claimed == set(range(state.claims))
    assert set(state.trials) <= claimed
    # A number without a proposal has a lease, so it is taken over if its driver dies.
    assert claimed - set(state.trials) <= state.leased
    assert max(_ends(events, Proposed).values(), default=0) <= 1
    assert max(_ends(events, Finished, Failed).values(), default=0) <= 1
    assert max(_ends(events, Abandoned).values(), default=0) <= 1
    assert not set(_ends(events, Abandoned)) & set(_ends(events, Failed))
    taken = [e.enqueued for e in events if isinstance(e, Claimed) and e.enqueued is not None]
    assert len(set(taken)) == len(taken)
    # A trial is returned again only after it was requeued.
    requeued = _ends(events, Requeued)
    assert all(count <= 1 + requeued[number] for number, count in Counter(asked).items())
    for number, trial in state.trials.items():
        back = [e for e in events if isinstance(e, Requeued) and e.number == number]
        assert trial.retries == sum(e.retry for e in back)
        assert trial.losses == sum(e.lost for e in back) <= trial.retries
        assert (number in state.returned) <= (trial.state is State.WAITING)


# ---- workers ----


@dataclass
class ScriptedWorkers:
    """Runs up to `slots` trials and returns all of them together, the latest first."""

    slots: int
    answer: Callable[[Trial], Result]
    synchronous: bool = False
    opened: float = 0.0
    submitted: list[Trial] = field(default_factory=list)
    running: list[Trial] = field(default_factory=list)
    closed: int = 0

    @property
    def free(self) -> int:
        return self.slots - len(self.running)

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        self.submitted.append(trial)
        self.running.append(trial)

    def wait(self, timeout: float | None = None) -> list[Done]:
        done, self.running = self.running[::-1], []
        return [Done(trial, self.answer(trial)) for trial in done]

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        raise AssertionError("these trials take no time, so none can be stopped")

    def now(self) -> float:
        return 0.0

    def close(self) -> None:
        self.closed += 1


@dataclass
class Opened:
    """A runner that opens these workers."""

    workers: Workers

    def open(self, objective: Objective, limits: TrialLimits) -> Workers:
        return self.workers


# ---- other processes ----


def environment() -> dict[str, str]:
    """The environment of a process that imports the package and the tests as this one does."""
    path = os.pathsep.join([str(ROOT), str(Path(tw.__file__).parents[1])])
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "error"}


def script(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python process that runs `code`."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    """Wait until a process has ended without an error, and return what it printed."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out


def plain_lines(path: Path) -> list[dict[str, Any]]:
    """The events of an exported study as version 0.1 wrote them: without digests, which a test that
    changes them would have to make anew."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in line.items() if k != "digest"} for line in lines[:-1]]
