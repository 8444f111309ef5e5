"""The HTTP server under the application: no client can hold it up, and it ends when it is told to.

It is uvicorn's, which by itself waits for ever: for a request that does not come, and for a client
that does not read.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tradewind.dashboard.application import app
from tradewind.dashboard.guard import Access
from tradewind.dashboard.stream import Stream
from tradewind.log.log import Store

_REQUEST = 10.0  # seconds for a whole request to arrive
_READ = 30.0  # seconds for a client to read some of what it was sent


class Server(uvicorn.Server):
    """A server that ends within a second, and quietly, when it is told to."""

    def __init__(self, store: Store, access: Access) -> None:
        made = app(store, token=access.token, access=access)
        self._stream: Stream = made.state.stream
        super().__init__(
            uvicorn.Config(
                made,
                log_level="error",  # what strangers send is no news
                access_log=False,
                ws="none",
                http=_Connection,
                loop="asyncio",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=1,
                limit_concurrency=200,
                h11_max_incomplete_event_size=32 * 1024,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
        self._stream.close()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # to cut off is meant now

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):  # whose clients do not read
            connection.transport.abort()
        await asyncio.sleep(0)  # so that they are closed

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's own, this does not send the signals again afterwards: to end is what
        they ask for."""
        if threading.current_thread() is not threading.main_thread():
            yield  # no other thread can receive a signal
            return
        kinds = (signal.SIGINT, signal.SIGTERM)
        before = {kind: signal.signal(kind, self.handle_exit) for kind in kinds}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


class _Connection(H11Protocol):
    """A connection that is cut off if a request takes too long to arrive, or if its client does
    not read."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._request = _Deadline(transport, _REQUEST)
        self._reading = _Deadline(transport, _READ)
        self._request.begin()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_expecting:
            self._request.stop()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_expecting:
            self._request.begin()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reading.begin()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reading.stop()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._request.stop()
        self._reading.stop()

    @property
    def _is_expecting(self) -> bool:
        """Whether the next request, or the rest of one, has not arrived yet."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)


class _Deadline:
    """Cuts a connection off after so many seconds, unless it is stopped before."""

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        self._transport, self._seconds = transport, seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self.stop()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds, self._transport.abort)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
