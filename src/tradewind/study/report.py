"""The report of a study: one HTML file that needs no network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.charts.page import write_page
from tradewind.errors import StorageError
from tradewind.paths import replace_file
from tradewind.study.figures.page_data import page_data

if TYPE_CHECKING:
    from tradewind.study.results import StudyResults


def write_report(
    study: StudyResults, path: str | os.PathLike[str], *, storage: str | None = None
) -> None:
    """Write the report to a file that ends with `.html`, completely or not at all."""
    suffix = Path(path).suffix.lower()
    if suffix != ".html":
        raise ValueError(f"a report is an .html file, but got {suffix!r}")
    page = write_page(page_data(study, storage=storage), title=f"{study.name} · Tradewind")
    try:
        with replace_file(path) as file:
            file.write(page.encode())
    except OSError as error:
        place = os.path.realpath(path)
        raise StorageError(f"{place} cannot be written: {error.strerror}") from error
