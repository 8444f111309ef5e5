"""The figures of a campaign as a table."""

from __future__ import annotations

from collections.abc import Iterable

from tests.chaos.campaign import Played
from tests.chaos.findings import Findings

_HEAD = ("faults", "store", "trials", "run again", "witnessed", "lost", "doubled", "changed",
         "replayed", "hanging", "left")  # fmt: skip


def table(rounds: Iterable[Played]) -> str:
    """One row for each kind of round and store, with the sums over its rounds."""
    sums: dict[tuple[str, str], Findings] = {}
    for played in rounds:
        key = played.round.kind, played.round.store
        sums[key] = sums.get(key, Findings()) + played.findings
    rows = [_HEAD, ("---",) * len(_HEAD)]
    rows += [_row(kind, store, found) for (kind, store), found in sorted(sums.items())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(kind: str, store: str, found: Findings) -> tuple[str, ...]:
    what = ", ".join(f"{count:,} {name}" for name, count in found.faults.most_common())
    same = found.replayed - found.differing
    counts = (found.trials, found.retried, found.witnessed, found.lost, found.doubled,
              found.changed)  # fmt: skip
    replayed = f"{same:,} of {found.replayed:,}"
    return (f"{kind}: {what}", store, *(f"{n:,}" for n in counts), replayed,
            f"{found.hanging:,}", f"{found.left:,}")  # fmt: skip


def trouble(rounds: Iterable[Played]) -> list[str]:
    """What was wrong, one line for each round in which anything was."""
    return [
        f"round {played.round.number} ({played.round.kind}, {played.round.store}): "
        f"{_what(played.findings)}; see {played.kept}"
        for played in rounds
        if played.findings.wrong
    ]


def _what(found: Findings) -> str:
    names = ("lost", "doubled", "changed", "differing", "hanging", "left")
    counts = [f"{getattr(found, name)} {name}" for name in names if getattr(found, name)]
    return ", ".join([*counts, *found.notes])
