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
from tradewind.log.files import read_lines, scan_lines, write_lines, write_text


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


def test_a_file_has_a_line_for_every_event_and_one_for_its_end(here: Path) -> None:
    write_lines("study.jsonl", [FIRST, *LATER])
    lines = Path("study.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    *events, end = [json.loads(line) for line in lines]
    assert all(len(line.pop("digest")) == 32 for line in [*events, end])
    assert events == [json.loads(encode(event)) for event in [FIRST, *LATER]]
    assert end == {"format": 1, "event": "end", "events": 1 + len(LATER)}
    assert [file.name for file in here.iterdir()] == ["study.jsonl"]


def test_a_file_cut_anywhere_is_refused_and_gives_the_events_before_the_cut() -> None:
    whole = [FIRST, *LATER[:4]]
    write_lines("study.jsonl", whole)
    text = Path("study.jsonl").read_bytes()
    for cut in range(len(text) - 1):
        Path("cut.jsonl").write_bytes(text[:cut])
        with pytest.raises(FormatError, match=r"line|is empty"):
            read_lines("cut.jsonl")
        events, _ = scan_lines("cut.jsonl")
        assert events == whole[: len(events)]
        assert len(events) >= min(text[:cut].count(b"\n"), len(whole))
    Path("cut.jsonl").write_bytes(text[:-1])  # only the end of the last line is missing
    assert read_lines("cut.jsonl") == whole


def test_every_changed_bit_is_noticed() -> None:
    write_lines("study.jsonl", [FIRST, *LATER[:4]])
    text = Path("study.jsonl").read_bytes()
    for place in range(8 * len(text)):
        flipped = bytearray(text)
        flipped[place // 8] ^= 1 << place % 8
        Path("flipped.jsonl").write_bytes(flipped)
        with pytest.raises(FormatError):
            read_lines("flipped.jsonl")


def test_lines_that_were_moved_removed_or_added_are_noticed() -> None:
    write_lines("study.jsonl", [FIRST, *LATER[:4]])
    one, two, three, *others = Path("study.jsonl").read_bytes().splitlines(keepends=True)
    changed = [one, three, two, *others], [one, two, *others], [one, two, two, three, *others]
    for lines in (*changed, [one, two, three, *others, others[-1]]):
        Path("changed.jsonl").write_bytes(b"".join(lines))
        with pytest.raises(FormatError, match=r"digest does not fit|nothing may follow"):
            read_lines("changed.jsonl")


def test_a_file_of_version_0_1_has_no_digests_and_is_read_as_it_is() -> None:
    lines = [encode(event) + "\n" for event in [FIRST, *LATER]]
    Path("old.jsonl").write_text("".join(lines))
    assert read_lines("old.jsonl") == [FIRST, *LATER]


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
    with pytest.raises(StorageError, match="not a file"):
        write_lines(here, [FIRST])


@pytest.mark.skipif(os.name != "posix", reason="needs devices")
def test_a_device_is_not_replaced_by_a_file() -> None:
    with pytest.raises(StorageError, match="not a file"):
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
