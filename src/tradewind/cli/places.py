"""From what a user writes as STORE to the study they mean. Nothing here creates a file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.checks import suggest
from tradewind.cli.config import FILE, read_study_table, storage_of
from tradewind.cli.exits import NotThere, UsageFault, without_passwords
from tradewind.errors import NoSuchStudy

if TYPE_CHECKING:
    from tradewind.log.log import Store
    from tradewind.study.study import Study

_VARIABLE = "TRADEWIND_STORAGE"
_EXPORTED = ".jsonl"
_SUFFIXES = (".db", ".sqlite", ".sqlite3", _EXPORTED)
_SHOWN = 5  # files or names in an error


@dataclass(frozen=True)
class Place:
    """A store, and the name of the study in it if it is known. `path` is its file, if it is one."""

    storage: str
    name: str | None
    path: Path | None

    def __str__(self) -> str:
        return without_passwords(self.storage)


def find_place(store: str | None, name: str | None) -> Place:
    """The store that was given, or that of TRADEWIND_STORAGE, or that of the run file here. A run
    file stands for its study."""
    text = store or os.environ.get(_VARIABLE)
    if not text:
        if not Path(FILE).is_file():
            raise UsageFault(
                f"which store? Give its path or URL, set {_VARIABLE}, or go to a folder with a "
                f"{FILE} (`tradewind init` writes one){_beside(Path())}"
            )
        text = FILE
    if text.endswith(".toml"):
        table = read_study_table(Path(text))
        own = str(table.get("name", "study"))
        return _of(storage_of(Path(text), table), own if name is None else name)
    return _of(text, name)


def _of(storage: str, name: str | None) -> Place:
    if storage.startswith("sqlite:///"):
        from urllib.parse import unquote

        return Place(storage, name, Path(unquote(storage[10:].partition("?")[0])))
    is_url = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", storage)
    if "=" in storage and not is_url:
        from tradewind.log.stores import refuse_keywords

        refuse_keywords(storage)
    return Place(storage, name, None if is_url else Path(storage))


def check_storable(place: Place) -> None:
    """`UsageFault` if a study stored here would be taken for an exported one."""
    if place.path is not None and place.path.suffix == _EXPORTED:
        raise UsageFault(
            f"a study cannot be stored in {place}: a {_EXPORTED} file is what `tradewind export` "
            "writes. Give a name such as study.db"
        )


def open_existing(place: Place) -> Store:
    """The store at a place. `NotThere` if there is none."""
    from tradewind.log.stores import open_store

    if place.path is not None:
        check_there(place.path)
        if place.path.suffix == _EXPORTED:
            return _in_memory(place)
    return open_store(place.storage)


def check_there(path: Path) -> None:
    """`NotThere` unless this is a file with something in it. SQLite would fill an empty one."""
    try:
        size = path.stat().st_size if not path.is_dir() else None
    except (OSError, ValueError):  # ValueError: NUL in the path
        raise NotThere(f"there is no file {path}{_beside(path.parent, path.name)}") from None
    if size is None:
        raise NotThere(f"{path} is a folder, not a file{_beside(path)}")
    if size == 0:
        raise NotThere(f"{path} is empty: it holds no study")


def _beside(folder: Path, wanted: str = "") -> str:
    """What could be meant, as the end of an error."""
    try:
        there = sorted(p.name for p in folder.iterdir() if p.suffix in _SUFFIXES)
    except OSError:
        return f"; there is no folder {folder}" if wanted else ""
    if not there:
        return f"; there is no study in {folder.resolve()}"
    more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
    near = suggest(wanted, there) if wanted else ""
    return f"{near}; {folder.resolve()} holds {', '.join(there[:_SHOWN])}{more}"


def _in_memory(place: Place) -> Store:
    """An exported study, to look at. It is not changed."""
    from tradewind.log.memory import MemoryStore
    from tradewind.study.studies import import_study

    store = MemoryStore()
    assert place.path is not None
    import_study(place.path, storage=store, strategy=None)
    return store


def open_one(place: Place) -> Study:
    """The study at a place: the one with the name, or the only one."""
    from tradewind.dashboard.stores import open_study

    store = open_existing(place)
    name = place.name
    if name is None:
        names = store.names()
        if not names:
            raise NotThere(f"{place} holds no study")
        if len(names) > 1:
            raise UsageFault(f"which study? Give --name: {place} has {_listed(names)}")
        name = names[0]
    try:
        return open_study(store, name)
    except NoSuchStudy as error:
        names = store.names()
        if name in names:
            raise
        has = f"{suggest(name, names)}; it has {_listed(names)}" if names else ""
        raise NoSuchStudy(f"{place} has no study {name!r}{has}") from error


def open_to_steer(place: Place) -> Study:
    """The study at a place, to change it."""
    if place.path is not None and place.path.suffix == _EXPORTED:
        raise UsageFault(
            f"{place} is an exported study, which can be read only: `tradewind import` makes a "
            "study of it"
        )
    return open_one(place)


def _listed(names: list[str]) -> str:
    some = ", ".join(map(repr, names[: 4 * _SHOWN]))
    return some if len(names) <= 4 * _SHOWN else f"{some} and {len(names) - 4 * _SHOWN} more"
