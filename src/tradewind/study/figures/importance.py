"""What moves quality, and what moves cost."""

from __future__ import annotations

from tradewind.charts.chart import Axis, Bars, Chart, Panel, Role
from tradewind.study.compare import LEVEL
from tradewind.study.figures.draw import TOO_FEW, counted, nothing
from tradewind.study.figures.facts import Facts
from tradewind.study.insights import Share
from tradewind.study.words import percent

NAME, TITLE = "importance", "What moves quality, and what moves cost"
_MOST = 20  # parameters


def importance(facts: Facts) -> Chart:
    """The share of the variance of quality, and of cost, that each parameter explains."""
    if facts.effects is None:
        return nothing(NAME, TITLE, TOO_FEW)
    found = facts.importances
    shown = found[:_MOST]
    labels = Axis("", "category", labels=tuple(it.name for it in shown))
    axis = Axis("share of the variance", format="percent")
    panels = [Panel(axis, labels, (_bars([it.quality for it in shown], "main"),), "Quality")]
    costs = [it.cost for it in shown if it.cost is not None]
    if costs:
        panels.append(Panel(axis, labels, (_bars(costs, "second"),), "Cost"))
    more = len(found) - len(shown)
    note = f"Lines show where a share lies with a probability of {percent(LEVEL)}."
    if more > 0:
        note += f" {counted(more, 'parameter')} of less importance are left out."
    return Chart(NAME, TITLE, _summary(facts), tuple(panels), note)


def _bars(shares: list[Share], role: Role) -> Bars:
    parts = [
        [round(getattr(it.total, end), 4) for it in shares] for end in ("value", "low", "high")
    ]
    return Bars(parts[0], "share", role, parts[1], parts[2])


def _summary(facts: Facts) -> str:
    found = facts.importances
    name, share = _most([(it.name, it.quality) for it in found])
    costs = [(it.name, it.cost) for it in found if it.cost is not None]
    if not costs:
        return f"{name} matters most for quality: it explains {share} of the variance."
    other, of_cost = _most(costs)
    if other == name:
        return (
            f"{name} matters most, both for quality ({share} of the variance) and for cost "
            f"({of_cost})."
        )
    return (
        f"{name} matters most for quality ({share} of the variance), {other} for cost ({of_cost})."
    )


def _most(shares: list[tuple[str, Share]]) -> tuple[str, str]:
    name, share = max(shares, key=lambda it: it[1].total.value)
    return name, percent(round(share.total.value, 2))
