"""How far a search is: a bar at a terminal or in a notebook, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from tradewind.runners.run import cause
from tradewind.types import State, Trial

_logger = logging.getLogger("tradewind")

_EVERY = {True: 5.0, None: 30.0}  # seconds between plain lines: asked for, or not


class Progress:
    """Counts trials and shows how many are done, running and failed, the best so far, and the time
    left. `best` is called only where it is shown; `clock` is that of the workers."""

    def __init__(
        self,
        *,
        total: int | None,
        timeout: float | None,
        show: bool | None,
        best: Callable[[], Trial],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._timeout, self._best, self._clock = total, timeout, best, clock
        self._show = show
        self._bar: Any = None
        self._done = self._failed = self._running = 0
        self._described = ""
        self._finished = self._lined = False

    def __enter__(self) -> Progress:
        self._begin = self._clock()
        self._said = time.monotonic()
        if self._show is not False and _watched():
            from tqdm.auto import tqdm

            count = "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}"
            if self._total is None:
                count = "{n_fmt} trials"
            self._bar = tqdm(total=self._total, bar_format=count + " [{elapsed}{postfix}]")
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        self._finished = self._finished and kind is None  # an error is not to be hidden by another
        if self._bar is not None:
            self._bar.close()
        elif sys.stderr is not None and (self._show or self._lined):
            self._say()

    def started(self, running: int) -> None:
        self._running = running
        if self._bar is not None:
            self._bar.set_postfix_str(self._standing())
        elif self._show is not False and sys.stderr is not None:
            self._line()

    def done(self, trial: Trial, running: int) -> None:
        """Count a trial that has ended."""
        self._running = running
        self._done += 1
        if trial.state is State.FAILED:
            self._failed += 1
            self._report(f"trial {trial.number} failed: {cause(trial.error or '')}")
        self._finished = self._finished or trial.finished
        if self._bar is not None:
            if trial.finished:
                self._described = _described(self._best())
            self._bar.set_postfix_str(self._standing(), refresh=False)
            self._bar.update()
        elif self._show is not False and sys.stderr is not None:
            self._line(times=1.5)  # after the next start, if there is one

    def _line(self, times: float = 1.0) -> None:
        """A plain line, now and then; a short search that nobody asked about says nothing."""
        if time.monotonic() - self._said >= times * _EVERY[self._show]:
            self._say()
            self._lined, self._said = True, time.monotonic()

    def _say(self) -> None:
        if self._finished:
            self._described = _described(self._best())
        of = "" if self._total is None else f"/{self._total}"
        print(f"tradewind: {self._done}{of} trials done, {self._standing()}", file=sys.stderr)

    def _report(self, line: str) -> None:
        if self._bar is None:
            _logger.warning(line)
        else:
            self._bar.write(line, file=sys.stderr)

    def _standing(self) -> str:
        """`3 running, 1 failed, best 0.91 in 12 (#7), 4:10 left`."""
        running = f"{self._running} running" if self._running else ""
        failed = f"{self._failed} failed" if self._failed else ""
        return ", ".join(filter(None, [running, failed, self._described, self._left()]))

    def _left(self) -> str:
        passed = self._clock() - self._begin
        bounds = []
        if self._total is not None and self._done:
            bounds.append(passed / self._done * (self._total - self._done))
        if self._timeout is not None:
            bounds.append(max(self._timeout - passed, 0.0))
        return f"{_clock_time(min(bounds))} left" if bounds and self._running else ""


def _clock_time(seconds: float) -> str:
    minutes, whole = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"


def _described(best: Trial) -> str:
    cost = "" if best.cost is None else f" in {best.cost:.3g}"
    size = f" on {best.train_size:.0%} of the data" * (best.train_size < 1.0)
    return f"best {best.value:.4g}{cost}{size} (#{best.number})"


def _watched() -> bool:
    """Whether somebody looks on: at a terminal, or in a notebook."""
    terminal = sys.stderr is not None and sys.stderr.isatty()  # None where there is no console
    return terminal or "ipykernel" in sys.modules
