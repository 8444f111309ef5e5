"""Opening files by their path: nothing but regular files, and at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.hostile.no_files import device, fifo, listening_socket
from tests.models.test_saving import Model
from tests.studies import told
from tradewind.errors import DataError, SpaceError, StorageError
from tradewind.models import load_letor, load_yelp, read_vectors
from tradewind.paths import check_file, open_file, replace_file

PLACES = {fifo: "a FIFO", device: "a device", listening_socket: "a socket", Path.mkdir: "a folder"}


@pytest.fixture(params=PLACES, ids=lambda place: place.__name__)
def special(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """Something that is not a file, and what it is."""
    path = tmp_path / "it"
    request.param(path)
    return path, PLACES[request.param]


@pytest.mark.parametrize("function", [open_file, check_file, lambda path: list(replace(path))])
def test_only_regular_files_are_opened(
    special: tuple[Path, str], function: Callable[[Path], object]
) -> None:
    path, kind = special
    with pytest.raises(OSError, match=re.escape(f"it is {kind}, not a file")):
        function(path)


def export(path: Path, suffix: str) -> None:
    told((0.5, 1.0)).export(path.rename(path.with_suffix(suffix)))


def replace(path: Path) -> Any:
    with replace_file(path) as file:
        yield file.write(b"x")


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(tw.import_study, id="import_study"),
        pytest.param(tw.list_studies, id="list_studies"),
        pytest.param(tw.Space.from_configspace, id="from_configspace"),
        pytest.param(lambda path: export(path, ".jsonl"), id="export"),
        pytest.param(lambda path: export(path, ".csv"), id="export a table"),
        pytest.param(Model.load, id="load"),
        pytest.param(Model(1).save, id="save"),
        pytest.param(read_vectors, id="read_vectors"),
        pytest.param(load_letor, id="load_letor"),
        pytest.param(load_yelp, id="load_yelp"),
    ],
)
def test_every_reader_and_writer_refuses_what_is_not_a_file(
    special: tuple[Path, str], use: Callable[[Path], object]
) -> None:
    with pytest.raises((StorageError, DataError, SpaceError)):
        use(special[0])


def test_a_file_that_is_being_replaced_is_the_old_one_until_the_new_one_is_complete(
    tmp_path: Path,
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(path)
    with replace_file(link) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert link.is_symlink()
    broken = replace(path)
    next(broken)
    with pytest.raises(ZeroDivisionError):
        broken.throw(ZeroDivisionError())
    assert path.read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]
