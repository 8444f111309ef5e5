"""What a notebook shows of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.errors import TradewindError
from tradewind.html import paragraph, table
from tradewind.runners.runner import cause
from tradewind.study.words import cost_amount, percent, unit_of_cost
from tradewind.types import FinishedTrial, State

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults


def study_card(study: StudyResults) -> str:
    """A study at a glance: its goal, its trials, the best one in a sentence, and the efficient
    ones."""
    states = [trial.state for trial in study.trials]
    counts = [f"{states.count(it)} {it.value}" for it in State if it in states]
    facts = [("goal", study.goal.describe()), ("trials", ", ".join(counts) or "none")]
    best, frontier = "", ""
    try:
        best = str(study.explain())
        frontier = _frontier_table(study)
    except TradewindError as error:  # nothing has finished, or no trial qualifies
        said, _, detail = str(error).partition("\n")
        best = best or f"{said} {cause(detail)}".rstrip()
    title = table(["study", study.name], facts)
    return title + paragraph(best) + frontier


def _frontier_table(study: StudyResults) -> str:
    trials = study.frontier()
    if not trials:
        return ""
    by = study.goal.by
    return table(
        ["trial", study.metric or "value", "cost", "training size", "parameters"],
        (_row(trial, by) for trial in trials),
        caption="Efficient trials, cheapest first",
    )


def _row(trial: FinishedTrial, by: str | None) -> list[str]:
    cost = trial.cost if by is None else trial.cost_of(by)
    price = "" if cost is None else cost_amount(cost, unit_of_cost(trial, by))
    params = ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in trial.settings.items()
    )
    return [str(trial.number), f"{trial.value:.4g}", price, percent(trial.train_size), params]
