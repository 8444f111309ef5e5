"""Locks and connections in forked processes and in copies."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tradewind.log.lock import Lock
from tradewind.log.perprocess import PerProcess

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def is_free(lock: Lock) -> bool:
    """Whether another thread could take the lock."""
    taken: list[bool] = []
    thread = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
    thread.start()
    thread.join()
    return taken == [True]


def test_a_thread_may_take_a_lock_twice_and_no_other_thread_meanwhile() -> None:
    lock = Lock()
    with lock:
        with lock:
            assert not is_free(lock)
        assert not is_free(lock)
    assert is_free(lock)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))]
)
def test_a_copy_of_a_lock_is_a_free_lock(again: Any) -> None:
    lock = Lock()
    with lock:
        other = again(lock)
        assert type(other) is Lock
        assert is_free(other)


@forking
def test_a_fork_finds_a_lock_free_that_another_thread_of_its_parent_holds() -> None:
    lock = Lock()
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()

    def child() -> None:
        assert lock.acquire(blocking=False)

    try:
        assert processes.forked(child) == 0
        assert not is_free(lock)
    finally:
        leave.set()
        thread.join()


class Closing:
    """A connection that notes in a file when it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __del__(self) -> None:
        self.path.write_text(f"closed by {os.getpid()}")


def test_a_copy_has_a_value_of_its_own() -> None:
    numbers = PerProcess(list[int])
    numbers.value.append(1)
    for other in (copy.deepcopy(numbers), pickle.loads(pickle.dumps(numbers))):
        assert other.value == []
    assert numbers.value == [1]


class Handle:
    connection: Closing | None = None


@forking
def test_a_fork_has_a_value_of_its_own_and_does_not_close_that_of_its_parent(
    tmp_path: Path,
) -> None:
    handle = PerProcess(Handle)
    handle.value.connection = Closing(tmp_path / "closed")

    def child() -> None:
        assert handle.value.connection is None
        gc.collect()

    assert processes.forked(child) == 0
    assert not (tmp_path / "closed").exists()
    assert handle.value.connection is not None
    handle.value.connection = None
    assert (tmp_path / "closed").read_text() == f"closed by {os.getpid()}"
