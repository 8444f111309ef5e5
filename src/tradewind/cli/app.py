"""The command `tradewind`: all commands, and one place for their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tradewind.cli import complete
from tradewind.cli.commands import moving, reading, running, steering
from tradewind.cli.exits import EXITS, Exit, exit_code, sentence, without_passwords
from tradewind.cli.terminal import fill_streams, note, prepare_streams


class Commands(TyperGroup):
    """Runs a command, and turns whatever it raises into a sentence and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        usage_error: Any = typer.BadParameter.__mro__[1]  # Typer shows these itself
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, usage_error):
            raise
        except SystemExit as end:
            raise typer.Exit(end.code if isinstance(end.code, int) else Exit.FAILED) from end
        except BaseException as error:
            raise typer.Exit(report(error, debug=ctx.obj is True)) from error


def report(error: BaseException, *, debug: bool) -> int:
    """Say what has happened on stderr, and return the exit code."""
    code = exit_code(error)
    if code is Exit.PIPE:  # nobody reads what we print
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    if debug:
        import traceback

        note(without_passwords("".join(traceback.format_exception(error)).rstrip()))
    elif isinstance(error, KeyboardInterrupt):
        note("interrupted")
    else:
        note(f"error: {sentence(error)}")
    return code


app = typer.Typer(
    name="tradewind",
    cls=Commands,
    rich_markup_mode=None,  # Rich would double the time that --help takes
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXITS,
)


def _version(wanted: bool) -> None:
    if wanted:
        from tradewind import __version__

        print(f"tradewind {__version__}", flush=True)
        raise typer.Exit


@app.callback()
def tradewind(
    ctx: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Select models by how well they predict and how much they cost.

    \b
    Begin in an empty folder:
      tradewind init        write tradewind.toml and train.py
      tradewind run         search; run it again to continue
      tradewind status      how it stands
      tradewind report      a page with all figures

    STORE is a file, sqlite:///…, postgresql://…, or a run file (.toml). Without it,
    TRADEWIND_STORAGE counts, or else tradewind.toml in this folder.
    """
    prepare_streams()
    ctx.obj = debug


_COMMANDS: dict[str, Callable[..., None]] = {
    "init": running.init,
    "run": running.run,
    "status": reading.status,
    "watch": reading.watch,
    "best": reading.best,
    "frontier": reading.frontier,
    "explain": reading.explain,
    "predict": reading.predict,
    "pause": steering.pause,
    "resume": steering.resume,
    "stop": steering.stop,
    "enqueue": steering.enqueue,
    "goal": steering.goal,
    "report": moving.report,
    "dashboard": moving.dashboard,
    "export": moving.export,
    "import": moving.import_,
    "replay": reading.replay,
    "repair": moving.repair,
    "studies": reading.studies,
}
for _name, _function in _COMMANDS.items():
    app.command(_name)(_function)


def main() -> None:
    """Run the command line. `--debug` may stand anywhere."""
    fill_streams()
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments.remove("--debug")
        arguments.insert(0, "--debug")
    if any(argument.endswith("-completion") for argument in arguments):
        complete.use_own_script()
    try:
        app(arguments, prog_name="tradewind")
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(Exit.INTERRUPTED)
    except OSError as error:  # the help or the version cannot be printed
        sys.exit(report(error, debug=False))
    finally:
        _give_up_what_cannot_be_written()


def _give_up_what_cannot_be_written() -> None:
    """Leave nothing for Python to write at its end: if the disk is full, it would fail again, with
    an exit code of its own."""
    try:
        sys.stdout.flush()
    except OSError:  # the command has said so
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
