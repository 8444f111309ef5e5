"""Word vectors: the value, every file format and its damages, and vectors for unknown words."""

from __future__ import annotations

import copy
import gzip
import io
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from tests.models import needs
from tradewind.errors import DataError
from tradewind.models.vectors import (
    WordVectors,
    _checksum,
    embedding,
    random_vectors,
    read_vectors,
    word2vec,
)

WORDS = ("the", "café", "n't", "東京")
TABLE = np.array([[0.5, -1.25], [3.0, 1e-5], [0.1, 0.2], [-7.5, 1e20]], dtype=np.float32)
TEXTS = [["red", "green", "blue"], ["red", "blue", "green", "green"], ["green", "red"]] * 20


# ---- writing the formats ----

Writer = Callable[[Sequence[str], NDArray[Any]], bytes]


def binary(words: Sequence[str], table: NDArray[Any], end: bytes = b"\n") -> bytes:
    rows = (
        word.encode() + b" " + row.astype("<f4").tobytes() + end
        for word, row in zip(words, table, strict=True)
    )
    return f"{table.shape[0]} {table.shape[1]}\n".encode() + b"".join(rows)


def bare_binary(words: Sequence[str], table: NDArray[Any]) -> bytes:
    return binary(words, table, end=b"")


def glove(words: Sequence[str], table: NDArray[Any], end: str = "\n") -> bytes:
    rows = (
        f"{word} {' '.join(repr(float(value)) for value in row)}{end}"
        for word, row in zip(words, table, strict=True)
    )
    return "".join(rows).encode()


def text(words: Sequence[str], table: NDArray[Any]) -> bytes:
    """As the original tool writes it, with a space behind each number."""
    return f"{table.shape[0]} {table.shape[1]}\n".encode() + glove(words, table, end=" \n")


def windows(words: Sequence[str], table: NDArray[Any]) -> bytes:
    return glove(words, table, end="\r\n")


def arrays(words: Sequence[str], table: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, words=np.array(words, dtype=str), vectors=table)
    return file.getvalue()


FORMATS = [binary, bare_binary, text, glove, windows, arrays]
every_format = pytest.mark.parametrize("write", FORMATS, ids=lambda write: write.__name__)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors"


def read(path: Path, content: bytes, words: Sequence[str] | None = None) -> WordVectors:
    path.write_bytes(content)
    return read_vectors(path, words)


def same(read: WordVectors, words: Sequence[str], table: NDArray[Any]) -> bool:
    return read.words == tuple(words) and np.array_equal(read.vectors, table)


# ---- the value ----


def test_a_word_has_its_vector() -> None:
    vectors = WordVectors(WORDS, TABLE)
    assert len(vectors) == 4
    assert vectors.dimensions == 2
    assert vectors.rows == {"the": 0, "café": 1, "n't": 2, "東京": 3}
    assert "n't" in vectors
    assert "not" not in vectors
    assert vectors["café"].tolist() == TABLE[1].tolist()
    assert list(vectors) == list(WORDS)
    with pytest.raises(KeyError, match="not"):
        vectors["not"]


def test_the_representation_is_short() -> None:
    assert repr(WordVectors(WORDS, TABLE)) == "<WordVectors: 4 words, 2 dimensions>"


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, ">f4"])
def test_vectors_of_any_numbers_become_float32(dtype: Any) -> None:
    vectors = WordVectors(("a", "b"), np.array([[1, 2], [3, 4]], dtype=dtype))
    assert vectors.vectors.dtype == np.float32
    assert vectors.vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("words", [["a", "b"], np.array(["a", "b"]), (w for w in "ab")])
def test_words_may_come_in_any_row(words: Any) -> None:
    assert WordVectors(words, np.eye(2, dtype=np.float32)).words == ("a", "b")


def test_nothing_can_be_changed() -> None:
    given = TABLE.copy()
    vectors = WordVectors(WORDS, given)
    given[:] = 0
    assert np.array_equal(vectors.vectors, TABLE)
    with pytest.raises(ValueError, match="read-only"):
        vectors["the"][0] = 1
    with pytest.raises(AttributeError):
        vectors.words = ()  # type: ignore[misc]


def test_an_array_that_is_read_only_is_not_copied() -> None:
    given = TABLE.copy()
    given.setflags(write=False)
    assert np.shares_memory(WordVectors(WORDS, given).vectors, given)


def test_a_copy_is_the_thing_itself() -> None:
    vectors = WordVectors(WORDS, TABLE)
    assert copy.copy(vectors) is vectors
    assert copy.deepcopy({"vectors": vectors})["vectors"] is vectors


def test_a_pickle_holds_the_words_and_vectors_and_no_more() -> None:
    vectors = WordVectors(WORDS, TABLE)
    before = pickle.dumps(vectors)
    assert vectors.rows["the"] == 0
    assert pickle.dumps(vectors) == before
    again = pickle.loads(before)
    assert same(again, WORDS, TABLE)
    assert again["n't"].tolist() == TABLE[2].tolist()
    assert not again.vectors.flags.writeable


@pytest.mark.parametrize(
    ("words", "table", "why"),
    [
        ("ab", np.eye(2), "a list of strings, but got 'ab'"),
        (("a", 1), np.eye(2), "must be a string, but got 1"),
        (("a", "b", "a"), np.eye(3), "distinct, but 'a' is given twice"),
        (("a", "b"), np.eye(3), r"each of 2 words, but got an array of the shape \(3, 3\)"),
        (("a", "b"), np.ones(2), r"shape \(2,\)"),
        (("a",), np.ones((1, 0)), r"shape \(1, 0\)"),
        (("a", "b"), np.array([[1.0, 2.0], [np.nan, 1.0]]), "the vector of 'b' is not"),
        (("a", "b"), np.array([[np.inf, -np.inf], [1.0, 1.0]]), "the vector of 'a' is not"),
        (("a",), np.array([[1e300]]), "the vector of 'a' is not"),
        (("a",), np.array([[1 + 2j]]), "vectors must be real numbers, but got complex128"),
        (("a",), np.array([["1"]]), "vectors must be real numbers, but got <U1"),
    ],
)
def test_vectors_that_contradict_themselves_are_refused(words: Any, table: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        WordVectors(words, table)


def test_big_numbers_are_finite_although_their_sum_is_not() -> None:
    assert WordVectors(("a",), np.full((1, 3), 3e38)).dimensions == 3


def test_there_may_be_no_words() -> None:
    vectors = WordVectors((), np.empty((0, 5), dtype=np.float32))
    assert len(vectors) == 0
    assert vectors.dimensions == 5


# ---- reading ----


@every_format
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_every_format_is_told_from_its_content(
    path: Path, write: Writer, pack: Callable[[bytes], bytes]
) -> None:
    content = pack(write(WORDS, TABLE))
    assert same(read(path, content), WORDS, TABLE)
    assert not read_vectors(path).vectors.flags.writeable
    assert same(read(path, content, ["東京", "the", "unheard"]), ("the", "東京"), TABLE[[0, 3]])


@every_format
def test_no_word_may_be_wanted(path: Path, write: Writer) -> None:
    vectors = read(path, write(WORDS, TABLE), [])
    assert vectors.words == ()
    assert vectors.dimensions == 2


@every_format
def test_the_first_of_repeated_words_counts(path: Path, write: Writer) -> None:
    content = write(("a", "b", "a", "c"), TABLE)
    assert same(read(path, content), ("a", "b", "c"), TABLE[[0, 1, 3]])
    assert same(read(path, content, ["a", "c"]), ("a", "c"), TABLE[[0, 3]])


def test_a_single_string_is_not_the_words(path: Path) -> None:
    with pytest.raises(ValueError, match="a list of strings, but got 'the'"):
        read(path, binary(WORDS, TABLE), "the")


@pytest.mark.parametrize("words", [[1, 2], ["the", None], {b"the"}])
def test_words_are_strings(path: Path, words: Any) -> None:
    with pytest.raises(ValueError, match="every word must be a string, but got"):
        read(path, binary(WORDS, TABLE), words)


@pytest.mark.parametrize("write", [text, glove, windows], ids=lambda write: write.__name__)
def test_a_mark_of_utf_8_and_empty_lines_say_nothing(path: Path, write: Writer) -> None:
    end = b"\r\n" if write is windows else b"\n"
    lines = write(WORDS, TABLE).split(end)
    content = b"\xef\xbb\xbf" + end.join([*lines[:2], b"", *lines[2:], b" ", b""])
    assert same(read(path, content), WORDS, TABLE)
    assert same(read(path, gzip.compress(content), ["the"]), ["the"], TABLE[:1])


def test_half_precision_is_read(path: Path) -> None:
    assert same(
        read(path, arrays(WORDS[:3], TABLE[:3].astype(np.float16))),
        WORDS[:3],
        TABLE[:3].astype(np.float16).astype(np.float32),
    )


TABLES = npst.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 5)),
    elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
)
PLAIN = st.text(st.characters(codec="utf-8", exclude_characters=" \n\0"), min_size=1, max_size=5)


def is_number(field: str) -> bool:
    try:
        float(field.encode())
    except ValueError:
        return False
    return True


# words with spaces, if their end cannot be taken for one more number, or for too wide a gap
SPACED = st.text(
    st.characters(codec="utf-8", exclude_characters="\n\0"), min_size=1, max_size=5
).filter(lambda word: word[-1] != " " and not any(map(is_number, word.split(" ")[1:])))


@given(TABLES, st.data())
@pytest.mark.parametrize(
    ("write", "alphabet"),
    [(binary, PLAIN), (bare_binary, PLAIN), (text, SPACED), (glove, SPACED), (arrays, SPACED)],
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    write: Writer,
    alphabet: st.SearchStrategy[str],
    table: NDArray[Any],
    data: st.DataObject,
) -> None:
    n = len(table)
    words = data.draw(st.lists(alphabet, min_size=n, max_size=n, unique=True))
    path = tmp_path_factory.getbasetemp() / "drawn"
    assert same(read(path, write(words, table)), words, table)


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda tail: b"2 1\na " + tail))
@settings(max_examples=300)
def test_any_bytes_are_vectors_or_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    try:
        outcome: Any = read(path, content)
    except DataError as error:
        outcome = str(error)
    assert str(path) in outcome if isinstance(outcome, str) else outcome.dimensions > 0


def test_words_may_contain_spaces_as_in_glove_840b(path: Path) -> None:
    words = (".", ". . .", "at name@domain.com", "1", "nan", "1 2 three")
    table = np.arange(12, dtype=np.float32).reshape(6, 2)
    assert same(read(path, glove(words, table)), words, table)
    assert same(read(path, text(words, table)), words, table)
    assert same(read(path, glove(words[1:], table[1:])), words[1:], table[1:])


# ---- damaged files ----


@pytest.mark.parametrize("write", [binary, bare_binary, arrays], ids=lambda write: write.__name__)
def test_a_file_cut_off_anywhere_is_an_error(path: Path, write: Writer) -> None:
    content = write(WORDS, TABLE)
    whole = len(content.rstrip(b"\n")) if write is binary else len(content)
    for end in range(whole):
        with pytest.raises(DataError, match=re.escape(str(path))):
            read(path, content[:end])
        with pytest.raises(DataError, match=re.escape(str(path))):
            read(path, content[:end], ["café"])


@every_format
def test_a_gzipped_file_cut_off_anywhere_is_an_error(path: Path, write: Writer) -> None:
    content = gzip.compress(write(WORDS, TABLE), mtime=0)
    for end in range(len(content)):
        with pytest.raises(DataError, match=re.escape(str(path))):
            read(path, content[:end])


@pytest.mark.parametrize("write", [text, glove], ids=lambda write: write.__name__)
def test_a_text_that_ends_within_a_row_is_an_error(path: Path, write: Writer) -> None:
    content = write(WORDS, TABLE)
    last_number = content.rstrip().rindex(b" ")
    last_row = content.rstrip().rindex(b"\n") + 1
    for end in range(last_row + 1, last_number + 1):
        with pytest.raises(DataError, match="line"):
            read(path, content[:end])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\n\n", "holds no word vectors"),
        (b"just some prose\nand more\n", "holds no word vectors: it begins with b'just some"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "holds no word vectors"),
        (b"0 300\n", "holds no vectors"),
        (b"3 0\na\nb\nc\n", "holds no vectors"),
        (b"a 1 2\nb 1 2 3\n", "line 2: .* a word and 2 numbers, but this one has 4 fields"),
        (b"a 1 2\nb 1\n", "line 2: .* a word and 2 numbers, but this one has 2 fields"),
        (b"a  1 2\nb  1 2\n", "line 1: fields must be separated by single spaces"),
        (b"a 1  2\nb 1  2\n", "line 1: fields must be separated by single spaces"),
        (b"2 2\na  1 2\nb  1 2\n", "line 2: fields must be separated by single spaces"),
        (b"a 1 2\n 1 2\n", "line 2: .* a word and 2 numbers"),
        (b"a 1 2\nb 1 x\n", "line 2: could not convert"),
        (b"a 1 2\nb 1 nan\n", "line 2: the vector is not finite"),
        (b"a 1 2\nb inf 1\n", "line 2: the vector is not finite"),
        (b"a 1 2\nb 1e39 1\n", "line 2: the vector is not finite"),
        (b"a 1 2\n\xff\xfe 1 2\n", r"the word b'\\xff\\xfe' is not UTF-8"),
        (b"3 2\na 1 2\nb 3 4\n", "it has 2 of 3 vectors"),
        (b"3 2\na 1 2\n\n\nb 3 4\n\n", "it has 2 of 3 vectors"),
        (b"1 2\na 1 2\n\nb 3 4\n", "line 4: there are more than the 1 vectors that the header"),
        (b"2 32769\na 1\n", "up to 32768 dimensions, but the header says 32769"),
        (b"1 2\na 1 2\nb 3 4\n", "line 3: there are more than the 1 vectors that the header"),
        (b"2 3\na 1 2\nb 3 4\n", "line 2: .* a word and 3 numbers, but this one has 3 fields"),
        (b"2 1\na 1 2\nb 3 4\n", "line 2: .* a word and 1 numbers, but this one has 3 fields"),
        (b"2 3\na 1 x 3\nb 3 4 5\n", "line 2: could not convert"),
        (binary(WORDS, TABLE) + b"more", "has more data after the 4 vectors"),
        (binary(WORDS, TABLE).replace(b"4 2", b"3 2"), "has more data after the 3 vectors"),
        (binary(WORDS, TABLE).replace(b"4 2", b"9 2"), "cut off in vector 5 of 9"),
        (binary(("a", "b"), np.array([[1.0, 2.0], [3.0, np.nan]])), "'b' is not finite"),
        (binary(("a", ""), np.ones((2, 2))), "vector 2: b'' is not a word"),
        (binary(("a", "b\nc"), np.ones((2, 2))), r"vector 2: b'b\\nc' is not a word"),
        (binary(("a", "b\0c"), np.ones((2, 2))), "vector 2"),
        (binary(WORDS, TABLE).replace("café".encode(), b"caf\xe9!"), "is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(path: Path, content: bytes, why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        read(path, content)
    assert str(path) in str(caught.value)


def saved(**content: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (saved(words=np.array(["a"])), "must have the arrays `words` and `vectors`"),
        (saved(words=np.array(["a"], dtype=object), vectors=np.ones((1, 2))), "is not an .npz"),
        (saved(words=np.array([1]), vectors=np.ones((1, 2))), "words must be strings"),
        (saved(words=np.array(["a"]), vectors=np.array([["x"]])), "vectors numbers"),
        (
            saved(words=np.array(["a"]), vectors=np.ones((2, 2))),
            "vectors must have a row for each word",
        ),
        (saved(words=np.array(["a"]), vectors=np.ones(1)), "vectors must have a row for each word"),
        (
            saved(words=np.array([], dtype=str), vectors=np.ones((0, 2))),
            "vectors must have a row for each word",
        ),
        (saved(words=np.array(["a"]), vectors=np.array([[np.nan]])), "'a' is not finite"),
        (b"PK\x03\x04 and then nothing", "is not an .npz"),
    ],
)
def test_what_is_wrong_with_arrays_is_said(path: Path, content: bytes, why: str) -> None:
    with pytest.raises(DataError, match=why):
        read(path, content)


def test_a_word_that_is_not_utf_8_does_not_matter_where_it_is_not_wanted(path: Path) -> None:
    content = binary(WORDS, TABLE).replace("café".encode(), b"caf\xe9!")
    assert same(read(path, content, WORDS), ("the", "n't", "東京"), TABLE[[0, 2, 3]])


def test_a_flipped_bit_in_a_gzipped_file_is_an_error(path: Path) -> None:
    content = bytearray(gzip.compress(binary(WORDS, TABLE), mtime=0))
    content[-6] ^= 1  # of the checksum
    with pytest.raises(DataError, match="damaged"):
        read(path, bytes(content))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read_vectors(tmp_path)


def peak(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("header", [b"999999999999999 300", b"1 999999999999999", b"9" * 5000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_a_header_that_promises_the_world_takes_no_memory(
    path: Path, header: bytes, pack: Callable[[bytes], bytes]
) -> None:
    path.write_bytes(pack(header + b"\nword \x80\0\0\0" * 10))

    def refused() -> None:
        with pytest.raises(DataError):
            read_vectors(path)

    assert peak(refused) < 40e6


@pytest.mark.parametrize(
    ("begin", "why"),
    [
        (b"5 3\nx", "vector 1: no word ends within 1048576 bytes"),
        (b"2 1\na \0\0\0\0", "vector 2: no word ends within 1048576 bytes"),
        (b"5 3\na 1 2 3\nb", "line 3: lines must be shorter than 1048576 bytes"),
        (b"a 1 2\nb", "line 2: lines must be shorter than 1048576 bytes"),
        (b"a 1 2", "line 1: lines must be shorter than 1048576 bytes"),
    ],
)
def test_a_word_or_line_without_end_is_not_read_to_the_end(
    path: Path, begin: bytes, why: str
) -> None:
    packer = zlib.compressobj(1, wbits=31)
    with open(path, "wb") as file:
        file.write(packer.compress(begin))
        for _ in range(40):
            file.write(packer.compress(b"2" * (1 << 20)))  # and the end of the file is missing

    def refused() -> None:
        with pytest.raises(DataError, match=why):
            read_vectors(path, ["a"])

    assert peak(refused) < 30e6


def test_words_that_are_not_wanted_are_never_held(path: Path) -> None:
    words = [f"word{i}" for i in range(40_000)]
    path.write_bytes(binary(words, np.ones((40_000, 300))))
    assert path.stat().st_size > 48e6
    assert peak(lambda: read_vectors(path, words[::1000])) < 20e6


# ---- finding the file ----


def test_a_missing_file_says_where_vectors_are_to_be_had(tmp_path: Path) -> None:
    missing = tmp_path / "missing.bin"
    with pytest.raises(FileNotFoundError, match=r"code\.google\.com.*nlp\.stanford\.edu") as caught:
        read_vectors(missing)
    assert str(missing) in str(caught.value)


def test_a_bare_name_is_found_among_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "wordvec"
    folder.mkdir(parents=True)
    (folder / "ours.npz").write_bytes(arrays(WORDS, TABLE))
    (folder / "theirs.txt").write_bytes(glove(WORDS[:1], TABLE[:1]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRADEWIND_DATA", str(tmp_path / "data"))
    assert read_vectors("ours").words == WORDS
    assert read_vectors("ours.npz").words == WORDS
    assert read_vectors("theirs.txt").words == WORDS[:1]
    with pytest.raises(FileNotFoundError, match="wordvec"):
        read_vectors("nobody's")
    with pytest.raises(FileNotFoundError, match=r"no word vectors at other/ours:"):
        read_vectors("other/ours")
    (tmp_path / "ours").write_bytes(glove(WORDS[:2], TABLE[:2]))
    assert read_vectors("ours").words == WORDS[:2]


# ---- drawing ----


def test_a_drawn_vector_depends_on_the_seed_and_the_word_alone() -> None:
    some = random_vectors(["a", "b", "c"], 7, spread=0.25, seed=3)
    other = random_vectors(["x", "c", "a"], 7, spread=0.25, seed=3)
    assert np.array_equal(some[[0, 2]], other[[2, 1]])
    assert not np.isin(some, random_vectors(["a", "b", "c"], 7, spread=0.25, seed=4)).any()
    assert len(np.unique(some)) == some.size


def test_drawn_vectors_never_change() -> None:
    drawn = random_vectors(["the", "東京", "\ud800"], 2, spread=1.0, seed=42)
    assert drawn.dtype == np.float32
    assert drawn.tolist() == [
        [0.8568767309188843, 0.8808926939964294],
        [0.026920536532998085, -0.13458353281021118],
        [0.9840685129165649, 0.608261227607727],
    ]


def test_drawn_numbers_are_spread_evenly() -> None:
    words = [f"word{i}" for i in range(3000)]
    drawn = random_vectors(words, 50, spread=2.0, seed=0).astype(np.float64)
    assert np.abs(drawn).max() <= 2.0
    counts, _ = np.histogram(drawn, bins=20, range=(-2.0, 2.0))
    expected = drawn.size / 20
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi², 19 degrees: p = 0.0007
    between = np.corrcoef(drawn.T) - np.eye(50)
    assert np.abs(between).max() < 0.09  # 5 standard errors
    assert np.abs(np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1]) < 0.09


@pytest.mark.parametrize(("words", "dimensions"), [([], 3), (["a"], 1), (["a"] * 600, 2)])
def test_any_number_of_vectors_can_be_drawn(words: list[str], dimensions: int) -> None:
    drawn = random_vectors(words, dimensions, spread=0.25, seed=0)
    assert drawn.shape == (len(words), dimensions)
    assert len(np.unique(drawn, axis=0)) == min(1, len(words))


# ---- word2vec ----


@needs.gensim
def test_word2vec_trains_the_words_of_the_texts() -> None:
    table = word2vec(TEXTS, ["blue", "red"], 8, seed=1)
    assert table.shape == (2, 8)
    assert table.dtype == np.float32
    assert np.array_equal(table, word2vec(TEXTS, ["red", "blue"], 8, seed=1)[::-1])
    assert not np.array_equal(table, word2vec(TEXTS, ["blue", "red"], 8, seed=2))
    assert not np.array_equal(table, word2vec(TEXTS, ["blue", "red"], 8, window=1, seed=1))


@needs.gensim
def test_a_word_that_the_texts_have_once_is_trained() -> None:
    from gensim.models import Word2Vec

    texts = [*TEXTS, ["red", "once", "blue"]]
    table = word2vec(texts, ["once", "never"], 50, seed=1)
    plain = Word2Vec(
        texts, vector_size=50, window=10, min_count=1, workers=1, seed=1, hashfxn=_checksum
    )
    assert np.array_equal(table[0], plain.wv["once"])
    assert "never" not in plain.wv


@needs.gensim
def test_words_that_the_texts_lack_are_drawn_like_the_others() -> None:
    table = word2vec(TEXTS, ["unheard", "red"], 200, seed=1)
    assert np.array_equal(table[1], word2vec(TEXTS, ["red"], 200, seed=1)[0])
    assert table[0].var() == pytest.approx(word2vec(TEXTS, ["red"], 200, seed=1).var(), rel=0.5)


@needs.gensim
@pytest.mark.parametrize("texts", [[], [[]]])
def test_without_words_in_the_texts_all_are_drawn(texts: list[list[str]]) -> None:
    expected = random_vectors(["a"], 4, spread=0.25, seed=-3)
    assert np.array_equal(word2vec(texts, ["a"], 4, seed=-3), expected)


def test_texts_must_be_tokens() -> None:
    with pytest.raises(ValueError, match="tokenize it"):
        word2vec(["a text"], ["a"], 4, seed=0)  # type: ignore[list-item]


@needs.gensim
@pytest.mark.slow
def test_word2vec_gives_the_same_in_every_process() -> None:
    code = (
        "from tradewind.models.vectors import word2vec\n"
        "words = [f'word{i}' for i in range(300)]\n"
        "print(word2vec([words, words[::3]] * 5, words, 5, seed=1).tobytes().hex())"
    )
    seen = set()
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen.add(done.stdout)
    assert len(seen) == 1


def test_without_gensim_word2vec_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(ImportError, match=r"pip install gensim"):
        word2vec(TEXTS, ["red"], 4, seed=0)
    assert embedding(["red"], None, dimensions=4).shape == (2, 4)


# ---- the table of a model ----

KNOWN = WordVectors(
    tuple(f"k{i}" for i in range(500)),
    np.random.default_rng(0).normal(2.0, 0.7, size=(500, 20)).astype(np.float32),
)


def test_padding_is_zero_and_known_words_keep_their_vectors() -> None:
    table = embedding(["k3", "new", "k0"], KNOWN)
    assert table.shape == (4, 20)
    assert table.dtype == np.float32
    assert not table[0].any()
    assert np.array_equal(table[1], KNOWN["k3"])
    assert np.array_equal(table[3], KNOWN["k0"])
    assert table.flags.writeable


@pytest.mark.parametrize("n", [2, 100, 500])
def test_the_spread_is_that_of_the_variance_within_dimensions(n: int) -> None:
    vectors = WordVectors(KNOWN.words[:n], KNOWN.vectors[:n])
    variance = KNOWN.vectors[:n].astype(np.float64).var(axis=0).mean()
    assert vectors.spread == pytest.approx(np.sqrt(3 * variance), rel=1e-9)


def test_the_spread_of_many_vectors_needs_all_of_them() -> None:
    table = np.zeros((10_000, 1), dtype=np.float32)
    table[-1] = 100.0
    vectors = WordVectors([str(i) for i in range(10_000)], table)  # type: ignore[arg-type]
    assert vectors.spread == pytest.approx(np.sqrt(3 * table.astype(np.float64).var()))


@pytest.mark.parametrize("table", [np.empty((0, 3)), np.ones((1, 3)), np.full((2, 3), 0.1)])
def test_where_nothing_varies_the_spread_is_that_of_kim(table: NDArray[Any]) -> None:
    words = ("a", "b")[: len(table)]
    assert WordVectors(words, table.astype(np.float32)).spread == 0.25


def test_unknown_words_beside_the_largest_vectors_are_finite() -> None:
    table = np.array([[3.4e38] * 50, [-3.4e38] * 50], dtype=np.float32)
    drawn = embedding(["new"], WordVectors(("a", "b"), table))[1]
    assert np.isfinite(drawn).all()
    assert np.abs(drawn).max() > 1e38


def test_unknown_words_have_the_variance_of_the_vectors() -> None:
    new = [f"n{i}" for i in range(500)]
    table = embedding(["k1", *new], KNOWN, seed=5)[2:]
    assert table.var() == pytest.approx(0.49, rel=0.05)
    assert 0.95 * KNOWN.spread < np.abs(table).max() <= KNOWN.spread
    assert not np.array_equal(table, embedding(["k1", *new], KNOWN, seed=6)[2:])


def test_an_unknown_word_does_not_depend_on_the_words_beside_it() -> None:
    first = embedding(["k1", "new", "k2"], KNOWN, seed=3)[2]
    second = embedding(["new", "other"], KNOWN, seed=3)[1]
    assert np.array_equal(first, second)
    assert np.array_equal(first, random_vectors(["new"], 20, spread=KNOWN.spread, seed=3)[0])


def test_without_vectors_all_words_are_drawn() -> None:
    table = embedding(["a", "b"], None, dimensions=6, seed=1)
    assert not table[0].any()
    assert np.array_equal(table[1:], random_vectors(["a", "b"], 6, spread=0.25, seed=1))
    assert embedding(["a"], None).shape == (2, 300)
    assert embedding([], None, dimensions=2).tolist() == [[0, 0]]


@needs.gensim
def test_unknown_words_can_be_trained() -> None:
    known = WordVectors(("red",), np.ones((1, 8), dtype=np.float32))
    table = embedding(["blue", "red", "green"], known, unknown="word2vec", texts=TEXTS, seed=1)
    trained = word2vec(TEXTS, ["blue", "green"], 8, seed=1)
    trained *= known.spread * (8 / 3) ** 0.5 / np.linalg.norm(trained, axis=1, keepdims=True)
    np.testing.assert_allclose(table[[1, 3]], trained, rtol=1e-6)
    assert table[2].tolist() == [1] * 8
    alone = embedding(["blue"], None, unknown="word2vec", texts=TEXTS, dimensions=8, seed=1)
    np.testing.assert_allclose(alone[1], trained[0], rtol=1e-6)
    narrow = embedding(
        ["blue"], None, unknown="word2vec", texts=TEXTS, dimensions=8, window=1, seed=1
    )
    assert not np.array_equal(narrow, alone)


def test_trained_words_are_as_long_as_the_given_vectors_on_the_whole() -> None:
    words = sorted({word for text in TEXTS for word in text})
    table = embedding(["k1", *words], KNOWN, unknown="word2vec", texts=TEXTS, seed=1)
    mean_square = np.square(KNOWN.vectors - KNOWN.vectors.mean(axis=0)).sum(axis=1).mean()
    np.testing.assert_allclose(np.linalg.norm(table[2:], axis=1), mean_square**0.5, rtol=1e-5)


def test_unknown_words_are_treated_in_one_of_two_ways() -> None:
    with pytest.raises(ValueError, match="'random', 'word2vec', but got 'zero'"):
        embedding(["a"], None, unknown="zero")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs the texts"):
        embedding(["a"], None, unknown="word2vec")


# ---- files that unpack to far more than they are ----


def test_a_packed_file_must_stay_in_proportion(path: Path) -> None:
    line = b"word " + b" ".join(b"%d" % i for i in range(300)) + b"\n"
    path.write_bytes(gzip.compress(line * 20_000))  # 24 MB in 50 KB
    with pytest.raises(DataError, match=r"more than 20 times its size, or 16 MB.*with gunzip"):
        read_vectors(path)
    path.write_bytes(line * 20_000)
    assert len(read_vectors(path)) == 1


def test_a_packed_archive_must_stay_in_proportion(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    words, table = np.array(["a"] * 50_000), np.zeros((50_000, 100), dtype=np.float32)
    np.savez_compressed(path, words=words, vectors=table)
    with pytest.raises(DataError, match=r"more than 20 times its size.*numpy\.savez and read"):
        read_vectors(path)
    np.savez(path, words=words, vectors=table)
    assert len(read_vectors(path)) == 1


def test_real_vectors_are_in_proportion(tmp_path: Path) -> None:
    """The published Google News vectors take 3.6 GB and 1.6 GB packed."""
    path = tmp_path / "vectors.npz"
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(20_000)]
    table = rng.normal(size=(20_000, 300)).astype(np.float32)
    read(path, gzip.compress(binary(words, table), 1))  # 24 MB
    np.savez_compressed(path, words=np.array(words), vectors=table)
    assert len(read_vectors(path)) == 20_000


def test_text_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    np.savez(path, words=np.array([0x110000], dtype="<u4").view("<U1"), vectors=np.ones((1, 2)))
    with pytest.raises(DataError, match="holds what is no character"):
        read_vectors(path)
