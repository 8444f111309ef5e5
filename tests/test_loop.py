"""The driver writes a log that drivers and threads may share; the loop records everything."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tradewind.errors import ConfigError, TrialError
from tradewind.events import Claimed, Enqueued, Event, Failed, Finished, Proposed
from tradewind.goals import Goal
from tradewind.history import History, Record, proposal_rng
from tradewind.log.memory import MemoryLog
from tradewind.loop import Driver, Limits, run
from tradewind.runners.run import Failure
from tradewind.strategies import Bayes, Design, RandomSearch, Strategy
from tradewind.types import Origin, Outcome, Proposal, State, Trial

SPACE = tw.Space({"x": tw.Float(0, 1), "k": tw.Int(1, 9)})


def driver(log: MemoryLog | None = None, strategy: Strategy | None = None) -> Driver:
    return Driver(
        MemoryLog() if log is None else log,
        SPACE,
        goal=tw.Quality(),
        strategy=RandomSearch() if strategy is None else strategy,
        seed=0,
        maximize=True,
    )


# ---- stand-ins ----


@dataclass
class ScriptedRunner:
    """Runs `slots` trials at once and gives them back together, the latest first."""

    slots: int
    answer: Callable[[Trial], Outcome | Failure]
    submitted: list[Trial] = field(default_factory=list)
    running: list[Trial] = field(default_factory=list)
    closed: int = 0

    @property
    def free(self) -> int:
        return self.slots - len(self.running)

    def submit(self, trial: Trial) -> None:
        self.submitted.append(trial)
        self.running.append(trial)

    def wait(self) -> list[tuple[Trial, Outcome | Failure]]:
        done, self.running = self.running[::-1], []
        return [(trial, self.answer(trial)) for trial in done]

    def close(self) -> None:
        self.closed += 1


class Busy(MemoryLog):
    """A log in which another driver writes one of `others` just before each append."""

    def __init__(self, *others: Event) -> None:
        super().__init__()
        self.others = list(others)

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        if self.others:
            super().append([self.others.pop(0)])
        return super().append(events, expected=expected)


class Stubborn(RandomSearch):
    """A strategy with a proposal of its own, or an error."""

    def __init__(self, answer: dict[str, Any] | BaseException) -> None:
        object.__setattr__(self, "answer", answer)

    def propose(
        self, space: tw.Space, goal: Goal, history: History, *, rng: np.random.Generator
    ) -> Proposal:
        answer = self.answer  # type: ignore[attr-defined]
        if isinstance(answer, BaseException):
            raise answer
        return Proposal(answer, Origin.DESIGN)


def loop(
    drive: Driver,
    runner: ScriptedRunner,
    *,
    stopped: Callable[[], bool] = lambda: False,
    on_done: Callable[[Trial], None] = lambda trial: None,
    **limits: Any,
) -> None:
    run(drive, runner, Limits(**limits), catch=(Exception,), stopped=stopped, on_done=on_done)


def good(trial: Trial) -> Outcome | Failure:
    return Outcome(trial.params["x"], 1.0)  # type: ignore[arg-type]


# ---- the driver ----


def test_numbers_count_from_zero_without_a_gap() -> None:
    drive = driver()
    assert [drive.ask().number for _ in range(5)] == [0, 1, 2, 3, 4]


def test_a_trial_is_claimed_and_then_proposed_from_what_was_seen() -> None:
    log = MemoryLog()
    trial = driver(log).ask()
    assert log.read(0) == [
        Claimed(0),
        Proposed(0, dict(trial.params), Origin.DESIGN, seen=1, handover={}),
    ]


def test_a_queued_trial_is_claimed_and_proposed_in_one_piece() -> None:
    log = MemoryLog()
    drive = driver(log)
    drive.enqueue({"x": 0.5, "k": 3})
    drive.ask()
    assert log.read(0) == [
        Enqueued({"x": 0.5, "k": 3}),
        Claimed(0, enqueued=0),
        Proposed(0, {"x": 0.5, "k": 3}, Origin.ENQUEUED, seen=1),
    ]


def test_what_is_enqueued_is_complete_and_in_plain_values() -> None:
    log = MemoryLog()
    driver(log).enqueue({"x": np.float32(0.5)})
    (event,) = log.read(0)
    assert isinstance(event, Enqueued)
    assert {name: type(value) for name, value in event.params.items()} == {"x": float, "k": int}


def test_an_added_trial_is_written_in_one_piece() -> None:
    log = MemoryLog()
    driver(log).add({"x": 0.5, "k": 3}, Outcome(1.0))
    assert [type(e) for e in log.read(0)] == [Claimed, Proposed, Finished]


def test_changing_a_trial_that_was_given_changes_nothing() -> None:
    drive = driver()
    params = dict(drive.ask().params)
    for trial in (
        drive.trial(0),
        drive.trials()[0],
        drive.state()[0][0],
        drive.add(params, Outcome(1.0)),
    ):
        trial.params.clear()  # type: ignore[attr-defined]
    assert [dict(t.params) for t in drive.trials()] == [params, params]


@pytest.mark.parametrize("number", [1, -1, 99])
def test_a_trial_that_was_never_asked_cannot_be_finished(number: int) -> None:
    drive = driver()
    drive.ask()
    with pytest.raises(TrialError, match=f"no trial {number}"):
        drive.finish(number, Outcome(1.0))


@pytest.mark.parametrize("first", [Outcome(1.0), Failure("boom")])
@pytest.mark.parametrize("second", [Outcome(2.0), Failure("again")])
def test_a_trial_ends_once(first: Outcome | Failure, second: Outcome | Failure) -> None:
    drive = driver()
    drive.ask()
    told = drive.finish(0, first)
    with pytest.raises(TrialError, match=f"told once, but trial 0 is already {told.state.value}"):
        drive.finish(0, second)
    assert drive.trials() == [told]


@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_a_strategy_that_raises_leaves_a_study_that_goes_on(error: BaseException) -> None:
    log = MemoryLog()
    with pytest.raises(type(error)):
        driver(log, Stubborn(error)).ask()
    drive = driver(log)
    assert drive.trials() == []
    assert drive.ask().state is State.RUNNING


@pytest.mark.parametrize(
    "config", [{"x": 2.0, "k": 1}, {"x": 0.5}, {"x": 0.5, "k": 1, "z": 1}, {"x": "a", "k": 1}]
)
def test_a_proposal_outside_the_space_is_refused_before_it_is_written(
    config: dict[str, Any],
) -> None:
    log = MemoryLog()
    with pytest.raises(ConfigError):
        driver(log, Stubborn(config)).ask()
    assert driver(log).trials() == []
    assert driver(log).ask().state is State.RUNNING


def test_a_proposal_may_be_in_numpy_values() -> None:
    trial = driver(strategy=Stubborn({"x": np.float64(0.5), "k": np.int64(2)})).ask()
    assert trial.params == {"x": 0.5, "k": 2}
    assert type(trial.params["x"]) is float


# ---- several drivers, several threads ----


def test_two_drivers_on_one_log_take_turns() -> None:
    log = MemoryLog()
    a, b = driver(log), driver(log)
    numbers = [d.ask().number for d in (a, b, b, a, b)]
    assert numbers == [0, 1, 2, 3, 4]
    assert a.trials() == b.trials()


def test_a_driver_that_was_overtaken_claims_the_next_number() -> None:
    drive = driver(Busy(Claimed(0), Claimed(1)))
    assert drive.ask().number == 2


def test_a_driver_that_was_overtaken_adds_under_the_next_number() -> None:
    drive = driver(Busy(Claimed(0)))
    assert drive.add({"x": 0.5, "k": 1}, Outcome(1.0)).number == 1


def test_of_two_drivers_that_tell_a_trial_the_second_is_refused() -> None:
    log = Busy()
    drive = driver(log)
    drive.ask()
    log.others = [Failed(0, "by another")]
    with pytest.raises(TrialError, match="told once"):
        drive.finish(0, Outcome(1.0))
    assert drive.trials()[0].error == "by another"


def test_threads_that_ask_and_tell_get_numbers_and_points_of_their_own() -> None:
    drive = driver(strategy=Bayes(design=Design(4)))
    together = threading.Barrier(4)
    errors: list[BaseException] = []

    def work() -> None:
        together.wait()
        try:
            for _ in range(5):
                trial = drive.ask()
                drive.trials()
                drive.finish(trial.number, good(trial))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    trials = drive.trials()
    assert [t.number for t in trials] == list(range(20))
    assert len({tuple(t.params.items()) for t in trials}) == 20
    assert all(t.value == t.params["x"] for t in trials)


@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(alpha=0.3)], ids=repr)
def test_every_proposal_of_a_parallel_run_follows_from_the_log_it_saw(goal: Goal) -> None:
    log, strategy = MemoryLog(), Bayes(design=Design(4))
    drive = Driver(log, SPACE, goal=goal, strategy=strategy, seed=5, maximize=True)
    loop(drive, ScriptedRunner(3, good), n_trials=12)
    events = log.read(0)
    proposals = [e for e in events if isinstance(e, Proposed)]
    assert {p.origin for p in proposals} == {Origin.DESIGN, Origin.MODEL}
    for event in proposals:
        record = Record(SPACE, seed=5, maximize=True)
        record.apply(events[: event.seen])
        again = strategy.propose(
            SPACE, goal, record.history(event.number), rng=proposal_rng(5, event.number)
        )
        assert again == Proposal(event.params, event.origin, event.handover)


# ---- the loop ----


def test_as_many_trials_run_at_once_as_the_runner_has_room_for() -> None:
    runner = ScriptedRunner(3, good)
    pending = []

    def answer(trial: Trial) -> Outcome | Failure:
        pending.append(sum(t.state is State.RUNNING for t in drive.trials()))
        return good(trial)

    runner.answer, drive = answer, driver()
    loop(drive, runner, n_trials=7)
    assert pending == [3, 3, 3, 3, 3, 3, 1]


def test_the_loop_ends_after_its_number_of_trials_and_closes_the_runner() -> None:
    drive, runner = driver(), ScriptedRunner(2, good)
    loop(drive, runner, n_trials=5)
    assert len(drive.trials()) == 5
    assert all(t.finished for t in drive.trials())
    assert runner.closed == 1


def test_no_trial_starts_once_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        @classmethod
        def monotonic(cls) -> float:
            return cls.now

    def answer(trial: Trial) -> Outcome | Failure:
        Clock.now += 10.0
        return good(trial)

    monkeypatch.setattr("tradewind.loop.time", Clock)
    drive = driver()
    loop(drive, ScriptedRunner(1, answer), timeout=25.0)
    assert len(drive.trials()) == 3


def test_no_trial_starts_once_the_cost_is_spent() -> None:
    drive = driver()
    loop(drive, ScriptedRunner(1, lambda t: Outcome(1.0, 2.0)), max_cost=5.0)
    assert len(drive.trials()) == 3


def test_what_failed_trials_cost_is_spent_too() -> None:
    drive = driver()
    loop(drive, ScriptedRunner(1, lambda t: Failure("boom", 2.0)), max_cost=5.0)
    assert len(drive.trials()) == 3


def test_the_first_limit_that_is_reached_counts() -> None:
    drive = driver()
    loop(drive, ScriptedRunner(1, lambda t: Outcome(1.0, 2.0)), max_cost=5.0, n_trials=2)
    assert len(drive.trials()) == 2


def test_a_stopped_loop_waits_for_what_is_running() -> None:
    drive, stop = driver(), []
    loop(
        drive,
        ScriptedRunner(3, good),
        n_trials=50,
        stopped=lambda: bool(stop),
        on_done=stop.append,
    )
    assert [t.state for t in drive.trials()] == [State.FINISHED] * 3


def test_trials_that_end_with_one_that_raises_are_recorded_all_the_same() -> None:
    interrupt = KeyboardInterrupt()
    drive, seen = driver(), []
    runner = ScriptedRunner(
        3, lambda t: Failure("stopped", raised=interrupt) if t.number == 2 else good(t)
    )
    with pytest.raises(KeyboardInterrupt) as raised:
        loop(drive, runner, n_trials=9, on_done=seen.append)
    assert raised.value is interrupt
    assert [t.state for t in drive.trials()] == [State.FINISHED, State.FINISHED, State.FAILED]
    assert len(seen) == 3
    assert runner.closed == 1


def test_trials_that_end_with_one_whose_callback_raises_are_recorded_all_the_same() -> None:
    def on_done(trial: Trial) -> None:
        raise RuntimeError("callback")

    drive, runner = driver(), ScriptedRunner(3, good)
    with pytest.raises(RuntimeError, match="callback"):
        loop(drive, runner, n_trials=9, on_done=on_done)
    assert [t.state for t in drive.trials()] == [State.FINISHED] * 3
    assert runner.closed == 1


def test_only_what_is_caught_goes_on() -> None:
    drive = driver()
    runner = ScriptedRunner(1, lambda t: Failure("boom", raised=ValueError("boom")))
    with pytest.raises(ValueError, match="boom"):
        run(
            drive,
            runner,
            Limits(n_trials=3),
            catch=(KeyError,),
            stopped=lambda: False,
            on_done=lambda trial: None,
        )
    assert len(drive.trials()) == 1
    loop(drive, runner, n_trials=3)
    assert len(drive.trials()) == 4


def test_a_failure_without_an_exception_never_ends_the_loop() -> None:
    drive = driver()
    run(
        drive,
        ScriptedRunner(1, lambda t: Failure("returned NaN")),
        Limits(n_trials=3),
        catch=(),
        stopped=lambda: False,
        on_done=lambda trial: None,
    )
    assert len(drive.trials()) == 3
