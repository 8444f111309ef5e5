"""The channel between the driver and a worker: messages, one on each line.

The driver never waits for a worker, neither for the rest of a message nor for room to send one. And
it does not trust what it reads, because an objective may write to any descriptor: a message has at
most `MESSAGE` bytes, and is data that `messages.decode` has checked.
"""

from __future__ import annotations

import select
import socket
from contextlib import suppress

from tradewind.bounds import MESSAGE

_AT_ONCE = 2**16  # bytes to read at once


class DriverEnd:
    """The driver's end of a channel."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)
        self._line = line
        self._received, self._unsent = bytearray(), b""
        self._searched = 0  # so many bytes hold no end of a message
        self.closed = False

    def fileno(self) -> int:
        return self._line.fileno()

    def close(self) -> None:
        """Close it for the worker as well, even if a forked process has a copy."""
        if not self.closed:
            self.closed = True
            with suppress(OSError):  # the worker has closed it
                self._line.shutdown(socket.SHUT_RDWR)
            self._line.close()

    # ---- to the worker ----

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def send(self, message: str) -> None:
        """Send what there is room for now. `flush` sends the rest."""
        self._unsent += message.encode() + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send more. What a dead worker would not read is dropped."""
        if not self._unsent:
            return
        try:
            self._unsent = self._unsent[self._line.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""

    # ---- from the worker ----

    @property
    def has_message(self) -> bool:
        """Whether a message is complete, or too long."""
        self._read()
        return self._find_end() >= 0 or len(self._received) > MESSAGE

    def receive(self) -> bytes | None:
        """The next message; None if none is complete. It closes itself at the end of the stream.
        ValueError if the message is too long."""
        more = self._read()
        end = self._find_end()
        if end > MESSAGE or len(self._received) > MESSAGE > end:
            raise ValueError(f"a message may have up to {MESSAGE} bytes, but this one has more")
        if end < 0:
            if not more:
                self.close()
            return None
        message = bytes(self._received[:end])
        del self._received[: end + 1]
        self._searched = 0
        return message

    def _find_end(self) -> int:
        """Where the next message ends; -1 if it is not complete."""
        end = self._received.find(b"\n", self._searched)
        self._searched = len(self._received) if end < 0 else end
        return end

    def _read(self) -> bool:
        """Read what has arrived, up to the length of one message. Returns whether more can come."""
        while not self.closed and len(self._received) <= MESSAGE:
            try:
                data = self._line.recv(_AT_ONCE)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            self._received += data
        return True


class WorkerEnd:
    """The worker's end of a channel. It waits for the driver."""

    def __init__(self, descriptor: int) -> None:
        self._line = socket.socket(fileno=descriptor)
        self._lines = self._line.makefile("rb")

    def close(self) -> None:
        self._lines.close()
        self._line.close()

    def send(self, message: str) -> None:
        self._line.sendall(message.encode() + b"\n")

    def receive(self, seconds: float | None = None) -> bytes:
        """The next message. Raises OSError or EOFError if none comes within so many seconds, or if
        the driver has closed the channel."""
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        if not poll.poll(None if seconds is None else 1000 * seconds):
            raise TimeoutError
        message = self._lines.readline()  # the driver sends the next one after the answer
        if not message.endswith(b"\n"):
            raise EOFError
        return message
