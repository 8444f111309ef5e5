"""Tables for notebooks: everything is escaped, and they can be read in any theme."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.html import MOST_ROWS, escape, paragraph, shortened, table

HOSTILE = '<script>alert("x")</script>'


class Seen(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.cells: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], "a tag is left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("td", "th"):
            self.cells[-1] += data


@given(st.text(alphabet=st.characters(codec=None)))
def test_escaped_text_is_never_markup_and_can_always_be_sent(text: str) -> None:
    safe = escape(text)
    assert not re.search("[<>\"']", safe)
    safe.encode("utf-8")
    assert not {category(c) for c in safe if c not in "\n\t"} & {"Cc", "Cf", "Cs"}


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=5), st.text(max_size=20))
def test_whatever_the_cells_say_the_table_has_the_same_tags(
    rows: list[tuple[str, str, str]], caption: str
) -> None:
    seen = Seen(table(["a", "b", "c"], rows, caption=caption))
    assert set(seen.tags) <= {*("div", "table", "caption", "thead", "tbody", "tr", "th", "td")}
    assert seen.tags.count("tr") == 1 + len(rows)
    assert len(seen.cells) == 3 + 3 * len(rows)
    assert {name for name, _ in seen.attributes} <= {"style", "scope", "title"}


def test_hostile_text_stays_text() -> None:
    page = table([HOSTILE], [[HOSTILE]], caption=HOSTILE, note=HOSTILE)
    assert "<script" not in page
    assert Seen(page).cells == [HOSTILE, HOSTILE]


def test_a_quotation_mark_does_not_end_a_tooltip() -> None:
    seen = Seen(table(["a"], [['" onmouseover="alert(1)' * 5]]))
    assert [value for name, value in seen.attributes if name == "title"] == [
        '" onmouseover="alert(1)' * 5
    ]
    assert all(not name.startswith("on") for name, _ in seen.attributes)


def test_headers_say_what_they_are_the_headers_of() -> None:
    seen = Seen(table(["name", "value"], [["x", "1"]], caption="numbers"))
    assert [v for n, v in seen.attributes if n == "scope"] == ["col", "col", "row"]
    assert "caption" in seen.tags


def test_no_colour_is_set() -> None:
    page = table(["name"], [["x"]], caption="numbers", note="a note")
    assert "background" not in page
    assert re.findall(r"[^-]color:([^;\"]*)", page) == ["inherit"]


def test_a_long_table_ends_with_the_number_of_rows_left_out() -> None:
    page = table(["number"], ([i] for i in range(1000)))
    assert page.count("<tr ") == 1 + MOST_ROWS
    assert "… and 940 more" in page


def test_a_long_cell_is_shortened_and_its_tooltip_has_all_of_it() -> None:
    text = "abc " * 50
    seen = Seen(table(["a"], [[text]]))
    assert seen.cells[1].endswith("…")
    assert len(seen.cells[1]) <= 60
    assert ("title", text) in seen.attributes


@pytest.mark.parametrize(
    ("column", "side"),
    [(["1", "-2.5", "-", ""], "right"), (["a", "1"], "left"), (["", ""], "left"), ([], "left")],
)
def test_numbers_are_aligned_to_the_right(column: list[str], side: str) -> None:
    page = table(["a"], [[cell] for cell in column])
    assert set(re.findall("text-align:(left|right)", page)) == {side}


def test_an_empty_paragraph_is_left_out() -> None:
    assert paragraph("") == ""
    assert paragraph("<b>") == '<p style="margin:.25em .75em">&lt;b&gt;</p>'


@given(st.text())
def test_shortened_text_is_short(text: str) -> None:
    assert len(shortened(text)) <= 60
    assert len(text) > 60 or shortened(text) == text
