"""What other processes do in the tests of storage. Each opens the store itself."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from tests.samples import FIRST
from tradewind.errors import StorageError, StudyExists
from tradewind.log.events import Claimed, Event, Requeued
from tradewind.log.log import Conflict, Log, Store

BATCH = 3  # events of one append


def context() -> BaseContext:
    """A context whose processes start quickly: they are forked from a server that has this module
    loaded but has no threads and no connections."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([__name__])
    return made


def together(work: Callable[..., None], arguments: list[tuple[Any, ...]]) -> None:
    """Call `work(barrier, *arguments)` in one process each, and wait until all have succeeded."""
    barrier = context().Barrier(len(arguments))
    processes = [started(work, barrier, *given) for given in arguments]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(processes)


def started(work: Callable[..., None], *arguments: Any) -> BaseProcess:
    process = context().Process(target=work, args=arguments, daemon=True)  # type: ignore[attr-defined]
    process.start()
    return process  # type: ignore[no-any-return]


def forked(work: Callable[[], None]) -> int:
    """Do `work` in a plain fork of this process, within half a minute; its exit code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # this process may have threads
        child = os.fork()
    if child == 0:
        import signal

        signal.alarm(30)
        try:
            work()
        except BaseException:
            sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# ---- work for other processes ----


def claim(barrier: Any, log: Log, count: int) -> None:
    """Claim `count` trials, each at exactly the position that was seen."""
    barrier.wait()
    seen = len(log.read(0))
    for _ in range(count):
        while True:
            try:
                seen = log.append([Claimed(seen, str(os.getpid()))], expected=seen)
                break
            except Conflict:
                seen += len(log.read(seen))


def append_batches(barrier: Any, log: Log, count: int) -> None:
    """Append `count` batches wherever the log ends."""
    barrier.wait()
    for number in range(count):
        log.append(batch(number))


def create(barrier: Any, store: Store, name: str) -> None:
    barrier.wait()
    store.create(name, FIRST)


def create_in_each(barrier: Any, stores: list[Store]) -> None:
    for store in stores:
        barrier.wait()
        store.create(str(os.getpid()), FIRST)


def create_for_ever(stores: list[Store]) -> None:
    for store in stores:
        store.create("study", FIRST)
    raise AssertionError("nobody has stopped this process")


def create_or_open(barrier: Any, store: Store, name: str) -> None:
    barrier.wait()
    try:
        log = store.create(name, FIRST)
    except StudyExists:
        log = store.open(name)
    log.append([Claimed(0, str(os.getpid()))])


def lease(barrier: Any, log: Log, trial: int) -> None:
    barrier.wait()
    for _ in range(20):
        assert trial in log.beat([trial], 3600)


def write_for_ever(log: Log) -> None:
    number = 0
    while True:
        log.append(batch(number))
        number += 1


def batch(number: int) -> list[Event]:
    """Events that are appended together; some are large."""
    reason = str(os.getpid()) + " " * (number % 7) ** 4
    return [Requeued(number, reason, retry=False) for _ in range(BATCH)]


def whole_batches(events: list[Event]) -> bool:
    """Whether these events are complete batches."""
    groups = [events[i : i + BATCH] for i in range(0, len(events), BATCH)]
    return all(len(group) == BATCH and group == [group[0]] * BATCH for group in groups)


def meet_a_limit(barrier: Any, log: Log, path: str) -> None:
    """Append until the file may not grow any more, and go on when it may."""
    import resource

    barrier.wait()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = log.read(0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path), hard))
    assert "the disk reports an error" in refusal(lambda: log.append(batch(6) * 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.read(0) == before
    assert log.append(batch(0)) == len(before) + BATCH


def be_refused(barrier: Any, store: Store, folder: str) -> None:
    """Fail to create a study as an ordinary user."""
    barrier.wait()
    if os.geteuid() == 0:
        os.setuid(65534)
    assert folder in refusal(lambda: store.create("study", FIRST))


def refusal(work: Callable[[], object]) -> str:
    """The message of the `StorageError` that `work` must raise."""
    try:
        work()
    except StorageError as error:
        return str(error)
    raise AssertionError("nothing was refused")


def import_for_ever(path: str, storage: str) -> None:
    """Import a study again and again, each time under another name."""
    import tradewind as tw

    for number in itertools.count():
        tw.import_study(path, storage=storage, name=f"{os.getpid()}-{number}")
