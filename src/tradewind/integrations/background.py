"""Jobs beside a search: it neither waits for them nor ends because of them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from tradewind.output import logger as _logger

Job: TypeAlias = Callable[[], None]

_PAUSE = 60.0  # seconds without another attempt after a failure


class Background:
    """Does one job after the other in a thread of its own, which ends when there is nothing to do.

    If a job fails, that is logged once, and jobs are skipped for a minute: those of a server that
    does not answer would take minutes each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._jobs: deque[Job] = deque()
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._warned = False
        self._skip_until = 0.0

    @property
    def is_failing(self) -> bool:
        """Whether jobs are skipped at the moment."""
        return time.monotonic() < self._skip_until

    def do(self, job: Job) -> None:
        """Do this when all earlier jobs are done."""
        with self._change:
            self._jobs.append(job)
            if self._thread is None:
                name = f"tradewind-{self.name}"
                self._thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until all jobs are done, for so many seconds at most, and say whether they are."""
        with self._change:
            return self._change.wait_for(lambda: self._thread is None, seconds)

    def failed(self, error: BaseException) -> None:
        """Log the first failure, and skip what follows for a while."""
        self._skip_until = time.monotonic() + _PAUSE
        if not self._warned:
            self._warned = True
            _logger.warning(
                "%s does not take the results of trials (%s: %s). They are safe in the study; "
                "to send them later, call log(study) of the tracker",
                self.name,
                type(error).__name__,
                str(error).strip().partition("\n")[0],
            )

    def _work(self) -> None:
        while True:
            with self._change:
                if not self._jobs:
                    self._thread = None
                    self._change.notify_all()
                    return
                job = self._jobs.popleft()
            if self.is_failing:
                continue
            try:
                job()
            except (Exception, SystemExit) as error:  # of the tracking tool: the thread goes on
                self.failed(error)
