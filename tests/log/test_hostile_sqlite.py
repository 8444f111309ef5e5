"""SQLite files that somebody has made to do harm: no SQL in them is ever run, nothing takes long,
and every answer is an error of Tradewind."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import tradewind as tw
from tests.studies import ROOT, create
from tradewind.errors import FormatError
from tradewind.log.sqlite_safety import TABLES

posix = pytest.mark.skipif(os.name != "posix", reason="needs pipes, devices and links")

PROBE = """
import json, os, resource, sys
import tradewind as tw
import tradewind.log.sqlite

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def use(path):
    is_large = os.path.isfile(path) and os.path.getsize(path) > 2**25  # repairing takes a while
    for action in (
        lambda: tw.list_studies(path),
        lambda: tw.load_study(path),
        lambda: tw.load_study(path, "study").ask(lease=5.0),
        lambda: tw.create_study(tw.Space({"x": tw.Float(0, 1)}), storage=path, name="new").ask(),
        lambda: tw.delete_study("study", storage=path),
        lambda: is_large or tw.repair(path),
    ):
        try:
            action()
            yield "fine"
        except tw.TradewindError as error:
            yield f"{type(error).__name__}: {error}"

before = peak()
for path in sys.argv[1:]:
    print(path, file=sys.stderr)
    print(json.dumps(list(use(path))))
print(peak() - before)
"""


def probe(*paths: Path) -> list[list[str]]:
    """What a process answers that uses each of these files in every way. It may take 500 MB."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=120,  # instead of waiting for ever
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    *answers, megabytes = map(json.loads, done.stdout.splitlines())
    assert megabytes < 500
    return answers


def write(path: Path) -> Path:
    """A file with a study."""
    study = create(storage=path)
    study.tell(study.ask(), 0.5, cost=1.0)
    study._session.log._file.close()  # type: ignore[attr-defined]
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "studies.db")


def run(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute("PRAGMA writable_schema = ON")
        db.execute("BEGIN")
        for statement in statements:
            db.execute(statement)
        db.execute("COMMIT")


ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"


def an_endless_view(path: Path) -> None:
    view = f"CREATE VIEW studies AS {ENDLESS} SELECT x AS id, x AS place, 's' || x AS name FROM c"
    run(path, "DROP TABLE studies", view)


def an_endless_view_of_events(path: Path) -> None:
    view = f"{ENDLESS} SELECT (SELECT id FROM studies) AS study, x AS position, '' AS event FROM c"
    run(path, "DROP TABLE events", f"CREATE VIEW events AS {view}")


def views_of_views(path: Path) -> None:
    views = [f"CREATE VIEW v{i} AS SELECT a.x FROM v{i - 1} a, v{i - 1} b" for i in range(1, 30)]
    last = "CREATE VIEW studies AS SELECT x AS id, x AS place, x AS name FROM v29"
    run(path, "DROP TABLE studies", "CREATE VIEW v0 AS SELECT 1 AS x", *views, last)


def a_trigger_on_events(path: Path) -> None:
    change = "UPDATE events SET event = replace(event, '0.5', '9.9') WHERE position = new.position"
    run(path, f"CREATE TRIGGER lie AFTER INSERT ON events BEGIN {change}; END")


def a_trigger_on_leases(path: Path) -> None:
    loop = f"{ENDLESS} SELECT count(*) FROM c"
    run(path, f"CREATE TRIGGER wait AFTER INSERT ON leases BEGIN {loop}; END")


def another_table(path: Path, before: str, after: str) -> None:
    """Tables as Tradewind creates them, with one change."""
    tables = [table.replace(before, after) for table in TABLES]
    assert tables != list(TABLES)
    copies = ("INSERT INTO {0} SELECT * FROM o_{0}", "DROP TABLE o_{0}")
    for table, name in zip(tables, ("studies", "events", "leases"), strict=True):
        if table not in TABLES:
            run(path, f"ALTER TABLE {name} RENAME TO o_{name}", table)
            run(path, *(copy.format(name) for copy in copies))


def a_generated_column(path: Path) -> None:
    generated = "event TEXT NOT NULL, more TEXT AS (zeroblob(1000000000)) VIRTUAL"
    run(path, "DROP TABLE events", TABLES[1].replace("event TEXT NOT NULL", generated))


def a_default(path: Path) -> None:
    another_table(path, "seconds REAL NOT NULL", "seconds REAL NOT NULL DEFAULT (random())")


def a_check(path: Path) -> None:
    another_table(path, "event TEXT NOT NULL", "event TEXT NOT NULL CHECK (length(event) > 0)")


def an_expression_index(path: Path) -> None:
    run(path, "CREATE INDEX more ON studies (upper(name))")


def a_virtual_table(path: Path) -> None:
    run(path, "DROP TABLE leases", "CREATE VIRTUAL TABLE leases USING fts5(study, trial, until)")


def many_tables(path: Path) -> None:
    run(path, *(f"CREATE TABLE t{i} (x)" for i in range(5000)))


def a_huge_event(path: Path) -> None:
    run(path, "INSERT INTO events SELECT id, 5, zeroblob(60000000) FROM studies")


def many_long_events(path: Path) -> None:
    text = "'[' || substr(replace(hex(zeroblob(3000000)), '0000', '[[],'), 2)"
    run(path, *(f"INSERT INTO events SELECT id, {i}, {text} FROM studies" for i in range(5, 12)))


def a_name_that_is_not_text(path: Path) -> None:
    run(path, "UPDATE studies SET name = x'00ff'")


def a_name_that_is_not_unicode(path: Path) -> None:
    run(path, "UPDATE studies SET name = CAST(x'ff41' AS TEXT)")


def a_lease_that_is_text(path: Path) -> None:
    run(path, "INSERT INTO leases SELECT id, 0, 'x', 'y' FROM studies")


def a_position_that_is_text(path: Path) -> None:
    run(path, "UPDATE events SET position = 'x' WHERE position = 3")


def a_chain_of_overflow_pages_in_a_circle(path: Path) -> None:
    run(path, f"UPDATE events SET event = '{'x' * 20_000}' WHERE position = 4")
    raw = bytearray(path.read_bytes())
    pages = [at for at in range(0, len(raw), 4096) if raw[at + 4 : at + 4000] == b"x" * 3996]
    for at in pages:
        raw[at : at + 4] = (pages[0] // 4096 + 1).to_bytes(4)
    assert len(pages) > 2
    path.write_bytes(raw)


def a_circle_of_free_pages(path: Path) -> None:
    run(path, f"UPDATE events SET event = '{'x' * 20_000}' WHERE position = 4")
    run(path, "UPDATE events SET event = '' WHERE position = 4")
    raw = bytearray(path.read_bytes())
    trunk = int.from_bytes(raw[32:36])
    assert trunk
    raw[4096 * (trunk - 1) : 4096 * (trunk - 1) + 4] = trunk.to_bytes(4)
    path.write_bytes(raw)


def a_huge_number_of_pages(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[28:32] = b"\xff\xff\xff\xf0"
    path.write_bytes(raw)


def a_huge_sparse_file(path: Path) -> None:
    a_huge_number_of_pages(path)
    os.truncate(path, 1 << 43)


def a_write_ahead_log_of_another_file(path: Path) -> None:
    other = path.with_name("other.db")
    study = create(storage=other, name="other")
    shutil.copy(f"{other}-wal", f"{path}-wal")
    study._session.log._file.close()  # type: ignore[attr-defined]


REFUSED = [
    an_endless_view,
    an_endless_view_of_events,
    views_of_views,
    a_trigger_on_events,
    a_trigger_on_leases,
    a_generated_column,
    a_default,
    a_check,
    an_expression_index,
    a_virtual_table,
    many_tables,
    a_name_that_is_not_text,
    a_lease_that_is_text,
    a_chain_of_overflow_pages_in_a_circle,
    a_circle_of_free_pages,
    a_huge_number_of_pages,
]


def test_files_with_anything_that_tradewind_does_not_write_are_refused(tmp_path: Path) -> None:
    makers = [*REFUSED, a_huge_sparse_file] if os.name == "posix" else REFUSED
    paths = [write(tmp_path / f"{make.__name__}.db") for make in makers]
    for make, path in zip(makers, paths, strict=True):
        make(path)
    for make, answers in zip(makers, probe(*paths), strict=True):
        assert all("FormatError" in answer for answer in answers[:-1]), (make, answers)


@pytest.mark.slow
def test_a_million_studies_without_events_are_refused(path: Path) -> None:
    many = f"{ENDLESS} SELECT x, x, 'study ' || x FROM c LIMIT 1000000"
    run(path, f"INSERT INTO studies {many}")
    (answers,) = probe(path)
    assert all("a study has no event" in answer for answer in answers[:-1])


def test_files_with_strange_content_do_no_harm(tmp_path: Path) -> None:
    makers = [a_huge_event, many_long_events, a_name_that_is_not_unicode, a_position_that_is_text]
    paths = [write(tmp_path / f"{make.__name__}.db") for make in makers]
    for make, path in zip(makers, paths, strict=True):
        make(path)
    for make, answers in zip(makers, probe(*paths), strict=True):
        assert "Error" in answers[1], (make, answers)


def test_a_write_ahead_log_of_another_file_does_no_harm(path: Path) -> None:
    a_write_ahead_log_of_another_file(path)
    probe(path)


def test_a_trigger_that_is_added_while_a_study_is_open_is_not_run(path: Path) -> None:
    study = tw.load_study(path)
    trial = study.ask()
    a_trigger_on_events(path)
    with pytest.raises(FormatError, match="the file holds a trigger, so nothing was written"):
        study.tell(trial, 0.5, cost=1.0)
    with pytest.raises(FormatError, match="'lie' is not as Tradewind creates it"):
        tw.load_study(path)
    tw.repair(path)
    again = tw.load_study(path)
    assert [t.value for t in again.trials] == [0.5, None]


@posix
def test_only_files_are_opened(tmp_path: Path) -> None:
    kinds: dict[str, Callable[[str], None]] = {
        "pipe": os.mkfifo,
        "folder": os.mkdir,
        "device": lambda place: os.symlink("/dev/zero", place),
        "circle": lambda place: os.symlink(place, place),
    }
    paths = []
    for kind, make in kinds.items():
        for beside in ("", "-wal", "-shm", "-journal"):
            paths.append(write(tmp_path / f"{kind}{beside}.db"))
            place = Path(f"{paths[-1]}{beside}")
            place.unlink(missing_ok=True)
            make(str(place))
    for path, answers in zip(paths, probe(*paths), strict=True):
        assert all("Error" in answer for answer in answers), (path, answers)


def test_statistics_that_somebody_collected_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    tw.create_study({"x": (0.0, 1.0)}, storage=path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("ANALYZE")
    assert len(tw.list_studies(path)) == 1


def test_a_write_ahead_log_of_zeros_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    tw.create_study({"x": (0.0, 1.0)}, storage=path)
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(copy)) as target:
        db.backup(target)
        target.execute("PRAGMA journal_mode = WAL")
    copy.with_name("copy.db-wal").write_bytes(bytes(4152))
    assert len(tw.list_studies(copy)) == 1
