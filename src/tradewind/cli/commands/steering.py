"""The commands that steer a study while it runs. Every driver of the study follows within a
second."""

from __future__ import annotations

from typing import Annotated

import typer

from tradewind.cli import complete
from tradewind.cli.options import Like, Name, Params, Store, TrainSize


def pause(
    store: Store = None,
    name: Name = None,
    reason: Annotated[
        str, typer.Option("--reason", "-r", metavar="TEXT", help="Why, for others to see.")
    ] = "",
) -> None:
    """Start no more trials until `resume`.

    Running trials go on.

    \b
    Examples:
      tradewind pause
      tradewind pause study.db --reason "the GPU is needed"
    """
    from tradewind.cli.places import find_place, open_to_steer
    from tradewind.cli.terminal import say

    study = open_to_steer(find_place(store, name))
    if study.paused is not None:
        say(f"{study.name} is paused already")
        return
    study.pause(reason)
    say(f"{study.name} is paused: running trials go on, and no new one starts")


def resume(store: Store = None, name: Name = None) -> None:
    """Go on after a pause.

    \b
    Examples:
      tradewind resume
    """
    from tradewind.cli.places import find_place, open_to_steer
    from tradewind.cli.terminal import say

    study = open_to_steer(find_place(store, name))
    if study.paused is None:
        say(f"{study.name} is not paused")
        return
    study.resume()
    say(f"{study.name} goes on")


def stop(
    trial: Annotated[int, typer.Argument(min=0, metavar="TRIAL", help="The number of the trial.")],
    store: Store = None,
    name: Name = None,
    reason: Annotated[
        str, typer.Option("--reason", "-r", metavar="TEXT", help="Why, for others to see.")
    ] = "stopped from the command line",
) -> None:
    """Stop a running or waiting trial. Nothing is learned from it, and the search goes on.

    \b
    Examples:
      tradewind stop 12
      tradewind stop 12 study.db --reason "it diverges"
    """
    from tradewind.cli.params import trial_of
    from tradewind.cli.places import find_place, open_to_steer
    from tradewind.cli.terminal import say

    study = open_to_steer(find_place(store, name))
    study.abandon(trial_of(study, trial).number, reason)
    say(f"trial {trial} of {study.name} is stopped")


def enqueue(
    store: Store = None,
    param: Params = None,
    like: Like = None,
    train_size: TrainSize = None,
    name: Name = None,
) -> None:
    """Let a configuration run next. Parameters that you leave out are drawn at random.

    \b
    Examples:
      tradewind enqueue -p C=1.0 -p kernel=rbf
      tradewind enqueue study.db --like 7 -p epochs=100
    """
    from tradewind.cli.params import configuration
    from tradewind.cli.places import find_place, open_to_steer
    from tradewind.cli.tables import params_text
    from tradewind.cli.terminal import say

    study = open_to_steer(find_place(store, name))
    config = configuration(study, param or (), like)
    study.enqueue(config, train_size=train_size)
    say(f"queued for {study.name}: {params_text(config)}")


def goal(
    goal: Annotated[
        str,
        typer.Argument(
            metavar="GOAL",
            help="quality, tradeoff:0.1@60, under:10min, within:1%, knee or frontier.",
            autocompletion=complete.goals,
        ),
    ],
    store: Store = None,
    name: Name = None,
) -> None:
    """Search for something else from the next trial on. Results so far count as before.

    \b
    Examples:
      tradewind goal tradeoff:0.3@60
      tradewind goal under:10min study.db
    """
    from tradewind.cli.answers import goal_in_words
    from tradewind.cli.places import find_place, open_to_steer
    from tradewind.cli.terminal import say
    from tradewind.goals.text import read_goal

    wanted = read_goal(goal)
    study = open_to_steer(find_place(store, name))
    study.change_goal(wanted)
    say(f"{study.name} now searches for {goal_in_words(study, wanted)}")
