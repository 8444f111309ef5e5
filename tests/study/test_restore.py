"""A store that goes back in time under a running driver: noticed, and nothing is lost."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import tradewind as tw
from tests.studies import create, quick, score
from tradewind.errors import LogDiverged, NoSuchStudy, StorageError, TrialError

Storage = str | Path
TurnBack = Callable[[int], None]  # remove all events from this position on


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, TurnBack]:
    """Where to store a study, and how to turn the store back."""
    if request.param == "sqlite":
        path = tmp_path / "studies.db"

        def cut_file(length: int) -> None:
            with sqlite3.connect(path) as db:
                db.execute("DELETE FROM events WHERE position >= ?", (length,))
            db.close()

        return path, cut_file
    server = request.getfixturevalue("postgres_server")
    url = request.getfixturevalue("postgres_url")
    schema = url.split("search_path%3D")[1].split("&")[0]

    def cut_table(length: int) -> None:
        server.execute(f"DELETE FROM {schema}.tradewind_events WHERE position >= %s", (length,))

    return url, cut_table


def results(study: tw.Study) -> list[tuple[dict[str, object], float | None, float | None]]:
    return [(dict(t.params), t.value, t.cost) for t in study.trials if t.finished]


def run(study: tw.Study, trials: int) -> None:
    """Without workers and limits: the study would end by itself."""
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, **score(trial))


def test_a_store_that_went_back_is_noticed_and_gets_its_results_again(
    place: tuple[Storage, TurnBack],
) -> None:
    storage, turn_back = place
    study = quick(storage=storage)
    run(study, 3)
    early = study._session.state.position
    run(study, 4)
    before, open_trial = results(study), study.ask(lease=60.0)
    turn_back(early)
    for action in (
        study.ask,
        lambda: study.tell(open_trial, 1.0, cost=1.0),
        lambda: study.beat(open_trial, 60.0),
        lambda: study._session.log.beat([open_trial.number], 60.0),
        lambda: study.best,
        lambda: study.export("no.jsonl"),
    ):
        with pytest.raises(LogDiverged, match=r"has been replaced while it was open.*restore\(\)"):
            action()
    before.append((dict(open_trial.params), 1.0, 1.0))  # it waits in a file
    assert [t.number for t in study.restore()] == [3, 4, 5, 6, 7]
    assert results(study) == before
    assert results(tw.load_study(storage)) == before
    assert study.restore() == []  # once is enough
    assert study.tell(open_trial, 1.0, cost=1.0).number == 7
    run(study, 2)
    assert results(study)[: len(before)] == before
    assert tw.replay(tw.load_study(storage)).identical


def test_a_store_that_went_back_and_grew_to_the_same_length_is_noticed(
    place: tuple[Storage, TurnBack],
) -> None:
    storage, turn_back = place
    study = create(storage=storage)
    early = study._session.state.position
    run(study, 3)
    mine = study.ask()
    before = results(study)
    turn_back(early)
    other = tw.load_study(storage, strategy=tw.strategies.RandomSearch())
    for x in (0.1, 0.2, 0.3, 0.4):
        other.enqueue({"x": x, "k": 1})
    for _ in range(3):
        other.tell(other.ask(), 0.5, cost=1.0)
    other.ask()
    theirs = results(other)
    with pytest.raises(LogDiverged):
        study.tell(mine, 0.9, cost=1.0)
    before.append((dict(mine.params), 0.9, 1.0))
    assert [t.number for t in study.restore()] == [4, 5, 6, 7]
    assert results(study) == [*theirs, *before]
    with pytest.raises(TrialError, match="has other parameters"):
        study.tell(mine, 0.9, cost=1.0)  # number 3 is another configuration now
    assert results(tw.load_study(storage)) == [*theirs, *before]


def test_an_older_file_that_was_moved_over_the_study_is_noticed(tmp_path: Path) -> None:
    path, backup = tmp_path / "studies.db", tmp_path / "backup.db"
    study = create(storage=path)
    run(study, 3)
    with sqlite3.connect(path) as source, sqlite3.connect(backup) as target:
        source.backup(target)
    source.close(), target.close()
    run(study, 3)
    before = results(study)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.move(backup, path)
    with pytest.raises(LogDiverged, match="another file moved over it"):
        study.ask()
    assert [t.number for t in study.restore()] == [3, 4, 5]
    assert results(tw.load_study(path)) == before


def test_a_search_whose_store_goes_back_ends_at_once(place: tuple[Storage, TurnBack]) -> None:
    storage, turn_back = place
    study = create(storage=storage)
    run(study, 2)
    early = study._session.state.position
    calls = []

    def objective(trial: object) -> dict[str, float]:
        calls.append(trial)
        if len(calls) == 3:
            turn_back(early)
        return score(trial)

    with pytest.raises(StorageError, match="has been replaced while it was open"):
        study.optimize(objective, n_trials=9, show_progress=False)
    assert len(calls) == 3
    study.restore()
    assert len(results(study)) >= 4
    assert tw.replay(tw.load_study(storage)).identical


def test_a_store_without_the_study_gets_it_back_once_it_was_created_again(
    place: tuple[Storage, TurnBack],
) -> None:
    storage, _ = place
    study = create(storage=storage)
    run(study, 3)
    before = results(study)
    tw.delete_study("study", storage=storage)
    with pytest.raises(NoSuchStudy, match=r"restore\(\) records what this process knows"):
        study.ask()
    with pytest.raises(NoSuchStudy):
        study.restore()
    create(tw.Space({"y": tw.Float(0, 1)}), storage=storage)
    with pytest.raises(StorageError, match="its space is not the same"):
        study.restore()
    tw.delete_study("study", storage=storage)
    create(storage=storage)
    with pytest.raises(NoSuchStudy):
        study.ask()
    assert [trial.number for trial in study.restore()] == [0, 1, 2]
    assert results(study) == results(tw.load_study(storage)) == before


def test_a_file_that_was_deleted_and_created_again_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    study = create(storage=path)
    run(study, 3)
    before, asked = results(study), study.ask()
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(NoSuchStudy, match="there is no file"):
        study.tell(asked, 0.9, cost=1.0)
    other = create(storage=path, seed=1)
    run(other, 3)
    other.ask()
    with pytest.raises(NoSuchStudy, match="the store was replaced"):
        study.tell(asked, 0.9, cost=1.0)
    study.restore()
    told = (dict(asked.params), 0.9, 1.0)  # what could not be told was kept
    assert results(study) == [*results(other)[:3], *before, told]


def test_what_is_known_is_not_lost_if_restoring_fails(
    place: tuple[Storage, TurnBack], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, turn_back = place
    study = create(storage=storage)
    early = study._session.state.position
    run(study, 3)
    before = results(study)
    turn_back(early)

    def fail(*_: object, **__: object) -> None:
        raise StorageError("the store cannot be reached")

    for broken in ("read", "append"):
        with monkeypatch.context() as patch:
            patch.setattr(type(study._session.log), broken, fail)
            with pytest.raises(StorageError, match="cannot be reached"):
                study.restore()
        with pytest.raises(LogDiverged):
            study.ask()
    study.restore()
    assert results(tw.load_study(storage)) == before


def test_restoring_a_study_that_lacks_nothing_changes_nothing(tmp_path: Path) -> None:
    study = create(storage=tmp_path / "studies.db")
    run(study, 3)
    study.fail(study.ask(), "no")
    study.requeue(study.ask())
    length = study._session.state.position
    assert study.restore() == []
    assert study._session.state.position == length
