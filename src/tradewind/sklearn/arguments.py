"""The arguments of a search, checked when it is fitted, as scikit-learn's convention has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from tradewind import checks
from tradewind.checks import flag, is_whole, real, unpacked, whole
from tradewind.goals import Goal, Quality
from tradewind.optimizer.strategies.fidelity import MultiFidelity
from tradewind.optimizer.strategies.staged import Staged
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.space import Space, TrainSize
from tradewind.space.distributions import Translation, translate, unused
from tradewind.study.studies import strategy_of as named_strategy

_CARRIED = 3  # from stage to stage, as in W15


def check_all(search: Any) -> None:
    """Everything whose type can be told at once; the rest is checked where it is used."""
    if not callable(getattr(search.estimator, "fit", None)) or isinstance(search.estimator, type):
        raise TypeError(f"estimator must be an estimator, but got {search.estimator!r}")
    if search.n_iter is None:
        if search.timeout is None and search.max_cost is None:
            raise ValueError("a search needs an end: give n_iter, timeout or max_cost")
    else:
        whole("n_iter", search.n_iter, 1)
    if search.n_jobs is not None and not is_whole(search.n_jobs):
        raise ValueError(f"n_jobs must be a whole number or None, but got {search.n_jobs!r}")
    if not isinstance(unpacked(search.refit), (bool, str)) and not callable(search.refit):
        raise TypeError(
            f"refit must be True, False, the name of a metric or a function, but got "
            f"{search.refit!r}"
        )
    if not isinstance(unpacked(search.verbose), bool):
        whole("verbose", search.verbose)
    flag("return_train_score", search.return_train_score)
    _check_error_score(search.error_score)
    _check_scoring(search.scoring)
    if search.racing is not None and not 0 < real(search.racing) < 1:
        raise ValueError(f"racing must be in (0, 1) or None, but got {search.racing!r}")
    checks.limit("timeout", search.timeout)
    checks.limit("max_cost", search.max_cost)
    if search.name is not None and not isinstance(search.name, str):
        raise TypeError(f"name must be a text or None, but got {search.name!r}")


def _check_error_score(given: Any) -> None:
    number = isinstance(given, Real) and not isinstance(given, bool)
    if not number and not (isinstance(given, str) and given == "raise"):
        raise ValueError(f"error_score must be 'raise' or a number, but got {given!r}")


def _check_scoring(given: Any) -> None:
    if given is None or isinstance(given, (str, list, tuple, Mapping)) or callable(given):
        return
    raise TypeError(
        "scoring must be the name of a metric, a function, several of them in a list, tuple or "
        f"dict, or None, but got {given!r}"
    )


def goal_of(search: Any) -> Goal:
    return Quality() if search.goal is None else checks.goal(search.goal)


def space_of(search: Any) -> Translation:
    """What is searched: the space, with the training size where that is to be chosen, too."""
    translation = translate(search.space)
    if search.train_sizes is None:
        return translation
    space = translation.space
    if search.stages is not None:
        raise ValueError(
            "train_sizes and stages both say how much data to train with: give one of them"
        )
    if space.size_name is not None:
        raise ValueError(
            f"the space has the training size {space.size_name!r} already: leave it out, or "
            "train_sizes"
        )
    sizes = search.train_sizes
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Iterable):
        raise TypeError(f"train_sizes must be a list of fractions, but got {sizes!r}")
    size = {unused("train_size", space): TrainSize(sizes)}
    return translation.within(Space({**space, **size}, forbid=space.forbid))


def strategy_of(search: Any, goal: Goal, space: Space) -> Strategy:
    """Who proposes. Without costs to weigh, small training sizes are there to learn from."""
    by = search.strategy
    if isinstance(search.stages, Staged):
        if by != "auto":
            raise ValueError(f"stages have a strategy of their own, but got strategy={by!r}, too")
        return search.stages
    if search.stages is not None:
        return _staged(search.stages, search.n_iter, named_strategy(by))
    if by == "auto" and len(space.columns.fractions) > 1 and isinstance(goal, Quality):
        return MultiFidelity()
    return named_strategy(by)


def _staged(stages: Any, n_iter: int | None, inner: Strategy) -> Staged:
    if isinstance(stages, (str, bytes)) or not isinstance(stages, Iterable):
        raise TypeError(f"stages must be a list of fractions or a Staged, but got {stages!r}")
    fractions = tuple(stages)
    if n_iter is None:
        raise ValueError("stages share n_iter: give one, or a Staged with trials for each stage")
    each = n_iter // max(len(fractions), 1)
    if each < 1:
        raise ValueError(
            f"n_iter must allow for a trial in each of {len(fractions)} stages, but got {n_iter}"
        )
    return Staged(inner, fractions, trials=each, carried=min(_CARRIED, each))
