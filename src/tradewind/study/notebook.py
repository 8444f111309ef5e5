"""What a notebook shows of a study."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from tradewind.errors import NothingQualifies, TradewindError
from tradewind.html import Listed, paragraph, table
from tradewind.runners.runner import cause
from tradewind.study.words import (
    as_sentence,
    assigned,
    cost_amount,
    goal_in_words,
    percent,
    shown,
    unit_of_cost,
    unit_of_costs,
)
from tradewind.types import FinishedTrial, State

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults


def study_card(study: StudyResults) -> str:
    """A study at a glance: its goal, its trials, the best one in a sentence, and the efficient
    ones."""
    goal, states = study.goal, [trial.state for trial in study.trials]
    counts = [f"{states.count(it)} {it.value}" for it in State if it in states]
    facts = [
        ("goal", goal_in_words(goal, unit_of_costs(study.trials, goal.by), study.metric)),
        ("trials", ", ".join(counts) or "none"),
    ]
    best, efficient = "", ""
    try:
        if frontier := study.frontier():
            efficient = frontier._repr_html_()
        best = str(study.explain())
    except NothingQualifies as error:
        best = as_sentence(str(error))
    except TradewindError as error:  # nothing has finished, or no trial has a cost
        said, _, detail = str(error).partition("\n")
        best = f"{said} {cause(detail)}".rstrip()
    title = table(["study", study.name], facts)
    return title + paragraph(best) + efficient


class Efficient(Listed[FinishedTrial]):
    """Efficient trials as a list that is shown as a table. `believed` are the values that a model
    believes, by the number of the trial, if results are noisy; `by` names the cost that counts."""

    def __init__(
        self,
        trials: Iterable[FinishedTrial],
        believed: Mapping[int, float],
        by: str | None,
        metric: str | None,
    ) -> None:
        self.believed = believed
        columns = ["trial", metric or "value", "believed", "cost", "training size", "parameters"]
        if not believed:
            columns.remove("believed")
        row = partial(_row, believed=believed, by=by)
        super().__init__(trials, columns, row, caption="Efficient trials, cheapest first")


def _row(trial: FinishedTrial, believed: Mapping[int, float], by: str | None) -> list[str]:
    cost = trial.cost if by is None else trial.cost_of(by)
    price = "" if cost is None else cost_amount(cost, unit_of_cost(trial, by))
    belief = [shown(believed[trial.number])] if believed else []
    size = percent(trial.train_size)
    return [str(trial.number), shown(trial.value), *belief, price, size, assigned(trial.settings)]
