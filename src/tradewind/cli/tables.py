"""The answers as tables and sentences for people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tradewind.amounts import clock_time
from tradewind.cli.terminal import Data
from tradewind.cli.text import clean, one_line
from tradewind.study.words import cost_amount, percent, spoken

_LONG = 300  # characters of a message in a table


# ---- values ----


def number(value: Any) -> str:
    """A value with four digits; a dash for None."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else one_line(value)


def aligned(values: Iterable[Any]) -> list[str]:
    """Values with four digits and their points below each other, for a column that begins at the
    left."""
    texts = [f"{v:#.4g}".removesuffix(".") if isinstance(v, float) else number(v) for v in values]
    wholes = [len(text.partition(".")[0]) for text in texts]
    return [" " * (max(wholes) - whole) + text for whole, text in zip(wholes, texts, strict=True)]


def cost(value: Any, unit: str) -> str:
    """A cost with three digits. Beside it stands what `cost_label` says."""
    if value is None:
        return "-"
    text = cost_amount(value, unit if unit in ("s", "bytes") else "", 3)
    amount, _, name = text.partition(" ")
    return f"{float(amount):g} {name}".rstrip()


def cost_label(unit: str) -> str:
    """`cost`, or `cost (money)` for a cost with a name of its own."""
    return "cost" if unit in ("s", "bytes", "") else f"cost ({one_line(unit)})"


def value_label(data: Data) -> str:
    """The name of the quality of a study: `accuracy`, or `value` if it has none."""
    return one_line(data["metric"] or "value")


def named_cost(value: float, unit: str) -> str:
    """A cost where there is no label: `12 s`, `2.8 (money)`."""
    return one_line(cost_amount(value, unit))


def params_text(params: Mapping[str, Any]) -> str:
    """`C=1.5, kernel=rbf`."""
    return ", ".join(f"{one_line(name)}={_setting(value)}" for name, value in params.items())


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "none" if value is None else number(value)


def ago(seconds: float | None) -> str:
    """`3.2 min ago`."""
    return "" if seconds is None else f"{spoken(max(time.time() - seconds, 0.0))} ago"


def counts_text(counts: Mapping[str, int]) -> str:
    """`18 finished, 1 failed, 1 running`; `none yet` for no trials."""
    order = ("finished", "failed", "abandoned", "running", "waiting")
    return ", ".join(f"{counts[s]} {s}" for s in order if counts.get(s)) or "none yet"


def shortened(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONG else f"{line[: _LONG - 3]}..."


# ---- parts of a page ----


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and what they are, below each other. What is empty is left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        if text:
            grid.add_row(Text(name), Text(clean(text)))
    return grid


def table(*columns: str, right: Iterable[int] = ()) -> Table:
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    to_right = set(right)
    for i, title in enumerate(columns):
        made.add_column(
            Text(title),
            justify="right" if i in to_right else "left",
            overflow="fold",
            no_wrap=i in to_right,
        )
    return made


def add_row(to: Table, *cells: str) -> None:
    to.add_row(*(Text(cell) for cell in cells))


def trials_table(entries: Iterable[Data], value: str, unit: str) -> Table:
    """Trials with value, cost and parameters, and with what is believed of noisy results."""
    listed = list(entries)
    noisy = any(e.get("believed") is not None for e in listed)
    sized = any(e["train_size"] < 1.0 and e["size_parameter"] is None for e in listed)
    belief = ["believed"] * noisy
    heads = ("trial", value, *belief, cost_label(unit), *(["data"] * sized), "parameters")
    made = table(*heads, right=(0, 2 + noisy))
    for column in made.columns[1 : 2 + noisy]:
        column.no_wrap = True
    beliefs = aligned(e.get("believed") for e in listed)
    values = aligned(e["value"] for e in listed)
    for e, shown, believed in zip(listed, values, beliefs, strict=True):
        size = [percent(e["train_size"])] * sized
        row = (str(e["trial"]), shown, *([believed] * noisy), cost(e["cost"], unit), *size)
        add_row(made, *row, params_text(e["params"]))
    return made


# ---- pages ----


_MEANINGS = {  # of words in place of the time that is left
    "lost": "the driver gives no sign of life; the next search runs the trial again",
    "overdue": "it runs longer than trials like it have taken, and goes on",
}


def status(data: Data, *, errors: bool = False) -> Iterator[RenderableType]:
    """How a study stands; with `errors`, the whole error of each kind of failure, too."""
    paused = data["paused"]
    pause = ""
    if paused is not None:
        since = ago(paused["at"]).removesuffix(" ago")
        pause = ": ".join(filter(None, [since and f"for {since}", paused["reason"]])) or "yes"
    spent = "" if data["spent"] is None else named_cost(data["spent"], data["unit"])
    yield facts(
        [
            ("best", data["sentence"] or ""),
            ("with", params_text(data["best"]["params"]) if data["best"] else ""),
            ("study", one_line(data["study"])),
            ("goal", data["goal_in_words"]),
            ("trials", counts_text(data["counts"])),
            ("queued", str(data["queued"]) if data["queued"] else ""),
            ("spent", spent),
            ("paused", pause),
            ("stopped", data["stopped"] or ""),
        ]
    )
    if data["running"]:
        yield Text()
        yield running_table(data["running"])
        left = {_time_left(e, time.time()) for e in data["running"]}
        notes = [f"{word}: {meaning}" for word, meaning in _MEANINGS.items() if word in left]
        if notes:
            yield Text("\n" + "\n".join(notes))
    if data["failures"]:
        yield Text()
        made = table("failed", "why", right=(0,))
        for failure in data["failures"]:
            add_row(made, str(failure["count"]), shortened(failure["message"]))
        yield made
    for failure in data["failures"] if errors else ():
        yield f"\ntrial {failure['trials'][0]} failed:\n{clean(failure['error'] or '')}"


def running_table(entries: Iterable[Data], *, cut: bool = False) -> Table:
    """Running trials; with `cut`, each is one line, and parameters that do not fit are cut."""
    made = table("running", "for", "left", "worker", "parameters", right=(0, 1, 2))
    made.columns[3].no_wrap = True
    now = time.time()
    for e in entries:
        begun = e["started"]
        elapsed = "-" if begun is None else clock_time(max(now - begun, 0.0))
        cells = (str(e["trial"]), elapsed, _time_left(e, now), one_line(e["worker"]))
        params = Text(params_text(e["params"]), no_wrap=cut, overflow="ellipsis" if cut else "fold")
        made.add_row(*map(Text, cells), params)
    return made


def _time_left(running: Data, now: float) -> str:
    end = running["expected_end"]
    if running["lost"]:
        return "lost"
    if end is None:
        return "-"
    return clock_time(end - now) if end > now else "overdue"


def best(data: Data) -> Iterator[RenderableType]:
    trial = data["best"]
    price = "-" if trial["cost"] is None else named_cost(trial["cost"], data["unit"])
    yield Text(clean(data["sentence"]))
    yield Text()
    yield facts(
        [
            ("trial", str(trial["trial"])),
            (value_label(data), number(trial["value"])),
            ("cost", price),
            ("data", _share(trial)),
            *((one_line(name), _setting(value)) for name, value in trial["params"].items()),
        ]
    )


def _share(trial: Data) -> str:
    """The share of the data, if it is not all of it, and no parameter says it."""
    whole = trial["train_size"] == 1.0 or trial["size_parameter"] is not None
    return "" if whole else percent(trial["train_size"])


def sentence(data: Data) -> Iterator[RenderableType]:
    yield Text(clean(data["sentence"]))


def frontier(data: Data) -> Iterator[RenderableType]:
    yield trials_table(data["frontier"], value_label(data), data["unit"])


def prediction(data: Data) -> Iterator[RenderableType]:
    low, high = data["value_low"], data["value_high"]
    rows = [(value_label(data), f"{number(data['value'])}   ({number(low)} to {number(high)})")]
    if data["cost"] is not None:
        ends = [cost(data[key], data["unit"]) for key in ("cost", "cost_low", "cost_high")]
        rows.append((cost_label(data["unit"]), f"{ends[0]}   ({ends[1]} to {ends[2]})"))
    if data["score"] is not None and abs(data["score"]) != abs(data["value"]):
        rows.append(("score", f"{number(data['score'])}   ({data['goal_in_words']})"))
    rows += [("data", _share(data))]
    rows += [(one_line(name), _setting(value)) for name, value in data["params"].items()]
    yield facts(rows)


def studies(data: Data) -> Iterator[RenderableType]:
    if not data["studies"]:
        yield Text("no studies")
        return
    made = table("study", "created", "trials")
    for s in data["studies"]:
        add_row(made, one_line(s["study"]), ago(s["created"]), counts_text(s["counts"]))
    yield made
