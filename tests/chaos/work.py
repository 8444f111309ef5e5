"""What the drivers of a campaign do, and what must hold afterwards."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tradewind as tw
from tradewind.log.events import Abandoned, Failed, Finished, Proposed
from tradewind.types import State

SPACE = tw.Space(
    {
        "x": tw.Float(0.0, 1.0),
        "y": tw.Float(1e-3, 1e3, log=True),
        "k": tw.Int(1, 50),
        "kind": tw.Categorical(["a", "b", "c"]),
        "z": tw.Float(0.0, 1.0, when={"kind": "c"}),
    }
)
LEASE = 1.5  # seconds


def value(params: Any) -> float:
    """The value of these params, so that every result can be traced to its trial."""
    return -((params["x"] - 0.3) ** 2) + 0.01 * params["k"] + 0.1 * params.get("z", 0.0)


def objective(trial: Any) -> dict[str, float]:
    time.sleep(0.01 + 1e-11 * trial.seed)  # up to 0.03 s
    return {"value": value(trial.params), "cost": 1.0 + trial.params["k"]}


class Journal:
    """A file beside the log, to which a driver writes every finished trial at once."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, study: tw.Study, trial: tw.Trial) -> None:
        if trial.finished:
            os.write(self._file, f"{json.dumps([trial.number, trial.value])}\n".encode())

    @staticmethod
    def entries(folder: Path) -> list[tuple[int, float]]:
        """The complete lines of all journals."""
        lines = [
            line
            for path in folder.glob("*.journal")
            for line in path.read_text().splitlines(keepends=True)
        ]
        return [tuple(json.loads(line)) for line in lines if line.endswith("\n")]


@dataclass(frozen=True)
class Findings:
    """What is wrong with a study, if anything."""

    trials: int
    finished: int
    abandoned: int
    retried: int
    witnessed: int
    lost: int
    duplicated: int
    wrong: int
    replay: str
    faithful: bool

    @property
    def good(self) -> bool:
        return not (self.lost or self.duplicated or self.wrong) and self.faithful


def examine(study: tw.Study, witnessed: Iterable[tuple[int, float]] = ()) -> Findings:
    """Compare a study with its journals, its rules and its replay."""
    trials = {t.number: t for t in study.trials}
    events = study._session.log.read(0)
    seen = list(witnessed)
    lost = sum(
        number not in trials or not trials[number].finished or trials[number].value != told
        for number, told in seen
    )
    proposals = Counter(e.number for e in events if isinstance(e, Proposed))
    finishes = Counter(e.number for e in events if isinstance(e, Finished))
    ends = finishes + Counter(e.number for e in events if isinstance(e, Failed | Abandoned))
    points = Counter(tuple(t.params.items()) for t in trials.values())
    twice = [
        *(n for n, times in proposals.items() if times > 1),
        *(n for n, times in finishes.items() if times > 1),
        *(n for n, times in ends.items() if times > 1 + (trials[n].finished and n in finishes)),
        *(point for point, times in points.items() if times > 1),
    ]
    wrong = [
        *(t for t in trials.values() if t.finished and t.value != value(t.params)),
        *(set(range(len(trials))) ^ trials.keys()),  # numbers count from 0 without a gap
        *(t for t in trials.values() if t.state in (State.RUNNING, State.WAITING)),
    ]
    replay = tw.replay(study)
    return Findings(
        trials=len(trials),
        finished=sum(t.finished for t in trials.values()),
        abandoned=sum(t.state is State.ABANDONED for t in trials.values()),
        retried=sum(t.retries > 0 for t in trials.values()),
        witnessed=len(seen),
        lost=lost,
        duplicated=len(twice),
        wrong=len(wrong),
        replay=str(replay),
        faithful=replay.identical,
    )


def settle(study: tw.Study) -> None:
    """Run the trials that dead drivers have left, until none waits or runs."""
    while any(t.state in (State.RUNNING, State.WAITING) for t in study.trials):
        time.sleep(LEASE)
        study.optimize(objective, n_trials=1, lease=LEASE, show_progress=False)
