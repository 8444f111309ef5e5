"""What digests and checks cost: append, load and ask, with this version and with an earlier one.

    python benchmarks/chain.py                    # against the last version without digests
    python benchmarks/chain.py --against v0.1 --trials 10000 --rounds 20

Both versions take turns in processes of their own. Times are CPU times, so that a busy machine
matters less. Shown are medians over the rounds, and the median of the ratios of neighbours. The
store is SQLite.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
BEFORE = "5288c2d"  # the last commit without digests
LIMIT = 1.05


def cpu_ms(work: Callable[[], object], repeats: int) -> float:
    """The CPU time that the work typically takes. Nothing here waits for the disk."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return 1e3 * statistics.median(times)


def measure(trials: int) -> dict[str, float]:
    """What one version takes, in milliseconds."""
    import numpy as np
    from overhead import space

    import tradewind as tw
    from tradewind.log.events import Claimed
    from tradewind.log.stores import open_store

    with tempfile.TemporaryDirectory() as folder:
        storage = str(Path(folder) / "runs.db")
        study = tw.create_study(space(), strategy="random", seed=1, storage=storage)
        configs = study.space.decode(study.space.sample(trials, rng=np.random.default_rng(0)))
        added = iter(configs)
        add = cpu_ms(lambda: study.add(next(added), value=0.5, cost=1.0), trials)
        tw.create_study(space(), storage=storage, name="events")
        log = open_store(storage).open("events")
        log.read(0)
        return {
            "append one event": cpu_ms(lambda: log.append([Claimed(0)]), 1000),
            "add a result (three events)": add,
            f"load {trials} trials": cpu_ms(lambda: tw.load_study(storage, "study").trials, 7),
            "ask and tell, random search": cpu_ms(lambda: study.tell(study.ask(), 0.5), 200),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default=BEFORE, help="a commit")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.trials)))
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", given.against, "src"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        rounds = []
        for _ in range(given.rounds):
            pair = []
            for source in (Path(folder) / "src", ROOT / "src"):
                threads = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1")
                done = subprocess.run(
                    [sys.executable, __file__, "--measure", f"--trials={given.trials}"],
                    env=os.environ | threads | {"PYTHONPATH": str(source)},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                pair.append(json.loads(done.stdout))
            rounds.append(pair)
    print(f"| | {given.against}, ms | now, ms | ratio (at most {LIMIT}) |\n|---|---|---|---|")
    for name in rounds[0][0]:
        before, now = ([pair[i][name] for pair in rounds] for i in (0, 1))
        ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
        print(
            f"| {name} | {statistics.median(before):.3f} | {statistics.median(now):.3f} | "
            f"{ratio:.3f} |"
        )


if __name__ == "__main__":
    main()
