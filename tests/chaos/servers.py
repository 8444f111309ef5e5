"""A PostgreSQL server that restarts, crashes, or is replaced by its standby."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter

from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import study_at


def restart(site: Site, *, size: int, seed: int) -> Findings:
    """Restart the server again and again; every other time it crashes."""
    rng, done = random.Random(seed), Counter[str]()
    study = study_at(site.storage)
    with Crew(Task(site.storage, site.folder)) as crew:
        crew.start(None, None, None, 2)
        for i in range(size):
            time.sleep(rng.uniform(0.3, 1.5))
            crashes = i % 2 == 1
            site.database.stop(signal.SIGQUIT if crashes else signal.SIGINT)
            time.sleep(rng.uniform(0.0, 0.5))
            site.database.start()
            done["crash" if crashes else "restart"] += 1
        time.sleep(0.5)
        crew.end()
        found = crew.findings(done)
    return found + examine(study, site.folder)
