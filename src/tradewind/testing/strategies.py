"""What every strategy must do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tradewind.engine.propose import Proposer
from tradewind.goals import Goal, Tradeoff
from tradewind.log.events import Claimed, Finished, Proposed
from tradewind.log.state import StudyState
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.seeds import proposal_rng
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Parameter, Space, TrainSize
from tradewind.testing.check import check_all, contract, must
from tradewind.testing.play import (
    MIXED,
    QUALITY,
    Answer,
    configs,
    must_all_differ,
    must_be_the_same,
    play,
    scripted,
    smooth,
    study_of,
)
from tradewind.types import Array, Origin, Outcome, State

GOALS: tuple[Goal, ...] = (QUALITY, Tradeoff(alpha=0.3))
SMALL = Space(  # 2 + 3 * 2 = 8 configurations
    {
        "kernel": Categorical(["linear", "poly"]),
        "degree": Int(2, 4, when={"kernel": "poly"}),
        "flag": Bool(),
    }
)
ALONE: tuple[Parameter, ...] = (
    Float(0, 1),
    Float(1e-300, 1e300, log=True),
    Int(-5, 5),
    Int(1, 2**40, log=True),
    Categorical(["a", "b", None]),
    Ordinal([1, 10, 100]),
    Bool(),
    TrainSize(),
)

# ---- deterministic ----


def the_same_seed_and_outcomes_give_the_same_trials(strategy: Strategy) -> None:
    """The same seed and the same outcomes give the same trials."""
    for goal in GOALS:
        must_be_the_same(*(play(strategy, smooth, 9, goal=goal, seed=3) for _ in range(2)))


def another_seed_gives_other_trials(strategy: Strategy) -> None:
    """Another seed gives other trials."""
    one, other = (configs(play(strategy, smooth, 2, seed=seed)) for seed in (1, 2))
    must(one != other, f"seeds 1 and 2 both gave {one}")


def a_proposal_is_pure_and_its_handover_is_plain_data(strategy: Strategy) -> None:
    """`propose` depends on its arguments alone, changes none of them, and hands over JSON."""
    for goal in GOALS:
        history = _history(goal, strategy)
        before = [array.copy() for array in _arrays(history)]
        first, second = (
            strategy.propose(MIXED, goal, history, rng=proposal_rng(0, 8)) for _ in range(2)
        )
        np.testing.assert_array_equal(first.row, second.row)
        same = vars(first) | {"row": None} == vars(second) | {"row": None}
        must(same, f"{first} is not {second}")
        must(json.loads(json.dumps(first.handover)) == first.handover, "handover is not JSON")
        for a, b in zip(before, _arrays(history), strict=True):
            np.testing.assert_array_equal(a, b)


def _history(goal: Goal, strategy: Strategy) -> Any:
    """What a strategy sees after eight trials, one of them still running."""
    study = study_of(strategy, goal=goal)
    for i in range(8):
        trial = study.ask()
        if i != 5:
            study.tell(trial, value=smooth(i, trial)[0], cost=smooth(i, trial)[1])
    _, history = study._session.snapshot()
    return history


def _arrays(history: Any) -> list[Array]:
    return [array for array in vars(history).values() if isinstance(array, np.ndarray)]


def the_order_in_which_trials_end_does_not_matter(strategy: Strategy) -> None:
    """The order in which trials end does not change what is proposed next."""
    for goal in GOALS:
        studies = []
        for order in ([0, 1, 2, 3, 4, 5], [5, 3, 0, 4, 1, 2]):
            study = study_of(strategy, goal=goal, seed=1)
            trials = [study.ask() for _ in range(6)]
            for i in order:
                value, cost = smooth(i, trials[i])
                study.tell(trials[i], value=value, cost=cost)
            study.ask()
            studies.append(study)
        must_be_the_same(*studies)


# ---- never the same twice, as long as there is something new ----


def a_finite_space_is_searched_through_before_anything_repeats(strategy: Strategy) -> None:
    """A finite space is searched through before a configuration is proposed again."""
    for goal in GOALS:
        must_all_differ(play(strategy, scripted, 8, space=SMALL, goal=goal))


def an_exhausted_space_repeats_what_was_tried_least(strategy: Strategy) -> None:
    """If a finite space is exhausted, the configuration that was tried least is repeated."""
    for goal in GOALS:
        study = play(strategy, scripted, 20, space=SMALL, goal=goal)
        counts = sorted(Counter(configs(study)).values())
        must(counts == [2] * 4 + [3] * 4, f"in 20 trials, the 8 configurations were run {counts}")


def failed_and_running_trials_count_as_tried(strategy: Strategy) -> None:
    """The configurations of failed and running trials are not proposed again."""
    study = study_of(strategy, space=SMALL)
    for i in range(8):
        trial = study.ask()
        if i % 3 == 0:
            study.fail(trial)
        elif i % 3 == 1:
            study.tell(trial, value=float(i), cost=1.0)
    must_all_differ(study)


def added_and_enqueued_points_are_not_proposed_again(strategy: Strategy) -> None:
    """Configurations that were added or enqueued are not proposed again."""
    study = study_of(strategy, space=SMALL)
    study.add({"kernel": "linear", "flag": True}, value=1.0, cost=1.0)
    study.enqueue({"kernel": "linear", "flag": False})
    for _ in range(7):
        study.tell(study.ask(), value=1.0, cost=1.0)
    must_all_differ(study)


def eight_trials_asked_at_once_are_all_different(strategy: Strategy) -> None:
    """Eight trials that are proposed at once are all different."""
    for goal in GOALS:
        study = play(strategy, smooth, 5, goal=goal)
        for _ in range(8):
            study.ask()
        must_all_differ(study)


def trials_asked_while_nothing_has_finished_are_all_different(strategy: Strategy) -> None:
    """Trials that are proposed while nothing has finished are all different."""
    for goal in GOALS:
        study = study_of(strategy, goal=goal)
        for _ in range(12):
            study.ask()
        must_all_differ(study)


# ---- only what the space allows ----


def every_proposal_is_a_configuration_of_the_space(strategy: Strategy) -> None:
    """Every proposal is a configuration of the space, whatever became of the trials before it."""
    for seed, space in enumerate((MIXED, SMALL)):
        for goal in GOALS:
            proposals_are_valid(strategy, space, goal, seed=seed, ends="tftrtft")


def proposals_are_valid(
    strategy: Strategy, space: Space, goal: Goal, *, seed: int, ends: Iterable[str]
) -> None:
    """Trials end as told (t), failed (f) or not at all (r)."""
    study = study_of(strategy, space=space, goal=goal, seed=seed)
    for i, end in enumerate(ends):
        trial = study.ask()
        must(space.validate(trial.params) == trial.params, f"{dict(trial.params)} is none")
        if end == "t":
            study.tell(trial, value=float(i % 3), cost=1.0 + i)
        elif end == "f":
            study.fail(trial)


def a_space_of_one_parameter_can_be_searched(strategy: Strategy) -> None:
    """A space of one parameter of any kind can be searched."""
    for parameter in ALONE:
        study = play(strategy, scripted, 7, space=Space({"only": parameter}))
        tried, wanted = len(set(configs(study))), min(7, parameter.cells or 7)
        must(tried == wanted, f"of {parameter}, {tried} values were tried in 7 trials")


def a_space_of_one_configuration_can_be_searched(strategy: Strategy) -> None:
    """A space of one configuration can be searched."""
    space = Space({"only": Categorical(["this"])})
    for goal in GOALS:
        study = play(strategy, lambda i, t: (float(i), 1.0), 7, space=space, goal=goal)
        must(set(configs(study)) == {(("only", "this"),)}, f"it proposed {set(configs(study))}")


# ---- histories that say little ----


def when_everything_fails_new_points_are_tried(strategy: Strategy) -> None:
    """If all trials fail, new configurations are tried."""
    for goal in GOALS:
        must_all_differ(play(strategy, lambda i, t: None, 8, goal=goal))


def one_success_among_failures_is_enough_to_go_on(strategy: Strategy) -> None:
    """One success among failures is enough to go on, and it is recommended."""
    for goal in GOALS:
        study = play(strategy, lambda i, t: (1.0, 2.0) if i == 4 else None, 8, goal=goal)
        must_all_differ(study)
        advice = study.recommend().trial
        number = None if advice is None else advice.number
        must(study.best.number == number == 4, f"trial {number} is recommended, not trial 4")


def one_observation_among_running_trials_is_enough_to_go_on(strategy: Strategy) -> None:
    """One result among running trials is enough to go on."""
    for goal in GOALS:
        study = study_of(strategy, goal=goal)
        for _ in range(5):
            study.ask()
        study.tell(2, value=1.0, cost=1.0)
        for _ in range(3):
            study.ask()
        must_all_differ(study)
        running = sum(t.state is State.RUNNING for t in study.trials)
        must(running == 7, f"{running} trials run, not 7")


ODD: dict[str, Answer] = {
    "constant quality": lambda i, t: (1.0, 1.0 + i),
    "all zero": lambda i, t: (0.0, 0.0),
    "equal costs": lambda i, t: (float(i % 3), 5.0),
    "free": lambda i, t: (float(i % 3), 0.0),
    "some free": lambda i, t: (float(i % 3), float(i % 2)),
    "huge": lambda i, t: (5e299 * (i % 3), 2e298 * (1 + i)),
    "decades": lambda i, t: (-(10.0 ** (30 * (i % 4))), 1.0 + i),
    "costs in decades": lambda i, t: (float(i % 3), 10.0 ** (5 * i - 20)),
    "nearly constant": lambda i, t: (1.0 + 1e-15 * (i % 3), 1.0),
}


def odd_outcomes_do_not_stop_the_search(strategy: Strategy) -> None:
    """Constant, huge, tiny and zero values and costs do not stop the search."""
    for answer in ODD.values():
        for goal in GOALS:
            must_all_differ(play(strategy, answer, 8, goal=goal))


# ---- costs and recommendations ----


def a_tradeoff_is_searched_by_quality_until_a_cost_is_known(strategy: Strategy) -> None:
    """As long as no cost is known, a trade-off is searched like quality alone."""
    by_quality = _proposal_without_costs(strategy, QUALITY)
    for reference in (None, 2.0):
        goal = Tradeoff(alpha=0.3, reference=reference)
        np.testing.assert_array_equal(_proposal_without_costs(strategy, goal), by_quality)


def _proposal_without_costs(strategy: Strategy, goal: Goal) -> Array:
    """What a strategy proposes after 12 trials of which no cost is known."""
    state = StudyState(MIXED, seed=0, maximize=True)
    rows = MIXED.sample(12, rng=np.random.default_rng(0))
    for number, config in enumerate(MIXED.decode(rows)):
        value = float(abs(np.log10(config["C"])))  # type: ignore[arg-type]
        proposed = Proposed(number, config, Origin.DESIGN, seen=0)
        state.apply([Claimed(number), proposed, Finished(number, Outcome(value))])
    history = Proposer(state).history(12)
    return strategy.propose(MIXED, goal, history, rng=proposal_rng(0, 12)).row


def what_is_recommended_has_finished(strategy: Strategy) -> None:
    """The recommended trial is a finished trial of the study."""
    for goal in GOALS:
        study = play(strategy, lambda i, t: smooth(i, t) if i % 2 else None, 6, goal=goal)
        trial = study.recommend().trial
        must(trial in study.trials and trial is not None and trial.finished, f"it is {trial}")


def a_settled_goal_stays_settled(strategy: Strategy) -> None:
    """`settle` returns a goal that has a reference as it is."""
    empty = Proposer(StudyState(MIXED, seed=0, maximize=True)).history(0)
    goal = Tradeoff(alpha=0.3, reference=7.0)
    must(strategy.settle(goal, empty) == goal, f"it became {strategy.settle(goal, empty)!r}")


STRATEGY = contract(
    the_same_seed_and_outcomes_give_the_same_trials,
    another_seed_gives_other_trials,
    a_proposal_is_pure_and_its_handover_is_plain_data,
    the_order_in_which_trials_end_does_not_matter,
    eight_trials_asked_at_once_are_all_different,
    trials_asked_while_nothing_has_finished_are_all_different,
    when_everything_fails_new_points_are_tried,
    one_observation_among_running_trials_is_enough_to_go_on,
    odd_outcomes_do_not_stop_the_search,
    a_tradeoff_is_searched_by_quality_until_a_cost_is_known,
    a_settled_goal_stays_settled,
)
# for strategies that search any space, and recommend a trial that was run
GENERAL = contract(
    a_finite_space_is_searched_through_before_anything_repeats,
    an_exhausted_space_repeats_what_was_tried_least,
    failed_and_running_trials_count_as_tried,
    added_and_enqueued_points_are_not_proposed_again,
    every_proposal_is_a_configuration_of_the_space,
    a_space_of_one_parameter_can_be_searched,
    a_space_of_one_configuration_can_be_searched,
    one_success_among_failures_is_enough_to_go_on,
    what_is_recommended_has_finished,
)


def check_strategy(make: Callable[[], Strategy], *, sized: bool = False) -> None:
    """Check that a strategy keeps its contract. `make` makes one.

    With `sized=True`, the strategy needs a space with a `TrainSize`: other spaces are not checked.
    Raises an AssertionError that names the first rule that is broken.

    >>> tw.testing.check_strategy(tw.strategies.RandomSearch)
    """
    check_all(STRATEGY if sized else (*STRATEGY, *GENERAL), make)
