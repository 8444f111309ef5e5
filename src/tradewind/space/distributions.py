"""Spaces as scikit-learn writes them: lists and distributions by parameter name.

`translate` makes a `Space` of them, and a `Translation` turns a configuration of that space back
into parameters of an estimator. Values that a space cannot hold (tuples, functions, estimators)
are searched by label. A distribution that is not uniform is searched uniformly in its quantiles.
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
from tradewind.space.conditions import number
from tradewind.space.formats import is_range
from tradewind.space.parameters import Categorical, Float, Int, Ordinal, Parameter
from tradewind.space.scales import key
from tradewind.space.space import Space

_TAIL = 0.001  # the part of a distribution left out at each end, which may be infinite
_MOST_LISTED = 10_000  # the most values of a discrete distribution that are enumerated
_SAMPLE = 500  # draws from a distribution without quantiles
_LONGEST = 100  # characters of a label

Back: TypeAlias = Callable[[Any], Any]  # from a value in the space to the user's value


@dataclass(frozen=True)
class Translation:
    """A space, and how to turn its configurations into parameters of an estimator.

    `meanings` has the estimator's name of a parameter and the function for its values, if they
    differ. `fixed` has the parameters with a single value. If the space joins several sub-spaces,
    the parameter `branch` is the index of the sub-space, and each has its entry in `fixed`."""

    space: Space
    meanings: Mapping[str, tuple[str, Back | None]] = field(default_factory=dict)
    fixed: tuple[Mapping[str, Any], ...] = ({},)
    branch: str | None = None

    def within(self, space: Space) -> Translation:
        """The same translation for a larger space, which has all parameters of this one."""
        return replace(self, space=space)

    def params(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of an estimator, from a configuration of the space."""
        params = dict(self.fixed[0 if self.branch is None else config[self.branch]])
        for name, value in config.items():
            if name not in (self.branch, self.space.size_name):
                outside, back = self.meanings.get(name, (name, None))
                params[outside] = value if back is None else back(value)
        return params


def translate(given: Any) -> Translation:
    """A space from a `Space`, a mapping that `Space.from_dict` reads, a mapping from names to lists
    and distributions as for `RandomizedSearchCV`, or a list of such mappings.

    | form                                | parameter                                       |
    |-------------------------------------|-------------------------------------------------|
    | ascending or descending numbers     | `Ordinal`                                       |
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
        return _translate_one(given)
    if isinstance(given, Sequence) and given and all(isinstance(d, Mapping) for d in given):
        return _translate_one(given[0]) if len(given) == 1 else _translate_several(given)
    raise TypeError(
        "a space is a Space, a mapping from names of parameters to lists, distributions or "
        f"parameters, or a list of such mappings, but got {given!r}"
    )


@dataclass(frozen=True)
class _Entry:
    """One parameter: its form for `Space.from_dict`, or its only value."""

    form: Any = None
    back: Back | None = None
    only: tuple[Any, ...] = ()


def _translate_one(given: Mapping[str, Any]) -> Translation:
    if isinstance(given.get("format"), (int, float)):
        return Translation(Space.from_dict(given))  # from `Space.to_dict`
    entries = {name: _read_at(name, form) for name, form in given.items()}
    # A space needs at least one parameter, and conditions may refer to one with a single value.
    conditional = any(isinstance(e.form, Mapping) or _has_when(e.form) for e in entries.values())
    drop = not conditional and not all(entry.only for entry in entries.values())
    fixed = {name: entry.only[0] for name, entry in entries.items() if entry.only and drop}
    searched = {name: _as_choice(entry) for name, entry in entries.items() if name not in fixed}
    meanings = {name: (name, entry.back) for name, entry in searched.items() if entry.back}
    space = Space.from_dict({name: entry.form for name, entry in searched.items()})
    return Translation(space, meanings, (fixed,))


def _has_when(form: Any) -> bool:
    return bool(getattr(form, "when", None))


def _as_choice(entry: _Entry) -> _Entry:
    """An entry with a single value becomes a choice of one."""
    return _read_choices(list(entry.only), single=True) if entry.only else entry


def _translate_several(given: Sequence[Mapping[str, Any]]) -> Translation:
    """One space that joins several. One parameter says which sub-space is used, and the others
    depend on it. Sub-spaces that have an equal parameter share it."""
    taken = {name for one in given for name in one}
    branch = unused("subspace", taken)
    fixed: list[dict[str, Any]] = [{} for _ in given]
    found: list[tuple[str, Parameter, Back | None, list[int]]] = []
    for i, one in enumerate(given):
        for name, form in one.items():
            entry = _read_at(name, form)
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
    candidates = itertools.chain([name], (f"{name}#{i}" for i in itertools.count(2)))
    return next(candidate for candidate in candidates if candidate not in names)


def _read_at(name: Any, form: Any) -> _Entry:
    """The entry for `form`; errors begin with `name`."""
    try:
        return _read_entry(form)
    except (SpaceError, TypeError, ValueError) as error:
        raise SpaceError(f"{name!r}: {error}") from error


def _read_entry(form: Any) -> _Entry:
    if callable(getattr(form, "rvs", None)):
        return _read_distribution(form.freeze() if hasattr(form, "freeze") else form)
    if is_range(form) or not _is_list(form):
        return _Entry(form)
    return _read_choices(form.tolist() if getattr(form, "ndim", 0) == 1 else list(form))


def _is_list(form: Any) -> bool:
    if isinstance(form, (str, bytes, Mapping)):
        return False
    return isinstance(form, Sequence) or hasattr(form, "tolist")  # arrays, series


# ---- lists ----


def _read_choices(values: list[Any], *, single: bool = False) -> _Entry:
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
    """Whether values differ for an estimator but not for a space, as `max_features` 1 and 1.0."""
    return len({(type(v), v) for v in values}) > len({key(v) for v in values})


def _are_numbers(values: list[Any]) -> bool:
    return all(number(value) is not None for value in values)


def _is_plain(value: Any) -> bool:
    """Whether a space can hold the value."""
    return value is None or isinstance(value, (str, bool)) or number(value) is not None


@dataclass(frozen=True)
class _Lookup:
    """From labels to values."""

    values: Mapping[str, Any]

    def __call__(self, label: str) -> Any:
        return self.values[label]


def _labels(values: list[Any]) -> list[str]:
    """Distinct texts that are the same in another process, so that a study can continue there."""
    labels: list[str] = []
    for value in values:
        labels.append(unused(_label(value), labels))
    return labels


def _label(value: Any) -> str:
    name = getattr(value, "__qualname__", None)
    if isinstance(name, str):  # a function or a class
        return f"{getattr(value, '__module__', '')}.{name}"[-_LONGEST:]
    text = " ".join(repr(value).split())
    if " at 0x" in text:  # an address in memory, which changes
        return type(value).__qualname__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


# ---- distributions ----


def _read_distribution(frozen: Any) -> _Entry:
    """A frozen distribution of SciPy, or any object with `rvs`, which is sampled."""
    kind = getattr(getattr(frozen, "dist", None), "name", "")
    if not hasattr(frozen, "ppf"):
        return _read_sample(frozen)
    low, high = map(float, frozen.support())
    if math.isnan(low) or math.isnan(high):
        raise SpaceError(f"a distribution must have valid arguments, but those of {kind!r} are not")
    if hasattr(frozen.dist, "pmf"):
        return _read_discrete(frozen, low, high)
    if low == high:
        return _Entry(only=(low,))
    if kind == "uniform":
        return _Entry(Float(low, high))
    # A shifted one is no longer uniform in the logarithm.
    if kind in ("loguniform", "reciprocal") and math.isclose(frozen.median() ** 2, low * high):
        return _Entry(Float(low, high, log=True))
    return _Entry(Float(_TAIL, 1.0 - _TAIL), _Quantile(frozen))


@dataclass(frozen=True)
class _Quantile:
    """From quantiles to the values of a continuous distribution."""

    frozen: Any

    def __call__(self, u: float) -> float:
        return float(self.frozen.ppf(u))


def _read_discrete(frozen: Any, low: float, high: float) -> _Entry:
    values = getattr(frozen.dist, "xk", None)
    if values is not None and (min(values), max(values)) == (low, high):
        return _read_choices(sorted(v for v in values.tolist() if frozen.pmf(v) > 0))
    first = int(low if math.isfinite(low) else frozen.ppf(_TAIL))
    last = int(high if math.isfinite(high) else frozen.ppf(1.0 - _TAIL))
    if last - first < _MOST_LISTED:
        possible = np.arange(first, last + 1)
        possible = possible[frozen.pmf(possible) > 0]
        first, last = int(possible[0]), int(possible[-1])
        if first == last or len(possible) < last - first + 1:
            return _read_choices(possible.tolist())
    return _Entry(Int(first, last))


def _read_sample(distribution: Any) -> _Entry:
    """The quantiles of a sample, or its values if they are few or not numbers."""
    rng = np.random.RandomState(0)
    sample = [unpacked(distribution.rvs(random_state=rng)) for _ in range(_SAMPLE)]
    if _are_numbers(sample):
        sample.sort()
        if len(set(sample)) > _SAMPLE // 10:
            return _Entry(Float(0.0, 1.0), _SampleQuantile(tuple(sample)))
        return _read_choices(sample)
    return _read_choices(list({_label(value): value for value in sample}.values()))


@dataclass(frozen=True)
class _SampleQuantile:
    """From quantiles to the values of a sorted sample."""

    values: tuple[float, ...]

    def __call__(self, u: float) -> float:
        return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
