"""What `import_study` accepts is what `tell` accepts."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradewind as tw
from tests.studies import plain_lines
from tradewind.errors import FormatError, OutcomeError

NUMBERS = st.one_of(
    st.floats(-10, 10),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-3, 3),
    st.sampled_from([1e300, 1.1e300, -1e300, -1.1e300, 5e-324, int(1e299), 10**301, 10**400]),
)
ODD = st.sampled_from([None, "0.5", "", [], {}, [0.5]])
NAMES = st.sampled_from(["money", "", "é", "n" * 1000, "n" * 1001])


def _nested(depth: int) -> Any:
    inner: Any = 1.5
    for _ in range(depth):
        inner = [inner]
    return inner


ATTRIBUTES = st.one_of(
    st.booleans() | st.none() | NUMBERS | st.text(),
    st.integers(95, 105).map(_nested),
    st.sampled_from(
        ["x" * 31_990, "x" * 31_991, "x" * 32_000, "\u00e9" * 5_332, {"a": {"b": [1]}}]
    ),
)
OUTCOMES = st.fixed_dictionaries(
    {"value": NUMBERS | ODD.filter(lambda odd: odd is not None)},
    optional={
        "cost": NUMBERS | ODD,
        "folds": st.lists(NUMBERS, max_size=3) | st.sampled_from([[0.5] * 10_000, [0.5] * 10_001]),
        "costs": st.dictionaries(NAMES, NUMBERS | ODD, max_size=2)
        | st.integers(999, 1001).map(lambda n: {f"c{i}": 1.0 for i in range(n)}),
        "attributes": st.dictionaries(st.sampled_from(["a", "b", ""]), ATTRIBUTES, max_size=2),
    },
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The events of a study with one finished trial."""
    path = tmp_path_factory.mktemp("outcomes") / "study.jsonl"
    study = tw.create_study({"x": (0.0, 1.0)}, strategy="random", seed=0)
    study.tell(study.ask(), 0.5)
    study.export(path)
    return plain_lines(path)


def recorded(trial: tw.Trial, outcome: dict[str, Any]) -> bool:
    """Whether a trial has this outcome, with nothing left out."""
    return all(
        (list(found) if isinstance(found := getattr(trial, name), tuple) else found) == expected
        for name, expected in outcome.items()
    )


def told(outcome: dict[str, Any]) -> bool:
    study = tw.create_study({"x": (0.0, 1.0)}, strategy="random", seed=0)
    try:
        trial = study.tell(study.ask(), **outcome)
    except OutcomeError:
        return False
    return recorded(trial, outcome)  # odd costs and attributes are left out with a warning


def imported(events: list[dict[str, Any]], outcome: dict[str, Any]) -> bool:
    lines = [json.dumps(event) for event in events[:-1]]
    lines.append(json.dumps({**events[-1], "outcome": outcome}))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.jsonl"
        path.write_text("\n".join(lines) + "\n")
        try:
            study = tw.import_study(path)
        except FormatError:
            return False
    assert recorded(study.trials[0], outcome)
    return True


@given(outcome=OUTCOMES)
def test_an_outcome_is_imported_if_and_only_if_it_can_be_told(
    template: list[dict[str, Any]], outcome: dict[str, Any]
) -> None:
    assert imported(template, outcome) == told(outcome)


@pytest.mark.parametrize(
    "outcome",
    [
        {"value": 0.5, "cost": 1e300, "trainings": 2},
        {"value": 0.5, "cost": 1e300, "raced": True, "share": 0.5},
        {"value": 0.5, "share": 0.5},
        {"value": 0.5, "trainings": 0},
        {"value": 0.5, "trainings": 10**400},
    ],
    ids=str,
)
def test_an_outcome_whose_sums_would_overflow_or_make_no_sense_is_not_imported(
    template: list[dict[str, Any]], outcome: dict[str, Any]
) -> None:
    assert not imported(template, outcome)
