"""What all trackers do: they are callbacks of a search, and they log a study that exists already.

A tracker reads the study in the thread of the search, and writes in the background.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tradewind import checks
from tradewind.errors import TradewindError
from tradewind.integrations.background import Background
from tradewind.output import logger as _logger
from tradewind.types import State, Trial

if TYPE_CHECKING:
    from tradewind.study.study import Study

_LARGEST = sys.float_info.max
_ENDED = (State.FINISHED, State.FAILED, State.ABANDONED)


@dataclass(frozen=True)
class Facts:
    """What a tracker shows of a study. `key` tells it from all others, even after a change of its
    name; `chosen` is the number of its best trial, and `sentence` explains that choice."""

    key: str
    name: str
    direction: str
    seed: int
    goal: str
    strategy: str
    cost_name: str
    parameters: dict[str, str]
    created: float
    trials: tuple[Trial, ...] = field(default=(), repr=False)  # those that have ended
    chosen: int | None = None
    sentence: str = ""

    @classmethod
    def of(cls, study: Study, *, complete: bool = False) -> Facts:
        """The facts of a study; if they are to be `complete`, with its best trial."""
        trials = [trial for trial in study.trials if trial.state in _ENDED]
        chosen, sentence = None, ""
        if complete:
            try:
                explanation = study.explain()
                chosen, sentence = explanation.choice.number, str(explanation)
            except TradewindError as error:  # nothing has finished, or nothing qualifies
                sentence = str(error).partition("\n")[0]
        return cls(
            key_of(study),
            study.name,
            study.direction,
            study.seed,
            study.goal.describe(),
            repr(study.strategy),
            study.cost_name,
            {name: repr(parameter) for name, parameter in study.space.items()},
            study._session.state.created,
            tuple(trials),
            chosen,
            sentence,
        )


def key_of(study: Study) -> str:
    """What tells a study from all others: the seed, and the moment at which it was created."""
    created = study._session.state.created
    return hashlib.sha256(f"{study.seed} {created!r}".encode()).hexdigest()[:16]


class Tracker(ABC):
    """A callback for `optimize`, which shows each trial that ends to a tracking tool."""

    def __init__(self, *, name: str, wait: float) -> None:
        self._background = Background(name)
        self._known: dict[str, Facts] = {}  # by the key of the study
        self._wait = checks.not_negative("wait", wait)

    def __call__(self, study: Study, trial: Trial) -> None:
        """Log a trial that has ended, in the background."""
        try:
            key = key_of(study)
            if key not in self._known:
                self._known[key] = Facts.of(study)
            facts = self._known[key]
            self._background.do(lambda: self._log_trial(facts, trial))
        except Exception as error:  # tracking must not end a search
            self._background.failed(error)

    def search_ended(self, study: Study) -> None:
        """Log what is still missing, and the choice. `optimize` calls this when it ends, and waits
        for `wait` seconds at most."""
        try:
            facts = Facts.of(study, complete=True)
            self._background.do(lambda: self._log_all(facts))
        except Exception as error:
            self._background.failed(error)
        if not (self._background.is_failing or self._background.wait(self._wait)):
            _logger.warning(
                "%s has not taken all results yet: if some are missing when this process has "
                "ended, call log(study) of the tracker",
                self._background.name,
            )

    def log(self, study: Study) -> None:
        """Log a whole study now: all trials that are missing, and the choice. Nothing is logged
        twice. Raises whatever the tracking tool raises."""
        facts = Facts.of(study, complete=True)
        self._background.wait()
        self._log_all(facts)

    @abstractmethod
    def _log_trial(self, facts: Facts, trial: Trial) -> None:
        """Log one trial that has ended."""

    @abstractmethod
    def _log_all(self, facts: Facts) -> None:
        """Log all trials that are missing, and the choice."""


def numbers_of(trial: Trial) -> dict[str, float]:
    """All numbers that a trial has reported or that were measured, by name."""
    found: dict[str, float | None] = {value_of(trial): trial.value, "cost": trial.cost}
    found |= {f"costs/{name}": cost for name, cost in trial.costs.items()}
    if trial.usage is not None:
        usage = trial.usage
        found |= {"usage/wall": usage.wall, "usage/cpu": usage.cpu, "usage/memory": usage.memory}
    for name, attribute in trial.attributes.items():
        if isinstance(attribute, (int, float)) and not isinstance(attribute, bool):
            found[f"attributes/{name}"] = attribute
    return {name: float(x) for name, x in found.items() if x is not None and abs(x) <= _LARGEST}


def value_of(trial: Trial) -> str:
    """The name of a trial's value."""
    return trial.metric or "value"


def encodable(text: str) -> str:
    """`text` without what cannot be encoded as UTF-8: the study may have such text, tools refuse
    it."""
    return text.encode("utf-8", "replace").decode()
