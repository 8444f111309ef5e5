"""Reading files in a process that has little memory and little time.

`python -m tests.hostile.confine study FILE...` prints a line per file: what became of it.
"""

from __future__ import annotations

import faulthandler
import resource
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.hostile.readers import READERS, Reader
from tradewind.errors import TradewindError

SECONDS = 20  # of CPU time: far more than a reader needs, as machines may be slow
MEMORY = 500 << 20  # bytes more than the process has when it begins


class TooSlow(BaseException):
    """Not an Exception, so that no reader can take it for a damaged file."""


def limit_memory() -> None:
    """Let the address space of this process grow by `MEMORY` and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise TooSlow

    # The time that this process uses: the machine may be busy with other things. And if it waits
    # for ever, or no Python code runs any more, it ends.
    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(20 * seconds, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def fate(reader: Reader, path: Path) -> str:
    """What becomes of a file: "used", "refused: ..." or "FAULT: ..."."""
    stage = "reading"
    try:
        with alarm(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # NumPy's, on odd headers
            found = reader.read(path)
            stage = "using"
            reader.use(found)
        return "used"
    except TooSlow:
        return f"FAULT: {stage} takes more than {SECONDS} s"
    except (TradewindError, FileNotFoundError) as error:
        if _has_exhausted_memory(error):
            return f"FAULT: {stage} takes more than {MEMORY >> 20} MB"
        kind = type(error).__name__
        return f"refused: {kind}: {error}" if stage == "reading" else f"FAULT: {kind}: {error}"
    except Exception as error:
        return f"FAULT: {stage} raises {type(error).__name__}: {error}"


def _has_exhausted_memory(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, MemoryError):
        error = error.__context__
    return error is not None


def main() -> None:
    kind, *paths = sys.argv[1:]
    limit_memory()
    for path in map(Path, paths):
        text = " ".join(fate(READERS[kind], path).split())
        print(f"{path.parent.name}: {text[:300]}", flush=True)


if __name__ == "__main__":
    main()
