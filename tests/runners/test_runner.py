"""What is said of an evaluation that failed."""

from __future__ import annotations

import traceback

import pytest

from tradewind.runners.runner import cause


@pytest.mark.parametrize(
    "message", ["too large", "of several\n  lines, some\n    of them indented\nand not", ""]
)
def test_the_cause_of_a_failure_is_the_line_that_names_the_exception(message: str) -> None:
    def inner() -> None:
        raise KeyError("first")

    try:
        try:
            inner()
        except KeyError as error:
            raise ValueError(message) from error
    except ValueError:
        text = traceback.format_exc()
    assert cause(text) == f"ValueError: {message}".splitlines()[0].removesuffix(": ")
    assert cause("stopped: the time was up\n  and more") == "stopped: the time was up"
    assert cause("") == ""
