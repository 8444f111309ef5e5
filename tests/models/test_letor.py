"""Judged documents in LETOR's format, and the errors about damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.files import refused, write
from tradewind.errors import DataError
from tradewind.models import letor
from tradewind.models.letor import load_letor

JUDGED = """# a comment
2 qid:10 1:0.5 2:0.25 # doc 1
0 qid:10 2:1e3

1 qid:7 1:-1 2:0 3:4 #doc 3
"""


@pytest.mark.parametrize("name", ["train.txt", "train.txt.gz"])
def test_judged_documents_have_features_relevance_and_queries(tmp_path: Path, name: str) -> None:
    X, relevance, queries = load_letor(write(tmp_path, {name: JUDGED}) / name)
    assert X.tolist() == [[0.5, 0.25, 0], [0, 1000, 0], [-1, 0, 4]]
    assert relevance.tolist() == [2, 0, 1]
    assert queries.tolist() == [10, 10, 7]
    assert X.dtype == np.float32
    assert relevance.dtype == queries.dtype == np.int64


@pytest.mark.parametrize("first", [0, 1])
def test_a_file_that_is_read_in_pieces_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Features may be numbered from 0 or from 1, and the last ones may be missing in a piece."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, size=(60, 5)).astype(np.float32)
    table[:40, 3:] = 0.0
    table[:40, 0] = 0.0
    rows = [
        f"{i % 2} qid:{i // 4} " + " ".join(f"{first + j}:{v:g}" for j, v in enumerate(row) if v)
        for i, row in enumerate(table)
    ]
    path = write(tmp_path, {"a.txt": "\n".join(rows) + "\n# the end\n"}) / "a.txt"
    monkeypatch.setattr(letor, "_ROWS", 7)
    X, relevance, queries = load_letor(path, zero_based=first == 0)
    np.testing.assert_array_equal(X, table)
    assert relevance.tolist() == [i % 2 for i in range(60)]
    assert queries.tolist() == [i // 4 for i in range(60)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", " is empty"),
        ("# only a comment\n", " is empty"),
        ("1 1:0.5\n", ", line 1: every row needs a query"),
        ("1 qid:1 1:0.5\n# x\n1 1:0.5\n", ", line 3: every row needs a query"),
        ("1 qid:1 1:0.5\n0 qid:1 1:x\n", ", line 2: could not convert"),
        ("1 qid:1 1:0.5\nfoo\n", ", line 2: "),
        ("1 qid:1 1:0.5\n1 qid:x 1:1\n", ", line 2: "),
        ("1 qid:99999999999999999999 1:1\n", ", line 1: "),
        ("1 qid:1 2:1 1:1\n", ": Feature indices"),
        ("1 qid:1 1:1\n\n1 qid:2 1:1\n1 qid:1 1:1\n", ", line 4: the rows of a query must be next"),
        ("1 qid:1 1:1\n-1 qid:1 1:1\n", ", line 2: relevance must be 0, 1, 2"),
        ("1 qid:1 1:1\n0.5 qid:1 1:1\n", ", line 2: relevance must be 0, 1, 2"),
        ("1 qid:1 1:1\n1e300 qid:1 1:1\n", ", line 2: relevance must be .* below 2147483648"),
        ("1 qid:1 1:1\n# x\n1 qid:1 0:0 1:1\n", ", line 3: features must be numbered from 1 unl"),
        ("nan qid:1 1:1\n", ", line 1: relevance must be"),
        ("inf qid:1 1:1\n", ", line 1: relevance must be"),
        ("1 qid:1 1:1\n1 qid:1 1:nan\n", ", line 2: features must be finite"),
        ("1 qid:1 1:1e300\n", ", line 1: features must be finite"),
        ("1 qid:1 1:1 2000000000:1\n", ": there may be up to 65536 features, but there are 20"),
        (b"\xff\xfe\x00", ", line 1"),
    ],
)
def test_what_is_wrong_with_judged_documents_is_said(
    tmp_path: Path, content: str | bytes, why: str
) -> None:
    refused(load_letor, write(tmp_path, {"a.txt": content}) / "a.txt", f"a\\.txt{why}")


@pytest.mark.parametrize(
    ("zero_based", "train", "test"),
    [
        (False, [[0, 7, 0, 1, 0], [0, 2, 0, 0, 0]], [[1, 3, 0, 0, 0], [0, 5, 0, 0, 0]]),
        (True, [[0, 0, 7, 0, 1], [0, 0, 2, 0, 0]], [[0, 1, 3, 0, 0], [0, 0, 5, 0, 0]]),
    ],
)
def test_files_that_belong_together_have_the_same_columns(
    tmp_path: Path, zero_based: bool, train: list[list[int]], test: list[list[int]]
) -> None:
    """Though each lacks some features, and neither has the last or number 0."""
    write(
        tmp_path,
        {"train": "1 qid:1 2:7 4:1\n0 qid:1 2:2\n", "test": "1 qid:9 1:1 2:3\n0 qid:9 2:5\n"},
    )
    for name, expected in (("train", train), ("test", test)):
        X, _, _ = load_letor(tmp_path / name, n_features=5, zero_based=zero_based)
        assert X.tolist() == expected


def test_without_their_number_features_end_with_the_last_there_is(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1 qid:1 2:7 4:1\n", "none": "1 qid:1\n"})
    assert load_letor(tmp_path / "a")[0].tolist() == [[0, 7, 0, 1]]
    assert load_letor(tmp_path / "none")[0].shape == (1, 0)
    assert load_letor(tmp_path / "none", n_features=2)[0].tolist() == [[0, 0]]


@pytest.mark.parametrize("zero_based", [False, True])
def test_a_feature_beyond_the_last_is_an_error(tmp_path: Path, zero_based: bool) -> None:
    path = write(tmp_path, {"a": f"1 qid:1 1:7\n0 qid:1 1:2 {4 - zero_based}:1\n"}) / "a"
    assert load_letor(path, n_features=4, zero_based=zero_based)[0].shape == (2, 4)
    with pytest.raises(
        DataError, match="a, line 2: feature numbers must not exceed n_features=3: 0 q"
    ):
        load_letor(path, n_features=3, zero_based=zero_based)


@pytest.mark.parametrize(
    "chosen",
    [{"n_features": 0}, {"n_features": 65_537}, {"n_features": 2.5}, {"zero_based": "auto"}],
)
def test_what_is_said_of_features_is_checked(tmp_path: Path, chosen: dict[str, Any]) -> None:
    path = write(tmp_path, {"a": JUDGED}) / "a"
    with pytest.raises(ValueError, match=f"{next(iter(chosen))} must be "):
        load_letor(path, **chosen)


def test_few_numbers_do_not_make_a_giant_table_unless_it_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": "1 qid:1 60000:1\n" * 100}) / "a"
    refused(load_letor, path, "100 rows of 60000 features .* give n_features=60000")
    assert load_letor(path, n_features=60_000)[0].shape == (100, 60_000)


def test_a_folder_holds_no_judged_documents(tmp_path: Path) -> None:
    refused(load_letor, tmp_path, "is a folder")


@given(st.lists(st.sampled_from([b"1 ", b"qid:1 ", b"1:2 ", b"\n", b"#", b":", b"x", b"\xff"])))
def test_any_bytes_are_judged_documents_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any documents"
    path.write_bytes(b"".join(pieces))
    try:
        outcome: Any = load_letor(path)
    except DataError as error:
        outcome = str(error)
    assert str(path) in outcome if isinstance(outcome, str) else len(outcome[0]) == len(outcome[1])
