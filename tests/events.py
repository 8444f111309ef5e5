"""Hypothesis strategies for events: any event that this version can write."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tradewind.log.events import (
    Abandoned,
    Claimed,
    Configured,
    Confirming,
    Created,
    Enqueued,
    Event,
    Failed,
    FinalTested,
    FinalTrained,
    Finished,
    Paused,
    Proposed,
    Requeued,
    Resumed,
    Spent,
    Started,
    Stopped,
    Unknown,
)
from tradewind.types import Origin, Outcome, Usage


def _joined(text: str) -> str:
    """Surrogates that form a pair as their character: JSON cannot tell the two apart."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


texts = st.text(st.characters(exclude_categories=())).map(_joined)
reals = st.floats(allow_nan=False, allow_infinity=False)
results = st.floats(-1e300, 1e300)
costs = st.floats(0.0, 1e297)  # such that a thousand trainings stay below 1e300
wholes = st.integers(0, 2**70)
integers = st.integers() | st.integers(-(10**400), 10**400)
scalars = st.none() | st.booleans() | integers | reals | texts
params = st.dictionaries(texts, scalars, max_size=5)
data = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
mappings = st.dictionaries(texts, data, max_size=4)
outcomes = st.builds(
    Outcome,
    results,
    st.none() | costs,
    st.lists(results, max_size=5).map(lambda folds: tuple(folds)),
    st.just(True),
    st.floats(1e-3, 1.0),
    st.dictionaries(texts, costs, max_size=3),
    mappings,
    st.integers(1, 1000),
) | st.builds(Outcome, results, st.none() | costs, raced=st.booleans())
usages = st.none() | st.builds(
    *(Usage, results, st.none() | results, results, texts, st.none() | results, texts),
    data=st.none() | texts,
)
spent = st.none() | costs
times = st.none() | reals


def _unknown(name: str, more: dict[str, Any]) -> Unknown:
    return Unknown({"format": 1, "event": f"not yet {name}"} | more)


created = st.builds(
    *(Created, mappings, mappings, mappings, st.booleans(), integers, reals),
    *(st.none() | wholes, texts, st.booleans()),
)
later: st.SearchStrategy[Event] = st.one_of(
    st.builds(Configured, st.none() | mappings, st.none() | mappings),
    st.builds(Enqueued, params, times),
    st.builds(Claimed, wholes, texts, st.none() | wholes),
    st.builds(
        *(Proposed, wholes, params, st.sampled_from(Origin), wholes),
        *(mappings, times, spent, times),
    ),
    st.builds(Started, wholes, texts, st.booleans(), times),
    st.builds(Finished, wholes, outcomes, usages, times),
    st.builds(Failed, wholes, texts, spent, st.booleans(), usages, times),
    st.builds(Abandoned, wholes, texts, spent, times),
    st.builds(Spent, wholes, costs, times),
    st.builds(Requeued, wholes, texts, st.booleans(), st.booleans()),
    st.builds(Stopped, texts, times),
    st.builds(Paused, texts, times),
    st.builds(Resumed, times),
    st.builds(Confirming, st.lists(wholes).map(tuple), wholes, mappings, wholes, times),
    st.builds(FinalTrained, wholes, spent, times),
    st.builds(FinalTested, wholes, results, mappings, times),
    st.builds(
        _unknown, texts, mappings.map(lambda m: {k: m[k] for k in m.keys() - {"format", "event"}})
    ),
)
