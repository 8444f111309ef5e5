"""The bars that show a search while it runs: one for terminals and one for notebooks.

In a notebook, the bar is one output of the cell, which is replaced as the search goes on and stays
readable in the saved notebook. It needs no package beyond the notebook itself.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from tradewind.html import escape
from tradewind.output import quietly

# The trials that are done, and more in words: the most important part first.
Status: TypeAlias = Callable[[], tuple[int, list[str]]]

_PAUSE = 0.3  # seconds between two updates of a notebook
_LATEST = 3  # messages that a notebook shows


class Bar(Protocol):
    """Shows a search."""

    def refresh(self, *, now: bool) -> None:
        """Show the status, now or soon."""

    def message(self, line: str) -> None:
        """Show a line beside the bar."""

    def close(self) -> None:
        """Show how the search ended."""


def open_bar(total: int | None, status: Status) -> Bar | None:
    """A bar for a search of `total` trials; None if nobody is watching. `status` must be quick, and
    other threads may call it."""
    with quietly():
        if _in_notebook():
            return NotebookBar(total, status)
        if sys.stderr is not None and sys.stderr.isatty():  # None if there is no console
            return TerminalBar(total, status)
    return None


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class TerminalBar:
    """A line of a terminal, drawn by tqdm."""

    def __init__(self, total: int | None, status: Status) -> None:
        from tqdm import tqdm

        # The bar has a fixed width. Otherwise it would jump whenever the text after it changes.
        count = "{n_fmt} trials" if total is None else "|{bar:10}| {n_fmt}/{total_fmt}"
        layout = count + " [{elapsed}{postfix}]"
        self._bar = tqdm(total=total, bar_format=layout, dynamic_ncols=True)
        self._status = status

    def refresh(self, *, now: bool) -> None:
        done, parts = self._status()
        self._bar.set_postfix_str(self._fitting(parts), refresh=now)
        self._bar.update(done - self._bar.n)

    def _fitting(self, parts: list[str]) -> str:
        """The parts that the terminal has room for."""
        known = self._bar.format_dict
        fixed = self._bar.format_meter(**{**known, "postfix": ""})
        room = (known["ncols"] or 80) - len(fixed)
        text = ""
        for part in parts:
            longer = f"{text}, {part}" if text else part
            if len(", ") + len(longer) <= room:
                text = longer
        return text

    def message(self, line: str) -> None:
        self._bar.write(line, file=sys.stderr)

    def close(self) -> None:
        self.refresh(now=True)
        self._bar.close()


class NotebookBar:
    """An output of the cell. A thread of its own updates it, so that the search never waits for the
    notebook, and the time left goes on while long trials run."""

    def __init__(self, total: int | None, status: Status) -> None:
        self._total, self._status, self._begin = total, status, time.monotonic()
        self._messages: list[str] = []
        self._stop = threading.Event()
        self._display = _show(self._bundle())
        context = contextvars.copy_context()  # it says which cell the output belongs to
        self._thread = threading.Thread(
            target=context.run, args=(self._keep_showing,), name="tradewind-progress", daemon=True
        )
        self._thread.start()

    def refresh(self, *, now: bool) -> None:
        """The thread does it."""

    def message(self, line: str) -> None:
        self._messages = [*self._messages, line][-_LATEST:]

    def close(self) -> None:
        self._stop.set()
        self._thread.join(5.0)
        self._display.update(self._bundle(ended=True), raw=True)

    def _keep_showing(self) -> None:
        last = ""
        while not self._stop.wait(_PAUSE):
            with quietly():
                bundle = self._bundle()
                if bundle["text/plain"] != last:
                    self._display.update(bundle, raw=True)
                last = bundle["text/plain"]

    def _bundle(self, *, ended: bool = False) -> dict[str, str]:
        done, parts = self._status()
        of = "" if self._total is None else f"/{self._total}"
        passed = timedelta(seconds=int(time.monotonic() - self._begin))
        line = ", ".join([f"{done}{of} trials in {passed}", *parts])
        text = "\n".join([f"tradewind: {line}", *self._messages])
        return {"text/html": self._html(done, line, ended=ended), "text/plain": text}

    def _html(self, done: int, line: str, *, ended: bool) -> str:
        share = 1.0 if self._total is None else min(done / max(self._total, 1), 1.0)
        width = f"{100 * share:.4g}"
        bar = (
            f'<div role="progressbar" aria-label="trials" aria-valuemin="0" aria-valuemax="100" '
            f'aria-valuenow="{width}" style="{_TRACK}">'
            f'<div style="width:{width}%;{_FILL};opacity:{1 if ended else 0.75}"></div></div>'
        ) * (self._total is not None)
        lines = [f'<div style="{_LINE}">{escape(text)}</div>' for text in (line, *self._messages)]
        return f'<div><div style="max-width:40em">{bar}</div>{"".join(lines)}</div>'


_TRACK = "height:.5em;border-radius:.25em;overflow:hidden;background:rgba(127,127,127,.25)"
_FILL = "height:100%;background:#0072b2"  # a blue that is clear on white and on black
_LINE = "margin:.25em 0;font-variant-numeric:tabular-nums"


def _show(bundle: dict[str, str]) -> Any:
    """Show this in the cell, and return the handle that replaces it."""
    display: Any = import_module("IPython.display").display  # its types are not complete
    return display(bundle, raw=True, display_id=True)
