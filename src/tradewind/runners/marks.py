"""Find processes by a mark in their environment, where the kernel does not hand over orphans.

Whatever a worker starts inherits its mark, even in another session or after its parent has died.
But an orphan that has cleared or overwritten its environment is not found.
"""

from __future__ import annotations

from collections.abc import Mapping

_MARK = "TRADEWIND_MARK"


def add_mark(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """The environment with one more mark. A runner inside an objective keeps the outer mark."""
    return {**environment, _MARK: f"{environment.get(_MARK, '')} {mark}".strip()}


def read_parents_and_marked(mark: str) -> tuple[dict[int, int], list[int]]:
    """The parent of every living process, and the processes that have `mark` or a mark that starts
    with it and a dot."""
    import psutil

    parents: dict[int, int] = {}
    marked: list[int] = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            parents[process.pid] = process.ppid()
            marks = process.environ().get(_MARK, "").split()
        except (psutil.Error, OSError, ValueError):  # it has ended, or belongs to another user
            continue
        if any(m == mark or m.startswith(f"{mark}.") for m in marks):
            marked.append(process.pid)
    return parents, marked
