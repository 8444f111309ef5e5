"""A study -> plain data: what `--json` prints, and what the tables show."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tradewind.errors import NothingFinished, NothingQualifies
from tradewind.goals import Goal
from tradewind.goals.text import goal_text
from tradewind.runners.runner import cause
from tradewind.study import words
from tradewind.study.following import Follower
from tradewind.study.replay import Replay, Verdict
from tradewind.types import State, Trial

if TYPE_CHECKING:
    from tradewind.log.repair import Repair
    from tradewind.study.predictions import Predicted
    from tradewind.study.studies import StudySummary
    from tradewind.study.study import Study

Data = dict[str, Any]

_FAILURES = 20  # kinds of failures that are listed


def plain(value: Any) -> Any:
    """Data for JSON: a number that is not finite is null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def trial_data(trial: Trial, by: str | None = None) -> Data:
    """One trial, with the cost of this name, by default that of the study."""
    return {
        "trial": trial.number,
        "state": trial.state.value,
        "value": trial.value,
        "cost": trial.cost if by is None else trial.cost_of(by),
        "train_size": trial.train_size,
        "size_parameter": trial.size_name,
        "params": dict(trial.params),
        "seed": trial.seed,
        "origin": trial.origin.value,
        "started": trial.started,
        "ended": trial.ended,
        "folds": list(trial.folds),
        "raced": trial.raced,
        "costs": dict(trial.costs),
        "attributes": dict(trial.attributes),
        "error": trial.error,
        "retries": trial.retries,
    }


def status(study: Study) -> Data:
    """How a study stands."""
    follower = Follower(study)
    follower.look()
    lost = follower.lost()
    follower.look()  # one of them may have ended meanwhile
    state, trials = follower.state, study.trials
    paused = study.paused
    best, sentence = best_or_none(study)
    return {
        "study": study.name,
        "created": state.created,
        "direction": study.direction,
        "seed": study.seed,
        "goal": goal_text(study.goal),
        "goal_in_words": goal_in_words(study, study.goal),
        "cost": study.cost_name,
        "metric": study.metric,
        "unit": words.unit_of_costs(trials, study.goal.by),
        "trials": len(trials),
        "counts": follower.counts(),
        "queued": len(state.queue),
        "spent": spent(trials),
        "paused": None if paused is None else {"reason": paused.reason, "at": paused.at},
        "stopped": state.stopped,
        "best": best,
        "sentence": sentence,
        "running": running(follower, lost),
        "failures": failures(trials),
    }


def running(follower: Follower, lost: Collection[int]) -> list[Data]:
    """The running trials; those in `lost` have a driver that gives no sign of life."""
    return [{**vars(trial), "lost": trial.trial in lost} for trial in follower.running()]


def best_or_none(study: Study) -> tuple[Data | None, str | None]:
    """The best trial and the sentence about it. If none meets the goal, the sentence says which
    one comes closest; None for both if none has finished."""
    try:
        explained = study.explain()
    except NothingQualifies as error:
        return None, words.as_sentence(str(error))
    except NothingFinished:
        return None, None
    return trial_data(explained.choice), str(explained)


def spent(trials: Iterable[Trial]) -> float | None:
    """What all trials have cost together; None if no cost is known, or if costs cannot be added."""
    costs = [
        trial.cost * (trial.trainings if trial.finished else 1)
        for trial in trials
        if trial.cost is not None and trial.cost_name != "memory"
    ]
    return math.fsum(costs) if costs else None


def goal_in_words(study: Study, goal: Goal) -> str:
    """The goal in words, with the metric of the study and the units of its costs."""
    unit = words.unit_of_costs(study.trials, goal.by)
    return words.goal_in_words(goal, unit, study.metric)


def failures(trials: Iterable[Trial]) -> list[Data]:
    """The failed trials by cause, the most frequent first. `error` is the whole error of the first
    of them."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.state is State.FAILED:
            groups.setdefault(cause(trial.error or ""), []).append(trial)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))[:_FAILURES]
    return [
        {
            "message": why,
            "count": len(group),
            "trials": [trial.number for trial in group],
            "error": group[0].error,
        }
        for why, group in ordered
    ]


def best(study: Study, goal: Goal | None) -> Data:
    """The best trial under a goal."""
    explained = study.explain(goal)
    used = study.goal if goal is None else goal
    return {
        "study": study.name,
        "goal": goal_text(used),
        "unit": words.unit_of_costs([explained.choice], used.by),
        "metric": study.metric,
        "best": trial_data(explained.choice, used.by),
        "sentence": str(explained),
    }


def explain(study: Study, goal: Goal | None) -> Data:
    """The best trial under a goal, compared with the one that has the best quality."""
    explained = study.explain(goal)
    it = explained.comparison
    return {
        "study": study.name,
        "goal": goal_text(study.goal if goal is None else goal),
        "sentence": str(explained),
        "choice": trial_data(explained.choice),
        "best_quality": trial_data(explained.best_quality),
        "has_best_quality": explained.has_best_quality,
        "gain": it.gain,
        "costs": {"choice": it.costs[1], "best_quality": it.costs[0]},
        "configurations": explained.n_configurations,
    }


def frontier(study: Study, tolerance: float | str | None, by: str | None) -> Data:
    """The efficient trials, cheapest first."""
    trials = study.frontier(tolerance=tolerance, by=by)
    name = by if by is not None else study.goal.by
    entries = [
        trial_data(trial, name) | {"believed": trials.believed.get(trial.number)}
        for trial in trials
    ]
    return {
        "study": study.name,
        "cost": name or study.cost_name,
        "metric": study.metric,
        "unit": words.unit_of_costs(trials, name),
        "frontier": entries,
    }


def prediction(study: Study, predicted: Predicted, goal: Goal | None) -> Data:
    """What to expect of one run of a configuration."""
    used = study.goal if goal is None else goal
    return {
        "study": study.name,
        "goal": goal_text(used),
        "unit": words.unit_of_costs(study.trials, used.by),
        "goal_in_words": goal_in_words(study, used),
        "metric": study.metric,
        **vars(predicted),
        "size_parameter": study.space.size_name,
        "params": dict(predicted.params),
    }


def studies(place: str, summaries: Iterable[StudySummary]) -> Data:
    """All studies of a store."""
    return {
        "storage": place,
        "studies": [
            {"study": s.name, "trials": s.trials, "counts": dict(s.states), "created": s.created}
            for s in summaries
        ],
    }


def replayed(study: Study, replay: Replay) -> Data:
    """How the proposals of a study compare with those recorded."""
    counts = {verdict.name.lower(): replay.count(verdict) for verdict in Verdict}
    verdicts = [verdict for verdict in Verdict if replay.count(verdict)]
    return {
        "study": study.name,
        "verdict": (verdicts[-1] if verdicts else Verdict.IDENTICAL).value,
        "proposals": len(replay.proposals),
        "counts": counts,
        "different": [p.number for p in replay.proposals if p.verdict is Verdict.DIFFERENT],
        "sentence": str(replay),
    }


def repaired(repair: Repair) -> Data:
    """What `repair` has kept and lost."""
    return {
        "place": repair.place,
        "original": repair.original,
        "damaged": repair.original is not None,
        "studies": [dict(vars(saved)) for saved in repair.studies],
        "sentence": str(repair),
    }
