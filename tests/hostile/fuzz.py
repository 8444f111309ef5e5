"""A fuzzer over every reader: `python -m tests.hostile.fuzz --seconds 60 --seed 1`.

Each mutant is a valid file with some damage, and is a function of the seed, the reader and its
number: `--only study --first 123 --mutants 1` makes one again. A fault is printed, and its file is
kept. The exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.hostile.confine import fate, limit_memory
from tests.hostile.mutants import damage
from tests.hostile.readers import READERS


@dataclass
class Tally:
    fates: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.fates.total():6} mutants, {self.fates['used']:6} used, "
            f"{self.fates['refused']:6} refused, {self.fates['FAULT']:3} faults, "
            f"{self.seconds:6.1f} s, slowest {self.slowest:.2f} s"
        )


class Fuzzer:
    """Reads mutants of the valid files in `folder`, one after another."""

    def __init__(self, folder: Path, seed: int, kinds: list[str]) -> None:
        self.tallies = {kind: Tally() for kind in kinds}
        self._folder, self._seed = folder, seed
        for kind in kinds:
            valid = folder / kind / "valid"
            valid.mkdir(parents=True)
            READERS[kind].write(valid)

    def play(self, kind: str, number: int) -> None:
        rng = Random(f"{self._seed} {kind} {number}")
        place = self._folder / kind / "mutant"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._folder / kind / "valid", place)
        path = rng.choice(sorted(place.iterdir()))
        damage(path, rng)
        began = time.monotonic()
        what, *why = fate(READERS[kind], path).split(": ", 1)
        took = time.monotonic() - began
        tally = self.tallies[kind]
        tally.fates[what] += 1
        tally.seconds += took
        tally.slowest = max(tally.slowest, took)
        if what == "FAULT":
            print(f"{kind} {number} ({path.name}): {''.join(why)[:600]}", flush=True)
            kept = Path(tempfile.gettempdir()) / "hostile" / f"{kind}-{self._seed}-{number}"
            shutil.copytree(place, kept, dirs_exist_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all readers together")
    parser.add_argument("--mutants", type=int, help="of each reader; then --seconds does not count")
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=READERS, nargs="*", default=list(READERS))
    options = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        fuzzer = Fuzzer(Path(folder), options.seed, options.only)
        limit_memory()
        if options.mutants is not None:
            for kind in options.only:
                for number in range(options.first, options.first + options.mutants):
                    fuzzer.play(kind, number)
        else:
            share = options.seconds / len(options.only)
            for kind in options.only:
                end, number = time.monotonic() + share, options.first
                while time.monotonic() < end:
                    fuzzer.play(kind, number)
                    number += 1
    for kind, tally in fuzzer.tallies.items():
        print(f"{kind:12} {tally}")
    return int(any(tally.fates["FAULT"] for tally in fuzzer.tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
