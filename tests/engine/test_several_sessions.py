"""Several sessions on one log, in threads and in processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.studies import (
    SPACE,
    check_whole,
    create,
    created,
    drive,
    environment,
    events_of,
    finished,
    numbers,
    quick,
    script,
    study_of,
)
from tradewind.engine.contention import is_alive, this_process
from tradewind.engine.session import Session
from tradewind.log.events import Claimed, Event, Proposed
from tradewind.log.log import Conflict, Log
from tradewind.log.memory import MemoryLog
from tradewind.log.sqlite import SqliteStore
from tradewind.strategies import Bayes, Design, RandomSearch
from tradewind.types import Outcome, State, Trial


def good(trial: Trial) -> Outcome:
    return Outcome(trial.params["x"], 1.0)  # type: ignore[arg-type]


def together(*work: Callable[[], object]) -> None:
    """Do all of it at the same time, each in its own thread."""
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


def ask_and_tell(session: Session, n: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(n):
            trial = session.ask(lease=60.0)
            session.trials()
            session.finish(trial.number, good(trial))

    return work


def check(trials: list[Trial], n: int) -> None:
    """These are n different trials, each with its own result."""
    assert numbers(trials) == list(range(n))
    assert len({tuple(t.params.items()) for t in trials}) == n
    assert all(t.value == t.params["x"] for t in trials)
    assert all(t.retries == 0 for t in trials)


# ---- taking turns ----


def test_two_sessions_on_one_log_take_turns() -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    assert [d.ask().number for d in (a, b, b, a, b)] == [0, 1, 2, 3, 4]
    assert a.trials() == b.trials()


def test_a_session_reports_on_a_trial_that_another_asked_for() -> None:
    log = MemoryLog()
    a, b = drive(log), drive(log)
    b.finish(a.ask().number, Outcome(1.0))
    assert a.trial(0).value == 1.0


def test_two_sessions_propose_what_one_session_would() -> None:
    """A proposal follows from the log and its number, whoever asks."""
    log, strategy = MemoryLog(), Bayes(design=Design(4))
    a, b, alone = (
        drive(log, strategy=strategy),
        drive(log, strategy=strategy),
        drive(strategy=strategy),
    )
    for i in range(10):
        for session in ((a, b)[i % 2], alone):
            session.finish(session.ask().number, Outcome(i % 4, 1.0))
    assert [t.params for t in a.trials()] == [t.params for t in alone.trials()]


# ---- at the same time ----


def test_threads_that_share_a_session_get_different_numbers_and_configurations() -> None:
    session = drive(strategy=Bayes(design=Design(4)))
    together(*[ask_and_tell(session, 5)] * 4)
    check(session.trials(), 20)
    assert tw.replay(study_of(session.log)).identical


def test_threads_with_their_own_sessions_get_different_numbers_and_configurations() -> None:
    log = MemoryLog()
    sessions = [drive(log) for _ in range(4)]
    together(*[ask_and_tell(session, 5) for session in sessions])
    for session in sessions:
        check(session.trials(), 20)
    claimed = [e for e in log.read(0) if isinstance(e, Claimed)]
    assert len(claimed) == 20
    assert len({e.driver for e in claimed}) == 4
    assert tw.replay(study_of(log)).identical


class Racing:
    """A log in which the first append of each thread waits until all threads are about to append:
    by then, all of them have computed a proposal from the same log."""

    def __init__(self, inner: Log, threads: int) -> None:
        self.inner = inner
        self.barrier = threading.Barrier(threads)
        self.appends: dict[int, list[bool]] = {}  # whether they were accepted, by thread

    def append(self, events: Sequence[Event], **options: Any) -> int:
        accepted = self.appends.setdefault(threading.get_ident(), [])
        if not accepted:
            self.barrier.wait(60.0)
        try:
            length = self.inner.append(events, **options)
        except Conflict:
            accepted.append(False)
            raise
        accepted.append(True)
        return length

    def read(self, after: int) -> Sequence[Event]:
        return self.inner.read(after)

    def beat(self, trials: Sequence[int], seconds: float) -> Mapping[int, float]:
        return self.inner.beat(trials, seconds)


@pytest.mark.parametrize("storage", ["memory", "SQLite"])
def test_sessions_that_race_for_a_number_never_propose_the_same(
    storage: str, tmp_path: Path
) -> None:
    """All compute a proposal for trial 0. One is accepted, and the others propose again."""
    inner: Log = MemoryLog()
    if storage == "SQLite":
        inner = SqliteStore(tmp_path / "runs.db").create("study", created())
    sessions = [drive(inner) for _ in range(3)]
    log = Racing(inner, len(sessions))
    for session in sessions:
        session.log = session.journal.log = log
    asked: list[int] = []
    together(*[lambda s=s: asked.append(s.ask().number) for s in sessions])  # type: ignore[misc]
    assert sorted(asked) == [0, 1, 2]
    proposed = [e for e in inner.read(0) if isinstance(e, Proposed)]
    assert sorted(e.number for e in proposed) == [0, 1, 2]
    assert len({e.params["x"] for e in proposed}) == 3
    first = [accepted[0] for accepted in log.appends.values()]
    assert sorted(first) == [False, False, True]
    assert tw.replay(study_of(inner)).identical


def test_threads_share_a_study_in_a_file(tmp_path: Path) -> None:
    study = create(storage=tmp_path / "runs.db")
    others = [tw.load_study(tmp_path / "runs.db") for _ in range(3)]
    together(*[ask_and_tell(s._session, 10) for s in (study, *others)])
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
def test_processes_get_different_numbers_and_configurations(tmp_path: Path) -> None:
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
def test_a_forked_study_is_another_session(tmp_path: Path) -> None:
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
    """A strategy that waits for `go_on` while it proposes."""

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


def test_a_study_in_a_file_that_many_wrote_is_whole(tmp_path: Path) -> None:
    """With real threads and SQLite, in whatever order they come."""
    store = SqliteStore(tmp_path / "runs.db")
    study = tw.create_study(SPACE, storage=store, seed=0, strategy="random", name="busy")
    asked: list[int] = []

    def work(seed: int) -> Callable[[], None]:
        session = tw.load_study(store, "busy")._session

        def run() -> None:
            for i in range(12):
                trial = session.ask(lease=60.0)
                asked.append(trial.number)
                match (seed + i) % 5:
                    case 0:
                        session.requeue(trial.number, "again")
                    case 1:
                        session.fail(trial.number, "boom")
                    case 2:
                        session.add({"x": i / 12, "k": 1}, Outcome(1.0))
                        session.enqueue({})
                    case _:
                        session.finish(trial.number, good(trial))

        return run

    together(*[work(seed) for seed in range(4)])
    check_whole(study._session.log, asked)
    assert tw.replay(study).identical


# ---- drivers that have died ----

KILLED = """
import os, signal, sys
import tradewind as tw

study = tw.load_study(sys.argv[1])
study.optimize(lambda run: os.kill(os.getpid(), signal.SIGKILL), n_trials=1)
"""


@pytest.mark.skipif(not this_process(), reason="only Linux tells processes apart")
def test_trials_of_a_driver_that_died_on_this_machine_are_taken_over_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    study = create(storage=tmp_path / "runs.db")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "runs.db"], env=environment(), check=False
    )
    assert done.returncode == -signal.SIGKILL
    study.optimize(lambda run: 1.0, n_trials=1)
    (trial,) = study.trials
    assert (trial.state, trial.losses) == (State.FINISHED, 1)
    assert caplog.text == ""


def test_trials_of_a_driver_elsewhere_wait_for_its_lease_and_a_line_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(storage=tmp_path / "runs.db").ask(
        lease=60.0
    )  # a loop of one's own in this process needs no line
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(platform, "node", lambda: "node-7")
        tw.load_study(tmp_path / "runs.db").ask(lease=60.0)
    study = tw.load_study(tmp_path / "runs.db")
    study.optimize(lambda run: 1.0, n_trials=1)
    assert numbers(study.trials) == [0, 1, 2]
    line = "unfinished trials of drivers on node-7: 1; if those drivers are gone, searches run "
    assert [text.partition(line)[0] for text in caplog.messages] == ["", ""]  # first and last


@pytest.mark.skipif(not this_process(), reason="only Linux tells processes apart")
def test_a_trial_that_is_asked_for_after_a_search_may_be_told_by_another_process(
    tmp_path: Path,
) -> None:
    study = create(storage=tmp_path / "runs.db")
    study.optimize(lambda run: 1.0, n_trials=1)
    study.ask(lease=60.0)
    assert [is_alive(trial.driver or "") for trial in study.trials] == [True, None]


@pytest.mark.skipif(not this_process(), reason="only Linux tells processes apart")
def test_a_process_is_known_by_its_machine_its_number_and_its_begin() -> None:
    node, me, began = platform.node(), os.getpid(), this_process()
    ended = subprocess.Popen([sys.executable, "-c", ""])  # and nobody collects it yet
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert is_alive(f"{node}:{me}:token{began}") is True
    assert is_alive(f"{node}:{me}:token{began}0") is False  # another process had this number
    assert is_alive(f"{node}:{ended.pid}:token{began}") is False
    for unknown in (
        f"other:{me}:token{began}",
        f"{node}:{me}:token:another boot:1",
        f"{node}:{me}:token",
        f"{node}:{10**30}:token{began}",
        "",
    ):
        assert is_alive(unknown) is None
    ended.wait()
