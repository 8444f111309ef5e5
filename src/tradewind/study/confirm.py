"""Running finalists again: the best of many noisy results is partly lucky, its repeats are not.

Repeats are ordinary trials of the study with the same configuration and another seed. They go
through the queue, so a confirmation that was interrupted continues where it stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tradewind import checks
from tradewind.data.estimates import Estimate, ResultNoise, mean_of_folds, mean_of_runs
from tradewind.engine import plan
from tradewind.engine.session import Session
from tradewind.goals import Goal, best_first
from tradewind.goals.text import AnyGoal
from tradewind.html import table, table_lines
from tradewind.log.events import Confirming, Enqueued, Event
from tradewind.log.state import StudyState
from tradewind.plain import write_json
from tradewind.runners.run import Objective, Run
from tradewind.study.compare import Comparison, Measured, compare, mean_folds, most_folds
from tradewind.study.words import (
    Scale,
    cost_amount,
    percent,
    plus_minus,
    unit_of_cost,
)
from tradewind.types import FinishedTrial, State, Trial

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults


@dataclass(frozen=True)
class Finalist:
    """A configuration that was run again.

    - `trial`: its first trial, which made it a finalist.
    - `runs`: the repeats that finished; `failed`: how many of them failed.
    - `value`: their mean and its standard error. The first trial does not count: it was chosen for
      its result. None if no repeat has finished.
    - `cost`: the mean cost of one training.
    - `behind`: the comparison with the winner; None for the winner itself."""

    trial: FinishedTrial
    runs: tuple[FinishedTrial, ...]
    failed: int
    value: Estimate | None
    cost: float | None
    behind: Comparison | None = None


@dataclass(frozen=True, repr=False)
class Confirmation:
    """The finalists under a goal, best first. `missing` repeats have not been run yet.

    >>> confirmation = study.confirm(objective, top=2, repeats=2)
    >>> confirmation.winner.number, len(confirmation)
    (4, 2)
    """

    finalists: tuple[Finalist, ...]
    goal: Goal
    level: float
    missing: int = 0

    @property
    def winner(self) -> FinishedTrial:
        """The first trial of the best finalist."""
        return self.finalists[0].trial

    def __len__(self) -> int:
        return len(self.finalists)

    def __iter__(self) -> Iterator[Finalist]:
        return iter(self.finalists)

    def __getitem__(self, index: int) -> Finalist:
        return self.finalists[index]

    def __str__(self) -> str:
        lines = table_lines([self._columns(), *map(self._row, self.finalists)])
        return "\n".join([*lines, self._note()])

    def _repr_html_(self) -> str:
        return table(self._columns(), map(self._row, self.finalists), note=self._note())

    def _columns(self) -> list[str]:
        value = next((it.trial.metric for it in self.finalists if it.trial.metric), "value")
        return ["trial", value, "runs", "cost", "against the winner"]

    def _note(self) -> str:
        runs = sum(len(f.runs) for f in self.finalists)
        failed = sum(f.failed for f in self.finalists)
        return (
            f"{runs} run{'s' * (runs != 1)} finished"
            + f", {failed} failed" * (failed > 0)
            + f", {self.missing} missing: call confirm again" * (self.missing > 0)
            + f"; ± at {percent(self.level)}"
        )

    def __repr__(self) -> str:
        return f"<Confirmation of {len(self)} trials, winner: trial {self.winner.number}>"

    def _row(self, it: Finalist) -> list[str]:
        value = "-"
        if it.value is not None:
            margin = it.value.margin(self.level)
            value = f"{it.value.mean:.4g}"
            if margin is not None:
                value = plus_minus(it.value.mean, margin)
        unit = unit_of_cost(it.trial, self.goal.by)
        cost = "-" if it.cost is None else cost_amount(it.cost, unit)
        behind = "winner" if it is self.finalists[0] else ""
        if it.behind is not None:
            margin = it.behind.difference.margin(self.level)
            verdict = {True: "probably real", False: "may be luck", None: "noise unknown"}
            side = "better" if it.behind.gain > 0.0 else "worse"
            amount = it.behind.scale.amount(it.behind.gain, margin)
            behind = f"{amount} {side}: {verdict[it.behind.is_real]}"
        return [str(it.trial.number), value, str(len(it.runs)), cost, behind]


def confirm(
    study: StudyResults,
    run: Callable[[int], None],
    *,
    top: int,
    repeats: int,
    goal: AnyGoal | None,
    level: float,
) -> Confirmation:
    """Have the repeats run that are missing, and report on them. `run` evaluates so many trials
    from the queue."""
    top, repeats = checks.whole("top", top, 1), checks.whole("repeats", repeats, 1)
    level = checks.probability("level", level)
    session = study._session
    asked = study._knowledge.asked(goal)
    best_first = study._knowledge.best_first(asked)
    finalists = _request(session, best_first[:top], top=top, repeats=repeats, goal=asked)
    state = session.read_state()
    if waiting := len(state.queue) + len(state.returned):
        run(waiting)
    trials, history, settled = study._knowledge.known_for(asked)
    costs = dict(zip((t.number for t in trials), history.cost.tolist(), strict=True))
    noise = study._knowledge.noise(session.history())
    measured = [_measure(session.read_state(), trial, trials, costs, noise) for trial in finalists]
    missing = sum(max(0, repeats - len(it.runs) - it.failed) for it in measured)
    ranked = _rank(measured, settled, maximize=study.direction == "maximize")
    scale = study._knowledge.scale(trials)
    compared = _compare(ranked, scale=scale, noise=noise, level=level, by=asked.by, trials=trials)
    return Confirmation(compared, settled, level, missing)


# ---- which repeats are missing ----


def _configuration(params: Mapping[str, Any], train_size: float | None) -> Hashable:
    """A key that two trials share if one repeats the other."""
    return write_json(dict(sorted(params.items()))), 1.0 if train_size is None else train_size


def _of(trial: Trial) -> Hashable:
    size = None if trial.size_name is not None else trial.train_size
    return _configuration(trial.params, size)


def _request(
    session: Session, finalists: Sequence[FinishedTrial], *, top: int, repeats: int, goal: Goal
) -> tuple[FinishedTrial, ...]:
    """Enqueue the repeats that are missing, and return the finalists.

    These are the given ones, or those of the latest confirmation if it asked for the same and
    nothing but repeats has finished since: repeats must not change whom they are for."""
    asked = plan.encode(goal)

    def entries(state: StudyState) -> tuple[tuple[FinishedTrial, ...], list[Event]]:
        chosen, events = tuple(finalists), list[Event]()
        earlier = _unchanged(state, top, asked)
        if earlier is not None:
            chosen = earlier
        else:
            numbers = tuple(trial.number for trial in chosen)
            events.append(Confirming(numbers, top, asked, state.claims, session.clock()))
        rounds = [[trial] * _missing(state, trial, repeats) for trial in chosen]
        for r in range(repeats):  # in turns, so that an interrupted confirmation is fair
            events += [_enqueued(trial[r]) for trial in rounds if len(trial) > r]
        if not events[earlier is None :]:
            events = []
        return chosen, events

    return session.record(entries)


def _unchanged(state: StudyState, top: int, asked: Any) -> tuple[FinishedTrial, ...] | None:
    """The finalists of the latest confirmation, if it still stands."""
    latest = state.confirming
    if latest is None or (latest.top, latest.goal) != (top, asked):
        return None
    chosen = tuple(t for n in latest.trials if isinstance(t := state.trials[n], FinishedTrial))
    keys = {_of(trial) for trial in chosen}
    since = [t for n, t in state.trials.items() if n >= latest.first and t.finished]
    return chosen if all(_of(trial) in keys for trial in since) else None


def _enqueued(trial: Trial) -> Enqueued:
    sized = trial.size_name is not None or trial.train_size == 1.0
    return Enqueued(dict(trial.params), None if sized else trial.train_size)


def _repeats_of(state: StudyState, trial: Trial) -> list[Trial]:
    """The trials that repeat this one, in any state but abandoned."""
    key = _of(trial)
    return [
        t
        for t in state.trials.values()
        if t.number != trial.number and t.state is not State.ABANDONED and _of(t) == key
    ]


def _missing(state: StudyState, trial: Trial, repeats: int) -> int:
    """How many repeats of a trial are neither there nor in the queue."""
    key = _of(trial)
    queued = sum(_configuration(e.params, e.train_size) == key for e in state.queue.values())
    return max(0, repeats - len(_repeats_of(state, trial)) - queued)


@dataclass(frozen=True)
class Unraced:
    """The objective for repeats: no run is stopped after some of its folds."""

    objective: Objective

    def __post_init__(self) -> None:
        if not callable(self.objective):
            raise TypeError(f"objective must be a function of a trial, but got {self.objective!r}")

    def __call__(self, run: Run) -> Any:
        run.trial = replace(run.trial, rival=None)
        return self.objective(run)


# ---- the report ----


def _measure(
    state: StudyState,
    trial: FinishedTrial,
    trials: Sequence[FinishedTrial],
    costs: Mapping[int, float],
    noise: ResultNoise | None,
) -> Finalist:
    again = _repeats_of(state, trial)
    runs = tuple(t for t in again if isinstance(t, FinishedTrial))
    failed = sum(t.state is State.FAILED for t in again)
    known = [c for t in (trial, *runs) if math.isfinite(c := costs.get(t.number, math.nan))]
    cost = math.fsum(c / len(known) for c in known) if known else None
    value = mean_of_runs([run.value for run in runs], noise) if runs else None
    folds = mean_folds(runs)
    if len(folds) >= 2:
        value = mean_of_folds(folds, held_out=1.0 / most_folds(trials))
    return Finalist(trial, runs, failed, value, cost)


def _rank(finalists: Sequence[Finalist], goal: Goal, *, maximize: bool) -> list[Finalist]:
    """The finalists, best first under a settled goal. Those without a repeat come last."""
    done = [(it, it.value) for it in finalists if it.value is not None]
    if not done:
        return list(finalists)
    cost = np.array([math.nan if it.cost is None else it.cost for it, _ in done])
    utility = goal.utility(
        np.array([value.mean if maximize else -value.mean for _, value in done]),
        cost,
        np.array([min(value.error or 0.0, 1e150) ** 2 for _, value in done]),
    )
    order = best_first(utility, cost).tolist()
    return [done[i][0] for i in order] + [it for it in finalists if it.value is None]


def _compare(
    ranked: Sequence[Finalist],
    *,
    scale: Scale,
    noise: ResultNoise | None,
    level: float,
    by: str | None,
    trials: Sequence[FinishedTrial],
) -> tuple[Finalist, ...]:
    """The finalists with their comparisons with the first one."""
    winner, *others = ranked

    def behind(it: Finalist) -> Comparison | None:
        if not it.runs:
            return None
        a, b = (Measured(f.trial, f.runs, f.cost, by) for f in (winner, it))
        n_folds = most_folds(trials)
        return compare(a, b, level=level, scale=scale, noise=noise, n_folds=n_folds)

    return (winner, *(replace(it, behind=behind(it)) for it in others))
