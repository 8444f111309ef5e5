"""The sliders choose what `study.best_for` chooses, for every α and every limit."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.space.generate import property_test
from tests.studies import SPACE, create, told
from tests.study.figures.situations import ran
from tradewind.charts.chart import Points
from tradewind.errors import NothingQualifies
from tradewind.study.figures.choices import Choices, Step, choices
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.frontier import frontier
from tradewind.study.figures.page_data import offered

GOALS = (
    tw.Quality(),
    tw.Tradeoff(0.3),
    tw.Tradeoff(0.3, 2.0),
    tw.Tradeoff(0.1, 3.0, capped=True),
    tw.Frontier(),
    tw.BestUnder(3.0),
    tw.Tradeoff(0.2, by="money"),
)
# Few different numbers, so that there are ties and breakpoints, and arithmetic is exact.
exact_scores = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
exact_costs = st.sampled_from([0.5, 1.0, 1.5, 2.0, 4.0, None])
exact_alphas = st.sampled_from([0.0, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 2.0, 4.0])
scores = st.one_of(exact_scores, st.floats(-1e3, 1e3))
costs = st.one_of(exact_costs, st.floats(1e-3, 1e3))
alphas = st.one_of(exact_alphas, st.floats(0.0, 10.0), st.floats(0.0, 1e6))
some_examples = settings(property_test, max_examples=40, phases=[Phase.generate])


@st.composite
def studies(draw: st.DrawFn) -> tw.Study:
    """A study with ties, repeats, raced results, folds and missing costs."""
    direction = draw(st.sampled_from(["maximize", "minimize"]))
    study = create(SPACE, goal=draw(st.sampled_from(GOALS)), direction=direction)
    noisy = draw(st.integers(0, 3)) == 0
    for _ in range(draw(st.integers(1, 12))):
        config = {"x": draw(st.sampled_from([0.1, 0.2, 0.5, 0.7])), "k": draw(st.integers(1, 3))}
        value, cost = draw(scores), draw(costs)
        more: dict[str, Any] = {"raced": draw(st.integers(0, 9)) == 0}
        if noisy and draw(st.booleans()):
            more["folds"], value = [value, value + draw(st.sampled_from([0.0, 0.1]))], None
        add(study, config, value, cost, **more)
    return study


@st.composite
def exact_studies(draw: st.DrawFn) -> tw.Study:
    """A study in which sums and products are exact, and no result is noisy."""
    study = create(SPACE, goal=draw(st.sampled_from(GOALS[1:2] + GOALS[4:])))
    for i in range(draw(st.integers(1, 12))):
        config = {"x": i / 16, "k": 1}
        add(study, config, draw(exact_scores), draw(exact_costs))
    return study


def add(
    study: tw.Study, config: dict[str, Any], value: float | None, cost: float | None, **more: Any
) -> None:
    if study.goal.needs_cost and study.goal.by is None and cost is None:
        cost = 1.0
    if cost is not None:
        more["costs"] = {"money": 2.0 * cost}
    study.add(config, value, cost=cost, **more)


def at(steps: list[Step], place: float) -> int:
    """What a slider finds."""
    return [step for step in steps if step.start <= place][-1].trial


def found(study: tw.Study) -> tuple[Facts, Choices | None]:
    facts = Facts.of(study)
    return facts, choices(facts)


def around(steps: list[Step]) -> list[float]:
    """Where the steps begin, and the numbers next to these places."""
    starts = [step.start for step in steps]
    return [float(np.nextafter(x, to)) for x in starts for to in (x, 0.0, np.inf)]


def score(facts: Facts, goal: tw.Tradeoff, number: int) -> tuple[float, float]:
    """The score of a trial, and how much rounding may add to it."""
    assert facts.known is not None
    i, seen = facts.numbers.index(number), facts.known.believed
    sigma = goal.alpha * goal.sigma(seen.cost) if goal.alpha > 0 else np.zeros(1)
    size = np.nanmax(np.abs(seen.quality)) + np.nanmax(np.append(sigma, 0.0))
    return float(goal.utility(seen.quality, seen.cost)[i]), 1e-15 * float(size)


@some_examples
@given(exact_studies(), st.lists(exact_alphas, min_size=2, max_size=4))
def test_the_step_of_an_alpha_is_the_best_trial_also_where_trials_tie(
    study: tw.Study, some: list[float]
) -> None:
    facts, it = found(study)
    if it is None:
        return
    for alpha in (*some, *(step.start for step in it.by_alpha)):
        wanted = replace(it.tradeoff, alpha=alpha)
        assert facts.numbers[at(it.by_alpha, alpha)] == study.best_for(wanted).number, alpha


@some_examples
@given(studies(), st.lists(alphas, min_size=2, max_size=4))
def test_the_step_of_an_alpha_is_the_best_trial_under_that_trade_off(
    study: tw.Study, some: list[float]
) -> None:
    facts, it = found(study)
    if it is None:
        return
    for alpha in (*some, *around(it.by_alpha)):
        wanted = replace(it.tradeoff, alpha=alpha)
        ours, best = facts.numbers[at(it.by_alpha, alpha)], study.best_for(wanted).number
        if ours != best:  # only rounding decides between them
            (a, rounding), (b, _) = (score(facts, wanted, n) for n in (ours, best))
            assert b - a <= rounding, alpha


@some_examples
@given(studies(), st.lists(st.floats(1e-3, 2e3), min_size=2, max_size=4))
def test_the_step_of_a_limit_is_the_best_trial_under_it(study: tw.Study, some: list[float]) -> None:
    facts, it = found(study)
    if it is None:
        return
    places = [step.start for step in it.by_limit]
    for limit in (*some, *around(it.by_limit)):
        goal = tw.BestUnder(limit, by=it.tradeoff.by)
        if limit < places[0]:
            with pytest.raises(NothingQualifies):
                study.best_for(goal)
        else:
            assert facts.numbers[at(it.by_limit, limit)] == study.best_for(goal).number, limit


@pytest.mark.parametrize("folds", [0, 3])
def test_every_sentence_is_that_of_explain(folds: int) -> None:
    study = ran(n=60, folds=folds, goal=tw.Tradeoff(0.2))
    data = offered(Facts.of(study))
    assert data is not None
    reference = data["tradeoff"]["reference"]
    for step in data["tradeoff"]["steps"]:
        assert step["sentence"] == str(study.explain(tw.Tradeoff(step["from"], reference)))
    for step in data["limit"]["steps"]:
        under = str(study.explain(tw.BestUnder(step["from"])))
        under = re.sub("within .*?: ", "within this limit: ", under, count=1)
        assert step["sentence"] == re.sub(", and a new training .* of 0[.0-9]*[0-9]", "", under)


def test_steps_ascend_from_zero_and_change_the_choice() -> None:
    _, it = found(ran(n=60))
    assert it is not None
    for steps in (it.by_alpha, it.by_limit):
        starts = [step.start for step in steps]
        assert starts == sorted(set(starts))
        assert all(a.trial != b.trial for a, b in itertools.pairwise(steps))
    assert it.by_alpha[0].start == 0.0
    assert it.largest >= it.by_alpha[-1].start


@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(0.01, 1.0), tw.BestUnder(3.0)])
def test_the_cheapest_of_equals_is_on_the_slider_and_in_the_picture(goal: tw.Quality) -> None:
    facts, it = found(told((0.95, 2.2), (0.95, 1.3), (0.9, 1.0), goal=goal))
    assert facts.choice is not None
    assert it is not None
    steps, place = (it.by_limit, it.limit) if it.limit else (it.by_alpha, it.alpha or 0.0)
    assert facts.numbers[facts.choice] == facts.numbers[at(steps, place)] == 1
    layers = (it for it in frontier(facts).panels[0].layers if isinstance(it, Points))
    drawn = {number for it in layers if it.role != "chosen" for number in it.trials}
    assert drawn == {0, 1, 2}  # the page puts its star on one of these


@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_a_limit_is_kept_on_the_slider_as_surely_as_by_the_goal(confidence: float) -> None:
    study = ran(goal=tw.BestUnder(2.0, confidence=confidence))
    facts, it = found(study)
    assert it is not None
    assert it.under.confidence == confidence
    assert facts.numbers[at(it.by_limit, 2.0)] == study.best.number
    note = "To keep the limit with a probability of 90%, "
    assert (note in frontier(facts).note) == (confidence == 0.9)


def test_of_equals_the_cheapest_is_on_the_slider_also_if_it_counts_with_its_usual_cost() -> None:
    study, rng = create(goal=tw.BestUnder(5.0)), np.random.default_rng(3)
    for _ in range(24):
        config = {"x": float(rng.random()), "k": 1}
        study.add(config, 0.9 + 0.05 * int(rng.integers(2)), cost=float(rng.lognormal(0.3, 0.6)))
    facts, it = found(study)
    assert it is not None
    assert it.under.spread > 0.0
    assert facts.numbers[at(it.by_limit, 5.0)] == study.best.number


def test_a_breakpoint_between_two_trials_is_exact() -> None:
    facts, it = found(told((0.5, 1.0), (1.0, 2.0), goal=tw.Tradeoff(0.1, 1.0)))
    assert it is not None
    assert [(step.start, facts.numbers[step.trial]) for step in it.by_alpha] == [(0.0, 1), (0.5, 0)]


def test_a_study_without_costs_offers_no_choice() -> None:
    assert found(told((0.5, None), (0.7, None)))[1] is None
    assert found(create())[1] is None
