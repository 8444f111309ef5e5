"""What is printed: JSON for programs, tables for people, plain lines where nobody looks."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from tradewind.cli.exits import without_passwords
from tradewind.cli.text import clean
from tradewind.output import fill_standard_streams

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Data: TypeAlias = dict[str, Any]

_WIDE = 1000  # columns of what is not a terminal: lines are not broken there


def fill_streams() -> None:
    """Print to nowhere where Python has found a stream closed, and open again what an objective has
    closed."""
    fill_standard_streams()
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            setattr(sys, name, open(number, "w", errors="replace", closefd=False))  # noqa: SIM115


@contextmanager
def objective_output(*, aside: bool) -> Iterator[None]:
    """Meanwhile, an objective may print. With `aside`, all of that goes to stderr, also what other
    processes print, so that the output is JSON and nothing else."""
    if not aside:
        try:
            yield
        finally:
            fill_streams()
        return
    ours = sys.stdout
    ours.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        with suppress(OSError, ValueError):
            ours.flush()
        os.dup2(output, 1)
        os.close(output)
        fill_streams()


def prepare_streams() -> None:
    """Nothing that is printed may fail for its letters, whatever the encoding. Warnings that nobody
    else handles are printed as notes."""
    warnings.showwarning = _show_warning
    logger = logging.getLogger("tradewind")
    if not any(isinstance(handler, _Notes) for handler in logger.handlers):
        logger.addHandler(_Notes(logging.WARNING))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            with suppress(ValueError, OSError):
                stream.reconfigure(errors="replace")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as a note. It names a line of Python only if that is the user's."""
    if Path(filename).parent.name == "typer":  # it called us
        note(f"warning: {message}")
    else:
        note(warnings.formatwarning(message, category, filename, lineno, line).rstrip())


class _Notes(logging.Handler):
    """Prints log lines, unless the user's own code has configured logging."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            note(self.format(record))


@contextmanager
def quiet_pipe() -> Iterator[None]:
    """End like other tools if the reader of the output goes away: `tradewind best | head -1`."""
    before = None
    with suppress(AttributeError, ValueError):  # Windows; not the main thread
        before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGPIPE, before)


def make_console(*, error: bool = False) -> Console:
    """A console without markup: what users have written stays as it is."""
    from rich.console import Console

    stream = sys.stderr if error else sys.stdout
    piped = not stream.isatty() and not os.environ.get("COLUMNS")
    return Console(
        file=stream,
        markup=False,
        highlight=False,
        emoji=False,
        width=_WIDE if piped else None,
    )


def emit(data: Data, *, as_json: bool, draw: Callable[[Data], Iterable[RenderableType]]) -> None:
    """Print data as JSON, or as `draw` draws it."""
    with quiet_pipe():
        if as_json:
            print_json(data)
            return
        console = make_console()
        with console.capture() as captured:
            for part in draw(data):
                console.print(part, soft_wrap=isinstance(part, str))  # which has lines already
        lines = captured.get().splitlines()
        print("\n".join(line.rstrip() for line in lines), flush=True)


def print_json(data: Data) -> None:
    from tradewind.cli.answers import plain

    print(json.dumps(plain(data), indent=2, allow_nan=False))
    sys.stdout.flush()


def say(text: str) -> None:
    """A line on the output."""
    print(clean(without_passwords(text)), flush=True)


def note(text: str) -> None:
    """A text beside the output. A terminal would break its lines within words."""
    text = clean(without_passwords(text))
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():
            text = "\n".join(map(_wrapped, text.splitlines()))
        print(text, file=sys.stderr, flush=True)


def _wrapped(line: str) -> str:
    from shutil import get_terminal_size
    from textwrap import fill

    indent = " " * (len(line) - len(line.lstrip()))
    return fill(
        line,
        max(get_terminal_size().columns, 20),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
