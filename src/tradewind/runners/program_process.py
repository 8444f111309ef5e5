"""Runs one program to its end: reads what it prints, and ends all that it has started.

The program gets a session of its own, so Ctrl-C in the terminal does not reach it: the search
decides what happens to its trials. Whatever ends the call, an exception included, ends the program
with everything below it.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import IO

from tradewind.output import fill_standard_streams
from tradewind.runners.descendants import (
    add_mark,
    open_pidfd,
    read_parents_and_marked,
    send_signal,
)
from tradewind.runners.program_output import Output

_CHUNK = 1 << 16  # bytes that are read at once: what a pipe holds
_REST = 64  # chunks that are read after the end: others may go on writing to the pipe
_POLL = 0.02  # seconds between looks at a program, where the system does not tell that it has ended
_GRACE = 3.0  # seconds from SIGTERM to SIGKILL
_GIVE_UP = 5.0  # seconds after SIGKILL when a process that hangs in the kernel is left alone


@dataclass
class Ended:
    """How a program has ended. `code` is negative if a signal has killed it. `memory` is the most
    that one of its processes has occupied, in bytes."""

    output: Output = field(default_factory=Output)
    errors: Output = field(default_factory=Output)
    code: int = 0
    memory: float | None = None


def run_program(
    arguments: Sequence[str], *, cwd: str | None, environment: Mapping[str, str]
) -> Ended:
    """Run a program until it ends. OSError or ValueError if it cannot be started."""
    fill_standard_streams()
    mark = os.urandom(16).hex()
    process: subprocess.Popen[bytes] | None = None
    done = False
    try:
        process = subprocess.Popen(
            list(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=add_mark(environment, mark),
            start_new_session=True,
        )
        ended = _watch(process)
        done = True
        return ended
    finally:
        if not done:
            _end(process, mark)
        if process is not None:
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None
                pipe.close()


def _watch(process: subprocess.Popen[bytes]) -> Ended:
    """Read both pipes until the program ends. What it leaves behind in its group is killed: it may
    hold the pipes open."""
    ended = Ended()
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        pipes: dict[IO[bytes], Output] = {}
        for pipe, output in ((process.stdout, ended.output), (process.stderr, ended.errors)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, output)
            pipes[pipe] = output
        death = open_pidfd(process.pid)
        if death is not None:
            stack.callback(os.close, death)
            selector.register(death, selectors.EVENT_READ)
        while not _has_ended(process, ended):
            for key, _ in selector.select(_POLL if death is None else None):
                if isinstance(key.data, Output) and not _read(key.fd, key.data):
                    selector.unregister(key.fileobj)
        _kill_group(process.pid)
        for pipe, output in pipes.items():
            for _ in range(_REST):
                if not _read(pipe.fileno(), output, at_end=True):
                    break
            output.close()
    return ended


def _read(pipe: int, output: Output, *, at_end: bool = False) -> bool:
    """Read what is there now. False if nothing can follow."""
    try:
        chunk = os.read(pipe, _CHUNK)
    except BlockingIOError:
        return not at_end
    output.feed(chunk)
    return bool(chunk)


def _has_ended(process: subprocess.Popen[bytes], ended: Ended) -> bool:
    """Whether the program has ended; then its exit code and its memory are known."""
    if process.returncode is None:
        try:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        except ChildProcessError:  # SIGCHLD is ignored in this process: nobody knows the code
            process.returncode = 0
            return True
        if pid == 0:
            return False
        process.returncode = ended.code = os.waitstatus_to_exitcode(status)
        ended.memory = usage.ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)
    return True


# ---- ending it early ----


def _end(process: subprocess.Popen[bytes] | None, mark: str) -> None:
    """End the program and everything below it: SIGTERM now, SIGKILL after a while. What has left
    its process group, or has lost its parent, is found by the mark in its environment."""
    begin = time.monotonic()
    found = _tree(process, mark)
    send_signal(found, signal.SIGTERM)
    while found and time.monotonic() < begin + _GRACE + _GIVE_UP:
        if time.monotonic() >= begin + _GRACE:
            send_signal(found, signal.SIGKILL)
        time.sleep(_POLL)
        _reap(process)
        found = _tree(process, mark)
    _reap(process)  # it may have died between the last two looks


def _reap(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None:
        _has_ended(process, Ended())


def _tree(process: subprocess.Popen[bytes] | None, mark: str) -> set[int]:
    """The living processes of the program."""
    parents, marked = read_parents_and_marked(mark)
    found = set(marked)
    if process is not None and process.returncode is None and process.pid in parents:
        found.add(process.pid)
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {os.getpid()}


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
