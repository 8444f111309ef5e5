"""Lines that cannot be decoded: damaged, malicious, or of a newer format."""

from __future__ import annotations

import ast
import json
import pickle
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import FIRST, LATER
from tradewind import plain
from tradewind.errors import FormatError
from tradewind.log import codec
from tradewind.log.codec import decode, decode_lines, encode
from tradewind.log.events import Event, Finished, Proposed
from tradewind.types import Origin, Outcome

CLAIMED: dict[str, Any] = {"format": 1, "event": "claimed", "number": 0}
PROPOSED: dict[str, Any] = {
    **CLAIMED,
    "event": "proposed",
    "params": {"x": 1.0},
    "origin": "model",
    "seen": 3,
}
FINISHED: dict[str, Any] = {**CLAIMED, "event": "finished", "outcome": {"value": 1.0}}


def check_refused(line: Any, *places: str) -> None:
    with pytest.raises(FormatError) as error:
        decode(line)
    for place in places:
        assert place in str(error.value)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "null",
        "1",
        "[]",
        '"claimed"',
        "{}",
        "{",
        '{"format":1,"event":"claimed","number":0',
        '{"format":1,"event":"claimed","number":0}}',
        '{"format":1,"event":"claimed","number":0}\n{}',
        "{'format': 1, 'event': 'claimed', 'number': 0}",
        '{"format":1,"event":"claimed","number":0,}',
        '{"format":1,"event":"claimed","number":NaN}',
        '{"format":1,"event":"new","what":NaN}',
        '{"format":1,"event":"new","what":[-Infinity]}',
        '{"format":1,"event":"new","what":1e999}',
        '{"format":1,"event":"claimed","number":0,"number":1}',
        '{"format":1,"event":"new","what":{"a":1,"a":1}}',
        '{"format":1,"event":"claimed","number":0,"driver":"\n"}',
        '{"format":1,"event":"new","what":' + "9" * 10_000 + "}",
        None,
        7,
        b'{"format":1,"event":"claimed","number":0}',
        ["format"],
    ],
    ids=lambda line: repr(line)[:50],
)
def test_a_line_that_is_not_an_event_is_refused(line: Any) -> None:
    check_refused(line, "cannot be read")


@pytest.mark.parametrize("version", [None, 0, -1, True, 1.0, "1", [1]])
def test_an_invalid_format_number_is_refused(version: Any) -> None:
    check_refused(json.dumps({**CLAIMED, "format": version}), "'format' must be 1")


@pytest.mark.parametrize("version", [2, 10**30])
def test_a_newer_format_is_refused_with_this_reason(version: int) -> None:
    line = {"format": version, "event": "claimed", "unheard": "of"}
    check_refused(json.dumps(line), "a newer version of Tradewind wrote it", str(version)[:50])


@pytest.mark.parametrize("name", [None, 1, ["claimed"], {}])
def test_an_event_has_a_name(name: Any) -> None:
    check_refused(json.dumps({**CLAIMED, "event": name}), "'event' must be text")


@pytest.mark.parametrize("event", [FIRST, *LATER[:-1]], ids=lambda e: type(e).__name__)
def test_a_missing_key_is_named(event: Event) -> None:
    for field in fields(event):
        if field.default is MISSING and field.default_factory is MISSING:
            data = json.loads(encode(event))
            del data[field.name]
            check_refused(
                json.dumps(data), f"'{data['event']}' event", f"needs the key '{field.name}'"
            )


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (CLAIMED | {"number": "0"}, "'number': must be a whole number"),
        (CLAIMED | {"number": 0.0}, "'number': must be a whole number"),
        (CLAIMED | {"number": True}, "'number': must be a whole number"),
        (CLAIMED | {"number": None}, "'number': must be a whole number"),
        (CLAIMED | {"number": -1}, "'number': must be a whole number"),
        (CLAIMED | {"driver": 1}, "'driver': must be text"),
        (CLAIMED | {"driver": None}, "'driver': must be text"),
        (CLAIMED | {"enqueued": "0"}, "'enqueued': must be a whole number"),
        (PROPOSED | {"params": None}, "'params': must be a mapping"),
        (PROPOSED | {"params": []}, "'params': must be a mapping"),
        (PROPOSED | {"params": {"x": [1]}}, "'params': 'x': must be text, a number"),
        (PROPOSED | {"params": {"x": {}}}, "'params': 'x': must be text, a number"),
        (PROPOSED | {"origin": "elsewhere"}, "'origin': must be one of added, enqueued"),
        (PROPOSED | {"origin": None}, "'origin': must be one of"),
        (PROPOSED | {"origin": ["model"]}, "'origin': must be one of"),
        (PROPOSED | {"handover": None}, "'handover': must be a mapping"),
        (PROPOSED | {"max_cost": "1"}, "'max_cost': must be a number"),
        (PROPOSED | {"max_cost": 10**400}, "'max_cost': must be a number"),
        (FINISHED | {"outcome": 1.0}, "'outcome': must be a mapping"),
        (FINISHED | {"outcome": {}}, "'outcome': needs the key 'value'"),
        (FINISHED | {"outcome": {"value": "1"}}, "'outcome': 'value': must be a number"),
        (FINISHED | {"outcome": {"value": True}}, "'outcome': 'value': must be a number"),
        (FINISHED | {"outcome": {"value": 1, "folds": 1}}, "'folds': must be a list of numbers"),
        (FINISHED | {"outcome": {"value": 1, "folds": ["1"]}}, "'folds': must be a number"),
        (FINISHED | {"outcome": {"score": 1}}, "'outcome': needs the key 'value'"),
        (FINISHED | {"outcome": None}, "'outcome': must be a mapping"),
        (FINISHED | {"usage": []}, "'usage': must be a mapping"),
        (FINISHED | {"usage": {"cpu": 1}}, "'usage': needs the key 'wall'"),
        (FINISHED | {"usage": {"wall": 1, "device": 0}}, "'usage': 'device': must be text"),
        (FINISHED | {"at": "noon"}, "'at': must be a number"),
        (CLAIMED | {"event": "started", "leased": 1}, "'leased': must be true or false"),
        (CLAIMED | {"event": "started", "leased": "true"}, "'leased': must be true or false"),
        (CLAIMED | {"event": "failed", "error": None}, "'error': must be text"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_field_of_the_wrong_type_is_named(line: dict[str, Any], place: str) -> None:
    check_refused(json.dumps(line), f"'{line['event']}' event cannot be read", place)


def test_a_whole_number_is_accepted_where_a_number_is_expected() -> None:
    event = decode(json.dumps(FINISHED | {"outcome": {"value": 1, "folds": [1]}, "at": 3}))
    assert repr(event) == repr(Finished(0, Outcome(1.0, None, (1.0,)), at=3.0))


@pytest.mark.parametrize("brackets", ["[", '{"a":'])
def test_endless_nesting_is_refused(brackets: str) -> None:
    check_refused('{"format":1,"event":"new","what":' + brackets * 200_000, "cannot be read")


class Poison:
    """Creates a file if it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("poisoned"),))


@pytest.mark.parametrize(
    "line",
    [
        pickle.dumps(Poison()),
        pickle.dumps(Poison(), protocol=0).decode(),
        "__import__('pathlib').Path('poisoned').touch()",
        '{"py/reduce":[{"py/type":"pathlib.Path"},{"py/tuple":["poisoned"]}]}',
        "!!python/object/apply:os.system ['touch poisoned']",
    ],
)
def test_code_is_refused_and_not_run(
    line: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(line)
    assert list(tmp_path.iterdir()) == []


def test_code_in_text_stays_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "__import__('pathlib').Path('poisoned').touch()"
    for text in (code, pickle.dumps(Poison(), protocol=0).decode(), "${jndi:ldap://x}", "%s{0}"):
        event = decode(json.dumps(PROPOSED | {"params": {text: text}, "handover": {text: [text]}}))
        assert event == Proposed(0, {text: text}, Origin.MODEL, 3, {text: [text]})
    assert list(tmp_path.iterdir()) == []


def test_nothing_that_reads_a_log_can_unpickle_or_evaluate() -> None:
    banned = {"pickle", "marshal", "shelve", "eval", "exec", "compile", "__import__", "importlib"}
    for file in (*Path(codec.__file__).parent.glob("*.py"), Path(plain.__file__)):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = {getattr(node, "id", None)} | {
                alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")
            }
            assert not names & banned, f"{file.name} uses {names & banned}"


@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_other_text_is_refused(text: str) -> None:
    check_refused(text)


@given(st.data())
def test_a_line_with_one_character_changed_is_read_or_refused(given: st.DataObject) -> None:
    line = encode(given.draw(st.sampled_from([FIRST, *LATER])))
    place = given.draw(st.integers(0, len(line) - 1))
    character = given.draw(st.characters())
    with suppress(FormatError):
        decode(line[:place] + character + line[place + 1 :])


# ---- many lines at once ----

JSON = st.sampled_from(
    ["1", "{}", '{"a":1}', " [1, 2]", '"x"', "", "{", "}", "1,2", '{"a":[2', "1]}", '"', "NaN"]
)


@given(st.lists(JSON | st.text('[]{}",:1 ', max_size=4), max_size=5))
def test_texts_are_parsed_together_as_they_are_one_by_one(texts: list[str]) -> None:
    try:
        expected = [plain.parse_json(text) for text in texts]
    except ValueError:
        assert plain.parse_together(texts) is None
    else:
        assert plain.parse_together(texts) == (expected or None)


@pytest.mark.parametrize("bad", ['{"format":1,"event":"x","a":[2', "", '{"format":1}'])
def test_the_line_that_cannot_be_read_is_named(bad: str) -> None:
    lines = [encode(FIRST), *map(encode, LATER), bad, "1]}"]
    with pytest.raises(FormatError, match=f"here, event {len(LATER) + 6}: "):
        decode_lines(lines, 5, "here")
    assert decode_lines(lines[:-2], 5, "here") == [FIRST, *LATER]
