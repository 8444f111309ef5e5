"""Studies as files: JSON lines hold everything, CSV is a table, and what is damaged is refused."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tradewind as tw
from tests.studies import CONDITIONAL, create, events_of, plain_lines, quick, score, told
from tradewind.errors import StorageError, StudyExists, TradewindError
from tradewind.log.memory import MemoryStore
from tradewind.runners.simulated import SimulatedRunner
from tradewind.strategies import RandomSearch

HOSTILE = 'two\nlines, a comma, "quotes", λ and ☃'


def eventful(**options: Any) -> tw.Study:
    """A study with trials in every state."""
    study = quick(goal=tw.Tradeoff(alpha=0.3), **options)
    study.add({"x": 0.5, "k": 3}, folds=[0.25, 0.5], cost=2.0)
    study.enqueue({"x": 0.1})
    study.optimize(score, n_trials=5, runner=SimulatedRunner(2))
    study.fail(study.ask(), HOSTILE)
    study.abandon(study.ask(), "enough")
    study.ask()
    study.requeue(study.ask())
    study.enqueue({"x": 0.9, "k": 9})
    return study


def lines_of(study: tw.Study, tmp_path: Path) -> list[dict[str, Any]]:
    study.export(tmp_path / "whole.jsonl")
    return plain_lines(tmp_path / "whole.jsonl")


def imported(
    lines: list[dict[str, Any]] | str | bytes, tmp_path: Path, **options: Any
) -> tuple[tw.Study, MemoryStore]:
    store, path = MemoryStore(), tmp_path / "study.jsonl"
    if isinstance(lines, list):
        lines = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_bytes(lines if isinstance(lines, bytes) else lines.encode())
    try:
        return tw.import_study(path, storage=store, **options), store
    except BaseException:
        assert store.names() == []  # nothing is left of what was refused
        raise


# ---- there and back ----


def test_a_study_comes_back_as_it_was(tmp_path: Path) -> None:
    study = eventful()
    study.export(tmp_path / "reviews.jsonl")
    store = MemoryStore()
    back = tw.import_study(tmp_path / "reviews.jsonl", storage=store)
    assert back.name == "reviews"
    assert back.trials == study.trials
    assert events_of(back) == events_of(study)
    for attribute in ("space", "goal", "strategy", "seed", "direction", "best"):
        assert getattr(back, attribute) == getattr(study, attribute)
    back.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "reviews.jsonl").read_bytes()
    assert tw.load_study(store).trials == study.trials


def test_an_imported_study_goes_on_like_the_original(tmp_path: Path) -> None:
    study = quick()
    study.optimize(score, n_trials=6)
    study.export(tmp_path / "study.jsonl")
    back = tw.import_study(tmp_path / "study.jsonl", storage=tmp_path / "runs.db")
    for s in (study, back):
        s.optimize(score, n_trials=3)
    assert [t.params for t in back.trials] == [t.params for t in study.trials]


def test_a_study_may_be_imported_under_another_name_and_goal(tmp_path: Path) -> None:
    study, store = imported(
        lines_of(eventful(), tmp_path), tmp_path, name="other", goal=tw.Quality(), strategy="random"
    )
    assert store.names() == ["other"]
    assert (study.name, study.goal, study.strategy) == ("other", tw.Quality(), RandomSearch())
    study.ask()
    assert tw.load_study(store).goal == tw.Quality()


def test_a_name_that_is_taken_is_refused_and_what_is_there_stays(tmp_path: Path) -> None:
    store = MemoryStore()
    kept = told((1.0, 1.0), storage=store)
    eventful().export(tmp_path / "study.jsonl")
    with pytest.raises(StudyExists, match="already a study 'study'"):
        tw.import_study(tmp_path / "study.jsonl", storage=store)
    assert store.names() == ["study"]
    assert len(kept.trials) == 1


def test_a_strategy_of_ones_own_is_given_again_to_an_import(tmp_path: Path) -> None:
    class Own(RandomSearch):
        """Not in the file."""

    study = create(strategy=Own())
    study.optimize(score, n_trials=2)
    lines = lines_of(study, tmp_path)
    with pytest.raises(StorageError, match=r"Own.*give strategy= again"):
        imported(lines, tmp_path)
    back, _ = imported(lines, tmp_path, strategy=Own())
    assert back.trials == study.trials


@pytest.mark.parametrize("wrong", [{"goal": "best"}, {"strategy": "tpe"}, {"strategy": 3}])
def test_a_wrong_argument_imports_nothing(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        imported(lines_of(create(), tmp_path), tmp_path, **wrong)


def test_an_event_of_a_later_version_is_kept(tmp_path: Path) -> None:
    lines = lines_of(told((1.0, 1.0)), tmp_path)
    applause = {"format": 1, "event": "applauded", "by": ["all", {"loud": 3.5}]}
    back, _ = imported([*lines, applause], tmp_path)
    assert len(back.trials) == 1
    back.export(tmp_path / "again.jsonl")
    assert plain_lines(tmp_path / "again.jsonl")[-1] == applause


def test_a_field_of_a_later_version_is_kept(tmp_path: Path) -> None:
    lines = lines_of(told((1.0, 1.0)), tmp_path)
    back, _ = imported(at(2, applause=3.5)(lines), tmp_path)
    assert len(back.trials) == 1
    back.export(tmp_path / "again.jsonl")
    assert plain_lines(tmp_path / "again.jsonl")[2] == {**lines[2], "applause": 3.5}


@pytest.mark.parametrize("path", ["study.txt", "study", "study.json"])
def test_other_kinds_of_files_are_not_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match=r"exported to \.jsonl or \.csv, but got"):
        create().export(tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        create().export(tmp_path / "nowhere" / "study.jsonl")
    with pytest.raises(StorageError, match="cannot be read"):
        tw.import_study(tmp_path / "nowhere.jsonl", storage=MemoryStore())


@pytest.mark.parametrize("suffix", ["jsonl", "JSONL", "csv"])
def test_what_was_there_is_replaced_whole(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"study.{suffix}"
    path.write_text("old\n" * 1000)
    told((1.0, 1.0)).export(path)
    assert "old" not in path.read_text()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# ---- as a table ----


def test_a_table_is_read_by_csv_row_for_row(tmp_path: Path) -> None:
    study = eventful()
    study.export(tmp_path / "study.csv")
    with open(tmp_path / "study.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["number"]) for row in rows] == [t.number for t in study.trials]
    for row, trial in zip(rows, study.trials, strict=True):
        assert row["state"] == trial.state.value
        assert row["error"] == (trial.error or "")
        assert (float(row["value"]) if row["value"] else None) == trial.value
        assert (float(row["cost"]) if row["cost"] else None) == trial.cost
        assert float(row["params_x"]) == trial.params["x"]
        assert int(row["params_k"]) == trial.params["k"]
        assert int(row["retries"]) == trial.retries


def test_a_table_is_read_by_pandas_as_the_frame_of_the_study(tmp_path: Path) -> None:
    study = eventful()
    study.export(tmp_path / "study.csv")
    read = pd.read_csv(tmp_path / "study.csv")
    frame = study.to_frame()
    assert list(read) == list(frame)
    for name in ("started", "ended"):
        read[name] = pd.to_datetime(read[name])
    for name in ("number", "value", "cost", "score", "wall", "params_x", "started", "ended"):
        pd.testing.assert_series_equal(read[name], frame[name], check_dtype=False, check_exact=True)
    assert [t.started for t in study.trials] == [
        pytest.approx(at.timestamp()) if at == at else None for at in frame["started"]
    ]


def test_a_table_has_folds_named_costs_and_attributes(tmp_path: Path) -> None:
    study = create()
    folds, costs = [0.25, 0.5], {"money": 3.0}
    attributes = {"f1": 0.5, "curve": [1, 2], "note": "good, or so"}
    study.add({"x": 0.5, "k": 3}, folds=folds, cost=2.0, costs=costs, attributes=attributes)
    study.add({"x": 0.5, "k": 3}, 1.0)
    frame = study.to_frame()
    assert frame["fold_0"].tolist()[0] == 0.25
    assert frame["cost_money"].isna().tolist() == [False, True]
    assert frame["attr_curve"].tolist() == [[1, 2], None]
    study.export(tmp_path / "study.csv")
    with open(tmp_path / "study.csv", newline="", encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    names = ("score", "fold_0", "fold_1", "cost_money", "attr_f1", "attr_curve", "attr_note")
    assert [first[name] for name in names] == [
        "0.375",
        "0.25",
        "0.5",
        "3.0",
        "0.5",
        "[1,2]",
        "good, or so",
    ]
    assert [second[name] for name in names] == ["1.0", *[""] * 6]


@pytest.mark.parametrize("sign", [*"=+-@'\t\r\n", "\uff1d"])
def test_text_in_a_table_is_never_a_formula(sign: str, tmp_path: Path) -> None:
    text = f"{sign}1+1"
    study = create(tw.Space({"kind": tw.Categorical([text, "safe"]), "x": tw.Float(-2, -1)}))
    attributes = {"note": text, "number": -1.5, "list": ["=1"]}
    study.add({"kind": text, "x": -1.5}, -0.5, cost=1.0, attributes=attributes)
    study.add({"kind": "safe", "x": -1.5}, -0.5, cost=1.0)
    study.export(tmp_path / "study.csv")
    with open(tmp_path / "study.csv", newline="", encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    for name in ("params_kind", "attr_note"):
        assert first[name] == f"'{text}"
        assert first[name].removeprefix("'") == text  # the way back
    assert first["attr_list"] == '["=1"]'
    for name in ("value", "attr_number", "params_x"):  # numbers stay numbers
        assert float(first[name]) < 0
    assert second["params_kind"] == "safe"


def test_a_time_beyond_the_calendar_is_empty(tmp_path: Path) -> None:
    lines = lines_of(told((1.0, 1.0)), tmp_path)
    back, _ = imported(at(-1, at=1e300)(lines), tmp_path)
    assert back.to_frame()["ended"].isna().tolist() == [True]


def test_a_table_of_a_new_study_has_its_columns(tmp_path: Path) -> None:
    create(CONDITIONAL).export(tmp_path / "study.csv")
    (header,) = (tmp_path / "study.csv").read_text().splitlines()
    assert header.split(",")[:4] == ["number", "state", "value", "cost"]
    assert header.endswith("params_kernel,params_degree,params_train_size")


def test_what_is_inactive_is_empty_in_a_table(tmp_path: Path) -> None:
    study = create(CONDITIONAL)
    study.add({"kernel": "linear", "train_size": 1.0}, value=1.0)
    study.add({"kernel": "poly", "degree": 3, "train_size": 0.5}, value=1.0)
    study.export(tmp_path / "study.csv")
    read = pd.read_csv(tmp_path / "study.csv")
    assert read["params_degree"].isna().tolist() == [True, False]


# ---- what is damaged ----

Lines = list[dict[str, Any]]


def without(*keys: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda line: {k: v for k, v in line.items() if k not in keys}


def at(place: int, **changes: Any) -> Callable[[Lines], Lines]:
    """Another line at this place."""
    return lambda lines: [
        {**line, **changes} if i == place % len(lines) else line for i, line in enumerate(lines)
    ]


def more(*extra: dict[str, Any]) -> Callable[[Lines], Lines]:
    return lambda lines: [*lines, *extra]


def event(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"format": 1, "event": kind, "number": number, **fields}


GOOD = {"x": 0.5, "k": 3}


def proposed(number: int, **fields: Any) -> dict[str, Any]:
    return event("proposed", number, **{"params": GOOD, "origin": "design", "seen": 1, **fields})


POISON: dict[str, Callable[[Lines], Lines]] = {
    "no creation": lambda lines: lines[1:],
    "created twice": lambda lines: [lines[0], *lines],
    "created later": lambda lines: [*lines[1:], lines[0]],
    "a newer format": at(2, format=2),
    "no format": lambda lines: [lines[0], without("format")(lines[1]), *lines[2:]],
    "a missing key": lambda lines: [*lines[:2], without("params")(lines[2]), *lines[3:]],
    "a text for a number": at(1, number="0"),
    "a negative number": at(1, number=-1),
    "a true number": at(1, number=True),
    "an unknown origin": at(2, origin="luck"),
    "params in params": at(2, params={"x": {"y": 1}, "k": 3}),
    "a list for params": at(2, params=["x", "k"]),
    "a huge number": more(event("claimed", 10**9), proposed(10**9)),
    "a number beyond 64 bits": more(event("claimed", 2**70)),
    "a gap": more(event("claimed", 50), proposed(50)),
    "a proposal without a claim": more(proposed(2)),
    "finished twice": more(event("finished", 0, outcome={"value": 2.0})),
    "finished before it was proposed": more(event("finished", 7, outcome={"value": 2.0})),
    "failed after it finished": more(event("failed", 0, error="boom")),
    "requeued after it finished": more(event("requeued", 0, reason="again")),
    "proposed again": more(proposed(0)),
    "claimed again": more(event("claimed", 0)),
    "outside the space": more(event("claimed", 2), proposed(2, params={"x": 99.0, "k": 3})),
    "another type": more(event("claimed", 2), proposed(2, params={"x": "a", "k": 3})),
    "a parameter too few": more(event("claimed", 2), proposed(2, params={"x": 0.5})),
    "a parameter too many": more(event("claimed", 2), proposed(2, params={**GOOD, "z": 1})),
    "a value of text": more(event("claimed", 2), proposed(2), event("finished", 2, outcome="1")),
    "no value": more(event("claimed", 2), proposed(2), event("finished", 2, outcome={})),
    "an unknown space": at(0, space={"x": {"type": "os.system"}}),
    "an empty space": at(0, space={}),
    "an unknown goal": at(0, goal={"type": "os.system"}),
    "a goal that is none": at(0, goal={"type": "EI"}),
    "a goal of nothing": at(0, goal={}),
    "a goal of text": at(0, goal="Quality"),
    "a strategy that is none": at(0, strategy={"type": "Quality"}),
    "an impossible goal": at(0, goal={"type": "Tradeoff", "alpha": -1.0}),
    "a huge alpha": at(0, goal={"type": "Tradeoff", "alpha": 10**400}),
    "a part of another kind": at(0, strategy={"type": "Bayes", "design": {"type": "EI"}}),
    "a negative seed": at(0, seed=-1),
    "a seed of text": at(0, seed="0"),
    "another goal that is none": more({"format": 1, "event": "configured", "goal": {"type": "EI"}}),
    "another strategy that is none": more(
        {"format": 1, "event": "configured", "strategy": {"type": "Tradeoff", "alpha": 0.1}}
    ),
    "taken from an empty queue": more(event("claimed", 2, enqueued=7), proposed(2)),
    "of the queue, but not taken from it": more(
        event("claimed", 2), proposed(2, origin="enqueued")
    ),
    "enqueued outside the space": more({"format": 1, "event": "enqueued", "params": {"x": 99}}),
}


@pytest.mark.parametrize("name", POISON)
def test_a_file_that_contradicts_itself_is_refused_and_nothing_is_stored(
    tmp_path: Path, name: str
) -> None:
    lines = lines_of(told((1.0, 2.0), (2.0, 3.0)), tmp_path)
    with pytest.raises(TradewindError):
        imported(POISON[name](lines), tmp_path)


TEXTS: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"x,y\n1,2\n",
    "a number": b"3\n",
    "a list": b"[]\n",
    "null": b"null\n",
    "an empty line": b"\n",
    "bytes": b"\x80\x04\x95pickle\n",
    "utf-16": "{}".encode("utf-16"),
    "a deep list": b"[" * 100_000,
    "not a number": b'{"format":1,"event":"created","at":NaN}\n',
    "infinite": b'{"format":1,"event":"created","at":1e999}\n',
    "a key twice": b'{"format":1,"format":1,"event":"created"}\n',
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_of_another_kind_is_refused_and_nothing_is_stored(tmp_path: Path, name: str) -> None:
    with pytest.raises(TradewindError, match=r"study\.jsonl"):
        imported(TEXTS[name], tmp_path)


def test_a_file_that_was_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    eventful().export(tmp_path / "whole.jsonl")
    whole = (tmp_path / "whole.jsonl").read_bytes()
    for cut in range(1, len(whole) - 1, 97):
        with pytest.raises(TradewindError, match=r"study\.jsonl, line \d+"):
            imported(whole[:cut], tmp_path)


def test_a_file_without_its_last_newline_is_whole(tmp_path: Path) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines_of(told((1.0, 2.0)), tmp_path))
    assert len(imported(text.rstrip("\n"), tmp_path)[0].trials) == 1


def test_the_line_that_is_damaged_is_named(tmp_path: Path) -> None:
    lines = lines_of(told((1.0, 2.0)), tmp_path)
    with pytest.raises(TradewindError, match=r"study\.jsonl, line 3: .*'origin'"):
        imported(at(2, origin="luck")(lines), tmp_path)


def test_a_sabotaged_value_is_no_number(tmp_path: Path) -> None:
    lines = lines_of(told((1.0, 2.0)), tmp_path)
    (place,) = [i for i, line in enumerate(lines) if line["event"] == "finished"]
    for value in (math.nan, math.inf, None, "1.0", [1.0]):
        with pytest.raises(TradewindError):
            imported(at(place, outcome={"value": value})(lines), tmp_path)


@pytest.mark.parametrize("number", [10**30, -(10**30)])
def test_a_huge_whole_number_as_a_value_is_a_number(tmp_path: Path, number: int) -> None:
    lines = lines_of(told((1.0, 2.0)), tmp_path)
    (place,) = [i for i, line in enumerate(lines) if line["event"] == "finished"]
    study, _ = imported(at(place, outcome={"value": number})(lines), tmp_path)
    assert study.best.value == float(number)
