"""The commands that begin a search: write a run file, and run it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional, TypeAlias

import typer

from tradewind.cli.options import Json


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where to write; it is created.")
    ] = Path(),
) -> None:
    """Write a run file and a train.py.

    The run file has comments, and train.py runs as it is.

    \b
    Examples:
      tradewind init
      tradewind init my-search
    """
    from tradewind.cli.starter_files import write_starter
    from tradewind.cli.terminal import say

    for path in write_starter(folder):
        say(f"wrote {path}")
    inside = "" if folder == Path() else f"cd {folder} && "
    say(f"next: {inside}tradewind run")


RunFilePath: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="The run file.")]
Trials: TypeAlias = Annotated[
    Optional[int],  # noqa: UP045  Typer reads it
    typer.Option(
        "--trials",
        "-t",
        min=1,
        metavar="NUMBER",
        help="Trials of the study in all.",
        show_default=False,
    ),
]
Timeout: TypeAlias = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="TIME",
        help="How long this run may take: 600 (seconds), 10min or 1h30m.",
        show_default=False,
    ),
]
MaxCost: TypeAlias = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        metavar="COST",
        help="The cost of all trials of the study together.",
        show_default=False,
    ),
]
Workers: TypeAlias = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--workers",
        "-w",
        min=1,
        metavar="NUMBER",
        help="Trials at the same time.",
        show_default=False,
    ),
]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option("--dry-run", help="Show what would be done, with one random configuration."),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def run(
    file: RunFilePath = Path("tradewind.toml"),
    trials: Trials = None,
    timeout: Timeout = None,
    max_cost: MaxCost = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Search as the run file says. Run it again to continue.

    Ctrl-C finishes the running trials, and Ctrl-C again stops them at once.

    \b
    Examples:
      tradewind run                       tradewind.toml in this folder
      tradewind run other.toml --trials 50 --workers 4
      tradewind run --dry-run             one configuration, and the exact command line
    """
    from tradewind.cli.config import read_run_file
    from tradewind.cli.search import Overrides, preview, search

    overrides = Overrides(trials=trials, timeout=timeout, max_cost=max_cost, workers=workers)
    settings = overrides.apply(read_run_file(file))
    if dry_run:
        preview(settings, as_json=as_json)
    else:
        search(settings, quiet=quiet, as_json=as_json)
