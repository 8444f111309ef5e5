"""The seam of the runners."""

from __future__ import annotations

from typing import Protocol

from tradewind.runners.run import Failure
from tradewind.types import Outcome, Trial


class Runner(Protocol):
    """Evaluates trials. `free` is how many it would start at once."""

    @property
    def free(self) -> int: ...
    def submit(self, trial: Trial) -> None: ...
    def wait(self) -> list[tuple[Trial, Outcome | Failure]]:
        """Block until at least one submitted trial is done, and give all that are."""
        ...

    def close(self) -> None: ...
