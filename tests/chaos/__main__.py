"""The whole campaign, with its figures as tables: `make chaos`, about a quarter of an hour."""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests import postgres
from tests.chaos import campaign
from tests.chaos.work import Findings

_HEAD = (
    "| faults | store | trials | finished | run again | abandoned | witnessed | lost | duplicated "
    "| wrong | replay |"
)


def row(what: str, store: str, found: Findings) -> bool:
    print(
        f"| {what} | {store} | {found.trials} | {found.finished} | {found.retried} | "
        f"{found.abandoned} | {found.witnessed} | {found.lost} | {found.duplicated} | "
        f"{found.wrong} | {found.replay} |",
        flush=True,
    )
    return found.good


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=120, help="on each store")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"seed {given.seed}, {platform.machine()}, Python {platform.python_version()}\n")
    good = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs = postgres.programs()
        if programs is None:
            parser.error("PostgreSQL's server programs are not installed")
        server = postgres.Server(programs)
        stack.callback(server.remove)
        print(_HEAD)
        print("|" + "---|" * 11)
        for store in ("SQLite", "PostgreSQL"):

            def place(name: str, store: str = store) -> tuple[str, Path]:
                inside = folder / f"{store}-{name}"
                inside.mkdir()
                return str(inside / "runs.db") if store == "SQLite" else server.url(), inside

            done, found = campaign.killed(
                *place("killed"), kills=given.kills, drivers=3, seed=given.seed
            )
            what = f"{done['driver']} drivers and {done['worker']} workers killed"
            what += f", {done['orphan']} orphans" if done["orphan"] else ""
            good += [row(what, store, found), done["orphan"] == 0]
            found = campaign.crowded(*place("random"), strategy="random", drivers=8, each=250)
            good.append(row("8 drivers × 250 of random search", store, found))
            found = campaign.crowded(*place("auto"), strategy="auto", drivers=8, each=15)
            good.append(row("8 drivers × 15 of `auto`", store, found))
        jumps = folder / "jumps"
        jumps.mkdir()
        found = campaign.crowded(
            str(jumps / "runs.db"), jumps, strategy="random", drivers=4, each=50, clock=True
        )
        good.append(row("4 drivers × 50, clocks that jump by hours", "SQLite", found))
        small = folder / "small"
        small.mkdir()
        full, found = campaign.full_disk(small, times=20)
        good.append(row(f"the disk full {full} times", "SQLite", found))
        cut = folder / "cut"
        cut.mkdir()
        times, whole = campaign.torn(cut, times=30, seed=given.seed)
        print(f"\nThe write-ahead log cut at a random byte after a kill: {times} times; ", end="")
        print(f"{whole} times the study was whole up to there, went on, and replayed.")
        good.append(times == whole)
    print("\nall good" if all(good) else "\nSOMETHING IS WRONG")
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
