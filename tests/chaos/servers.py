"""A PostgreSQL server that restarts, crashes, or is replaced by its standby."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from contextlib import ExitStack
from urllib.parse import quote

from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import NAME, study_at
from tests.postgres import Server, Standby
from tradewind import load_study


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
            done["crashes" if crashes else "restarts"] += 1
        time.sleep(0.5)
        crew.end()
        found = crew.findings(done)
    return found + examine(study, site.folder)


def promote(site: Site, *, size: int, seed: int) -> Findings:
    """Replace the server, `size` times, by a standby that lacks the last moments. Every driver must
    notice, and put back what it knows."""
    rng, found, serving = random.Random(seed), Findings(), site.database
    study_at(site.storage)
    with ExitStack() as stack:
        for _ in range(size):
            standby = Standby(serving)
            stack.callback(standby.remove)
            found += _fail_over(site, serving, standby, rng)
            serving = standby
        study = load_study(_at(site, serving), NAME)
        found += examine(study, site.folder, renumbered=True)
    site.database.start()
    return found


def _fail_over(site: Site, serving: Server, standby: Standby, rng: random.Random) -> Findings:
    """Let drivers work on the serving server until it crashes, and then on its standby."""
    task = Task(_at(site, serving, standby), site.folder, restores=True)
    with Crew(task) as crew:
        before = crew.noticed()
        crew.start(None, None, None, 2)
        time.sleep(1.5)
        standby.stop()  # from now on it lags behind
        time.sleep(rng.uniform(0.5, 1.5))
        serving.stop(signal.SIGQUIT)
        standby.start()
        standby.promote()
        time.sleep(1.5)
        crew.end()
        found = crew.findings(Counter({"standbys promoted": 1}))
    (site.folder / "stop").unlink()
    if crew.noticed() == before:
        found.notes.append("no driver has noticed that the standby lacks events")
    return found


def _at(site: Site, *servers: Server) -> str:
    """The URL of the study's database on whichever of these servers can be written to."""
    folders = ",".join(str(server.folder) for server in servers)
    host = quote(str(site.database.folder))
    return site.storage.replace(host, quote(folders)) + "&target_session_attrs=read-write"
