"""How much code one step of a study runs through. These numbers may fall, but must not grow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import walk
from tests.walk import Walk


@pytest.mark.parametrize(
    ("take", "files", "lines"),
    [
        pytest.param(walk.optimize_walk, 40, 6800, id="optimize"),
        pytest.param(walk.ask_tell_walk, 29, 5120, id="ask and tell"),
        pytest.param(walk.sqlite_tell_walk, 15, 3200, id="tell to SQLite"),
    ],
)
def test_a_step_stays_short(take: Callable[[], Walk], files: int, lines: int) -> None:
    taken = take()
    assert taken.files <= files, f"one more file on the way:\n{taken}"
    assert taken.lines <= lines, f"more lines on the way:\n{taken}"


def test_the_walk_begins_at_the_front_door_and_reaches_the_model_and_the_log() -> None:
    met = [str(path.relative_to(walk.PACKAGE)) for path in walk.optimize_walk().functions]
    assert met[0] == "study/study.py"
    assert met.index("engine/loop.py") < met.index("engine/session.py") < met.index("log/memory.py")
    assert "optimizer/surrogates/gp.py" in met
    assert "runners/serial.py" in met


def test_the_architecture_page_shows_the_walk_as_it_is() -> None:
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    listing = page.split("```")[1].strip().splitlines()[:-1]
    met = [path.relative_to(walk.PACKAGE).as_posix() for path in walk.optimize_walk().functions]
    assert [line.split()[0] for line in listing] == met
