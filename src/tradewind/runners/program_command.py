"""From a command with placeholders to the arguments and variables of one trial, without a shell.

What is filled in is text: a number as Python writes it, so that no digit is lost, and `true` or
`false` for a boolean. A parameter that is inactive in this trial, or whose value is None, has no
text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tradewind.checks import suggest
from tradewind.plain import listed, shown

BUILT_IN = (
    *("number", "seed", "data_seed", "train_size", "device"),
    *("params", "params_file", "result_file"),
)
_ALL_PARAMS = ("params", "params_file")  # each of them holds every parameter

# {{ and }} are braces, {name} is a placeholder, {name?} one that may have no text.
_TOKEN = re.compile(r"(\{\{|\}\})|\{([^{}]*?)(\??)\}|([{}])")


@dataclass(frozen=True)
class Placeholder:
    """`{name}`, or `{name?}` if it may have no text."""

    name: str
    optional: bool

    def __str__(self) -> str:
        return f"{{{self.name}{'?' * self.optional}}}"


@dataclass(frozen=True)
class Argument:
    """One argument of a command: text and placeholders."""

    parts: tuple[str | Placeholder, ...]

    @classmethod
    def parse(cls, text: str) -> Argument:
        parts: list[str | Placeholder] = []
        end = 0
        for found in _TOKEN.finditer(text):
            brace, name, optional, stray = found.groups()
            if stray or name == "":
                raise ValueError(
                    "a command has placeholders such as {C} and {params_file}; a brace itself is "
                    f"written {{{{ or }}}}, but got {shown(text)}"
                )
            parts.append(text[end : found.start()])
            parts.append(brace[0] if brace else Placeholder(name, bool(optional)))
            end = found.end()
        return cls(tuple(part for part in (*parts, text[end:]) if part))

    @property
    def placeholders(self) -> list[Placeholder]:
        return [part for part in self.parts if isinstance(part, Placeholder)]

    @property
    def is_option(self) -> bool:
        """Whether it looks like `--name`, whose value is the next argument."""
        return not self.placeholders and "".join(map(str, self.parts)).startswith("-")

    def fill(self, texts: Mapping[str, str]) -> str | None:
        """The argument with its placeholders filled in; None if an optional one has no text."""
        filled = []
        for part in self.parts:
            if isinstance(part, str):
                filled.append(part)
            elif part.name in texts:
                filled.append(texts[part.name])
            elif part.optional:
                return None
            else:
                raise ValueError(_missing(part, texts))
        return "".join(filled)


def _missing(placeholder: Placeholder, texts: Mapping[str, str]) -> str:
    return (
        f"the command has {placeholder}, but this trial has no such parameter, or it is None"
        f"{suggest(placeholder.name, texts)}. Write {{{placeholder.name}?}} to leave the argument "
        "out then, and {{ for a brace"
    )


@dataclass(frozen=True)
class Command:
    """A command with placeholders. With `pairs`, parameters are appended as `--name value`."""

    arguments: tuple[Argument, ...]
    pairs: bool

    @classmethod
    def parse(cls, arguments: Sequence[str], *, as_arguments: bool) -> Command:
        parsed = tuple(map(Argument.parse, arguments))
        named = {p.name for argument in parsed for p in argument.placeholders}
        own = named - set(BUILT_IN) or named & set(_ALL_PARAMS)
        return cls(parsed, as_arguments and not own)

    @property
    def names(self) -> set[str]:
        """The names of all placeholders."""
        return {p.name for argument in self.arguments for p in argument.placeholders}

    def check_passes(self, params: Collection[str]) -> None:
        """ValueError unless the program gets all these parameters among its arguments."""
        if self.pairs or self.names & set(_ALL_PARAMS):
            return
        for name in params:
            if name not in self.names:
                raise ValueError(
                    f"the parameter {name!r} does not reach the program: add {{{name}}} or "
                    "{params} to the command"
                )

    def check(self, names: Collection[str], *, sometimes: Collection[str]) -> None:
        """ValueError unless the placeholders fit the parameters of a space. Those in `sometimes`
        may have no text."""
        for argument in self.arguments:
            for placeholder in argument.placeholders:
                name = placeholder.name
                if name not in names and name not in BUILT_IN:
                    raise ValueError(
                        f"the command has {placeholder}, which is no parameter"
                        f"{suggest(name, (*names, *BUILT_IN))}; the space has {listed(names)}, "
                        f"there are also {', '.join(BUILT_IN)}, and a brace itself is written {{{{"
                    )
                if name in sometimes and not placeholder.optional:
                    raise ValueError(
                        f"the command has {placeholder}, but this parameter is not active in every "
                        f"trial, or may be None: write {{{name}?}} to leave the argument out then"
                    )

    def fill(self, texts: Mapping[str, str], params: Mapping[str, str]) -> list[str]:
        """The arguments of one trial. An argument whose optional placeholder has no text is left
        out, and so is an option such as `--degree` just before it."""
        filled: list[str] = []
        before: Argument | None = None
        for argument in self.arguments:
            text = argument.fill({**texts, **params})
            if text is not None:
                filled.append(text)
            elif before is not None and before.is_option and len(filled) > 1:
                filled.pop()
            before = argument if text is not None else None
        if self.pairs:
            filled += [text for name, value in params.items() for text in (f"--{name}", value)]
        return filled


def text_of(value: Any) -> str | None:
    """The text of a parameter's value; None if it has none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def texts_of(params: Mapping[str, Any]) -> dict[str, str]:
    """The texts of all parameters that have one."""
    texts = {name: text_of(value) for name, value in params.items()}
    return {name: text for name, text in texts.items() if text is not None}


def variables_of(params: Mapping[str, str]) -> dict[str, str]:
    """The parameters as environment variables: `max depth` is TRADEWIND_PARAM_MAX_DEPTH."""
    variables: dict[str, str] = {}
    for name, text in params.items():
        variable = f"TRADEWIND_PARAM_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"
        if variable in variables:
            raise ValueError(
                f"every parameter needs a variable of its own, but {variable} stands for two of "
                f"{listed(params)}: rename one of them"
            )
        variables[variable] = text
    return variables
