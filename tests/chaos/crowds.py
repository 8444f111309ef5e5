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
        trouble = crew.wait()
        left = crew.left()
    found = examine(study, site.folder)
    if found.finished != size * each:
        trouble.append(f"{size} × {each} trials must have finished, but got {found.finished}")
    return Findings(faults=Counter(drivers=size), left=left, notes=trouble) + found


def jump(site: Site, *, size: int, seed: int) -> Findings:
    """Let 4 drivers do `size` trials each, with clocks that jump by hours, even those of leases."""
    study = study_at(site.storage)
    with Crew(Task(site.storage, site.folder, n_trials=size, jumps=True)) as crew:
        crew.start(*[None] * 4)
        trouble = crew.wait()
        left = crew.left()
    done = Counter({"trials with jumping clocks": 4 * size})
    return Findings(faults=done, left=left, notes=trouble) + examine(study, site.folder)
