"""Several drivers on one log: threads, processes, and every order in which they may get in each
other's way."""

from __future__ import annotations

import itertools
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.studies import (
    SPACE,
    Clock,
    check_whole,
    create,
    drive,
    events_of,
    finished,
    numbers,
    quick,
    script,
    study_of,
)
from tradewind.engine.session import LOSSES, Driver
from tradewind.errors import TrialError
from tradewind.log.events import (
    Claimed,
    Event,
)
from tradewind.log.memory import MemoryLog
from tradewind.log.sqlite import SqliteStore
from tradewind.log.state import Record
from tradewind.strategies import Bayes, Design, RandomSearch, Strategy
from tradewind.types import Outcome, State, Trial


def good(trial: Trial) -> Outcome:
    return Outcome(trial.params["x"], 1.0)  # type: ignore[arg-type]


def together(*work: Callable[[], object]) -> None:
    """Do it all at the same time, each in a thread."""
    begin = threading.Barrier(len(work))
    errors: list[BaseException] = []

    def run(task: Callable[[], object]) -> None:
        begin.wait()
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def ask_and_tell(driver: Driver, n: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(n):
            trial = driver.ask(lease=60.0)
            driver.trials()
            driver.finish(trial.number, good(trial))

    return work


def check(trials: list[Trial], n: int) -> None:
    """n different trials, each with its own result."""
    assert numbers(trials) == list(range(n))
    assert len({tuple(t.params.items()) for t in trials}) == n
    assert all(t.value == t.params["x"] for t in trials)
    assert all(t.retries == 0 for t in trials)


# ---- taking turns ----


def test_two_drivers_on_one_log_take_turns() -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    assert [d.ask().number for d in (a, b, b, a, b)] == [0, 1, 2, 3, 4]
    assert a.trials() == b.trials()


def test_a_driver_tells_what_another_asked() -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    b.finish(a.ask().number, Outcome(1.0))
    assert a.trial(0).value == 1.0


def test_two_drivers_propose_what_one_would() -> None:
    """Whoever asks, a proposal follows from the log and its number."""
    log, strategy = MemoryLog(), Bayes(design=Design(4))
    a, b, alone = (
        drive(log, strategy=strategy),
        drive(log, strategy=strategy),
        drive(strategy=strategy),
    )
    for i in range(10):
        for driver in ((a, b)[i % 2], alone):
            driver.finish(driver.ask().number, Outcome(i % 4, 1.0))
    assert [t.params for t in a.trials()] == [t.params for t in alone.trials()]


# ---- at the same time ----


def test_threads_that_share_a_driver_get_numbers_and_points_of_their_own() -> None:
    driver = drive(strategy=Bayes(design=Design(4)))
    together(*[ask_and_tell(driver, 5)] * 4)
    check(driver.trials(), 20)
    assert tw.replay(study_of(driver.log)).identical


def test_threads_with_drivers_of_their_own_get_numbers_and_points_of_their_own() -> None:
    log = MemoryLog()
    drivers = [drive(log) for _ in range(4)]
    together(*[ask_and_tell(driver, 5) for driver in drivers])
    for driver in drivers:
        check(driver.trials(), 20)
    claimed = [e for e in log.read(0) if isinstance(e, Claimed)]
    assert len(claimed) == 20
    assert len({e.driver for e in claimed}) == 4
    assert tw.replay(study_of(log)).identical


def test_threads_share_a_study_in_a_file(tmp_path: Path) -> None:
    study = create(storage=tmp_path / "runs.db")
    others = [tw.load_study(tmp_path / "runs.db") for _ in range(3)]
    together(*[ask_and_tell(s._driver, 10) for s in (study, *others)])
    check(study.trials, 40)


def test_searches_may_share_a_study(tmp_path: Path) -> None:
    studies = [quick(storage=tmp_path / "runs.db")]
    studies += [tw.load_study(tmp_path / "runs.db") for _ in range(2)]
    together(
        *[lambda s=s: s.optimize(lambda t: t.params["x"], n_trials=6) for s in studies]  # type: ignore[misc]
    )
    assert numbers(studies[0].trials) == list(range(18))
    assert all(t.value == t.params["x"] for t in studies[0].trials)
    assert tw.replay(studies[0]).identical


WORK = """
import sys
import tradewind as tw

study = tw.load_study(sys.argv[1])
print("ready", flush=True)
input()
for _ in range(int(sys.argv[2])):
    trial = study.ask(lease=60)
    study.tell(trial, value=trial.params["x"], cost=1.0)
    print(trial.number)
"""


@pytest.mark.slow
def test_processes_get_numbers_and_points_of_their_own(tmp_path: Path) -> None:
    study = quick(storage=tmp_path / "runs.db")
    processes = [script(WORK, tmp_path / "runs.db", 8) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    asked = [list(map(int, finished(process).split())) for process in processes]
    assert sorted(itertools.chain(*asked)) == list(range(24))
    assert all(t.value == t.params["x"] for t in study.trials)
    assert tw.replay(study).identical


def ask_three(study: tw.Study, asked: Any) -> None:
    asked.put([study.ask().number for _ in range(3)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12, where it is used
def test_a_forked_study_is_another_driver(tmp_path: Path) -> None:
    study = create(storage=tmp_path / "runs.db")
    study.ask()
    context = multiprocessing.get_context("fork")
    asked = context.Queue()
    processes = [context.Process(target=ask_three, args=(study, asked)) for _ in range(3)]
    for process in processes:
        process.start()
    taken = sorted(itertools.chain(*(asked.get(timeout=60) for _ in processes)))
    for process in processes:
        process.join()
    assert taken == list(range(1, 10))
    writers = {e.driver for e in events_of(study) if isinstance(e, Claimed)}
    assert len(writers) == 4


class Waiting(RandomSearch):
    """A strategy whose first proposal waits for something."""

    def __init__(self, begun: threading.Event, go_on: threading.Event) -> None:
        object.__setattr__(self, "begun", begun)
        object.__setattr__(self, "go_on", go_on)

    def propose(self, *args: Any, **options: Any) -> Any:
        self.begun.set()  # type: ignore[attr-defined]
        self.go_on.wait(60.0)  # type: ignore[attr-defined]
        return super().propose(*args, **options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of Python 3.12, where it is used
def test_a_process_that_is_forked_while_a_thread_proposes_can_propose(tmp_path: Path) -> None:
    study = create(storage=tmp_path / "runs.db")
    begun, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=create(strategy=Waiting(begun, go_on)).ask)
    thread.start()
    assert begun.wait(60.0)
    context = multiprocessing.get_context("fork")
    asked = context.Queue()
    process = context.Process(target=ask_three, args=(study, asked), daemon=True)
    process.start()
    try:
        assert asked.get(timeout=20) == [0, 1, 2]
    finally:
        go_on.set()
        thread.join()
        process.terminate()
        process.join()


def test_a_strategy_may_ask_another_study() -> None:
    inner = create()

    class Nested(RandomSearch):
        def propose(self, *args: Any, **options: Any) -> Any:
            inner.ask()
            return super().propose(*args, **options)

    outer = create(strategy=Nested())
    thread = threading.Thread(target=outer.ask, daemon=True)
    thread.start()
    thread.join(20.0)
    assert not thread.is_alive(), "a study waits for itself"
    assert (len(outer.trials), len(inner.trials)) == (1, 1)


# ---- every order ----


class Crowded(MemoryLog):
    """A log in which others may act just before an append is made."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.waiting: list[Callable[[], None]] = []

    def append(self, events: Sequence[Event], *, expected: int | None = None) -> int:
        waiting, self.waiting = self.waiting, []
        for act in waiting:
            act()
        return super().append(events, expected=expected)


class World:
    """Some drivers of one log, and what they do."""

    def __init__(self, strategy: Strategy, drivers: int) -> None:
        self.clock = Clock()
        self.log = Crowded(self.clock)
        self.strategy = strategy
        self.drivers = [drive(self.log, strategy=strategy) for _ in range(drivers)]
        self.asked: list[int] = []

    def act(self, who: int, verb: str, x: int) -> None:
        driver = self.drivers[who]
        number = x % (len(self.asked) + 1)
        try:
            match verb:
                case "ask":
                    self.asked.append(driver.ask(max_cost=None if x % 2 else 5.0).number)
                case "lease":
                    self.asked.append(driver.ask(lease=60.0).number)
                case "prepare":
                    self.asked.append(driver.ask(lease=60.0, start=False).number)
                case "start":
                    driver.start(number, leased=True)
                case "finish":
                    driver.finish(number, Outcome(float(x), 1.0 + x))
                case "fail":
                    driver.fail(number, "boom", penalize=bool(x % 2))
                case "abandon":
                    driver.abandon(number, "enough")
                case "lose":
                    driver.lose(number, "gone")
                case "decline" if number in {t.number for t in driver.trials()}:
                    driver.decline(number, "too dear")
                case "requeue":
                    driver.requeue(number, "again", retry=bool(x % 2))
                case "enqueue":
                    driver.enqueue({"x": x / 99})
                case "add":
                    added = driver.add({"x": x / 99, "k": 1 + x % 9}, Outcome(float(x), 2.0))
                    self.asked.append(added.number)
                case "configure":
                    driver.configure(goal=tw.Tradeoff(alpha=x / 99), strategy=self.strategy)
                case "wait":
                    self.clock.now += (10.0, 61.0, 301.0)[x % 3]
                case "die":
                    self.drivers[who] = drive(self.log, strategy=self.strategy)
        except TrialError:
            pass  # refused, as it may be


VERBS = (
    *("ask", "ask", "lease", "lease", "prepare", "start", "finish", "finish", "finish"),
    *("fail", "abandon", "requeue", "lose", "decline", "enqueue", "add", "configure"),
    *("wait", "wait", "die"),
)
acts = st.tuples(st.integers(0, 2), st.sampled_from(VERBS), st.integers(0, 99))
# an act, and what others do while it is under way
histories = st.lists(st.tuples(acts, st.lists(acts, max_size=2)), max_size=25)


def played(strategy: Strategy, history: list[tuple[Any, list[Any]]]) -> World:
    world = World(strategy, 3)
    for (who, verb, x), meanwhile in history:
        world.log.waiting = [
            lambda act=act: world.act(*act)  # type: ignore[misc]
            for act in meanwhile
            if act[0] != who
        ]
        world.act(who, verb, x)
        world.log.waiting = []
    return world


@settings(max_examples=400)
@given(history=histories)
def test_whatever_drivers_do_and_in_whatever_order_the_log_is_whole(
    history: list[tuple[Any, list[Any]]],
) -> None:
    world = played(RandomSearch(), history)
    check_whole(world.log, world.asked)
    first, *others = [driver.trials() for driver in world.drivers]
    assert all(other == first for other in others)
    assert tw.replay(study_of(world.log)).identical


@pytest.mark.slow
@settings(max_examples=25)
@given(history=histories)
def test_whatever_drivers_do_proposals_by_a_model_follow_from_the_log(
    history: list[tuple[Any, list[Any]]],
) -> None:
    world = played(Bayes(design=Design(2)), history)
    check_whole(world.log, world.asked)
    assert tw.replay(study_of(world.log)).identical


@settings(max_examples=25)
@given(history=histories)
def test_after_all_drivers_have_died_every_trial_that_was_under_way_is_taken_up_again(
    history: list[tuple[Any, list[Any]]],
) -> None:
    world = played(RandomSearch(), history)
    world.clock.now += 1000.0
    heir = drive(world.log)
    heir.trials()
    record = Record.of(world.log.read(0)[0])  # type: ignore[arg-type]
    record.apply(world.log.read(1))
    unproposed = set(range(record.claims)) - set(record.trials)
    open_ones = (record.leased | record.returned | unproposed) - {
        n for n, t in record.trials.items() if t.state is State.RUNNING and t.losses >= LOSSES
    }
    queued = len(record.queue)
    asked = {heir.ask(lease=60.0).number for _ in range(len(open_ones) + queued)}
    assert open_ones <= asked


def test_a_study_in_a_file_that_many_wrote_is_whole(tmp_path: Path) -> None:
    """As above, with real threads over SQLite: no order is left out on purpose."""
    store = SqliteStore(tmp_path / "runs.db")
    study = tw.create_study(SPACE, storage=store, seed=0, strategy="random", name="busy")
    asked: list[int] = []

    def work(seed: int) -> Callable[[], None]:
        driver = tw.load_study(store, "busy")._driver

        def run() -> None:
            for i in range(12):
                trial = driver.ask(lease=60.0)
                asked.append(trial.number)
                match (seed + i) % 5:
                    case 0:
                        driver.requeue(trial.number, "again")
                    case 1:
                        driver.fail(trial.number, "boom")
                    case 2:
                        driver.add({"x": i / 12, "k": 1}, Outcome(1.0))
                        driver.enqueue({})
                    case _:
                        driver.finish(trial.number, good(trial))

        return run

    together(*[work(seed) for seed in range(4)])
    check_whole(study._driver.log, asked)
    assert tw.replay(study).identical
