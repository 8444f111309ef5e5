"""A worker process with its channel, from its start until all that it started has gone.

Nothing here blocks: the driver looks in when a source is ready or when something is `due`.
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
from tradewind.runners.guard import family, marked, send
from tradewind.runners.worker import BOOT, Answer, Begun, Loaded

if TYPE_CHECKING:
    import psutil

_LOOK = 0.05  # seconds between looks at what no source tells
_SILENT = 1.0  # seconds that a process may live on when it has closed its channel
_GIVE_UP = 10.0  # seconds after SIGKILL when one that hangs in the kernel is left to it


@dataclass(frozen=True)
class Launch:
    """How to start worker processes: the driver's folder and import path as they are now."""

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


def stored(blob: bytes) -> IO[bytes]:
    """A nameless file that any number of workers can read at the same time, at their own pace."""
    file: IO[bytes]
    if hasattr(os, "memfd_create"):  # Linux: the disk has nothing to do with it
        file = os.fdopen(os.memfd_create("objective"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(blob)
    file.flush()
    return file


class Child:
    """One worker process."""

    def __init__(self, launch: Launch, mark: str) -> None:
        self._mark = mark
        self.channel, theirs = Pipe()
        with theirs:
            try:
                self._process = _started(launch, mark, theirs)
            except OSError as error:
                self.channel.close()
                raise WorkerError(f"a worker process cannot be started: {error}") from error
        self._death = _death(self._process.pid)
        self._silent = math.inf  # since when
        self._kill_at = math.inf
        self._told: list[psutil.Process] = []

    @property
    def exited(self) -> bool:
        return self._process.poll() is not None

    def dead(self) -> bool:
        """Whether nothing can come from it any more."""
        return self.exited or time.monotonic() >= self._silent + _SILENT

    @property
    def pending(self) -> bool:
        """Whether there is a message to receive."""
        try:
            return not self.channel.closed and self.channel.poll()
        except OSError:
            return False

    @property
    def obituary(self) -> str:
        """How it died."""
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

    def receive(self) -> Loaded | Begun | Answer | None:
        """Its next message; None if there is none now."""
        if self.channel.closed:
            return None
        try:
            if not self.channel.poll():
                return None
            message: Loaded | Begun | Answer = self.channel.recv()
        except (EOFError, OSError, pickle.UnpicklingError):
            self.hang_up()
            return None
        return message

    def hang_up(self) -> None:
        """Listen no more; an idle worker takes it for the end."""
        self.channel.close()
        self._silent = time.monotonic()

    def sources(self) -> list[Connection | int]:
        """What becomes ready when there is something to see."""
        sources: list[Connection | int] = [] if self.channel.closed else [self.channel]
        if self._death is not None and not self.exited:
            sources.append(self._death)
        return sources

    def due(self) -> float:
        """When to look in at the latest; infinite while a source will tell."""
        told = self._death is not None and not self.channel.closed and not self.ending
        return math.inf if told else time.monotonic() + _LOOK

    def over(self, limit: int) -> int | None:
        """The bytes that it and its children occupy, if these are more than `limit`."""
        import psutil

        try:
            root = psutil.Process(self._process.pid)
            tree = [root, *root.children(recursive=True)]
        except psutil.Error:
            return None
        if sum(_bytes(process, shared=True) for process in tree) <= limit:
            return None
        taken = sum(_bytes(process, shared=False) for process in tree)
        return taken if taken > limit else None

    # ---- ending ----

    @property
    def ending(self) -> bool:
        return self._kill_at < math.inf

    def end(self, grace: float, *, gently: bool = False) -> None:
        """Begin to end it and all that it started: SIGTERM now, SIGKILL after `grace` seconds.
        `gently` lets an idle worker leave by itself first."""
        self._kill_at = time.monotonic() + grace
        if gently:
            self.hang_up()
        else:
            self._told = family(self._mark, None if self.exited else self._process.pid)
            send(self._told, signal.SIGTERM)

    def gone(self) -> bool:
        """Whether all have ended; does what has to be done next about those that have not."""
        now, exited = time.monotonic(), self.exited
        if now < self._kill_at:
            if not exited or any(map(_alive, self._told)):
                return False
            self._told = family(self._mark)  # what was started meanwhile
            send(self._told, signal.SIGTERM)
            return not self._told
        rest = family(self._mark, None if exited else self._process.pid)
        send(rest, signal.SIGKILL)
        return (exited and not rest) or now >= self._kill_at + _GIVE_UP

    def release(self) -> None:
        """Let go of the descriptors."""
        self.channel.close()
        if self._death is not None:
            os.close(self._death)
            self._death = None


def _started(launch: Launch, mark: str, channel: Connection) -> subprocess.Popen[bytes]:
    descriptors = channel.fileno(), launch.blob.fileno()
    idle = "" if launch.idle is None else str(launch.idle)
    told = [str(descriptors[0]), str(descriptors[1]), launch.device, idle]
    return subprocess.Popen(
        [sys.executable, *_flags(), "-c", BOOT, *told, *launch.path],
        stdin=subprocess.DEVNULL,
        pass_fds=descriptors,
        cwd=launch.folder,
        env=marked(dict(launch.environment), mark),
        start_new_session=True,
    )


def _flags() -> list[str]:
    """The options of this interpreter (-O, -W, -X), as `multiprocessing` passes them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


def _death(pid: int) -> int | None:
    """A descriptor that is ready when the process has died, where the system has such."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _alive(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _bytes(process: psutil.Process, *, shared: bool) -> int:
    """What a process occupies: quickly, and counting what it shares with others for each of them;
    or slowly, and only its part of that (forked children share most of what they have)."""
    import psutil

    try:
        info = process.memory_info() if shared else process.memory_full_info()
        return int(getattr(info, "pss", info.rss))
    except psutil.Error:
        return 0
