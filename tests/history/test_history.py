"""Studies that earlier versions wrote still load, continue and replay. `make.py` wrote them."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.history.make import PLAIN, SIZED, objective
from tests.studies import events_of
from tradewind.engine import plan
from tradewind.errors import FormatError
from tradewind.log.chain import START, seal
from tradewind.log.codec import decode, encode
from tradewind.log.events import Claimed, Created, Finished
from tradewind.log.memory import MemoryStore
from tradewind.strategies import MGFI, Bayes, Exponential, MultiFidelity, RandomSearch, Staged
from tradewind.study.replay import Verdict
from tradewind.types import Origin, Outcome

FOLDER = Path(__file__).parent
VERSIONS = ["0.1"]
PARALLEL = "0.1-parallel.jsonl"
DATA_SEEDS = {"0.1": 1009178997}  # of seed 7
# Library versions and CPUs differ in the last digits, and a model's optimum moves with them.
TOLERANCE = 1e-4  # of a coordinate's range

STUDIES: dict[str, tuple[tw.Space, Any, type]] = {
    "quality": (PLAIN, tw.Quality(), Bayes),
    "trade-off": (SIZED, tw.Tradeoff(0.3, 4.0, capped=True), Bayes),
    "reference": (PLAIN, tw.Tradeoff(0.3, 2.0, capped=True), Bayes),
    "staged": (PLAIN, tw.Quality(), Staged),
    "sizes": (SIZED, tw.Quality(), MultiFidelity),
    "random": (PLAIN, tw.Quality(), RandomSearch),
}
STATES = ["finished"] * 5 + ["failed"] + ["finished"] * 8 + ["abandoned", "waiting"]
ORIGINS = {
    "quality": "AE" + "D" * 2 + "M" * 12,
    "trade-off": "AE" + "D" * 8 + "M" * 6,
    "reference": "AE" + "D" * 2 + "M" * 12,
    "staged": "AE" + "D" * 3 + "M" * 3 + "C" * 3 + "M" * 5,
    "sizes": "AE" + "D" * 2 + "M" * 12,
    "random": "AE" + "D" * 14,
}


@pytest.fixture(params=["db", "jsonl"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def load(version: str, kind: str, name: str, folder: Path) -> tw.Study:
    """A stored study, from a copy of its file."""
    if kind == "db":
        copy = shutil.copy(FOLDER / f"{version}.db", folder)
        return tw.load_study(copy, name)
    copy = shutil.copy(FOLDER / f"{version}-{name}.jsonl", folder)
    return tw.import_study(copy, storage=MemoryStore(), name=name)


def includes(loaded: Any, stored: Any) -> bool:
    """Whether plain data has everything that was stored. A newer version may add fields."""
    if not isinstance(stored, dict):
        return bool(loaded == stored)
    return all(name in loaded and includes(loaded[name], stored[name]) for name in stored)


def gap(space: tw.Space, replayed: Any) -> float:
    """The largest difference of a coordinate, as a fraction of its range; 1 if a parameter is
    active in only one of the two proposals."""
    if replayed.recorded.keys() != replayed.computed.keys():
        return 1.0
    first, second = space.encode([replayed.recorded, replayed.computed])
    return float(np.nanmax(np.abs(first - second)))


def check_replay(study: tw.Study) -> None:
    trials = study.trials
    proposals = tw.replay(study).proposals
    assert [p.number for p in proposals] == list(range(1, len(trials)))
    for proposal in proposals:
        match trials[proposal.number].origin:
            case Origin.DESIGN | Origin.ENQUEUED | Origin.CARRIED:
                assert proposal.verdict is Verdict.IDENTICAL, proposal
            case Origin.MODEL:
                assert gap(study.space, proposal) <= TOLERANCE, proposal
            case other:
                pytest.fail(f"trial {proposal.number} was {other.value}, not proposed")


@pytest.mark.parametrize("version", VERSIONS)
def test_all_its_studies_are_in_the_store_of_a_version(version: str, tmp_path: Path) -> None:
    summaries = tw.list_studies(shutil.copy(FOLDER / f"{version}.db", tmp_path))
    assert [s.name for s in summaries] == list(STUDIES)
    assert [s.trials for s in summaries] == [len(STATES)] * len(STUDIES)


def test_every_file_here_is_of_a_version_that_is_tested() -> None:
    expected = [f"{v}-{name}.jsonl" for v in VERSIONS for name in STUDIES]
    expected += [f"{v}.db" for v in VERSIONS] + [PARALLEL]
    files = [f.name for f in FOLDER.iterdir() if f.suffix in (".db", ".jsonl")]
    assert sorted(files) == sorted(expected)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_stored_study_loads_as_it_was(version: str, kind: str, name: str, tmp_path: Path) -> None:
    study = load(version, kind, name, tmp_path)
    space, goal, strategy = STUDIES[name]
    assert (study.name, study.seed, study.space, study.goal) == (name, 7, space, goal)
    assert type(study.strategy) is strategy
    created = events_of(study)[0]
    assert isinstance(created, Created)
    assert includes(plan.encode(study.strategy), created.strategy)
    assert study.direction == ("minimize" if name == "reference" else "maximize")
    trials = study.trials
    assert [t.number for t in trials] == list(range(len(STATES)))
    assert [t.state.value for t in trials] == STATES
    assert "".join(t.origin.name[0] for t in trials) == ORIGINS[name]
    assert {t.data_seed for t in trials} == {DATA_SEEDS[version]}
    assert (trials[5].error, trials[14].error) == ("out of memory", "enough")
    assert (trials[0].value, trials[0].cost, trials[1].params["C"]) == (0.9, 3.0, 1.0)
    for trial in trials[1:]:
        if trial.finished:
            answer: Any = objective(trial)  # type: ignore[arg-type]
            assert (list(trial.folds), trial.cost) == (answer["folds"], answer["cost"])


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_stored_study_continues_and_replays(
    version: str, kind: str, name: str, tmp_path: Path
) -> None:
    study = load(version, kind, name, tmp_path)
    before = study.trials
    study.optimize(objective, n_trials=2, show_progress=False)
    trials = study.trials
    assert trials[:15] == before[:15]
    assert [t.state.value for t in trials] == [*STATES[:-1], "finished", "finished"]
    assert trials[15].params == before[15].params
    assert {t.data_seed for t in trials} == {DATA_SEEDS[version]}
    assert study.best.finished
    check_replay(study)


def test_an_old_limit_has_no_margin_and_an_old_t_is_drawn_while_others_run(tmp_path: Path) -> None:
    copy = shutil.copy(FOLDER / PARALLEL, tmp_path)
    study = tw.import_study(copy, storage=MemoryStore(), name="parallel")
    assert study.goal == tw.BestUnder(2.0, confidence=0.5)
    assert isinstance(study.strategy, Bayes)
    assert study.strategy.acquisition == MGFI(Exponential(), spread=1.0)
    assert study.strategy.scaling == "std"
    study.tell(study.ask(), **objective(study.trials[-1]))  # type: ignore[arg-type]
    assert study.best.cost is not None
    assert study.best.cost <= 2.0
    proposals = tw.replay(study).proposals
    assert len(proposals) == 16
    assert max(gap(study.space, proposal) for proposal in proposals) <= TOLERANCE


def test_an_old_study_gains_digests_from_the_next_event_on(tmp_path: Path) -> None:
    path = Path(shutil.copy(FOLDER / "0.1.db", tmp_path))
    study = tw.load_study(path, "random")
    old = study._session.state.position
    trial = study.ask()
    study.tell(trial, **objective(trial))
    with closing(sqlite3.connect(path)) as db:
        query = (
            'SELECT position, event LIKE \'%,"digest":"%\' FROM events, studies '
            "WHERE study = id AND name = 'random' ORDER BY position"
        )
        has_digest = [bool(found) for _, found in db.execute(query)]
    assert has_digest == [False] * old + [True] * (len(has_digest) - old)
    assert len(has_digest) > old
    assert tw.load_study(path, "random").trials == study.trials
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE events SET event = replace(event, '\"cost\":', '\"cost\":1')")
    with pytest.raises(FormatError, match=f"event {old} is damaged"):  # it covers all before it
        tw.load_study(path, "random")


def test_versions_without_digests_keep_them_as_an_unknown_field() -> None:
    (line,), _ = seal(START, [encode(Claimed(3))])
    event = decode(line)
    assert (event, list(event.extra)) == (Claimed(3, extra=event.extra), ["digest"])
    assert encode(event) == line


def test_a_repair_adds_the_digests_that_an_older_version_has_left_out(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    study = tw.create_study(PLAIN, strategy="random", seed=7, storage=path)
    trial = study.ask()
    old = [Finished(trial.number, Outcome(0.5, 1.0)), Claimed(1)]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for position, event in enumerate(old, study._session.state.position):
            db.execute("INSERT INTO events SELECT id, ?, ? FROM studies", (position, encode(event)))
    with pytest.raises(FormatError, match="or an older version of Tradewind wrote it"):
        tw.load_study(path)
    (saved,) = tw.repair(path).studies
    assert saved.damage is None
    assert tw.load_study(path)._session.log.read(4) == old
