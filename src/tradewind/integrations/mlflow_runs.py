"""The runs of one study in MLflow.

Several drivers may log the same study, and any of them may be killed at any moment. MLflow has no
transactions, so two drivers may make the same run. Whoever lists the runs keeps the one whose id is
the smallest and deletes the others. All drivers agree on that, and the last one to list sees all
runs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from tradewind.integrations.tracker import Facts, encodable, numbers_of, value_of
from tradewind.plain import write_json
from tradewind.types import State, Trial

T = TypeVar("T")

_STUDY, _KIND, _NUMBER = "tradewind.study", "tradewind.kind", "tradewind.number"
_CHOSEN = "tradewind.chosen"
_PARENT, _TITLE, _NOTE = "mlflow.parentRunId", "mlflow.runName", "mlflow.note.content"
_STATUS = {State.FINISHED: "FINISHED", State.FAILED: "FAILED", State.ABANDONED: "KILLED"}

_LONGEST_NAME = 220  # bytes: MLflow takes 250 characters, and its file store 255 bytes
_LONGEST_PARAM, _LONGEST_TAG = 6000, 5000  # which older servers take, too
_MOST_METRICS, _MOST_PARAMS = 900, 90  # of one request
_LATEST = 2**62  # milliseconds; MLflow keeps 64 bits


class StudyRuns:
    """The run of a study and those of its trials."""

    def __init__(self, client: Any, experiment: str, facts: Facts) -> None:
        self._client, self._experiment, self._facts = client, experiment, facts
        self._parent: str | None = None
        self._metric, self._param, self._tag = _entities()

    def log_trial(self, trial: Trial) -> None:
        """Log a trial that this driver has run."""
        if self._parent is None:
            self._parent, known = self._tidy()
            self._client.update_run(self._parent, status="RUNNING")
            if trial.number in known:
                self._complete(known[trial.number], trial)
                return
        self._create(trial)

    def log_all(self, facts: Facts) -> None:
        """Log the trials that are missing, complete what a killed driver has begun, and mark the
        chosen trial."""
        self._facts = facts
        self._parent, known = self._tidy()
        for trial in facts.trials:
            if trial.number not in known:
                self._create(trial)
            else:
                self._complete(known[trial.number], trial)
        self._parent, known = self._tidy()  # another driver may have done the same
        for number, run in known.items():
            chosen = number == facts.chosen
            if chosen != (run.data.tags.get(_CHOSEN) == "true"):
                self._client.set_tag(run.info.run_id, _CHOSEN, "true" if chosen else "false")
        self._describe(self._parent)
        self._client.set_terminated(self._parent, "FINISHED")

    # ---- the runs there are ----

    def _tidy(self) -> tuple[str, dict[int, Any]]:
        """The run of the study, and those of its trials by number. Runs that exist twice are
        deleted."""
        parents, trials = self._list()
        if not parents:
            self._make_parent()
            parents, trials = self._list()
        parent = str(parents[0].info.run_id)
        for run in parents[1:]:
            self._delete(run)
        for runs in trials.values():
            for run in runs[1:]:
                self._delete(run)
            if runs[0].data.tags.get(_PARENT) != parent:
                self._client.set_tag(runs[0].info.run_id, _PARENT, parent)
        return parent, {number: runs[0] for number, runs in trials.items()}

    def _list(self) -> tuple[list[Any], dict[int, list[Any]]]:
        """All runs of this study, those of trials by number, the one to keep first."""
        parents: list[Any] = []
        trials: dict[int, list[Any]] = {}
        for run in sorted(self._search(), key=lambda run: str(run.info.run_id)):
            tags = run.data.tags
            if tags.get(_KIND) == "study":
                parents.append(run)
            elif _NUMBER in tags:  # otherwise another driver is just making it
                trials.setdefault(int(tags[_NUMBER]), []).append(run)
        return parents, trials

    def _search(self) -> Iterator[Any]:
        which, page = f"tags.`{_STUDY}` = '{self._facts.key}'", None
        while True:
            found = self._client.search_runs(
                [self._experiment], filter_string=which, max_results=1000, page_token=page
            )
            yield from found
            page = found.token
            if not page:
                return

    def _delete(self, run: Any) -> None:
        try:
            self._client.delete_run(run.info.run_id)
        except Exception:  # another driver may have deleted it
            if self._client.get_run(run.info.run_id).info.lifecycle_stage != "deleted":
                raise

    # ---- the run of the study ----

    def _make_parent(self) -> None:
        facts = self._facts
        run = self._client.create_run(
            self._experiment,
            start_time=_milliseconds(facts.created),
            tags={_STUDY: facts.key, _KIND: "study"},
            run_name=_text(facts.name, _LONGEST_NAME),
        )
        spaces = {f"space.{name}": text for name, text in facts.parameters.items()}
        self._log(run.info.run_id, {}, spaces, 0)
        self._describe(run.info.run_id)

    def _describe(self, run: str) -> None:
        facts = self._facts
        tags = {
            "tradewind.goal": facts.goal,
            "tradewind.direction": facts.direction,
            "tradewind.seed": str(facts.seed),
            "tradewind.strategy": facts.strategy,
            "tradewind.cost": facts.cost_name,
            _NOTE: facts.sentence,
        }
        numbers = {"trials": float(len(facts.trials))}
        best = next((t for t in facts.trials if t.number == facts.chosen), None)
        if best is not None:
            tags["tradewind.chosen_trial"] = str(best.number)
            found = numbers_of(best)
            known = [name for name in (value_of(best), "cost") if name in found]
            numbers |= {f"best_{_name(name)}": found[name] for name in known}
        named = [self._tag(name, _text(text, _LONGEST_TAG)) for name, text in tags.items()]
        self._client.log_batch(run, tags=named)
        self._log(run, numbers, {}, _milliseconds(time.time()), step=len(facts.trials))

    # ---- the run of a trial ----

    def _create(self, trial: Trial) -> None:
        run = self._client.create_run(
            self._experiment,
            start_time=_milliseconds(trial.started or trial.ended),
            tags={_STUDY: self._facts.key, _KIND: "trial", _PARENT: self._parent} | _tags_of(trial),
            run_name=f"trial {trial.number}",
        )
        self._complete(run, trial)

    def _complete(self, run: Any, trial: Trial) -> None:
        """Log what a run lacks. One that has ended is complete."""
        status = _STATUS[trial.state]
        if run.info.status == status:
            return
        number, at = run.info.run_id, _milliseconds(trial.ended)
        numbers = _distinct(numbers_of(trial))
        lacking = {name: x for name, x in numbers.items() if name not in run.data.metrics}
        folds = trial.folds if "fold" not in run.data.metrics else ()
        self._log(number, lacking, dict(trial.params), at, folds=folds)
        self._client.set_terminated(number, status, end_time=at)

    def _log(
        self,
        run: str,
        numbers: Mapping[str, float],
        params: Mapping[str, Any],
        at: int,
        *,
        folds: Sequence[float] = (),
        step: int = 0,
    ) -> None:
        metrics = [self._metric(name, x, at, step) for name, x in numbers.items()]
        metrics += [self._metric("fold", fold, at, i) for i, fold in enumerate(folds)]
        named = _distinct(params).items()
        entries = iter([self._param(name, _text(value, _LONGEST_PARAM)) for name, value in named])
        rest = iter(metrics)
        while True:
            some = list(islice(rest, _MOST_METRICS)), list(islice(entries, _MOST_PARAMS))
            if not any(some):
                return
            self._client.log_batch(run, metrics=some[0], params=some[1])


def _entities() -> tuple[Any, Any, Any]:
    """The classes of a metric, of a parameter and of a tag."""
    from mlflow.entities import Metric, Param, RunTag

    return Metric, Param, RunTag


def _tags_of(trial: Trial) -> dict[str, str]:
    tags = {
        _NUMBER: str(trial.number),
        "tradewind.state": trial.state.value,
        "tradewind.seed": str(trial.seed),
        "tradewind.train_size": f"{trial.train_size:.6g}",
        "tradewind.origin": trial.origin.value,
    }
    numbers = numbers_of(trial)
    others = {f"attributes/{name}": value for name, value in trial.attributes.items()}
    for name, value in _distinct({k: v for k, v in others.items() if k not in numbers}).items():
        tags[name] = _text(value if isinstance(value, str) else write_json(value), _LONGEST_TAG)
    if trial.error:
        tags[_NOTE] = _text(trial.error, _LONGEST_TAG)
    return tags


def _name(name: str) -> str:
    """A name that MLflow takes: it limits the length, and allows only some characters."""
    kind, slash, own = name.partition("/") if name.startswith(_KINDS) else ("", "", name)
    plain = re.sub(r"[^\w. -]", "_", own).encode()[:_LONGEST_NAME].decode(errors="ignore")
    return kind + slash + (re.sub(r"^\.+", lambda dots: "_" * len(dots[0]), plain) or "_")


_KINDS = ("costs/", "usage/", "attributes/")


def _distinct(values: Mapping[str, T]) -> dict[str, T]:
    """The values by names that MLflow takes. Of names that become the same, later ones get a
    number."""
    named: dict[str, T] = {}
    for name, value in values.items():
        plain, number = _name(name), 1
        while (free := plain if number == 1 else f"{plain}_{number}") in named:
            number += 1
        named[free] = value
    return named


def _text(value: object, longest: int) -> str:
    text = encodable(str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _milliseconds(seconds: float | None) -> int:
    at = time.time() if seconds is None else seconds
    return int(min(max(at, 0.0) * 1000.0, _LATEST))
