"""What every store must do."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import processes
from tests.samples import FIRST
from tradewind.errors import NoSuchStudy, StorageError, StudyExists
from tradewind.log.events import Claimed, Created
from tradewind.log.log import Store

SECOND = Created({}, {}, {}, False, 0, 0.0)
NAMES = ["a", "Z", "1", "λ ∈ ℝ", "'; DROP TABLE studies; --", "%s", ":name", "😀", "a/b\n", " x "]
examples = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_new_store_is_empty(store: Store) -> None:
    assert store.names() == []


def test_studies_are_named_oldest_first(store: Store) -> None:
    for name in NAMES:
        store.create(name, FIRST)
    assert store.names() == NAMES


def test_a_study_is_found_by_its_name(store: Store) -> None:
    for number, name in enumerate(NAMES):
        store.create(name, FIRST).append([Claimed(number)])
    for number, name in enumerate(NAMES):
        assert list(store.open(name).read(0)) == [FIRST, Claimed(number)]


@pytest.mark.parametrize("name", ["no such", "A", "a ", "a%", "_"])
def test_an_unknown_name_is_an_error(store: Store, name: str) -> None:
    store.create("a", FIRST)
    with pytest.raises(NoSuchStudy, match=repr(name)):
        store.open(name)
    with pytest.raises(NoSuchStudy):
        store.rename(name, "b")
    with pytest.raises(NoSuchStudy):
        store.delete(name)
    assert store.names() == ["a"]


def test_an_empty_store_has_no_study(store: Store) -> None:
    with pytest.raises(NoSuchStudy):
        store.open("a")
    with pytest.raises(NoSuchStudy):
        store.rename("a", "b")
    with pytest.raises(NoSuchStudy):
        store.delete("a")


def test_two_studies_cannot_have_the_same_name(store: Store) -> None:
    store.create("a", FIRST)
    with pytest.raises(StudyExists, match="'a'"):
        store.create("a", SECOND)
    assert list(store.open("a").read(0)) == [FIRST]


@pytest.mark.parametrize("name", ["", " ", "\0", "a\0", "\ud800"])
def test_a_name_that_not_every_store_can_hold_is_refused(store: Store, name: str) -> None:
    store.create("a", FIRST)
    for refused in (
        lambda: store.create(name, FIRST),
        lambda: store.open(name),
        lambda: store.rename("a", name),
        lambda: store.rename(name, "b"),
        lambda: store.delete(name),
    ):
        with pytest.raises(ValueError, match="the name of a study"):
            refused()
    assert store.names() == ["a"]


@pytest.mark.parametrize("name", [None, 1, b"a"])
def test_a_name_is_text(store: Store, name: Any) -> None:
    with pytest.raises(TypeError, match="the name of a study"):
        store.create(name, FIRST)
    with pytest.raises(TypeError, match="the name of a study"):
        store.open(name)


# ---- renaming ----


def test_a_renamed_study_keeps_its_events_and_its_place(store: Store) -> None:
    store.create("a", FIRST).append([Claimed(0)])
    store.create("b", SECOND)
    store.rename("a", "c")
    assert store.names() == ["c", "b"]
    assert list(store.open("c").read(0)) == [FIRST, Claimed(0)]
    with pytest.raises(NoSuchStudy):
        store.open("a")


def test_the_open_logs_of_a_renamed_study_can_be_used(store: Store) -> None:
    log = store.create("a", FIRST)
    log.beat([1], 3600)
    store.rename("a", "b")
    assert log.append([Claimed(0)], expected=1) == 2
    assert log.beat([], 0).keys() == {1}
    store.create("a", SECOND)
    assert list(log.read(0)) == [FIRST, Claimed(0)]


def test_a_study_cannot_take_the_name_of_another(store: Store) -> None:
    store.create("a", FIRST)
    store.create("b", SECOND)
    with pytest.raises(StudyExists, match="'b'"):
        store.rename("a", "b")
    assert store.names() == ["a", "b"]


def test_a_study_may_be_renamed_to_its_own_name(store: Store) -> None:
    store.create("a", FIRST)
    store.rename("a", "a")
    assert store.names() == ["a"]


# ---- deleting ----


def test_a_deleted_study_is_gone(store: Store) -> None:
    store.create("a", FIRST)
    store.create("b", SECOND)
    store.delete("a")
    assert store.names() == ["b"]
    with pytest.raises(NoSuchStudy, match="'a'"):
        store.open("a")
    with pytest.raises(NoSuchStudy, match="'a'"):
        store.delete("a")


def test_the_open_logs_of_a_deleted_study_raise_an_error(store: Store) -> None:
    log = store.create("a", FIRST)
    log.append([Claimed(0)])
    log.beat([0], 3600)
    store.delete("a")
    for refused in (
        lambda: log.append([Claimed(1)]),
        lambda: log.append([Claimed(1)], expected=2),
        lambda: log.append([Claimed(1)], expected=0),
        lambda: log.append([]),
        lambda: log.read(0),
        lambda: log.read(2),
        lambda: log.read(99),
        lambda: log.beat([0], 3600),
        lambda: log.beat([0], 0),
        lambda: log.beat([], 0),
    ):
        with pytest.raises(NoSuchStudy, match="'a'"):
            refused()


def test_the_logs_of_a_deleted_study_do_not_reach_a_new_one(store: Store) -> None:
    log = store.create("a", FIRST)
    log.beat([0], 3600)
    store.delete("a")
    new = store.create("a", SECOND)
    with pytest.raises(NoSuchStudy):
        log.append([Claimed(0)])
    assert list(new.read(0)) == [SECOND]
    assert new.beat([], 0).keys() == frozenset()


def test_errors_of_stores_are_storage_errors() -> None:
    assert issubclass(NoSuchStudy, StorageError)
    assert issubclass(StudyExists, StorageError)


few = st.sampled_from("abc")
actions = st.lists(
    st.tuples(st.just("create"), few)
    | st.tuples(st.just("delete"), few)
    | st.tuples(st.just("rename"), few, few),
    max_size=15,
)


@examples
@given(actions)
def test_a_store_behaves_like_a_dictionary(store: Store, done: list[Any]) -> None:
    for name in store.names():
        store.delete(name)
    model: dict[str, int] = {}  # name -> which study
    for which, (what, name, *new) in enumerate(done):
        taken = new[0] if what == "rename" else name
        error = raised = None
        if what != "create" and name not in model:
            error = NoSuchStudy
        elif what != "delete" and taken in model and (what == "create" or taken != name):
            error = StudyExists
        try:
            if what == "create":
                store.create(name, FIRST).append([Claimed(which)])
                model[name] = which
            elif what == "delete":
                store.delete(name)
                del model[name]
            else:
                store.rename(name, taken)
                model = {taken if key == name else key: model[key] for key in model}
        except (NoSuchStudy, StudyExists) as refusal:
            raised = type(refusal)
        assert raised is error
    assert store.names() == list(model)
    for name, which in model.items():
        assert list(store.open(name).read(1)) == [Claimed(which)]


# ---- processes ----


def test_processes_create_a_store_and_its_studies_at_once(shared: Store) -> None:
    processes.together(processes.create, [(shared, f"study {n}") for n in range(8)])
    assert sorted(shared.names()) == [f"study {n}" for n in range(8)]
    for name in shared.names():
        assert list(shared.open(name).read(0)) == [FIRST]


def test_exactly_one_of_several_processes_creates_a_study(shared: Store) -> None:
    processes.together(processes.create_or_open, [(shared, "study")] * 8)
    assert shared.names() == ["study"]
    first, *others = shared.open("study").read(0)
    assert first == FIRST
    assert len({event.driver for event in others}) == len(others) == 8  # type: ignore[union-attr]


def test_a_pickled_store_can_be_used(shared: Store) -> None:
    copy = pickle.loads(pickle.dumps(shared))
    copy.create("a", FIRST)
    assert shared.names() == ["a"]
    copy.close()


def test_a_closed_store_can_be_used_again(shared: Any) -> None:
    log = shared.create("a", FIRST)
    shared.close()
    shared.close()
    assert list(log.read(0)) == [FIRST]
    assert shared.names() == ["a"]
