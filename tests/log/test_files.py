"""Studies as files of JSON lines, and files that are written completely or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.events import created, later
from tests.samples import FIRST, LATER
from tradewind.errors import FormatError, StorageError
from tradewind.log.codec import encode
from tradewind.log.events import Event
from tradewind.log.files import read_lines, write_lines, write_text


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@given(created, st.lists(later, max_size=5))
def test_events_come_back_from_a_file(first: Event, others: list[Event]) -> None:
    path = Path("study.jsonl")
    write_lines(path, [first, *others])
    assert repr(read_lines(path)) == repr([first, *others])


def test_a_file_has_a_line_for_every_event(here: Path) -> None:
    write_lines("study.jsonl", [FIRST, *LATER])
    lines = Path("study.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert lines == [encode(event).encode() for event in [FIRST, *LATER]]
    assert [file.name for file in here.iterdir()] == ["study.jsonl"]


def test_a_file_cut_anywhere_gives_whole_events_or_is_refused() -> None:
    whole = [FIRST, *LATER[:4]]
    write_lines("study.jsonl", whole)
    text = Path("study.jsonl").read_bytes()
    ends = [i for i, byte in enumerate(text) if byte == ord("\n")]
    for cut in range(len(text)):
        Path("cut.jsonl").write_bytes(text[:cut])
        full = sum(end < cut for end in ends)
        if cut in ends or cut - 1 in ends:  # at the end of a line
            assert read_lines("cut.jsonl") == whole[: full + (cut in ends)]
        else:
            with pytest.raises(FormatError, match=f"line {full + 1}|is empty"):
                read_lines("cut.jsonl")


LINE = encode(LATER[2])


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([], "is empty"),
        ([LINE], "line 1: the first event"),
        ([encode(FIRST), LINE, encode(FIRST)], "line 3: the first event"),
        ([encode(FIRST), ""], "line 2: an event cannot be read"),
        ([encode(FIRST), LINE, LINE[:-1], LINE], "line 3: an event cannot be read"),
        ([encode(FIRST), LINE + LINE], "line 2: an event cannot be read"),
        ([encode(FIRST), LINE.replace('"format":1', '"format":9')], "line 2: .* newer version"),
        ([encode(FIRST), '{"format":1,"event":"claimed"}'], "line 2: a 'claimed' event"),
        ([json.dumps([encode(FIRST)])], "line 1: an event cannot be read"),
        (["\ufeff" + encode(FIRST)], "line 1: an event cannot be read"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(lines: list[str], place: str) -> None:
    path = Path("study.jsonl")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"study\.jsonl.*{place}"):
        read_lines(path)


@pytest.mark.parametrize("junk", [b"\xff\xfe\n", b"\x80\x04K*.\n", b"\0" * 100])
def test_a_file_of_something_else_is_refused(junk: bytes) -> None:
    Path("study.jsonl").write_bytes(encode(FIRST).encode() + b"\n" + junk)
    with pytest.raises(FormatError, match=r"study\.jsonl, line 2: "):
        read_lines("study.jsonl")


def test_a_file_that_is_not_there_is_an_error_of_storage(here: Path) -> None:
    with pytest.raises(StorageError, match=r"no\.jsonl cannot be read: No such file"):
        read_lines("no.jsonl")
    with pytest.raises(StorageError, match="cannot be read"):
        read_lines(here)
    with pytest.raises(StorageError, match="cannot be written: No such file"):
        write_lines(here / "no" / "study.jsonl", [FIRST])
    with pytest.raises(StorageError, match="it is not a file"):
        write_lines(here, [FIRST])


@pytest.mark.skipif(os.name != "posix", reason="needs devices")
def test_a_device_is_not_replaced_by_a_file() -> None:
    with pytest.raises(StorageError, match="it is not a file"):
        write_text("/dev/null", "text")


@pytest.mark.parametrize("events", [LATER, [FIRST, FIRST]], ids=["none", "two"])
def test_events_that_do_not_begin_with_created_are_not_written(
    here: Path, events: list[Event]
) -> None:
    with pytest.raises(ValueError, match="the first event, and no other, must be 'created'"):
        write_lines("study.jsonl", events)
    assert list(here.iterdir()) == []


def test_the_old_file_stays_until_the_new_one_is_complete(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines("study.jsonl", [FIRST])

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"study\.jsonl cannot be written: No space"):
        write_lines("study.jsonl", [FIRST, *LATER])
    assert read_lines("study.jsonl") == [FIRST]
    assert [file.name for file in here.iterdir()] == ["study.jsonl"]


def test_text_is_written_as_it_is() -> None:
    write_text("table.csv", "a,λ\r\n1,\ud800\n")
    assert Path("table.csv").read_bytes() == "a,λ\r\n1,\\ud800\n".encode()


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_a_link_stays_a_link() -> None:
    os.symlink("study.jsonl", "link.jsonl")
    write_lines("link.jsonl", [FIRST])
    assert Path("link.jsonl").is_symlink()
    assert read_lines("study.jsonl") == [FIRST]
