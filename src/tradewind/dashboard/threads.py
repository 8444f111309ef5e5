"""Work in threads: it never holds up the server, and its end only for a while."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

_NAME = "tradewind-dashboard"


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Call `work` in a thread of its own and return its result.

    The thread is a daemon: a store that does not answer must not keep the process alive after the
    server has ended."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if done.done():  # nobody waits any more
            return
        if error is None:
            done.set_result(result)  # type: ignore[arg-type]
        else:
            done.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = work(*args)
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(finish, result, failure)

    threading.Thread(target=run, name=_NAME, daemon=True).start()
    return await done


def wait_for_threads(seconds: float) -> bool:
    """Wait until all work has ended, at most so long, and return whether it has. A thread that is
    still in compiled code when the interpreter ends may abort the process."""
    deadline = time.monotonic() + seconds
    threads = [thread for thread in threading.enumerate() if thread.name == _NAME]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)
