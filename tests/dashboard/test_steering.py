"""Steering over HTTP: each command is an event in the log, and what is refused changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.dashboard.pages import client, database, make_study, steer
from tests.studies import events_of
from tradewind.log.events import Abandoned, Configured, Enqueued, Paused, Resumed
from tradewind.types import State


@pytest.fixture
def study(tmp_path: Path) -> tw.Study:
    return make_study(database(tmp_path))


def store(tmp_path: Path) -> str:
    return database(tmp_path)


def test_pausing_and_resuming_are_events(study: tw.Study, tmp_path: Path) -> None:
    with client(store(tmp_path)) as browser:
        status, said = steer(browser, "pause", {"reason": "lunch"})
        assert (status, study.paused and study.paused.reason) == (200, "lunch")
        assert "paused" in said
        assert steer(browser, "resume", {})[0] == 200
    assert study.paused is None
    assert [type(e) for e in events_of(study)[-2:]] == [Paused, Resumed]


def test_a_running_trial_is_stopped(study: tw.Study, tmp_path: Path) -> None:
    trial = study.ask()
    with client(store(tmp_path)) as browser:
        status, said = steer(browser, "stop", {"trial": trial.number})
    assert (status, said) == (200, f"Trial {trial.number} is stopped.")
    assert study.trials[trial.number].state is State.ABANDONED
    assert isinstance(events_of(study)[-1], Abandoned)


def test_a_trial_that_has_ended_is_not_stopped(study: tw.Study, tmp_path: Path) -> None:
    with client(store(tmp_path)) as browser:
        status, said = steer(browser, "stop", {"trial": 0})
        assert status == 409
        assert "trial 0 is already finished" in said
        assert steer(browser, "stop", {"trial": 99})[0] == 409


@pytest.mark.parametrize("letter", ["\ud800", "\x1b", "\0", "\n"])
@pytest.mark.parametrize(
    ("verb", "body", "name"),
    [("pause", {}, "reason"), ("goal", {"alpha": 0.1, "reference": 1.0}, "by")],
)
def test_what_no_terminal_can_show_does_not_get_into_the_log(
    study: tw.Study, tmp_path: Path, verb: str, body: dict[str, Any], name: str, letter: str
) -> None:
    before = events_of(study)
    with client(store(tmp_path)) as browser:
        status, said = steer(browser, verb, json.dumps({**body, name: f"a{letter}b"}))
    assert (status, events_of(study)) == (400, before)
    assert "one line" in said


def test_a_queued_configuration_is_run_next_and_gaps_are_filled(
    study: tw.Study, tmp_path: Path
) -> None:
    with client(store(tmp_path)) as browser:
        status, _ = steer(browser, "enqueue", {"params": {"kernel": "poly", "degree": 4}})
    trial = study.ask()
    assert (status, trial.params["kernel"], trial.params["degree"]) == (200, "poly", 4)
    assert 0.0 <= trial.params["x"] <= 1.0
    assert any(isinstance(e, Enqueued) for e in events_of(study))


def test_a_configuration_may_say_its_training_size(study: tw.Study, tmp_path: Path) -> None:
    with client(store(tmp_path)) as browser:
        body = {"params": {"x": 0.5}, "train_size": 0.25}
        assert steer(browser, "enqueue", body)[0] == 200
        status, said = steer(browser, "enqueue", {"params": {}, "train_size": 7})
    assert study.ask().train_size == 0.25
    assert status == 400
    assert "train_size" in said


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"x": 2.0}, "x"),
        ({"kernel": "cubic"}, "kernel"),
        ({"kernel": "linear", "degree": 3}, "degree"),
        ({"no such": 1}, "no such"),
        ({"x": [1]}, "x"),
        ({"x": 10**400}, "x"),
    ],
)
def test_a_configuration_outside_the_space_is_refused_in_a_sentence(
    study: tw.Study, tmp_path: Path, params: dict[str, Any], word: str
) -> None:
    before = events_of(study)
    with client(store(tmp_path)) as browser:
        status, said = steer(browser, "enqueue", {"params": params})
    assert status == 400
    assert word in said
    assert "Traceback" not in said
    assert said.endswith(".")
    assert events_of(study) == before


@pytest.mark.parametrize(
    ("body", "goal"),
    [
        ({"alpha": 0.5, "reference": 12.0}, tw.Tradeoff(0.5, 12.0)),
        ({"alpha": 0}, tw.Tradeoff(0.0)),
        ({"limit": 3.5}, tw.BestUnder(3.5)),
        ({"limit": 3.5, "by": "wall"}, tw.BestUnder(3.5, by="wall")),
        ({"limit": 3.5, "confidence": 0.5}, tw.BestUnder(3.5, confidence=0.5)),
    ],
)
def test_the_goal_of_the_page_becomes_the_goal_of_the_study(
    study: tw.Study, tmp_path: Path, body: dict[str, Any], goal: tw.Goal
) -> None:
    with client(store(tmp_path)) as browser:
        status, said = steer(browser, "goal", body)
    assert status == 200, said
    assert said.startswith("The goal of the study is now")
    assert tw.load_study(store(tmp_path))._session.plan.goal == goal
    assert isinstance(events_of(study)[-1], Configured)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"alpha": -1},
        {"alpha": None},
        {"alpha": "0.3"},
        {"alpha": True},
        {"alpha": 10**400},
        {"limit": 0},
        {"alpha": 0.1, "limit": 3},
        {"limit": 3, "reference": 1},
        {"limit": 3, "confidence": 2},
        {"alpha": 3, "confidence": 0.9},
        {"alpha": 0.1, "by": 3},
        {"alpha": 0.1, "else": 3},
    ],
)
def test_what_is_no_goal_is_refused(study: tw.Study, tmp_path: Path, body: Any) -> None:
    before = events_of(study)
    with client(store(tmp_path)) as browser:
        status, said = steer(browser, "goal", body)
    assert (status, said[-1]) == (400, ".")
    assert events_of(study) == before


def test_a_command_for_a_study_that_is_not_there_is_refused(
    study: tw.Study, tmp_path: Path
) -> None:
    with client(store(tmp_path)) as browser:
        assert steer(browser, "pause", {}, name="other")[0] == 404
        assert steer(browser, "delete", {})[0] == 404
        assert steer(browser, "resume", {})[0] == 200
        tw.delete_study("study", storage=store(tmp_path))
        status, said = steer(browser, "pause", {})
    assert (status, said) == (409, "The study was deleted or replaced: nothing was changed.")


def test_a_study_with_a_strategy_of_its_own_can_be_steered(tmp_path: Path) -> None:
    class Mine(type(tw.recipes.random_search())):  # type: ignore[misc]
        pass

    study = make_study(database(tmp_path), strategy=Mine())
    with client(store(tmp_path)) as browser:
        for verb, body in [
            ("goal", {"alpha": 0.4, "reference": 9.0}),
            ("pause", {}),
            ("resume", {}),
            ("enqueue", {"params": {"x": 0.5}}),
        ]:
            assert steer(browser, verb, body)[0] == 200
    assert study.ask().params["x"] == 0.5
    assert study.goal == tw.Tradeoff(0.4, 9.0)
    assert isinstance(study.strategy, Mine)
    stored = [e.strategy for e in events_of(study) if isinstance(e, Configured)]
    assert stored == [None]


# ---- bodies that nobody writes ----

NOT_JSON = [
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"\xff\xfe",
    b'{"params": NaN}',
    b'{"params": {"x": 1e999}}',
    b'{"params": {"x": Infinity}}',
    b'{"params": {}, "params": {}}',
    b'{"params": ' + b"[" * 30000 + b"]" * 30000 + b"}",
    b'{"params": {"x": ' + b"9" * 5000 + b"}}",
    b'{"params": {"x": "\\ud800"}}',
]


@pytest.mark.parametrize("body", NOT_JSON, ids=range(len(NOT_JSON)))
def test_a_body_that_is_no_request_is_refused_in_a_sentence(
    study: tw.Study, tmp_path: Path, body: bytes
) -> None:
    before = events_of(study)
    with client(store(tmp_path)) as browser:
        for verb in ("pause", "stop", "enqueue", "goal"):
            status, said = steer(browser, verb, body)
            assert (status, said[-1]) in ((400, "."), (400, "…"))
    assert events_of(study) == before


NAMES = st.sampled_from(
    ["params", "trial", "reason", "alpha", "limit", "reference", "by", "train_size", "x", "kernel"]
) | st.text(max_size=5)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["linear", "poly", "x", 0.5, 3]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
VERBS = st.sampled_from(["pause", "resume", "stop", "enqueue", "goal", "x", ""])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verb=VERBS, body=st.dictionaries(NAMES, JSON, max_size=4) | JSON)
@example(verb="enqueue", body={"params": {"x": 10**4000}})
@example(verb="pause", body={"reason": "\ud800\x00"})
def test_no_body_makes_an_error_of_ours_and_none_that_is_refused_changes_the_log(
    shared: tuple[Any, tw.Study], verb: str, body: Any
) -> None:
    browser, study = shared
    before = len(events_of(study))
    try:
        text = json.dumps(body)
    except ValueError:  # Python itself does not write such a number
        text = '{"params": {"x": ' + "1" * 5000 + "}}"
    status, said = steer(browser, verb, text)
    assert status in (200, 400, 404, 409, 413), said
    if status != 200:
        assert len(events_of(study)) == before
    assert study.trials  # the log can still be read


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = database(tmp_path_factory.mktemp("fuzz"))
    study = make_study(path)
    with client(path) as browser:
        yield browser, study
