"""Opening what the dashboard shows: stores that soon say when they cannot be reached, and studies
whose parts may be somebody's own code."""

from __future__ import annotations

import os
import re

from tradewind.engine.plan import must_be_supplied
from tradewind.errors import StorageError
from tradewind.goals import Goal, Quality
from tradewind.log.log import Store
from tradewind.log.memory import MemoryStore
from tradewind.log.state import StudyState
from tradewind.log.stores import VARIABLE, open_store
from tradewind.study.studies import Storage, load_study
from tradewind.study.study import Study

_PATIENCE = 3  # seconds: a page can say that the store is away, and try again


def open_shared(storage: Storage) -> Store:
    """The store that `storage` means, which other processes must be able to use, too."""
    given = os.environ.get(VARIABLE) if storage is None else storage
    if not given:
        raise StorageError(
            "a study in memory can be seen by its own process only: give storage=, a file or a "
            f"database, or set {VARIABLE}"
        )
    if isinstance(given, MemoryStore):
        raise StorageError(
            "a study in memory can be seen by its own process only: create it with storage="
        )
    if isinstance(given, str) and re.match(r"(sqlite|postgres(ql)?):", given.lower()):
        return open_store(_impatient(given))
    if isinstance(given, (str, os.PathLike)):
        open_store(given)  # refuses what is no path
        from tradewind.log.sqlite import SqliteStore

        return SqliteStore(given, patience=_PATIENCE)
    return open_store(given)


def _impatient(url: str) -> str:
    """The URL with our patience, unless it has one."""
    if re.search(r"[?&]patience=", url):
        return url
    return f"{url}{'&' if '?' in url else '?'}patience={_PATIENCE}"


def place(store: Store) -> str:
    """Where a store is, without the password of its database."""
    file, database = getattr(store, "file", None), getattr(store, "database", None)
    where = getattr(file, "path", None) or getattr(database, "where", None)
    return where if isinstance(where, str) else repr(store)


def open_study(store: Store, name: str) -> Study:
    """A study to look at and to steer. Parts that are somebody's own are not in the store: others
    stand in for them here, and are never written."""
    try:
        return load_study(store, name)
    except StorageError:
        state = StudyState.read(store.open(name))
        own_goal = bool(must_be_supplied(state.goal))
        own_strategy = bool(must_be_supplied(state.strategy))
        if not (own_goal or own_strategy):
            raise
    goal: Goal | None = Quality() if own_goal else None
    return load_study(store, name, goal=goal, strategy="auto" if own_strategy else None)
