"""The studies of a store: which there are, and those that pages look at."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tradewind.checks import study_name
from tradewind.dashboard.commands import sentence
from tradewind.dashboard.guard import Refusal
from tradewind.dashboard.picture import Paint
from tradewind.dashboard.stores import open_study
from tradewind.dashboard.stream import Stream
from tradewind.dashboard.threads import in_thread
from tradewind.dashboard.watched import Watched
from tradewind.errors import StorageError
from tradewind.log.log import Store
from tradewind.study.studies import list_studies

MOST_WATCHED = 16  # studies at the same time
IDLE = 60.0  # seconds without a page, after which a study is no longer watched
_TIDY = 10.0  # seconds between two looks for such studies
_LISTED = 2.0  # seconds that a list of the studies is good for, and
_SHARE = 20.0  # times as long as it took: it reads every log from the beginning


class Shelf:
    """The studies of one store. It belongs to one event loop."""

    def __init__(self, store: Store, stream: Stream, paint: Paint) -> None:
        self._store, self._stream, self._paint = store, stream, paint
        self._watched: dict[str, asyncio.Task[Watched]] = {}
        self._list: list[dict[str, Any]] = []
        self._list_until = 0.0
        self._listing = asyncio.Lock()

    async def watched(self, name: str) -> Watched:
        """This study, which is watched from now on; a `Refusal` if it cannot be read."""
        try:
            study_name(name)
        except ValueError as error:
            raise Refusal(404, sentence(error)) from None
        if name not in self._watched:
            await self._make_room()
        if name not in self._watched:
            self._watched[name] = asyncio.create_task(self._begin(name))
        found = await asyncio.shield(self._watched[name])
        found.used = time.monotonic()
        return found

    async def studies(self) -> list[dict[str, Any]]:
        """Every study of the store, oldest first: its name, its counts, when it was created."""
        async with self._listing:
            if time.monotonic() > self._list_until:
                began = time.monotonic()
                try:
                    self._list = await in_thread(_list, self._store)
                except StorageError as error:
                    raise Refusal(503, sentence(error)) from None
                now = time.monotonic()
                self._list_until = now + max(_LISTED, _SHARE * (now - began))
        return self._list

    async def tidy(self) -> None:
        """Stop watching studies that no page shows, again and again."""
        while True:
            await asyncio.sleep(_TIDY)
            await self._drop(lambda watched: time.monotonic() - watched.used > IDLE)

    async def close(self) -> None:
        """Stop watching every study."""
        await self._drop(lambda _: True, even_shown=True)

    async def _begin(self, name: str) -> Watched:
        new = Watched(
            name,
            open_study=lambda: open_study(self._store, name),
            paint=self._paint,
            send=self._stream.send,
        )
        try:
            await new.begin()
        except BaseException:  # the next request tries again
            self._watched.pop(name, None)
            raise
        # Nobody has watched it for a while: pages from before must not continue with what they have
        self._stream.send(name, "reset", {})
        return new

    async def _make_room(self) -> None:
        if len(self._watched) < MOST_WATCHED:
            return
        idle = [w.used for w in self._begun() if w.name not in self._stream.shown()]
        if not idle:
            raise Refusal(503, f"{MOST_WATCHED} studies are open at once: close some pages first.")
        await self._drop(lambda watched: watched.used <= min(idle))

    async def _drop(self, which: Any, *, even_shown: bool = False) -> None:
        shown, dropped = self._stream.shown(), []
        for watched in self._begun():
            if watched.name in shown:
                watched.used = time.monotonic()
            if which(watched) and (even_shown or watched.name not in shown):
                dropped.append(self._watched.pop(watched.name))
        for task in dropped:  # only now, because others may watch and drop studies meanwhile
            await task.result().end()

    def _begun(self) -> list[Watched]:
        done = [t for t in self._watched.values() if t.done() and not t.cancelled()]
        return [t.result() for t in done if t.exception() is None]


def _list(store: Store) -> list[dict[str, Any]]:
    known = {study.name: study for study in list_studies(store)}
    found: list[dict[str, Any]] = []
    for name in store.names():
        study = known.get(name)
        if study is None:  # damaged, or of a newer version
            found.append({"name": name, "counts": None, "created": None})
        else:
            counts = dict(study.states)
            found.append({"name": name, "counts": counts, "created": study.created})
    return found
