"""Estimators as files: everything comes back, and a file that is not one says so."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from tradewind.errors import DataError, DataMissing
from tradewind.models.saving import Savable
from tradewind.models.vectors import WordVectors

VECTORS = WordVectors(("a", "é", "nul\0"), np.array([[1.5], [2.5], [-1e30]], dtype=np.float32))


class Model(Savable, BaseEstimator):  # type: ignore[misc]
    def __init__(self, value: Any = None, other: Any = 1) -> None:
        self.value = value
        self.other = other


class Another(Model):
    pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.npz"


def again(value: Any, path: Path) -> Any:
    Model(value).save(path)
    return Model.load(path).value


def alike(a: Any, b: Any) -> bool:
    """Equal, of the same type, and so are all parts."""
    if isinstance(a, float) and a != a:
        return isinstance(b, float) and b != b
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        equal = np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        return equal and a.dtype == b.dtype and a.shape == b.shape
    if isinstance(a, WordVectors):
        return a.words == b.words and alike(a.vectors, b.vectors)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return alike(list(a.items()), list(b.items()))
    return bool(a == b)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, 10**30, -2.5, 5e-324, float("inf"), float("nan"), "", "é\n\0", "\ud800"),
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array([1.5, np.nan, np.inf], dtype=np.float16),
        np.array(["é", "longer"]),
        np.array([b"bytes", b"x"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([1 + 2j]),
        np.array(3),
        np.zeros((0, 4), dtype=np.float32),
        np.ones((5, 6))[::2, ::3],
        VECTORS,
        WordVectors((), np.empty((0, 3), dtype=np.float32)),
        [],
        (),
        {},
        [1, (2, [None, {"x": (np.arange(3), VECTORS)}])],
        {"array": "a0", "list": [1], "": {}},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_every_kind_of_value_comes_back(path: Path, value: Any) -> None:
    assert alike(again(value, path), value)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
NESTED = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(NESTED)
def test_nested_values_come_back(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    assert alike(again(value, tmp_path_factory.getbasetemp() / "nested.npz"), value)


def test_what_two_attributes_share_is_written_once(path: Path) -> None:
    model = Model(VECTORS, other=VECTORS.vectors)
    model.vectors_ = VECTORS
    model.weights_ = {"a": VECTORS.vectors, "b": VECTORS.vectors.copy()}
    model.save(path)
    with np.load(path) as file:
        assert sorted(file.files) == ["a0", "a1", "digest", "document"]
    loaded = Model.load(path)
    for vectors in (loaded.value, loaded.vectors_):
        assert alike(vectors, VECTORS)
    for array in (loaded.other, *loaded.weights_.values()):
        assert alike(array, VECTORS.vectors)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.int16(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
    ],
)
def test_numbers_of_numpy_become_plain(path: Path, value: Any, plain: Any) -> None:
    assert alike(again(value, path), plain)


def test_parameters_and_fitted_attributes_come_back(path: Path) -> None:
    model = Model("words", other=None)
    model.classes_ = np.array([1, 5])
    model.n_iter_ = 7
    model.save(str(path))
    loaded = Model.load(str(path))
    assert type(loaded) is Model
    assert loaded.get_params() == {"value": "words", "other": None}
    assert loaded.classes_.tolist() == [1, 5]
    assert vars(loaded).keys() == vars(model).keys()


def test_what_is_no_parameter_and_not_fitted_stays_behind(path: Path) -> None:
    model = Model(1)
    model._cache = object()
    model.note = "mine"
    model.save(path)
    assert vars(Model.load(path)) == {"value": 1, "other": 1}


def test_a_file_needs_no_suffix(tmp_path: Path) -> None:
    Model(3).save(tmp_path / "model")
    assert Model.load(tmp_path / "model").value == 3


def test_nothing_is_pickled(path: Path) -> None:
    Model([np.array(["a"]), VECTORS, {"x": "y"}]).save(path)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({1, 2}, "set"),
        (b"bytes", "bytes"),
        (1j, "complex"),
        (len, "builtin_function_or_method"),
        ([1, {"a": (object(),)}], "object"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_value_that_cannot_be_saved_is_named_and_nothing_is_written(
    path: Path, value: Any, kind: str
) -> None:
    Model("old").save(path)
    with pytest.raises(TypeError, match=f"value cannot be saved: .* is a {kind}$"):
        Model(value).save(path)
    assert Model.load(path).value == "old"
    assert os.listdir(path.parent) == [path.name]


# ---- writing ----


def test_a_file_is_replaced(path: Path) -> None:
    for value in ("old", "new"):
        assert again(value, path) == value
    assert os.listdir(path.parent) == [path.name]


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    file, link = tmp_path / "store" / "model.npz", tmp_path / "latest.npz"
    link.symlink_to(file)
    for value in ("not there yet", "new"):
        Model(value).save(link)
        assert link.is_symlink()
        assert not file.is_symlink()
        assert Model.load(file).value == Model.load(link).value == value
    assert os.listdir(file.parent) == [file.name]
    assert sorted(os.listdir(tmp_path)) == ["latest.npz", "store"]


@pytest.mark.parametrize("step", ["numpy.savez", "os.fsync", "os.replace"])
def test_a_write_that_fails_leaves_the_old_file(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    Model("old").save(path)
    with monkeypatch.context() as patch:
        patch.setattr(step, full)
        with pytest.raises(OSError, match="No space left"):
            Model("new").save(path)
    assert Model.load(path).value == "old"
    assert os.listdir(path.parent) == [path.name]


def test_a_link_that_somebody_planted_is_not_followed(path: Path) -> None:
    victim = path.with_name("victim")
    victim.write_text("precious")
    for planted in (f".{path.name}.{os.getpid()}.part", f"{path.name}.tmp"):
        path.with_name(planted).symlink_to(victim)
    Model("mine").save(path)
    assert victim.read_text() == "precious"
    assert Model.load(path).value == "mine"


def test_an_interrupt_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(file: Any, **_: Any) -> None:
        file.write(b"PK half")
        raise KeyboardInterrupt

    Model("old").save(path)
    with monkeypatch.context() as patch:
        patch.setattr("numpy.savez", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Model("new").save(path)
    assert Model.load(path).value == "old"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is of Linux")
def test_a_disk_that_is_full_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = open
    Model("old").save(path)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", lambda *_: really_open("/dev/full", "wb"))
        with pytest.raises(OSError, match="No space left"):
            Model("new").save(path)
    assert Model.load(path).value == "old"


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "missing"
    with pytest.raises(DataMissing, match=f"no folder {re.escape(str(folder))}$"):
        Model().save(folder / "model.npz")


# ---- files that are not models ----


def refused(path: Path, why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        Model.load(path)
    assert str(path) in str(caught.value)


def document_of(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        stored = file["document"]
    text = stored.tobytes().decode() if stored.dtype == np.uint8 else str(stored)
    return dict(json.loads(text))


def with_document(path: Path, document: Any) -> None:
    """The file with another document and its digest, in the form of those it has."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    text = json.dumps(document)
    is_bytes = arrays["document"].dtype == np.uint8
    arrays["document"] = np.frombuffer(text.encode(), np.uint8) if is_bytes else np.array(text)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    arrays["digest"] = np.frombuffer(digest, np.uint8)
    np.savez(path, **arrays)


def with_arrays(path: Path, **changes: Any) -> None:
    """The file with other arrays, or without those that are None."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def test_a_missing_file_is_missing(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(str(path))) as caught:
        Model.load(path)
    assert isinstance(caught.value, DataMissing)


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    refused(tmp_path, "folder|directory")


def test_another_kind_of_model_says_how_to_load_it(path: Path) -> None:
    Another(1).save(path)
    refused(path, r"holds a Another: load it with Another\.load")


def test_a_newer_format_asks_for_an_update(path: Path) -> None:
    Model(1).save(path)
    with_document(path, {**document_of(path), "format": 2})
    refused(path, "has format 2, but only 1 can be read: update Tradewind")


def test_arrays_of_somebody_else_are_no_model(path: Path) -> None:
    np.savez(path, weights=np.ones(3))
    refused(path, "is not a saved model")


@pytest.mark.parametrize("document", [[], "text", 3, None, {}, {"format": 1}])
def test_another_document_is_no_model(path: Path, document: Any) -> None:
    Model(1).save(path)
    with_document(path, document)
    refused(path, "is not a saved model")


def test_a_newer_format_may_be_all_different(path: Path) -> None:
    Model(1).save(path)
    with_document(path, {"format": 2, "kind": "Model", "content": {}})
    refused(path, "has format 2, but only 1 can be read: update Tradewind")


@pytest.mark.parametrize(
    "state",
    [
        [],
        {"value": {}},
        {"value": {"unheard": 1}},
        {"value": {"array": "a9"}},
        {"value": {"array": ["a0"]}},
        {"value": {"list": 3}},
        {"value": {"vectors": {"array": "a0"}}},
        {"value": {"array": "a0", "list": []}},
    ],
)
def test_a_damaged_state_is_an_error(path: Path, state: Any) -> None:
    Model(np.arange(3)).save(path)
    with_document(path, {**document_of(path), "state": state})
    refused(path, "is damaged: (?!it was changed)")


def test_a_document_that_was_changed_is_told_by_its_digest(path: Path) -> None:
    Model(np.arange(3), other="text").save(path)
    changed = json.dumps(document_of(path)).replace("text", "test").encode()
    with_arrays(path, document=np.frombuffer(changed, np.uint8))
    refused(path, "is damaged: it was changed since it was saved")


@pytest.mark.parametrize("digest", [None, np.zeros(16, np.uint8), np.array("x"), np.empty(0)])
def test_a_document_without_its_digest_is_damaged(path: Path, digest: Any) -> None:
    Model(1).save(path)
    with_arrays(path, digest=digest)
    refused(path, "is damaged: it was changed since it was saved")


def test_a_parameter_that_an_older_file_lacks_has_its_default(path: Path) -> None:
    Model("old", other=2).save(path)
    document = document_of(path)
    del document["state"]["other"]
    with_document(path, document)
    loaded = Model.load(path)
    assert loaded.get_params() == {"value": "old", "other": 1}
    assert repr(loaded) == "Model(value='old')"


@pytest.mark.parametrize("name", ["save", "get_params", "newer", "_private", "__class__", ""])
def test_a_name_that_the_model_does_not_have_is_refused(path: Path, name: str) -> None:
    Model(1).save(path)
    document = document_of(path)
    document["state"][name] = "x"
    with_document(path, document)
    refused(path, f"has '{name}', which a Model does not have: update Tradewind")


@pytest.mark.parametrize("content", [b"", b"text", pickle.dumps([1]), b"\x93NUMPY", b"PK\x03\x04"])
def test_other_bytes_are_no_model(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, r"is not an \.npz file of arrays, or it is damaged")


def test_a_single_array_is_no_model(path: Path) -> None:
    with open(path, "wb") as file:
        np.save(file, np.arange(3))
    refused(path, r"is not an \.npz file of arrays, or it is damaged")


def test_a_file_cut_off_anywhere_is_an_error(path: Path) -> None:
    Model([1, np.arange(3)]).save(path)
    content = path.read_bytes()
    for end in range(0, len(content), 7):
        path.write_bytes(content[:end])
        refused(path, "damaged")


def test_a_damaged_array_is_an_error(path: Path) -> None:
    Model(np.arange(1000)).save(path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        content[file.getinfo("a0.npy").header_offset + 2000] ^= 1
    path.write_bytes(content)
    refused(path, "damaged: Bad CRC-32")


@pytest.mark.parametrize(
    "value",
    [
        np.array(["neg", "pos"], dtype=object),
        np.array([None, 1, "a", (1, 2)], dtype=object),
        np.array([["a"], ["b"]], dtype=object),
        np.array([], dtype=object),
        {0: 1.5, 1: 2.5, "x": None},
        {(1, "a"): [2]},
    ],
    ids=lambda value: repr(value)[:30],
)
def test_labels_from_data_frames_and_keys_of_any_kind_come_back(path: Path, value: Any) -> None:
    assert alike(again(value, path), value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (np.longdouble(1.5), "longdouble"),
        (np.ma.masked_array([1, 2], mask=[True, False]), "MaskedArray"),
        (np.array([(1, None)], dtype=[("a", int), ("b", object)]), "ndarray"),
        (np.array([object()]), "object"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_numpy_would_lose_or_pickle_is_not_saved(path: Path, value: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"(?s)value cannot be saved: .* is a {kind}$"):
        Model(value).save(path)
    assert os.listdir(path.parent) == []


def test_a_range_becomes_a_tuple_and_a_random_state_nothing(path: Path) -> None:
    Model(range(1, 4)).save(path)
    assert Model.load(path).value == (1, 2, 3)
    Model(np.random.RandomState(0)).save(path)
    assert Model.load(path).value is None
