"""Repairing damaged stores: everything before the damage is kept, and what was lost is said."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import tradewind as tw
from tests.chaos import bitflips
from tests.postgres import Server
from tests.studies import create, score
from tradewind.errors import FormatError, LogDiverged, StorageError, TradewindError
from tradewind.log.chain import START, seal, unseal

SIZE = 4096  # of a page


def make(storage: str | Path, trials: int = 30) -> tw.Study:
    study = create(storage=storage)
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, **score(trial))
    return study


def finished(study: tw.Study) -> list[tuple[int, dict[str, object], float | None]]:
    return [(t.number, dict(t.params), t.value) for t in study.trials if t.finished]


def change(path: Path, statement: str) -> None:
    """Change a file behind Tradewind's back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute(statement)


def overwrite(path: Path, at: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(content)


def page_of(path: Path, text: bytes) -> int:
    """Where the page begins that holds this text."""
    return path.read_bytes().index(text) // SIZE * SIZE


def a_changed_event(path: Path) -> None:
    change(path, "UPDATE events SET event = replace(event, 'value', 'valve') WHERE position = 60")


def an_unreadable_event(path: Path) -> None:
    """An event that cannot be read, although its digest and all others fit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        rows = db.execute("SELECT event FROM events ORDER BY position").fetchall()
        bodies, _ = unseal(START, [line for (line,) in rows])
        bodies[60] = bodies[60].replace('"value":', '"value":1e301,"worth":')
        lines, _ = seal(START, bodies)
        statement = "UPDATE events SET event = ? WHERE position = ?"
        db.executemany(statement, [(line, i) for i, line in enumerate(lines)])


def a_missing_event(path: Path) -> None:
    change(path, "DELETE FROM events WHERE position = 60")


def a_page_of_zeros(path: Path) -> None:
    overwrite(path, page_of(path, b'"finished","number":20,'), bytes(SIZE))


def a_cut_file(path: Path) -> None:
    os.truncate(path, path.stat().st_size - SIZE)


def a_header_of_zeros(path: Path) -> None:
    overwrite(path, 0, bytes(100))


def a_schema_of_zeros(path: Path) -> None:
    overwrite(path, 100, bytes(SIZE - 100))


def a_trigger(path: Path) -> None:
    change(
        path,
        "CREATE TRIGGER lie AFTER INSERT ON events BEGIN DELETE FROM leases; END",
    )


def an_index(path: Path) -> None:
    change(path, "UPDATE sqlite_master SET rootpage = 2 WHERE name = 'sqlite_autoindex_studies_2'")


@pytest.mark.parametrize(
    ("damage", "loses"),
    [
        (a_changed_event, True),
        (an_unreadable_event, True),
        (a_missing_event, True),
        (a_page_of_zeros, True),
        (a_cut_file, True),  # nothing in the file shows what was at its end
        (a_header_of_zeros, False),
        (a_schema_of_zeros, False),
        (a_trigger, False),
        (an_index, False),
    ],
)
def test_a_repaired_study_has_everything_before_the_damage_and_goes_on(
    tmp_path: Path, damage: Callable[[Path], None], loses: bool
) -> None:
    path = tmp_path / "studies.db"
    study = make(path)
    before = finished(study)
    study._session.log._file.close()  # type: ignore[attr-defined]
    damage(path)
    damaged = path.read_bytes()
    with pytest.raises(FormatError, match=r"tradewind\.repair|not a SQLite file"):
        tw.load_study(path)
    done = tw.repair(path)
    (saved,) = done.studies
    again = tw.load_study(path)
    kept = finished(again)
    assert kept == before[: len(kept)]
    assert (len(kept) < len(before)) == loses
    assert (saved.damage is not None) == (loses and damage is not a_cut_file)
    assert saved.trials == len(again.trials)
    assert {number for number, *_ in before[len(kept) :]} >= set(saved.lost)
    assert done.original == f"{path}.damaged"
    assert Path(done.original).read_bytes() == damaged
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in os.listdir(tmp_path)} == {
        "studies.db",
        "studies.db.damaged",
    }
    trial = again.ask()
    again.tell(trial, **score(trial))
    assert tw.replay(tw.load_study(path)).identical
    assert tw.repair(path).original is None


def test_the_report_says_what_was_kept_and_lost_of_each_study(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    make(path, 5)
    create(storage=path, name="other")
    change(path, "DELETE FROM events WHERE position = 9")
    assert str(tw.repair(path)) == (
        f"{path} is repaired; the damaged original is kept as {path}.damaged\n"
        "study 'study': 2 trials are kept (9 events); event 9 is missing; results that are lost, "
        "by trial: 2, 3, 4\n"
        "study 'other': 0 trials are kept (1 events): all that was found\n"
        "Nothing in a file shows that the last events of a study are gone: compare the numbers of "
        "trials with what you remember."
    )
    assert str(tw.repair(path)) == (
        f"{path} is not damaged, and was not changed\n"
        "study 'study': 2 trials are kept (9 events): all that was found\n"
        "study 'other': 0 trials are kept (1 events): all that was found"
    )


def test_a_single_flipped_bit_of_an_event_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    study = make(path)
    before = finished(study)
    study._session.log._file.close()  # type: ignore[attr-defined]
    at = path.read_bytes().index(b'"finished","number":20,') + 25
    overwrite(path, at, bytes([path.read_bytes()[at] ^ 4]))
    with pytest.raises(FormatError, match="its digest does not fit"):
        tw.load_study(path)
    assert tw.repair(path).studies[0].damage is None
    assert finished(tw.load_study(path)) == before


def test_flipped_bits_anywhere_cost_at_most_what_they_hit(tmp_path: Path) -> None:
    path = bitflips.make_database(tmp_path)
    whole, content = path.read_bytes(), bitflips.read_database(path)
    rng, repaired = Random(3), 0
    while repaired < 12:
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        try:
            bitflips.read_database(path)
            continue
        except TradewindError:
            done = tw.repair(path)
        repaired += 1
        for saved in done.studies:
            if saved.damage is None:
                assert (saved.name, saved.events) in {("study", 245), ("other", 4)}
        kept = bitflips.read_database(path)
        if all(saved.damage is None for saved in done.studies):
            assert kept == content
        for file in tmp_path.iterdir():
            file.unlink()


@pytest.mark.parametrize("place", ["header", "frame"])
def test_a_damaged_write_ahead_log_is_noticed_before_sqlite_drops_it(
    tmp_path: Path, place: str
) -> None:
    path = bitflips.make_killed(tmp_path)
    for name in ("alive.db", "alive.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    log = tmp_path / "killed.db-wal"
    copy = shutil.copytree(tmp_path, tmp_path / "copy")
    before = bitflips.read_database(Path(copy) / "killed.db")
    overwrite(log, 20 if place == "header" else log.stat().st_size // 2, b"\x99\x98\x97")
    damaged = log.read_bytes()
    with pytest.raises(FormatError, match=r"write-ahead log.*tradewind\.repair"):
        tw.load_study(path)
    assert log.read_bytes() == damaged
    done = tw.repair(path)
    assert Path(f"{done.original}-wal").read_bytes() == damaged
    (name, kept), (_, whole) = bitflips.read_database(path)[0], before[0]
    assert name == "study"
    if place == "header":
        assert kept == whole
    else:
        assert done.studies[0].trials > 20


def test_a_driver_that_still_runs_gives_back_what_a_repaired_file_lacks(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    study = make(path)
    before = finished(study)
    change(path, "DELETE FROM events WHERE position = 60")
    tw.repair(path)
    with pytest.raises(LogDiverged):
        study.ask()
    study.restore()
    assert finished(tw.load_study(path)) == before


@pytest.mark.parametrize("cut", [100, 3000, -40, -1])
def test_a_cut_file_of_json_lines_is_repaired(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "study.jsonl"
    study = make(None)
    study.export(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    if cut == 100:  # not even the first line
        with pytest.raises(FormatError, match="nothing was changed"):
            tw.repair(path)
        assert path.read_bytes() == whole[:cut]
        return
    done = tw.repair(path)
    assert (done.original is None) == (cut == -1)  # only the last line break is missing
    again = tw.import_study(path)
    assert finished(again) == finished(study)[: len(finished(again))]
    assert len(finished(again)) == (30 if cut < 0 else 4)


def test_a_damaged_line_is_reported_with_what_comes_after(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    make(None, 4).export(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], *lines[6:]]))
    (saved,) = tw.repair(path).studies
    assert saved.lost == (1, 2, 3)
    assert saved.damage is not None
    assert "line 6" in saved.damage


def test_a_damaged_study_in_postgres_is_cut_and_kept_aside(
    postgres_server: Server, postgres_url: str
) -> None:
    study, other = make(postgres_url, 8), create(storage=postgres_url, name="other")
    before = finished(study)
    schema = postgres_url.split("search_path%3D")[1].split("&")[0]
    update = "SET event = replace(event, 'value', 'valve')"
    postgres_server.execute(f"UPDATE {schema}.tradewind_events {update} WHERE position = 20")
    with pytest.raises(FormatError, match=r"tradewind\.repair"):
        tw.load_study(postgres_url, "study")
    done = tw.repair(postgres_url)
    assert done.original == "'study (damaged)'"
    assert [saved.trials for saved in done.studies] == [5, 0]
    kept = finished(tw.load_study(postgres_url, "study"))
    assert kept == before[: len(kept)]
    with pytest.raises(FormatError):
        tw.load_study(postgres_url, "study (damaged)")
    with pytest.raises(LogDiverged):
        study.ask()
    study.restore()
    assert finished(tw.load_study(postgres_url, "study")) == before
    other.ask()
    names = [summary.name for summary in tw.list_studies(postgres_url)]
    assert names == ["study", "other"]


def test_a_repair_that_is_interrupted_leaves_no_older_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The main file without its write-ahead log would look like a whole study."""
    path = tmp_path / "runs.db"
    study = make(path)  # it stays open, so that there is a write-ahead log
    a_changed_event(path)

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tw.repair(path)
    assert not path.exists()
    kept = sorted(file.name for file in tmp_path.iterdir() if file.is_file())
    assert kept == ["runs.db.damaged", "runs.db.damaged-wal"]
    assert len(study._session.state.trials) == 30


def test_what_is_no_store_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "diary.db"
    path.write_text("dear diary\n" * 1000)
    with pytest.raises(FormatError, match="was not changed"):
        tw.repair(path)
    with pytest.raises(StorageError, match="there is no such file"):
        tw.repair(tmp_path / "none.db")
    assert [file.name for file in tmp_path.iterdir()] == ["diary.db"]


def test_a_file_of_a_newer_version_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    make(path, 1)._session.log._file.close()  # type: ignore[attr-defined]
    change(path, "PRAGMA user_version = 7")
    change(path, "ALTER TABLE studies ADD COLUMN more")
    before = path.read_bytes()
    with pytest.raises(FormatError, match="update Tradewind"):
        tw.repair(path)
    assert path.read_bytes() == before


def test_an_exported_study_of_a_newer_version_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    make(tmp_path / "studies.db", 1).export(path)
    bodies, _ = unseal(START, path.read_text().splitlines())
    bodies[2] = bodies[2].replace('"format":1', '"format":2')
    path.write_text("".join(f"{line}\n" for line in seal(START, bodies)[0]))
    before = path.read_bytes()
    with pytest.raises(FormatError, match="update Tradewind"):
        tw.repair(path)
    assert path.read_bytes() == before
