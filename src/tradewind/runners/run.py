"""A trial while it runs: what an objective receives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from tradewind import checks
from tradewind.data.fingerprint import fingerprint
from tradewind.data.folds import Folds
from tradewind.data.racing import ERROR
from tradewind.data.subsets import subset
from tradewind.errors import SUGGESTIONS, OutcomeError, no_attribute
from tradewind.runners.clocks import TIMERS, read_clock
from tradewind.types import Indices, Trial

Objective: TypeAlias = Callable[["Run"], Any]


class Params(dict[str, Any]):
    """The active parameters of a trial. Asking for any other name lists the active ones."""

    def __missing__(self, name: object) -> Any:
        near = checks.suggest(name, self)
        active = ", ".join(self) or "none"
        raise KeyError(f"there is no parameter {name!r}{near}: active in this trial are {active}")


@dataclass(eq=False)
class Run:
    """A trial while it runs: its parameters, its seed, its device and its share of the data.

    `settings` are the parameters without the training size. `timed` is the number of seconds spent
    inside `timer`, on its `clock`; both are None if it was not used. `reported` are the folds, None
    if there are none. `fingerprint` is that of the data given to `folds`, or else to `subset`.

    >>> def objective(trial: tw.Run) -> float:
    ...     with trial.timer():  # only this is the cost
    ...         x = trial.params["x"] ** 2
    ...     return 1.0 - x
    >>> study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    >>> study.optimize(objective, n_trials=3)
    >>> len(study.frontier()) > 0
    True
    """

    trial: Trial = field(repr=False)
    device: str = field(default="cpu", repr=False)
    number: int = field(init=False)
    params: dict[str, Any] = field(init=False)
    settings: dict[str, Any] = field(init=False, repr=False)
    seed: int = field(init=False, repr=False)
    train_size: float = field(init=False, repr=False)
    fingerprint: str | None = field(init=False, default=None, repr=False)
    timed: float | None = field(init=False, default=None, repr=False)
    clock: str | None = field(init=False, default=None, repr=False)
    reported: Folds | None = field(init=False, default=None, repr=False)
    _timers: int = field(init=False, default=0, repr=False)

    def __post_init__(self) -> None:
        trial = self.trial
        self.number, self.seed, self.train_size = trial.number, trial.seed, trial.train_size
        self.params = Params(trial.params)
        self.settings = Params({n: v for n, v in trial.params.items() if n != trial.size_name})

    if not TYPE_CHECKING:  # mypy would take every name for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            no_attribute(self, name, SUGGESTIONS)

    @contextmanager
    def timer(self, clock: Literal["wall", "cpu", "gpu"] | None = None) -> Iterator[None]:
        """Only the time spent inside counts as the cost. Several uses add up.

        `clock` is that of the study by default. "wall" counts seconds. "cpu" counts CPU seconds of
        this process and of its children that have ended. "gpu" is like "wall", but it is an error
        if no GPU is in use. If PyTorch uses a GPU in this process, "wall" and "gpu" wait for it
        before they read the clock."""
        self.clock = used = self._choose_clock(clock)
        begin = read_clock(used, self.device)
        self._timers += 1
        try:
            yield
        finally:
            self._timers -= 1
            if not self._timers:  # a timer inside another timer is part of it
                self.timed = (self.timed or 0.0) + read_clock(used, self.device) - begin

    def _choose_clock(self, given: str | None) -> str:
        """The clock of a timer: one per trial, and that of the study if it has chosen one."""
        cost = self.trial.cost_name
        own = self.clock or (cost if cost in TIMERS else "wall")
        used = own if given is None else checks.one_of("clock", given, TIMERS)
        if used != own and (self.clock is not None or cost in ("cpu", "gpu")):
            whose = "this study" if self.clock is None else "this trial"
            raise ValueError(f"clock must be {own!r}, as {whose} uses that one, but got {given!r}")
        return used

    def subset(
        self, y: Any, *, groups: Any = None, time: Any = None, kind: str = "auto"
    ) -> Indices:
        """The rows to train with, according to this trial's training size. All trials of a study
        draw from one order, so a larger size contains the rows of a smaller one."""
        self.fingerprint = self.fingerprint or fingerprint(y=y, groups=groups)
        seed = self.trial.data_seed
        return subset(y, self.train_size, seed=seed, kind=kind, groups=groups, time=time)

    def folds(
        self,
        X: Any,
        y: Any = None,
        cv: Any = 5,
        *,
        groups: Any = None,
        time: Any = None,
        error: float | None = ERROR,
    ) -> Folds:
        """The folds of a cross-validation, the same for all trials of the study. Iterate over them
        and report a score for each; then the objective need not return anything.

        `cv` is a number of folds (stratified if `y` has classes, by whole groups if there are
        `groups`), a scikit-learn splitter, or pairs of training and validation rows. The training
        rows of each fold are cut to the trial's training size as in `subset`. With `time`, or with
        a `TimeSeriesSplit`, the latest rows are kept.

        The cost is that of one training: a measured cost is divided by the number of folds that
        ran, and a cost that you return must be that of one fold.

        The loop ends early if the trial is clearly behind the best one so far. Then `raced` is
        true, and the value is an estimate of the mean over all folds. `error` bounds the
        probability that a trial as good as the best one is stopped (for the best of many, which is
        partly lucky, see data/racing.py). With None, no trial is stopped."""
        if self.reported is not None:
            raise OutcomeError("folds() can be called once per trial, but this is the second call")
        self.reported = Folds(self.trial, X, y, cv, groups=groups, time=time, error=error)
        self.fingerprint = self.reported.fingerprint
        return self.reported

    @property
    def raced(self) -> bool:
        """Whether the trial was stopped before its last fold."""
        return self.reported is not None and self.reported.raced
