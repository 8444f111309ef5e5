"""Random spaces for property tests, here and elsewhere: `from tests.space.generate import spaces`.

Spaces have conditions several levels deep, forbidden combinations, odd names and values, and
children declared before their parents.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

from tradewind.errors import SpaceError
from tradewind.space import (
    Bool,
    Categorical,
    Condition,
    Float,
    Int,
    OneOf,
    Ordinal,
    Parameter,
    Space,
    TrainSize,
    at_least,
)
from tradewind.space.scales import key

ODD_NAMES = (
    "a.b",
    "model__C",
    "naïve λ",
    "new\nline",
    " ",
    "0",
    "type",
    "when",
    "format",
    "\ud800",
)

# The same examples in every run, and no clock: a property holds or it does not.
property_test = settings(
    derandomize=True,
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow],
)

names = st.one_of(st.sampled_from(ODD_NAMES), st.text(min_size=1, max_size=5))
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
)


@st.composite
def floats(draw: st.DrawFn, when: Any = None) -> Float:
    log = draw(st.booleans())
    edge = st.one_of(
        st.sampled_from([1e-4, 1e-3, 0.5, 1.0, 1e3]),
        st.floats(1e-300, 1e300) if log else st.floats(-1e300, 1e300),
        st.floats(0.1, 10.0),
    )
    low, high = sorted([draw(edge), draw(edge)])
    try:
        return Float(low, high, log=log, when=when)
    except SpaceError:  # the two are the same, perhaps only on the log scale
        return Float(1.0, 2.0, log=log, when=when)


@st.composite
def ints(draw: st.DrawFn, when: Any = None) -> Int:
    if draw(st.booleans()):
        low = draw(st.one_of(st.integers(1, 9), st.integers(1, 2**40 - 1)))
        high = low + draw(st.one_of(st.integers(1, 9), st.integers(1, 2**40)))
        return Int(low, min(high, 2**40), log=True, when=when)
    low = draw(st.one_of(st.integers(-9, 9), st.integers(-(2**70), 2**70)))
    span = draw(st.one_of(st.integers(1, 9), st.integers(1, 2**50 - 1)))
    return Int(low, low + span, when=when)


@st.composite
def grids(draw: st.DrawFn, when: Any = None) -> Float | Int:
    """A `Float` or an `Int` with a step."""
    n = draw(st.one_of(st.integers(1, 9), st.integers(1, 10**6)))
    if draw(st.booleans()):
        low, step = draw(st.integers(-(10**9), 10**9)), draw(st.integers(1, 1000))
        return Int(low, low + n * step, step=step, when=when)
    size = draw(st.sampled_from([0.1, 0.25, 1 / 3, 1.0, 7.0, 1e-3, 1e5]))
    begin = draw(st.sampled_from([0.0, 0.1, -1.0, 1e3])) * size
    return Float(begin, begin + n * size, step=size, when=when)


def resolution(p: Float) -> float:
    """How far a coordinate may be from that of its decoded value: 12 digits, where there are."""
    if p.log:
        return max(2e-11, 1e-10 / math.log(p.high / p.low)) if p.high / p.low < 1e300 else 2e-11
    return max(2e-11, 1e-13 * max(abs(p.low), abs(p.high)) / (p.high - p.low))


def choices(kind: type[Categorical] | type[Ordinal]) -> Callable[..., st.SearchStrategy[Any]]:
    listed = st.lists(values, min_size=1, max_size=6, unique_by=key)
    return lambda when=None: listed.map(lambda given: kind(given, when=when))


def bools(when: Any = None) -> st.SearchStrategy[Bool]:
    return st.just(Bool(when=when))


def train_sizes() -> st.SearchStrategy[TrainSize]:
    fractions = st.floats(0, 1, exclude_min=True)
    return st.lists(fractions, min_size=1, max_size=5, unique=True).map(
        lambda given: TrainSize(sorted(given))
    )


KINDS = (floats, ints, grids, choices(Categorical), choices(Ordinal), bools)


def parameters(when: Any = None) -> st.SearchStrategy[Any]:
    """A parameter of any kind but `TrainSize`."""
    return st.one_of([kind(when=when) for kind in KINDS])


@st.composite
def conditions_on(draw: st.DrawFn, parameter: Parameter) -> Condition:
    """A condition that some value of the parameter meets."""
    if isinstance(parameter, Float) and parameter.step is None:
        return at_least(draw(st.floats(parameter.low, parameter.high)))
    if isinstance(parameter, (Float, Int)):
        inside = st.floats(0, 1).map(parameter.from_unit)
        if draw(st.booleans()):
            return at_least(draw(inside))
        return OneOf(tuple(draw(st.lists(inside, min_size=1, max_size=3))))
    assert isinstance(parameter, (Categorical, Ordinal, Bool, TrainSize))
    return OneOf(tuple(draw(st.lists(st.sampled_from(parameter.choices), min_size=1, max_size=3))))


@st.composite
def clauses(draw: st.DrawFn, declared: dict[str, Any], *, most: int = 2) -> dict[str, Condition]:
    chosen = draw(
        st.lists(st.sampled_from(sorted(declared)), min_size=1, max_size=most, unique=True)
    )
    return {name: draw(conditions_on(declared[name])) for name in chosen}


@st.composite
def spaces(
    draw: st.DrawFn, *, max_parameters: int = 6, conditional: bool = True, forbidding: bool = True
) -> Space:
    """A space of 1 to `max_parameters` parameters in which something is allowed."""
    declared: dict[str, Any] = {}
    for name in draw(st.lists(names, min_size=1, max_size=max_parameters, unique=True)):
        when = draw(clauses(declared)) if conditional and declared and draw(st.booleans()) else None
        declared[name] = draw(parameters(when))
    if draw(st.booleans()):
        declared["train_size"] = draw(train_sizes())
    order = draw(st.permutations(list(declared)))
    space = Space({name: declared[name] for name in order})
    if not forbidding or draw(st.booleans()):
        return space
    sampled = space.decode(space.sample(20, rng=np.random.default_rng(0)))
    forbid = []
    for clause in draw(st.lists(clauses(declared, most=3), max_size=3)):
        kept = [c for c in sampled if not matches(clause, c)]
        if kept:  # what stays allowed is likely enough to be sampled
            sampled, forbid = kept, [*forbid, clause]
    try:
        return Space(space, forbid=forbid)
    except SpaceError:
        assume(False)
        raise


def matches(clause: dict[str, Condition], config: dict[str, Any]) -> bool:
    return all(name in config and c.holds(config[name]) for name, c in clause.items())


seeds = st.integers(0, 2**32 - 1)


@st.composite
def spaces_and_rows(draw: st.DrawFn, *, n: int = 8, **options: Any) -> tuple[Space, Any]:
    """A space and n points of its cube, some coordinates at the ends, some missing."""
    space = draw(spaces(**options))
    rng = np.random.default_rng(draw(seeds))
    U = rng.random((n, len(space)))
    odd = rng.random(U.shape)
    U[odd < 0.1], U[odd > 0.9] = 0.0, 1.0
    U[(odd > 0.1) & (odd < 0.15)] = np.nan
    return space, U
