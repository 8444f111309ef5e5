"""The arguments of a search. They are checked in `fit`, as scikit-learn's convention demands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from tradewind import checks
from tradewind.goals import Goal, Quality
from tradewind.goals.text import read_goal
from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.optimizer.strategies.staged import Staged
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.space import Space, TrainSize
from tradewind.space.distributions import Translation, translate, unused
from tradewind.study.studies import strategy_of

_CARRIED = 3  # configurations carried from stage to stage, as in W15


def check_arguments(search: Any) -> None:
    """Check the arguments that can be checked on their own. The others are checked on use."""
    checks.has_methods("estimator", search.estimator, ("fit",), "SVC()")
    if search.n_iter is None:
        if search.timeout is None and search.max_cost is None:
            raise ValueError("a search needs a limit: give n_iter, timeout or max_cost")
    else:
        checks.whole("n_iter", search.n_iter, 1)
    if search.n_jobs is not None and not checks.is_whole(search.n_jobs):
        raise ValueError(f"n_jobs must be a whole number or None, but got {search.n_jobs!r}")
    if not isinstance(checks.unpacked(search.refit), (bool, str)) and not callable(search.refit):
        raise TypeError(
            f"refit must be True, False, the name of a metric or a function, but got "
            f"{search.refit!r}"
        )
    if not isinstance(checks.unpacked(search.verbose), bool):
        checks.whole("verbose", search.verbose)
    checks.flag("return_train_score", search.return_train_score)
    _check_error_score(search.error_score)
    _check_scoring(search.scoring)
    checks.or_none(checks.probability, "racing", search.racing)
    checks.limit("timeout", checks.seconds("timeout", search.timeout))
    checks.limit("max_cost", search.max_cost)
    if search.name is not None:
        checks.study_name(search.name)


def _check_error_score(given: Any) -> None:
    is_number = isinstance(given, Real) and not isinstance(given, bool)  # NaN is allowed
    if not is_number and not (isinstance(given, str) and given == "raise"):
        raise ValueError(f"error_score must be 'raise' or a number, but got {given!r}")


def _check_scoring(given: Any) -> None:
    if given is None or isinstance(given, (str, list, tuple, Mapping)) or callable(given):
        return
    raise TypeError(
        "scoring must be the name of a metric, a function, several of them in a list, tuple or "
        f"dict, or None, but got {given!r}"
    )


def choose_goal(search: Any) -> Goal:
    return Quality() if search.goal is None else read_goal(search.goal)


def build_space(search: Any) -> Translation:
    """The space to search. With `train_sizes`, the training size is one more parameter."""
    if (search.space is None) == (search.param_distributions is None):
        got = "neither" if search.space is None else "both"
        raise TypeError(f"give either space or param_distributions, but got {got}")
    translation = translate(search.param_distributions if search.space is None else search.space)
    if search.train_sizes is None:
        return translation
    space = translation.space
    if search.stages is not None:
        raise ValueError(
            "train_sizes and stages both say how much data to train with: give one of them"
        )
    if space.size_name is not None:
        raise ValueError(
            f"the space already has the training size {space.size_name!r}: leave it out of the "
            "space, or leave out train_sizes"
        )
    sizes = search.train_sizes
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):
        raise TypeError(f"train_sizes must be a list of fractions, but got {sizes!r}")
    size = {unused("train_size", space): TrainSize(sizes)}
    return translation.within(Space({**space, **size}, forbid=space.forbid))


def choose_strategy(search: Any, goal: Goal, space: Space) -> Strategy:
    """The strategy that proposes candidates. If the goal ignores cost, "auto" uses small training
    sizes only to learn about large ones."""
    given = search.strategy
    if isinstance(search.stages, Staged):
        if given != "auto":
            raise ValueError(
                f"a Staged has its own strategy, but got strategy={given!r} as well: leave it out"
            )
        return search.stages
    if search.stages is not None:
        return _build_stages(search.stages, search.n_iter, strategy_of(given))
    if given == "auto" and len(space.columns.fractions) > 1 and isinstance(goal, Quality):
        limited = search.timeout is not None or search.max_cost is not None
        # n_iter counts a small or cheap candidate like any other. With the gain per cost, a search
        # that it alone limits would spend its candidates on cheap corners of the space.
        return MultiFidelity() if limited else MultiFidelity(cost_power=0.0)
    return strategy_of(given)


def _build_stages(stages: Any, n_iter: int | None, inner: Strategy) -> Staged:
    if isinstance(stages, (str, bytes)) or not isinstance(stages, Iterable):
        raise TypeError(f"stages must be a list of fractions or a Staged, but got {stages!r}")
    fractions = tuple(stages)
    if n_iter is None:
        raise ValueError(
            "stages share n_iter: give n_iter, or a Staged with the trials of each stage"
        )
    each = n_iter // max(len(fractions), 1)
    if each < 1:
        raise ValueError(
            f"n_iter must allow one trial in each of the {len(fractions)} stages, but got {n_iter}"
        )
    return Staged(inner, fractions, trials=each, carried=min(_CARRIED, each))
