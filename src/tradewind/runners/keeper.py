"""A keeper: the small process between the guard and one worker, the parent of the worker's orphans.

It starts the worker, reports what happens to it, and ends everything below it when the driver
orders it, or when the driver or the guard is gone. It is single-threaded and never waits for
anybody but the kernel. Its last report says that nothing of the worker is left. If the keeper and
the guard are both killed, the socket closes without it.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import struct
from enum import Enum
from typing import NamedTuple

from tradewind.runners.descendants import (
    add_mark,
    adopt_orphans,
    find_descendants,
    kill_descendants,
    send_signal,
    signal_when_parent_dies,
)

CHECK_EVERY = 0.5  # seconds between checks for what the kernel does not tell, if there are marks

_WAKING = (signal.SIGCHLD, signal.SIGCONT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NEWS = os.WNOHANG | os.WUNTRACED | os.WCONTINUED

TERMINATE = b"t"  # send SIGTERM to everything below the keeper
KILL = b"k"  # send SIGKILL instead; the keeper ends when nothing is left

_RECORD = struct.Struct("!cii")
_MOST = 4096  # bytes to read at once


class Kind(Enum):
    """What has happened, and the numbers that a report gives about it."""

    STARTED = b"b"  # process numbers of the keeper and of the worker
    FAILED = b"f"  # the error number: there is no worker
    ENDED = b"e"  # the exit code, or minus the signal
    LOST = b"l"  # the keeper or the guard was killed, so everything ends
    GONE = b"g"  # nothing of the worker is left, nor of what it started
    STOPPED = b"s"  # the signal
    CONTINUED = b"c"


class Report(NamedTuple):
    kind: Kind
    first: int = 0
    second: int = 0


def send_report(descriptor: int, report: Report) -> None:
    """Send a report, unless the driver is gone or has not read thousands of them."""
    try:
        os.write(descriptor, _RECORD.pack(report.kind.value, report.first, report.second))
    except OSError:
        return


def read_reports(descriptor: int) -> list[Report] | None:
    """The reports that have arrived; None when the other end has closed."""
    try:
        data = os.read(descriptor, _RECORD.size * (_MOST // _RECORD.size))
    except BlockingIOError:
        return []
    except OSError:
        return None
    fields = _RECORD.iter_unpack(data)
    return [Report(Kind(kind), first, second) for kind, first, second in fields] or None


class Start(NamedTuple):
    """How to start a worker: the command before and after its two descriptors, where, and with
    which descriptors."""

    before: list[str]
    after: list[str]
    environment: dict[str, str]
    folder: str
    channel: int
    blob: int
    stdout: int
    stderr: int


def catch_signals() -> int:
    """Let signals do no more than wake who waits for the descriptor that this returns. A program
    that is executed later gets the default behaviour back."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    for number in _WAKING:
        signal.signal(number, lambda *signalled: None)
    inherited = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    if inherited >= 0:
        os.close(inherited)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return read


def wait_for(sources: list[int], wake: int, seconds: float | None) -> set[int]:
    """Wait until a source is ready, a signal arrives or time is up. Returns the ready sources."""
    poll = select.poll()
    for source in (*sources, wake):
        poll.register(source, select.POLLIN)
    ready = {source for source, _ in poll.poll(None if seconds is None else 1000 * seconds)}
    if wake in ready:
        os.read(wake, 4096)
    return ready - {wake}


class Keeper:
    """Call `run` in a process that the guard has just forked. `control` is the keeper's end of the
    socket to the driver."""

    def __init__(self, start: Start, control: int, *, guard: int, mark: str | None) -> None:
        self._control, self._guard, self._mark = control, guard, mark
        self._start = start
        self._worker = 0
        self._terminating = self._killing = False
        self._told: set[int] = set()  # the processes that have got SIGTERM

    def run(self) -> None:
        """Start the worker, and return when nothing is left below this process."""
        os.setsid()
        wake = catch_signals()
        if self._mark is None:
            adopt_orphans()
            signal_when_parent_dies(signal.SIGCONT)  # it works even if somebody has stopped us
        self._start_worker()
        while self._has_work() and not self._must_kill():
            if self._terminating:
                self._terminate()
            if self._control in wait_for([self._control], wake, self._patience()):
                self._read_orders()
        kill_descendants(self._mark, self._reap)
        send_report(self._control, Report(Kind.GONE))

    def _must_kill(self) -> bool:
        if os.getppid() != self._guard:
            send_report(self._control, Report(Kind.LOST))
            return True
        return self._killing

    def _read_orders(self) -> None:
        try:
            orders = os.read(self._control, 4096)
        except BlockingIOError:
            return
        except OSError:
            orders = b""
        self._terminating = TERMINATE in orders or self._terminating
        self._killing = KILL in orders or not orders  # nothing: the driver has gone

    def _has_work(self) -> bool:
        return self._reap() or (self._mark is not None and bool(find_descendants(self._mark)))

    def _patience(self) -> float | None:
        return None if self._mark is None else CHECK_EVERY

    def _reap(self) -> bool:
        """Collect the children that have ended, and report on the worker. Returns whether any
        children are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, _NEWS)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                send_report(self._control, _describe(status))

    def _terminate(self) -> None:
        """Send SIGTERM to the processes that have not got it yet."""
        new = [pid for pid in find_descendants(self._mark) if pid not in self._told]
        send_signal(new, signal.SIGTERM)
        self._told.update(new)

    def _start_worker(self) -> None:
        keeper, start = os.getpid(), self._start
        try:
            self._worker = os.fork()
            if self._worker == 0:
                _execute(start, self._mark, keeper)
            send_report(self._control, Report(Kind.STARTED, keeper, self._worker))
        except (OSError, ValueError) as error:  # ValueError: a path that cannot be encoded
            number = getattr(error, "errno", None) or errno.EINVAL
            send_report(self._control, Report(Kind.FAILED, number))
        finally:
            if os.getpid() != keeper:
                os._exit(1)
        for descriptor in (start.channel, start.blob, start.stdout, start.stderr):
            os.close(descriptor)


def _execute(start: Start, mark: str | None, keeper: int) -> None:
    """Become the worker. Raises OSError if that cannot be."""
    for number in _WAKING:
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    environment = start.environment
    if mark is not None:
        environment = add_mark(environment, mark)
    else:
        signal_when_parent_dies(signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
    os.chdir(start.folder)
    stdin = os.open(os.devnull, os.O_RDONLY)
    for standard, descriptor in enumerate((stdin, start.stdout, start.stderr)):
        os.dup2(descriptor, standard)
    for descriptor in (start.channel, start.blob):
        os.set_inheritable(descriptor, True)
    descriptors = str(start.channel), str(start.blob)
    os.execve(start.before[0], [*start.before, *descriptors, *start.after], environment)


def _describe(status: int) -> Report:
    if os.WIFSTOPPED(status):
        return Report(Kind.STOPPED, os.WSTOPSIG(status))
    if os.WIFCONTINUED(status):
        return Report(Kind.CONTINUED)
    return Report(Kind.ENDED, os.waitstatus_to_exitcode(status))
