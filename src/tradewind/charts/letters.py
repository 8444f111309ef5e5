"""Text that Matplotlib can draw: letters that its font has, and no formulas."""

from __future__ import annotations

from functools import cache


def drawable(text: str) -> str:
    """The text on one line, with a box for every letter that the font lacks. A dollar sign begins
    no formula."""
    known = _letters()
    spaced = " ".join(text.split())
    return "".join(c if ord(c) in known else "\u25a1" for c in spaced).replace("$", r"\$")


@cache
def _letters() -> frozenset[int]:
    from matplotlib import font_manager

    font = font_manager.get_font(font_manager.findfont("DejaVu Sans"))
    return frozenset(font.get_charmap())
