"""Messages to the pages that are open, over server-sent events.

Every message has an id. A page that was cut off names the last one it has, and gets the rest; if
that is no longer kept, or the server was started again, it is told to load everything anew.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from tradewind.dashboard.guard import Refusal

HEARTBEAT = 10.0  # seconds; a page that hears nothing for longer connects again
MOST_PAGES = 100  # streams at the same time
_KEPT = 500  # messages, and
_KEPT_BYTES = 16 << 20  # of so many bytes in all, for pages that were cut off
_WAITING = 200  # messages for one page that does not read


@dataclass(frozen=True)
class Message:
    """One message about a study. `kind` is "status", "rows", "charts" or "reset"."""

    number: int
    study: str
    kind: str
    body: bytes


class Stream:
    """The messages of one server. It belongs to one event loop."""

    def __init__(self) -> None:
        self._server = token_hex(4)
        self._number = 0
        self._kept: deque[Message] = deque()
        self._bytes = 0
        self._pages: set[Page] = set()
        self._is_closed = False

    @property
    def last_id(self) -> str:
        """The id of the latest message."""
        return f"{self._server}-{self._number}"

    def send(self, study: str, kind: str, data: Any) -> None:
        """Send a message to every page that shows this study."""
        self._number += 1
        body = encode({"study": study, **data})
        message = Message(self._number, study, kind, body)
        self._kept.append(message)
        self._bytes += len(body)
        while len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES:
            self._bytes -= len(self._kept.popleft().body)
        for page in list(self._pages):
            page.put(message)
            if page.is_late:
                self._pages.discard(page)

    def shown(self) -> set[str]:
        """The studies that a page shows."""
        return {name for page in self._pages for name in page.studies}

    def close(self) -> None:
        """End all streams, and accept no new one. May be called from a signal handler."""
        self._is_closed = True
        for page in list(self._pages):
            page.end_soon()

    def check_room(self) -> None:
        """A `Refusal` if no more pages can be served."""
        if self._is_closed:
            raise Refusal(503, "The dashboard is ending.")
        if len(self._pages) >= MOST_PAGES:
            raise Refusal(503, f"{MOST_PAGES} pages are open, which is the most: close some first.")

    @contextmanager
    def page(self, studies: list[str], last_id: str | None) -> Iterator[Page]:
        """A new page, which has everything up to the message `last_id`."""
        page = Page(frozenset(studies))
        missed = self._after(last_id, page.studies)
        if missed is None:
            page.put(Message(self._number, "", "reset", b"{}"))
        for message in missed or ():
            page.put(message)
        self._pages.add(page)
        if self._is_closed:
            page.end()
        try:
            yield page
        finally:
            self._pages.discard(page)

    def _after(self, last_id: str | None, studies: frozenset[str]) -> list[Message] | None:
        """The messages after this one; None if they are not all kept."""
        server, _, number = (last_id or "").rpartition("-")
        if server != self._server or not (number.isascii() and number.isdigit()):
            return None
        after = int(number[:18])
        first = self._kept[0].number if self._kept else self._number + 1
        if not first - 1 <= after <= self._number:
            return None
        return [m for m in self._kept if m.number > after and m.study in studies]

    def text(self, message: Message) -> bytes:
        """A message as the text of an event."""
        head = f"id: {self._server}-{message.number}\nevent: {message.kind}\ndata: "
        return head.encode() + message.body + b"\n\n"


class Page:
    """One open page and the messages that wait for it."""

    def __init__(self, studies: frozenset[str]) -> None:
        self.studies = studies
        self.is_late = False  # it does not read what it is sent
        self._bytes = 0  # that wait
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Queue[Message | None] = asyncio.Queue()

    def put(self, message: Message) -> None:
        if message.study in self.studies or not message.study:  # it is for all
            if self._waiting.qsize() >= _WAITING or self._bytes > _KEPT_BYTES:
                self._let_go()
            elif not self.is_late:
                self._bytes += len(message.body)
                self._waiting.put_nowait(message)

    def _let_go(self) -> None:
        """End, and keep nothing: when it reads again, it must connect again."""
        self.is_late, self._bytes = True, 0
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self.end()

    def end(self) -> None:
        self._waiting.put_nowait(None)

    def end_soon(self) -> None:
        """The same, from wherever it is called: it also wakes the event loop."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.end)

    async def messages(self, heartbeat: float = HEARTBEAT) -> AsyncIterator[Message | None]:
        """The messages as they come, and None whenever there was none for a while."""
        while True:
            try:
                async with asyncio.timeout(heartbeat):
                    message = await self._waiting.get()
            except TimeoutError:
                yield None
                continue
            if message is None:
                return
            self._bytes -= len(message.body)
            yield message


def encode(data: Any) -> bytes:
    """Plain data as JSON on one line, in ASCII, without infinite numbers or NaN."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
