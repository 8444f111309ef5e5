"""When a search has done enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import tradewind as tw
from tradewind.optimizer.history import History
from tradewind.optimizer.stopping import expected_cost, expected_gain
from tradewind.stopping import ErrorBelow, NoImprovement, NotWorthIt, StoppingRule
from tradewind.strategies import Bayes, Design
from tradewind.types import Normal

PLANE = tw.Space({"x": tw.Float(0, 1), "y": tw.Float(0, 1)})
CHEAP = tw.Tradeoff(alpha=0.1, reference=1.0)
GOALS = [tw.Quality(), CHEAP, tw.BestUnder(5.0), tw.Frontier(), tw.CheapestWithin(0.05), tw.Knee()]
RULES = [NotWorthIt(), NoImprovement(trials=5), ErrorBelow(0.1)]


def bowl(params: Any) -> dict[str, float]:
    value = 1.0 - (params["x"] - 0.3) ** 2 - (params["y"] - 0.6) ** 2
    return {"value": value, "cost": 1.0 + params["x"]}


def study_of(n: int, **options: Any) -> tw.Study:
    study = tw.create_study(PLANE, **{"seed": 0, "strategy": Bayes(design=Design(4)), **options})
    study.optimize(lambda t: bowl(t.params), n_trials=n, show_progress=False)
    return study


def history_of(study: tw.Study) -> History:
    return study._session.snapshot()[1]


def added(values: list[float], sizes: list[float] | None = None) -> History:
    study = tw.create_study(PLANE, strategy="random", seed=0)
    rng = np.random.default_rng(0)
    for i, (params, value) in enumerate(
        zip(PLANE.decode(PLANE.sample(len(values), rng=rng)), values, strict=True)
    ):
        study.add(params, value, cost=1.0, train_size=None if sizes is None else sizes[i])
    return history_of(study)


# ---- no improvement ----


@given(
    before=st.lists(st.floats(-5, 5), min_size=1, max_size=8),
    after=st.lists(st.floats(-5, 5), min_size=3, max_size=3),
    by=st.floats(0, 2),
)
def test_no_improvement_compares_the_last_trials_with_those_before(
    before: list[float], after: list[float], by: float
) -> None:
    rule = NoImprovement(trials=3, by=by, min_trials=1)
    reason = rule.reason(PLANE, tw.Quality(), added(before + after))
    assert (reason is None) == (max(after) > max(before) + by)


def test_no_improvement_under_a_trade_off_weighs_costs() -> None:
    study = tw.create_study(PLANE, strategy="random", seed=0)
    for value, cost in [(0.5, 1.0), (0.6, 9.0), (0.7, 9.0)]:  # better, but not worth its cost
        study.tell(study.ask(), value, cost=cost)
    rule, history = NoImprovement(trials=2, min_trials=1), history_of(study)
    assert rule.reason(PLANE, CHEAP, history) == "the last 2 trials have not improved the best one"
    assert rule.reason(PLANE, tw.Quality(), history) is None


# ---- what is left to gain ----


def test_the_error_shrinks_as_trials_are_added() -> None:
    few, many = history_of(study_of(6)), history_of(study_of(20))
    rule = ErrorBelow(0.01, min_trials=5)
    assert rule.reason(PLANE, tw.Quality(), few) is None
    assert "is left to gain, which is less than 0.01" in str(rule.reason(PLANE, tw.Quality(), many))


@pytest.mark.parametrize("goal", GOALS, ids=repr)
def test_the_error_is_bounded_under_every_goal(goal: Any) -> None:
    history = history_of(study_of(12, strategy="random"))
    assert ErrorBelow(1e-9, min_trials=10).reason(PLANE, goal, history) is None
    assert ErrorBelow(1e3, min_trials=10).reason(PLANE, goal, history) is not None


def test_the_bound_holds_what_is_truly_left() -> None:
    """Random search leaves something; where the rule stops, it must not leave more than it says."""
    for seed in range(5):
        history = history_of(study_of(15, strategy="random", seed=seed))
        left = 1.0 - float(history.quality.max())
        assert ErrorBelow(0.5 * left, min_trials=10).reason(PLANE, tw.Quality(), history) is None


# ---- not worth it ----


def test_a_trial_is_not_worth_it_when_its_gain_costs_more() -> None:
    history = history_of(study_of(25, goal=CHEAP))
    reason = NotWorthIt(uses=1).reason(PLANE, CHEAP, history)
    assert "no further trial is worth its cost" in str(reason)


def test_the_more_uses_the_longer_it_is_worth_to_search() -> None:
    history = history_of(study_of(8, goal=CHEAP, strategy="random"))
    stops = [
        NotWorthIt(uses=uses, min_trials=5).reason(PLANE, CHEAP, history) is not None
        for uses in (1e-6, 1e6)
    ]
    assert stops == [True, False]


def test_not_worth_it_needs_a_goal_that_prices_costs() -> None:
    history = history_of(study_of(5))
    for goal in (tw.Quality(), tw.Tradeoff(alpha=0.0), tw.Frontier()):
        with pytest.raises(ValueError, match=r"NotWorthIt is for a Tradeoff with alpha > 0"):
            NotWorthIt().reason(PLANE, goal, history)


@pytest.mark.parametrize("capped", [False, True])
def test_the_expected_gain_is_that_of_simulated_trials(capped: bool) -> None:
    goal = tw.Tradeoff(alpha=0.3, reference=2.0, capped=capped)
    quality = Normal(np.array([0.5, 0.9]), np.array([0.3, 0.1]))
    log_cost = Normal(np.array([0.0, 1.0]), np.array([0.5, 0.2]))
    rng = np.random.default_rng(0)
    q = quality.mean + quality.std * rng.standard_normal((400_000, 2))
    c = np.exp(log_cost.mean + log_cost.std * rng.standard_normal((400_000, 2)))
    simulated = np.maximum(goal.utility(q, c) - 0.6, 0.0).mean(axis=0)
    assert expected_gain(goal, quality, log_cost, 0.6) == pytest.approx(simulated, rel=0.02)
    assert expected_cost(log_cost, 0.0) == pytest.approx(c.mean(axis=0), rel=0.02)


def test_the_expected_gain_at_a_certain_cost_is_the_expected_improvement() -> None:
    z = (0.5 - 0.1 - 0.45) / 0.2
    gain = expected_gain(
        tw.Tradeoff(alpha=0.1, reference=1.0),
        Normal(np.array([0.5]), np.array([0.2])),
        Normal(np.array([0.0]), np.array([0.0])),
        0.45,
    )
    assert gain[0] == pytest.approx(0.2 * (norm.pdf(z) + z * norm.cdf(z)), rel=1e-3)


# ---- all rules ----


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_no_rule_stops_before_its_least_number_of_trials(rule: StoppingRule) -> None:
    assert rule.reason(PLANE, CHEAP, added([0.5] * 19)) is None


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_no_rule_judges_trials_that_lack_the_cost_of_the_goal(rule: StoppingRule) -> None:
    study = tw.create_study(PLANE, goal=tw.Tradeoff(0.3, by="money"), strategy="random", seed=0)
    study.optimize(lambda t: 0.5, n_trials=25, stop=rule, show_progress=False)
    assert (len(study.trials), study.stopped) == (25, None)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_small_trainings_of_a_staged_search_do_not_count(rule: StoppingRule) -> None:
    assert rule.reason(PLANE, CHEAP, added([0.5] * 40, [0.3] * 30 + [1.0] * 10)) is None
    assert rule.reason(PLANE, CHEAP, added([0.5] * 40, [0.3] * 10 + [1.0] * 30)) is not None


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_the_same_history_gives_the_same_answer(rule: StoppingRule) -> None:
    history = history_of(study_of(21, strategy="random"))
    assert rule.reason(PLANE, CHEAP, history) == rule.reason(PLANE, CHEAP, history)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NotWorthIt(uses=0), "uses must be a number > 0, but got 0"),
        (lambda: NoImprovement(trials=0), "trials must be a whole number ≥ 1, but got 0"),
        (lambda: NoImprovement(by=-1), "by must be a number ≥ 0, but got -1"),
        (lambda: ErrorBelow(0), "bound must be a number > 0, but got 0"),
        (lambda: ErrorBelow(0.1, level=1.0), r"level must be a number in \(0, 1\), but got 1.0"),
        (lambda: ErrorBelow(0.1, min_trials=0), "min_trials must be a whole number ≥ 1"),
    ],
)
def test_bad_arguments_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_search_that_stops_for_a_rule_has_found_the_best() -> None:
    study = tw.create_study(PLANE, seed=0)
    study.optimize(
        lambda t: bowl(t.params), n_trials=60, stop=ErrorBelow(0.02), show_progress=False
    )
    assert 20 <= len(study.trials) < 60
    assert "is left to gain" in str(study.stopped)
    assert study.best.value > 0.98


@pytest.mark.parametrize("goal", [tw.Frontier(), tw.Knee()], ids=repr)
def test_a_growing_frontier_is_an_improvement(goal: Any) -> None:
    study = tw.create_study(tw.Space({"x": tw.Float(0, 1)}), goal=goal)
    for i in range(30):
        study.add({"x": i / 29}, value=float(i), cost=1.0 + i)
    rule = NoImprovement(5)
    space, history = study.space, study._session.snapshot()[1]
    assert rule.reason(space, goal, history) is None
    for i in range(5):
        study.add({"x": 0.5 + i / 100}, value=-1.0, cost=9.0)
    reason = rule.reason(space, goal, study._session.snapshot()[1])
    assert reason == "none of the last 5 trials is efficient"


def test_a_rule_that_does_not_suit_the_goal_is_refused_before_a_trial_runs() -> None:
    study = tw.create_study(tw.Space({"x": tw.Float(0, 1)}))
    with pytest.raises(ValueError, match="NotWorthIt is for a Tradeoff"):
        study.optimize(lambda trial: 1.0, 5, stop=NotWorthIt())
    assert study.trials == []
