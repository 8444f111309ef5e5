"""The channel between the driver and a worker: messages, each after a header.

The driver never waits for a worker, neither for the rest of a message nor for room to send one. And
it does not trust what it reads, because an objective may write to any descriptor: a message has at
most `LARGEST` bytes and the right checksum, and consists of expected classes and built-in types.
"""

from __future__ import annotations

import io
import pickle
import select
import socket
import struct
import zlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

LARGEST = 2**20  # bytes of a message to the driver

_BEGIN = b"twnd"
_HEADER = struct.Struct("!4sII")  # these bytes, the length and the checksum
_AT_ONCE = 2**16  # bytes to read at once


class NotAMessage(Exception):
    """Something that a worker does not send by itself. The text says what is wrong with it."""


def encode(message: Any) -> bytes:
    """The bytes of a message, with its header."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(_BEGIN, len(data), zlib.crc32(data)) + data


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
        """Whether a message is complete, or something is wrong."""
        self._read()
        try:
            return self._end() is not None
        except NotAMessage:
            return True

    def receive(self) -> Any | None:
        """The next message; None if none is complete. It closes itself at the end of the stream,
        and raises NotAMessage."""
        more = self._read()
        end = self._end()
        if end is None:
            if not more:
                self.close()
            return None
        _, _, checksum = _HEADER.unpack_from(self._received)
        data = bytes(self._received[_HEADER.size : end])
        del self._received[:end]
        if zlib.crc32(data) != checksum:
            raise NotAMessage("a wrong checksum")
        return _decode(data, self._expected)

    def _end(self) -> int | None:
        """Where the next message ends; None if it is not complete."""
        begin = bytes(self._received[: len(_BEGIN)])
        if not _BEGIN.startswith(begin):
            raise NotAMessage(f"a message must begin with {_BEGIN!r}, but got {begin!r}")
        if len(self._received) < _HEADER.size:
            return None
        length: int = _HEADER.unpack_from(self._received)[1]
        if length > LARGEST:
            raise NotAMessage(f"a message may have {LARGEST} bytes, but this one has {length}")
        end = _HEADER.size + length
        return end if len(self._received) >= end else None

    def _read(self) -> bool:
        """Read what has arrived, up to the length of one message. Returns whether more can come."""
        while not self.closed and len(self._received) < _HEADER.size + LARGEST:
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
    except Exception as error:  # bytes that are no pickle raise almost anything
        raise NotAMessage(f"it cannot be read ({type(error).__name__}: {error})") from None


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
        _, length, _ = _HEADER.unpack(self._read(_HEADER.size))
        return pickle.loads(self._read(length))

    def _read(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            part = self._line.recv(min(length - len(data), _AT_ONCE))
            if not part:
                raise EOFError
            data += part
        return bytes(data)
