"""Events -> trials -> arrays: the only place where that happens, and where a loss changes sign.

`Record` folds the log into trials; `Record.history()` encodes them for a strategy. Rows are
encoded once: a trial's configuration never changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradewind.events import Claimed, Enqueued, Event, Failed, Finished, Proposed
from tradewind.space import Space
from tradewind.types import Array, Config, Mask, Origin, State, Trial


@dataclass(frozen=True)
class History:
    """What a strategy may know when it proposes trial `number`. Trials are in order of number.

    Quality is maximized; cost is raw, NaN where unknown; `noise` is the known variance of a
    quality, 0 where unknown. n finished, f failed, p pending trials in d columns."""

    seed: int
    number: int
    X: Array  # (n, d)
    quality: Array  # (n,)
    cost: Array  # (n,)
    noise: Array  # (n,)
    failed: Array  # (f, d)
    pending: Array  # (p, d)
    designed: int  # trials that the initial design has made
    initial: Mask  # (n,) what had finished when a model first proposed
    handover: Mapping[str, Any]  # of the latest proposal that has one
    sign: float = 1.0  # of the user's own number for a quality of 1

    @property
    def evaluated(self) -> Array:
        """The rows of all trials, whatever became of them."""
        return np.vstack([self.X, self.failed, self.pending])

    def take(self, rows: NDArray[np.intp]) -> History:
        """The history with only these finished trials (indices)."""
        return replace(
            self,
            X=self.X[rows],
            quality=self.quality[rows],
            cost=self.cost[rows],
            noise=self.noise[rows],
            initial=self.initial[rows],
        )


def trial_seed(seed: int, number: int) -> int:
    """The seed that the objective of this trial gets, a 31-bit number."""
    state = np.random.SeedSequence([seed, number, 1]).generate_state(1)[0]
    return int(state) & 0x7FFFFFFF


def proposal_rng(seed: int, number: int) -> np.random.Generator:
    """The random stream of one proposal: it depends on the trial number, not on who asks when."""
    return np.random.default_rng(np.random.SeedSequence([seed, number]))


def queue_rng(seed: int, place: int) -> np.random.Generator:
    """The random stream of what was left open in the entry at this place of the queue."""
    return np.random.default_rng(np.random.SeedSequence([seed, place, 3]))


class Record:
    """The state of a study as a fold over its log."""

    def __init__(self, space: Space, *, seed: int, maximize: bool) -> None:
        self.space, self.seed = space, seed
        self.sign = 1.0 if maximize else -1.0
        self.position = 0
        self.claims = 0
        self.trials: dict[int, Trial] = {}
        self.queue: dict[int, Config] = {}  # by place: what was enqueued and not yet claimed
        self.enqueued = 0
        self._rows: dict[int, Array] = {}
        self._handovers: dict[int, Mapping[str, Any]] = {}
        self._finished_at: dict[int, int] = {}
        self._modelled_at: int | None = None  # what the first proposal by a model had seen

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case Enqueued(params):
                    self.queue[self.enqueued] = params
                    self.enqueued += 1
                case Claimed(number, enqueued):
                    self.claims = max(self.claims, number + 1)
                    if enqueued is not None:
                        self.queue.pop(enqueued, None)
                case Proposed():
                    self._propose(event)
                case Finished(number, outcome):
                    self.trials[number] = replace(
                        self.trials[number],
                        state=State.FINISHED,
                        value=outcome.value,
                        cost=outcome.cost,
                        folds=outcome.folds,
                    )
                    self._finished_at[number] = self.position
                case Failed(number, error, cost):
                    self.trials[number] = replace(
                        self.trials[number], state=State.FAILED, error=error, cost=cost
                    )
            self.position += 1  # last: after an interrupt the event is applied again

    def _propose(self, event: Proposed) -> None:
        size = event.params[self.space.size_name] if self.space.size_name else 1.0
        self.trials[event.number] = Trial(
            number=event.number,
            params=event.params,
            state=State.RUNNING,
            origin=event.origin,
            seed=trial_seed(self.seed, event.number),
            train_size=float(size),  # type: ignore[arg-type]
        )
        self._rows[event.number] = self.space.encode([event.params])[0]
        if event.origin is Origin.MODEL and self._modelled_at is None:
            self._modelled_at = event.seen
        if event.handover:
            self._handovers[event.number] = event.handover

    def in_order(self) -> list[Trial]:
        """All trials by number."""
        return [self.trials[number] for number in sorted(self.trials)]

    def history(self, number: int) -> History:
        """What is known when trial `number` is proposed."""
        trials = self.in_order()
        finished = [t for t in trials if t.finished]
        modelled_at = self.position if self._modelled_at is None else self._modelled_at
        latest = max(self._handovers, default=None)
        return History(
            seed=self.seed,
            number=number,
            X=self._stack(finished),
            quality=self.sign * np.array([t.value for t in finished], dtype=float),
            cost=np.array([np.nan if t.cost is None else t.cost for t in finished], dtype=float),
            noise=fold_noise([t.folds for t in finished]),
            failed=self._stack([t for t in trials if t.state is State.FAILED]),
            pending=self._stack([t for t in trials if t.state is State.RUNNING]),
            designed=sum(t.origin is Origin.DESIGN for t in trials),
            initial=np.array(
                [self._finished_at[t.number] < modelled_at for t in finished], dtype=bool
            ),
            handover={} if latest is None else self._handovers[latest],
            sign=self.sign,
        )

    def _stack(self, trials: list[Trial]) -> Array:
        if not trials:
            return np.empty((0, len(self.space)))
        return np.stack([self._rows[t.number] for t in trials])


def fold_noise(folds: Sequence[tuple[float, ...]]) -> Array:
    """The squared standard error of each mean over folds (n,); 0 where it is unknown.

    Folds that all trials share differ in how hard they are, which says nothing about the trials:
    among three or more trials with equally many folds, the median deviation of each fold from its
    trial's mean is taken out first."""
    noise = np.zeros(len(folds))
    counts = np.array([len(f) for f in folds])
    for k in set(counts[counts > 1].tolist()):
        alike = counts == k
        F = np.array([f for f in folds if len(f) == k])
        largest = max(float(np.abs(F).max()), sys.float_info.min)
        F = F / largest  # folds may be as large as 1e300
        F = F - F.mean(axis=1, keepdims=True)
        shrunk = 1.0
        if len(F) > 2:
            F = F - np.median(F, axis=0)
            shrunk = len(F) / (len(F) - 1)
        error = np.sqrt(shrunk * F.var(axis=1, ddof=1) / k) * largest
        noise[alike] = np.square(np.minimum(error, 1e150))
    return noise
