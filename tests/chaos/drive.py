"""One driver of a campaign: it works on the shared study until it is told to stop, its number of
trials is done, or the round that started it has died."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import tradewind as tw
from tests.chaos.work import LEASE, NAME, Witness, Work, spooling
from tradewind.errors import FormatError, LogDiverged, StorageError, WorkerError
from tradewind.log.sqlite import SqliteStore

WORKERS_KILLED = 3  # the exit code of a driver whose workers were killed as often as they started


@dataclass(frozen=True)
class Task:
    """What a driver does. With `jumps`, its clocks are sometimes an hour off. With `restores`, it
    continues after the store has gone back in time."""

    storage: str
    folder: Path
    work: Work = field(default_factory=Work)
    n_trials: int = 100_000
    n_workers: int | None = None
    lease: float = LEASE
    jumps: bool = False
    restores: bool = False


def context() -> Any:
    """A context whose processes start quickly: they are forked from a server that has everything
    loaded but has no threads and no connections."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([__name__, "tradewind.log.postgres", "tradewind.study.replay"])
    return made


def start(task: Task, name: str) -> BaseProcess:
    """Start a driver. Its files begin with `name`."""
    driver: BaseProcess
    driver = context().Process(target=_main, args=(task, name), name=name, daemon=True)
    driver.start()
    return driver


def print_to(path: Path) -> None:
    """Write all that this process prints to a file."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _main(task: Task, name: str) -> None:
    os.setsid()  # whoever kills its group must not kill the campaign
    print_to(task.folder / f"{name}.log")
    os.environ |= spooling(task.folder)
    warnings.simplefilter("ignore")  # more workers than cores
    try:
        _drive(task, Witness(task.folder / f"{name}.witness"))
    except WorkerError:  # somebody kills its workers faster than they start
        traceback.print_exc()
        sys.exit(WORKERS_KILLED)


def _drive(task: Task, witness: Witness) -> None:
    storage: Any = task.storage
    if task.jumps and not task.storage.startswith("postgresql:"):  # whose clock is the server's
        storage = SqliteStore(task.storage, clock=lambda: _jumping(time.monotonic()))
    study = tw.load_study(storage, NAME)
    if task.jumps:
        study._session.clock = lambda: _jumping(time.time())

    def look(study: tw.Study, trial: tw.Trial) -> None:
        if is_over(task.folder):
            study.stop()

    while True:
        try:
            study.optimize(
                task.work,
                n_trials=task.n_trials,
                n_workers=task.n_workers,
                callbacks=[witness, look],
                max_retries=50,
                lease=task.lease,
                show_progress=False,
            )
            if task.restores:  # the store may have gone back after the last trial
                study.restore()
            return
        except StorageError as error:
            if not task.restores or isinstance(error, FormatError):
                raise
            traceback.print_exc()
        with suppress(LogDiverged):  # it went back again
            study.restore()


def is_over(folder: Path) -> bool:
    """Whether the drivers in this folder shall stop."""
    parent = multiprocessing.parent_process()
    return (folder / "stop").exists() or (parent is not None and not parent.is_alive())


def _jumping(clock: float) -> float:
    """A time that is sometimes more than an hour ahead or behind."""
    return clock + random.choice([0.0, 0.0, 0.0, 4e3, -4e3])
