"""One driver of a campaign: `python -m tests.chaos.drive '{"storage": ..., "name": ...}'`.

It works on a shared study until the stop file exists, or its number of trials is done.
"""

from __future__ import annotations

import json
import random
import sys
import time
import warnings
from pathlib import Path

import tradewind as tw
from tests.chaos.work import LEASE, Journal, objective
from tradewind.log.sqlite import SqliteStore


def jumping(clock: float) -> float:
    """A time that is sometimes more than an hour ahead or behind."""
    return clock + random.choice([0.0, 0.0, 0.0, 4e3, -4e3])


def main() -> None:
    task = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")  # more workers than cores
    storage = task["storage"]
    if task.get("clock"):
        storage = SqliteStore(storage, clock=lambda: jumping(time.monotonic()))
    study = tw.load_study(storage, task["name"])
    if task.get("clock"):
        study._session.clock = lambda: jumping(time.time())
    stop = Path(task["stop"])

    def look(study: tw.Study, trial: tw.Trial) -> None:
        if stop.exists():
            study.stop()

    study.optimize(
        objective,
        n_trials=task.get("n_trials", 100_000),
        n_workers=task.get("n_workers", 1),
        callbacks=[Journal(Path(task["journal"])), look],
        max_retries=50,
        lease=LEASE,
        show_progress=False,
    )


if __name__ == "__main__":
    main()
