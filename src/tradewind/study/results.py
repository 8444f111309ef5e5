"""The results of a study: the winner under a goal, the efficient trials, and what to train.

Everything here only reads. `Study` adds what changes a study.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from tradewind import checks
from tradewind.checks import or_none
from tradewind.engine.session import Session
from tradewind.errors import no_attribute
from tradewind.goals import Frontier, Goal
from tradewind.goals.text import AnyGoal, read_goal
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.study.compare import LEVEL, Comparison, compare_trials, find
from tradewind.study.explain import Explanation
from tradewind.study.finish import Final, recorded
from tradewind.study.forecast import Forecast, forecast
from tradewind.study.insights import (
    Importance,
    PartialDependence,
    importance,
    partial_dependence,
)
from tradewind.study.knowledge import Knowledge
from tradewind.study.leaderboard import Leaderboard, leaderboard
from tradewind.study.notebook import Efficient, study_card
from tradewind.study.predictions import Predicted, Wanted, predict
from tradewind.study.ranking import efficient_trials
from tradewind.study.recommend import Recommendation, check_costs, recommendation
from tradewind.study.tables import Table, columns, data_frame, write_study
from tradewind.study.words import unit_of_costs
from tradewind.types import FinishedTrial, Trial, Trials

if TYPE_CHECKING:
    import pandas as pd

    from tradewind.study.plot import Plot


_ADVICE = {  # what to write instead of these attributes, which other tools have
    "best_trial": "write study.best",
    "best_trials": "write study.frontier()",
    "trials_dataframe": "write study.to_frame()",
    "enqueue_trial": "write study.enqueue(params)",
    "add_trial": "write study.add(params, value, cost=cost)",
    "study_name": "write study.name",
    "sampler": "write study.strategy",
}


class StudyResults:
    """What can be asked of a study without changing it."""

    def __init__(self, session: Session, *, name: str) -> None:
        state = session.state
        self.name, self.space, self.seed = name, state.space, state.seed
        self.cost_name = state.cost_name
        self.direction: Literal["maximize", "minimize"] = (
            "maximize" if state.sign > 0 else "minimize"
        )
        self._session = session
        self._knowledge = Knowledge(session)

    if not TYPE_CHECKING:  # mypy would take every name for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            no_attribute(self, name, _ADVICE)

    @property
    def metric(self) -> str | None:
        """The name of the quality, such as "accuracy"; None if it has none.

        >>> tw.create_study(space, metric="accuracy").metric
        'accuracy'
        """
        return self._session.state.metric

    @property
    def strategy(self) -> Strategy:
        """The strategy that chooses the trials.

        >>> type(study.strategy).__name__
        'Bayes'
        """
        return self._session.plan.strategy

    def __repr__(self) -> str:
        trials = self.trials
        done = sum(t.finished for t in trials)
        return (
            f"<Study {self.name!r}: {len(trials)} trials, {done} finished, goal {self.goal!r}, "
            f"seed {self.seed}>"
        )

    def _repr_html_(self) -> str:
        return study_card(self)

    @property
    def goal(self) -> Goal:
        """The goal. If the trials decide its reference cost, it is shown as soon as it is known,
        and marked as provisional while it may still change.

        >>> print(study.goal)
        quality against cost, where a cost of 60 is worth 0.1
        """
        goal = self._session.plan.goal
        return self._knowledge.settle(goal, self._session.history(by=goal.by))

    @property
    def trials(self) -> Trials[Trial]:
        """All trials by number, in any state.

        >>> len(study.trials)
        8
        >>> study.trials[2]
        Trial(2, finished, {'depth': 3, 'rate': 0.1}, train_size=1, value=0.86, cost=30.0)
        """
        return Trials(self._session.trials())

    @property
    def best(self) -> FinishedTrial:
        """The best finished trial under the study's goal.

        >>> study.best.number, study.best.value, study.best.cost
        (4, 0.94, 50.0)
        """
        return self.best_for(self._session.plan.goal)

    @property
    def best_params(self) -> Mapping[str, Any]:
        """The parameters of `best`.

        >>> study.best_params
        {'depth': 5, 'rate': 0.1}
        """
        return self.best.params

    @property
    def best_value(self) -> float:
        """The value of `best`.

        >>> study.best_value
        0.94
        """
        return self.best.value

    def best_for(self, goal: AnyGoal) -> FinishedTrial:
        """The best finished trial under any goal: an object, or text as on the command line.

        If results are known to be noisy, from folds or from repeats, trials are ranked by what a
        model believes of them: the best of many noisy results is the luckiest one.

        >>> study.best_for(tw.Quality()).params["depth"]
        6
        >>> study.best_for("under:30").params["depth"]
        3
        """
        return self._knowledge.best(read_goal(goal))

    def best_result_for(self, goal: AnyGoal) -> FinishedTrial:
        """The trial with the best result under any goal, however lucky it was.

        >>> study.best_result_for(tw.Quality()).value
        0.95
        """
        known = self._knowledge.known(goal, believed=False)
        return known.trials[known.choice]

    def leaderboard(
        self, top: int = 10, *, goal: AnyGoal | None = None, level: float = LEVEL
    ) -> Leaderboard:
        """The `top` configurations under a goal, by default that of the study, best first.

        Repeats of a configuration count as one, with the interval that holds its true value with
        probability `level`. The order is that of `best_for`. Of configurations that are much alike
        (the same categories, and no other parameter further apart than a tenth of its range), only
        the best is listed.

        >>> print(study.leaderboard(3))
        trial  runs  value  believed  cost  parameters
            4     1   0.94      0.94    50  depth=5, rate=0.1
            5     1   0.95      0.95    60  depth=6, rate=0.1
            3     1   0.91      0.91    40  depth=4, rate=0.1
        """
        top, level = checks.whole("top", top, 1), checks.probability("level", level)
        known = self._knowledge.known(goal)
        contest = known.qualified()
        chosen, left_out = contest.different(known.goal, self.space.columns, top)
        order = [contest.typical(i) for i in chosen]
        return leaderboard(
            *(known.trials, known.history, known.believed, order),
            noise=known.noise,
            level=level,
            by=known.goal.by,
            left_out=left_out,
        )

    def explain(self, goal: AnyGoal | None = None) -> Explanation:
        """The best trial under a goal, by default that of the study, and what the one with the best
        quality would give and cost instead, in a sentence or two.

        >>> print(study.explain())
        Trial 4 is the best trade-off: 0.94 at a cost of 50. Trial 5, which has the best value,
        scores 1 point higher and costs 1.2 times as much.
        >>> print(study.explain("under:30"))
        Trial 2 is the best within a cost of 30: 0.86 at a cost of 30. Without the limit, trial 5
        scores 9 points higher and costs 2 times as much.
        """
        known = self._knowledge.known(goal)
        return known.explain(known.choice)

    def compare(self, a: Trial | int, b: Trial | int, *, level: float = LEVEL) -> Comparison:
        """Whether trial `b` is truly better than trial `a`. Both are trials or their numbers.

        The interval holds the true difference with probability `level`. It comes from the folds
        that both have, or from the noise of all results, of which folds and repeats of any
        configuration tell.

        >>> print(study.compare(4, 5))
        trial 5 scores 1 point higher than trial 4: nothing is known about the noise, so this may be
        luck; it costs 1.2 times as much
        """
        level = checks.probability("level", level)
        trials, history = self._knowledge.finished()
        first, second, scale = find(trials, a), find(trials, b), self._knowledge.scale(trials)
        noise = self._knowledge.noise(history)
        return compare_trials(trials, history, first, second, scale=scale, noise=noise, level=level)

    @property
    def final(self) -> Final | None:
        """The final model that `finish` trained and tested last, without the model itself; None if
        there is none.

        >>> study.final is None  # until study.finish(train, test)
        True
        """
        return recorded(self._session.read_state())

    def frontier(
        self,
        *,
        tolerance: float | str | None = None,
        by: str | None = None,
        believed: bool = True,
    ) -> Efficient:
        """The efficient trials, cheapest first: no other trial is both better and cheaper.

        If results are known to be noisy, trials are compared and ordered by what is believed of
        them, as `best_for` does. Repeats of a configuration count as one, with their mean cost; the
        one that is closest to their mean is listed, and `believed` has the value that each is
        believed to have. With `believed=False`, results count as they are.

        With a `tolerance`, a trial is left out if it is better than a cheaper one by no more than
        that, or cheaper than a better one by no more than the clock can tell. It is an amount of
        quality (0.01), a share of the best ("1%"), or "1se", the standard error of each trial. `by`
        names the cost that counts, by default that of the goal.

        >>> [(trial.cost, round(trial.value, 2)) for trial in study.frontier()]
        [(10.0, 0.7), (20.0, 0.79), (30.0, 0.86), (40.0, 0.91), (50.0, 0.94), (60.0, 0.95)]
        >>> len(study.frontier(tolerance=0.05))
        4
        """
        by = self._session.plan.goal.by if by is None else checks.cost_name("by", by)
        trials, history = self._knowledge.finished(by)
        if by is not None:
            check_costs(Frontier(by=by), history)
        known = self._knowledge.as_believed(history) if believed else history
        better, cheaper = self._knowledge.negligible(history, known, tolerance)
        chosen = efficient_trials(history, known, self.strategy, better=better, cheaper=cheaper)
        values: dict[int, float] = {}
        if not np.array_equal(known.quality, history.quality):
            values = {trials[i].number: float(history.sign * known.quality[i]) for i in chosen}
        return Efficient((trials[i] for i in chosen), values, by, self.metric)

    def recommend(self) -> Recommendation:
        """What to train, as the strategy sees it, and the value and cost to expect. This is `best`
        unless its `reason` says why it is not: `MultiFidelity` may recommend a training size that
        was never run.

        >>> study.recommend().params["depth"], study.recommend().reason
        (5, '')
        """
        goal = self._session.plan.goal
        trials, history = self._knowledge.finished(goal.by)
        known = self._knowledge.known_from(trials, history, goal)
        best = None if known.shortfall else trials[known.choice]
        cost = history.cost.copy()
        cost[known.contest.rows] = known.contest.cost(known.goal)  # as it counts for `best`
        history = replace(history, cost=cost)
        return recommendation(trials, history, known.goal, self.strategy, self.space, best)

    def predict(
        self,
        configs: Wanted | Iterable[Wanted],
        *,
        train_size: float | None = None,
        goal: AnyGoal | None = None,
        level: float = LEVEL,
    ) -> list[Predicted]:
        """What to expect of one run of each configuration (a dict, a trial, or a list of them):
        value, cost and score under a goal, by default that of the study.

        A run lies in an interval with probability `level`. `train_size` replaces the training size
        of all configurations; a size that is missing is the largest. If no parameter says the size,
        the trials of just this size are learned from, by default those of the largest.

        >>> [predicted] = study.predict({"depth": 6, "rate": 0.2})
        >>> round(predicted.value, 1), round(predicted.cost)
        (0.9, 59)
        """
        level = checks.probability("level", level)
        size = or_none(checks.fraction, "train_size", train_size)
        trials, history, goal = self._knowledge.known_for(goal)
        unit = unit_of_costs(trials, goal.by)
        return predict(
            *(self.space, history, goal, configs),
            train_size=size,
            level=level,
            unit=unit,
            metric=self.metric,
        )

    def forecast(
        self, n_trials: int | None = None, *, n_workers: int = 1, level: float = LEVEL
    ) -> Forecast:
        """How long the next trial will take and what it will cost, and the same for `n_trials` more
        trials on `n_workers` workers. What is not known yet is None. Print it for a sentence.

        >>> forecast = study.forecast(20, n_workers=4)
        >>> round(forecast.cost.value, -3)
        1000.0
        """
        goal = self._session.plan.goal
        trials, history = self._session.snapshot(by=goal.by)
        return forecast(
            self.space,
            trials,
            history,
            goal,
            self.strategy,
            n_trials=checks.count("n_trials", n_trials),
            n_workers=checks.whole("n_workers", n_workers, 1),
            level=checks.probability("level", level),
        )

    def importance(self, *, by: str | None = None, level: float = LEVEL) -> list[Importance]:
        """How much each parameter moves quality and cost over the whole space, as shares of their
        variance, the most important for quality first. `by` names another cost.

        >>> [it.name for it in study.importance()]
        ['depth', 'rate']
        """
        level = checks.probability("level", level)
        _, history = self._knowledge.finished(or_none(checks.cost_name, "by", by))
        return importance(self.space, history, level=level)

    def partial_dependence(
        self, name: str, *, points: int = 20, by: str | None = None, level: float = LEVEL
    ) -> PartialDependence:
        """The mean value and cost at each value of a parameter, or at `points` of them, over random
        configurations in which it is active. `by` names another cost. Printed, it is a table.

        >>> effect = study.partial_dependence("depth")
        >>> effect.values
        [1, 2, 3, 4, 5, 6, 7, 8]
        """
        level = checks.probability("level", level)
        trials, history = self._knowledge.finished(or_none(checks.cost_name, "by", by))
        effect = partial_dependence(self.space, history, name, points=points, level=level)
        return replace(effect, metric=self.metric, unit=unit_of_costs(trials, by))

    def to_frame(self) -> pd.DataFrame:
        """All trials as a pandas data frame, one row each. `score` is what the goal maximizes.

        >>> study.to_frame()[["number", "value", "cost"]].head(2)
           number  value  cost
        0       0   0.70  10.0
        1       1   0.79  20.0
        """
        return data_frame(self._table())

    def export(self, path: str | PathLike[str]) -> None:
        """Write the study to a file: `.jsonl` holds everything, for `import_study`; `.csv` is a
        table of the trials.

        >>> study.export("reviews.jsonl")  # everything
        >>> study.export("reviews.csv")  # a table of the trials
        """
        write_study(path, self._session.log, self._table)

    @property
    def plot(self) -> Plot:
        """The figures of this study: `study.plot.frontier()`, `study.plot.progress()`, …

        >>> figure = study.plot.frontier()
        >>> figure.save("frontier.json")
        """
        from tradewind.study.plot import Plot

        return Plot(self)

    def report(self, path: str | PathLike[str]) -> None:
        """Write everything there is to see about the study as one HTML file, which needs no
        network: `study.report("report.html")`.

        >>> study.report("report.html")
        """
        from tradewind.study.report import write_report

        write_report(self, path)

    def _table(self) -> Table:
        trials, history = self._session.snapshot(by=self._session.plan.goal.by)
        return columns(
            trials, self.space, history, self._knowledge.ready(self._session.plan.goal, history)
        )
