"""What the shell offers after Tab. Nothing here may print or fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tradewind.cli.places import Place
    from tradewind.study.study import Study

# Typer's own script for bash breaks words at = and :, as bash does, and adds a blank after each.
# Typer counts words from the end if COMP_CWORD is negative; '' is the word that has not begun.
_BASH = """
%(complete_func)s() {
    local IFS=$'\\n' line=${COMP_LINE:0:COMP_POINT} word kept
    word=${line##*[[:space:]]}
    kept=${word%%"${word##*[=:]}"}
    [[ -n $word ]] || line+="''"
    COMPREPLY=( $( env COMP_WORDS="$line" COMP_CWORD=-1 \\
                   %(autocomplete_var)s=complete_bash $1 ) )
    COMPREPLY=( "${COMPREPLY[@]#"$kept"}" )
    [[ ${COMPREPLY[0]} == *[=:/] ]] && compopt -o nospace 2> /dev/null
    return 0
}

complete -o default -F %(complete_func)s %(prog_name)s
"""

_GOALS = ("quality", "tradeoff:", "under:", "within:1%", "knee", "frontier")


def use_own_script() -> None:
    """Let Typer show and install our script for bash."""
    from typer import _completion_shared

    scripts: dict[str, str] = getattr(_completion_shared, "_completion_scripts", {})
    scripts["bash"] = _BASH


def goals(incomplete: str) -> list[str]:
    return [goal for goal in _GOALS if goal.startswith(incomplete)]


def stores(incomplete: str) -> list[str]:
    """Files that may be stores, and folders on the way to one."""
    import glob
    import os

    found = sorted(glob.glob(f"{glob.escape(incomplete)}*"))
    ours = (".db", ".sqlite", ".sqlite3", ".jsonl", ".toml")
    return [
        f"{p}/" if os.path.isdir(p) else p for p in found if os.path.isdir(p) or p.endswith(ours)
    ]


def study_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return [name for name in _safely(ctx, _names) if name.startswith(incomplete)]


def parameters(ctx: typer.Context, incomplete: str) -> list[str]:
    """`C=`, and after it the choices of a parameter that has some."""

    def offered(place: Place) -> list[str]:
        from tradewind.runners.program_command import text_of

        study = _study(place)
        name, equals, _ = incomplete.partition("=")
        if not equals:
            return [f"{name}=" for name in study.space]
        parameter = study.space.get(name)
        choices = getattr(parameter, "choices", ())
        return [f"{name}={text_of(choice) or 'none'}" for choice in choices]

    return [text for text in _safely(ctx, offered) if text.startswith(incomplete)]


def _names(place: Place) -> list[str]:
    from tradewind.cli.places import open_existing

    return open_existing(place).names()


def _study(place: Place) -> Study:
    from tradewind.cli.places import open_one

    return open_one(place)


def _safely(ctx: typer.Context, offered: Callable[[Place], list[str]]) -> list[str]:
    import logging

    logging.disable(logging.CRITICAL)
    try:
        from tradewind.cli.places import find_place

        given: dict[str, Any] = ctx.params
        return offered(find_place(given.get("store") or _store_typed(), given.get("name")))
    except Exception:
        return []


def _store_typed() -> str | None:
    """The store on the line that is being completed. An option that still lacks its value keeps
    the arguments before it from being parsed."""
    import os
    import shlex

    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = shlex.split(line)[2:]
    return next((word for word in words if "://" in word or os.path.isfile(word)), None)
