"""The channel between the driver and a worker: messages, each after four bytes with its length.

The driver never waits for a worker, neither for the rest of a message nor for room to send one. And
it does not trust what it reads, because an objective may write to any descriptor: a message has at
most `LARGEST` bytes, and consists of expected classes and built-in types.
"""

from __future__ import annotations

import io
import pickle
import select
import socket
import struct
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

LARGEST = 2**20  # bytes of a message to the driver

_LENGTH = struct.Struct("!I")
_AT_ONCE = 2**16  # bytes to read at once


class NotAMessage(Exception):
    """Something that a worker does not send by itself. The text says what is wrong with it."""


def encode(message: Any) -> bytes:
    """The bytes of a message, with its length."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


class DriverEnd:
    """The driver's end of a channel. It receives instances of the `expected` classes."""

    def __init__(self, line: socket.socket, expected: Collection[type]) -> None:
        line.setblocking(False)
        self._line = line
        self._expected = {(kind.__module__, kind.__qualname__): kind for kind in expected}
        self._received, self._unsent = bytearray(), b""
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

    def send(self, message: Any) -> None:
        """Send what there is room for now. `flush` sends the rest."""
        self._unsent += encode(message)
        self.flush()

    def flush(self) -> None:
        """Send more. What a dead worker would not read is dropped."""
        try:
            self._unsent = self._unsent[self._line.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = b""

    # ---- from the worker ----

    @property
    def has_message(self) -> bool:
        """Whether `receive` would return a message, or raise."""
        self._read()
        length = self._length()
        return length > LARGEST or len(self._received) >= _LENGTH.size + length

    def receive(self) -> Any | None:
        """The next message; None if none is complete. It closes itself at the end of the stream,
        and raises NotAMessage."""
        if self.closed:
            return None
        more, length = self._read(), self._length()
        if length > LARGEST:
            raise NotAMessage(f"a message of {length} bytes, but {LARGEST} are the most")
        end = _LENGTH.size + length
        if len(self._received) < end:
            if not more:
                self.close()
            return None
        data = bytes(self._received[_LENGTH.size : end])
        del self._received[:end]
        return _decode(data, self._expected)

    def _length(self) -> int:
        """The length of the next message, as far as it is known."""
        if len(self._received) < _LENGTH.size:
            return 0
        length: int = _LENGTH.unpack_from(self._received)[0]
        return length

    def _read(self) -> bool:
        """Read what has arrived, up to the length of one message. Returns whether more can come."""
        while not self.closed and len(self._received) < _LENGTH.size + LARGEST:
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


def _decode(data: bytes, expected: Mapping[tuple[str, str], type]) -> Any:
    try:
        return _Unpickler(io.BytesIO(data), expected).load()
    except Exception as error:  # damaged bytes raise almost anything
        raise NotAMessage(f"{len(data)} bytes that cannot be read ({error})") from None


class _Unpickler(pickle.Unpickler):
    """Loads instances of the expected classes only, and so runs nobody's code."""

    def __init__(self, file: io.BytesIO, expected: Mapping[tuple[str, str], type]) -> None:
        super().__init__(file)
        self._expected = expected

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._expected:
            raise pickle.UnpicklingError(f"{module}.{name} is not expected here")
        return self._expected[module, name]


class WorkerEnd:
    """The worker's end of a channel. It waits for the driver, and trusts it."""

    def __init__(self, descriptor: int) -> None:
        self._line = socket.socket(fileno=descriptor)

    def close(self) -> None:
        self._line.close()

    def send(self, data: bytes) -> None:
        """Send an encoded message."""
        self._line.sendall(data)

    def receive(self, seconds: float | None = None) -> Any:
        """The next message. Raises OSError or EOFError if none comes within so many seconds, or if
        the driver has closed the channel."""
        poll = select.poll()
        poll.register(self._line, select.POLLIN)
        if not poll.poll(None if seconds is None else 1000 * seconds):
            raise TimeoutError
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))

    def _read(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            part = self._line.recv(min(length - len(data), _AT_ONCE))
            if not part:
                raise EOFError
            data += part
        return bytes(data)
