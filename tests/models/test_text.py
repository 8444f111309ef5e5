"""Tokens as section 5.1 of Hader cuts them, vocabularies, and texts as rows of codes."""

from __future__ import annotations

import pickle
from typing import Any
from unicodedata import category, normalize

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.models.text import PADDING, Vocabulary, texts_of, tokenize

# letters of every contraction, all that is punctuation, and what has no place in a token
AWKWARD = st.text(alphabet="ansdtlvre'’.,()!?<>/_- \n\t1İÉß", max_size=30)
MARKED = st.text(alphabet="qnt's’ _é\u0301\u0304\u0323\u094d\ufe0f\U0001e8d0", max_size=30)
TEXTS = AWKWARD | MARKED | st.text(max_size=30)
WORDS = st.sampled_from(["a", "b", "c", "d", "e"])
TOKENIZED = st.lists(st.lists(WORDS, max_size=6), max_size=6)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("A thoughtful, moving film.", "a thoughtful , moving film"),
        ("Good (not great)!", "good ( not great ) !"),
        ("why?!", "why ? !"),
        ("it's", "it 's"),
        ("they've we're he'd you'll", "they 've we 're he 'd you 'll"),
        ("don't can't won't", "do n't ca n't wo n't"),
        ("couldn't've", "could n't 've"),
        ("it’s", "it 's"),
        ("o'brien's rock'n'roll", "o'brien 's rock'n'roll"),
        ("the dogs' bowl 'twas", "the dogs bowl twas"),
        ("so... bad; very-bad: 3.5/5 [stars]", "so bad very bad 3 5 5 stars"),
        ("first<br />second<BR>third</p>", "first second third"),
        ("<a href='x'>link</a><!-- gone -->", "link"),
        ("1 < 2 and 3 > 2", "1 2 and 3 2"),
        ("i <3 it > that", "i 3 it that"),
        ("snake_case", "snake case"),
        ("ÉLAN vital", "élan vital"),
        ("E\u0301LAN cafe\u0301's", "élan café 's"),
        ("q\u0304uin isn't q\u0304n't", "q\u0304uin is n't q\u0304 n't"),
        ("o'q\u0304s it'd\u0304", "o'q\u0304s it'd\u0304"),
        ("नमस्ते, दुनिया!", "नमस्ते , दुनिया !"),
        ("שָׁלוֹם", "שָׁלוֹם"),
        ("İstanbul", "i\u0307stanbul"),
        ("한글 \u1112\u1161\u11ab\u1100\u1173\u11af", "한글 한글"),
        ("a \u0301 \u0301b _\u0301", "a b"),
        ("\U00011013\U00011038\U00011013", "\U00011013\U00011038\U00011013"),
        ("I ❤\ufe0f it 3\ufe0f\u20e3 4\u20e3", "i it 3 4"),
        ("", ""),
        (" . … — ", ""),
    ],
)
def test_texts_are_cut_into_these_tokens(text: str, tokens: str) -> None:
    assert tokenize(text) == tokens.split()


@given(TEXTS)
def test_tokens_are_lower_case_and_without_periods_or_white_space(text: str) -> None:
    for token in tokenize(text):
        assert token == token.lower()
        assert token
        assert "." not in token
        assert token.split() == [token]


@given(TEXTS)
def test_tokens_are_their_own_tokens(text: str) -> None:
    tokens = tokenize(text)
    assert tokenize(" ".join(tokens)) == tokens


@given(TEXTS)
def test_it_does_not_matter_how_accents_are_written(text: str) -> None:
    tokens = tokenize(text)
    for form in ("NFC", "NFD"):
        assert tokenize(normalize(form, text.lower())) == tokens


@given(MARKED)
def test_no_token_begins_with_a_mark(text: str) -> None:
    for token in tokenize(text):
        assert category(token[0])[0] != "M"


@given(TEXTS)
def test_case_does_not_matter_in_english(text: str) -> None:
    text = text.encode("ascii", "ignore").decode()
    assert tokenize(text.upper()) == tokenize(text)


@pytest.mark.parametrize(
    "piece", ["<", "a'", "n't", "<a ", "(", "x", "\u0304", "q\u0304", "q\u0304'", "n't\u0304"]
)
def test_a_long_text_without_an_end_is_cut_all_the_same(piece: str) -> None:
    assert len(tokenize(piece * 50_000)) <= 50_000


# ---- what counts as texts ----


@pytest.mark.parametrize(
    "X",
    [
        ["a b", "c"],
        ("a b", "c"),
        np.array(["a b", "c"]),
        np.array(["a b", "c"], dtype=object),
        pd.Series(["a b", "c"]),
        pd.Series(["a b", "c"], index=[7, 3]),
        (text for text in ["a b", "c"]),
    ],
    ids=lambda X: type(X).__name__,
)
def test_a_list_a_column_or_an_array_are_texts(X: Any) -> None:
    texts = texts_of(X)
    assert texts == ["a b", "c"]
    assert {type(text) for text in texts} == {str}


@pytest.mark.parametrize(
    ("X", "why"),
    [
        ("a single text", "single text 'a single text'"),
        (b"bytes", "single text"),
        (["a", None], "text 1 is None"),
        (["a", b"b"], "text 1 is b'b'"),
        ([1.5], "text 0 is 1.5"),
        (pd.Series(["a", np.nan]), "text 1 is nan"),
        (np.array([["a"], ["b"]]), r"texts must have one dimension, but got the shape \(2, 1\)"),
        (
            pd.DataFrame({"text": ["a", "b"]}),
            r"texts must have one dimension, but got the shape \(2, 1\)",
        ),
        (np.array("a"), "texts must have one dimension"),
        (None, "texts must be a list of strings, but got None"),
        (3, "texts must be a list of strings, but got 3"),
    ],
)
def test_other_things_are_no_texts(X: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        texts_of(X)


# ---- vocabularies ----


def test_the_most_frequent_word_comes_first_and_ties_go_by_the_alphabet() -> None:
    vocabulary = Vocabulary.of([["b", "a", "c"], ["c", "d", "c"], []])
    assert vocabulary.words == ("c", "a", "b", "d")
    assert len(vocabulary) == 4
    assert vocabulary.codes == {"c": 1, "a": 2, "b": 3, "d": 4}


@given(TOKENIZED, st.randoms(use_true_random=False))
def test_the_order_of_the_texts_does_not_change_a_vocabulary(
    texts: list[list[str]], random: Any
) -> None:
    shuffled = [list(text) for text in texts]
    random.shuffle(shuffled)
    assert Vocabulary.of(shuffled) == Vocabulary.of(texts)


@given(TOKENIZED)
def test_codes_can_be_read_back(texts: list[list[str]]) -> None:
    vocabulary = Vocabulary.of(texts)
    codes = vocabulary.encode(texts)
    assert codes.shape == (len(texts), max(map(len, texts), default=0))
    back = [[vocabulary.words[code - 1] for code in row if code != PADDING] for row in codes]
    assert back == texts


def test_texts_are_padded_behind_their_end_or_cut() -> None:
    vocabulary = Vocabulary(("a", "b"))
    texts = [["a"], ["b", "a", "b", "a"], []]
    assert vocabulary.encode(texts, 3).tolist() == [[1, 0, 0], [2, 1, 2], [0, 0, 0]]
    assert vocabulary.encode(texts, 0).shape == (3, 0)
    assert vocabulary.encode(texts).dtype == np.int32


def test_an_unknown_word_keeps_its_place() -> None:
    assert Vocabulary(("a", "b")).encode([["a", "new", "b"]]).tolist() == [[1, PADDING, 2]]


def test_without_texts_there_is_nothing() -> None:
    vocabulary = Vocabulary.of([])
    assert len(vocabulary) == 0
    assert vocabulary.encode([]).shape == (0, 0)
    assert vocabulary.encode([["a"]]).tolist() == [[PADDING]]


def test_texts_that_are_not_tokenized_are_no_words() -> None:
    with pytest.raises(ValueError, match="must be a list of tokens, but got 'bad': tokenize"):
        Vocabulary.of([["not", "bad"], "bad"])  # type: ignore[list-item]


def test_a_word_is_there_once() -> None:
    with pytest.raises(ValueError, match="must be distinct, but 'b' is given twice"):
        Vocabulary(("a", "b", "c", "b"))


def test_a_vocabulary_survives_pickling() -> None:
    vocabulary = Vocabulary(("a", "b"))
    assert vocabulary.codes["b"] == 2
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again == vocabulary
    assert again.codes == vocabulary.codes
