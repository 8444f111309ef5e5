"""The commands that bring a study into a file or a browser, and repair stores."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Optional

import typer

from tradewind.cli.options import Json, Name, Store


def export(
    store: Store = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".jsonl holds everything; .csv is a table of the trials.",
        ),
    ] = None,
    name: Name = None,
) -> None:
    """Write a study to a file.

    It is written completely or not at all. An old file is replaced.

    \b
    Examples:
      tradewind export -o study.jsonl
      tradewind export study.db -o trials.csv
    """
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import say

    study = open_one(find_place(store, name))
    file = Path(f"{_file_name(study.name)}.jsonl") if output is None else output
    study.export(file)
    say(f"{len(study.trials)} trials of {study.name} are in {file}")


def _file_name(study: str) -> str:
    """The name of a study as that of a file in this folder."""
    return re.sub(r"[/\\:\x00-\x1f]", "-", study)


def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .jsonl file that `export` wrote.")
    ],
    store: Store = None,
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--name",
            "-n",
            metavar="NAME",
            help="The name of the new study; by default that of the file, without .jsonl.",
        ),
    ] = None,
) -> None:
    """Make a study of an exported file. The store is created if it does not exist.

    \b
    Examples:
      tradewind import study.jsonl study.db
      tradewind import old.jsonl study.db --name old
    """
    from tradewind.cli.places import check_storable, check_there, find_place
    from tradewind.cli.terminal import say
    from tradewind.study.studies import import_study

    place = find_place(store, name)
    check_storable(place)
    check_there(file)
    study = import_study(file, storage=place.storage, name=name)
    say(f"{len(study.trials)} trials are now the study {study.name} in {place}")


def report(
    store: Store = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")
    ] = Path("report.html"),
    name: Name = None,
) -> None:
    """Write a page with all figures.

    It is one file that needs no network.

    \b
    Examples:
      tradewind report
      tradewind report study.db -o report.html
    """
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import say

    study = open_one(find_place(store, name))
    study.report(output)
    say(f"the report on {study.name} is in {output}")


def dashboard(
    store: Store = None,
    name: Name = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="0 takes a free one.")
    ] = 8321,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Only this machine by default.")
    ] = "127.0.0.1",
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="Allow no steering.")] = False,
    token: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="TEXT",
            help="What changes need; drawn by default. Other users of this machine can see it "
            "here, but not in the variable.",
            envvar="TRADEWIND_TOKEN",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show studies in the browser.

    The page is live, and can steer the studies.

    \b
    Examples:
      tradewind dashboard
      tradewind dashboard study.db --port 9000 --no-open --read-only
    """
    from tradewind.cli.places import check_there, find_place

    place = find_place(store, name)
    if place.path is not None:
        check_there(place.path)
    from tradewind.dashboard import serve  # an extra, and slow to import

    serve(
        place.storage,
        host=host,
        port=port,
        open_browser=not no_open,
        name=place.name,
        token=token,
        read_only=read_only,
    )


def repair(store: Store = None, as_json: Json = False) -> None:
    """Repair a damaged store.

    It may be an exported file, too. What comes before the damage is kept, and so is the
    original. Stop everything that uses the store first.

    \b
    Examples:
      tradewind repair study.db
      tradewind repair study.jsonl --json
    """
    from tradewind.cli import answers, tables
    from tradewind.cli.places import check_there, find_place
    from tradewind.cli.terminal import emit
    from tradewind.log.repair import repair as repair_store

    place = find_place(store, None)
    if place.path is not None:
        check_there(place.path)
    emit(answers.repaired(repair_store(place.storage)), as_json=as_json, draw=tables.sentence)
