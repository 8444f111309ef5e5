"""The clocks that a cost can be measured with, and what one evaluation takes of this process."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path

from tradewind.types import Usage

try:
    import resource
except ImportError:  # not a POSIX system
    resource = None  # type: ignore[assignment]

TIMERS = ("wall", "cpu", "gpu")  # clocks that a timer can read
CLOCKS = (*TIMERS, "memory")  # costs that are measured; all others are reported
REPORTED = "reported"  # in place of a clock: the objective returned the cost

_PROCESS = Path("/proc/self")


def read_clock(clock: str, device: str = "cpu") -> float:
    """Seconds on a clock. All clocks but "cpu" wait until the GPU has finished its queued work, if
    PyTorch already uses one in this process."""
    if clock == "cpu":
        return cpu_seconds()
    with suppress(Exception):  # a broken GPU shows up elsewhere
        if uses_gpu():
            sys.modules["torch"].cuda.synchronize(device if device.startswith("cuda") else None)
    return time.perf_counter()


def uses_gpu() -> bool:
    """Whether PyTorch uses a GPU in this process."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def cpu_seconds() -> float:
    """CPU seconds of this process with all its threads, and of its children that have ended."""
    own = time.process_time()
    if resource is None:
        return own
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own + children.ru_utime + children.ru_stime


class Meter:
    """Measures what an evaluation takes, from the moment the meter is made."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._knows_memory = _forget_peak()
        self._cpu, self._begin = cpu_seconds(), read_clock("wall", device)

    def usage(self, data: str | None = None) -> Usage:
        """What was used so far, with the fingerprint of the data."""
        wall = read_clock("wall", self._device) - self._begin
        memory = _peak_memory() if self._knows_memory else None
        return Usage(wall, cpu_seconds() - self._cpu, 1.0, self._device, memory, data=data)


def _forget_peak() -> bool:
    """Let the peak memory of this process begin anew. False if the system does not allow it."""
    try:
        (_PROCESS / "clear_refs").write_bytes(b"5")
    except OSError:  # not Linux, or a container that forbids it
        return False
    return True


def _peak_memory() -> float | None:
    """The most memory that this process has occupied since the last `_forget_peak`, in bytes."""
    try:
        for line in (_PROCESS / "status").read_bytes().splitlines():
            if line.startswith(b"VmHWM:"):
                return float(line.split()[1]) * 1024.0
    except OSError:
        pass
    return None
