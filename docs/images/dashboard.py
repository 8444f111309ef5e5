"""The pictures of the dashboard: a study with running trials, in a real server and a real browser.

`make.py` calls it. Its trials have run on a virtual clock that ends now.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

import tradewind as tw

SERVE = """
import sys
from tradewind.dashboard import serve
serve(sys.argv[1], port=0, open_browser=False)
"""
RUNNING = (140.0, 75.0, 20.0)  # seconds ago that the running trials were started

MakeStudy = Callable[..., tw.Study]
Save = Callable[[Page, str], None]


def take_pictures(browser: Browser, make_study: MakeStudy, save: Save) -> None:
    """One study in light, dark and on a phone; and several side by side."""
    platform.node = lambda: "gpu-box"  # what the pictures call the machine
    with tempfile.TemporaryDirectory() as folder:
        storage = str(Path(folder) / "runs.db")
        for seed, name in enumerate(("fashion-classifier", "fashion-small", "fashion-augmented")):
            make_live(make_study, storage, name, seed)
        with server(storage) as address:
            one = address.replace("#", "?study=fashion-classifier#")
            three = address.replace(
                "#",
                "?"
                + "&".join(f"study=fashion-{each}" for each in ("classifier", "small", "augmented"))
                + "#",
            )
            for name, url, width, height, scheme in (
                ("dashboard-light", one, 1280, 1120, "light"),
                ("dashboard-dark", one, 1280, 1120, "dark"),
                ("dashboard-phone", one, 390, 844, "light"),
                ("dashboard-studies", three, 1280, 1120, "light"),
            ):
                shoot(browser, url, name, save, width=width, height=height, scheme=scheme)


def make_live(make_study: MakeStudy, storage: str, name: str, seed: int) -> None:
    """A search that seems to have begun some time ago, and trials that run now."""
    options = {"n_trials": 90 - 20 * seed, "seed": seed, "name": name}
    took = max(t.ended or 0.0 for t in make_study(**options, start=0.0).trials)
    study = make_study(**options, start=time.time() - took - RUNNING[0], storage=storage)
    for ago, width in zip(RUNNING[seed:], (512, 1024, 512), strict=False):
        slow = {"model": "network", "learning_rate": 0.06, "width": width, "epochs": 40}
        study.enqueue({**slow, "regularization": 0.01, "train_size": 1.0})
        study._session.clock = lambda ago=ago: time.time() - ago
        study.ask()


@contextmanager
def server(storage: str) -> Iterator[str]:
    """A dashboard in a process of its own; its address with the token."""
    command = [sys.executable, "-c", SERVE, storage]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        yield next(found[1] for line in lines if (found := re.match(r"Open (\S+)", line)))
    finally:
        process.terminate()
        process.wait()


def shoot(
    browser: Browser, url: str, name: str, save: Save, *, width: int, height: int, scheme: Any
) -> None:
    page = browser.new_page(
        viewport={"width": width, "height": height}, color_scheme=scheme, device_scale_factor=2
    )
    page.goto(url)
    page.locator(".live-word", has_text=re.compile("^live$")).wait_for()
    page.locator("svg.picture").nth(3).wait_for()
    page.locator(".where").evaluate("node => node.textContent &&= '/data/runs.db'")
    save(page, name)
    page.close()
