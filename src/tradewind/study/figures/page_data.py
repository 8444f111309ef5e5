"""Everything that the page of a study shows, as plain data for JSON.

The page draws the report and the dashboard. Its scripts read exactly this; `FORMAT` increases with
each change that they would misread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tradewind.charts.chart import Chart
from tradewind.goals import Goal, Tradeoff
from tradewind.space.conditions import written
from tradewind.space.parameters import Float, Int, Parameter, TrainSize
from tradewind.study.figures.choices import Choices, Step, choices
from tradewind.study.figures.dependence import dependence
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.failures import failures_of
from tradewind.study.figures.frontier import frontier
from tradewind.study.figures.importance import importance
from tradewind.study.figures.learning_curves import learning_curves
from tradewind.study.figures.parallel import parallel
from tradewind.study.figures.predicted_cost import predicted_cost
from tradewind.study.figures.progress import progress
from tradewind.study.figures.reproduce import reproduce, versions
from tradewind.study.figures.rows import table
from tradewind.study.figures.timeline import timeline
from tradewind.study.figures.values import label
from tradewind.study.running import expected_seconds, running_trials
from tradewind.study.words import exact
from tradewind.types import State

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults

FORMAT = 1

FIGURES: dict[str, Callable[[Facts], Chart]] = {
    "frontier": frontier,
    "progress_trials": partial(progress, over="trials"),
    "progress_time": partial(progress, over="time"),
    "progress_cost": partial(progress, over="cost"),
    "timeline": timeline,
    "importance": importance,
    "parallel": parallel,
    "predicted_cost": predicted_cost,
    "learning_curves": learning_curves,
}
_FITTED = ("importance", "predicted_cost", "learning_curves")  # these need models, which take long
_SECTIONS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("answer", "The answer", "", ("frontier",)),
    ("running", "Running now", "", ()),
    (
        "progress",
        "Progress",
        "How good the best trial under the goal was at each moment, and what every trial gave.",
        ("progress_trials", "progress_time", "progress_cost"),
    ),
    ("timeline", "Workers", "Who ran what when. Gaps are idle time.", ("timeline",)),
    (
        "importance",
        "What matters",
        "The share of the differences between configurations that each parameter explains, with "
        "its interactions.",
        ("importance",),
    ),
    ("dependence", "Effects", "What changes on average with one parameter.", ()),
    ("parallel", "All parameters", "One line per trial, the better ones on top.", ("parallel",)),
    (
        "predicted",
        "Predicted cost",
        "Limits on time and cost rely on these predictions.",
        ("predicted_cost",),
    ),
    ("learning", "Training size", "What more data is worth.", ("learning_curves",)),
    ("failures", "Failures", "", ()),
    ("table", "All trials", "", ()),
    ("reproduce", "How to reproduce", "", ()),
)
_OWN = ("running", "failures", "table", "reproduce")  # sections that need no chart
_MOST_EFFECTS = 30  # parameters with a figure of their own


def page_data(
    study: StudyResults, *, storage: str | None = None, models: bool = True
) -> dict[str, Any]:
    """The whole page; without `models`, only the charts that need none, and their sections.
    `storage` is where the study is kept, in words, if that is to be shown."""
    return assemble(Facts.of(study), storage=storage, models=models)


def assemble(facts: Facts, *, storage: str | None = None, models: bool = True) -> dict[str, Any]:
    """The page of these facts, as `page_data` returns it."""
    drawn = charts(facts, models=models)
    return {
        "format": FORMAT,
        "study": about(facts, storage=storage),
        "parameters": [_parameter(name, p) for name, p in facts.space.items()],
        **answer(facts),
        "trials": table(facts),
        "running": running(facts),
        "frontier": [facts.numbers[i] for i in facts.efficient],
        "charts": drawn,
        "sections": sections(drawn),
        "failures": [
            {
                "message": it.message,
                "count": len(it.trials),
                "trials": list(it.trials),
                "detail": it.detail,
            }
            for it in failures_of(facts)
        ],
        "reproduce": reproduce(facts),
    }


# ---- the parts ----


def about(facts: Facts, *, storage: str | None = None) -> dict[str, Any]:
    """The study in a few words and numbers."""
    spent = [
        t.cost * (t.trainings if t.finished else 1) for t in facts.trials if t.cost is not None
    ]
    adds_up = bool(spent) and facts.cost_name != "memory"
    return {
        "name": facts.name,
        "version": versions()["tradewind"],
        "made": facts.made,
        "created": facts.created,
        "direction": "maximize" if facts.maximize else "minimize",
        "metric": facts.scale.name,
        "seed": facts.seed,
        "goal": facts.goal_in_words,
        "strategy": repr(facts.strategy),
        "cost": {"name": facts.cost.name, "unit": facts.cost.unit},
        "counts": {state.value: facts.count(state) for state in State},
        "spent": sum(spent) if adds_up else None,
        "paused": facts.paused,
        "stopped": facts.stopped,
        "queued": facts.queued,
        "storage": storage,
    }


def answer(facts: Facts) -> dict[str, Any]:
    """The best trial or why there is none, and all choices that a reader may make."""
    return {"best": best(facts), "unanswered": facts.unanswered, "choices": offered(facts)}


def best(facts: Facts) -> dict[str, Any] | None:
    """The best trial under the goal, with the sentence that explains it."""
    if facts.choice is None or facts.known is None:
        return None
    trial = facts.finished[facts.choice]
    return {
        "trial": trial.number,
        "sentence": str(facts.known.explain(facts.choice)),
        "value": trial.value,
        "cost": trial.cost_of(facts.cost.name),
        "train_size": trial.train_size,
        "params": dict(trial.params),
    }


def offered(facts: Facts) -> dict[str, Any] | None:
    """Which trial is chosen for every α and every limit, with a sentence for each choice."""
    found: Choices | None = choices(facts)
    if found is None:
        return None
    goal, unit = found.tradeoff, facts.cost.unit
    return {
        "points": facts.scale.points,
        "tradeoff": {
            "reference": goal.reference,
            "unit": unit,
            "by": goal.by,
            "capped": goal.capped,
            "alpha": found.alpha,
            "said": _price(facts),
            "max": found.largest,
            "steps": _steps(facts, found.by_alpha, lambda alpha: replace(goal, alpha=alpha)),
        },
        "limit": {
            "unit": unit,
            "own": found.limit,
            "said": "" if found.limit is None else f"At most {exact(found.limit, unit)}.",
            "confidence": found.under.confidence,
            "low": found.by_limit[0].start,
            "high": found.highest,
            "steps": _steps(
                facts, found.by_limit, lambda cost: replace(found.under, cost=cost or 1.0)
            ),
        },
    }


def _price(facts: Facts) -> str:
    """`10 min is worth 1 point of accuracy.`, as the goal was given; nothing if it has none."""
    goal, scale = facts.wanted, facts.scale
    if not isinstance(goal, Tradeoff) or not goal.alpha or goal.reference is None:
        return ""
    of = (" of " if scale.points else " in ") + scale.name
    worth = scale.amount(goal.alpha) + of * (scale.metric is not None or not scale.points)
    return f"{exact(goal.reference, facts.cost.unit)} is worth {worth}."


def _steps(facts: Facts, steps: list[Step], goal: Callable[[float], Goal]) -> list[dict[str, Any]]:
    assert facts.known is not None
    explain = partial(facts.known.explain, within="within this limit")
    return [
        {
            "from": step.start,
            "trial": facts.numbers[step.trial],
            "sentence": str(explain(step.trial, goal(step.start))),
        }
        for step in steps
    ]


def running(facts: Facts) -> list[dict[str, Any]]:
    """The trials that run now, and when each is expected to end."""
    open_trials = [t for t in facts.trials if t.state is State.RUNNING]
    costs = {t.number: t.expected_cost for t in open_trials}
    seconds = expected_seconds(open_trials, facts.finished, costs)
    return [
        {
            "trial": it.trial,
            "worker": it.worker,
            "started": it.started,
            "expected_end": it.expected_end,
            "params": dict(it.params),
        }
        for it in running_trials(open_trials, seconds)
    ]


def charts(facts: Facts, *, models: bool = True) -> dict[str, dict[str, Any]]:
    """All charts by name, or those that need no models."""
    names = [name for name in FIGURES if models or name not in _FITTED]
    drawn = {name: FIGURES[name](facts) for name in names}
    if models:
        drawn |= {f"dependence_{name}": dependence(facts, name) for name in effects_of(facts)}
    return {name: chart.to_dict() for name, chart in drawn.items()}


def effects_of(facts: Facts) -> list[str]:
    """The parameters with a figure of their own, the most important for quality first."""
    ranked = [it.name for it in facts.importances] or list(facts.space.names)
    return ranked[:_MOST_EFFECTS] if facts.effects is not None else []


def sections(drawn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The sections of the page in order, with the charts of each."""
    effects = tuple(name for name in drawn if name.startswith("dependence_"))
    found = [(*it[:3], effects if it[0] == "dependence" else it[3]) for it in _SECTIONS]
    return [
        {"id": name, "title": title, "text": text, "charts": list(charts)}
        for name, title, text, charts in found
        if name in _OWN or drawn.keys() & set(charts)
    ]


# ---- parameters ----


def _parameter(name: str, p: Parameter) -> dict[str, Any]:
    kind = "train_size" if isinstance(p, TrainSize) else type(p).__name__.lower()
    values: dict[str, Any]
    if isinstance(p, (Float, Int)):
        values = {"low": p.low, "high": p.high, "log": p.log, "step": p.step}
        text = f"{label(p.low)} to {label(p.high)}" + ", log scale" * p.log
        if p.step not in (None, 1):
            text += f", in steps of {label(p.step)}"
    else:
        values = {"choices": list(p.choices)}  # type: ignore[attr-defined]
        text = ", ".join(map(label, values["choices"]))
    when = " and ".join(f"{parent} is {written(c)}" for parent, c in p.when.items())
    return {"name": name, "kind": kind, "range": text, "when": when, "values": values}
