"""Who ran what when, and how much of the time workers were idle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradewind.charts.chart import Axis, Chart, Panel, Role, Spans
from tradewind.study.figures.draw import MOST, counted, figures, notes, nothing, thinning_note
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.times import WorkingTime
from tradewind.study.running import worker_name
from tradewind.study.words import percent, spoken
from tradewind.types import State, Trial

NAME, TITLE = "timeline", "Who ran what when"
_LANES = 40  # at most: more cannot be told apart

_ROLES: dict[State, tuple[str, Role]] = {
    State.FINISHED: ("finished", "main"),
    State.FAILED: ("failed", "bad"),
    State.ABANDONED: ("abandoned", "muted"),
    State.RUNNING: ("running", "second"),
}


@dataclass(frozen=True)
class Lane:
    """One worker: its name, and its trials with their starts and ends."""

    label: str
    runs: list[tuple[float, float, Trial]]


def timeline(facts: Facts) -> Chart:
    """The runs of all trials, a lane for each worker. Gaps are idle time."""
    lanes = lanes_of(facts)
    times = WorkingTime.of(facts)
    if not lanes or times is None:
        why = "No trial has started yet." if not facts.trials else _WITHOUT
        return nothing(NAME, TITLE, why)
    shown = lanes[:_LANES]
    total = sum(len(lane.runs) for lane in lanes)
    runs = [(i, *run) for i, lane in enumerate(shown) for run in lane.runs]
    if len(runs) > MOST:  # the latest ones can still be told apart
        runs = sorted(sorted(runs, key=lambda run: run[1])[-MOST:], key=lambda run: run[0])
    layers = tuple(
        _spans(facts, times, [run for run in runs if run[3].state is state], *_ROLES[state])
        for state in _ROLES
        if any(run[3].state is state for run in runs)
    )
    lane_axis = Axis("", "category", labels=tuple(lane.label for lane in shown))
    more = len(lanes) - len(shown)
    note = notes(
        times.note,
        f"{counted(more, 'more worker')} are left out." if more > 0 else "",
        thinning_note(len(runs), total).replace("trials", "runs, the latest,"),
    )
    panel = Panel(times.axis, lane_axis, layers)
    return Chart(NAME, TITLE, _summary(lanes, times), (panel,), note)


_WITHOUT = "No trial has recorded when it started and ended: they were run or added elsewhere."


def lanes_of(facts: Facts) -> list[Lane]:
    """The workers, in the order of their first trials. What ran at the same time on the same
    machine and the same device ran on different workers."""
    groups: dict[tuple[str, str], list[tuple[float, float, Trial]]] = {}
    for trial in facts.trials:
        end = facts.made if trial.state is State.RUNNING else trial.ended
        if trial.started is None or end is None:
            continue
        device = "" if trial.usage is None else trial.usage.device
        group = groups.setdefault((_host(trial), device if device != "cpu" else ""), [])
        group.append((trial.started, max(end, trial.started), trial))
    several = len({name for name, _ in groups}) > 1
    lanes = []
    by_first_start = sorted(groups.items(), key=lambda it: min(run[0] for run in it[1]))
    for (name, device), runs in by_first_start:
        where = " ".join([*([name] if several else []), *([device] if device else [])])
        slots = _slots(runs)
        lanes += [Lane(_label(where, i + 1, len(slots) > 1), slot) for i, slot in enumerate(slots)]
    return lanes


def _host(trial: Trial) -> str:
    """The machine that ran a trial. A search that is continued has another process there."""
    return worker_name(trial).rpartition(":")[0]


def _label(where: str, number: int, several: bool) -> str:
    if not where:
        return f"worker {number}"
    return f"{where} · {number}" if several else where


def _slots(runs: list[tuple[float, float, Trial]]) -> list[list[tuple[float, float, Trial]]]:
    """Runs that do not overlap, in as few lists as possible."""
    slots: list[list[tuple[float, float, Trial]]] = []
    for run in sorted(runs, key=lambda it: (it[0], it[2].number)):
        # the clocks of a driver and its workers may differ by some milliseconds
        slack = 1e-3 + 1e-3 * (run[1] - run[0])
        free = [slot for slot in slots if slot[-1][1] <= run[0] + slack]
        if free:
            max(free, key=lambda slot: slot[-1][1]).append(run)
        else:
            slots.append([run])
    return slots


def _spans(
    facts: Facts,
    times: WorkingTime,
    runs: list[tuple[int, float, float, Trial]],
    name: str,
    role: Role,
) -> Spans:
    start, end = (times.at(np.array([run[i] for run in runs])) for i in (1, 2))
    return Spans(
        [run[0] for run in runs],
        figures(start),
        figures(end),
        name,
        role,
        [run[3].number for run in runs],
        [_text(facts, *run[1:]) for run in runs],
    )


def _text(facts: Facts, start: float, end: float, trial: Trial) -> str:
    said = [f"trial {trial.number}", f"{_ROLES[trial.state][0]} after {spoken(end - start)}"]
    if trial.state is State.RUNNING:
        said[1] = f"running for {spoken(end - start)}"
    if trial.value is not None:
        said.append(facts.say_value(trial.value))
    return " · ".join(said)


def _summary(lanes: list[Lane], times: WorkingTime) -> str:
    busy = sum(end - start for lane in lanes for start, end, _ in lane.runs)
    runs = sum(len(lane.runs) for lane in lanes)
    said = f"{counted(len(lanes), 'worker')} ran {counted(runs, 'trial')} in {spoken(times.total)}"
    if times.total <= 0.0:
        return f"{said}."
    share = min(busy / (times.total * len(lanes)), 1.0)
    were = "was" if len(lanes) == 1 else "were"
    return f"{said} and {were} busy {percent(round(share, 3))} of the time."
