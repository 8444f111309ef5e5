"""The driver's side of the guard, the process that starts all workers and ends them with itself."""

from __future__ import annotations

import marshal
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, Any

from tradewind.errors import WorkerError
from tradewind.output import fill_standard_streams
from tradewind.runners.worker import BOOT

USE_MARKS = False  # for tests: do without what only Linux can do

_BOOT = """\
import sys
driver, requests, use_marks, *sys.path[:] = sys.argv[1:]
from tradewind.runners.guard_process import watch
watch(int(driver), int(requests), use_marks=use_marks == "True")
"""
_ATTEMPTS = 3  # to reach a guard: somebody may have killed it, and kill the next
_PATIENCE = 10.0  # seconds that the guard may take to read a request, or to end


@dataclass(frozen=True)
class Launch:
    """`blob` is a file with the objective, and `idle` the number of seconds after which a worker
    without a trial ends by itself."""

    blob: IO[bytes]
    environment: Mapping[str, str]
    device: str
    idle: float | None
    folder: str
    path: tuple[str, ...]

    @classmethod
    def of(
        cls,
        blob: IO[bytes],
        environment: Mapping[str, str],
        *,
        device: str = "cpu",
        idle: float | None = None,
    ) -> Launch:
        path = tuple(entry for entry in sys.path if isinstance(entry, str))
        try:
            folder = os.getcwd()
        except OSError as error:
            raise WorkerError(
                "workers start in the current folder, which cannot be read any more "
                f"({error.strerror}): change to another one"
            ) from error
        return cls(blob, environment, device, idle, folder, path)

    def request(self) -> tuple[Any, ...]:
        """What the keeper must know, besides descriptors (see `keeper.Start`)."""
        before = [sys.executable, *interpreter_flags(), "-c", BOOT]
        after = [self.device, "" if self.idle is None else str(self.idle), *self.path]
        return before, after, dict(self.environment), self.folder


def put_in_file(blob: bytes) -> IO[bytes]:
    """A file without a name that many processes can read at the same time."""
    file: IO[bytes]
    if hasattr(os, "memfd_create"):  # Linux: the file stays in memory
        file = os.fdopen(os.memfd_create("tradewind"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(blob)
    file.flush()
    return file


def interpreter_flags() -> list[str]:
    """The options of this interpreter (-O, -W, -X), which `multiprocessing` passes on as well."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


class Guard:
    """A guard process. If somebody kills it, all its workers end, and it is replaced when the next
    one must start. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        fill_standard_streams()
        self._requests, theirs = socket.socketpair()
        self._requests.settimeout(_PATIENCE)
        arguments = map(str, [os.getpid(), theirs.fileno(), USE_MARKS])
        path = [entry for entry in sys.path if isinstance(entry, str)]
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, *interpreter_flags(), "-c", _BOOT, *arguments, *path],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    # Not a session: if this process ends while the guard is stopped, even before
                    # the guard has run a line, the kernel ends it, or lets it continue.
                    process_group=0,
                )
        except OSError as error:
            self._requests.close()
            raise WorkerError(f"the guard of the workers cannot be started: {error}") from error

    def start_worker(self, launch: Launch) -> tuple[socket.socket, socket.socket]:
        """Start a worker process. Returns the driver's ends of its channel and of the socket to its
        keeper, which tells all else, even that the worker could not be started."""
        try:
            with ExitStack() as unless_sent, ExitStack() as passed:
                ours, theirs = [], []
                for _ in ("channel", "control"):
                    pair = socket.socketpair()
                    ours.append(unless_sent.enter_context(pair[0]))
                    theirs.append(passed.enter_context(pair[1]))
                request = passed.enter_context(put_in_file(marshal.dumps(launch.request())))
                files = request, theirs[1], theirs[0], launch.blob
                fill_standard_streams()
                null = passed.enter_context(open(os.devnull, "wb")).fileno()
                streams = [number if _is_writable(number) else null for number in (1, 2)]
                self._send([*(file.fileno() for file in files), *streams])
                unless_sent.pop_all()
        except OSError as error:
            raise WorkerError(f"a worker process cannot be started: {error}") from error
        return ours[0], ours[1]

    def _send(self, descriptors: list[int]) -> None:
        with self._lock:
            for attempt in range(_ATTEMPTS):
                try:
                    self.wake()
                    socket.send_fds(self._requests, [b"!"], descriptors)
                    return
                except OSError:  # somebody has killed it
                    if attempt == _ATTEMPTS - 1:
                        raise
                    self.dismiss()
                    self._start()

    def wake(self) -> None:
        """Let the process continue if somebody has stopped it."""
        self._process.send_signal(signal.SIGCONT)

    def dismiss(self) -> None:
        """End the guard process with all that it has started, and wait until they have ended. If a
        process hangs in the kernel, the guard goes on without us."""
        with suppress(OSError):  # it may have ended already
            self._requests.shutdown(socket.SHUT_RDWR)  # even if a forked process has a copy
        self._requests.close()
        self.wake()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)


def _is_writable(descriptor: int) -> bool:
    """False for what got the number of a standard stream that is closed: libffi, which NumPy loads,
    opens its own file to read it."""
    from fcntl import F_GETFL, fcntl  # not on Windows

    return fcntl(descriptor, F_GETFL) & os.O_ACCMODE != os.O_RDONLY
