"""What every runner must do."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tradewind.runners.run import Objective, Run
from tradewind.runners.runner import Done, Failure, Runner, Stopped, TrialLimits, Workers
from tradewind.testing.check import check_all, contract, must
from tradewind.types import Origin, Outcome, State, Trial


@contextmanager
def opened(
    runner: Runner, objective: Objective, limits: TrialLimits | None = None
) -> Iterator[Workers]:
    """The workers of the runner, closed in the end."""
    workers = runner.open(objective, limits or TrialLimits())
    try:
        yield workers
    finally:
        workers.close()


def trial(number: int) -> Trial:
    return Trial(
        number=number,
        params={"x": number / 10},
        state=State.RUNNING,
        origin=Origin.DESIGN,
        seed=1000 + number,
        train_size=0.5,
    )


def the_only(workers: Workers, *, within: float | None = None) -> Done:
    """What comes back of trial 1."""
    workers.submit(trial(1), within=within)
    done = workers.wait()
    must(len(done) == 1, f"one trial was submitted, and {len(done)} came back")
    must(done[0].trial == trial(1), f"another trial came back: {done[0].trial}")
    return done[0]


def outcome_of(runner: Runner, objective: Objective) -> Done:
    """What comes back of trial 1, which must have an outcome."""
    with opened(runner, objective) as workers:
        done = the_only(workers)
    must(isinstance(done.result, Outcome), f"it came back as {done.result}")
    return done


def square(run: Run) -> float:
    return float(run.params["x"] ** 2)


def endless(run: Run) -> float:
    for _ in range(6000):
        time.sleep(0.1)
    return 1.0


# ---- the contract ----


def new_workers_are_all_free(runner: Runner) -> None:
    """New workers are all free, and there is at least one."""
    with opened(runner, square) as workers:
        must(workers.free == workers.slots >= 1, f"{workers.free} of {workers.slots} are free")


def every_trial_comes_back_once_with_its_own_outcome(runner: Runner) -> None:
    """Every submitted trial comes back from `wait` exactly once, with its own outcome."""
    with opened(runner, square) as workers:
        waiting = list(range(6))
        seen: list[Done] = []
        while waiting or len(seen) < 6:
            while waiting and workers.free:
                workers.submit(trial(waiting.pop(0)))
            seen += workers.wait()
    numbers = sorted(done.trial.number for done in seen)
    must(numbers == list(range(6)), f"0 to 5 were submitted, and {numbers} came back")
    for done in seen:
        found = done.result.value if isinstance(done.result, Outcome) else done.result
        must(found == (done.trial.number / 10) ** 2, f"trial {done.trial.number} gave {found}")


def a_submitted_trial_takes_a_slot_until_it_is_done(runner: Runner) -> None:
    """A submitted trial takes one slot until `wait` has returned it."""
    with opened(runner, square) as workers:
        workers.submit(trial(0))
        must(workers.free == workers.slots - 1, f"{workers.free} of {workers.slots} are free")
        must(workers.wait(), "wait() came back with nothing")
        must(workers.free == workers.slots, f"{workers.free} are free after the end")


def waiting_for_nothing_comes_back_at_once(runner: Runner) -> None:
    """`wait` comes back at once with an empty list if nothing runs."""
    with opened(runner, square) as workers:
        must(workers.wait() == [], "it did not")


def nothing_runs_before_it_is_submitted(runner: Runner) -> None:
    """The objective is not called before a trial is submitted."""
    with tempfile.TemporaryDirectory() as folder:
        ran = Path(folder) / "ran"
        with opened(runner, lambda run: ran.write_text("yes")):
            pass
        must(not ran.exists(), "it was")


def the_clock_does_not_go_back(runner: Runner) -> None:
    """`now` does not go back."""
    with opened(runner, square) as workers:
        before = workers.now()
        the_only(workers)
        must(workers.now() >= before, f"it was {before}, and then {workers.now()}")


def the_objective_sees_its_trial(runner: Runner) -> None:
    """The objective gets a `Run` with the number, seed, size and parameters of its trial."""

    def objective(run: Run) -> float:
        found = (run.number, run.seed, run.train_size, dict(run.params), run.device)
        must(found == (1, 1001, 0.5, {"x": 0.1}, "cpu"), f"it got {found}")
        return 1.0

    outcome_of(runner, objective)


def what_the_objective_does_to_its_params_leaves_the_trial_alone(runner: Runner) -> None:
    """What the objective does to `run.params` does not change the trial that comes back."""

    def objective(run: Run) -> float:
        run.params.clear()
        return 1.0

    outcome_of(runner, objective)


def the_cost_is_measured(runner: Runner) -> None:
    """If the objective returns no cost, its time is measured."""
    result = outcome_of(runner, square).result
    cost = result.cost if isinstance(result, Outcome) else None
    must(cost is not None and cost >= 0.0, f"the cost is {cost}")


def a_returned_cost_is_the_cost(runner: Runner) -> None:
    """If the objective returns a cost, it is the cost."""
    result = outcome_of(runner, lambda run: {"value": 1.0, "cost": 30.0}).result
    must(result == Outcome(1.0, 30.0), f"the result is {result}")


def what_an_evaluation_took_is_reported(runner: Runner) -> None:
    """`Done.usage` says how long the evaluation took, how many ran beside it, and where."""
    usage = outcome_of(runner, square).usage
    if usage is None:
        raise AssertionError("there is none")
    must(usage.wall >= 0.0, f"it took {usage.wall} seconds")
    must(abs(usage.concurrency - 1.0) < 1e-6, f"{usage.concurrency} ran at the same time")
    must(usage.device == "cpu", f"the device is {usage.device!r}")


def an_exception_comes_back_as_a_failure(runner: Runner) -> None:
    """Whatever the objective raises comes back as a `Failure` with its traceback."""
    kinds: Sequence[type[BaseException]] = (ValueError, KeyboardInterrupt, SystemExit)
    for kind in kinds:

        def objective(run: Run, kind: type[BaseException] = kind) -> float:
            raise kind("as scripted")

        with opened(runner, objective) as workers:
            result = the_only(workers).result
        if not isinstance(result, Failure):
            raise AssertionError(f"a {kind.__name__} came back as {result}")
        must(result.is_a(kind), f"the failure of a {kind.__name__} does not say that it is one")
        for part in ("as scripted", "in objective"):
            must(part in result.error, f"its error lacks {part!r}: {result.error}")


def an_unusable_answer_comes_back_as_a_failure(runner: Runner) -> None:
    """An answer that is not a finite number comes back as a `Failure`."""
    answers = [math.nan, math.inf, None, "0.5"]
    with opened(runner, lambda run: answers[run.number]) as workers:
        for number in range(4):
            workers.submit(trial(number))
            (done,) = workers.wait()
            failed = isinstance(done.result, Failure) and not done.result.is_a(BaseException)
            must(failed, f"{answers[number]!r} came back as {done.result}")


def a_failure_does_not_stop_the_workers(runner: Runner) -> None:
    """After a failure, the next trial runs."""
    with opened(runner, lambda run: 1 / run.number) as workers:
        results = []
        for number in (0, 1):
            workers.submit(trial(number))
            results += [done.result for done in workers.wait()]
    must([type(r) for r in results] == [Failure, Outcome], f"the results are {results}")


def stopping_what_does_not_run_does_nothing(runner: Runner) -> None:
    """`stop` ignores trials that do not run."""
    with opened(runner, square) as workers:
        workers.stop([0, 1], "as scripted")
        must(workers.wait() == [], "something came back")
        must(isinstance(the_only(workers).result, Outcome), "the next trial did not run")


def closing_twice_does_no_harm(runner: Runner) -> None:
    """`close` may be called twice, even while a trial runs."""
    with opened(runner, square) as workers:
        workers.submit(trial(0))
        workers.close()


def a_trial_can_be_stopped(runner: Runner) -> None:
    """A running trial that is stopped comes back as `Stopped`, with the first reason."""
    with opened(runner, endless) as workers:
        workers.submit(trial(1))
        workers.stop([0, 1, 2], "as scripted")
        workers.stop([1], "again")
        (done,) = workers.wait()
        must(done.result == Stopped("as scripted"), f"it came back as {done.result}")
        must(workers.free == workers.slots, f"{workers.free} of {workers.slots} are free")


def a_trial_that_has_no_time_left_is_stopped(runner: Runner) -> None:
    """A trial that does not finish `within` its time comes back as `Stopped`."""
    with opened(runner, endless) as workers:
        result = the_only(workers, within=0.3).result
    must(isinstance(result, Stopped), f"it came back as {result}")


def a_trial_that_takes_too_long_has_failed(runner: Runner) -> None:
    """A trial that takes longer than `TrialLimits.timeout` comes back as a `Failure`."""
    with opened(runner, endless, TrialLimits(timeout=0.3)) as workers:
        result = the_only(workers).result
    if not isinstance(result, Failure):
        raise AssertionError(f"it came back as {result}")
    must("0.3 seconds" in result.error, f"its error does not name the limit: {result.error}")
    must(result.seconds is not None and result.seconds >= 0.3, f"it took {result.seconds} s")


RUNNER = contract(
    new_workers_are_all_free,
    every_trial_comes_back_once_with_its_own_outcome,
    a_submitted_trial_takes_a_slot_until_it_is_done,
    waiting_for_nothing_comes_back_at_once,
    nothing_runs_before_it_is_submitted,
    the_clock_does_not_go_back,
    the_objective_sees_its_trial,
    what_the_objective_does_to_its_params_leaves_the_trial_alone,
    the_cost_is_measured,
    a_returned_cost_is_the_cost,
    what_an_evaluation_took_is_reported,
    an_exception_comes_back_as_a_failure,
    an_unusable_answer_comes_back_as_a_failure,
    a_failure_does_not_stop_the_workers,
    stopping_what_does_not_run_does_nothing,
    closing_twice_does_no_harm,
)
# for runners with a real clock, on which a trial takes as long as its objective
STOPPING = contract(
    a_trial_can_be_stopped,
    a_trial_that_has_no_time_left_is_stopped,
    a_trial_that_takes_too_long_has_failed,
)


def check_runner(make: Callable[[], Runner], *, virtual: bool = False) -> None:
    """Check that a runner keeps its contract. `make` makes one, and is called for every rule.

    With `virtual=True`, the runner has a virtual clock: trials that take too long are not checked.
    Raises an AssertionError that names the first rule that is broken.

    >>> tw.testing.check_runner(tw.runners.SerialRunner)
    """
    check_all(RUNNER if virtual else (*RUNNER, *STOPPING), make)
