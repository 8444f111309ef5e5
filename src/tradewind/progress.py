"""How far a search is: a bar where there is a terminal, nothing where there is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tradewind.types import Trial

if TYPE_CHECKING:
    from tradewind.study import Study


class Progress:
    """A tqdm bar with the best trial so far and the number of failures."""

    def __init__(self, total: int | None, *, show: bool | None) -> None:
        self._total = total
        self._show = sys.stderr.isatty() if show is None else show
        self._bar: Any = None
        self._failed = 0

    def __enter__(self) -> Progress:
        if self._show:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self._total, unit="trial")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, study: Study, trial: Trial) -> None:
        if self._bar is None:
            return
        self._failed += not trial.finished
        if trial.finished:
            best = study.best
            cost = "" if best.cost is None else f" in {best.cost:.3g}"
            failed = f", {self._failed} failed" if self._failed else ""
            self._bar.set_postfix_str(f"best {best.value:.4g}{cost} (#{best.number}){failed}")
        self._bar.update()
