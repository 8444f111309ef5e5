"""What every strategy must do; a new one is one more line in STRATEGIES, or in SIZED."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.space.generate import spaces
from tests.studies import drive, timeless
from tradewind import recipes
from tradewind.engine.propose import Proposer
from tradewind.log.events import Claimed, Finished, Proposed
from tradewind.log.state import StudyState
from tradewind.optimizer.maximizers.evolution import MIES
from tradewind.seeds import proposal_rng
from tradewind.strategies import Bayes, Design, MultiFidelity, RandomSearch, Strategy
from tradewind.types import Array, Origin, Outcome, State, Trial

STRATEGIES: dict[str, Strategy] = {
    "bayes": Bayes(design=Design(4)),
    "random": RandomSearch(),
    "wang2020": recipes.wang2020(),
    "mip_ego": recipes.mip_ego(  # with less effort than published
        loss="identity", trees=5, maximizer=MIES(generations=10)
    ),
}
SIZED: dict[str, Strategy] = {"multifidelity": MultiFidelity()}  # for spaces with sizes
QUALITY, TRADEOFF = tw.Quality(), tw.Tradeoff(alpha=0.3)
GOALS = {"quality": QUALITY, "tradeoff": TRADEOFF}

MIXED = tw.Space(
    {
        "C": tw.Float(1e-4, 1e3, log=True),
        "kernel": tw.Categorical(["linear", "poly", "rbf"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "gamma": tw.Float(0, 1, when={"kernel": ["poly", "rbf"]}),
        "width": tw.Ordinal([32, 64, 128]),
        "train_size": tw.TrainSize(),
    },
    forbid=[{"kernel": "linear", "width": 128}],
)
SMALL = tw.Space(  # 2 + 3 * 2 = 8 configurations
    {
        "kernel": tw.Categorical(["linear", "poly"]),
        "degree": tw.Int(2, 4, when={"kernel": "poly"}),
        "flag": tw.Bool(),
    }
)

Answer = Callable[[int, Trial], tuple[float, float] | None]  # value and cost; None is a failure


@pytest.fixture(params=[*STRATEGIES, *SIZED])
def strategy(request: pytest.FixtureRequest) -> Strategy:
    return {**STRATEGIES, **SIZED}[request.param]


@pytest.fixture(params=STRATEGIES)
def general(request: pytest.FixtureRequest) -> Strategy:
    """A strategy for any space, in which what is recommended has been run."""
    return STRATEGIES[request.param]


@pytest.fixture(params=GOALS)
def goal(request: pytest.FixtureRequest) -> Any:
    return GOALS[request.param]


def smooth(i: int, trial: Trial) -> tuple[float, float]:
    """Best at C = 1, better and dearer with more data."""
    quality = trial.train_size - abs(np.log10(trial.params["C"]))  # type: ignore[arg-type]
    return quality, 1.0 + trial.train_size


def play(
    strategy: Strategy,
    answer: Answer,
    n: int,
    *,
    space: tw.Space = MIXED,
    goal: Any = QUALITY,
    seed: int = 0,
) -> tw.Study:
    """n trials, one after the other."""
    study = tw.create_study(space, strategy=strategy, goal=goal, seed=seed)
    for i in range(n):
        trial = study.ask()
        answered = answer(i, trial)
        if answered is None:
            study.fail(trial)
        else:
            study.tell(trial, value=answered[0], cost=answered[1])
    return study


def configs(study: tw.Study) -> list[tuple[Any, ...]]:
    return [tuple(t.params.items()) for t in study.trials]


def all_different(study: tw.Study) -> bool:
    return len(set(configs(study))) == len(study.trials)


# ---- deterministic ----


def test_the_same_seed_and_outcomes_give_the_same_trials(strategy: Strategy, goal: Any) -> None:
    runs = [play(strategy, smooth, 9, goal=goal, seed=3) for _ in range(2)]
    assert timeless(runs[0].trials) == timeless(runs[1].trials)


def test_another_seed_gives_other_trials(strategy: Strategy) -> None:
    assert configs(play(strategy, smooth, 2, seed=1)) != configs(play(strategy, smooth, 2, seed=2))


def test_a_proposal_is_pure_and_its_handover_is_plain_data(strategy: Strategy, goal: Any) -> None:
    session = drive(space=MIXED, goal=goal, strategy=strategy)
    for i in range(8):
        trial = session.ask()
        if i != 5:
            session.finish(trial.number, Outcome(*smooth(i, trial)))
    _, history = session.snapshot()
    before = [array.copy() for array in vars(history).values() if isinstance(array, np.ndarray)]
    first, second = (
        strategy.propose(MIXED, goal, history, rng=proposal_rng(0, 8)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.row, second.row)
    assert replace(first, row=second.row) == second
    assert json.loads(json.dumps(first.handover)) == first.handover
    after = [array for array in vars(history).values() if isinstance(array, np.ndarray)]
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_order_in_which_trials_end_does_not_matter(strategy: Strategy, goal: Any) -> None:
    studies = []
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 0, 4, 1, 2]):
        study = tw.create_study(MIXED, strategy=strategy, goal=goal, seed=1)
        trials = [study.ask() for _ in range(6)]
        for i in order:
            value, cost = smooth(i, trials[i])
            study.tell(trials[i], value=value, cost=cost)
        study.ask()
        studies.append(study)
    assert timeless(studies[0].trials) == timeless(studies[1].trials)


# ---- never the same twice, as long as there is something new ----


def test_a_finite_space_is_searched_through_before_anything_repeats(
    general: Strategy, goal: Any
) -> None:
    study = play(general, lambda i, t: (float(i % 3), 1.0 + i), 8, space=SMALL, goal=goal)
    assert all_different(study)


def test_an_exhausted_space_repeats_what_was_tried_least(general: Strategy, goal: Any) -> None:
    study = play(general, lambda i, t: (float(i % 3), 1.0 + i), 20, space=SMALL, goal=goal)
    assert sorted(Counter(configs(study)).values()) == [2] * 4 + [3] * 4


def test_failed_and_running_trials_count_as_tried(general: Strategy) -> None:
    study = tw.create_study(SMALL, strategy=general, seed=0)
    for i in range(8):
        trial = study.ask()
        if i % 3 == 0:
            study.fail(trial)
        elif i % 3 == 1:
            study.tell(trial, value=float(i), cost=1.0)
    assert all_different(study)


def test_added_and_enqueued_points_are_not_proposed_again(general: Strategy) -> None:
    study = tw.create_study(SMALL, strategy=general, seed=0)
    study.add({"kernel": "linear", "flag": True}, value=1.0, cost=1.0)
    study.enqueue({"kernel": "linear", "flag": False})
    for _ in range(7):
        study.tell(study.ask(), value=1.0, cost=1.0)
    assert all_different(study)


def test_eight_trials_asked_at_once_are_all_different(strategy: Strategy, goal: Any) -> None:
    study = play(strategy, smooth, 5, goal=goal)
    for _ in range(8):
        study.ask()
    assert all_different(study)


def test_trials_asked_while_nothing_has_finished_are_all_different(
    strategy: Strategy, goal: Any
) -> None:
    study = tw.create_study(MIXED, strategy=strategy, goal=goal, seed=0)
    for _ in range(12):
        study.ask()
    assert all_different(study)


# ---- only what the space allows ----


@pytest.mark.parametrize("name", STRATEGIES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), seed=st.integers(0, 2**32), data=st.data())
def test_every_proposal_is_a_configuration_of_the_space(
    name: str, space: tw.Space, seed: int, data: st.DataObject
) -> None:
    goal = data.draw(st.sampled_from(list(GOALS.values())))
    study = tw.create_study(space, strategy=STRATEGIES[name], goal=goal, seed=seed)
    ends = data.draw(st.lists(st.sampled_from("tttfr"), min_size=7, max_size=7))
    for i, end in enumerate(ends):
        trial = study.ask()
        assert space.validate(trial.params) == trial.params
        if end == "t":
            study.tell(trial, value=float(i % 3), cost=1.0 + i)
        elif end == "f":
            study.fail(trial)


@pytest.mark.parametrize(
    "parameter",
    [
        tw.Float(0, 1),
        tw.Float(1e-300, 1e300, log=True),
        tw.Int(-5, 5),
        tw.Int(1, 2**40, log=True),
        tw.Categorical(["a", "b", None]),
        tw.Ordinal([1, 10, 100]),
        tw.Bool(),
        tw.TrainSize(),
    ],
    ids=repr,
)
def test_a_space_of_one_parameter_can_be_searched(general: Strategy, parameter: Any) -> None:
    space = tw.Space({"only": parameter})
    study = play(general, lambda i, t: (float(i % 3), 1.0 + i), 7, space=space)
    assert len(set(configs(study))) == min(7, parameter.cells or 7)


def test_a_space_of_one_configuration_can_be_searched(general: Strategy, goal: Any) -> None:
    space = tw.Space({"only": tw.Categorical(["this"])})
    study = play(general, lambda i, t: (float(i), 1.0), 7, space=space, goal=goal)
    assert set(configs(study)) == {(("only", "this"),)}


# ---- histories that say little ----


def test_when_everything_fails_new_points_are_tried(strategy: Strategy, goal: Any) -> None:
    assert all_different(play(strategy, lambda i, t: None, 8, goal=goal))


def test_one_success_among_failures_is_enough_to_go_on(general: Strategy, goal: Any) -> None:
    study = play(general, lambda i, t: (1.0, 2.0) if i == 4 else None, 8, goal=goal)
    assert all_different(study)
    assert study.best.number == study.recommend().trial.number == 4  # type: ignore[union-attr]


def test_one_observation_among_running_trials_is_enough_to_go_on(
    strategy: Strategy, goal: Any
) -> None:
    study = tw.create_study(MIXED, strategy=strategy, goal=goal, seed=0)
    for _ in range(5):
        study.ask()
    study.tell(2, value=1.0, cost=1.0)
    for _ in range(3):
        study.ask()
    assert all_different(study)
    assert sum(t.state is State.RUNNING for t in study.trials) == 7


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda i, t: (1.0, 1.0 + i), id="constant-quality"),
        pytest.param(lambda i, t: (0.0, 0.0), id="all-zero"),
        pytest.param(lambda i, t: (float(i % 3), 5.0), id="equal-costs"),
        pytest.param(lambda i, t: (float(i % 3), 0.0), id="free"),
        pytest.param(lambda i, t: (float(i % 3), float(i % 2)), id="some-free"),
        pytest.param(lambda i, t: (5e299 * (i % 3), 2e298 * (1 + i)), id="huge"),
        pytest.param(lambda i, t: (-(10.0 ** (30 * (i % 4))), 1.0 + i), id="decades"),
        pytest.param(lambda i, t: (float(i % 3), 10.0 ** (5 * i - 20)), id="costs-in-decades"),
        pytest.param(lambda i, t: (1.0 + 1e-15 * (i % 3), 1.0), id="nearly-constant"),
    ],
)
def test_odd_outcomes_do_not_stop_the_search(strategy: Strategy, goal: Any, answer: Answer) -> None:
    assert all_different(play(strategy, answer, 8, goal=goal))


# ---- trials without costs ----


@pytest.mark.parametrize("reference", [None, 2.0])
def test_a_tradeoff_is_searched_by_quality_until_a_cost_is_known(
    strategy: Strategy, reference: float | None
) -> None:
    by_tradeoff, by_quality = (
        proposals_without_costs(strategy, goal)
        for goal in (tw.Tradeoff(alpha=0.3, reference=reference), QUALITY)
    )
    np.testing.assert_array_equal(by_tradeoff, by_quality)


def proposals_without_costs(strategy: Strategy, goal: Any) -> Array:
    """What a strategy proposes after 12 trials of which no cost is known."""
    state = StudyState(MIXED, seed=0, maximize=True)
    rows = MIXED.sample(12, rng=np.random.default_rng(0))
    for number, config in enumerate(MIXED.decode(rows)):
        value = float(abs(np.log10(config["C"])))  # type: ignore[arg-type]
        proposed = Proposed(number, config, Origin.DESIGN, seen=0)
        state.apply([Claimed(number), proposed, Finished(number, Outcome(value))])
    history = Proposer(state).history(12)
    return strategy.propose(MIXED, goal, history, rng=proposal_rng(0, 12)).row


# ---- recommending ----


def test_what_is_recommended_has_finished(general: Strategy, goal: Any) -> None:
    study = play(general, lambda i, t: smooth(i, t) if i % 2 else None, 6, goal=goal)
    advice = study.recommend()
    assert advice.trial in study.trials
    assert advice.trial is not None
    assert advice.trial.finished


def test_a_settled_goal_stays_settled(strategy: Strategy) -> None:
    empty = Proposer(StudyState(MIXED, seed=0, maximize=True)).history(0)
    goal = tw.Tradeoff(alpha=0.3, reference=7.0)
    assert strategy.settle(goal, empty) == goal
