"""scikit-learn's way to write a space: lists and distributions, by the names of parameters.

`translate` makes a `Space` of them, and knows the way back: what a configuration of that space
means to an estimator. Values that no space can hold (tuples, functions, estimators) have labels
in it, and a distribution of another shape than uniform is searched evenly in its quantiles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from tradewind.checks import unpacked
from tradewind.errors import SpaceError
from tradewind.space.conditions import key, number
from tradewind.space.parameters import Categorical, Float, Int, Ordinal, Parameter
from tradewind.space.space import Space

_TAIL = 0.001  # of a distribution that is left out at either end: it may be infinite there
_MOST_LISTED = 10_000  # values of a discrete distribution that are looked at one by one
_DRAWN = 500  # values of a distribution that can only be drawn from
_LONGEST = 100  # characters of a label

Back: TypeAlias = Callable[[Any], Any]  # from the value in the space to the user's own


@dataclass(frozen=True)
class Translation:
    """A space, and what its configurations mean outside of it.

    `meanings` has, for the parameters that need it, their name outside and the way back of their
    values; `fixed` what every configuration has besides, or that of each sub-space, of which
    the parameter `branch` is the number."""

    space: Space
    meanings: Mapping[str, tuple[str, Back | None]] = field(default_factory=dict)
    fixed: tuple[Mapping[str, Any], ...] = ({},)
    branch: str | None = None

    def within(self, space: Space) -> Translation:
        """The same for a space that has this one's parameters and more."""
        return replace(self, space=space)

    def params(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of an estimator that a configuration stands for."""
        params = dict(self.fixed[0 if self.branch is None else config[self.branch]])
        for name, value in config.items():
            if name not in (self.branch, self.space.size_name):
                outside, back = self.meanings.get(name, (name, None))
                params[outside] = value if back is None else back(value)
        return params


def translate(given: Any) -> Translation:
    """The space that is meant: a `Space`, a mapping that `Space.from_dict` reads, a mapping from
    names to lists and distributions as `RandomizedSearchCV` takes it, or a list of these.

    | form                                | parameter                                       |
    |-------------------------------------|-------------------------------------------------|
    | numbers that grow or fall           | `Ordinal`                                       |
    | any other list or array             | `Categorical`                                   |
    | `uniform`, `loguniform`             | `Float`, on a log scale for the latter          |
    | `randint`, other discrete ones      | `Int`, or `Ordinal` if there are gaps           |
    | other distributions                 | `Float`, the quantile; a thousandth is left out |
    |                                     | at either end                                   |
    | a tuple `(low, high)`, and whatever | as in `Space.from_dict`                         |
    | else it reads                       |                                                 |
    """
    if isinstance(given, Space):
        return Translation(given)
    if isinstance(given, Mapping):
        return _one(given)
    if isinstance(given, Sequence) and given and all(isinstance(d, Mapping) for d in given):
        return _one(given[0]) if len(given) == 1 else _several(given)
    raise TypeError(
        "a space is a Space, a mapping from names of parameters to lists, distributions or "
        f"parameters, or a list of such mappings, but got {given!r}"
    )


@dataclass(frozen=True)
class _Entry:
    """What is written for one parameter: its form in a space, or the only value that it has."""

    form: Any = None
    back: Back | None = None
    only: tuple[Any, ...] = ()


def _one(given: Mapping[str, Any]) -> Translation:
    if isinstance(given.get("format"), (int, float)):
        return Translation(Space.from_dict(given))  # what `Space.to_dict` wrote
    entries = {name: _named(name, form) for name, form in given.items()}
    # Some parameter there must be, and conditions may refer to one that has a single value.
    conditional = any(isinstance(e.form, Mapping) or _when(e.form) for e in entries.values())
    drop = not conditional and not all(entry.only for entry in entries.values())
    fixed = {name: entry.only[0] for name, entry in entries.items() if entry.only and drop}
    kept = {name: _kept(entry) for name, entry in entries.items() if name not in fixed}
    meanings = {name: (name, entry.back) for name, entry in kept.items() if entry.back}
    space = Space.from_dict({name: entry.form for name, entry in kept.items()})
    return Translation(space, meanings, (fixed,))


def _when(form: Any) -> bool:
    return bool(getattr(form, "when", None))


def _kept(entry: _Entry) -> _Entry:
    """An entry with a single value as a choice of one."""
    return _choices(list(entry.only), single=True) if entry.only else entry


def _several(given: Sequence[Mapping[str, Any]]) -> Translation:
    """One space of several: a parameter says which, and the others depend on it. What is the same
    in some of them is the same parameter."""
    taken = {name for one in given for name in one}
    branch = unused("subspace", taken)
    fixed: list[dict[str, Any]] = [{} for _ in given]
    found: list[tuple[str, Parameter, Back | None, list[int]]] = []
    for i, one in enumerate(given):
        for name, form in one.items():
            entry = _named(name, form)
            if entry.only:
                fixed[i][name] = entry.only[0]
                continue
            parameter = Space.from_dict({name: entry.form})[name]
            for other, same, back, branches in found:
                if (other, same, back, entry.back) == (name, parameter, None, None):
                    branches.append(i)
                    break
            else:
                found.append((name, parameter, entry.back, [i]))
    parameters: dict[str, Parameter] = {branch: Categorical(range(len(given)))}
    meanings: dict[str, tuple[str, Back | None]] = {}
    for name, parameter, back, branches in found:
        inside = unused(name, parameters)
        everywhere = len(branches) == len(given)
        when = {} if everywhere else {branch: branches}
        parameters[inside] = parameter if everywhere else replace(parameter, when=when)  # type: ignore[type-var]
        meanings[inside] = (name, back)
    return Translation(Space(parameters), meanings, tuple(fixed), branch)


def unused(name: str, taken: Iterable[str]) -> str:
    """`name`, or the first of `name#2`, `name#3`, … that is not taken."""
    names = set(taken)
    numbered = (f"{name}#{i}" for i in itertools.count(2))
    return next(free for free in itertools.chain([name], numbered) if free not in names)


def _named(name: Any, form: Any) -> _Entry:
    try:
        return _entry(form)
    except (SpaceError, TypeError, ValueError) as error:
        raise SpaceError(f"{name!r}: {error}") from error


def _entry(form: Any) -> _Entry:
    if callable(getattr(form, "rvs", None)):
        return _distribution(form.freeze() if hasattr(form, "freeze") else form)
    if _is_range(form) or not _is_list(form):
        return _Entry(form)
    return _choices(form.tolist() if getattr(form, "ndim", 0) == 1 else list(form))


def _is_list(form: Any) -> bool:
    if isinstance(form, (str, bytes, Mapping)):
        return False
    return isinstance(form, Sequence) or hasattr(form, "tolist")  # arrays, series


def _is_range(form: Any) -> bool:
    """Whether `Space.from_dict` reads it as one: `(low, high)` or `[low, high, "log"]`."""
    if not isinstance(form, (list, tuple)) or len(form) not in (2, 3):
        return False
    if any(number(end) is None for end in form[:2]):
        return False
    if len(form) == 2:
        return isinstance(form, tuple)
    return isinstance(form[2], str) and form[2] == "log"


# ---- lists ----


def _choices(values: list[Any], *, single: bool = False) -> _Entry:
    if not values:
        raise SpaceError("a list needs at least one value, but got an empty one")
    values = [unpacked(value) for value in values]
    if not all(map(_is_plain, values)) or _are_lookalikes(values):
        if len(values) == 1 and not single:
            return _Entry(only=(values[0],))
        labels = _labels(values)
        return _Entry(Categorical(labels), _Lookup(dict(zip(labels, values, strict=True))))
    distinct = list({key(value): value for value in values}.values())
    if len(distinct) == 1 and not single:
        return _Entry(only=(distinct[0],))
    steps = np.diff(distinct) if _are_numbers(distinct) else np.zeros(1)
    ordered = bool((steps > 0).all() or (steps < 0).all())
    return _Entry((Ordinal if ordered else Categorical)(distinct))


def _are_lookalikes(values: list[Any]) -> bool:
    """Whether some are equal to a space, but not to an estimator: `max_features` of 1 and 1.0."""
    return len({(type(v), v) for v in values}) > len({key(v) for v in values})


def _are_numbers(values: list[Any]) -> bool:
    return all(number(value) is not None for value in values)


def _is_plain(value: Any) -> bool:
    """Whether a space can hold it."""
    return value is None or isinstance(value, (str, bool)) or number(value) is not None


@dataclass(frozen=True)
class _Lookup:
    """From labels to what they stand for."""

    values: Mapping[str, Any]

    def __call__(self, label: str) -> Any:
        return self.values[label]


def _labels(values: list[Any]) -> list[str]:
    """Distinct texts that are the same in another process, so that a study can go on there."""
    labels: list[str] = []
    for value in values:
        labels.append(unused(_label(value), labels))
    return labels


def _label(value: Any) -> str:
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):  # a function or a class
        return f"{getattr(value, '__module__', '')}.{name}"[-_LONGEST:]
    text = " ".join(repr(value).split())
    if " at 0x" in text:  # where it is in memory says nothing
        return type(value).__qualname__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# ---- distributions ----


def _distribution(frozen: Any) -> _Entry:
    """Of SciPy's frozen distributions; any other object with `rvs` can only be drawn from."""
    kind = getattr(getattr(frozen, "dist", None), "name", "")
    if not hasattr(frozen, "ppf"):
        return _drawn(frozen)
    low, high = map(float, frozen.support())
    if math.isnan(low) or math.isnan(high):
        raise SpaceError(f"a distribution with valid arguments is needed, but got {kind!r}")
    if hasattr(frozen.dist, "pmf"):
        return _discrete(frozen, low, high)
    if low == high:
        return _Entry(only=(low,))
    if kind == "uniform":
        return _Entry(Float(low, high))
    # a shifted one is no longer uniform in the logarithm
    if kind in ("loguniform", "reciprocal") and math.isclose(frozen.median() ** 2, low * high):
        return _Entry(Float(low, high, log=True))
    return _Entry(Float(_TAIL, 1.0 - _TAIL), _Quantile(frozen))


@dataclass(frozen=True)
class _Quantile:
    """From quantiles to the values of a continuous distribution."""

    frozen: Any

    def __call__(self, u: float) -> float:
        return float(self.frozen.ppf(u))


def _discrete(frozen: Any, low: float, high: float) -> _Entry:
    listed = getattr(frozen.dist, "xk", None)
    if listed is not None and (min(listed), max(listed)) == (low, high):
        return _choices(sorted(v for v in listed.tolist() if frozen.pmf(v) > 0))
    first = int(low if math.isfinite(low) else frozen.ppf(_TAIL))
    last = int(high if math.isfinite(high) else frozen.ppf(1.0 - _TAIL))
    if last - first < _MOST_LISTED:
        possible = np.arange(first, last + 1)
        possible = possible[frozen.pmf(possible) > 0]
        first, last = int(possible[0]), int(possible[-1])
        if first == last or len(possible) < last - first + 1:
            return _choices(possible.tolist())
    return _Entry(Int(first, last))


def _drawn(distribution: Any) -> _Entry:
    """By a sample: its quantiles, or its values where they are few or no numbers."""
    rng = np.random.RandomState(0)
    sample = [unpacked(distribution.rvs(random_state=rng)) for _ in range(_DRAWN)]
    if _are_numbers(sample):
        sample.sort()
        if len(set(sample)) > _DRAWN // 10:
            return _Entry(Float(0.0, 1.0), _OfSample(tuple(sample)))
        return _choices(sample)
    return _choices(list({_label(value): value for value in sample}.values()))


@dataclass(frozen=True)
class _OfSample:
    """From quantiles to the values of a sorted sample."""

    values: tuple[float, ...]

    def __call__(self, u: float) -> float:
        return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
