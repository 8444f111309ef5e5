"""Page data made by hand: what the page shows, without a study behind it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from tradewind.charts.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    Line,
    Panel,
    Points,
    Spans,
    Strands,
)

START = 1_767_260_000.0  # seconds since 1970
MODELS = ("linear", "forest", "boosting", "network")
ACCURACY, SECONDS = Axis("accuracy", format="number"), Axis("training time", "log", "seconds")
REFERENCE = 10.0  # seconds


def page_data(n_trials: int = 60, *, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """A study of `n_trials` trials. `changes` replace top-level entries."""
    rng = random.Random(seed)
    rows = [_row(number, rng) for number in range(n_trials)]
    done = [row for row in rows if row[1] == "finished"]
    frontier = _frontier(done)
    charts = [*_charts(rows, done, frontier, rng), *_dependence(rng)]
    best = frontier[-1] if frontier else None
    data = {
        "format": 1,
        "study": _study(rows, best),
        "parameters": [
            {"name": "model", "kind": "categorical", "range": ", ".join(MODELS), "when": ""},
            {"name": "rate", "kind": "float", "range": "0.0001 to 1 (log)", "when": ""},
            {"name": "depth", "kind": "int", "range": "1 to 12", "when": "model is forest"},
        ],
        "best": best and _best(best),
        "unanswered": "" if best else "No trial has finished yet.",
        "choices": _choices(frontier),
        "trials": {"columns": _columns(), "rows": rows},
        "running": [],
        "frontier": [row[0] for row in frontier],
        "charts": {chart.name: chart.to_dict() for chart in charts},
        "sections": _sections(),
        "failures": _failures(rows),
        "reproduce": {
            "python": "import tradewind as tw\n\nstudy = tw.create_study(SPACE, seed=0)\n",
            "command": "tradewind run study.toml",
            "space": '{\n  "rate": [0.0001, 1.0]\n}',
            "versions": {"tradewind": "0.1.0", "python": "3.12.1", "numpy": "2.1.0"},
            "machine": "Linux, 8 processors",
        },
    }
    return data | changes


def empty_data() -> dict[str, Any]:
    """A study without any trial."""
    data = page_data(0)
    data["charts"] = {
        name: Chart(name, chart["title"], "", empty="No trial has finished yet.").to_dict()
        for name, chart in data["charts"].items()
    }
    return data


def _row(number: int, rng: random.Random) -> list[Any]:
    model = rng.choice(MODELS)
    rate, size = 10 ** rng.uniform(-4, 0), rng.choice((0.2, 0.4, 0.6, 0.8, 1.0))
    depth = rng.randint(1, 12) if model == "forest" else None
    speed = {"linear": 0.02, "forest": 0.4, "boosting": 1.5, "network": 12.0}[model]
    cost = speed * size * math.exp(rng.gauss(0, 0.4)) * (1 + 0.1 * (depth or 0))
    peak = 0.75 + 0.05 * MODELS.index(model) + 0.05 * size
    value = peak - 0.03 * (math.log10(rate) + 2) ** 2 + rng.gauss(0, 0.005)
    started = START + 9.0 * number
    state = "failed" if number % 17 == 11 else "finished"
    if state == "failed":
        error = "ValueError: the loss is not finite" if number % 2 else "MemoryError"
        return [number, state, None, cost, size, model, rate, depth, started, error]
    return [number, state, round(value, 5), cost, size, model, rate, depth, started, None]


def _columns() -> list[dict[str, Any]]:
    names = (
        *(("number", "trial", "number"), ("state", "state", "state")),
        *(("value", "accuracy", "number"), ("cost", "training time", "seconds")),
        ("train_size", "training size", "percent"),
        *(("params_model", "model", "text"), ("params_rate", "rate", "number")),
        *(("params_depth", "depth", "number"), ("started", "started", "clock")),
        ("error", "error", "text"),
    )
    return [
        {"key": key, "title": title, "format": form, "parameter": key.startswith("params_")}
        for key, title, form in names
    ]


def _frontier(done: Sequence[list[Any]]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for row in sorted(done, key=lambda row: (row[3], -row[2])):
        if not found or row[2] > found[-1][2]:
            found.append(row)
    return found


def _study(rows: list[list[Any]], best: list[Any] | None) -> dict[str, Any]:
    count = {state: sum(row[1] == state for row in rows) for state in ("finished", "failed")}
    return {
        "name": "digits",
        "version": "0.1.0",
        "made": START + 9.0 * len(rows),
        "created": START,
        "direction": "maximize",
        "metric": "accuracy",
        "seed": 0,
        "goal": "the best quality",
        "strategy": "Bayes()",
        "cost": {"name": "wall", "unit": "s"},
        "counts": {"waiting": 0, "running": 0, **count, "abandoned": 0},
        "spent": sum(row[3] for row in rows) if best else None,
        "paused": None,
        "stopped": None,
        "queued": 0,
        "storage": None,
    }


def sentence(row: Sequence[Any]) -> str:
    return f"Trial {row[0]} reaches {row[2]:.3f} and trains for {row[3]:.3g} s."


def _best(row: list[Any]) -> dict[str, Any]:
    params = {"model": row[5], "rate": row[6]} | ({} if row[7] is None else {"depth": row[7]})
    return {
        "trial": row[0],
        "sentence": sentence(row),
        "value": row[2],
        "cost": row[3],
        "train_size": row[4],
        "params": params,
    }


def _choices(frontier: list[list[Any]]) -> dict[str, Any] | None:
    if not frontier:
        return None
    steps, rest = [], list(frontier)  # from the most accurate to the cheapest
    alpha, chosen = 0.0, rest[-1]
    while True:
        steps.append({"from": alpha, "trial": chosen[0], "sentence": sentence(chosen)})
        cheaper = [
            (REFERENCE * (chosen[2] - row[2]) / (chosen[3] - row[3]), row)
            for row in frontier
            if row[3] < chosen[3]
        ]
        if not cheaper:
            break
        alpha, chosen = min(cheaper, key=lambda pair: (pair[0], pair[1][3]))
    return {
        "tradeoff": {
            "reference": REFERENCE,
            "unit": "s",
            "by": None,
            "alpha": None,
            "said": "",
            "max": 1.5 * max(steps[-1]["from"], 0.01),
            "steps": steps,
        },
        "limit": {
            "unit": "s",
            "own": None,
            "confidence": 0.9,
            "said": "",
            "low": frontier[0][3],
            "high": frontier[-1][3],
            "steps": [
                {"from": row[3], "trial": row[0], "sentence": sentence(row)} for row in frontier
            ],
        },
    }


def _dots(rows: Sequence[list[Any]], x: int, y: int, *, name: str, role: Any = "muted") -> Points:
    return Points(
        x=[row[x] for row in rows],
        y=[row[y] for row in rows],
        name=name,
        role=role,
        trials=[row[0] for row in rows],
    )


def _charts(
    rows: list[list[Any]], done: list[list[Any]], frontier: list[list[Any]], rng: random.Random
) -> list[Chart]:
    cloud = _dots(done, 3, 2, name="finished trials")
    front = Line([r[3] for r in frontier], [r[2] for r in frontier], "", "frontier", steps=True)
    efficient = _dots(frontier, 3, 2, name="efficient models", role="frontier")
    best, highest = [], -math.inf
    for row in done:
        highest = max(highest, row[2])
        best.append(highest)
    seen = _dots(done, 0, 2, name="trials")
    bounds = [[0.3 + 0.4 * rng.random(), name] for name in ("rate", "model", "depth")]
    names = tuple(str(name) for _, name in bounds)
    shares = [float(share) for share, _ in bounds]
    category = Axis("", "category", labels=names)
    return [
        Chart(
            "frontier",
            "Quality against cost",
            f"{len(frontier)} of {len(done)} trials are efficient.",
            (Panel(SECONDS, ACCURACY, (cloud, front, efficient)),),
        ),
        Chart(
            "progress_trials",
            "Best so far over trials",
            "The best accuracy grows.",
            (Panel(Axis("trial"), ACCURACY, (seen, _best_line(done, 0, best))),),
        ),
        Chart(
            "progress_time",
            "Best so far over time",
            "The best accuracy grows.",
            (
                Panel(
                    Axis("time", format="clock"),
                    ACCURACY,
                    (_dots(done, 8, 2, name="trials"), _best_line(done, 8, best)),
                ),
            ),
        ),
        _timeline(rows),
        Chart(
            "importance",
            "What matters",
            "The rate matters most.",
            tuple(
                Panel(
                    Axis("share of variance", format="percent"),
                    category,
                    (Bars(shares, title, role, [0.8 * s for s in shares], shares),),
                    title,
                )
                for title, role in (("quality", "main"), ("cost", "second"))
            ),
        ),
        _parallel(done),
        Chart(
            "predicted_cost",
            "Predicted against measured cost",
            "Most predictions are within a factor of two.",
            (
                Panel(
                    Axis("predicted", "log", "seconds"),
                    Axis("measured", "log", "seconds"),
                    (
                        Line([0.01, 100], [0.01, 100], "equal", "muted", dashed=True),
                        Points(
                            [row[3] * math.exp(rng.gauss(0, 0.3)) for row in done],
                            [row[3] for row in done],
                            "trials",
                            trials=[row[0] for row in done],
                        ),
                    ),
                ),
            ),
        ),
        Chart("learning_curves", "Learning curves", "", empty="Every trial used all the data."),
    ]


def _best_line(done: list[list[Any]], x: int, best: list[float]) -> Line:
    return Line([row[x] for row in done], best, "best so far", steps=True)


def _timeline(rows: list[list[Any]]) -> Chart:
    lanes = [row[0] % 4 for row in rows]
    return Chart(
        "timeline",
        "Who ran what, when",
        "Four workers.",
        (
            Panel(
                Axis("time", format="clock"),
                Axis("", "category", labels=tuple(f"worker {i}" for i in range(4))),
                (
                    Spans(
                        lanes,
                        [row[8] for row in rows],
                        [row[8] + min(34.0, 10 + row[3]) for row in rows],
                        "finished",
                        trials=[row[0] for row in rows],
                    ),
                ),
            ),
        ),
    )


def _parallel(done: list[list[Any]]) -> Chart:
    rows = [
        [
            MODELS.index(row[5]) / 3,
            (math.log10(row[6]) + 4) / 4,
            None if row[7] is None else (row[7] - 1) / 11,
            max(0.0, min(1.0, (row[2] - 0.7) / 0.35)),
        ]
        for row in done
    ]
    ticks = [
        [(i / 3, name) for i, name in enumerate(MODELS)],
        [(i / 4, f"1e{i - 4}") for i in range(5)],
        [(0.0, "1"), (1.0, "12")],
        [(0.0, "0.7"), (1.0, "1.05")],
    ]
    strands = Strands(
        ["model", "rate", "depth", "accuracy"],
        ticks,
        rows,
        [row[3] or 0.0 for row in rows],
        [row[0] for row in done],
    )
    panel = Panel(Axis(""), Axis(""), (strands,))
    return Chart("parallel", "All configurations", "Good trials are dark.", (panel,))


def _dependence(rng: random.Random) -> list[Chart]:
    x = [10 ** (-4 + 4 * i / 30) for i in range(31)]
    mean = [0.95 - 0.02 * (math.log10(v) + 2) ** 2 for v in x]
    curve = Panel(
        Axis("rate", "log"),
        ACCURACY,
        (
            Band(x, [m - 0.02 for m in mean], [m + 0.02 for m in mean], "95% interval"),
            Line(x, mean, "expected"),
        ),
    )
    names = Axis("model", "category", labels=MODELS)
    bars = Panel(
        names,
        ACCURACY,
        (Points([0, 1, 2, 3], [0.8 + 0.1 * rng.random() for _ in MODELS], "expected"),),
    )
    return [
        Chart("dependence_rate", "rate", "Accuracy peaks at 0.01.", (curve,)),
        Chart("dependence_model", "model", "Networks are best.", (bars,)),
    ]


def _sections() -> list[dict[str, Any]]:
    names = {
        "answer": ("The answer", ["frontier"]),
        "progress": ("Progress", ["progress_trials", "progress_time"]),
        "timeline": ("Workers", ["timeline"]),
        "importance": ("Importance", ["importance"]),
        "dependence": ("Effect of each parameter", ["dependence_rate", "dependence_model"]),
        "parallel": ("Configurations", ["parallel"]),
        "predicted": ("Predicted cost", ["predicted_cost"]),
        "learning": ("Learning curves", ["learning_curves"]),
        "failures": ("Failures", []),
        "table": ("All trials", []),
        "reproduce": ("How to reproduce", []),
    }
    return [
        {"id": key, "title": title, "text": "", "charts": charts}
        for key, (title, charts) in names.items()
    ]


def _failures(rows: list[list[Any]]) -> list[dict[str, Any]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        if row[-1]:
            found.setdefault(row[-1], []).append(row[0])
    return [
        {
            "message": message,
            "count": len(trials),
            "trials": trials,
            "detail": f"Traceback (most recent call last):\n  in train\n{message}\n",
        }
        for message, trials in found.items()
    ]
