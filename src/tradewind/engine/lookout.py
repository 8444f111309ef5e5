"""What a search does in the background: it shows that it is alive, and sees what others have ended.

An objective may run for hours in the driver's own thread. Meanwhile another thread renews the
leases of the running trials, and looks at the log: somebody may have abandoned one of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from tradewind.engine.limits import Running
from tradewind.engine.session import Session
from tradewind.errors import StorageError
from tradewind.log.events import Abandoned, Claimed, Failed, Finished, Started
from tradewind.log.state import OPEN, StudyState
from tradewind.runners.runner import InProcess, Workers

LOOK = 0.4  # seconds between looks at the log
ENDED_ELSEWHERE = "somebody else has ended it"
_PATIENCE = 1.0  # seconds that the end of a search waits for a store that does not answer


class Lookout:
    """Watches over the trials of a session that are `running` on `workers`, in a thread of its own.

    It renews the leases of `lease` seconds that the session holds, three times within that time.
    It finds the trials that have ended in the log, or that another driver holds by now, and
    interrupts those whose objectives run in the driver's thread. The log is read only if nobody
    else has just done it. The session's lock is never taken, because a store may take long to
    answer, and the driver must not wait for that."""

    def __init__(
        self,
        session: Session,
        lease: float,
        running: Mapping[int, Running] | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._session, self._lease = session, lease
        self._running: Mapping[int, Running] = {} if running is None else running
        self._workers = workers if isinstance(workers, InProcess) else None
        self._over: dict[int, Running] = {}  # only the thread changes it
        self._ended: set[int] = set()  # trials that have ended beyond what the session has read
        self._journal, self._position = session.journal, 0  # what was read of which log,
        self._looked_at = 0.0  # and when
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tradewind lookout", daemon=True)

    def __enter__(self) -> Lookout:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_done.set()
        self._thread.join(_PATIENCE)

    def over(self) -> list[int]:
        """The trials that still run here but should not."""
        over = self._over  # read once: the thread may replace it
        return [number for number, trial in over.items() if self._running.get(number) is trial]

    # ---- the thread ----

    def _watch(self) -> None:
        every = min(self._lease / 3, 3600.0)
        renewal = time.monotonic() + every
        while not self._is_done.wait(max(0.0, min(renewal, self._due()) - time.monotonic())):
            with suppress(StorageError):  # the next attempt may succeed; the loop notices, too
                if time.monotonic() >= renewal:
                    renewal = time.monotonic() + every
                    self._renew()
                self._look()

    def _due(self) -> float:
        """When to read the log. The session has read it at `seen_at`."""
        return max(self._looked_at, self._session.journal.seen_at) + LOOK

    def _renew(self) -> None:
        held = [number for number, each in list(self._session.held.items()) if each == self._lease]
        if held:
            self._session.log.beat(held, self._lease)

    def _look(self) -> None:
        if is_due := time.monotonic() >= self._due():
            self._looked_at = time.monotonic()
        # before the log, so that all that is read is later than their starts
        running = dict(self._running)
        journal = self._session.journal
        state = journal.peek()
        if not running or state is None:
            return
        me = self._session.id
        over = {number for number in running if _is_over(state, number, me)}
        self._forget(journal, state)
        if is_due:
            self._read_news(me)
        over |= running.keys() & self._ended
        kept = {n: trial for n, trial in self._over.items() if running.get(n) is trial}
        self._over = kept | {number: running[number] for number in over}
        if self._workers is not None and (still := self.over()):
            self._workers.interrupt(still, ENDED_ELSEWHERE)

    def _forget(self, journal: object, state: StudyState) -> None:
        """Forget what was read here if the session has read it by now."""
        if journal is not self._journal:  # the session continues with another log
            self._journal, self._position = self._session.journal, 0
        if state.position >= self._position:
            self._position = state.position
            self._ended.clear()

    def _read_news(self, me: str) -> None:
        """Read the events that neither the session nor this thread has read. One may end a trial
        that is not among the running ones yet."""
        for event in list(self._session.log.read(self._position)):
            self._position += 1
            match event:
                case Finished(number) | Failed(number) | Abandoned(number):
                    self._ended.add(number)
                case Claimed(number, driver) | Started(number, driver):
                    (self._ended.discard if driver == me else self._ended.add)(number)


def _is_over(state: StudyState, number: int, me: str) -> bool:
    """Whether a trial has ended, or another driver holds it."""
    trial = state.trials.get(number)
    if trial is None:  # the session continues with another log, which lacks it
        return False
    return trial.state not in OPEN or state.holder.get(number, me) != me
