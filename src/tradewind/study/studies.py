"""Creating, loading, listing, renaming, deleting and importing studies."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Never, TypeAlias

from tradewind import checks, recipes, seeds
from tradewind.engine import plan
from tradewind.engine.session import Session
from tradewind.engine.spool import warn_of_spooled
from tradewind.errors import FormatError, NoSuchStudy, StorageError, StudyDiffers, StudyExists
from tradewind.goals import Goal, Quality
from tradewind.goals.text import AnyGoal, metric_name, read_goal
from tradewind.html import Listed
from tradewind.log.bulk import paused_gc
from tradewind.log.events import Configured, Created
from tradewind.log.log import Log, Store
from tradewind.log.state import StudyState
from tradewind.log.stores import open_store
from tradewind.optimizer.strategies.strategy import Strategy
from tradewind.output import logger as _logger
from tradewind.space import Space
from tradewind.study import words
from tradewind.study.study import Study
from tradewind.study.tables import iso_time, read_study
from tradewind.types import State

Storage: TypeAlias = "str | os.PathLike[str] | Store | None"

_ADVICE = {  # for keywords of other tools
    "study_name": 'write name="my study"',
    "sampler": 'write strategy="auto", strategy="random" or an object of tradewind.strategies',
    "pruner": "use trial.folds in the objective, which ends a cross-validation that is behind",
    "directions": 'write direction="maximize" for the quality; the cost is always minimized, and '
    "goal=tw.Tradeoff(alpha=0.3) weighs the two",
}


def create_study(
    space: Space | Mapping[str, Any],
    *,
    goal: AnyGoal | None = None,
    strategy: Strategy | Literal["auto", "random"] | None = None,
    direction: Literal["maximize", "minimize"] = "maximize",
    seed: int | None = None,
    cost: str | None = None,
    metric: str | None = None,
    storage: Storage = None,
    name: str = "study",
    load_if_exists: bool = False,
    **unknown: Never,
) -> Study:
    """Create a study of `space`: a `Space`, or a dictionary that `Space.from_dict` reads.

    `goal` is an object such as `BestUnder("10min")`, or text as on the command line, such as
    "under:10min"; the default is `Quality()`. `strategy` is "auto" by default. `direction` says
    whether the objective returns a quality or a loss. The same `seed` and the same outcomes give
    the same trials; without a seed, one is drawn and shown as `study.seed`.

    `cost` says what a training costs: "wall" (seconds, the default), "cpu" (CPU seconds), "gpu"
    (seconds, with an error if no GPU is in use), "memory" (peak bytes), or the name of a cost that
    the objective returns in {"value": ..., "costs": {"money": 3.2}}.

    `metric` names the quality in tables, figures and sentences: "accuracy", or "log loss" with
    direction="minimize".

    `storage` is where the study is kept: a path (SQLite) or `postgresql://…`. By default it is what
    the environment variable TRADEWIND_STORAGE says, or else the memory of this process. With
    `load_if_exists`, an existing study of this `name` is continued. Its space, direction, seed,
    cost and metric must be the same, but a study without a metric may get one. If `goal` or
    `strategy` is given, the study continues with it.

    >>> study = tw.create_study({"depth": (1, 8), "kernel": ["linear", "poly"]}, seed=0)
    >>> stored = tw.create_study(
    ...     tw.Space({"depth": tw.Int(1, 8)}),
    ...     goal=tw.Tradeoff(alpha=0.1, reference=60.0),
    ...     direction="minimize",
    ...     storage="runs.db",
    ...     name="reviews",
    ...     load_if_exists=True,
    ... )
    """
    if unknown:
        raise checks.unknown_keyword(create_study, unknown, _ADVICE)
    space = _space_of(space)
    maximize = checks.one_of("direction", direction, ("maximize", "minimize")) == "maximize"
    used_goal = Quality() if goal is None else read_goal(goal)
    used_strategy = strategy_of("auto" if strategy is None else strategy)
    metric = checks.or_none(metric_name, "metric", metric)
    used_seed = secrets.randbits(31) if seed is None else checks.whole("seed", seed)
    created = Created(
        space=space.to_dict(),
        goal=plan.encode(used_goal),
        strategy=plan.encode(used_strategy),
        maximize=maximize,
        seed=used_seed,
        at=time.time(),
        data_seed=seeds.data_seed(used_seed),
        cost="wall" if cost is None else checks.cost_name("cost", cost),
        per_training=True,
        metric=metric,
    )
    used_strategy.suits(space)
    store = open_store(storage)
    try:
        log = store.create(name, created)
    except StudyExists:
        if not load_if_exists:
            raise
        log = store.open(name)
        state = StudyState.read(log)
        _check_same(name, state, space, maximize=maximize, seed=seed, cost=cost, metric=metric)
        wanted = None if goal is None else used_goal
        study = _open(log, state, name, wanted, None if strategy is None else used_strategy)
        if metric is not None and state.metric is None:
            study._session.record(lambda _: (None, [Configured(metric=metric)]))
        return study
    session = Session(log, StudyState.of([created]), goal=used_goal, strategy=used_strategy)
    return Study(session, name=name)


def load_study(
    storage: Storage = None,
    name: str | None = None,
    *,
    space: Space | Mapping[str, Any] | None = None,
    strategy: Strategy | Literal["auto", "random"] | None = None,
    goal: AnyGoal | None = None,
    **unknown: Never,
) -> Study:
    """Load a study from a store. If the store has only one, `name` may be left out.

    If `goal` or `strategy` is given, the study continues with it. A strategy of your own is not in
    the store and must be given again. A `space` is only compared with the stored one.

    >>> made = tw.create_study(space, storage="runs.db", name="reviews")
    >>> study = tw.load_study("runs.db", "reviews")
    >>> len(study.trials)
    0
    """
    if unknown:
        raise checks.unknown_keyword(load_study, unknown, _ADVICE)
    store = _existing(storage)
    if name is None:
        names = store.names()
        if not names:
            raise _nothing_in(store)
        if len(names) > 1:
            listed = ", ".join(map(repr, names))
            raise NoSuchStudy(f"which study? Give name=: {store!r} has {listed}")
        name = names[0]
    with _listing_names(store, name):
        log = store.open(name)
    state = StudyState.read(log)
    if space is not None:
        _check_same(name, state, _space_of(space), maximize=state.sign > 0)
    wanted = None if goal is None else read_goal(goal)
    return _open(log, state, name, wanted, None if strategy is None else strategy_of(strategy))


def strategy_of(given: Strategy | str) -> Strategy:
    """The strategy with this name, "auto" or "random"; a strategy is returned as it is."""
    if not isinstance(given, str):
        return checks.strategy(given)
    checks.one_of("strategy", given, ("auto", "random"))
    return recipes.auto() if given == "auto" else recipes.random_search()


def _space_of(given: Space | Mapping[str, Any]) -> Space:
    if not isinstance(given, Mapping):
        raise TypeError(
            f"space must be a Space or a dict that Space.from_dict reads, but got {given!r}"
        )
    return given if isinstance(given, Space) else Space.from_dict(given)


def _open(
    log: Log, state: StudyState, name: str, goal: Goal | None, strategy: Strategy | None
) -> Study:
    """The study in a log. A new goal or strategy is written with the next trial, not before, so
    that looking at a study changes nothing."""
    used_goal, used_strategy = _parts(state, goal, strategy)
    session = Session(log, state, goal=used_goal, strategy=used_strategy)
    warn_of_spooled(session)
    return Study(session, name=name)


def replaced_goal(study: Study, unit: str) -> str | None:
    """The stored goal in words, with costs in this unit, if the study is going to write another
    one."""
    session = study._session
    stored = session.state.goal
    if session.plan.data[0] == stored:
        return None
    missing = plan.must_be_supplied(stored)
    if missing:
        return missing[0]
    was = plan.decode(stored)
    return None if was == session.plan.goal else words.goal_in_words(was, unit, study.metric)


def _parts(
    state: StudyState, goal: Goal | None, strategy: Strategy | None
) -> tuple[Goal, Strategy]:
    """The goal and the strategy to continue with: those given, or else the stored ones."""
    used_goal = _decode(state.goal, "goal", read_goal) if goal is None else goal
    used_strategy = strategy
    if used_strategy is None:
        used_strategy = _decode(state.strategy, "strategy", checks.strategy)
    used_strategy.suits(state.space)
    return used_goal, used_strategy


def _decode(data: Mapping[str, Any], what: str, check: Callable[[Any], Any]) -> Any:
    missing = plan.must_be_supplied(data)
    if missing:
        raise StorageError(
            f"the {what} of this study uses your own {missing[0]}, which is not in the store: "
            f"give {what}= again" + (', or strategy="auto" to look at it' * (what == "strategy"))
        )
    try:
        return check(plan.decode(data))
    except TypeError as error:
        raise FormatError(f"the stored {what} of this study is invalid: {error}") from None


def _check_same(
    name: str,
    state: StudyState,
    space: Space,
    *,
    maximize: bool,
    seed: int | None = None,
    cost: str | None = None,
    metric: str | None = None,
) -> None:
    """Refuse to continue a study that is not the one the user describes."""
    stored = state.space
    differences = [
        f"{parameter!r} is {stored.get(parameter, 'missing')} there "
        f"and {space.get(parameter, 'missing')} here"
        for parameter in dict.fromkeys([*stored, *space])
        if stored.get(parameter) != space.get(parameter)
    ]
    if not differences and [*stored] != [*space]:
        differences.append("its parameters are in another order there")
    if stored.forbid != space.forbid:
        differences.append("other combinations are forbidden there")
    if maximize != (state.sign > 0):
        differences.append(f"it is {'minimized' if maximize else 'maximized'} there")
    if seed is not None and checks.whole("seed", seed) != state.seed:
        differences.append(f"its seed is {state.seed} there and {seed} here")
    if cost is not None and cost != state.cost_name:
        differences.append(f"its cost is {state.cost_name!r} there and {cost!r} here")
    if metric is not None and state.metric not in (None, metric):
        differences.append(f"its metric is {state.metric!r} there and {metric!r} here")
    if differences:
        raise StudyDiffers(f"the stored study {name!r} is different: " + "; ".join(differences))


# ---- what is in a store ----


@dataclass(frozen=True)
class StudySummary:
    """A study in a store: its number of trials, in all and by state, and when it was created
    (seconds since 1970).

    >>> made = tw.create_study(space, storage="runs.db", name="reviews")
    >>> summary = tw.list_studies("runs.db")[0]
    >>> summary.name, summary.trials
    ('reviews', 0)
    """

    name: str
    trials: int
    states: Mapping[str, int]
    created: float


def list_studies(storage: Storage = None) -> list[StudySummary]:
    """All studies of a store, oldest first.

    >>> made = tw.create_study(space, storage="runs.db", name="reviews")
    >>> [summary.name for summary in tw.list_studies("runs.db")]
    ['reviews']
    """
    store = _existing(storage)
    summaries = []
    for name in store.names():
        try:
            state = StudyState.read(store.open(name))
        except FormatError as error:
            _logger.warning("the study %r cannot be read: %s", name, error)
            continue
        states = [trial.state for trial in state.trials.values()]
        counts = {kind.value: states.count(kind) for kind in State if kind in states}
        summaries.append(StudySummary(name, len(states), counts, state.created))
    return Listed(summaries, ["study", "trials", "states", "created"], _summary_row)


def _summary_row(it: StudySummary) -> list[str]:
    counts = ", ".join(f"{count} {state}" for state, count in it.states.items())
    return [it.name, str(it.trials), counts, (iso_time(it.created) or "")[:16].replace("T", " ")]


def rename_study(name: str, new: str, *, storage: Storage = None) -> None:
    """Give a study another name. Processes that have it open can continue.

    >>> made = tw.create_study(space, storage="runs.db", name="reviews")
    >>> tw.rename_study("reviews", "reviews 2026", storage="runs.db")
    >>> tw.list_studies("runs.db")[0].name
    'reviews 2026'
    """
    store = _existing(storage)
    with _listing_names(store, name):
        store.rename(name, new)


def delete_study(name: str, *, storage: Storage = None) -> None:
    """Delete a study and all its trials from a store.

    >>> made = tw.create_study(space, storage="runs.db", name="reviews")
    >>> tw.delete_study("reviews", storage="runs.db")
    >>> len(tw.list_studies("runs.db"))
    0
    """
    store = _existing(storage)
    with _listing_names(store, name):
        store.delete(name)


def import_study(
    path: str | os.PathLike[str],
    *,
    storage: Storage = None,
    name: str | None = None,
    strategy: Strategy | Literal["auto", "random"] | None = None,
    goal: AnyGoal | None = None,
) -> Study:
    """Import a study from a `.jsonl` file that `study.export` wrote. Its name is that of the file
    unless you give another. The study is imported completely or not at all.

    >>> study.export("reviews.jsonl")
    >>> copy = tw.import_study("reviews.jsonl", storage="runs.db")
    >>> copy.name, len(copy.trials)
    ('reviews', 8)
    """
    name = Path(path).stem if name is None else name
    wanted = None if goal is None else read_goal(goal)
    given = None if strategy is None else strategy_of(strategy)
    with paused_gc():
        created, events, state = read_study(path)
        _parts(state, wanted, given)  # fails if a part must be supplied
        log = open_store(storage).create(name, created, events)
    return _open(log, state, name, wanted, given)


def _nothing_in(store: Store) -> NoSuchStudy:
    """The error for a store without studies, which may be a file that does not exist."""
    from tradewind.log.sqlite import SqliteStore  # studies in memory do not need it

    if isinstance(store, SqliteStore) and not os.path.exists(store.file.path):
        return NoSuchStudy(f"there is no file {store.file.path}")
    return NoSuchStudy(f"{store!r} has no studies")


@contextmanager
def _listing_names(store: Store, name: str) -> Iterator[None]:
    """Say which studies the store has, and which is nearest, if `name` is not among them."""
    try:
        yield
    except NoSuchStudy as error:
        names = store.names()
        listed = f"; it has {', '.join(map(repr, names))}" if names else ""
        raise NoSuchStudy(f"{error}{checks.suggest(name, names)}{listed}") from None


def _existing(storage: Storage) -> Store:
    if storage is None and not os.environ.get("TRADEWIND_STORAGE"):
        raise StorageError("which store? Give storage=, or set TRADEWIND_STORAGE")
    return open_store(storage)
