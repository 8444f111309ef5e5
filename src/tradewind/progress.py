"""How far a search is: a bar at a terminal or in a notebook, and a line for each failure."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

from tradewind.types import Trial

_logger = logging.getLogger("tradewind")


class Progress:
    """A tqdm bar with the best trial so far and the number of failures."""

    def __init__(self, total: int | None, *, show: bool | None) -> None:
        self._total = total
        self._show = _watched() if show is None else show
        self._bar: Any = None
        self._best = ""
        self._failed = 0

    def __enter__(self) -> Progress:
        if self._show:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._total, unit="trial")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, trial: Trial, best: Callable[[], Trial]) -> None:
        """Count a trial that is done; `best` is called only where it is shown."""
        if trial.error:
            line = f"trial {trial.number} failed: {_last_line(trial.error)}"
            if self._bar is None:
                _logger.warning(line)
            else:
                self._bar.write(line, file=sys.stderr)
        if self._bar is None:
            return
        if trial.finished:
            self._best = _described(best())
        else:
            self._failed += 1
        failed = f"{self._failed} failed" if self._failed else ""
        self._bar.set_postfix_str(", ".join(filter(None, [self._best, failed])), refresh=False)
        self._bar.update()


def _last_line(error: str) -> str:
    return error.strip().rpartition("\n")[2]


def _described(best: Trial) -> str:
    cost = "" if best.cost is None else f" in {best.cost:.3g}"
    return f"best {best.value:.4g}{cost} (#{best.number})"


def _watched() -> bool:
    """Whether somebody looks on: at a terminal, or in a notebook."""
    terminal = sys.stderr is not None and sys.stderr.isatty()  # None where there is no console
    return terminal or "ipykernel" in sys.modules
