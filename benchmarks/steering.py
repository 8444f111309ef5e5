"""How long drivers take to obey: to replace a trial that somebody else has stopped, to start a
trial once a paused study is resumed, and to propose for another goal.

    python benchmarks/steering.py               # 20 times each; about three minutes

Each driver is a process of its own whose trials take for ever. The steering is done from this
process, through the store. All times are those in the log, by one machine's clock. PostgreSQL is a
server that the tests start; without its programs, those rows are left out.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import postgres

import tradewind as tw
from tradewind.log.events import Configured, Paused, Resumed, Started
from tradewind.types import State

SPACE = tw.Space({"x": tw.Float(0, 1), "k": tw.Int(1, 9)})
DRIVER = """
import sys, time
import tradewind as tw

workers = int(sys.argv[2])
study = tw.load_study(sys.argv[1])
study.optimize(lambda run: time.sleep(3600), timeout=3600, n_workers=workers or None)
"""
DRIVERS = {"in process": 0, "2 worker processes": 2}


@contextmanager
def driver(storage: str, workers: int) -> Iterator[None]:
    command = [sys.executable, "-c", DRIVER, storage, str(workers)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "the driver does not obey"
        time.sleep(0.02)


def running(study: tw.Study) -> list[tw.Trial]:
    return [t for t in study.trials if t.state is State.RUNNING and t.started is not None]


def replace_one(study: tw.Study, slots: int) -> float:
    """Seconds from stopping a trial to the start of the next."""
    wait_for(lambda: len(running(study)) == slots)
    known = {t.number for t in study.trials if t.started is not None}
    stopped = study.abandon(running(study)[0], "to see how long it takes")
    started = lambda: [t for t in running(study) if t.number not in known]  # noqa: E731
    wait_for(started)
    return float(started()[0].started or 0.0) - float(stopped.ended or 0.0)


def resume_one(study: tw.Study, slots: int) -> float:
    """Seconds from resuming a study, of which a trial has ended meanwhile, to the next start."""
    wait_for(lambda: len(running(study)) == slots)
    study.pause()
    study.abandon(running(study)[0], "to see how long it takes")
    time.sleep(float(np.random.default_rng().uniform(1.0, 1.5)))  # until it has been stopped
    study.resume()
    wait_for(lambda: len(running(study)) == slots)
    events = study._session.log.read(0)
    places = [i for i, event in enumerate(events) if isinstance(event, Paused | Resumed)]
    paused, resumed = events[places[-2]], events[places[-1]]
    assert isinstance(paused, Paused)
    assert isinstance(resumed, Resumed)
    assert not any(isinstance(e, Started) for e in events[places[-2] : places[-1]])
    next_start = next(e for e in events[places[-1] :] if isinstance(e, Started))
    return float(next_start.at or 0.0) - float(resumed.at or 0.0)


def check_goal(study: tw.Study, slots: int) -> None:
    """A changed goal counts from the next proposal on."""
    study.change_goal(tw.Tradeoff(alpha=0.5, reference=1.0))
    replace_one(study, slots)
    events = study._session.log.read(0)
    assert sum(isinstance(event, Configured) for event in events) == 1  # no driver undoes it


def measure(storage: str, workers: int, repeats: int) -> Iterator[tuple[str, list[float]]]:
    study = tw.create_study(SPACE, seed=0, strategy="random", storage=storage)
    slots = max(1, workers)
    with driver(storage, workers):
        for what, work in (("stop a trial", replace_one), ("resume", resume_one)):
            taken = []
            for _ in range(repeats):
                time.sleep(float(np.random.default_rng().uniform(0.0, 0.5)))  # any phase of a look
                taken.append(work(study, slots))
            yield what, taken
        check_goal(study, slots)


@contextmanager
def stores(folder: str) -> Iterator[dict[str, Callable[[int], str]]]:
    made: dict[str, Callable[[int], str]] = {"SQLite": lambda i: f"{folder}/{i}.db"}
    programs = postgres.programs()
    if programs is None:
        yield made
        return
    server = postgres.Server(programs)
    try:
        yield made | {"PostgreSQL": lambda i: server.url()}
    finally:
        server.remove()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print(f"{'store':12}{'driver':20}{'':14}{'median':>9}{'worst':>9}   seconds, of {repeats}")
    with tempfile.TemporaryDirectory() as folder, stores(folder) as made:
        for store, storage in made.items():
            for i, (name, workers) in enumerate(DRIVERS.items()):
                for what, taken in measure(storage(i), workers, repeats):
                    middle, worst = statistics.median(taken), max(taken)
                    print(f"{store:12}{name:20}{what:14}{middle:9.2f}{worst:9.2f}", flush=True)


if __name__ == "__main__":
    main()
