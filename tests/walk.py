"""One step of a study, file by file: which files of the package run, in the order in which data
meets them, and how many lines they have.

    python -m tests.walk

Three walks are printed: one `optimize(n_trials=1)` in this process, one `ask` and `tell`, both with
a study in memory whose model proposes already, and one `tell` to SQLite as a worker process would
send it. `tests/test_walk.py` keeps the numbers from growing.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import tradewind as tw

PACKAGE = Path(tw.__file__).parent
SPACE = {
    "C": tw.Float(1e-4, 1e3, log=True),
    "loss": tw.Categorical(["hinge", "squared_hinge"]),
    "kernel": tw.Categorical(["linear", "poly"]),
    "degree": tw.Int(2, 5, when={"kernel": "poly"}),
}
WARM_UP = 12  # trials, after which the model of "auto" proposes


class Walk:
    """The functions of the package that a call ran, by file, in the order of their first call."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.functions: dict[Path, dict[str, CodeType]] = {}
        sys.setprofile(self._on_call)
        threading.setprofile(self._on_call)
        try:
            call()
        finally:
            threading.setprofile(None)
            sys.setprofile(None)

    def _on_call(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            functions = self.functions.setdefault(Path(code.co_filename), {})
            functions.setdefault(code.co_qualname, code)

    @property
    def files(self) -> int:
        return len(self.functions)

    @property
    def lines(self) -> int:
        """The lines of the files."""
        return sum(map(_lines_of, self.functions))

    @property
    def lines_run(self) -> int:
        """The lines of the functions that ran."""
        return sum(len(_covered(functions)) for functions in self.functions.values())

    def __str__(self) -> str:
        rows = [
            f"{path.relative_to(PACKAGE)!s:44} {_lines_of(path):5}  {', '.join(_main(functions))}"
            for path, functions in self.functions.items()
        ]
        total = f"{self.files} files, {self.lines} lines, {self.lines_run} in functions that ran"
        return "\n".join([*rows, total])


def _lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _covered(functions: dict[str, CodeType]) -> set[int]:
    lines: set[int] = set()
    for code in functions.values():
        numbers = [number for _, _, number in code.co_lines() if number]
        lines.update(range(min(numbers), max(numbers) + 1))
    return lines


def _main(functions: dict[str, CodeType]) -> list[str]:
    """The public functions of a file, or all if it has none: enough to find one's way."""
    names = [name for name in functions if "<" not in name]
    public = [n for n in names if not any(part.startswith("_") for part in n.split("."))]
    return (public or names)[:6]


def _objective(trial: Any) -> dict[str, float]:
    return {"value": -abs(trial.params["C"] - 1.0), "cost": 1.0}


def _warm_study(storage: str | None = None) -> tw.Study:
    study = tw.create_study(tw.Space(SPACE), seed=0, storage=storage)
    study.optimize(_objective, n_trials=WARM_UP, show_progress=False)
    return study


def optimize_walk() -> Walk:
    """One `optimize(n_trials=1)` in this process, in memory."""
    study = _warm_study()
    return Walk(lambda: study.optimize(_objective, n_trials=1, show_progress=False))


def ask_tell_walk() -> Walk:
    """One `ask` and one `tell`, in memory."""
    study = _warm_study()
    return Walk(lambda: study.tell(study.ask(), value=0.9, cost=1.0))


def sqlite_tell_walk() -> Walk:
    """One `tell` to SQLite, by somebody who has just loaded the study."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "walk.db"))
        number = _warm_study(path).ask().number
        study = tw.load_study(path)
        return Walk(lambda: study.tell(number, value=0.9, cost=1.0))


def main() -> None:
    for title, walk in (
        ("optimize(n_trials=1), in process, in memory", optimize_walk()),
        ("ask and tell, in memory", ask_tell_walk()),
        ("tell from a worker process to SQLite", sqlite_tell_walk()),
    ):
        print(f"{title}\n{walk}\n")


if __name__ == "__main__":
    main()
