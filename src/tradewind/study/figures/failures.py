"""Why trials failed, with similar messages as one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tradewind.charts.chart import Axis, Bars, Chart, Panel
from tradewind.runners.runner import cause
from tradewind.study.figures.draw import counted, nothing
from tradewind.study.figures.facts import Facts
from tradewind.types import State, Trial

NAME, TITLE = "failures", "Why trials failed"
_MOST = 20  # groups in the chart
_DETAIL = 8000  # characters of a traceback, its end

_VARIES = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+(?:[.,:]\d+)*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Failure:
    """Trials that failed with the same message, apart from its numbers and addresses.

    `message` is that of the latest of them, and `detail` its traceback."""

    message: str
    trials: tuple[int, ...]
    detail: str


def failures_of(facts: Facts) -> list[Failure]:
    """The failures, the most frequent first."""
    groups: dict[str, list[Trial]] = {}
    for trial in facts.trials:
        if trial.state is State.FAILED:
            groups.setdefault(masked(message_of(trial.error)), []).append(trial)
    found = [
        Failure(
            message_of(group[-1].error),
            tuple(t.number for t in group),
            (group[-1].error or "")[-_DETAIL:],
        )
        for group in groups.values()
    ]
    return sorted(found, key=lambda it: -len(it.trials))


def message_of(error: str | None) -> str:
    """The line of an error that names its cause, as log lines and progress show it."""
    return cause(error or "") or "no message"


def masked(message: str) -> str:
    """A message without what differs from one failure to the next."""
    return _VARIES.sub("#", message)


def failures(facts: Facts) -> Chart:
    """How many trials failed with which message."""
    found = failures_of(facts)
    if not found:
        return nothing(NAME, TITLE, "No trial has failed.")
    shown = found[:_MOST]
    labels = Axis("", "category", labels=tuple(it.message for it in shown))
    bars = Bars([float(len(it.trials)) for it in shown], "failed trials", "bad")
    panel = Panel(Axis("failed trials", format="count"), labels, (bars,))
    n = sum(len(it.trials) for it in found)
    reason = "for the same reason" if len(found) == 1 else f"for {len(found)} reasons, most often"
    note = "Messages that differ only in numbers count as one."
    if len(found) > len(shown):
        note += f" {counted(len(found) - len(shown), 'rarer message')} are left out."
    return Chart(
        NAME, TITLE, f"{counted(n, 'trial')} failed {reason}: {found[0].message}", (panel,), note
    )
