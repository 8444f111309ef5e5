"""What is said on the socket between the driver and the keeper of a worker.

The keeper sends reports, and the driver sends orders. The last report says that nothing of the
worker is left. If the keeper and the guard are both killed, the socket closes without it.
"""

from __future__ import annotations

import os
import struct
from enum import Enum
from typing import NamedTuple

TERMINATE = b"t"  # send SIGTERM to everything below the keeper
KILL = b"k"  # send SIGKILL instead; the keeper ends when nothing is left

_RECORD = struct.Struct("!cii")
_MOST = 4096  # bytes to read at once


class Kind(Enum):
    """What has happened, and the numbers that a report gives about it."""

    STARTED = b"b"  # process numbers of the keeper and of the worker
    FAILED = b"f"  # the error number: there is no worker
    ENDED = b"e"  # the exit code, or minus the signal
    LOST = b"l"  # somebody has killed the keeper or the guard, so everything ends
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
