"""The run file: TOML -> what to search, with which goal and limits. It may hold anything.

Every error says the file, the line and the key, and names the nearest key that exists.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.amounts import size
from tradewind.checks import seconds, suggest
from tradewind.cli.exits import NotThere, UsageFault
from tradewind.paths import open_file
from tradewind.plain import shown

if TYPE_CHECKING:
    from tradewind.goals import Goal
    from tradewind.space import Space

FILE = "tradewind.toml"
STORAGE = "study.db"  # if the run file names none

_LARGEST, _LONGEST_LINE = 1 << 18, 4000  # bytes, characters: more takes a parser too long
_ANY = 2**63 - 1
_MANY_DOTS = 100  # in one line: a key with very many parts takes a parser too long

Reader = Callable[[Any], Any]


# ---- what a value may be ----


def _text(given: Any) -> Any:
    if not isinstance(given, str) or not given.strip() or "\0" in given:
        raise ValueError(f"must be text, but got {shown(given)}")
    return given


def _whole(least: int, most: int = _ANY) -> Reader:
    def read(given: Any) -> Any:
        if type(given) is not int or not least <= given <= most:
            bound = f"≥ {least}" if most == _ANY else f"from {least} to {most}"
            raise ValueError(f"must be a whole number {bound}, but got {shown(given)}")
        return given

    return read


def _positive(given: Any) -> Any:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < 1e300:
        raise ValueError(f"must be a number > 0, but got {shown(given)}")
    return float(given)


def _duration(given: Any) -> Any:
    return _positive(seconds("it", given))


def _size(given: Any) -> Any:
    """Bytes, or text such as "2GB"."""
    return _positive(size("it", given))


def _metric(given: Any) -> str:
    from tradewind.goals.text import metric_name

    return metric_name("it", given)


def _choice(*words: str) -> Reader:
    def read(given: Any) -> Any:
        if given not in words or not isinstance(given, str):
            listed = ", ".join(map(repr, words))
            raise ValueError(
                f"must be one of {listed}, but got {shown(given)}{suggest(given, words)}"
            )
        return given

    return read


def _command(given: Any) -> Any:
    listed = isinstance(given, list) and all(isinstance(part, str) for part in given)
    if not given or not (isinstance(given, str) or listed):
        raise ValueError(f"must be text or a list of texts, but got {shown(given)}")
    return given


def _variables(given: Any) -> Any:
    if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
        raise ValueError(f"must be a table of texts, but got {shown(given)}")
    return given


def _gpus(given: Any) -> Any:
    ok = type(given) is int and given >= 1
    ok = ok or (
        isinstance(given, list) and all(type(i) is int or isinstance(i, str) for i in given)
    )
    if not ok:
        raise ValueError(f"must be how many GPUs, or a list of them, but got {shown(given)}")
    return given


def _anything(given: Any) -> Any:
    return given


STRATEGIES = ("auto", "random", "wang2020", "mip_ego")

_TABLES: dict[str, dict[str, Reader]] = {
    "study": {
        "name": _text,
        "storage": _text,
        "goal": _anything,
        "direction": _choice("maximize", "minimize"),
        "cost": _text,
        "metric": _metric,
        "seed": _whole(0),
        "strategy": _choice(*STRATEGIES),
    },
    "objective": {
        "function": _text,
        "command": _command,
        "params": _choice("arguments", "environment", "file"),
        "result": _choice("output", "file"),
        "cwd": _text,
        "env": _variables,
    },
    "limits": {
        "trials": _whole(1),
        "timeout": _duration,
        "max_cost": _positive,
        "trial_timeout": _duration,
        "trial_memory": _size,
        "max_retries": _whole(0, 1000),
    },
    "workers": {"count": _whole(1, 4096), "gpus": _gpus, "slots_per_gpu": _whole(1, 64)},
}
_TOP = (*_TABLES, "space", "forbid")


@dataclass(frozen=True)
class RunFile:
    """What a run file says. `folder` is where it is: relative paths begin there."""

    path: Path
    space: Space
    goal: Goal | None
    doubts: tuple[str, ...] = ()  # what may be meant otherwise
    study: Mapping[str, Any] = field(default_factory=dict)
    objective: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    workers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.path.resolve().parent

    @property
    def name(self) -> str:
        return str(self.study.get("name", "study"))

    @property
    def storage(self) -> str:
        return storage_of(self.path, self.study)


def storage_of(path: Path, study: Mapping[str, Any]) -> str:
    """Where the study of a run file is kept. Paths are relative to the file."""
    import os

    folder = path.resolve().parent
    text = str(study.get("storage") or os.environ.get("TRADEWIND_STORAGE") or STORAGE)
    scheme, rest = "sqlite:///", ""
    if text.startswith(scheme):
        rest = text.removeprefix(scheme)
        return text if rest.startswith("/") else f"{scheme}{folder}/{rest}"
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", text):
        return text
    return str(folder / text)


# ---- reading ----


def read_run_file(path: Path) -> RunFile:
    """The settings in a run file. `UsageFault` says what is wrong, and where."""
    source = _Source.read(path)
    tables = {name: source.table(name) for name in _TABLES}
    if not (len({"function", "command"} & tables["objective"].keys()) == 1):
        raise source.fault(
            ("objective",),
            'the objective is a function = "module:function" or a command = "program …", and '
            f"the table [objective] has {listed_keys(tables['objective'])}",
        )
    goal = tables["study"].get("goal")
    return RunFile(
        path,
        source.space(),
        None if goal is None else source.at(("study", "goal"), _read_goal, goal),
        tuple(_doubts(source.data["space"])),
        *tables.values(),
    )


def _doubts(space: Mapping[str, Any]) -> Iterator[str]:
    """Lists of two numbers are choices, but people write ranges so."""
    for name, given in space.items():
        if not isinstance(given, list) or len(given) != 2:
            continue
        low, high = given
        if {*map(type, given)} <= {int, float} and low < high:
            kind = "int" if {*map(type, given)} == {int} else "float"
            yield (
                f"{name} is a choice between {low} and {high}; for all between them, write "
                f'{name} = {{ type = "{kind}", low = {low}, high = {high} }}'
            )


def read_study_table(path: Path) -> Mapping[str, Any]:
    """The table [study] of a run file: where its study is."""
    return _Source.read(path).table("study")


def listed_keys(table: Mapping[str, Any]) -> str:
    return " and ".join(sorted(table)) or "neither"


def _read_goal(given: Any) -> Goal:
    from tradewind.goals.text import parse_goal

    return parse_goal(given)


@dataclass(frozen=True)
class _Source:
    """A parsed file, with its text to find lines in."""

    path: Path
    text: str
    data: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> _Source:
        text = _read_text(path)
        try:
            data = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise UsageFault(f"{path} cannot be read as TOML: {reason}") from None
        source = cls(path, text, data)
        for key in data:
            if key not in _TOP:
                owner = next((n for n, keys in _TABLES.items() if key in keys), None)
                hint = f" (it belongs into [{owner}])" if owner else suggest(key, _TOP)
                raise source.fault(
                    (key,), f"there is no {key!r}{hint}: a run file has {', '.join(_TOP)}"
                )
        return source

    def table(self, name: str) -> dict[str, Any]:
        """One table, with its values checked."""
        given, readers = self.data.get(name, {}), _TABLES[name]
        if not isinstance(given, dict):
            raise self.fault((name,), f"[{name}] must be a table, but got {shown(given)}")
        for key in given:
            if key not in readers:
                raise self.fault(
                    (name, key),
                    f"[{name}] has no key {shown(key)}{suggest(key, readers)}: it takes "
                    f"{', '.join(readers)}",
                )
        return {k: self.at((name, k), readers[k], value) for k, value in given.items()}

    def space(self) -> Space:
        from tradewind.errors import SpaceError
        from tradewind.space import Space

        given, forbid = self.data.get("space"), self.data.get("forbid", [])
        if not isinstance(given, dict) or not given:
            raise self.fault(
                ("space",),
                "the table [space] must have the parameters, such as "
                'C = { type = "float", low = 1e-4, high = 1e3, log = true }',
            )
        try:
            space = Space.from_dict(given)
            return Space.from_dict({**space.to_dict(), "forbid": forbid}) if forbid else space
        except (SpaceError, ValueError, TypeError, OverflowError, RecursionError) as error:
            named = re.match(r"'([^']+)'", str(error))
            place = ("space", named[1]) if named and named[1] in given else ("space",)
            raise self.fault(place, f"[space] {error}") from None

    def at(self, place: tuple[str, ...], read: Reader, value: Any) -> Any:
        try:
            return read(value)
        except (ValueError, TypeError, OverflowError) as error:
            said = str(error).removeprefix("it ")
            text = (
                said if said.startswith(("a goal", "the goal", "only")) else f"{place[-1]} {said}"
            )
            raise self.fault(place, text) from None

    def fault(self, place: tuple[str, ...], text: str) -> UsageFault:
        line = find_line(self.text, place)
        where = f"{self.path}, line {line}" if line else f"{self.path}"
        return UsageFault(f"{where}: {text}")


def _read_text(path: Path) -> str:
    try:
        with open_file(path) as file:
            raw = file.read(_LARGEST + 1)
        text = raw.decode("utf-8-sig")  # some editors begin a file with a mark
    except FileNotFoundError:
        there = (
            sorted(p.name for p in path.parent.glob("*.toml"))[:5] if path.parent.is_dir() else []
        )
        verb = "is" if len(there) == 1 else "are"
        hint = f"; there {verb} {', '.join(there)}" if there else "; `tradewind init` writes one"
        raise NotThere(f"there is no file {path}{hint}") from None
    except OSError as error:
        raise UsageFault(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageFault(f"{path} cannot be read as TOML: it is not UTF-8 text") from None
    if len(raw) > _LARGEST:
        raise UsageFault(f"a run file may have {_LARGEST} bytes, but {path} has more")
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > _LONGEST_LINE or line.count(".") > _MANY_DOTS:
            raise UsageFault(
                f"{path}, line {number}: a line may have {_LONGEST_LINE} characters and "
                f"{_MANY_DOTS} dots; split a long list into several lines"
            )
    return text


def find_line(text: str, place: tuple[str, ...]) -> int | None:
    """The line where a key is set, or its table begins; None if it cannot be told."""
    table: tuple[str, ...] = ()
    nearest: tuple[int, int | None] = (0, None)
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[\[?([^\]]*)\]", line)
        if header:
            table = _parts(header[1])
            here = table
        elif "=" in line:
            here = (*table, *_parts(line.partition("=")[0]))
        else:
            continue
        common = 0
        while common < min(len(here), len(place)) and here[common] == place[common]:
            common += 1
        if common == min(len(here), len(place)) and common > nearest[0]:
            nearest = (common, number)
    return nearest[1]


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in key.split("."))
