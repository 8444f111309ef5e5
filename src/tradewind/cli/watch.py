"""A study, live in the terminal; or a line for every event where the output is piped."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live

from tradewind.cli import answers, tables
from tradewind.cli.picture import View, picture
from tradewind.cli.terminal import make_console, quiet_pipe, say
from tradewind.cli.text import one_line
from tradewind.errors import FormatError, NothingFinished, StorageError
from tradewind.study import words
from tradewind.study.following import Follower
from tradewind.types import State, Trial

if TYPE_CHECKING:
    from tradewind.study.study import Study

_EVENTS = 6  # that are listed


def watch_study(study: Study, *, every: float, once: bool) -> None:
    """Look again and again, until q or Ctrl-C."""
    console = make_console()
    watcher = Watcher(study)
    try:
        if console.is_terminal and not console.is_dumb_terminal and not once:
            _watch_live(watcher, console, every)
        else:
            with quiet_pipe():
                _print_events(watcher, every, once=once)
    except KeyboardInterrupt:  # the usual way to end it
        return


class Watcher:
    """What is known of a study, and what has happened to it lately."""

    def __init__(self, study: Study) -> None:
        self.study, self.follower = study, Follower(study)
        self.events: list[str] = []
        self.trouble: str | None = None
        self._lost: list[int] = []
        self._best: tuple[str, list[Any]] = ("", [])
        self._best_at: Any = None  # as of so many finished trials, and this goal
        self._pause: Any = None
        self._goal: Any = None

    def look(self) -> list[str]:
        """Read what is new, and return it as lines. A store that is away is tried again."""
        try:
            self._lost = self.follower.lost()  # as of the last look
            news = self.follower.look()
            self.trouble = None
        except FormatError:
            raise
        except StorageError as error:
            self.trouble = one_line(error)
            return []
        state, changed = self.follower.state, _in_time(news.changed)
        if self._goal is None:  # the first look: what was long ago is no news
            changed = changed[-_EVENTS:]
        unit = self.unit
        lines = [line for trial in changed if (line := _event(trial, unit))]
        if self._goal is not None and state.goal != self._goal:
            now = words.goal_in_words(self.study.goal, unit, state.metric)
            lines.append(f"the goal is now {now}")
        self._goal, pause = state.goal, state.paused
        if (pause is None) != (self._pause is None):
            lines.append("the study goes on" if pause is None else "the study is paused")
        self._pause = pause
        self.events = [*self.events, *lines][-_EVENTS:]
        return lines

    @property
    def unit(self) -> str:
        return words.unit_of_costs(self._finished()[-1:], self.study.goal.by)

    def _finished(self) -> list[Trial]:
        return [t for t in self.follower.state.in_order() if t.finished]

    def view(self) -> View:
        """What a picture shows."""
        study, pause = self.study, self.follower.state.paused
        sentence, efficient = self.best()
        return View(
            facts=[
                ("best", sentence),
                ("study", one_line(study.name)),
                ("goal", words.goal_in_words(study.goal, self.unit, study.metric)),
                ("trials", self.counts()),
                ("paused", "" if pause is None else (pause.reason or "yes")),
                ("store", "" if self.trouble is None else f"away: {self.trouble}"),
            ],
            running=answers.running(self.follower, self._lost),
            finished=self._points(self._finished()),
            efficient=self._points(efficient),
            events=self.events,
            unit=self.unit,
            maximize=study.direction == "maximize",
            value=one_line(study.metric or "value"),
        )

    def _points(self, trials: list[Any]) -> list[tuple[float, float]]:
        by = self.study.goal.by
        costs = [(t.cost if by is None else t.cost_of(by)) for t in trials]
        return [(c, t.value) for c, t in zip(costs, trials, strict=True) if c is not None]

    def counts(self) -> str:
        state, counts = self.follower.state, self.follower.counts()
        queued = f", {len(state.queue)} queued" if state.queue else ""
        return f"{tables.counts_text(counts)}{queued}"

    def best(self) -> tuple[str, list[Any]]:
        """The sentence about the best trial, and the frontier. Both are computed when a trial has
        finished, or when the goal has changed."""
        now = (self.follower.counts()["finished"], self.follower.state.goal)
        if now != self._best_at:
            with suppress(StorageError):  # it is away: the last ones stay
                _, sentence = answers.best_or_none(self.study)
                frontier: list[Any] = []
                with suppress(NothingFinished):
                    frontier = self.study.frontier()
                self._best, self._best_at = (sentence or "", frontier), now
        return self._best


def _in_time(trials: list[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda t: t.ended or t.started or 0.0)


def _event(trial: Trial, unit: str) -> str:
    """What happened to a trial last; nothing if it only waits."""
    match trial.state:
        case State.FINISHED:
            price = "" if trial.cost is None else f" at {tables.named_cost(trial.cost, unit)}"
            named = f"{one_line(trial.metric)} " if trial.metric else ""
            text = f"finished: {named}{tables.number(trial.value)}{price}"
        case State.FAILED:
            why = answers.failures([trial])[0]["message"]
            text = f"failed: {tables.shortened(why)}"
        case State.ABANDONED:
            text = f"was stopped: {tables.shortened(trial.error or '')}"
        case State.RUNNING:
            text = f"started: {tables.params_text(trial.params)}"
        case _:
            return ""
    at = trial.ended or trial.started
    clock = "" if at is None else time.strftime("%H:%M:%S ", time.localtime(at))
    return f"{clock}trial {trial.number} {text}"


# ---- piped ----


def _print_events(watcher: Watcher, every: float, *, once: bool) -> None:
    trouble = None
    while True:
        lines = watcher.look()
        for line in lines:
            say(line)
        if lines or once:
            if sentence := watcher.best()[0]:
                say(f"best: {sentence}")
            say(f"trials: {watcher.counts()}")
        if watcher.trouble not in (None, trouble):
            say(f"the store is away: {watcher.trouble}")
        trouble = watcher.trouble
        if once:
            return
        _wait_for_news(every)


def _wait_for_news(seconds: float) -> None:
    """Sleep, but end at once if the reader of a pipe goes away: nothing may be left to print that
    would show it."""
    try:
        reader = select.poll()
        reader.register(sys.stdout.fileno(), 0)  # only errors and hang-ups
    except (AttributeError, ValueError):  # Windows; the output is no file
        time.sleep(seconds)
        return
    if reader.poll(1000.0 * seconds):
        raise BrokenPipeError


# ---- live ----


def _watch_live(watcher: Watcher, console: Console, every: float) -> None:
    with _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            watcher.look()
            live.update(picture(watcher.view(), console), refresh=True)
            if pressed(every) in ("q", "Q", "\x1b", "\x04"):
                return


@contextmanager
def _keys() -> Iterator[Any]:
    """A function that waits for a key and returns it; "" if none was pressed."""

    def sleep(seconds: float) -> str:
        time.sleep(seconds)
        return ""

    def read(seconds: float) -> str:
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        return sys.stdin.read(1) or "q" if ready else ""

    try:
        import termios
        import tty

        before = termios.tcgetattr(sys.stdin)
    except Exception:  # no terminal, or not a POSIX one
        yield sleep
        return
    try:
        tty.setcbreak(sys.stdin)
        yield read
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
