"""What workers can write to the channel of their driver although they should not."""

from __future__ import annotations

import os
import stat
import struct
import time
import zlib

from tradewind.runners.channel import encode
from tradewind.runners.messages import Answer
from tradewind.types import Outcome, Usage


def header(length: int, checksum: int = 0) -> bytes:
    return struct.pack("!4sII", b"twnd", length, checksum)


def framed(data: bytes) -> bytes:
    """Any bytes, in the frame of a message."""
    return header(len(data), zlib.crc32(data)) + data


def answer(number: int) -> bytes:
    return encode(Answer.of(number, Outcome(1.0, 1.0), Usage(1.0)))


def write(data: bytes, *, times: int = 1, pause: float = 0.0) -> None:
    """Write to the sockets of this process, of which there is one in a worker."""
    sockets = [fd for fd in range(3, 20) if is_socket(fd)]
    for _ in range(times):
        for descriptor in sockets:
            os.write(descriptor, data)
        time.sleep(pause)


def is_socket(descriptor: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False
