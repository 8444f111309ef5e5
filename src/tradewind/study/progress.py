"""Progress of a search: a bar in a terminal or a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tradewind.amounts import clock_time
from tradewind.errors import NothingFinished, NothingQualifies
from tradewind.goals import Tradeoff
from tradewind.interrupts import Interruptible
from tradewind.output import logger as _logger
from tradewind.output import quietly
from tradewind.runners.runner import cause
from tradewind.study.words import cost_amount, unit_of_cost
from tradewind.types import State, Trial

if TYPE_CHECKING:
    from tradewind.study.bars import Bar
    from tradewind.study.study import Study

_EVERY = {True: 5.0, None: 30.0}  # seconds between plain lines, if asked for or not


class Progress:
    """Watches a search: shows its progress, warns about costs above the reference, and calls the
    callbacks. `clock` is the clock of the workers."""

    def __init__(
        self,
        *,
        total: int | None,
        timeout: float | None,
        show: bool | None,
        study: Study,
        callbacks: tuple[Callable[[Study, Trial], None], ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._timeout, self._clock = total, timeout, clock
        self._study, self._callbacks, self._show = study, callbacks, show
        self.bar: Bar | None = None
        self._done = self._failed = self._running = 0
        self._best = ""
        self._any_finished = self._warned = False
        self._look_again_at = 0.0  # for the best trial
        self._line = ""  # the last plain line

    def __enter__(self) -> Progress:
        self._begin = self._clock()
        self._printed_at = time.monotonic()
        if self._show is not False and _is_watched():
            from tradewind.study.bars import open_bar

            self.bar = open_bar(self._total, lambda: (self._done, self._status()))
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        self._tell_that_it_ended()
        self._any_finished = self._any_finished and kind is None  # do not hide the first error
        with quietly():
            if self.bar is not None:
                with quietly():
                    self._find_best()
                self.bar.close()
            elif sys.stderr is not None and (self._show or self._line):
                self._print()

    def _tell_that_it_ended(self) -> None:
        """Call the `search_ended(study)` of callbacks that are objects and have one."""
        for callback in self._callbacks:
            if hasattr(type(callback), "search_ended"):
                with quietly():  # the search has ended, and must not fail any more
                    callback.search_ended(self._study)  # type: ignore[attr-defined]

    # ---- called by the loop ----

    def started(self, running: int) -> None:
        """Show that a trial has started."""
        with quietly():  # a display must not end a search
            self._running = running
            if self.bar is not None:
                self.bar.refresh(now=True)
            else:
                self._print_sometimes()

    def done(self, trial: Trial, running: int) -> None:
        """Count a trial that has ended, and call the callbacks."""
        if trial.state is State.FINISHED:
            _logger.info("%s", _line(trial))
        with quietly():
            self._count(trial, running)
            self._warn_above_reference(trial)
        for callback in self._callbacks:
            Interruptible(callback)(self._study, trial)

    def _count(self, trial: Trial, running: int) -> None:
        self._running = running
        self._done += 1
        if trial.state is State.FAILED:
            self._failed += 1
            self._report(f"trial {trial.number} failed: {cause(trial.error or '')}")
        finished = trial.state is State.FINISHED
        self._any_finished = self._any_finished or finished
        if self.bar is not None:
            self._show_best()
            self.bar.refresh(now=False)
        else:
            self._print_sometimes(times=1.5)  # after the next start, if there is one

    def _show_best(self) -> None:
        """Look for the best trial, but not so often that it takes a tenth of the search: with many
        trials it takes a while."""
        now = time.monotonic()
        if now >= self._look_again_at:
            self._find_best()
            ready = time.monotonic()
            self._look_again_at = ready + 10.0 * (ready - now)

    def _find_best(self) -> None:
        if self._any_finished:
            try:
                self._best = _describe(self._study.best)
            except NothingFinished as error:
                self._best = "none meets the goal" * isinstance(error, NothingQualifies)

    def _warn_above_reference(self, trial: Trial) -> None:
        """Warn once if a trial costs more than a reference that the trials decided and that caps
        costs."""
        goal = self._study._session.plan.goal
        capped = isinstance(goal, Tradeoff) and goal.capped
        if self._warned or not capped or not goal.open or trial.state is not State.FINISHED:
            return
        cost = trial.cost if goal.by is None else trial.cost_of(goal.by)
        settled = self._study.goal
        reference = settled.reference
        if cost is None or reference is None or cost <= reference or settled.provisional:
            return
        self._warned = True
        _logger.warning(
            "trial %d cost %.3g, but costs above %.3g, the reference that the first trials "
            "decided, count like that one: to change this, give the goal a reference",
            trial.number,
            cost,
            reference,
        )

    # ---- display ----

    def _print_sometimes(self, times: float = 1.0) -> None:
        """Print a line now and then. A short search that nobody asked about prints nothing."""
        if self._show is False or sys.stderr is None:
            return
        if time.monotonic() - self._printed_at >= times * _EVERY[self._show]:
            self._print()
            self._printed_at = time.monotonic()

    def _print(self) -> None:
        self._find_best()
        of = "" if self._total is None else f"/{self._total}"
        line = ", ".join([f"tradewind: {self._done}{of} trials done", *self._status()])
        if line != self._line:
            print(line, file=sys.stderr)
        self._line = line

    def _report(self, line: str) -> None:
        if self.bar is None:
            _logger.warning(line)
        else:
            self.bar.message(line)

    def _status(self) -> list[str]:
        """`best 0.91 in 12 s (#7)`, `4:10 left`, `3 running`, `1 failed`."""
        running = f"{self._running} running" if self._running else ""
        failed = f"{self._failed} failed" if self._failed else ""
        return [part for part in (self._best, self._time_left(), running, failed) if part]

    def _time_left(self) -> str:
        passed = self._clock() - self._begin
        bounds = []
        if self._total is not None and self._done:  # by the mean of those done
            bounds.append(passed / self._done * (self._total - self._done))
        if self._timeout is not None:
            bounds.append(max(self._timeout - passed, 0.0))
        return f"{clock_time(min(bounds))} left" if bounds and self._running else ""


def _line(trial: Trial) -> str:
    """`trial 3 finished: value 0.9123, cost 12.5, on 40% of the data, {'x': 0.5}`."""
    value, cost = f"{trial.metric or 'value'} {trial.value:.6g}", ""
    if trial.cost is not None:
        cost = f", {'cost' if trial.cost_name == 'wall' else trial.cost_name} {trial.cost:.3g}"
    size = f", on {trial.train_size:.0%} of the data" * (trial.train_size < 1.0)
    raced = ", clearly behind" * trial.raced
    return f"trial {trial.number} finished: {value}{cost}{size}{raced}, {dict(trial.params)}"


def _describe(best: Trial) -> str:
    price = "" if best.cost is None else f" in {cost_amount(best.cost, unit_of_cost(best))}"
    return f"best {best.value:.4g}{price} (#{best.number})"


def _is_watched() -> bool:
    """Whether somebody may be watching: at a terminal, or in a notebook."""
    with quietly():
        if sys.stderr is not None and sys.stderr.isatty():  # None if there is no console
            return True
    return "IPython" in sys.modules
