"""A connection that gives up on a server that does not answer.

A server that is frozen, or behind a network that drops everything, keeps its connections open. So
whoever waits for it would wait for ever.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

from tradewind.interrupts import give_up_at

T = TypeVar("T")

SILENCE = 10.0  # seconds


class NoAnswer(psycopg.OperationalError):
    """The server was silent for too long."""


class Impatient(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed once the server has been silent for `silence` seconds during a
    request."""

    silence = SILENCE

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        try:
            return super().wait(_heard(gen, self.silence), *args, **options)
        except NoAnswer:
            self.close()  # an answer that comes later would be taken for that of the next request
            raise


def _heard(request: Generator[Any, Any, T], silence: float) -> Generator[Any, Any, T]:
    """The same request, but with an error after `silence` seconds without an answer, or when the
    search was told to end.

    Psycopg runs a request as a generator: it yields what it waits for, and is sent what has become
    ready. That is nothing, every tenth of a second, as long as the server is silent."""
    until = time.monotonic() + silence
    try:
        awaited = next(request)
        while True:
            ready = yield awaited
            if ready:
                until = time.monotonic() + silence
            elif time.monotonic() > min(until, give_up_at()):
                raise NoAnswer(f"the server has not answered for {silence:g} seconds")
            awaited = request.send(ready)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
