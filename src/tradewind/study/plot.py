"""`study.plot`: the figures of a study, one method each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tradewind.charts.figure import Figure
from tradewind.checks import one_of
from tradewind.errors import no_attribute
from tradewind.goals.text import AnyGoal
from tradewind.study.figures.dependence import dependence
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.failures import failures
from tradewind.study.figures.frontier import frontier
from tradewind.study.figures.importance import importance
from tradewind.study.figures.learning_curves import learning_curves
from tradewind.study.figures.parallel import parallel
from tradewind.study.figures.predicted_cost import predicted_cost
from tradewind.study.figures.progress import Over, progress
from tradewind.study.figures.timeline import timeline
from tradewind.study.insights import check_name

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults

_ADVICE = {  # for the figures of other tools
    "pareto_front": "write study.plot.frontier()",
    "optimization_history": "write study.plot.progress()",
    "param_importances": "write study.plot.importance()",
    "parallel_coordinate": "write study.plot.parallel()",
    "slice": "write study.plot.partial_dependence(name)",
}


class Plot:
    """The figures of a study. Each method looks at the study anew and returns a `Figure`: a
    notebook shows it, `.save("x.png")` writes it, and `.to_plotly()` gives it to Plotly.

    >>> study.plot.frontier().save("frontier.svg")
    """

    def __init__(self, study: StudyResults) -> None:
        self._study = study

    if not TYPE_CHECKING:  # mypy would take every name for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            no_attribute(self, name, _ADVICE)

    def __repr__(self) -> str:
        return f"<figures of study {self._study.name!r}>"

    def frontier(self, *, goal: AnyGoal | None = None) -> Figure:
        """Quality against cost: the efficient trials, all others, and the best one under a goal,
        by default that of the study.

        >>> study.plot.frontier(goal="under:60")
        """
        return Figure(frontier(Facts.of(self._study, goal)))

    def progress(self, over: Over = "trials", *, goal: AnyGoal | None = None) -> Figure:
        """Each trial's result and the best so far under a goal, over "trials", "time" or the "cost"
        that was spent.

        >>> study.plot.progress(over="time")
        """
        one_of("over", over, ("trials", "time", "cost"))
        return Figure(progress(Facts.of(self._study, goal), over))

    def timeline(self) -> Figure:
        """Who ran what when. Gaps are idle time.

        >>> study.plot.timeline().save("timeline.png")
        """
        return Figure(timeline(Facts.of(self._study)))

    def importance(self) -> Figure:
        """How much each parameter moves quality, and how much it moves cost.

        >>> study.plot.importance()
        """
        return Figure(importance(Facts.of(self._study)))

    def partial_dependence(self, name: str) -> Figure:
        """The mean value and cost at each value of a parameter.

        >>> study.plot.partial_dependence("C")
        """
        check_name(self._study.space, name)
        return Figure(dependence(Facts.of(self._study), name))

    def parallel(self) -> Figure:
        """All trials as lines across all parameters, the better ones darker and on top.

        >>> study.plot.parallel()
        """
        return Figure(parallel(Facts.of(self._study)))

    def predicted_cost(self) -> Figure:
        """The cost that each trial was expected to have, against the one it had.

        >>> study.plot.predicted_cost()
        """
        return Figure(predicted_cost(Facts.of(self._study)))

    def learning_curves(self) -> Figure:
        """Value and cost by the size of the training set.

        >>> study.plot.learning_curves()
        """
        return Figure(learning_curves(Facts.of(self._study)))

    def failures(self) -> Figure:
        """Why trials failed; messages that differ only in numbers count as one.

        >>> study.plot.failures()
        """
        return Figure(failures(Facts.of(self._study)))
