"""One study that pages look at: what they show of it, and what has changed.

What is cheap (counts, running trials, rows of the table) follows the log within a second. What
needs models is computed in a thread of its own, and takes at most a tenth of the time.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

from tradewind.dashboard.changes import Change, difference
from tradewind.dashboard.commands import sentence
from tradewind.dashboard.guard import Refusal
from tradewind.dashboard.picture import (
    Paint,
    Picture,
    predicted_costs,
    with_choice,
    with_choice_of,
    with_rows,
    with_status,
)
from tradewind.dashboard.stream import encode
from tradewind.dashboard.threads import in_thread
from tradewind.errors import LogDiverged, NoSuchStudy, StorageError
from tradewind.output import logger
from tradewind.study.following import Follower
from tradewind.study.study import Study
from tradewind.types import Trial

POLL = 0.5  # seconds between two looks at the log
_AWAY = 1.0  # the same while the store does not answer
_LEAST = 2.0  # seconds between two computations of the figures, and
_SHARE = 10.0  # times as long as the last one took

Send: TypeAlias = Callable[[str, str, Any], None]
"""Sends a message: the name of the study, the kind of the message, the data."""


class Watched:
    """A study in a store, with the picture that pages show of it.

    Threads compute; the event loop alone replaces the picture, and sends the change in the same
    moment. So a page that has loaded a picture misses no change and gets none twice."""

    def __init__(
        self, name: str, *, open_study: Callable[[], Study], paint: Paint, send: Send
    ) -> None:
        self.name, self.used = name, time.monotonic()
        self.picture: Picture = {}
        self._open, self._compute, self._send = open_study, paint, send
        self._changing = asyncio.Lock()  # held from reading the picture until it is replaced
        self._wake, self._hurry = asyncio.Event(), asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._packed: tuple[Picture, bytes] | None = None
        self._away: str | None = None  # why the store cannot be read,
        self._lost = False  # and whether the study must be loaded again
        self._lost_trials: list[int] = []  # whose drivers give no sign of life
        self._read = self._painted = -1  # of the log: what was read, and what was painted
        self._chosen, self._choose_at = True, 0.0  # whether the best trial is known, or when to ask
        self._unpainted: list[Trial] = []  # what has changed since the last painting began,
        self._chosen_since = False  # and whether the best trial was looked for since then

    async def begin(self) -> None:
        """Load the study and begin to watch it; a `Refusal` if it cannot be loaded."""
        try:
            self.picture = await in_thread(self._load)
        except NoSuchStudy as error:
            raise Refusal(404, sentence(error)) from None
        except StorageError as error:
            raise Refusal(503, sentence(error)) from None
        except Exception as error:
            logger.exception("study %r could not be shown", self.name)
            raise Refusal(500, sentence(error)) from None
        self._tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._paint())]

    async def end(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def wake(self) -> None:
        """Look at the log now, and paint soon: a page has just steered the study."""
        self._wake.set()
        self._hurry.set()

    async def packed(self) -> bytes:
        """The picture as compressed JSON."""
        picture, known = self.picture, self._packed
        if known is None or known[0] is not picture:
            known = self._packed = (picture, await in_thread(_pack, picture))
        return known[1]

    async def _watch(self) -> None:
        while True:
            async with self._changing:
                picture, messages = await in_thread(self._look)
                self.picture = picture
                for kind, change in messages:
                    self._send(self.name, kind, {"change": change})
            await _set_within(self._wake, _AWAY if self._away else POLL)
            self._wake.clear()

    async def _paint(self) -> None:
        while True:
            if self._read == self._painted or self._away is not None:
                await asyncio.sleep(POLL)
                continue
            async with self._changing:  # the follower serves one thread at a time
                began, at, study = time.monotonic(), self._read, self.study
                self._unpainted, self._chosen_since = [], False
                running = self._follower.unpredicted()
            self._hurry.clear()
            painted, costs = await in_thread(self._repaint, running)
            async with self._changing:
                if self.study is not study:  # it was loaded again meanwhile
                    continue
                self._painted = at
                self._follower.predict(costs)
                if painted is not None:
                    self.picture, change = await in_thread(self._merge, painted)
                    if change is not None:
                        self._send(self.name, "charts", {"change": change})
            took = time.monotonic() - began
            await _set_within(self._hurry, max(_LEAST, _SHARE * took))
            await asyncio.sleep(POLL)  # a command may be followed by another one

    # ---- in threads ----

    def _load(self) -> Picture:
        """Load the study as the store has it now. The rest follows when it is painted."""
        study = self._open()
        follower = Follower(study)
        news = follower.look()
        self.study, self._follower = study, follower
        self._read, self._painted, self._unpainted = news.position, -1, []
        return with_status(self._compute(study, models=False), follower, painting=True)

    def _look(self) -> tuple[Picture, list[tuple[str, Change]]]:
        """Read what is new. The new picture, and the messages that lead there. What cannot be read
        is said: a page must not take what is old for what is live."""
        old = self.picture
        try:
            if self._lost:
                new = self._load()
                self._away, self._lost = None, False
                return new, _messages(("charts", old, new))
            return self._follow(old)
        except (NoSuchStudy, LogDiverged) as error:  # the store has another study by now
            self._away, self._lost = sentence(error), True
        except StorageError as error:
            self._away = sentence(error)
        except Exception as error:
            logger.exception("study %r could not be followed", self.name)
            self._away, self._lost = sentence(error), True
        new = {**old, "live": {**old["live"], "away": self._away}}
        return new, _messages(("status", old, new))

    def _follow(self, old: Picture) -> tuple[Picture, list[tuple[str, Change]]]:
        lost = self._follower.lost()  # as of the last look: those that still run now are lost
        news = self._follower.look()
        self._away, self._read, self._lost_trials = None, news.position, lost
        self._unpainted += news.changed
        self._chosen = self._chosen and not news.may_choose
        rows = self._choose(with_rows(old, news.changed))
        new = with_status(rows, self._follower, painting=self._painted < 0, lost=lost)
        messages = _messages(("rows", old, rows), ("status", rows, new))
        return (new if messages else old), messages

    def _choose(self, picture: Picture) -> Picture:
        """The picture with the best trial as it is now, unless finding it takes too long for so
        short a time."""
        if self._chosen or time.monotonic() < self._choose_at:
            return picture
        began = time.monotonic()
        try:
            picture = with_choice(picture, self.study)
        except StorageError:  # the next look will say so
            return picture
        except Exception:  # counts and rows must still follow the log
            logger.exception("the best trial of study %r could not be found", self.name)
        now = time.monotonic()
        self._chosen, self._choose_at = True, now + _SHARE * (now - began)
        self._chosen_since = True
        return picture

    def _repaint(self, running: list[Trial]) -> tuple[Picture | None, dict[int, float | None]]:
        """All of the picture, or None if it cannot be computed now; and what these trials should
        cost."""
        costs: dict[int, float | None] = {}
        try:
            costs = predicted_costs(self.study, running)
            return self._compute(self.study, models=True), costs
        except StorageError:  # the next look will say so
            pass
        except Exception:  # a figure that fails must not end the page
            logger.exception("the figures of study %r could not be computed", self.name)
        return None, costs

    def _merge(self, painted: Picture) -> tuple[Picture, Change]:
        """The painted picture with what has happened since, and the change that leads there."""
        try:
            rows = with_rows(painted, self._unpainted)
            if self._chosen_since:
                rows = with_choice_of(rows, self.picture)
            new = with_status(rows, self._follower, self._away, lost=self._lost_trials)
        except Exception:  # the next look will say so
            logger.exception("the figures of study %r could not be shown", self.name)
            return self.picture, None
        return new, difference(self.picture, new)


async def _set_within(event: asyncio.Event, seconds: float) -> None:
    """Wait until an event is set, but no longer than this. In Python 3.11, `asyncio.wait_for` would
    ignore that its task is cancelled if the event is set at the same moment."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _messages(*steps: tuple[str, Picture, Picture]) -> list[tuple[str, Change]]:
    found = [(kind, difference(old, new)) for kind, old, new in steps]
    return [(kind, change) for kind, change in found if change is not None]


def _pack(picture: Picture) -> bytes:
    return gzip.compress(encode(picture), compresslevel=5, mtime=0)
