"""Following a study that others work on: what is new in its log, at little cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tradewind.engine.contention import find_lost
from tradewind.engine.plan import decode, must_be_supplied
from tradewind.log.events import PlainData
from tradewind.log.state import StudyState
from tradewind.study.running import RunningTrial, expected_seconds, running_trials
from tradewind.study.study import Study
from tradewind.types import State, Trial

_LATEST = 200  # changed trials that say how long a trial takes


@dataclass(frozen=True)
class News:
    """What a look has found. `changed` are the trials that changed since the last look, by number;
    all trials at the first look. `position` is the length of the log. With `may_choose`, another
    trial may be the best one now."""

    position: int
    changed: list[Trial]
    may_choose: bool


class Follower:
    """Looks at a study again and again; each look reads only what is new.

    One thread at a time may use a follower. The study itself may be used by others meanwhile."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._session = study._session
        self._seen = 0  # entries of `state.changed`
        self._goal: PlainData | None = None
        self._states: dict[int, State] = {}
        self._counts: Counter[State] = Counter()
        self._waiting: set[int] = set()
        self._running: dict[int, Trial] = {}
        self._finished: list[Trial] = []  # the latest ones
        self._expected: dict[int, float | None] = {}
        self._predicted: set[int] = set()  # running trials whose cost was predicted here

    def look(self) -> News:
        """Read what is new. Every failure to read is a `StorageError`."""
        state = self._session.read_state()
        numbers = state.changed[self._seen :]
        self._seen += len(numbers)
        changed = [state.trials[number] for number in dict.fromkeys(numbers)]
        for trial in changed:
            self._take(trial)
        self._expect()
        new_goal = self._follow_goal(state)
        return News(state.position, changed, new_goal or any(t.finished for t in changed))

    @property
    def state(self) -> StudyState:
        """The state as it was last read. Do not change it."""
        return self._session.state

    def counts(self) -> dict[str, int]:
        """The number of trials in each state."""
        return {state.value: self._counts[state] for state in State}

    def running(self) -> list[RunningTrial]:
        """The trials that run now, and when they should end."""
        return running_trials(self._running.values(), self._expected)

    def lost(self) -> list[int]:
        """The running trials whose drivers are gone, or have given no sign of life for a while. One
        of them may have ended since the last look."""
        leased = self._running.keys() & self.state.leased
        return find_lost(self._session, self.state, leased) if leased else []

    def waiting(self) -> list[int]:
        """The numbers of the trials that were proposed or put back, and have not started."""
        return sorted(self._waiting)

    def unpredicted(self) -> list[Trial]:
        """The running trials whose end follows from no predicted cost of their own."""
        known = self._predicted
        return [t for n, t in self._running.items() if t.expected_cost is None and n not in known]

    def predict(self, costs: Mapping[int, float | None]) -> None:
        """Take over predicted costs of running trials, by number. Each is asked for once."""
        self._predicted |= costs.keys() & self._running.keys()
        trials = [t for n, t in self._running.items() if costs.get(n) is not None]
        if trials and self._finished:
            self._expected |= expected_seconds(trials, self._finished, costs)

    def _take(self, trial: Trial) -> None:
        number, before = trial.number, self._states.get(trial.number)
        if before is not None:
            self._counts[before] -= 1
        self._states[number] = trial.state
        self._counts[trial.state] += 1
        (self._waiting.add if trial.state is State.WAITING else self._waiting.discard)(number)
        started = self._running.pop(number, None)
        if trial.state is State.RUNNING:
            self._running[number] = trial
            if started is not None and started.started == trial.started:
                return
        self._expected.pop(number, None)  # it has ended, or was started again
        self._predicted.discard(number)
        if trial.finished:
            self._finished = [*self._finished[1 - _LATEST :], trial]

    def _expect(self) -> None:
        """Compute the end of each running trial once, when it starts; or, if nothing was known
        then, as soon as a trial has finished."""
        new = [t for n, t in self._running.items() if self._expected.get(n) is None]
        if new and self._finished:
            costs = {t.number: t.expected_cost for t in new}
            self._expected |= expected_seconds(new, self._finished, costs)

    def _follow_goal(self, state: StudyState) -> bool:
        """Answer for the goal that the log has now, which only a driver takes over by itself. True
        if it is another one than at the last look."""
        plan = self._session.plan
        before, self._goal = self._goal, state.goal
        if state.goal != plan.data[0] and not must_be_supplied(state.goal):
            self._session.plan = plan.with_goal(decode(state.goal))
        return before not in (None, state.goal)
