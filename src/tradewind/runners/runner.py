"""The seam of the runners: where trials are evaluated.

A `Runner` is a description that a user can write down. `open` starts `Workers` for one objective,
which the loop uses from one thread. They have their own clock, `now()`, which may be virtual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from tradewind.runners.run import Objective
from tradewind.types import Outcome, Trial, Usage


@dataclass(frozen=True)
class Failure:
    """An evaluation without an outcome. `seconds` is all the time it took, inside a timer or not.

    `raised` is the exception, if there was one in this process. Of one in another process, `error`
    has the text, and `kinds` the names of its class and of all classes above it.

    >>> tw.runners.Failure("out of memory", seconds=12.5)
    Failure(error='out of memory', seconds=12.5)
    """

    error: str
    seconds: float | None = None
    raised: BaseException | None = field(default=None, repr=False)
    kinds: tuple[str, ...] = field(default=(), repr=False)

    def is_a(self, *kinds: type[BaseException]) -> bool:
        """Whether there was an exception of one of these classes. One of another process is known
        by name."""
        if self.raised is not None:  # `isinstance` may run the user's code, and so may `__mro__`
            return any(kind in kinds for kind in type.mro(type(self.raised)))
        return any(_name(kind) in self.kinds for kind in kinds)


def names_of(error: BaseException) -> tuple[str, ...]:
    """The names of the class of an exception and of those above it; none if they cannot be read."""
    try:
        return tuple(_name(kind)[-_LINE:] for kind in type(error).__mro__[-_CLASSES:])
    except BaseException:  # a class is the user's code, too
        return ()


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__name__}"  # a pickled class has lost its qualified name


@dataclass(frozen=True)
class Lost:
    """An evaluation whose worker died, through no fault of the trial.

    >>> tw.runners.Lost("the node was shut down")
    Lost(reason='the node was shut down')
    """

    reason: str


@dataclass(frozen=True)
class Stopped:
    """An evaluation that was stopped on request, or because its time was up.

    >>> tw.runners.Stopped("its time was up")
    Stopped(reason='its time was up')
    """

    reason: str


Result: TypeAlias = Outcome | Failure | Lost | Stopped

TOO_LATE = Stopped("there was no time left to begin")
OUT_OF_TIME = Stopped("it did not finish in the time that was left")


_LINE = 300  # characters of an error that one line shows, and of the name of a class
_CLASSES = 100  # whose names are told


def overtime(limit: float) -> str:
    """The error of a trial that exceeded the time limit for one trial."""
    unit = "second" if limit == 1 else "seconds"
    return f"a trial may take {limit:g} {unit}, and this one took longer"


def cause(error: str) -> str:
    """The line of a traceback that names the exception; of any other text, the first line. A long
    line is cut."""
    lines = error.strip().splitlines() or [""]
    line = lines[0]
    if line.startswith("Traceback"):
        last = max((i for i, line in enumerate(lines) if line.startswith('  File "')), default=0)
        after = (line for line in lines[last + 1 :] if not line.startswith("  "))
        line = next(after, lines[-1])
    return line if len(line) <= _LINE else f"{line[: _LINE - 3]}..."


@dataclass(frozen=True)
class Done:
    """A submitted trial, its result, and what the evaluation took.

    >>> done = tw.runners.Done(study.trials[0], tw.runners.Lost("the node was shut down"))
    >>> done.result
    Lost(reason='the node was shut down')
    """

    trial: Trial
    result: Result
    usage: Usage | None = None


@dataclass(frozen=True)
class TrialLimits:
    """The most that one evaluation may take: seconds, and bytes of memory with all its children. A
    trial that takes more is killed and counts as failed.

    >>> tw.runners.TrialLimits(timeout=60.0, memory=2 * 10**9)
    TrialLimits(timeout=60.0, memory=2000000000)
    """

    timeout: float | None = None
    memory: int | None = None


class Workers(Protocol):
    """The workers of a runner. A submitted trial comes back from `wait` exactly once.

    >>> workers = tw.runners.SerialRunner().open(objective, tw.runners.TrialLimits())
    >>> workers.slots, workers.free
    (1, 1)
    >>> workers.close()
    """

    @property
    def slots(self) -> int:
        """How many trials run at the same time."""
        ...

    @property
    def free(self) -> int:
        """How many more trials would start at once."""
        ...

    @property
    def synchronous(self) -> bool:
        """Whether trials run in rounds: slots are filled only when all of them are free."""
        ...

    def submit(self, trial: Trial, *, within: float | None = None) -> None:
        """Start a trial. If it does not finish `within` this many seconds, it comes back as
        `Stopped`."""
        ...

    def wait(self, timeout: float | None = None) -> list[Done]:
        """Block until at least one trial is done or `timeout` seconds have passed, and return all
        that are done. If nothing is running, return at once."""
        ...

    def stop(self, numbers: Iterable[int], reason: str) -> None:
        """Stop these trials if they still run; `wait` returns them as `Stopped`."""
        ...

    def now(self) -> float:
        """Seconds on the clock of these workers. It never goes back."""
        ...

    def close(self) -> None:
        """End everything, running trials included. May be called twice."""
        ...


@runtime_checkable
class InProcess(Protocol):
    """Workers that evaluate in the driver's own thread, inside `submit` or `wait`. For anything
    else, `wait` does not wait, so nothing is gained by waiting for a short time only."""

    def interrupt(self, numbers: Iterable[int], reason: str) -> None:
        """Stop these trials if one of them is being evaluated just now. Any thread may call it, and
        must repeat it until the trial is done."""
        ...


class Runner(Protocol):
    """Where and how trials run.

    >>> runner: tw.runners.Runner = tw.runners.ProcessRunner(4)
    >>> study.optimize(objective, n_trials=4, runner=runner)  # doctest: +SKIP
    """

    def open(self, objective: Objective, limits: TrialLimits) -> Workers:
        """Start the workers for one objective."""
        ...
