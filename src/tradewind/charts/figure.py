"""A figure as users get it: to look at in a notebook, to save, or to change with Plotly."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.charts.chart import Chart
from tradewind.charts.palette import Theme
from tradewind.checks import one_of
from tradewind.errors import missing
from tradewind.paths import replace_file

if TYPE_CHECKING:
    import plotly.graph_objects as go

_SUFFIXES = (".png", ".svg", ".pdf", ".html", ".json")


class Figure:
    """One figure of a study. A notebook shows it; `chart` has its plain values, and `str()` is a
    sentence that says what it shows.

    >>> figure = study.plot.frontier()
    >>> figure.save("frontier.png")
    """

    def __init__(self, chart: Chart) -> None:
        self.chart = chart

    def __str__(self) -> str:
        return self.chart.summary

    def __repr__(self) -> str:
        return f"<Figure {self.chart.name!r}: {self.chart.summary}>"

    def to_plotly(self, *, theme: Theme = "light") -> go.Figure:
        """The figure as a Plotly figure, which can be changed, shown and saved as any other.

        >>> study.plot.frontier().to_plotly().update_layout(width=900)
        """
        one_of("theme", theme, ("light", "dark"))
        try:
            from tradewind.charts.plotly import draw
        except ImportError as error:
            raise missing("to_plotly", "plotly") from error
        return draw(self.chart, theme=theme)

    def to_image(self, kind: str = "png", *, theme: Theme = "light", dpi: float = 160.0) -> bytes:
        """The figure as the bytes of a PNG, SVG or PDF file, drawn by Matplotlib.

        >>> image = study.plot.frontier().to_image("svg")
        """
        one_of("kind", kind, ("png", "svg", "pdf"))
        one_of("theme", theme, ("light", "dark"))
        try:
            from tradewind.charts.matplotlib import draw
        except ImportError as error:
            raise missing(f"a {kind} image", "matplotlib") from error
        return draw(self.chart, kind=kind, theme=theme, dpi=dpi)

    def save(self, path: str | os.PathLike[str], *, theme: Theme = "light") -> None:
        """Write the figure to a file, completely or not at all. The suffix says how: `.png`,
        `.svg` and `.pdf` are images, `.html` is a page to zoom in (with Plotly), `.json` holds the
        values.

        >>> study.plot.importance().save("importance.svg", theme="dark")
        """
        suffix = Path(path).suffix.lower()
        if suffix not in _SUFFIXES:
            raise ValueError(f"a figure is saved as {', '.join(_SUFFIXES)}, but got {suffix!r}")
        content = self._content(suffix, theme)
        with replace_file(path) as file:
            file.write(content)

    def _content(self, suffix: str, theme: Theme) -> bytes:
        if suffix == ".json":
            return json.dumps(self.chart.to_dict(), allow_nan=False).encode()
        if suffix == ".html":
            page = self.to_plotly(theme=theme).to_html(include_plotlyjs=True)
            return str(page).encode(errors="backslashreplace")
        return self.to_image(suffix[1:], theme=theme)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """What a notebook shows: a Plotly figure if it can, else an image, else the sentence.
        Nothing of it needs the network."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        with suppress(ImportError):
            drawn = json.loads(self.to_plotly().to_json())
            bundle["application/vnd.plotly.v1+json"] = drawn
        with suppress(ImportError):
            bundle["image/svg+xml"] = self.to_image("svg").decode()
        return bundle
