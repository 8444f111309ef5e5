"""Make the pictures of the documentation: `python docs/images/make.py`.

The frontier is that of the example at the top of the README, with its measured seconds: what the
example prints is printed here, too, for the README. The screenshots of the report show a study on a
virtual clock, whose objective only pretends to train, so that they are always the same.
"""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import tradewind as tw
from dashboard import take_pictures
from tradewind.runners import SimulatedRunner

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ARGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--hide-scrollbars")

SPACE = tw.Space(
    {
        "model": tw.Categorical(["linear", "trees", "boosting", "network"]),
        "regularization": tw.Float(1e-4, 10.0, log=True),
        "n_trees": tw.Int(20, 800, log=True, when={"model": "trees"}),
        "rounds": tw.Int(20, 1000, log=True, when={"model": "boosting"}),
        "learning_rate": tw.Float(0.01, 0.5, log=True, when={"model": ["boosting", "network"]}),
        "width": tw.Ordinal([32, 64, 128, 256, 512, 1024], when={"model": "network"}),
        "epochs": tw.Int(2, 60, log=True, when={"model": "network"}),
        "train_size": tw.TrainSize([0.2, 0.4, 0.6, 0.8, 1.0]),
    }
)
START = 1_767_261_600.0  # the virtual clock starts on 1 January 2026
GOAL = tw.Tradeoff(alpha=0.01, reference=60.0)  # a minute is worth one point of accuracy


def bump(x: float, best: float, width: float) -> float:
    """Near 0 at its best, and falling on both sides."""
    return -(((math.log10(x) - math.log10(best)) / width) ** 2)


def accuracy(trial: Any) -> float:
    """What a training would reach that does not take place."""
    p = trial.params
    match p["model"]:
        case "linear":
            peak = 0.846 + 0.01 * bump(p["regularization"], 0.1, 2.0)
        case "trees":
            peak = 0.906 - 0.25 / p["n_trees"] + 0.012 * bump(p["regularization"], 0.01, 2.0)
        case "boosting":
            n = p["rounds"]
            peak = 0.93 - 0.6 / n + 0.03 * bump(p["learning_rate"] * n, 25.0, 1.0)
        case _:
            if p["learning_rate"] > 0.3:
                raise FloatingPointError("the loss is not a number after epoch 1")
            if p["width"] == 1024 and p["epochs"] > 45:
                raise MemoryError("out of memory: the layer needs 12 GB")
            peak = 0.952 - 1.2 / p["width"] - 0.04 / p["epochs"]
            peak += 0.03 * bump(p["learning_rate"], 0.06, 0.7)
    noise = np.random.default_rng([trial.number, 7]).normal(0.0, 0.0015)
    return max(0.1, peak - 0.05 * (1.0 - p["train_size"]) ** 1.5 + noise)


def seconds(trial: Any) -> float:
    """How long it would take."""
    p = trial.params
    match p["model"]:
        case "linear":
            whole = 4.0
        case "trees":
            whole = 0.12 * p["n_trees"]
        case "boosting":
            whole = 0.45 * p["rounds"]
        case _:
            whole = 0.012 * p["width"] * p["epochs"]
    noise = np.random.default_rng([trial.number, 8]).normal(0.0, 0.08)
    return (0.5 + whole * p["train_size"]) * math.exp(noise)


def make_study(
    n_trials: int = 90,
    *,
    seed: int = 0,
    name: str = "fashion-classifier",
    start: float = START,
    storage: str | None = None,
) -> tw.Study:
    """The study of the pictures: four workers on a virtual clock."""
    study = tw.create_study(
        SPACE, goal=GOAL, metric="accuracy", seed=seed, name=name, storage=storage
    )
    runner = SimulatedRunner(4, duration=seconds)
    study._session.clock = lambda: start + (runner.workers.now() if runner.workers else 0.0)
    study.optimize(accuracy, n_trials=n_trials, runner=runner)
    return study


def draw_frontier() -> None:
    """Run the first example of the README, and draw its frontier."""
    text = (HERE.parents[1] / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec(compile(example[1], "README.md", "exec"), names)
    names["study"].plot.frontier().save(HERE / "frontier.png")


def main() -> None:
    draw_frontier()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        report = Path(folder) / "report.html"
        make_study().report(report)
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*ARGS])
        for name, width, height, scheme in (
            ("report-light", 1280, 860, "light"),
            ("report-dark", 1280, 860, "dark"),
            ("report-phone", 390, 844, "light"),
        ):
            shoot(browser, report, HERE / f"{name}.png", width, height, scheme)
        take_pictures(browser, make_study, save)
        browser.close()


def shoot(browser: Browser, report: Path, path: Path, width: int, height: int, scheme: Any) -> None:
    """A picture of the upper part of the report."""
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=2
    )
    page.goto(report.as_uri())
    page.get_by_role("slider").wait_for()
    save(page, path.stem)
    page.close()


def save(page: Page, name: str) -> None:
    """What the window of the browser shows, with few enough colours to be a small file."""
    path = HERE / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as image:
        colours = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    colours.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
