"""The arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated, Optional, TypeAlias

import typer

from tradewind.cli import complete

Store: TypeAlias = Annotated[
    Optional[str],  # noqa: UP045  Typer reads it
    typer.Argument(
        metavar="STORE",
        help="A file, sqlite:///…, postgresql://…, or a run file (.toml). By default "
        "TRADEWIND_STORAGE, or else the run file here.",
        autocompletion=complete.stores,
        show_default=False,
    ),
]
Name: TypeAlias = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--name",
        "-n",
        metavar="NAME",
        help="The study in the store; not needed if there is only one.",
        autocompletion=complete.study_names,
        show_default=False,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Goal: TypeAlias = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--goal",
        "-g",
        metavar="GOAL",
        help="quality, tradeoff:0.1@60, under:10min, within:1%, knee or frontier; by default that "
        "of the study.",
        autocompletion=complete.goals,
        show_default=False,
    ),
]
Params: TypeAlias = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="A parameter; repeat it for more.",
        autocompletion=complete.parameters,
        show_default=False,
    ),
]
Like: TypeAlias = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        "--like",
        metavar="TRIAL",
        help="Take the parameters of this trial, except those given.",
        show_default=False,
    ),
]
By: TypeAlias = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--by",
        metavar="COST",
        help="Another cost, by its name, such as cpu.",
        show_default=False,
    ),
]
TrainSize: TypeAlias = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--train-size",
        metavar="SHARE",
        help="The share of the data, such as 0.4, if no parameter says it.",
        show_default=False,
    ),
]
