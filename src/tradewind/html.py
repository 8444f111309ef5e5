"""Small tables, for notebooks and as text. In a notebook they inherit the colours of the page, so
that they suit light and dark themes, and all text in them is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from html import escape as _escape
from itertools import islice
from typing import Self, SupportsIndex, TypeVar, overload
from unicodedata import category

T = TypeVar("T")

MOST_ROWS = 60  # of a table; a note says how many more there are
_LONGEST = 60  # characters of a cell; the rest is in its tooltip
_LONGEST_TOOLTIP = 1000
_LINE = "border:0;border-bottom:1px solid rgba(127,127,127,.35)"  # visible in every theme


def escape(text: object) -> str:
    """`text` for a page: nothing in it is markup, and all of it can be encoded as UTF-8."""
    return _escape("".join(c if _can_be_shown(c) else "\ufffd" for c in str(text)), quote=True)


def _can_be_shown(character: str) -> bool:
    """False for control characters, and for those that turn text around or cannot be encoded."""
    return character.isprintable() or character in "\n\t" or category(character) == "Zs"


def table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str = "", note: str = ""
) -> str:
    """A table. The first cell of each row names the row; `note` is a line below."""
    rows = iter(rows)
    shown = [list(map(str, row)) for row in islice(rows, MOST_ROWS)]
    more = sum(1 for _ in rows)
    sides = [_side(column) for column in zip(*shown, strict=True)] or ["left"] * len(header)
    heads = "".join(
        f'<th scope="col" style="padding:.25em .75em;text-align:{side}">{escape(name)}</th>'
        for name, side in zip(header, sides, strict=True)
    )
    body = "".join(f'<tr style="{_LINE}">{_cells(row, sides)}</tr>' for row in shown)
    title = f'<caption style="{_CAPTION}">{escape(caption)}</caption>' if caption else ""
    below = f"… and {more:,} more" if more else ""
    return (
        '<div style="overflow-x:auto;max-width:100%"><table style="border-collapse:collapse;'
        "table-layout:auto;margin:.25em 0;border:0;font-size:inherit;"
        f'font-variant-numeric:tabular-nums">{title}'
        f'<thead><tr style="{_LINE}">{heads}</tr></thead><tbody>{body}</tbody></table>'
        f"{paragraph(below)}{paragraph(note)}</div>"
    )


_CAPTION = "caption-side:top;text-align:left;font-weight:bold;padding:.25em .75em;color:inherit"


def paragraph(text: str) -> str:
    """A line of text; nothing if there is none."""
    return f'<p style="margin:.25em .75em">{escape(text)}</p>' if text else ""


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines of text: aligned to the right, the last column to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False))
        + f"  {row[-1]}".rstrip()
        for row in rows
    ]


class Sliced(list[T]):
    """A list whose slices are of the same kind."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: SupportsIndex | slice) -> T | Self:
        if not isinstance(index, slice):
            return super().__getitem__(index)
        part = copy(self)
        part[:] = super().__getitem__(index)
        return part


class Listed(Sliced[T]):
    """A list that is shown as a table with these columns. `row` makes an item a row."""

    def __init__(
        self,
        items: Iterable[T],
        columns: Sequence[str],
        row: Callable[[T], Sequence[object]],
        *,
        caption: str = "",
    ) -> None:
        super().__init__(items)
        self._columns, self._row, self._caption = columns, row, caption

    def __repr__(self) -> str:
        rows = [list(map(str, self._row(item))) for item in self]
        return "\n".join(table_lines([self._columns, *rows])) if rows else "[]"

    def _repr_html_(self) -> str:
        return table(self._columns, map(self._row, self), caption=self._caption)


def shortened(text: str) -> str:
    """`text` with at most 60 characters."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"


def _cells(row: Sequence[str], sides: Sequence[str]) -> str:
    return "".join(
        _cell(text, side, 'th scope="row"' if i == 0 else "td")
        for i, (text, side) in enumerate(zip(row, sides, strict=True))
    )


def _cell(text: str, side: str, tag: str) -> str:
    tooltip = f' title="{escape(text[:_LONGEST_TOOLTIP])}"' if len(text) > _LONGEST else ""
    weight = ";font-weight:normal" if tag != "td" else ""
    style = f"padding:.25em .75em;text-align:{side}{weight}"
    return f'<{tag} style="{style}"{tooltip}>{escape(shortened(text))}</{tag.split()[0]}>'


def _side(column: Sequence[str]) -> str:
    """Numbers are aligned to the right, text to the left."""
    numbers = [cell.lstrip("-")[:1].isdigit() or cell in ("", "-") for cell in column]
    return "right" if all(numbers) and any(column) else "left"
