"""Examples in docstrings, as blocks of code: an extension of Griffe for the reference pages.

Docstrings are Markdown, where `>>>` would be a quotation. So each example, which ends at an empty
line, is put between fences.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=\n[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL)


class Examples(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """The docstring with its examples as fenced blocks.

    >>> fenced(">>> 1 + 1")
    '```pycon\\n>>> 1 + 1\\n```'
    """
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)
