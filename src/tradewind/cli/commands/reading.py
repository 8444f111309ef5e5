"""The commands that look at a study, and change nothing."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from tradewind.cli.exits import Exit
from tradewind.cli.options import By, Goal, Json, Like, Name, Params, Store, TrainSize


def status(
    store: Store = None,
    name: Name = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Show the whole error of a trial of each kind.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show how a study stands.

    Trials, cost, the best one, what runs, and what failed.

    \b
    Examples:
      tradewind status                    the study of the run file here
      tradewind status --errors           with tracebacks, or the last output of programs
      tradewind status study.db --json    for programs
    """
    from functools import partial

    from tradewind.cli import answers, tables
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import emit

    data = answers.status(open_one(find_place(store, name)))
    emit(data, as_json=as_json, draw=partial(tables.status, errors=errors))


def watch(
    store: Store = None,
    name: Name = None,
    every: Annotated[
        float,
        typer.Option(min=0.1, max=3600.0, metavar="SECONDS", help="Seconds between two looks."),
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
) -> None:
    """Follow a study, live.

    Counts, running trials, the best so far, the frontier and the last events. It ends with q or
    Ctrl-C. Piped, it prints a line for every event.

    \b
    Examples:
      tradewind watch
      tradewind watch study.db | tee log.txt
    """
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.watch import watch_study

    watch_study(open_one(find_place(store, name)), every=every, once=once)


def best(store: Store = None, goal: Goal = None, name: Name = None, as_json: Json = False) -> None:
    """Show the best trial, under any goal.

    \b
    Examples:
      tradewind best
      tradewind best study.db --goal under:10min
      tradewind best study.db --goal tradeoff:0.1@60 --json
    """
    from tradewind.cli import answers, tables
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import emit

    wanted = _goal(goal)
    study = open_one(find_place(store, name))
    emit(answers.best(study, wanted), as_json=as_json, draw=tables.best)


def frontier(
    store: Store = None,
    name: Name = None,
    tolerance: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="AMOUNT",
            help="Leave out gains of no more than 0.01, 1% or 1se.",
            show_default=False,
        ),
    ] = None,
    by: By = None,
    as_json: Json = False,
) -> None:
    """Show the efficient trials, cheapest first.

    No other trial is both better and cheaper than one of these.

    \b
    Examples:
      tradewind frontier
      tradewind frontier study.db --tolerance 1%
    """
    from tradewind.cli import answers, tables
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import emit

    amount = None if tolerance is None else _tolerance(tolerance)
    found = answers.frontier(open_one(find_place(store, name)), amount, by)
    emit(found, as_json=as_json, draw=tables.frontier)


def explain(
    store: Store = None, goal: Goal = None, name: Name = None, as_json: Json = False
) -> None:
    """Explain the best trial in one sentence.

    What the trial with the best quality would change.

    \b
    Examples:
      tradewind explain
      tradewind explain study.db --goal within:1%
    """
    from tradewind.cli import answers, tables
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import emit

    wanted = _goal(goal)
    study = open_one(find_place(store, name))
    emit(answers.explain(study, wanted), as_json=as_json, draw=tables.sentence)


def predict(
    store: Store = None,
    param: Params = None,
    like: Like = None,
    train_size: TrainSize = None,
    goal: Goal = None,
    name: Name = None,
    as_json: Json = False,
) -> None:
    """Predict what a configuration achieves and costs.

    Value and cost of one run, with the interval that holds nine of ten runs.

    \b
    Examples:
      tradewind predict -p C=1.0 -p kernel=rbf
      tradewind predict study.db --like 7 -p epochs=100
    """
    from tradewind.cli import answers, tables
    from tradewind.cli.params import configuration
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import emit

    wanted = _goal(goal)
    study = open_one(find_place(store, name))
    config = configuration(study, param or (), like)
    (predicted,) = study.predict(config, train_size=train_size, goal=wanted)
    data = answers.prediction(study, predicted, wanted)
    emit(data, as_json=as_json, draw=tables.prediction)


def replay(store: Store = None, name: Name = None, as_json: Json = False) -> None:
    """Compute every proposal again.

    Each is identical to the recorded one, within 1e-9, or different. The exit code is 1 if one is
    different.

    \b
    Examples:
      tradewind replay
      tradewind replay study.jsonl --json
    """
    from tradewind.cli import answers, tables
    from tradewind.cli.places import find_place, open_one
    from tradewind.cli.terminal import emit
    from tradewind.study.replay import replay as replay_study

    study = open_one(find_place(store, name))
    data = answers.replayed(study, replay_study(study))
    emit(data, as_json=as_json, draw=tables.sentence)
    if data["different"]:
        raise typer.Exit(Exit.FAILED)


def studies(store: Store = None, as_json: Json = False) -> None:
    """List the studies in a store.

    \b
    Examples:
      tradewind studies study.db
      tradewind studies postgresql://me@host/studies --json
    """
    from tradewind.cli import answers, tables
    from tradewind.cli.places import find_place, open_existing
    from tradewind.cli.terminal import emit
    from tradewind.study.studies import list_studies

    place = find_place(store, None)
    summaries = list_studies(open_existing(place))
    emit(answers.studies(str(place), summaries), as_json=as_json, draw=tables.studies)


def _goal(text: str | None):  # type: ignore[no-untyped-def]
    from tradewind.goals.text import read_goal

    return None if text is None else read_goal(text)


def _tolerance(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
