"""Results that could not be recorded: they wait in a file, and are recorded once."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.chaos.disks import SmallDisk
from tests.processes import forked
from tests.studies import Unreachable, create, events_of, score, states, study_of
from tradewind.engine import spool
from tradewind.errors import LogDiverged, StorageError
from tradewind.log.chain import START, seal
from tradewind.log.codec import encode
from tradewind.log.events import Created, Failed, Finished, Proposed
from tradewind.log.files import read_lines, write_lines
from tradewind.log.sqlite import SqliteLog, SqliteStore
from tradewind.types import Outcome, State


class Place:
    """A study in a file that can be locked, so that nothing can be recorded."""

    def __init__(self, folder: Path) -> None:
        self.path, self.spool = folder / "runs.db", folder / "runs.db-spool"
        self.study = create(storage=self.store(), name="study")

    def store(self) -> SqliteStore:
        return SqliteStore(self.path, patience=0.01)

    def load(self) -> tw.Study:
        return tw.load_study(self.store(), "study")

    @property
    def files(self) -> list[Path]:
        return sorted(self.spool.glob("*")) if self.spool.exists() else []

    @contextmanager
    def locked(self) -> Iterator[None]:
        with sqlite3.connect(self.path, isolation_level=None) as other:
            other.execute("BEGIN EXCLUSIVE")
            yield
            other.execute("ROLLBACK")
        other.close()

    def tell(self, value: float = 0.5) -> tw.Trial:
        """A trial whose result could not be recorded."""
        return self.tell_two(value, count=1)[0]

    def tell_two(self, value: float = 0.5, *, count: int = 2) -> list[tw.Trial]:
        trials = [self.study.ask() for _ in range(count)]
        with self.locked():
            for trial in trials:
                with pytest.raises(StorageError, match="wait in"):
                    self.study.tell(trial, value, cost=2.0, attributes={"note": "ü"})
        return trials


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# ---- by hand ----


def test_a_result_that_cannot_be_told_waits_in_a_file_beside_the_study(place: Place) -> None:
    trial = place.study.ask()
    message = (
        r"has kept it locked for 0\.01 seconds .*; results that could not be recorded \(trial 0\) "
        r"wait in .*runs\.db-spool.*: the next optimize, or study\.restore\(\), records them"
    )
    with place.locked(), pytest.raises(StorageError, match=message):
        place.study.tell(trial, 0.5, cost=2.0)
    assert states(place.study) == ["running"]
    first, proposed, end = read_lines(place.files[0])
    assert first == events_of(place.study)[0]
    assert isinstance(proposed, Proposed)
    assert proposed.params == trial.params
    assert isinstance(end, Finished)
    assert end.outcome == Outcome(0.5, 2.0)


RECORDERS: dict[str, Callable[[Place], object]] = {
    "the next optimize": lambda place: place.study.optimize(score, 1, show_progress=False),
    "optimize of another session": lambda place: place.load().optimize(
        score, 1, show_progress=False
    ),
    "restore": lambda place: place.study.restore(),
    "restore of another session": lambda place: place.load().restore(),
    "ask": lambda place: place.study.ask(),
    "tell of the next trial": lambda place: place.study.tell(place.study.ask(), 1.0, cost=1.0),
    "tell again": lambda place: place.study.tell(0, 0.5, cost=2.0, attributes={"note": "ü"}),
}


@pytest.mark.parametrize("record", RECORDERS)
def test_a_result_that_waits_is_recorded_once(place: Place, record: str) -> None:
    place.tell()
    RECORDERS[record](place)
    trial = place.study.trials[0]
    assert (trial.value, trial.cost, trial.attributes) == (0.5, 2.0, {"note": "ü"})
    assert place.files == []
    ends = [e for e in events_of(place.study) if isinstance(e, Finished) and e.number == 0]
    assert len(ends) == 1
    assert place.load().restore() == []


def test_a_failure_that_cannot_be_reported_waits_too(place: Place) -> None:
    trial = place.study.ask()
    with place.locked(), pytest.raises(StorageError, match="wait in"):
        place.study.fail(trial, "out of memory")
    assert [t.error for t in place.study.restore()] == ["out of memory"]


def test_telling_again_and_again_makes_one_file(place: Place) -> None:
    place.tell()
    with place.locked():
        for value in (0.5, 0.5, 0.7):
            with pytest.raises(StorageError, match="wait in"):
                place.study.tell(0, value, cost=2.0, attributes={"note": "ü"})
    assert len(place.files) == 2  # one per value


def test_a_report_that_the_study_could_not_accept_is_not_kept(place: Place) -> None:
    log = Unreachable(place.study._session.log)
    study = study_of(log)
    study.tell(study.ask(), 1.0, cost=1.0)
    study.ask()
    log.times = 10**6
    for trial in (0, 2, create(seed=1).ask()):  # already told, never asked for, of another study
        with pytest.raises(StorageError) as raised:
            study.tell(trial, 0.5, cost=2.0)
        assert "wait in" not in str(raised.value)
    with pytest.raises(StorageError, match="wait in"):
        study.tell(1, 0.5, cost=2.0)


def test_looking_at_a_study_says_what_waits_and_changes_nothing(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.tell_two()
    length = len(events_of(place.study))
    study = place.load()
    assert f"2 results of this study could not be recorded and wait in {place.spool}" in caplog.text
    assert states(study) == ["running", "running"]
    assert len(events_of(study)) == length
    assert len(place.files) == 2


def test_results_find_their_study_after_it_was_renamed_or_restored(place: Place) -> None:
    with sqlite3.connect(place.path) as source, sqlite3.connect(f"{place.path}.old") as backup:
        source.backup(backup)
    source.close(), backup.close()
    trial = place.tell()
    place.study._session.log._file.close()  # type: ignore[attr-defined]
    shutil.move(f"{place.path}.old", place.path)
    for suffix in ("-wal", "-shm"):
        Path(f"{place.path}{suffix}").unlink(missing_ok=True)
    tw.rename_study("study", "new", storage=place.path)
    study = tw.load_study(place.path)
    (restored,) = study.restore()
    assert (restored.params, restored.value) == (trial.params, 0.5)


# ---- in a search ----


def test_a_copy_of_a_study_does_not_take_what_waits_for_the_original(place: Place) -> None:
    place.study.export(place.path.with_name("copy.jsonl"))
    place.tell()
    copy = tw.import_study(place.path.with_name("copy.jsonl"), storage=place.path)
    copy.optimize(score, 1, show_progress=False)
    assert copy.restore() == []
    assert [t.value for t in place.study.restore()] == [0.5]


def test_a_long_failure_that_is_reported_again_is_recorded_once(place: Place) -> None:
    trial, reason = place.study.ask(), "y" * 30_000 + "z" * 30_000
    with place.locked(), pytest.raises(StorageError):
        place.study.fail(trial, reason)
    place.study.fail(trial, reason)
    assert len(place.study.trials) == 1


def test_a_search_keeps_what_it_could_not_record_and_the_next_one_records_it(
    place: Place,
) -> None:
    lock = place.locked()

    def objective(trial: Any) -> Any:
        if trial.number == 1:
            lock.__enter__()
        return score(trial)

    with pytest.raises(StorageError, match=r"\(trial 1\) wait in"):
        place.study.optimize(objective, 5, patience=0.3, show_progress=False)
    lock.__exit__(None, None, None)
    assert states(place.study) == ["finished", "running"]
    study = place.load()
    study.optimize(score, 2, show_progress=False)
    assert states(study) == ["finished"] * 4
    expected = [score(t)["value"] for t in study.trials]
    assert [t.value for t in study.trials] == expected
    assert study.trials[1].usage is not None
    assert place.files == []


@pytest.mark.parametrize("retries", [0, 1])
def test_a_failure_is_kept_unless_the_trial_runs_again(place: Place, retries: int) -> None:
    lock = place.locked()

    def objective(trial: Any) -> Any:
        lock.__enter__()
        raise RuntimeError("no")

    with pytest.raises(StorageError) as raised:
        place.study.optimize(objective, 1, patience=0, max_retries=retries, show_progress=False)
    lock.__exit__(None, None, None)
    assert ("wait in" in str(raised.value)) == (retries == 0)
    restored = place.study.restore()
    assert [t.state for t in restored] == [State.FAILED] * (retries == 0)


def test_a_search_on_a_log_that_was_turned_back_keeps_its_result(place: Place) -> None:
    study = place.study
    study.optimize(score, 2, show_progress=False)

    def objective(trial: Any) -> Any:
        with sqlite3.connect(place.path) as db:
            db.execute("DELETE FROM events WHERE position > 0")
        db.close()
        return score(trial)

    with pytest.raises(LogDiverged, match=r"\(trial 2\) wait in"):
        study.optimize(objective, 3, show_progress=False)
    assert [t.number for t in study.restore()] == [0, 1, 2]
    assert [t.value for t in study.trials] == [score(t)["value"] for t in study.trials]


def test_an_interrupted_search_keeps_a_result_that_it_was_about_to_record(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = place.locked()

    def objective(trial: Any) -> Any:
        lock.__enter__()
        return score(trial)

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tradewind.interrupts.pause", interrupt)
        with pytest.raises(KeyboardInterrupt):
            place.study.optimize(objective, 1, show_progress=False)
    lock.__exit__(None, None, None)
    assert [t.number for t in place.study.restore()] == [0]


def test_results_that_a_full_disk_refused_are_recorded_once_there_is_room(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "full.db")
    disk = store.file = SmallDisk(store.file.path, "NORMAL")
    study = create(storage=store)
    told: dict[int, float] = {}
    while len(told) < 40:
        try:
            trial = study.ask()
            told[trial.number] = score(trial)["value"]
            study.tell(trial, **score(trial))
        except StorageError:
            disk.pages += 1
    study.restore()
    assert {t.number: t.value for t in study.trials if t.finished} == told


@pytest.mark.parametrize("patience", [-1, "soon", [1]])
def test_the_patience_of_a_search_is_a_duration(place: Place, patience: Any) -> None:
    with pytest.raises(ValueError, match="patience must be a number"):
        place.study.optimize(score, 1, patience=patience)


# ---- where ----


def test_the_folder_may_be_chosen(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_SPOOL", str(tmp_path / "here" / "and there"))
    place.tell()
    assert place.files == []
    assert len(list((tmp_path / "here" / "and there").iterdir())) == 1
    assert [t.value for t in place.load().restore()] == [0.5]


def test_the_users_own_folder_is_used_if_there_is_no_room_beside_the_study(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    place.spool.write_text("not a folder")
    place.tell()
    assert len(list((tmp_path / "home" / "tradewind").iterdir())) == 1
    assert [t.value for t in place.load().restore()] == [0.5]


def test_the_error_contains_results_that_cannot_be_kept(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_SPOOL", "/dev/null/spool")
    trial = place.study.ask()
    message = r"nor kept in a file \(.*Not a directory.*\): trial 0 gave Outcome\(value=0.25"
    with place.locked(), pytest.raises(StorageError, match=message):
        place.study.tell(trial, 0.25)


@pytest.mark.skipif(os.name != "posix", reason="needs users")
def test_results_of_a_study_in_a_folder_that_cannot_be_written_are_kept(
    place: Place, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For instance on a disk that became read-only."""
    trial = place.study.ask()
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))

    def tell() -> None:
        for path in (place.path, *place.path.parent.glob("runs.db-*")):
            path.chmod(0o444)
        place.path.parent.chmod(0o555)
        for folder in (*place.path.parents, *state.parents):
            folder.chmod(folder.stat().st_mode | 0o111)
        state.chmod(0o777)
        if os.geteuid() == 0:
            os.setuid(65534)
        with pytest.raises(StorageError, match=r"no permission to write.* wait in"):
            place.study.tell(trial, 0.75, cost=1.0)

    try:
        assert forked(tell) == 0
    finally:
        place.path.parent.chmod(0o755)
        for path in (place.path, *place.path.parent.glob("runs.db-*")):
            path.chmod(0o644)
    assert len([*state.rglob("*.jsonl")]) == 1
    assert [t.value for t in place.load().restore()] == [0.75]


# ---- killed ----


def steps(patch: pytest.MonkeyPatch, stop_at: int) -> list[str]:
    """Kill this process at step `stop_at` of writing or recording. Returns the steps so far."""
    done: list[str] = []

    def watch(owner: Any, name: str) -> None:
        work = getattr(owner, name)

        def step(*args: Any, **options: Any) -> Any:
            if len(done) == stop_at:
                os._exit(9)
            done.append(name)
            return work(*args, **options)

        patch.setattr(owner, name, step)

    for name in ("makedirs", "fsync", "replace", "unlink", "listdir"):
        watch(os, name)
    watch(SqliteLog, "append")
    return done


@pytest.mark.skipif(os.name != "posix", reason="needs fork")
def test_a_driver_that_is_killed_while_it_keeps_a_result_leaves_all_of_it_or_nothing(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    trial = place.study.ask()
    kept = []
    with place.locked():
        for stop_at in range(20):

            def tell(stop_at: int = stop_at) -> None:
                with pytest.MonkeyPatch.context() as patch:
                    steps(patch, stop_at)
                    with pytest.raises(StorageError, match="wait in"):
                        place.study.tell(trial, stop_at / 100, cost=1.0)

            code = forked(tell)
            kept.append(len(spool._waiting(place.study._session)))
            if code == 0:
                break
    assert code == 0
    assert kept[0] == 0
    assert kept == sorted(kept)
    assert kept[-1] >= 1
    assert "stay there" not in caplog.text  # no file is damaged


@pytest.mark.skipif(os.name != "posix", reason="needs fork")
def test_a_driver_that_is_killed_while_it_records_loses_nothing_and_doubles_nothing(
    place: Place,
) -> None:
    stop_at, code = 0, 9
    while code == 9:
        first, second = place.tell_two(stop_at / 100)

        def record(stop_at: int = stop_at) -> None:
            with pytest.MonkeyPatch.context() as patch:
                steps(patch, stop_at)
                place.load().restore()

        code = forked(record)
        place.load().restore()
        assert place.files == []
        trials = place.study.trials
        assert [trials[t.number].value for t in (first, second)] == [stop_at / 100] * 2
        assert len(trials) == 2 * (stop_at + 1)  # none became a trial of its own
        stop_at += 1
    assert code == 0
    assert stop_at > 4


# ---- hostile and damaged files ----


def sabotage(place: Place, name: str) -> Path:
    """A bad file among the files of the study, with a name that would be taken for its own."""
    good = place.files[0]
    bad = good.with_name(f"{good.name[:17]}{secrets.token_hex(8)}.jsonl")
    first, proposed, end = read_lines(good)
    assert isinstance(first, Created)
    assert isinstance(end, Finished)
    match name:
        case "pipe":
            os.mkfifo(bad)
        case "folder":
            bad.mkdir()
        case "link":
            shutil.move(good, place.spool / "elsewhere")
            bad.symlink_to(place.spool / "elsewhere")
            shutil.copy(place.spool / "elsewhere", good)
        case "empty":
            bad.write_bytes(b"")
        case "noise":
            bad.write_bytes(bytes(range(256)) * 10)
        case "cut short":
            bad.write_bytes(good.read_bytes()[:-30])
        case "changed":
            bad.write_bytes(good.read_bytes().replace(b'"value":0.5', b'"value":0.6'))
        case "another study":
            write_lines(bad, [replace(first, maximize=False), proposed, end])
        case "another configuration":
            write_lines(bad, [first, replace(proposed, params={"x": 7.0, "k": 1}), end])
        case "impossible":
            # no outcome like this can be made, so it is written as text
            finished = encode(Finished(0, Outcome(0.5, trainings=7))).replace(":7", ":0")
            last = '{"format":1,"event":"end","events":3}'
            lines, _ = seal(START, [encode(first), encode(proposed), finished, last])
            bad.write_text("\n".join(lines) + "\n")
        case "no pairs":
            write_lines(bad, [first, proposed, proposed, end])
        case "other numbers":
            write_lines(bad, [first, proposed, replace(end, number=1)])
    return bad


@pytest.mark.skipif(os.name != "posix", reason="needs pipes and links")
@pytest.mark.parametrize(
    "name",
    [
        *("pipe", "folder", "link", "empty", "noise", "cut short", "changed", "another study"),
        *("another configuration", "impossible", "no pairs", "other numbers"),
    ],
)
def test_a_file_that_is_not_as_it_must_be_is_left_alone(
    place: Place, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    place.tell()
    bad = sabotage(place, name)
    place.load()
    place.study.optimize(score, 1, show_progress=False)
    assert f"the results in {bad} cannot be recorded, and stay there" in caplog.text
    assert bad in place.files
    assert [t.value for t in place.study.trials] == [0.5, score(place.study.trials[1])["value"]]
    assert [path for path in place.files if path.suffix == ".jsonl"] == [bad]


def test_a_file_that_is_too_large_is_left_alone(
    place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.tell()
    monkeypatch.setattr(spool, "_LARGEST", 100)
    assert place.study.restore() == []
    assert "must not have more than 100 bytes" in caplog.text
    assert len(place.files) == 1


def test_whatever_byte_is_changed_no_other_result_is_recorded(place: Place) -> None:
    place.tell()
    good = place.files[0].read_bytes()
    (end,) = (e for e in read_lines(place.files[0]) if isinstance(e, Finished | Failed))
    logging.getLogger("tradewind").setLevel(logging.ERROR)
    try:
        for i in range(0, len(good), 3):
            place.files[0].write_bytes(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :])
            found = spool._waiting(place.study._session)
            assert [r.end for _, results in found for r in results] in ([], [end])
    finally:
        logging.getLogger("tradewind").setLevel(logging.NOTSET)


def test_the_files_of_other_studies_are_none_of_our_business(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRADEWIND_SPOOL", str(tmp_path / "shared"))
    place.tell()
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other")
    caplog.clear()
    other.load().optimize(score, 1, show_progress=False)
    assert caplog.text == ""
    assert [t.value for t in place.load().restore()] == [0.5]
