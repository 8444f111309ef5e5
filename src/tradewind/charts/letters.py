"""Text that can be drawn: nothing in it turns other text round. For Matplotlib, it has letters of
the font, and no formulas."""

from __future__ import annotations

import re
import textwrap
from functools import cache

GOOD, POOR = "a good trial", "a poor trial"  # in the legend of strands
NARROW = 14  # letters between two of their axes
_TURNS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def unturned(text: str) -> str:
    """The text with a box for every mark that would turn other text round."""
    return _TURNS.sub("\u25a1", text)


def name_lines(name: str) -> list[str]:
    """The name of one of several axes on up to four lines, broken after underscores where there are
    some."""
    lines = textwrap.wrap(re.sub("_(?=.)", "_ ", name), NARROW, max_lines=4, placeholder="…")
    return [line.replace("_ ", "_") for line in lines] or [""]


def drawable(text: str) -> str:
    """The text on one line, with a box for every letter that the font lacks. A dollar sign begins
    no formula."""
    known = _letters()
    spaced = unturned(" ".join(text.split()))
    return "".join(c if ord(c) in known else "\u25a1" for c in spaced).replace("$", r"\$")


@cache
def _letters() -> frozenset[int]:
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return frozenset(font.get_charmap())
