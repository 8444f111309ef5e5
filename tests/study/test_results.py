"""What came of a study: the best, the frontier, the recommendation and the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tradewind as tw
from tests.studies import CONDITIONAL, create, numbers, quick, score, told
from tradewind.errors import NothingFinished
from tradewind.optimizer.strategies.staged import _Stage
from tradewind.runners.runner import Lost
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import MultiFidelity, RandomSearch, Staged
from tradewind.study.figures.facts import Facts
from tradewind.study.figures.page_data import page_data
from tradewind.study.figures.progress import progress
from tradewind.types import Origin, Prediction

# ---- what came of it ----


def test_the_best_has_the_highest_value() -> None:
    assert told((1.0, None), (3.0, None), (2.0, None)).best.number == 1


def test_the_best_loss_is_the_lowest() -> None:
    study = told((1.0, None), (3.0, None), (0.5, None), direction="minimize")
    assert study.best.number == 2
    assert study.best.value == 0.5
    assert study.recommend().value == 0.5


@pytest.mark.parametrize(
    "strategy", ["random", "auto", Staged(fractions=(1.0,)), MultiFidelity()], ids=repr
)
def test_among_equals_the_cheapest_wins_in_every_pick(strategy: Any) -> None:
    sized = isinstance(strategy, MultiFidelity)
    space = {"x": (0.0, 1.0)} | ({"train_size": tw.TrainSize([0.2, 1.0])} if sized else {})
    study = tw.create_study(space, strategy=strategy, seed=0)
    tied = [(0.9, 1.1), (0.9527, None), (0.9527, 2.2), (0.9527, 1.3), (0.9527, 1.3)]
    for i, (value, cost) in enumerate(tied):
        study.add({"x": i / 5} | ({"train_size": 1.0} if sized else {}), value, cost=cost)
    assert study.best.number == study.best_result_for(tw.Quality()).number == 3
    for goal in (tw.Tradeoff(1e-9, 1.0), tw.BestUnder(2.5), tw.CheapestWithin(0.0), tw.Knee()):
        assert study.best_for(goal).number == 3
    assert numbers(study.frontier()) == [0, 3]
    explained = study.explain()
    assert (explained.choice.number, explained.best_quality.number) == (3, 3)
    assert study.explain(tw.BestUnder(1.2)).best_quality.number == 3
    assert [entry.trial.number for entry in study.leaderboard()] == [3, 4, 2, 1, 0]
    page = page_data(study, models=False)
    steps = [(it["from"], it["trial"]) for it in page["choices"]["limit"]["steps"]]
    assert (page["best"]["trial"], page["frontier"], steps) == (3, [0, 3], [(1.1, 0), (1.3, 3)])
    assert page["choices"]["tradeoff"]["steps"][0]["trial"] == 3
    if not sized:  # where models predict, even what was run
        assert study.recommend().trial == study.best


def test_the_best_so_far_changes_with_an_equal_trial_that_is_cheaper() -> None:
    study = told((1.0, 5.0), (2.0, 5.0), (2.0, 1.0), (2.0, 3.0), goal=tw.BestUnder(9.0))
    lines = [panel.layers[1] for panel in progress(Facts.of(study)).panels]
    assert [line.y for line in lines] == [[1.0, 2.0, 2.0, 2.0], [5.0, 5.0, 1.0, 1.0]]


def test_a_search_that_ignores_cost_does_not_depend_on_it() -> None:
    dear, cheap = (told((2.0, 5.0), (2.0, cost), (1.0, 1.0)) for cost in (9.0, 1.0))
    for goal, same in ((tw.Quality(), True), (tw.BestUnder(9.0), False)):
        seen = [it._session.snapshot()[1] for it in (dear, cheap)]
        carried = [_Stage(it, it, 1.0, goal).ranking.tolist() for it in seen]
        assert (carried[0] == carried[1]) is same


def test_a_choice_is_explained_against_the_cheapest_of_the_best() -> None:
    study = told((2.0, 5.0), (2.0, None), (2.0, 3.0), (1.0, 1.0))
    explanation = study.explain(tw.BestUnder(2.0))
    assert (explanation.choice.number, explanation.best_quality.number) == (3, 2)
    assert told((2.0, None), (2.0, None), (1.0, None)).explain().best_quality.number == 0
    assert study.explain(tw.Quality()).has_best_quality


def test_neither_failed_nor_running_trials_are_best() -> None:
    study = told((-5.0, None))
    study.fail(study.ask())
    study.ask()
    assert study.best.number == 0


def test_a_trade_off_weighs_quality_against_cost() -> None:
    study = told((0.9, 10.0), (0.8, 1.0), (0.1, 0.1), goal=tw.Tradeoff(alpha=0.5))
    assert study.best.number == 1
    assert study.best_for(tw.Quality()).number == 0
    assert study.best_for(tw.Tradeoff(alpha=100.0)).number == 2
    assert study.best_for(tw.Tradeoff(alpha=0.5, reference=1e6)).number == 0


def test_under_a_trade_off_a_loss_counts_with_its_sign() -> None:
    study = told((0.1, 10.0), (0.2, 1.0), direction="minimize", goal=tw.Tradeoff(alpha=0.5))
    assert study.best.number == 1
    assert study.best_for(tw.Quality()).number == 0


def test_a_trial_without_a_cost_cannot_win_a_trade_off() -> None:
    study = told((0.9, None), (0.5, 2.0), (0.6, 3.0))
    assert study.best.number == 0
    assert study.best_for(tw.Tradeoff(alpha=0.01)).number == 2


def test_costs_that_came_after_the_design_serve_a_trade_off_too() -> None:
    study = quick()
    for n in range(8):
        study.tell(study.ask(), value=float(n), cost=2.0 if n == 6 else None)
    assert study.trials[6].origin is Origin.MODEL
    assert study.best_for(tw.Tradeoff(alpha=0.1)).number == 6


def test_without_any_cost_a_trade_off_has_no_best() -> None:
    with pytest.raises(NothingFinished, match=r"Tradeoff\(.*\) needs costs, but no finished trial"):
        told((1.0, None)).best_for(tw.Tradeoff(alpha=0.1))


@pytest.mark.parametrize("goal", [None, object(), 0.3])
def test_the_best_for_what_is_no_goal_is_refused(goal: Any) -> None:
    with pytest.raises(TypeError, match=r"goal must be an object such as tw\.BestUnder"):
        told((1.0, 1.0)).best_for(goal)


def test_the_best_for_the_class_of_a_goal_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got the class: write Tradeoff\(\)"):
        told((1.0, 1.0)).best_for(tw.Tradeoff)  # type: ignore[arg-type]


def test_the_frontier_is_cheapest_first_and_without_the_beaten() -> None:
    study = told((0.5, 1.0), (0.9, 9.0), (0.4, 2.0), (0.7, 3.0), (0.7, 4.0), (0.2, 0.5))
    assert numbers(study.frontier()) == [5, 0, 3, 1]


def test_the_frontier_of_a_loss_goes_down() -> None:
    study = told((0.5, 1.0), (0.1, 9.0), (0.6, 2.0), (0.3, 3.0), direction="minimize")
    assert numbers(study.frontier()) == [0, 3, 1]


def test_of_equals_the_first_is_on_the_frontier() -> None:
    assert numbers(told((0.5, 1.0), (0.5, 1.0), (0.5, 1.0)).frontier()) == [0]


def test_only_trials_with_a_cost_are_on_the_frontier() -> None:
    assert numbers(told((0.9, None), (0.5, 1.0)).frontier()) == [1]
    assert told((0.9, None)).frontier() == []


@pytest.mark.parametrize("strategy", [MultiFidelity(), Staged(fractions=(0.2, 1.0), trials=3)])
def test_only_those_that_may_win_are_on_the_frontier(strategy: Any) -> None:
    sized = isinstance(strategy, MultiFidelity)
    space = {"x": (0.0, 1.0)} | ({"train_size": tw.TrainSize([0.2, 1.0])} if sized else {})
    study = tw.create_study(space, strategy=strategy, seed=0)

    def add(value: float, cost: float, size: float) -> None:
        where = {"x": value, "train_size": size} if sized else {"x": value}
        study.add(where, value, cost=cost, train_size=None if sized else size)

    add(0.7, 2.0, 0.2)
    add(0.9, 3.0, 0.2)
    assert numbers(study.frontier()) == [0, 1]  # as long as there are no others
    add(0.6, 10.0, 1.0)
    add(0.5, 11.0, 1.0)
    add(0.8, 12.0, 1.0)
    assert numbers(study.frontier()) == [2, 4]
    for alpha in (0.0, 0.1, 0.5, 5.0):
        assert study.best_for(tw.Tradeoff(alpha, reference=12.0)) in study.frontier()


def test_the_frontier_shows_repeats_of_a_configuration_once() -> None:
    study = quick()
    for x, value, cost in [(0.1, 0.5, 1.0), (0.5, 0.9, 2.0), (0.9, 0.7, 3.0), (0.5, 0.7, 1.9)]:
        study.add({"x": x, "k": 1}, value, cost=cost)
    assert numbers(study.frontier(believed=False)) == [0, 3, 1]
    assert len({t.params["x"] for t in study.frontier()}) == len(study.frontier())
    for alpha in (0.01, 0.1, 0.3, 1.0):
        assert study.best_for(tw.Tradeoff(alpha, reference=3.0)) in study.frontier()


def test_every_trial_of_the_frontier_has_a_cost_although_a_repeat_has_none() -> None:
    study = quick()
    for x, value, cost in [(0.5, 1.0, 1.0), (0.5, 1.2, None), (0.5, 1.4, 1.0), (0.9, 3.0, 5.0)]:
        study.add({"x": x, "k": 1}, value, cost=cost)
    assert numbers(study.frontier()) == [0, 3]


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_a_noisy_search_is_on_its_frontier(seed: int) -> None:
    def objective(trial: tw.Run) -> dict[str, float]:
        rng = np.random.default_rng(trial.seed)
        value = -((trial.params["x"] - 0.3) ** 2) + 0.3 * rng.normal()
        return {"value": value, "cost": (1.0 + trial.params["x"]) * rng.uniform(0.9, 1.1)}

    study = tw.create_study({"x": (0.0, 1.0)}, goal=tw.Tradeoff(0.1, reference=1.0), seed=seed)
    study.optimize(objective, 24, show_progress=False)
    assert any(t.repeats(other) for t in study.trials for other in study.trials[: t.number])
    frontier = study.frontier()
    assert study.best in frontier
    assert study.best_for(tw.Tradeoff(1.0, reference=1.0)) in frontier


def test_where_all_stages_may_win_all_are_on_the_frontier() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, strategy=Staged(final="all"), seed=0)
    study.add({"x": 0.1}, 0.5, cost=1.0, train_size=0.3)
    study.add({"x": 0.2}, 0.6, cost=2.0, train_size=1.0)
    assert numbers(study.frontier()) == [0, 1]


def test_a_recommendation_says_what_to_train_and_what_to_expect() -> None:
    study = create(CONDITIONAL)
    for value in (0.5, 0.9, 0.7):
        study.tell(study.ask(), value=value, cost=10 * value)
    advice, best = study.recommend(), study.best
    assert (advice.params, advice.train_size) == (best.params, best.train_size)
    assert (advice.value, advice.cost, advice.trial) == (0.9, 9.0, best)


@pytest.mark.parametrize("repeated", [False, True])
def test_a_model_that_calls_everything_noise_does_not_recommend_a_bad_trial(repeated: bool) -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, goal=tw.Tradeoff(0.1, reference=10.0), seed=0)
    rng = np.random.default_rng(2)
    xs = rng.uniform(size=16)
    for x in xs:  # the value has nothing to do with x
        study.add({"x": x}, rng.uniform(0.45, 0.94), cost=rng.uniform(1.0, 10.0))
    if repeated:
        study.add({"x": xs[1]}, (study.trials[1].value or 0.0) + 0.002, cost=5.0)
    assert study.recommend().trial == study.best
    assert study.recommend().reason == ""
    assert study.best.value > 0.8


def test_a_recommendation_that_is_not_the_best_says_why() -> None:
    class Last(RandomSearch):
        def recommend(self, space: Any, goal: Any, history: Any) -> Prediction:
            return Prediction(len(history.X) - 1, 0.5, None)

    study = create(strategy=Last())
    study.add({"x": 0.1, "k": 1}, 0.9, cost=3.0)
    assert study.recommend().reason == ""
    study.add({"x": 0.5, "k": 1}, 0.5, cost=2.0)
    assert study.recommend().reason == (
        "the strategy expects more of it than of trial 0, the best so far"
    )
    study.change_goal(tw.BestUnder(1.0))
    assert (
        study.recommend().reason == "no finished trial meets the goal, and this one comes closest"
    )
    sized = tw.create_study(
        {"x": (0.0, 1.0), "size": tw.TrainSize([0.2, 1.0])}, strategy=MultiFidelity(), seed=0
    )
    for i in range(6):
        sized.add({"x": i / 5, "size": 0.2}, 0.5 - abs(i / 5 - 0.6), cost=0.2)
    sized.add({"x": 0.0, "size": 1.0}, 0.0, cost=1.0)
    assert sized.recommend().trial is None
    assert sized.recommend().reason == (
        "a model expects more of it than of trial 6, but it was never run"
    )


def test_a_recommendation_without_a_cost_promises_none() -> None:
    assert told((0.5, None)).recommend().cost is None


# ---- as a table ----


def test_the_frame_of_a_new_study_has_its_columns() -> None:
    frame = create(CONDITIONAL).to_frame()
    assert list(frame.columns) == [
        "number",
        "state",
        "value",
        "cost",
        "score",
        "seed",
        "train_size",
        "trainings",
        "raced",
        "origin",
        "retries",
        "driver",
        "started",
        "ended",
        "wall",
        "cpu",
        "memory",
        "clock",
        "concurrency",
        "device",
        "error",
        "params_kernel",
        "params_degree",
        "params_train_size",
    ]
    assert len(frame) == 0
    for name in ("value", "cost", "score", "train_size", "wall", "cpu", "memory"):
        assert frame[name].dtype == float
    for name in ("started", "ended"):
        assert isinstance(frame[name].dtype, pd.DatetimeTZDtype)
    for name in ("number", "retries"):
        assert frame[name].dtype == int


def test_the_frame_has_a_row_for_every_trial_in_any_state() -> None:
    study = create()
    study.tell(study.ask(), value=0.5, cost=2.0)
    study.fail(study.ask())
    study.ask()
    frame = study.to_frame()
    assert frame["number"].tolist() == [0, 1, 2]
    assert frame["state"].tolist() == ["finished", "failed", "running"]
    assert frame["value"].isna().tolist() == [False, True, True]
    assert frame["params_x"].tolist() == [t.params["x"] for t in study.trials]


def test_the_frame_says_what_every_trial_took() -> None:
    study = create()
    study.optimize(
        score, n_trials=1, runner=SimulatedRunner(1, duration=lambda trial: 3.0, failure=once_lost)
    )
    study.requeue(study.ask())
    frame = study.to_frame()
    assert frame["state"].tolist() == ["finished", "waiting"]
    assert frame["retries"].tolist() == [1, 1]
    assert frame["wall"][0] == 3.0
    assert frame["device"][0] == "cpu"
    assert frame["ended"][0] >= frame["started"][0]
    assert frame[["started", "ended", "wall", "cpu", "concurrency"]].loc[1].isna().all()


def once_lost(trial: tw.Trial) -> Lost | None:
    return None if trial.retries else Lost("its machine went away")


def test_a_frame_without_values_still_has_numbers_for_columns() -> None:
    study = create()
    study.fail(study.ask())
    frame = study.to_frame()
    assert frame["value"].dtype == frame["cost"].dtype == float


def test_inactive_parameters_are_missing_in_the_frame() -> None:
    study = create(CONDITIONAL)
    study.add({"kernel": "linear", "train_size": 1.0}, value=1.0)
    study.add({"kernel": "poly", "degree": 3, "train_size": 0.5}, value=1.0)
    frame = study.to_frame()
    assert frame["params_degree"].isna().tolist() == [True, False]
    assert frame["params_kernel"].tolist() == ["linear", "poly"]


def test_a_frame_may_be_changed() -> None:
    study = told((1.0, 2.0))
    frame = study.to_frame()
    frame.loc[0, "value"] = 9.0
    assert study.best.value == 1.0
    assert isinstance(frame, pd.DataFrame)
