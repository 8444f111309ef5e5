"""The web application: what is answered at which address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tradewind.dashboard.assets import PAGE, Asset, assets
from tradewind.dashboard.commands import carry_out, read_command
from tradewind.dashboard.guard import LONGEST_BODY, TOKEN, Access, Guard, Refusal
from tradewind.dashboard.picture import Paint, painter
from tradewind.dashboard.shelf import Shelf
from tradewind.dashboard.stores import place
from tradewind.dashboard.stream import Stream, encode
from tradewind.dashboard.threads import in_thread
from tradewind.log.stores import open_store
from tradewind.study.studies import Storage

MOST_TOGETHER = 4  # studies on one page


def app(
    storage: Storage,
    *,
    token: str | None,
    access: Access | None = None,
    paint: Paint | None = None,
) -> Starlette:
    """The dashboard of a store. With a `token`, pages that have it may steer; without one, nobody
    may. `access` replaces what is let through, and `paint` what is computed of a study."""
    store = open_store(storage)
    access = access or Access(token)
    stream = Stream()
    shelf = Shelf(store, stream, paint or painter(place(store)))
    site = _Site(shelf, stream, access, place(store))
    made = Starlette(
        routes=[
            Route("/", site.page),
            Route("/assets/{name}", site.asset),
            Route("/api/studies", site.studies),
            Route("/api/events", site.events),
            Route("/api/study", site.study),
            Route("/api/study/{name:path}", site.study),
            Route("/api/study/{rest:path}", site.steer, methods=["POST"]),
        ],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={Refusal: _refused, 404: _not_found, 405: _not_found},
        lifespan=site.lifespan,
    )
    made.state.stream = stream
    return made


class _Site:
    """What is answered. It belongs to one event loop."""

    def __init__(self, shelf: Shelf, stream: Stream, access: Access, where: str) -> None:
        self._shelf, self._stream, self._access, self._where = shelf, stream, access, where
        self._assets = assets()

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        tidying = asyncio.create_task(self._shelf.tidy())
        try:
            yield
        finally:
            tidying.cancel()
            with suppress(asyncio.CancelledError):
                await tidying
            self._stream.close()
            await self._shelf.close()

    # ---- files ----

    async def page(self, request: Request) -> Response:
        return _file(request, self._assets[PAGE])

    async def asset(self, request: Request) -> Response:
        found = self._assets.get(request.path_params["name"])
        if found is None:
            raise Refusal(404, "There is no such file.")
        return _file(request, found)

    # ---- reading ----

    async def studies(self, request: Request) -> Response:
        """What there is, and what this page may do. Opening the page begins here."""
        given = request.headers.get(TOKEN.decode(), "").encode("latin-1")
        found, problem = [], None
        try:
            found = await self._shelf.studies()
        except Refusal as refusal:  # the page says so, and asks again
            problem = refusal.sentence
        return _json(
            {
                "storage": self._where,
                "studies": found,
                "problem": problem,
                "can_steer": self._access.can_steer,
                "may_steer": self._access.can_steer and self._access.is_token(given),
            }
        )

    async def study(self, request: Request) -> Response:
        name = _name(request, request.path_params.get("name", ""))
        watched = await self._shelf.watched(name)
        headers = {"x-tradewind-stream": self._stream.last_id, "vary": "accept-encoding"}
        if not _takes_gzip(request):
            body = await in_thread(encode, watched.picture)
        else:
            body = await watched.packed()
            headers["content-encoding"] = "gzip"
        return Response(body, headers=headers, media_type="application/json")

    async def events(self, request: Request) -> Response:
        """The messages about some studies, from the id in `after` or Last-Event-ID on."""
        names = list(dict.fromkeys(request.query_params.getlist("study")))
        if not 1 <= len(names) <= MOST_TOGETHER:
            raise Refusal(400, f"Name 1 to {MOST_TOGETHER} studies, as in /api/events?study=…")
        for name in names:
            await self._shelf.watched(name)
        last_id = request.headers.get("last-event-id") or request.query_params.get("after")
        self._stream.check_room()
        return StreamingResponse(
            self._messages(names, last_id),
            media_type="text/event-stream",
            headers={"x-accel-buffering": "no"},
        )

    async def _messages(self, names: list[str], last_id: str | None) -> AsyncIterator[bytes]:
        with self._stream.page(names, last_id) as page:
            yield b"retry: 1000\n\n"
            async for message in page.messages():
                yield b": still here\n\n" if message is None else self._stream.text(message)

    # ---- steering ----

    async def steer(self, request: Request) -> Response:
        """Carry out a command. The answer comes when the log has it."""
        path, _, verb = request.path_params["rest"].rpartition("/")
        command = read_command(verb, await _body(request))
        watched = await self._shelf.watched(_name(request, path))
        said = await in_thread(carry_out, command, watched.study)
        watched.wake()
        return _json({"done": said})


def _name(request: Request, in_path: str) -> str:
    """The study that is meant. A browser drops a path that is `.` or `..`, so the name may also
    stand in the query."""
    return request.query_params.get("name") or in_path


def _json(data: Any, status: int = 200) -> Response:
    """An answer in ASCII: names and errors may hold letters that UTF-8 cannot express."""
    return Response(encode(data), status, media_type="application/json")


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "").lower()


def _file(request: Request, asset: Asset) -> Response:
    headers = {"etag": asset.tag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    if not _takes_gzip(request):
        return Response(asset.body, headers=headers, media_type=asset.kind)
    headers["content-encoding"] = "gzip"
    return Response(asset.packed, headers=headers, media_type=asset.kind)


async def _body(request: Request) -> bytes:
    """The body of a request, unless it is too long; a length that was announced may be a lie."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_BODY:
                raise Refusal(413, f"A request may have up to {LONGEST_BODY} bytes.")
    except ClientDisconnect:
        raise Refusal(400, "The request is incomplete.") from None
    return body


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _json({"error": error.sentence}, error.status)


async def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return _json({"error": "There is nothing at this address."}, status)
