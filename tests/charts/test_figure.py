"""A figure in a notebook, and as a file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.charts.samples import POINTS
from tests.studies import environment
from tradewind.charts.figure import Figure

FIGURE = Figure(POINTS)


@pytest.mark.parametrize(
    ("suffix", "beginning"),
    [
        (".png", b"\x89PNG"),
        (".svg", b"<?xml"),
        (".SVG", b"<?xml"),
        (".pdf", b"%PDF"),
        (".json", b'{"name": "points"'),
    ],
)
def test_a_figure_is_saved_by_its_suffix(suffix: str, beginning: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"figure{suffix}"
    FIGURE.save(path)
    assert path.read_bytes().startswith(beginning)


def test_a_saved_page_needs_no_network(tmp_path: Path) -> None:
    FIGURE.save(tmp_path / "figure.html")
    text = (tmp_path / "figure.html").read_text("utf-8")
    assert "<html>" in text
    assert "src=" not in text.split("plotly.js", 1)[0]


def test_an_unknown_suffix_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"as \.png, \.svg, \.pdf, \.html, \.json, but got '\.gif'"
    ):
        FIGURE.save(tmp_path / "figure.gif")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        FIGURE.save(tmp_path / "nowhere" / "figure.json")


@pytest.mark.parametrize("argument", [{"theme": "blue"}, {"kind": "gif"}])
def test_only_known_themes_and_kinds_are_drawn(argument: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="must be"):
        FIGURE.to_image(**argument)  # type: ignore[arg-type]


def test_a_figure_says_what_it_shows() -> None:
    assert str(FIGURE) == POINTS.summary
    assert POINTS.summary in repr(FIGURE)
    assert FIGURE.chart is POINTS


def test_a_notebook_shows_a_plotly_figure_or_else_an_image() -> None:
    bundle = FIGURE._repr_mimebundle_()
    assert bundle["text/plain"] == repr(FIGURE)
    assert bundle["application/vnd.plotly.v1+json"]["data"]
    assert "</svg>" in bundle["image/svg+xml"]


WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ModuleNotFoundError(name, name=name)
for module in list(sys.modules):
    if module.split(".")[0] in {blocked}:
        del sys.modules[module]
sys.meta_path.insert(0, Blocked())
from tests.charts.samples import POINTS
from tradewind.charts.figure import Figure
bundle = Figure(POINTS)._repr_mimebundle_()
print(sorted(bundle))
for make in (Figure(POINTS).to_plotly, Figure(POINTS).to_image):
    try:
        make()
    except ImportError as error:
        print(error)
"""


def without(*blocked: str) -> list[str]:
    code = WITHOUT.format(blocked=blocked)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_plotly_a_notebook_shows_an_image() -> None:
    shown, *errors = without("plotly")
    assert shown == "['image/svg+xml', 'text/plain']"
    assert errors == ["to_plotly needs a package: pip install plotly"]


def test_without_both_a_notebook_shows_the_sentence() -> None:
    shown, *errors = without("plotly", "matplotlib")
    assert shown == "['text/plain']"
    assert all("pip install" in error for error in errors)
    assert len(errors) == 2


def test_a_figure_is_data_for_whoever_wants_to_draw_it() -> None:
    assert json.loads(json.dumps(FIGURE.chart.to_dict()))["panels"]
