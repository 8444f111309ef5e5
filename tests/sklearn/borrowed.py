"""scikit-learn's own tests of `RandomizedSearchCV`, run with `TradeoffSearchCV` in its place:
`python -m tests.sklearn.borrowed`.

Only tests in which a `TradeoffSearchCV` is fitted count. `DIFFERENT` lists those that cannot pass,
and why. It is about scikit-learn 1.9; other versions have other tests.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

MODULE = "sklearn.model_selection.tests.test_search"

DIFFERENT = {
    "test_search_default_iid": "it expects the candidates in the order listed",
    "test_random_search_cv_results": "cv_results_ has two more columns, about training sizes",
    "test_search_cv_results_rank_tie_breaking": "it expects the candidates in the order listed",
    "test_search_cv_timing": "it replaces a clock that is not ours: we read one that never jumps",
    "test_search_with_2d_array": "it expects the candidates in the order of random search",
}


class Borrowed:
    """A plugin of pytest that puts our class in the place of theirs and reports on the tests that
    fit it."""

    def __init__(self) -> None:
        import sklearn.model_selection

        from tradewind.sklearn import TradeoffSearchCV

        self.ours, self.fitted = TradeoffSearchCV, False
        fit = TradeoffSearchCV.fit

        @functools.wraps(fit)
        def noted(search: Any, *args: Any, **kwargs: Any) -> Any:
            self.fitted = True
            return fit(search, *args, **kwargs)

        TradeoffSearchCV.fit = noted
        sklearn.model_selection.RandomizedSearchCV = TradeoffSearchCV

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if self._is_about_us(item)]

    def _is_about_us(self, item: Any) -> bool:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and any(
            isinstance(value, self.ours) for value in callspec.params.values()
        ):
            return True
        return "RandomizedSearchCV" in inspect.getsource(item.function)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        self.fitted = False
        yield

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and self.fitted:
            print(f"\n{report.outcome} {report.nodeid.split('::')[-1]}")


def run() -> tuple[list[str], list[str]]:
    """The tests that pass and those that fail. They run in another process, because they change
    scikit-learn."""
    code = "from tests.sklearn import borrowed; borrowed.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split(" ", 1) for line in done.stdout.splitlines() if " " in line]
    passed, failed = ([n for s, n in lines if s == state] for state in ("passed", "failed"))
    if not passed:
        raise RuntimeError(f"scikit-learn's tests did not run:\n{done.stdout}\n{done.stderr}")
    return passed, failed


def main() -> None:
    options = ["--pyargs", MODULE, "-q", "--tb=no", "-p", "no:cacheprovider", "-c", "/dev/null"]
    pytest.main(options, plugins=[Borrowed()])


if __name__ == "__main__":
    passed, failed = run()
    print(f"{len(passed)} of {len(passed) + len(failed)} pass")
    for name in failed:
        print(f"  {name}: {DIFFERENT.get(name.split('[')[0], 'unexpected')}")
