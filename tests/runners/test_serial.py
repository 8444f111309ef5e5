"""The serial runner interrupts what is out of time, and leaves signals as it found them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from tests.runners.trials import NO_LIMITS, the_one, trial
from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Done, Failure, Stopped, TrialLimits
from tradewind.runners.serial import SerialRunner, SerialWorkers
from tradewind.types import Outcome

posix = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs POSIX signals")


def workers(objective: Objective, timeout: float | None = None) -> SerialWorkers:
    return SerialRunner().open(objective, TrialLimits(timeout=timeout))


def forever(run: Run) -> float:
    while True:
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _signals_are_left_as_they_were() -> Iterator[None]:
    if not hasattr(signal, "SIGALRM"):
        yield
        return
    handler = signal.getsignal(signal.SIGALRM)
    yield
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@posix
def test_a_trial_that_is_not_done_within_its_time_is_stopped() -> None:
    done = the_one(workers(forever), within=0.05)
    assert isinstance(done.result, Stopped)
    assert done.usage is not None
    assert done.usage.wall >= 0.05


@posix
def test_a_trial_that_takes_longer_than_the_limit_has_failed() -> None:
    done = the_one(workers(forever, timeout=0.05))
    assert isinstance(done.result, Failure)
    assert "0.05 seconds" in done.result.error
    assert "in forever" in done.result.error  # where it was
    assert done.result.raised is None
    assert done.result.seconds is not None
    assert done.result.seconds >= 0.05


@posix
@pytest.mark.parametrize(("within", "timeout", "kind"), [(0.05, 60, Stopped), (60, 0.05, Failure)])
def test_the_nearer_of_both_ends_says_what_it_is(within: float, timeout: float, kind: type) -> None:
    assert isinstance(the_one(workers(forever, timeout), within=within).result, kind)


@posix
def test_an_objective_that_swallows_the_interruption_is_interrupted_again() -> None:
    swallowed = []

    def stubborn(run: Run) -> float:
        try:
            forever(run)
        except BaseException as error:
            swallowed.append(error)
        return forever(run)

    assert isinstance(the_one(workers(stubborn), within=0.05).result, Stopped)
    assert len(swallowed) == 1


@posix
def test_an_answer_that_is_never_read_to_its_end_is_interrupted() -> None:
    endless = (time.sleep(0.01) or fold for fold in iter(float, 1.0))
    done = the_one(workers(lambda run: {"folds": endless}, timeout=0.05))
    assert isinstance(done.result, Failure)
    assert "0.05 seconds" in done.result.error


@posix
def test_an_answer_that_comes_after_the_interruption_does_not_count() -> None:
    def late(run: Run) -> dict[str, float]:
        with suppress(BaseException):
            forever(run)
        return {"value": 1.0, "cost": 1e6}

    done = the_one(workers(late, timeout=0.05))
    assert isinstance(done.result, Failure)
    assert done.usage is not None
    assert done.result.seconds == done.usage.wall  # nor does the cost that it says


@posix
def test_a_trial_in_good_time_is_not_disturbed() -> None:
    at_work = workers(lambda run: 1.0, timeout=60)
    assert [type(the_one(at_work, number=n, within=60).result) for n in range(3)] == [Outcome] * 3


@posix
def test_a_timer_and_a_handler_of_the_caller_come_back() -> None:
    rung: list[int] = []

    def own(number: int, frame: FrameType | None) -> None:
        rung.append(number)

    before = signal.signal(signal.SIGALRM, own)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        the_one(workers(forever), within=0.1)
        assert signal.getsignal(signal.SIGALRM) is own
        while not rung:  # it was due meanwhile
            time.sleep(0.001)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@posix
def test_a_search_inside_a_trial_keeps_the_outer_limit() -> None:
    def outer(run: Run) -> float:
        inner = the_one(workers(lambda run: 1.0, timeout=60), within=60).result
        assert isinstance(inner, Outcome)
        return forever(run)

    assert isinstance(the_one(workers(outer, timeout=0.2)).result, Failure)


def test_in_another_thread_a_trial_runs_to_its_end_and_counts() -> None:
    found: list[Done] = []

    def objective(run: Run) -> float:
        time.sleep(0.05)
        return 1.0

    def work() -> None:
        found.append(the_one(workers(objective, timeout=0.01), within=0.02))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert isinstance(found[0].result, Outcome)


def test_a_trial_without_time_does_not_begin() -> None:
    called: list[Run] = []
    done = the_one(workers(lambda run: called.append(run)), within=0.0)
    assert isinstance(done.result, Stopped)
    assert called == []


def test_a_trial_that_is_stopped_before_it_begins_does_not_begin() -> None:
    called: list[int] = []

    def objective(run: Run) -> float:
        called.append(run.number)
        return 1.0

    at_work = workers(objective)
    at_work.submit(trial(1))
    at_work.stop([1, 7], "enough")
    assert at_work.free == 1
    assert at_work.wait() == [Done(trial(1), Stopped("enough"))]
    assert at_work.wait() == []
    assert called == []


def test_a_trial_runs_only_when_it_is_waited_for() -> None:
    called: list[int] = []
    at_work = workers(lambda run: called.append(run.number))
    at_work.submit(trial(3))
    assert (called, at_work.free) == ([], 0)
    at_work.wait(0.0)
    assert (called, at_work.free) == ([3], 1)


@posix
def test_an_interrupt_from_the_keyboard_is_recorded_with_its_trial() -> None:
    def objective(run: Run) -> float:
        os.kill(os.getpid(), signal.SIGINT)
        return forever(run)

    result = the_one(workers(objective, timeout=60)).result
    assert isinstance(result, Failure)
    assert isinstance(result.raised, KeyboardInterrupt)


def test_the_time_is_measured() -> None:
    def objective(run: Run) -> float:
        with run.timer():
            pass
        time.sleep(0.02)
        return 1.0

    done = the_one(workers(objective))
    assert done.usage is not None
    assert done.usage.wall >= 0.02
    assert isinstance(done.result, Outcome)
    assert done.result.cost is not None
    assert done.result.cost < done.usage.wall


def test_memory_cannot_be_limited_in_the_calling_process() -> None:
    with pytest.raises(ValueError, match="n_workers"):
        SerialRunner().open(forever, TrialLimits(memory=2**30))


def test_the_description_is_a_value() -> None:
    assert SerialRunner() == SerialRunner()


def test_closing_forgets_what_has_not_begun() -> None:
    at_work: Any = SerialRunner().open(forever, NO_LIMITS)
    at_work.submit(trial(0))
    at_work.close()
    at_work.close()
    assert at_work.wait() == []


# ---- interrupted by another thread ----

urgent = pytest.mark.skipif(not hasattr(signal, "SIGURG"), reason="needs POSIX signals")


def interrupted(objective: Objective, *numbers: int, timeout: float | None = None) -> Done:
    """What becomes of trial 1 if another thread interrupts these trials once it runs."""
    begun, ended = threading.Event(), threading.Event()

    def begin(run: Run) -> Any:
        begun.set()
        return objective(run)

    def interrupt() -> None:
        begun.wait(60)
        while not ended.wait(0.05):
            for number in numbers:
                at_work.interrupt([number], f"as scripted for {number}")

    at_work = workers(begin, timeout)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        done = the_one(at_work, number=1)
    finally:
        ended.set()
    thread.join()
    at_work.interrupt([1], "nothing runs any more")
    return done


def asleep(run: Run) -> float:
    time.sleep(60)
    return 1.0


@urgent
@pytest.mark.parametrize("objective", [forever, asleep])
@pytest.mark.parametrize("timeout", [None, 60.0])
def test_another_thread_can_interrupt_a_trial(objective: Any, timeout: float | None) -> None:
    done = interrupted(objective, 7, 1, timeout=timeout)
    assert done.result == Stopped("as scripted for 1")
    assert done.usage is not None
    assert done.usage.wall < 60


@urgent
def test_a_trial_that_swallows_the_interruption_of_a_thread_is_interrupted_again() -> None:
    swallowed: list[BaseException] = []

    def stubborn(run: Run) -> float:
        try:
            asleep(run)
        except BaseException as error:
            swallowed.append(error)
        return forever(run)

    assert interrupted(stubborn, 1, 1).result == Stopped("as scripted for 1")
    assert len(swallowed) == 1


@urgent
def test_only_the_named_trials_are_interrupted() -> None:
    def short(run: Run) -> float:
        time.sleep(0.1)
        return 1.0

    assert isinstance(interrupted(short, 0, 2, 11).result, Outcome)


@urgent
def test_the_signal_that_interrupts_is_given_back_afterwards() -> None:
    seen: list[Any] = []
    the_one(workers(lambda run: seen.append(signal.getsignal(signal.SIGURG)) or 1.0))
    assert seen != [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL


@urgent
def test_a_handler_of_the_users_own_is_left_alone() -> None:
    heard: list[int] = []

    def short(run: Run) -> float:
        time.sleep(0.1)
        return 1.0

    before = signal.signal(signal.SIGURG, lambda number, frame: heard.append(number))
    try:
        done = interrupted(short, 1)
    finally:
        signal.signal(signal.SIGURG, before)
    assert heard == []
    assert isinstance(done.result, Outcome)


@urgent
def test_the_signal_does_nothing_to_a_trial_that_nobody_interrupts() -> None:
    def objective(run: Run) -> float:
        signal.raise_signal(signal.SIGURG)
        return 1.0

    assert isinstance(the_one(workers(objective)).result, Outcome)


@urgent
def test_a_search_inside_an_interrupted_trial_ends_with_it() -> None:
    def outer(run: Run) -> float:
        return float(the_one(workers(asleep), number=5).result.value)  # type: ignore[union-attr]

    assert interrupted(outer, 1).result == Stopped("as scripted for 1")


@urgent
def test_a_trial_outlasts_the_interrupted_trial_of_a_search_inside_it() -> None:
    def outer(run: Run) -> float:
        assert interrupted(asleep, 1).result == Stopped("as scripted for 1")
        return 3.0

    result = the_one(workers(outer)).result
    assert isinstance(result, Outcome)
    assert result.value == 3.0


@posix
def test_a_trial_outlasts_a_trial_inside_it_that_took_too_long() -> None:
    def outer(run: Run) -> float:
        assert isinstance(the_one(workers(forever, timeout=0.05)).result, Failure)
        return 3.0

    assert isinstance(the_one(workers(outer)).result, Outcome)


def test_in_another_thread_an_interrupted_trial_runs_to_its_end() -> None:
    found: list[Done] = []

    def short(run: Run) -> float:
        time.sleep(0.1)
        return 1.0

    thread = threading.Thread(target=lambda: found.append(interrupted(short, 1)))
    thread.start()
    thread.join()
    assert isinstance(found[0].result, Outcome)


@urgent
def test_an_objective_that_a_thread_interrupts_may_clean_up() -> None:
    cleaned: list[int] = []

    def tidy(run: Run) -> float:
        try:
            return asleep(run)
        finally:
            for i in range(10):  # much longer than the thread waits before it asks again
                time.sleep(0.03)
                cleaned.append(i)

    assert interrupted(tidy, 1).result == Stopped("as scripted for 1")
    assert cleaned == list(range(10))
