"""Text of users on its way to a terminal."""

from __future__ import annotations

import re

# Control characters could move the cursor or change colours; the last ones turn the direction of
# writing, or cannot be written at all.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BREAKS = re.compile("[\t\n\x85\u2028\u2029]+")


def clean(text: object) -> str:
    """The text with its control characters written as escapes. Line breaks stay."""
    return _CONTROLS.sub(_escape, str(text))


def one_line(text: object) -> str:
    """The text on one line."""
    return clean(_BREAKS.sub(" ", str(text)))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
