"""What a round has done and found, and what must hold for a study after any fault."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tradewind as tw
from tests.chaos.work import LEASE, Work, spooling, value, witnessed
from tradewind.engine.contention import CLAIM
from tradewind.log.events import Abandoned, Event, Failed, Finished, Proposed
from tradewind.log.state import OPEN
from tradewind.study.replay import Verdict
from tradewind.types import State, Trial

_PATIENCE = 1.1 * CLAIM  # seconds until what dead drivers have left counts as hanging


@dataclass
class Findings:
    """The faults of a round by name, the trials that ran meanwhile, and what was wrong with them.

    - `lost`: a witness has seen the trial finish, but the log lacks it or has another value; or
      its result still waits in a file.
    - `doubled`: a trial with two proposals or two results, or two with the same configuration.
    - `changed`: a value that does not belong to its configuration, without notice.
    - `differing`: a proposal that is another one when it is computed again from the log.
    - `hanging`: a trial or a claim whose lease never runs out, so that nobody can take it over.
    - `left`: a process that has outlived its driver.
    - `notes`: anything else that is wrong, in words."""

    faults: Counter[str] = field(default_factory=Counter)
    trials: int = 0
    finished: int = 0
    retried: int = 0
    abandoned: int = 0
    witnessed: int = 0
    replayed: int = 0
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    differing: int = 0
    hanging: int = 0
    left: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """How many things are wrong."""
        counts = (self.lost, self.doubled, self.changed, self.differing, self.hanging, self.left)
        return sum(counts) + len(self.notes)

    @classmethod
    def of(cls, said: dict[str, Any]) -> Findings:
        """The findings that were written down as JSON."""
        return cls(**{**said, "faults": Counter(said["faults"])})

    def __add__(self, other: Findings) -> Findings:
        return Findings(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


def examine(study: tw.Study, folder: Path, *, renumbered: bool = False) -> Findings:
    """Settle a study, and compare it with its witnesses, its rules and its replay. With
    `renumbered`, a trial may have got another number: its store went back in time."""
    with patch.dict(os.environ, spooling(folder)):
        study.restore()
        hanging = settle(study)
    unrecorded = list(folder.glob("*spool/*"))
    trials = study.trials
    ended = [trial for trial in trials if trial.finished]
    seen = list(witnessed(folder))
    found = {(0 if renumbered else trial.number, trial.value) for trial in ended}
    replay = tw.replay(study)
    findings = Findings(
        trials=len(trials),
        finished=len(ended),
        retried=sum(trial.retries > 0 for trial in trials),
        abandoned=sum(trial.state is State.ABANDONED for trial in trials),
        witnessed=len(seen),
        replayed=len(replay.proposals),
        lost=sum((0 if renumbered else number, told) not in found for number, told in seen)
        + len(unrecorded),
        doubled=_doubled(trials, study._session.log.read(0), renumbered),
        changed=sum(trial.value != value(trial.params) for trial in ended),
        differing=len(replay.proposals) - replay.count(Verdict.IDENTICAL),
        hanging=hanging,
    )
    if findings.wrong:
        study.export(folder / "study.jsonl")
    return findings


def _doubled(trials: Iterable[Trial], events: Iterable[Event], renumbered: bool) -> int:
    """How often something that happens once has happened again."""
    # The random stream of a number proposes the same again if its result has got another number.
    same = (lambda trial: trial.ended) if renumbered else (lambda trial: None)
    finishes = Counter(e.number for e in events if isinstance(e, Finished))
    ends = finishes + Counter(e.number for e in events if isinstance(e, Failed | Abandoned))
    ends -= Counter(n for n in ends if n in finishes)  # an abandoned trial may still finish, once
    once: list[Counter[Any]] = [
        Counter(e.number for e in events if isinstance(e, Proposed)),
        finishes,
        ends,
        Counter((*trial.params.items(), same(trial)) for trial in trials),
    ]
    return sum(each.total() - len(each) for each in once)


def settle(study: tw.Study) -> int:
    """Run what dead drivers have left, and return how many trials and claims still hang after a
    while."""
    until = time.monotonic() + _PATIENCE
    while True:
        state = study._session.read_state()
        unproposed = state.claims - len(state.trials)
        hanging = unproposed + sum(trial.state in OPEN for trial in state.trials.values())
        if not hanging or time.monotonic() > until:
            return hanging
        study.optimize(Work(), n_trials=1, lease=LEASE, show_progress=False)
        time.sleep(0.3)
