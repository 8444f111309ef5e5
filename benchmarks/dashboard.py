"""How long the dashboard lets people wait: `python benchmarks/dashboard.py [trials ...]`.

For studies of 100, 1,000 and 10,000 trials: the time to the first page and to all figures, what is
sent, how soon a finished trial is on the page, and how long the server is busy with other answers.
The server is a process of its own; with Playwright and Chromium, a real page is opened, too.
"""

from __future__ import annotations

import json
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from queue import Queue
from typing import Any

import tradewind as tw

UPDATES = 20
SERVE = """
import sys
from tradewind.dashboard import serve
serve(sys.argv[1], port=0, open_browser=False)
"""


def make_study(storage: str, n_trials: int) -> tw.Study:
    """A study of random trials with 12 parameters and a training size."""
    space = tw.Space(
        {f"x{i}": tw.Float(0.0, 1.0) for i in range(8)}
        | {
            "rate": tw.Float(1e-4, 1.0, log=True),
            "model": tw.Categorical(["linear", "trees", "network"]),
            "depth": tw.Int(1, 9, when={"model": "trees"}),
            "train_size": tw.TrainSize(),
        }
    )
    goal = tw.Tradeoff(alpha=0.1)
    drawn = tw.create_study(space, goal=goal, strategy="random", seed=0)
    for _ in range(n_trials):
        trial = drawn.ask()
        p = trial.params
        cost = p["train_size"] * (1.0 + 10.0 * p["x0"])
        value = 0.5 + 0.2 * p["x1"] * p["train_size"] - 0.1 * (p["x2"] - 0.5) ** 2
        drawn.tell(trial, value=value, cost=cost)
    study = tw.create_study(space, goal=goal, seed=0, storage=storage)
    study.add_trials(drawn.trials)
    return study


class Server:
    """A dashboard in a process of its own."""

    def __init__(self, storage: str) -> None:
        command = [sys.executable, "-c", SERVE, storage]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        lines = iter(self.process.stdout.readline, "")
        found = next(m for line in lines if (m := re.match(r"Open (http://\S+?/)(#\S*)", line)))
        self.url, self.address = found[1], found[1] + found[2]

    def get(self, path: str) -> tuple[float, int, str]:
        """Seconds, bytes on the wire, and the id of the last message."""
        request = urllib.request.Request(self.url + path, headers={"Accept-Encoding": "gzip"})
        began = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            body = answer.read()
            stream = answer.headers.get("X-Tradewind-Stream") or ""
        return time.perf_counter() - began, len(body), stream

    def follow(self, after: str) -> Queue[tuple[float, str, int, str]]:
        """The messages as they come: when, which kind, how many bytes, the text."""
        found: Queue[tuple[float, str, int, str]] = Queue()

        def read() -> None:
            kind = ""
            with urllib.request.urlopen(f"{self.url}api/events?study=study&after={after}") as it:
                for raw in it:
                    line = raw.decode()
                    kind = line[7:].strip() if line.startswith("event: ") else kind
                    if line.startswith("data: "):
                        found.put((time.perf_counter(), kind, len(line), line))

        threading.Thread(target=read, daemon=True).start()
        return found


def measure(n_trials: int, folder: Path) -> dict[str, Any]:
    storage = str(folder / f"{n_trials}.db")
    study = make_study(storage, n_trials)
    server = Server(storage)
    try:
        page = [server.get(path) for path in ("", "assets/page.js", "assets/style.css")]
        began = time.perf_counter()
        first, sent, stream = server.get("api/study/study")
        messages = server.follow(stream)
        at, figures = next((m[0], m[2]) for m in iter(messages.get, None) if m[1] == "charts")
        latency, rows, drawn, other = [], [], [], []
        for number in range(UPDATES):
            trial = study.ask()
            value = 0.5 + number / 1000.0
            told = time.perf_counter()
            study.tell(trial, value=value, cost=1.0)
            while True:
                when, kind, size, text = messages.get()
                (drawn if kind == "charts" else rows).append(size)
                if f'"finished",{value!r},' in text:  # a new picture may bring the row, too
                    break
            latency.append(when - told)
            other.append(server.get("api/studies")[0])
        return {
            "trials": n_trials,
            "html, ms": 1e3 * page[0][0],
            "first page, s": first,
            "first page, kB": sent / 1e3,
            "all figures, s": at - began,
            "figures, kB": figures / 1e3,
            "update, s": statistics.median(latency),
            "slowest, s": max(latency),
            "update, kB": statistics.median(rows) / 1e3,
            "redrawn, kB": statistics.median(drawn) / 1e3 if drawn else None,
            "other answers, ms": 1e3 * statistics.median(other),
            **in_browser(server),
        }
    finally:
        server.process.terminate()
        server.process.wait()


def in_browser(server: Server) -> dict[str, float]:
    """Seconds until a page shows its answer, and until it has drawn everything; and how long it
    takes the page to take over a change."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        began = time.perf_counter()
        page.goto(server.address)
        page.wait_for_selector(".sentence")
        shown = time.perf_counter() - began
        page.locator("svg.picture").nth(5).wait_for()
        update = """() => {
            const { page } = tradewind, { data } = page.store, began = performance.now();
            page.update({ trials: { ...data.trials, rows: [...data.trials.rows] } });
            return performance.now() - began;
        }"""
        took = statistics.median(page.evaluate(update) for _ in range(5))
        browser.close()
    return {"browser, s": shown, "browser update, ms": took}


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:]] or [100, 1000, 10_000]
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            found = measure(size, Path(folder))
            print(json.dumps({k: v and float(f"{v:.3g}") for k, v in found.items()}), flush=True)


if __name__ == "__main__":
    main()
