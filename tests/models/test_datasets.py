"""The public data sets, in the tidy form and as published, and what is said of damaged files."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.files import Files, Load, refused, saved, write
from tradewind.errors import DataError
from tradewind.models.datasets import InsuranceQA, load_insuranceqa, load_mr, load_yelp
from tradewind.models.letor import load_letor

# ---- MR ----


@pytest.mark.parametrize(
    "files",
    [
        {"mr.pos.txt": "une élégante film\nfun  !\n", "mr.neg.txt": "dull .\n"},
        {"mr.pos.txt.gz": "une élégante film\nfun !\n", "mr.neg.txt": "dull .\n\n"},
        {
            "rt-polarity.pos": "une élégante film \r\nfun ! \r\n".encode("cp1252"),
            "rt-polarity.neg": b"dull . ",
        },
        {
            "rt-polarity.pos.gz": "une élégante film \nfun ! \n".encode("cp1252"),
            "rt-polarity.neg.gz": b"dull . \n",
        },
    ],
    ids=["tidy", "gzipped", "published", "published and gzipped"],
)
def test_reviews_of_films_are_positive_or_negative(tmp_path: Path, files: Files) -> None:
    texts, labels = load_mr(write(tmp_path, files))
    assert texts == ["une élégante film", "fun !", "dull ."]
    assert labels.tolist() == [1, 1, 0]


def test_the_tidy_form_comes_before_the_published(tmp_path: Path) -> None:
    tidy = {"mr.pos.txt": "tidy\n", "mr.neg.txt": "tidy\n"}
    published = {"rt-polarity.pos": "other\n", "rt-polarity.neg": "other\n"}
    assert load_mr(write(tmp_path, {**tidy, **published}))[0] == ["tidy", "tidy"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, r"has no mr\.pos\.txt or .* or rt-polarity\.neg, gzipped or not; .*cornell\.edu"),
        ({"mr.pos.txt": "a\n"}, r"has no mr\.neg\.txt,"),
        ({"mr.neg.txt": "a\n", "rt-polarity.pos": "a\n"}, r"has no mr\.pos\.txt,"),
        ({"rt-polarity.neg": "a\n"}, r"has no rt-polarity\.pos,"),
        ({"mr.pos.txt": "a\n", "mr.neg.txt": ""}, r"mr\.neg\.txt is empty"),
        ({"mr.pos.txt": "a\n", "mr.neg.txt.gz": " \n\n"}, r"mr\.neg\.txt\.gz is empty"),
        (
            {"mr.pos.txt": b"a\nb\xe9\n", "mr.neg.txt": "a\n"},
            r"mr\.pos\.txt, line 2 is not utf-8",
        ),
        (
            {"rt-polarity.pos": b"a\n", "rt-polarity.neg": b"\x81\n"},
            r"rt-polarity\.neg, line 1 is not cp1252",
        ),
    ],
)
def test_what_is_wrong_with_reviews_of_films_is_said(
    tmp_path: Path, files: Files, why: str
) -> None:
    refused(load_mr, write(tmp_path, files), why)


def test_a_gzipped_file_cut_off_anywhere_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, {"mr.pos.txt": "a\n"})
    content = gzip.compress(b"a review\nand another\n", mtime=0)
    for end in range(2, len(content)):
        (tmp_path / "mr.neg.txt.gz").write_bytes(content[:end])
        refused(load_mr, tmp_path, r"mr\.neg\.txt\.gz is (cut off|damaged)")


def test_a_folder_in_the_place_of_a_file_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "mr.pos.txt").mkdir()
    refused(load_mr, write(tmp_path, {"mr.neg.txt": "a\n"}), r"has no mr\.pos\.txt,")


# ---- where data are looked for ----


def test_data_are_found_in_the_folder_of_all_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mr", "yelp", "insuranceqa"):
        (tmp_path / name).mkdir()
    write(tmp_path / "mr", {"mr.pos.txt": "good\n", "mr.neg.txt": "bad\n"})
    write(tmp_path / "yelp", {"yelp_reviews.tsv": "5\there\ttext\n"})
    write(tmp_path / "insuranceqa", TIDY)
    monkeypatch.setenv("TRADEWIND_DATA", str(tmp_path))
    assert load_mr()[0] == ["good", "bad"]
    assert load_yelp()[0] == ["text"]
    assert len(load_insuranceqa().train) == 2


@pytest.mark.parametrize(
    ("load", "where"),
    [
        (load_mr, "mr/; the data are at cs.cornell.edu"),
        (load_yelp, "yelp/; the data are at yelp.com/dataset"),
        (load_insuranceqa, "insuranceqa/; the data are at github.com/shuzi/insuranceQA"),
    ],
)
def test_without_a_path_or_that_folder_the_way_to_the_data_is_told(
    load: Callable[[], Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRADEWIND_DATA", raising=False)
    with pytest.raises(DataError, match=f"TRADEWIND_DATA.*{re.escape(where)}"):
        load()


@pytest.mark.parametrize("load", [load_mr, load_yelp, load_insuranceqa, load_letor])
def test_what_is_not_there_is_a_data_error(load: Load, tmp_path: Path) -> None:
    refused(load, tmp_path / "nowhere", "nowhere")


# ---- Yelp ----

REVIEWS = [
    {"review_id": "x", "stars": 5, "text": "Great\nplace, très bon"},
    {"stars": 1.0, "text": "never again"},
]


def json_lines(*reviews: Any) -> str:
    return "".join(json.dumps(review) + "\n" for review in reviews)


@pytest.mark.parametrize("name", ["yelp_reviews.tsv", "yelp_reviews.tsv.gz"])
def test_reviews_are_read_from_a_table(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: '5\there\tGreat "place, très bon\n1\tthere\tnever again\n'})
    for path in (tmp_path, tmp_path / name):
        texts, stars = load_yelp(path)
        assert texts == ['Great "place, très bon', "never again"]
        assert stars.tolist() == [5, 1]
        assert stars.dtype == np.int64


@pytest.mark.parametrize(
    "name", ["yelp_academic_dataset_review.json", "yelp_academic_dataset_review.json.gz"]
)
def test_reviews_are_read_as_yelp_publishes_them(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: json_lines(*REVIEWS)})
    for path in (tmp_path, tmp_path / name):
        texts, stars = load_yelp(path)
        assert texts == ["Great\nplace, très bon", "never again"]
        assert stars.tolist() == [5, 1]


def test_a_file_of_reviews_may_have_any_name(tmp_path: Path) -> None:
    write(tmp_path, {"mine": json_lines(*REVIEWS)})
    assert load_yelp(tmp_path / "mine")[1].tolist() == [5, 1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "is empty"),
        ("5\ta\n", "line 1: there must be 3 columns, but there are 2"),
        ("5\ta\tb\n5\ta\tb\tc\n", "line 2: there must be 3 columns, but there are 4"),
        ("5\ta\tb\n\n", "line 2: there must be 3 columns, but there are 1"),
        ("5\ta\tb\n6\ta\tb\n", "line 2: stars must be 1, 2, 3, 4 or 5, but got '6'"),
        ("0\ta\tb\n", "line 1: stars must be"),
        ("3.5\ta\tb\n", "line 1: stars must be 1, 2, 3, 4 or 5, but got '3.5'"),
        ("9" * 5000 + "\ta\tb\n", "line 1: stars must be"),
        (b"5\ta\t\xff\n", "line 1 is not utf-8"),
        (json_lines(*REVIEWS) + "{\n", "line 3: a review must have `stars` and `text`"),
        (json_lines(*REVIEWS) + "\n", "line 3: a review must have `stars` and `text`"),
        (json_lines({"stars": 1}), "line 1: a review must have .* failed: KeyError\\('text'\\)"),
        (json_lines(REVIEWS[0], [1]), "line 2: a review must have"),
        ('{"stars": ' + "[" * 100_000, "line 1: a review must have"),
        ('{"text": "", "stars": ' + "9" * 5000 + "}", "line 1: a review must have"),
        (json_lines({"stars": 6, "text": ""}), "line 1: stars must be .* but got 6"),
        (json_lines({"stars": 4.5, "text": ""}), "line 1: stars must be .* but got 4.5"),
        (json_lines({"stars": float("nan"), "text": ""}), "line 1: stars must be .* but got nan"),
        (json_lines({"stars": True, "text": ""}), "line 1: stars must be a number"),
        (json_lines({"stars": "5", "text": ""}), "line 1: stars must be a number"),
        (json_lines({"stars": [5], "text": ""}), "line 1: stars must be a number"),
        (json_lines({"stars": 5, "text": None}), "line 1: stars must be a number and text a"),
    ],
)
def test_what_is_wrong_with_reviews_is_said(tmp_path: Path, content: str | bytes, why: str) -> None:
    write(tmp_path, {"yelp_reviews.tsv": content})
    refused(load_yelp, tmp_path, f"yelp_reviews.tsv.*{why}")


def test_a_folder_without_reviews_is_told_from_one_with(tmp_path: Path) -> None:
    why = r"has no yelp_reviews\.tsv or yelp_academic_dataset_review\.json,.*yelp\.com/dataset"
    refused(load_yelp, tmp_path, why)


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda tail: b'{"stars": 5' + tail))
def test_any_bytes_are_reviews_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any reviews"
    path.write_bytes(content)
    try:
        outcome: Any = load_yelp(path)
    except DataError as error:
        outcome = str(error)
    assert str(path) in outcome if isinstance(outcome, str) else len(outcome[0]) == len(outcome[1])


# ---- InsuranceQA ----

TIDY: dict[str, str | bytes] = {
    "answers.tsv.gz": "1\tYes & no.\n2\tAsk us.\n7\tNever.\n",
    "questions.train.tsv.gz": "auto\tIs it so?\t1 7\nlife\tWhy?\t2\n",
    "questions.valid.tsv": "life\tWhen?\t7\n",
    "questions.test.tsv.gz": "auto\tWho?\t1\n",
    "pools.npz": saved(
        train_100=np.array([[1, 2], [7, 1]], dtype=np.int16),
        valid_500=np.array([[1, 2, 7]]),
        test_500=np.array([[7, 2, 1]]),
    ),
}
V2 = "InsuranceQA.question.anslabel.raw.{}.pool.solr.{}.encoded.gz"
SPELLED = ["Yes", "&amp;", "no.", "Ask", "us.", "Never."]
SPELLED += ["Is", "it", "so?", "Why?", "When?", "Who?"]
PUBLISHED: dict[str, str | bytes] = {
    "vocabulary": "".join(f"idx_{i}\t{word}\n" for i, word in enumerate(SPELLED, 1)),
    "InsuranceQA.label2answer.raw.encoded.gz": ("1\tidx_1 idx_2 idx_3\n2\tidx_4 idx_5\n7\tidx_6\n"),
    V2.format(100, "train"): "auto\tidx_7 idx_8 idx_9\t1 7\t1 2\nlife\tidx_10\t2\t7 1\n",
    V2.format(500, "train"): "auto\tidx_7\t1\t1 2 7\n",
    V2.format(100, "valid"): "life\tidx_11\t7\t1\n",
    V2.format(500, "valid"): "life\tidx_11\t7\t1 2 7\n",
    V2.format(500, "test"): "auto\tidx_12\t1\t7 2 1\n",
}


@pytest.mark.parametrize("files", [TIDY, PUBLISHED], ids=["tidy", "published"])
def test_questions_have_answers_and_candidates(tmp_path: Path, files: Files) -> None:
    data = load_insuranceqa(write(tmp_path, files))
    assert isinstance(data, InsuranceQA)
    assert data.answers == {1: "Yes & no.", 2: "Ask us.", 7: "Never."}
    assert data.train.texts == ("Is it so?", "Why?")
    assert data.train.domains == ("auto", "life")
    assert data.train.answers == ((1, 7), (2,))
    assert data.train.pool.tolist() == [[1, 2], [7, 1]]
    assert (len(data.train), len(data.valid), len(data.test)) == (2, 1, 1)
    assert data.valid.texts == ("When?",)
    assert data.valid.answers == ((7,),)
    assert data.valid.pool.tolist() == [[1, 2, 7]]
    assert data.test.texts == ("Who?",)
    assert data.test.pool.tolist() == [[7, 2, 1]]
    assert data.test.pool.dtype == np.int32
    assert not data.test.pool.flags.writeable


def test_a_word_that_is_no_code_is_itself(tmp_path: Path) -> None:
    answers = {"InsuranceQA.label2answer.raw.encoded": "1\tidx_1\u00a0plain idx_4\n2\tx\n7\ty\n"}
    published = {k: v for k, v in PUBLISHED.items() if "label2answer" not in k}
    data = load_insuranceqa(write(tmp_path, {**published, **answers}))
    assert data.answers[1] == "Yes plain Ask"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {"answers.tsv.gz": None},
            r"has no answers\.tsv or InsuranceQA\..*github\.com/shuzi",
        ),
        ({"pools.npz": None}, r"has no pools\.npz,"),
        ({"questions.valid.tsv": None}, r"has no questions\.valid\.tsv,"),
        ({"answers.tsv.gz": ""}, r"answers\.tsv\.gz is empty"),
        ({"answers.tsv.gz": "1\ta\n2\n"}, r"answers\.tsv\.gz, line 2: there must be 2 columns"),
        ({"answers.tsv.gz": "1\ta\n1\tb\n"}, "line 2: every answer needs a distinct number"),
        ({"answers.tsv.gz": "1\ta\nx\tb\n"}, "line 2: every answer needs a distinct number"),
        ({"answers.tsv.gz": "9" * 5000 + "\tb\n"}, "line 1: every answer needs a distinct number"),
        ({"questions.valid.tsv": "life\tWhen?\n"}, r"valid\.tsv, line 1: there must be 3 columns"),
        ({"questions.valid.tsv": "a\tb\t3\n"}, r"valid\.tsv, line 1: there is no answer .* id 3"),
        ({"questions.valid.tsv": "a\tb\t-1\n"}, "line 1: there is no answer with the id -1"),
        ({"questions.valid.tsv": "a\tb\tx\n"}, "line 1: ids must be numbers, but got 'x'"),
        ({"questions.valid.tsv": "a\tb\t\n"}, "line 1: there must be at least one answer id"),
        (
            {"questions.valid.tsv": ""},
            r"pools\.npz must have a row of ids for each of the 0 questions",
        ),
        ({"questions.valid.tsv": "a\tb\t1\n" * 2}, "each of the 2 questions of questions.valid"),
        ({"pools.npz": b"nothing"}, r"pools\.npz is not an \.npz"),
        ({"pools.npz": TIDY["pools.npz"][:-9]}, r"pools\.npz is not an \.npz"),
        ({"pools.npz": saved(train_100=np.ones((2, 1), int))}, "must have one of valid_500"),
        ({"pools.npz": saved(train_100=np.array([[1, 2], [3, 1]]))}, "question 2 .*the answer 3"),
        ({"pools.npz": saved(train_100=np.ones(2, int))}, r"array of int64 with the shape \(2,\)"),
        ({"pools.npz": saved(train_100=np.ones((2, 1)))}, r"array of float64 with the shape"),
        ({"pools.npz": saved(train_100=np.array([{}]))}, r"pools\.npz is not an \.npz"),
    ],
)
def test_what_is_wrong_with_tidy_questions_is_said(
    tmp_path: Path, files: dict[str, Any], why: str
) -> None:
    refused(load_insuranceqa, write(tmp_path, changed(TIDY, files)), why)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"vocabulary": None}, "has no vocabulary,"),
        ({"vocabulary": ""}, "line 1: the vocabulary does not have .*'idx_1'"),
        ({"vocabulary": "idx_1 a\n"}, "vocabulary, line 1: there must be 2 columns"),
        ({"vocabulary": "idx_1\ta\n"}, "line 1: the vocabulary does not have .*'idx_2'"),
        ({V2.format(500, "test"): None}, r"has no .*\.500\.pool\.solr\.test\.encoded or"),
        ({V2.format(500, "test"): "auto\tidx_12\t1\n"}, "line 1: there must be 4 columns"),
        ({V2.format(500, "test"): "auto\tidx_99\t1\t1\n"}, "line 1: the vocabulary does not"),
        ({V2.format(500, "test"): "auto\tidx_1\t1\t1 3\n"}, "line 1: there is no answer .* 3"),
        (
            {V2.format(500, "test"): "a\tidx_1\t1\t1 2\na\tidx_1\t1\t1\n"},
            "line 2: all pools must have 2 answers",
        ),
        ({V2.format(500, "test"): ""}, "test.encoded.gz is empty"),
    ],
)
def test_what_is_wrong_with_published_questions_is_said(
    tmp_path: Path, files: dict[str, Any], why: str
) -> None:
    refused(load_insuranceqa, write(tmp_path, changed(PUBLISHED, files)), why)


def changed(files: Files, changes: dict[str, Any]) -> Files:
    """Files with other contents, or without those whose content is None."""
    return {name: data for name, data in {**files, **changes}.items() if data is not None}
