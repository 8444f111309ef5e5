"""Processes that are killed or frozen: drivers, guards, keepers, workers, groups, whole trees."""

from __future__ import annotations

import random
import time
from collections import Counter

from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import LEASE, Work, study_at


def kill(site: Site, *, size: int, seed: int) -> Findings:
    """Kill at random, at least `size` times, and start again what has died. One round in ten
    searches with a model, whose proposals depend on what was recorded before."""
    rng = random.Random(seed)
    with_model = rng.random() < 0.1
    study = study_at(site.storage, "auto" if with_model else "random")
    work = Work(seconds=0.3 if with_model else 0.03, daemons=str(site.folder))
    with Crew(Task(site.storage, site.folder, work)) as crew:
        crew.start(None, None, None, 1, 2)
        while crew.killed.total() < size:
            time.sleep(rng.uniform(0.1, 0.5))
            crew.kill(rng)
            crew.replace_dead()
        crew.end()
        found = crew.findings(crew.killed)
    return found + examine(study, site.folder)


def freeze(site: Site, *, size: int, seed: int) -> Findings:
    """Freeze drivers, two at a time, until others have taken their trials over; then let them go
    on."""
    rng = random.Random(seed)
    study = study_at(site.storage)
    with Crew(Task(site.storage, site.folder)) as crew:
        crew.start(None, None, 2, 2)
        for _ in range(size // 2):
            time.sleep(rng.uniform(0.5, 1.0))
            drivers = [tree[0][1] for tree in rng.sample(crew.look(), 2)]
            for driver in drivers:
                driver.suspend()
            time.sleep(LEASE + rng.uniform(0.0, 1.0))
            for driver in drivers:
                driver.resume()
        crew.end()
        found = crew.findings(Counter({"drivers frozen": size // 2 * 2}))
    return found + examine(study, site.folder)
