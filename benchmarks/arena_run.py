"""Run the arena in this environment, with one more optimizer than its own adapter has:
`tradewind-wang2020-improvement`.

    python benchmarks/arena_run.py ARENA --optimizer tradewind --task plain --problem all \\
        --seed 0,1,2,3,4 --out results/tradewind.jsonl

All arguments after ARENA go to the arena's run.py. `--problem all` means all public problems that a
task has. The environment needs Tradewind and onnxruntime.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


def main() -> None:
    arena = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(arena))
    import run
    from optimizers import tradewind_

    import tradewind as tw

    class Wang2020WithImprovement(tradewind_.Wang2020):  # type: ignore[name-defined, misc]
        """`recipes.wang2020` with the improvement of T in place of the published a_T."""

        def _strategy(self, _: object) -> object:
            return tw.recipes.wang2020(published=False)

    tradewind_.OPTIMIZERS["tradewind-wang2020-improvement"] = Wang2020WithImprovement
    run.enter_venv = lambda optimizer: None  # this environment is the one to measure
    arguments = sys.argv[2:]
    public = json.loads((arena / "public.json").read_text())
    for task in _value(arguments, "--task").split(","):
        family = task.split("@")[0]
        family = {"padded": "plain", "latency": "plain"}.get(family, family)  # the same problems
        problems = _value(arguments, "--problem")
        if problems == "all":
            problems = ",".join(p for p, families in public.items() if family in families)
        # of two equal options, the last one counts
        sys.argv = ["run.py", *arguments, "--task", task, "--problem", problems]
        run.main()


def _value(arguments: list[str], option: str) -> str:
    if option not in arguments[:-1]:
        sys.exit(f"{option} is missing")
    return arguments[arguments.index(option) + 1]


if __name__ == "__main__":
    main()
