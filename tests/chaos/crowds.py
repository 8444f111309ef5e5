"""Many drivers on one study, also with clocks that jump."""

from __future__ import annotations

from collections import Counter

from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import Findings, examine
from tests.chaos.site import Site
from tests.chaos.work import study_at

_LEASE = 10.0  # seconds: long enough for a driver to wait for 63 others


def crowd(
    site: Site, *, size: int, seed: int, each: int = 10, strategy: str = "random"
) -> Findings:
    """Let `size` drivers work at the same time, for `each` trials."""
    study = study_at(site.storage, strategy)
    with Crew(Task(site.storage, site.folder, n_trials=each, lease=_LEASE)) as crew:
        crew.start(*[None] * size)
        crew.wait()
        found = crew.findings(Counter(drivers=size)) + examine(study, site.folder)
    if found.finished != size * each:
        found.notes.append(f"{size} × {each} trials must finish, but {found.finished} have")
    return found


def jump(site: Site, *, size: int, seed: int) -> Findings:
    """Let 4 drivers do `size` trials each, with clocks that jump by hours, even those of leases."""
    study = study_at(site.storage)
    with Crew(Task(site.storage, site.folder, n_trials=size, jumps=True)) as crew:
        crew.start(*[None] * 4)
        crew.wait()
        found = crew.findings(Counter({"trials with jumping clocks": 4 * size}))
    return found + examine(study, site.folder)
