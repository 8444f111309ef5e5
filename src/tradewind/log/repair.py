"""Repairing a damaged store: everything before the damage is kept, and so is the original."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from tradewind.errors import FormatError
from tradewind.html import paragraph
from tradewind.log.chain import advise
from tradewind.log.files import scan_lines, write_lines
from tradewind.log.salvage import SavedStudy, keep, results_in, save_study
from tradewind.log.state import StudyState
from tradewind.log.stores import open_store

_CAUTION = (
    "Nothing in a file shows that the last events of a study are gone: compare the numbers of "
    "trials with what you remember."
)


@dataclass(frozen=True)
class Repair:
    """What `repair` has done: what is kept and lost of each study, and where the damaged original
    is. If nothing was damaged, `original` is None, and nothing was changed.

    >>> study.export("reviews.jsonl")
    >>> tw.repair("reviews.jsonl").original is None  # nothing was damaged
    True
    """

    place: str
    original: str | None
    studies: tuple[SavedStudy, ...]

    def __str__(self) -> str:
        studies = map(str, self.studies)
        if self.original is None:
            return "\n".join([f"{self.place} is not damaged, and was not changed", *studies])
        done = f"{self.place} is repaired; the damaged original is kept as {self.original}"
        return "\n".join([done, *studies, _CAUTION])

    def _repr_html_(self) -> str:
        return "".join(map(paragraph, str(self).splitlines()))


def repair(storage: str | os.PathLike[str]) -> Repair:
    """Repair a damaged store: a SQLite file, a `.jsonl` file, or a PostgreSQL database. Every study
    keeps what comes before its damage: it can be loaded, continued and replayed. Print the result
    to see what was kept and lost.

    The damaged original is kept: a file as `name.damaged` beside the repaired one, a study in
    PostgreSQL under the name "study (damaged)". Stop all drivers first. One that still runs raises
    `LogDiverged` if it knows more, and `study.restore()` records that again.

    >>> study.export("reviews.jsonl")
    >>> done = tw.repair("reviews.jsonl")
    >>> len(done.studies)
    1
    """
    if os.fspath(storage).endswith(".jsonl"):
        return _repair_lines(os.path.realpath(storage))
    if re.match("postgres(ql)?:", os.fspath(storage)):
        from tradewind.log.repair_postgres import repair_database  # needs an extra

        return Repair(*repair_database(open_store(storage)))
    from tradewind.log.repair_sqlite import repair_file  # needs sqlite3

    return Repair(*repair_file(open_store(storage)))


def _repair_lines(path: str) -> Repair:
    name, (events, damage) = Path(path).stem, scan_lines(path)
    if damage is not None and events and advise(damage) == str(damage):
        raise damage
    if damage is None:
        saved = SavedStudy(name, len(events), len(StudyState.of(events).trials))
        return Repair(path, None, (saved,))
    lines = Path(path).read_bytes().splitlines()
    saved, _ = save_study(name, {i: [line] for i, line in enumerate(lines[: len(events)])})
    if not saved.events:
        raise FormatError(f"no event can be saved, and nothing was changed: {damage}")
    lost = tuple(sorted({*results_in(lines[saved.events :])}))
    original = keep(path)
    write_lines(path, events[: saved.events])
    saved = replace(saved, damage=saved.damage or str(damage), lost=lost)
    return Repair(path, original, (saved,))
