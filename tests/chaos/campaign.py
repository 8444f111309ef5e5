"""The campaign: which rounds it has, and how they are played, one after the other.

A round has a process of its own, so that a round that hangs can be ended, and that one which is
interrupted leaves nothing behind. Every finished round is one line of a file in the folder of the
campaign. So a campaign that was stopped continues with the rounds that are missing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path

import psutil

from tests.chaos.connections import cut
from tests.chaos.crowds import crowd, jump
from tests.chaos.disks import fill, flip, tear
from tests.chaos.drive import context, print_to
from tests.chaos.findings import Findings
from tests.chaos.kills import freeze, kill
from tests.chaos.rollbacks import roll_back
from tests.chaos.servers import promote, restart
from tests.chaos.signals import storm
from tests.chaos.site import site

_PATIENCE = 900.0  # seconds until a round counts as hanging


@dataclass(frozen=True)
class Kind:
    """A kind of round: how it is played, with how many faults, and how many rounds of it a campaign
    has on each store."""

    play: Callable[..., Findings]
    size: int
    rounds: Mapping[str, int]


KINDS = {
    "kills": Kind(kill, 40, {"SQLite": 25, "PostgreSQL": 25}),
    "signals": Kind(storm, 250, {"SQLite": 30, "PostgreSQL": 10}),
    "freezes": Kind(freeze, 10, {"SQLite": 5, "PostgreSQL": 5}),
    "cuts": Kind(cut, 50, {"PostgreSQL": 10}),
    "restarts": Kind(restart, 10, {"PostgreSQL": 5}),
    "promotions": Kind(promote, 1, {"PostgreSQL": 5}),
    "rollbacks": Kind(roll_back, 5, {"SQLite": 8, "PostgreSQL": 8}),
    "flips": Kind(flip, 400, {"SQLite": 10}),
    "disks": Kind(fill, 20, {"SQLite": 5}),
    "tears": Kind(tear, 10, {"SQLite": 10}),
    "clocks": Kind(jump, 50, {"SQLite": 3, "PostgreSQL": 3}),
    "crowds": Kind(crowd, 64, {"SQLite": 2, "PostgreSQL": 2}),
    "models": Kind(partial(crowd, each=15, strategy="auto"), 8, {"SQLite": 2, "PostgreSQL": 2}),
}


@dataclass(frozen=True)
class Round:
    """One round of a campaign."""

    number: int
    kind: str
    store: str
    size: int
    seed: int


def plan(seed: int, kinds: Mapping[str, Kind] = KINDS) -> list[Round]:
    """All rounds of a campaign. Kinds take turns, so that a part of a campaign has some of each."""
    turns = [
        ((i + 0.5) / count, name, store)
        for name, kind in kinds.items()
        for store, count in kind.rounds.items()
        for i in range(count)
    ]
    return [
        Round(number, name, store, kinds[name].size, _seed(seed, number))
        for number, (_, name, store) in enumerate(sorted(turns))
    ]


def _seed(campaign: int, number: int) -> int:
    return int.from_bytes(sha256(f"{campaign} {number}".encode()).digest()[:6], "big")


@dataclass(frozen=True)
class Played:
    """A finished round. The folder of a round in which something was wrong is kept."""

    round: Round
    seconds: float
    findings: Findings
    kept: str | None = None

    def to_line(self) -> str:
        said = {"round": vars(self.round), "seconds": self.seconds, "kept": self.kept}
        return json.dumps({**said, "findings": vars(self.findings)}) + "\n"

    @classmethod
    def of(cls, line: str) -> Played:
        said = json.loads(line)
        findings = Findings.of(said["findings"])
        return cls(Round(**said["round"]), said["seconds"], findings, said["kept"])


class Campaign:
    """A campaign in a folder, which is created if there is none."""

    def __init__(self, folder: Path, seed: int | None = None) -> None:
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._seed_file, self._file = self.folder / "seed", self.folder / "rounds.jsonl"
        if not self._seed_file.exists():
            self._seed_file.write_text(str(int(time.time()) if seed is None else seed))
        self.seed = int(self._seed_file.read_text())
        if seed not in (None, self.seed):
            raise ValueError(
                f"the campaign in {self.folder} has the seed {self.seed}, but got {seed}: continue "
                "it without a seed, or give another folder"
            )

    def played(self) -> list[Played]:
        """The finished rounds. A line without an end was being written when the campaign died."""
        if not self._file.exists():
            return []
        lines = self._file.read_text().splitlines(keepends=True)
        return [Played.of(line) for line in lines if line.endswith("\n")]

    def missing(self, kinds: Iterable[str] = KINDS) -> list[Round]:
        """The rounds of these kinds that have not been finished, in order."""
        done, wanted = {played.round.number for played in self.played()}, set(kinds)
        return [r for r in plan(self.seed) if r.number not in done and r.kind in wanted]

    def play(self, round: Round) -> Played:
        """Play a round in a process of its own, and write it down."""
        folder = self.folder / f"round-{round.number:03}"
        shutil.rmtree(folder, ignore_errors=True)  # of an interrupted round
        folder.mkdir()
        started = time.monotonic()
        findings = _play_apart(round, folder)
        kept = str(folder) if findings.wrong else None
        played = Played(round, time.monotonic() - started, findings, kept)
        self._append(played.to_line())
        if kept is None:
            shutil.rmtree(folder)
        return played

    def _append(self, line: str) -> None:
        with open(self._file, "a+") as file:
            text = "" if file.tell() == 0 else self._file.read_text()
            if text and not text.endswith("\n"):  # the campaign died while it wrote this
                file.truncate(text.rfind("\n") + 1)
            file.write(line)


def _play_apart(round: Round, folder: Path) -> Findings:
    process = context().Process(target=_play, args=(round, folder))
    process.start()
    try:
        process.join(_PATIENCE)
    except BaseException:  # Ctrl-C, which the round has got as well
        process.terminate()
        process.join(60)
        raise
    answer = folder / "findings.json"
    if process.is_alive():
        _kill_tree(process.pid)
        process.join()
        return Findings(notes=[f"the round did not end within {_PATIENCE:.0f} seconds"])
    if not answer.exists():
        return Findings(notes=[f"the round died with exit code {process.exitcode}"])
    return Findings.of(json.loads(answer.read_text()))


def _kill_tree(pid: int) -> None:
    root = psutil.Process(pid)
    for process in [*root.children(recursive=True), root]:
        with suppress(psutil.Error):
            process.kill()


def _play(round: Round, folder: Path) -> None:
    """What the process of a round does."""
    print_to(folder / "round.log")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with site(round.store, folder) as place:
            findings = KINDS[round.kind].play(place, size=round.size, seed=round.seed)
    except Exception as error:
        traceback.print_exc()
        findings = Findings(notes=[f"{type(error).__name__}: {error}"])
    (folder / "findings.json").write_text(json.dumps(vars(findings)))


def _end_with_parent() -> None:
    """End this round in good order when the campaign is killed."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
