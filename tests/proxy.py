"""A proxy in front of a server on a Unix socket, for tests that disturb its connections.

    with Proxy(server.folder) as proxy:
        store = PostgresStore(proxy.url(url))
        proxy.cut()           # close every connection
        proxy.cut_after(100)  # close every connection once 100 more bytes have passed
        proxy.freeze()        # forward nothing, but keep the connections open
        proxy.thaw()

One thread moves the bytes of all connections.
"""

from __future__ import annotations

import contextlib
import selectors
import shutil
import socket
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

SOCKET = ".s.PGSQL.5432"  # PostgreSQL's name for its socket
_BLOCK = 2**16


@dataclass(eq=False)
class _End:
    """One end of a connection, and the end that gets what arrives here."""

    socket: socket.socket
    other: _End | None = None


class Proxy:
    """Listens in a folder of its own and connects to the server in `target`.

    `cuts` counts the connections that were cut, `forwarded` the bytes that passed."""

    def __init__(self, target: Path) -> None:
        self._target = str(target / SOCKET)
        self.folder = Path(tempfile.mkdtemp(prefix="twpx-"))
        self.cuts = self.forwarded = 0
        self._limit: int | None = None
        self._frozen = self._closed = False
        self._ends: set[_End] = set()
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / SOCKET))
        self._listener.listen(64)
        self._woken, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()

    def url(self, url: str) -> str:
        """The URL of a database, but through this proxy."""
        target = quote(str(Path(self._target).parent))
        assert target in url
        return url.replace(target, quote(str(self.folder)))

    def cut(self) -> int:
        """Close every connection, and return how many there were."""
        with self._lock:
            return self._cut()

    def cut_after(self, count: int) -> None:
        """Close every connection as soon as `count` more bytes have passed, in any direction."""
        with self._lock:
            self._limit = count

    def freeze(self) -> None:
        """Forward nothing more. New connections are accepted, but nobody answers."""
        with self._lock:
            self._frozen = True

    def thaw(self) -> None:
        """Forward again, first of all what has arrived meanwhile."""
        with self._lock:
            self._frozen = False
        self._wake.send(b"!")

    def close(self) -> None:
        self._closed = True
        self._wake.send(b"!")
        self._thread.join()
        with self._lock:
            self._cut()
        for part in (self._listener, self._woken, self._wake):
            part.close()
        shutil.rmtree(self.folder)

    def _run(self) -> None:
        while not self._closed:
            with selectors.DefaultSelector() as ready:
                with self._lock:
                    self._register(ready)
                events = ready.select()
                with self._lock:
                    for key, _ in events:
                        self._handle(key)

    def _register(self, ready: selectors.BaseSelector) -> None:
        ready.register(self._woken, selectors.EVENT_READ)
        if not self._frozen:
            ready.register(self._listener, selectors.EVENT_READ)
            for end in self._ends:
                ready.register(end.socket, selectors.EVENT_READ, end)

    def _handle(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._woken:
            self._woken.recv(_BLOCK)
        elif self._frozen:
            pass
        elif key.fileobj is self._listener:
            self._accept()
        elif key.data in self._ends:  # not if it was cut meanwhile
            self._forward(key.data)

    def _accept(self) -> None:
        client, server = _End(self._listener.accept()[0]), _End(socket.socket(socket.AF_UNIX))
        try:
            server.socket.connect(self._target)
        except OSError:  # the server is down
            client.socket.close()
            server.socket.close()
            return
        client.other, server.other = server, client
        self._ends |= {client, server}

    def _forward(self, end: _End) -> None:
        assert end.other is not None
        try:
            data = end.socket.recv(_BLOCK)
            part = data if self._limit is None else data[: self._limit]
            end.other.socket.sendall(part)
        except OSError:
            data = part = b""
        self.forwarded += len(part)
        if not data:
            self._close(end)
        elif self._limit is not None:
            self._limit -= len(part)
            if self._limit == 0:
                self._limit = None
                self._cut()

    def _cut(self) -> int:
        count = len(self._ends) // 2
        for end in list(self._ends):
            self._close(end)
        self.cuts += count
        return count

    def _close(self, end: _End) -> None:
        assert end.other is not None
        for each in (end, end.other):
            self._ends.discard(each)
            with contextlib.suppress(OSError):
                each.socket.shutdown(socket.SHUT_RDWR)  # wakes the selector, if it waits for this
            each.socket.close()
