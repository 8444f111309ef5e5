"""A worker process seen from the driver: its channel, its memory, and how it is ended.

Nothing here blocks. The driver checks a child when one of its `sources` is ready, and at the latest
at its `next_check`.
"""

from __future__ import annotations

import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import IO, TYPE_CHECKING

from tradewind.errors import WorkerError
from tradewind.runners.guard import add_mark, find_processes, send_signal
from tradewind.runners.messages import Answer, Begun, Loaded
from tradewind.runners.worker import BOOT
from tradewind.types import Trial

if TYPE_CHECKING:
    import psutil

_CHECK_EVERY = 0.05  # seconds between checks for what makes no source ready
_SILENT = 1.0  # seconds that a process may live after it has closed its channel
_GIVE_UP = 10.0  # seconds after SIGKILL when a process that hangs in the kernel is left alone


@dataclass(frozen=True)
class Launch:
    """How to start worker processes: with the driver's folder and import path as they are now.

    `idle` is the number of seconds after which a worker without a trial ends by itself."""

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
        return cls(blob, environment, device, idle, os.getcwd(), path)


def put_in_file(blob: bytes) -> IO[bytes]:
    """A file without a name that many workers can read at the same time."""
    file: IO[bytes]
    if hasattr(os, "memfd_create"):  # Linux: the file stays in memory
        file = os.fdopen(os.memfd_create("objective"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(blob)
    file.flush()
    return file


class Child:
    """One worker process, with everything that it starts."""

    def __init__(self, launch: Launch, mark: str) -> None:
        self._mark = mark
        self._channel, theirs = Pipe()
        with theirs:
            try:
                self._process = _start_process(launch, mark, theirs)
            except OSError as error:
                self._channel.close()
                raise WorkerError(f"a worker process cannot be started: {error}") from error
        self._pidfd = _open_pidfd(self._process.pid)
        self._channel_closed_at = math.inf
        self._kill_at = math.inf
        self._signalled: list[psutil.Process] = []

    @property
    def has_exited(self) -> bool:
        return self._process.poll() is not None

    @property
    def is_dead(self) -> bool:
        """Whether no more messages can come from it."""
        return self.has_exited or time.monotonic() >= self._channel_closed_at + _SILENT

    @property
    def how_it_ended(self) -> str:
        code = self._process.poll()
        if code is None:
            return "closed its channel to the driver"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"was killed by {name}{', perhaps for memory' if name == 'SIGKILL' else ''}"

    # ---- messages ----

    def send(self, trial: Trial) -> None:
        """Send a trial. It is lost if the worker has just died, which the next check finds."""
        try:
            self._channel.send(trial)
        except OSError:
            return

    @property
    def has_message(self) -> bool:
        try:
            return not self._channel.closed and self._channel.poll()
        except OSError:
            return False

    def receive(self) -> Loaded | Begun | Answer | None:
        """Its next message; None if there is none now."""
        if self._channel.closed:
            return None
        try:
            if not self._channel.poll():
                return None
            message: Loaded | Begun | Answer = self._channel.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            self.close_channel()
            return None
        return message

    def close_channel(self) -> None:
        """Receive nothing more. An idle worker then ends."""
        self._channel.close()
        self._channel_closed_at = time.monotonic()

    def sources(self) -> list[Connection | int]:
        """What becomes ready when there is a message, or when the process has died."""
        sources: list[Connection | int] = [] if self._channel.closed else [self._channel]
        if self._pidfd is not None and not self.has_exited:
            sources.append(self._pidfd)
        return sources

    def next_check(self) -> float:
        """When to check it at the latest; infinite if a source becomes ready in any case."""
        sources_suffice = (
            self._pidfd is not None and not self._channel.closed and not self.is_ending
        )
        return math.inf if sources_suffice else time.monotonic() + _CHECK_EVERY

    # ---- memory ----

    def memory_above(self, limit: int) -> int | None:
        """The bytes that it and its descendants occupy, if these are more than `limit`."""
        import psutil

        try:
            root = psutil.Process(self._process.pid)
            tree = [root, *root.children(recursive=True)]
        except psutil.Error:
            return None
        if sum(_bytes(process, count_shared=True) for process in tree) <= limit:
            return None
        taken = sum(_bytes(process, count_shared=False) for process in tree)
        return taken if taken > limit else None

    # ---- ending ----

    @property
    def is_ending(self) -> bool:
        return self._kill_at < math.inf

    def start_ending(self, grace: float, *, gently: bool = False) -> None:
        """Start to end it and all that it started: SIGTERM now, SIGKILL after `grace` seconds.
        `gently` only closes the channel at first, so that an idle worker ends by itself."""
        self._kill_at = time.monotonic() + grace
        if gently:
            self.close_channel()
        else:
            self._terminate(None if self.has_exited else self._process.pid)

    def continue_ending(self) -> bool:
        """Signal the processes that must end now. Returns whether all have ended."""
        now, exited = time.monotonic(), self.has_exited
        if now < self._kill_at:
            if not exited or any(map(_is_alive, self._signalled)):
                return False
            self._terminate()  # what was started after the first signal
            return not self._signalled
        rest = find_processes(self._mark, None if exited else self._process.pid)
        send_signal(rest, signal.SIGKILL)
        return (exited and not rest) or now >= self._kill_at + _GIVE_UP

    def _terminate(self, root: int | None = None) -> None:
        self._signalled = find_processes(self._mark, root)
        send_signal(self._signalled, signal.SIGTERM)

    def close(self) -> None:
        """Close the descriptors."""
        self._channel.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def _start_process(launch: Launch, mark: str, channel: Connection) -> subprocess.Popen[bytes]:
    descriptors = channel.fileno(), launch.blob.fileno()
    idle = "" if launch.idle is None else str(launch.idle)
    arguments = [str(descriptors[0]), str(descriptors[1]), launch.device, idle]
    return subprocess.Popen(
        [sys.executable, *_interpreter_flags(), "-c", BOOT, *arguments, *launch.path],
        stdin=subprocess.DEVNULL,
        pass_fds=descriptors,
        cwd=launch.folder,
        env=add_mark(dict(launch.environment), mark),
        start_new_session=True,
    )


def _interpreter_flags() -> list[str]:
    """The options of this interpreter (-O, -W, -X), which `multiprocessing` passes on as well."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process dies; None on systems without pidfd."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _is_alive(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _bytes(process: psutil.Process, *, count_shared: bool) -> int:
    """The memory of a process. With `count_shared`, memory shared with other processes counts in
    full for each of them, which is quick to read. Without it, only the process's share of it
    counts, which is slow but right for forked children: they share most of their memory."""
    import psutil

    try:
        info = process.memory_info() if count_shared else process.memory_full_info()
        return int(getattr(info, "pss", info.rss))
    except psutil.Error:
        return 0
