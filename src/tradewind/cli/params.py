"""Parameters as people type them: `C=1.0`, `kernel=rbf`, `shuffle=true`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tradewind.checks import suggest
from tradewind.cli.exits import NotThere, UsageFault
from tradewind.plain import listed, shown
from tradewind.types import Config, Value

if TYPE_CHECKING:
    from tradewind.space import Space
    from tradewind.space.parameters import Parameter
    from tradewind.study.study import Study
    from tradewind.types import Trial

_WORDS: dict[str, Value] = {"true": True, "false": False, "none": None, "null": None}


def configuration(study: Study, given: Iterable[str], like: int | None) -> Config:
    """The parameters of a trial, if one is named, with those given in place of its own. What the
    new ones make inactive is left out."""
    own = read_params(study.space, given)
    if like is None and not own:
        raise UsageFault("which configuration? Give -p NAME=VALUE, or --like TRIAL")
    if like is None:
        return own
    trial = trial_of(study, like)
    mixed = {**trial.params, **own}
    return {
        name: value for name, value in mixed.items() if name in own or _fits(study, mixed, name)
    }


def trial_of(study: Study, number: int) -> Trial:
    """The trial with this number. `NotThere` if there is none."""
    for trial in study.trials:
        if trial.number == number:
            return trial
    raise NotThere(f"there is no trial {number} in this study")


def _fits(study: Study, config: Config, name: str) -> bool:
    """Whether the conditions of a parameter hold in this configuration."""
    conditions = study.space[name].when or {}
    return all(
        parent in config and condition.holds(config[parent])
        for parent, condition in conditions.items()
    )


def read_params(space: Space, given: Iterable[str]) -> Config:
    """`NAME=VALUE` texts as a configuration of the space."""
    config: Config = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageFault(f"a parameter is written NAME=VALUE, but got {shown(text)}")
        if name not in space:
            raise UsageFault(
                f"there is no parameter {name!r}{suggest(name, space)}: the study has "
                f"{listed(space)}"
            )
        if name in config:
            raise UsageFault(f"the parameter {name!r} is given twice")
        config[name] = read_value(space[name], value)
    return config


def read_value(parameter: Parameter, text: str) -> Value:
    """The value that a text stands for: one of the choices, if there are some."""
    choices: tuple[Any, ...] | None = getattr(parameter, "choices", None)
    if choices is not None:
        meant = [choice for choice in choices if text in _texts(choice)]
        if len(meant) == 1:
            found: Value = meant[0]
            return found
    if text.lower() in _WORDS and not any(text == choice for choice in choices or ()):
        return _WORDS[text.lower()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if value is None or isinstance(value, (bool, int, float, str)) else text


def _texts(choice: Any) -> tuple[str, ...]:
    """The texts that stand for a choice: as it is, and as JSON."""
    words = tuple(word for word, value in _WORDS.items() if value is choice)
    return (*words, str(choice), json.dumps(choice))
