"""Running a run file: create or continue its study, search until its limits, and say what came of
it."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tradewind.checks import seconds
from tradewind.cli.config import RunFile
from tradewind.cli.exits import Exit, UsageFault, without_passwords
from tradewind.cli.objective import objective_of
from tradewind.cli.terminal import Data, emit, note, objective_output

if TYPE_CHECKING:
    from tradewind.goals import Goal
    from tradewind.study.study import Study
    from tradewind.types import Trial


@dataclass(frozen=True)
class Overrides:
    """What the options of `run` change in a run file."""

    trials: int | None = None
    timeout: str | None = None
    max_cost: float | None = None
    workers: int | None = None

    def apply(self, settings: RunFile) -> RunFile:
        limits, workers = dict(settings.limits), dict(settings.workers)
        if self.trials is not None:
            limits["trials"] = self.trials
        if self.timeout is not None:
            limits["timeout"] = _seconds(self.timeout)
        if self.max_cost is not None:
            if not 0.0 < self.max_cost < 1e300:
                raise UsageFault(f"--max-cost must be a number > 0, but got {self.max_cost!r}")
            limits["max_cost"] = self.max_cost
        if self.workers is not None:
            workers["count"] = self.workers
        if not {"trials", "timeout", "max_cost"} & limits.keys():
            raise UsageFault(
                f"{settings.path}: a search needs a limit: write trials, timeout or max_cost in "
                "[limits], or give --trials"
            )
        return replace(settings, limits=limits, workers=workers)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        try:
            found = seconds("--timeout", text)
        except ValueError as error:
            raise UsageFault(str(error)) from None
    if not 0.0 < found < 1e300:
        raise UsageFault(f"--timeout must be more than 0 seconds, but got {text!r}")
    return found


# ---- searching ----


def search(settings: RunFile, *, quiet: bool, as_json: bool) -> None:
    """Search until the limits are reached, and show the result."""
    from tradewind.cli import answers, tables

    with objective_output(aside=as_json):
        study = _search(settings, quiet=quiet)
    status = answers.status(study)
    emit(status, as_json=as_json, draw=tables.status)
    if status["failures"] and not status["counts"]["finished"]:  # a script must not go on
        raise typer.Exit(Exit.FAILED)


def _search(settings: RunFile, *, quiet: bool) -> Study:
    objective = objective_of(settings)
    study = _study_of(settings)
    left = _left(settings, study)
    place = without_passwords(settings.storage)
    if left.over is not None:
        note(f"{study.name} in {place}: {left.over}")
        return study
    note(f"{study.name} in {place}: {left}")
    _note_doubts(settings, new=left.new)
    if study.paused is not None:
        note(f"{study.name} is paused: it waits for `tradewind resume`")
    _note_the_goal(study, settings)
    with _heard_signals() as heard:
        _optimize(study, objective, settings, left, quiet=quiet)
    if signal.SIGINT in heard:
        note(f"{study.name} was interrupted: run it again to continue")
        raise typer.Exit(Exit.INTERRUPTED)
    return study


def _note_doubts(settings: RunFile, *, new: bool) -> None:
    for doubt in settings.doubts if new else ():
        note(f"note: {doubt}")


def _note_the_goal(study: Study, settings: RunFile) -> None:
    """Say so if the study has another goal than its file, perhaps by `tradewind goal`."""
    from tradewind.cli.answers import goal_in_words
    from tradewind.study.studies import replaced_goal
    from tradewind.study.words import unit_of_costs

    was = replaced_goal(study, unit_of_costs(study.trials, study.goal.by))
    if was is not None:
        now = goal_in_words(study, study.goal)
        note(f"goal: {now}, as {settings.path.name} says (it was {was})")


@contextmanager
def _heard_signals() -> Iterator[bytearray]:
    """The numbers of the signals that arrive meanwhile, once they have. After the first Ctrl-C, a
    search ends as if it were done."""
    heard = bytearray()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for end in (ours, theirs):
            end.setblocking(False)
        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield heard
        finally:
            signal.set_wakeup_fd(before)
            with suppress(BlockingIOError):
                heard += ours.recv(4096)


def _optimize(
    study: Study, objective: Callable[[Any], Any], settings: RunFile, left: _Left, *, quiet: bool
) -> None:
    limits, workers = settings.limits, settings.workers
    study.optimize(
        objective,
        left.trials,
        timeout=limits.get("timeout"),
        max_cost=left.cost,
        n_workers=_n_workers(settings),
        gpus=workers.get("gpus"),
        slots_per_gpu=workers.get("slots_per_gpu", 1),
        trial_timeout=limits.get("trial_timeout"),
        trial_memory=limits.get("trial_memory"),
        max_retries=limits.get("max_retries", 0),
        callbacks=[_stop_at(limits["trials"])] if "trials" in limits else (),
        show_progress=False if quiet else None,
    )


def _n_workers(settings: RunFile) -> int | None:
    """A program runs below a worker process, which ends everything that it has started, however
    this process ends. A function runs in this process unless the file says otherwise."""
    count: int | None = settings.workers.get("count")
    if count is None and "gpus" not in settings.workers and "command" in settings.objective:
        return 1
    return count


def _stop_at(total: int) -> Callable[[Study, Trial], None]:
    """Others may run the same file: stop when all together have done so many trials."""

    def stop(study: Study, trial: Trial) -> None:
        if _done(study) >= total:
            study.stop()

    return stop


@dataclass(frozen=True)
class _Left:
    """What the limits leave for this run. `over` says which one is reached."""

    new: bool
    done: int
    trials: int | None
    cost: float | None
    over: str | None

    def __str__(self) -> str:
        rest = "" if self.trials is None else f", {self.trials} to go"
        trials = "1 trial" if self.done == 1 else f"{self.done} trials"
        return f"a new study{rest}" if self.new else f"{trials} done{rest}"


def _left(settings: RunFile, study: Study) -> _Left:
    """Limits on trials and cost are limits of the study, so what was done counts."""
    from tradewind.cli.answers import spent

    total, most = settings.limits.get("trials"), settings.limits.get("max_cost")
    done, used = _done(study), spent(study.trials) or 0.0
    over = None
    if total is not None and done >= total:
        over = f"{done} of {total} trials are done; --trials {done + 10} continues"
    elif most is not None and used >= most:
        over = f"{used:.4g} of max_cost={most:.4g} is spent; --max-cost continues"
    return _Left(
        not study.trials,
        done,
        None if total is None else max(total - done, 0),
        None if most is None else max(most - used, 0.0),
        over,
    )


def _done(study: Study) -> int:
    from tradewind.types import State

    return sum(t.state in (State.FINISHED, State.FAILED) for t in study.trials)


def _study_of(settings: RunFile) -> Study:
    """The study of a run file, new or continued. What the file says about goal and strategy
    counts."""
    from tradewind.errors import StudyDiffers
    from tradewind.study.studies import create_study

    table = settings.study
    _check_folder(settings)
    try:
        return create_study(
            settings.space,
            goal=settings.goal,
            strategy=_strategy(table.get("strategy")),
            direction=table.get("direction", "maximize"),
            seed=table.get("seed"),
            cost=table.get("cost"),
            metric=table.get("metric"),
            storage=settings.storage,
            name=settings.name,
            load_if_exists=True,
        )
    except StudyDiffers as error:
        raise UsageFault(
            f"{settings.path}: {error}. Give the study another name, or another storage"
        ) from error


def _check_folder(settings: RunFile) -> None:
    from tradewind.cli.exits import NotThere
    from tradewind.cli.places import check_storable, find_place

    place = find_place(settings.storage, settings.name)
    check_storable(place)
    path = place.path
    if path is not None and not path.parent.is_dir():
        raise NotThere(
            f"{settings.path}: storage is in a folder that does not exist: {path.parent}"
        )


def _strategy(name: str | None) -> Any:
    """A strategy by its name. None and "auto" are left to the study."""
    if name in (None, "auto", "random"):
        return name
    from tradewind import recipes

    return recipes.wang2020() if name == "wang2020" else recipes.mip_ego()


# ---- looking before it runs ----


def preview(settings: RunFile, *, as_json: bool) -> None:
    """Show what a run would do: the study, one configuration, and how the objective is called.
    Nothing is written."""
    from tradewind.cli.previews import draw, preview_of

    _note_doubts(settings, new=True)
    with objective_output(aside=as_json):  # its module may print
        objective = objective_of(settings)
    emit(preview_of(settings, objective), as_json=as_json, draw=draw)


def state_of_storage(settings: RunFile, goal: Goal) -> Data:
    """Whether the study exists, how many trials it has, and the unit of the costs of a goal."""
    from tradewind.cli.places import find_place, open_one
    from tradewind.errors import NoSuchStudy
    from tradewind.study.words import unit_of_costs

    place = find_place(settings.storage, settings.name)
    nothing: Data = {"storage": str(place), "exists": False, "trials": 0, "unit": ""}
    if place.path is not None and not _has_content(place.path):
        return nothing
    try:
        study = open_one(place)
    except NoSuchStudy:
        return nothing
    trials = study.trials
    unit = unit_of_costs(trials, goal.by)
    return {**nothing, "exists": True, "trials": len(trials), "unit": unit}


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
