"""What a newer version of the same format adds is kept: unknown fields and unknown events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.events import created, data, later
from tests.samples import FIRST, LATER
from tests.studies import plain_lines
from tradewind.errors import FormatError
from tradewind.log.codec import decode, encode
from tradewind.log.events import Claimed, Event, Failed, Finished, Started, Unknown
from tradewind.log.files import read_lines, write_lines
from tradewind.log.memory import MemoryStore
from tradewind.log.sqlite import SqliteStore
from tradewind.log.stores import open_store
from tradewind.types import Outcome, Usage

KNOWN = [event for event in (FIRST, *LATER) if not isinstance(event, Unknown)]
FIELDS = {field for event in KNOWN for field in vars(event)} | {"format", "event"}
NESTED = {field.name for kind in (Outcome, Usage) for field in fields(kind)}

FINISHED = {
    "format": 1,
    "event": "finished",
    "number": 0,
    "colour": "red",
    "outcome": {"value": 0.5, "spread": [0.1, 0.2]},
    "usage": {"wall": 2.0, "energy": {"joule": 7}},
}
NOTED = {"format": 1, "event": "noted", "text": "λ", "number": 0, "more": [None, {"a": 1.5}]}

# any unknown fields: at the top, in the outcome and in the usage
names = st.text().filter(lambda name: name not in FIELDS)
extras = st.dictionaries(names, data, max_size=3)
nested = st.dictionaries(names.filter(lambda name: name not in NESTED), data, min_size=1)


@st.composite
def events_with_extra(draw: st.DrawFn) -> Any:
    event = draw(created | later.filter(lambda event: not isinstance(event, Unknown)))
    extra = draw(extras)
    if isinstance(event, Finished) and draw(st.booleans()):
        extra["outcome"] = draw(nested)
    if getattr(event, "usage", None) is not None and draw(st.booleans()):
        extra["usage"] = draw(nested)
    return replace(event, extra=extra)  # type: ignore[type-var]


# ---- lines ----


def decoded(data: dict[str, Any]) -> Any:
    return decode(json.dumps(data))


def encoded(event: Event) -> Any:
    return json.loads(encode(event))


def test_unknown_fields_are_kept_beside_the_known_ones() -> None:
    assert decoded(FINISHED) == Finished(
        0,
        Outcome(0.5),
        Usage(2.0),
        extra={
            "colour": "red",
            "outcome": {"spread": [0.1, 0.2]},
            "usage": {"energy": {"joule": 7}},
        },
    )


def test_unknown_fields_are_written_where_they_were() -> None:
    assert encoded(decoded(FINISHED)) == FINISHED


@pytest.mark.parametrize("event", KNOWN, ids=lambda e: type(e).__name__)
def test_every_event_keeps_an_unknown_field(event: Event) -> None:
    data = encoded(event) | {"numbr": [1, {"a": None}]}
    assert decoded(data).extra == {"numbr": [1, {"a": None}]}
    assert replace(decoded(data), extra={}) == event
    assert encoded(decoded(data)) == data


def test_an_event_without_unknown_fields_has_no_extra() -> None:
    assert [decode(encode(event)).extra for event in KNOWN] == [{}] * len(KNOWN)  # type: ignore[union-attr]


@given(events_with_extra())
def test_any_event_with_unknown_fields_comes_back_as_it_was(event: Any) -> None:
    line = encode(event)
    assert decode(line) == event
    assert repr(decode(line)) == repr(event)
    extra = decode(line).extra  # type: ignore[union-attr]
    assert {k: repr(v) for k, v in extra.items()} == {k: repr(v) for k, v in event.extra.items()}
    assert encode(decode(line)) == line


@given(st.dictionaries(st.text(), data))
def test_an_unknown_event_is_kept_as_it_is(more: dict[str, Any]) -> None:
    data = {"format": 1, "event": "what comes next"} | {
        key: more[key] for key in more if key not in ("format", "event")
    }
    line = json.dumps(data, separators=(",", ":"))
    assert decode(line) == Unknown(data)
    assert encode(decode(line)) == line


def test_numpy_values_in_extra_are_written_as_plain_data() -> None:
    np = pytest.importorskip("numpy")
    assert encoded(Claimed(0, extra={"a": np.arange(2)}))["a"] == [0, 1]


def test_events_with_and_without_extra_differ_but_can_be_hashed() -> None:
    assert Claimed(0, extra={"a": 1}) != Claimed(0)
    assert len({Claimed(0), Claimed(0), Claimed(1)}) == 2


# ---- what is still refused ----


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"number": "0"}, "'number': must be a whole number"),
        ({"outcome": {"spread": 1}}, "'outcome': needs the key 'value'"),
        ({"outcome": {"value": "1", "spread": 1}}, "'outcome': 'value': must be a number"),
        ({"outcome": [1]}, "'outcome': must be a mapping"),
        ({"usage": {"energy": 1}}, "'usage': needs the key 'wall'"),
        ({"usage": {"wall": None, "energy": 1}}, "'usage': 'wall': must be a number"),
        ({"usage": 1}, "'usage': must be a mapping"),
    ],
    ids=str,
)
def test_unknown_fields_do_not_excuse_a_wrong_or_missing_one(
    change: dict[str, Any], place: str
) -> None:
    with pytest.raises(FormatError, match=f"a 'finished' event cannot be read: {place}"):
        decoded(FINISHED | change)


def test_a_missing_field_is_an_error_beside_an_unknown_one() -> None:
    data = {key: value for key, value in FINISHED.items() if key != "number"}
    with pytest.raises(FormatError, match="needs the key 'number'"):
        decoded(data)


@pytest.mark.parametrize("data", [FINISHED, NOTED], ids=["field", "event"])
def test_a_newer_format_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="a newer version of Tradewind wrote it"):
        decoded(data | {"format": 2})


@pytest.mark.parametrize(
    "event",
    [
        Claimed(0, extra={"number": 1}),
        Claimed(0, extra={"driver": "a"}),
        Claimed(0, extra={"format": 9}),
        Claimed(0, extra={"event": "started"}),
        Started(0, extra={"at": None}),
        Finished(0, Outcome(1.0), extra={"outcome": {"value": 2.0}}),
        Finished(0, Outcome(1.0), extra={"outcome": {"cost": 2.0}}),
        Finished(0, Outcome(1.0), extra={"outcome": 1}),
        Finished(0, Outcome(1.0), extra={"usage": {"energy": 1}}),  # there is no usage
        Failed(0, "", usage=Usage(1.0), extra={"usage": {"wall": 2.0}}),
        Claimed(0, extra={"a": {1, 2}}),
        Claimed(0, extra={"a": float("nan")}),
        Claimed(0, extra={1: 1}),  # type: ignore[dict-item]
        Claimed(0, extra=[("a", 1)]),  # type: ignore[arg-type]
    ],
    ids=lambda event: repr(event.extra),
)
def test_extra_may_hold_unknown_fields_with_plain_data_only(event: Event) -> None:
    with pytest.raises((TypeError, ValueError), match=r"cannot be stored: 'extra': .*must"):
        encode(event)


# ---- stores and files ----

EVENTS = [FIRST, decoded(FINISHED), Unknown(NOTED), Claimed(1, extra={"why": ["x"]})]
quickly = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
logs = st.tuples(created, st.lists(events_with_extra().filter(lambda e: "space" not in vars(e))))


def check_same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert list(found) == list(expected)
    assert [encode(event) for event in found] == [encode(event) for event in expected]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_every_store_keeps_what_is_unknown(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "postgres":
        store = open_store(request.getfixturevalue("postgres_url"))
    else:
        store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "studies.db")
    log = store.create("study", FIRST)
    log.append(EVENTS[1:])
    check_same(store.open("study").read(0), EVENTS)
    if hasattr(store, "close"):
        store.close()


@quickly
@given(logs)
def test_sqlite_keeps_any_unknown_fields(tmp_path: Path, log: tuple[Any, list[Any]]) -> None:
    first, others = log
    with closing(SqliteStore(tmp_path / "studies.db")) as store:
        if store.names():
            store.delete("study")
        store.create("study", first).append(others)
        check_same(store.open("study").read(0), [first, *others])


@quickly
@given(logs)
def test_a_file_keeps_any_unknown_fields(tmp_path: Path, log: tuple[Any, list[Any]]) -> None:
    first, others = log
    write_lines(tmp_path / "study.jsonl", [first, *others])
    check_same(read_lines(tmp_path / "study.jsonl"), [first, *others])


# ---- studies ----


def newer(path: Path) -> list[dict[str, Any]]:
    """A study as a newer version might write it: unknown fields in every event, an unknown event
    after every other one."""
    study = tw.create_study(tw.Space({"x": tw.Float(0, 1)}), seed=0)
    study.optimize(lambda trial: {"value": trial.params["x"], "cost": 1.0}, n_trials=8)
    study.export(path)
    lines: list[dict[str, Any]] = []
    for line in plain_lines(path):
        for part in ("outcome", "usage"):
            if part in line:
                line[part]["new"] = [part]
        lines += [line | {"new": {"a": 1}}, NOTED | {"after": line["event"]}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return lines


def test_what_is_unknown_survives_import_and_export(tmp_path: Path) -> None:
    lines = newer(tmp_path / "newer.jsonl")
    study = tw.import_study(tmp_path / "newer.jsonl", storage=tmp_path / "studies.db")
    assert len(study.trials) == 8
    study.export(tmp_path / "again.jsonl")
    assert plain_lines(tmp_path / "again.jsonl") == lines


def test_a_study_with_unknown_events_goes_on_as_one_without(tmp_path: Path) -> None:
    newer(tmp_path / "newer.jsonl")
    study = tw.import_study(tmp_path / "newer.jsonl")
    plain = tw.create_study(tw.Space({"x": tw.Float(0, 1)}), seed=0)
    plain.optimize(lambda trial: {"value": trial.params["x"], "cost": 1.0}, n_trials=8)
    assert study.ask().params == plain.ask().params
