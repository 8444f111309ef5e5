"""Connections to PostgreSQL that are cut in the middle of a message."""

from __future__ import annotations

import random
import time
from collections import Counter

from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import study_at
from tests.proxy import Proxy


def cut(site: Site, *, size: int, seed: int) -> Findings:
    """Cut all connections, `size` times, each time at a random byte of what passes."""
    rng = random.Random(seed)
    study = study_at(site.storage)
    with (
        Proxy(site.database.folder) as proxy,
        Crew(Task(proxy.url(site.storage), site.folder)) as crew,
    ):
        crew.start(None, None, None, 2)
        for _ in range(size):
            before = proxy.cuts
            proxy.cut_after(rng.randrange(1, 2_000))
            while proxy.cuts == before:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.1, 0.4))
        crew.end()
        done = {"messages cut": size, "connections closed": proxy.cuts - size}
        found = crew.findings(Counter(done))
    return found + examine(study, site.folder)
