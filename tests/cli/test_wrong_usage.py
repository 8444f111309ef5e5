"""Every wrong input gives one or two plain sentences on stderr, an exit code, and no traceback."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tradewind as tw
from tests.cli.shell import call, make_study, write_run_file

USAGE, NOTHING, STORE = 2, 3, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of every kind."""
    path = tmp_path_factory.mktemp("stores")
    make_study(path / "one.db")
    make_study(path / "two.db", "first", 3)
    make_study(path / "two.db", "second", 3)
    make_study(path / "new.db", "new", 0)
    tw.create_study({"x": (0.0, 1.0), "size": tw.TrainSize()}, storage=path / "sized.db")
    (path / "empty.db").touch()
    (path / "text.db").write_text("no store at all, " * 100)
    (path / "short.db").write_text("short")
    make_study(path / "cut.db")._session.log._file.close()  # type: ignore[attr-defined]
    (path / "cut.db").write_bytes((path / "cut.db").read_bytes()[:5000])
    (path / "folder.db").mkdir()
    (path / "bad.jsonl").write_text('{"format":1}\n')
    (path / "bad.toml").write_text("[study\n")
    (path / "jsonl.toml").write_text(
        "[study]\nstorage = 'study.jsonl'\n[objective]\nfunction = 'posixpath:join'\n"
        "[space]\nx = ['a', 'b']\n[limits]\ntrials = 1\n"
    )
    return path


CASES: list[tuple[str, int, str]] = [
    # stores
    ("status", USAGE, "which store"),
    ("status missing.db", NOTHING, "there is no file missing.db"),
    ("status one.dc", NOTHING, r"did you mean 'one\.db'"),
    ("status nowhere/one.db", NOTHING, "there is no folder nowhere"),
    ("status empty.db", NOTHING, "is empty"),
    ("status folder.db", NOTHING, "is a folder"),
    ("status text.db", STORE, "not a SQLite file"),
    ("status short.db", STORE, "not a SQLite file"),
    ("status cut.db", STORE, "malformed; `tradewind repair` keeps everything before the damage"),
    ("status bad.jsonl", STORE, "bad.jsonl, line 1"),
    ("status bad.toml", USAGE, "cannot be read as TOML"),
    ("status missing.toml", NOTHING, "there is no file missing.toml"),
    ("status mysql://host/db", USAGE, "a storage is a path"),
    ("status host=db.example", USAGE, "given as a URL, here postgresql://user@db.example/"),
    ("status sqlite://one.db", USAGE, "sqlite:///"),
    ("status sqlite:///missing.db", NOTHING, "there is no file missing.db"),
    ("status sqlite:///one.db?mode=ro", USAGE, "synchronous"),
    ("status postgresql://me:secret@127.0.0.1:1/db", STORE, "127.0.0.1"),
    ("status two.db", USAGE, "which study.*'first', 'second'"),
    ("status two.db --name third", NOTHING, "no study 'third'.*'first', 'second'"),
    ("status two.db --name frist", NOTHING, "did you mean 'first'"),
    ("best new.db", NOTHING, "no trial of this study has finished"),
    ("frontier new.db", NOTHING, "no trial of this study has finished"),
    ("explain new.db", NOTHING, "no trial of this study has finished"),
    ("predict new.db -p x=0.5 -p k=1", NOTHING, "at least 5|no trial"),
    ("predict one.db", USAGE, "which configuration"),
    ("enqueue sized.db -p x=0.5 --train-size 0.3", USAGE, "'size' of this space: give it with -p"),
    # goals
    ("best one.db --goal qualty", USAGE, "did you mean 'quality'"),
    ("best one.db --goal tradeof:1", USAGE, "did you mean 'tradeoff'"),
    ("best one.db --goal tradeoff", USAGE, "has no alpha"),
    ("best one.db --goal tradeoff:", USAGE, "number"),
    ("best one.db --goal tradeoff:-1", USAGE, "alpha must be"),
    ("best one.db --goal tradeoff:0.1@0", USAGE, "reference must be"),
    ("best one.db --goal tradeoff:nan", USAGE, "alpha must be"),
    ("best one.db --goal tradeoff:0.1,captain=true", USAGE, "it takes alpha"),
    ("best one.db --goal under", USAGE, "has no cost"),
    ("best one.db --goal under:soon", USAGE, "cannot be read"),
    ("best one.db --goal under:10@3", USAGE, "only tradeoff"),
    ("best one.db --goal within:lots", USAGE, "tolerance must be"),
    ("best one.db --goal knee:3", USAGE, "nothing after a colon"),
    ("best one.db --goal frontier,cost=5..1", USAGE, "low < high"),
    ("best one.db --goal quality,by=x", USAGE, "no options"),
    ("best one.db --goal under:1,by=money", NOTHING, "no finished trial has"),
    ("best one.db --goal under:0.0001", NOTHING, "no finished trial|at most"),
    ("frontier one.db --tolerance lots", USAGE, "tolerance must be"),
    ("frontier one.db --by money", NOTHING, "money"),
    # parameters
    ("predict one.db -p x=0.5", USAGE, "must be given"),
    ("predict one.db -p x", USAGE, "NAME=VALUE"),
    ("predict one.db -p y=1", USAGE, "there is no parameter 'y'"),
    ("predict one.db -p x=2 -p k=1", USAGE, "'x'"),
    ("predict one.db -p x=0.5 -p x=0.6 -p k=1", USAGE, "given twice"),
    ("predict one.db -p x=abc -p k=1", USAGE, "'x'"),
    ("predict one.db --like 99", NOTHING, "no trial 99"),
    ("predict one.db -p x=0.5 -p k=1 --train-size 2", USAGE, "train_size must be"),
    ("enqueue one.db", USAGE, "which configuration"),
    ("enqueue one.db -p k=10", USAGE, "'k'"),
    # steering
    ("stop 99 one.db", NOTHING, "there is no trial 99"),
    ("stop 0 one.db", 1, "finished"),
    ("stop first one.db", USAGE, "valid integer"),
    ("stop", USAGE, "Missing argument"),
    ("goal betterness one.db", USAGE, "a goal is"),
    ("pause missing.db", NOTHING, "there is no file"),
    ("resume missing.db", NOTHING, "there is no file"),
    # files
    ("export one.db -o study.xyz", USAGE, "jsonl or .csv"),
    ("export one.db -o nowhere/study.csv", STORE, "cannot be written"),
    ("import missing.jsonl new.db", NOTHING, "there is no file"),
    ("import bad.jsonl new.db", STORE, "line 1"),
    ("import one.db new.db", STORE, "line 1"),
    ("import bad.jsonl new.jsonl", USAGE, "cannot be stored in new.jsonl.*such as study.db"),
    ("run jsonl.toml", USAGE, "cannot be stored in .*study.jsonl.*such as study.db"),
    ("report new.db -o nowhere/report.html", STORE, "nowhere"),
    ("repair missing.db", NOTHING, "there is no file"),
    ("repair cut.db", STORE, r"no study can be saved.* malformed\n$"),
    ("repair text.db", STORE, "not a SQLite file"),
    ("replay missing.db", NOTHING, "there is no file"),
    ("studies missing.db", NOTHING, "there is no file"),
    ("dashboard missing.db --no-open", NOTHING, "there is no file"),
    ("dashboard one.db --no-open --port 99999", USAGE, "65535"),
    ("watch missing.db", NOTHING, "there is no file"),
    ("watch one.db --every 0", USAGE, "every"),
    # usage
    ("stats", USAGE, "No such command"),
    ("best --gaol quality", USAGE, "No such option"),
    ("best one.db two.db", USAGE, "unexpected extra"),
    ("run missing.toml", NOTHING, "there are bad.toml, jsonl.toml"),
    ("run one.db", USAGE, "cannot be read"),
    ("run folder.db", USAGE, "folder"),
    ("run --trials 0", USAGE, "trials"),
    ("run --trials many", USAGE, "trials"),
    ("init one.db", USAGE, "it is a file"),
]


def contents(folder: Path) -> dict[str, bytes]:
    """All files but those that SQLite has beside an open one: in this process, it may be open."""
    files = [path for path in folder.iterdir() if path.is_file()]
    return {p.name: p.read_bytes() for p in files if not p.name.endswith(("-wal", "-shm"))}


def check_sentence(err: str) -> None:
    """One or two sentences for people."""
    assert "Traceback" not in err
    assert err.count("\n") <= 6, err
    assert not re.search(r'File ".*", line \d+', err)


@pytest.mark.parametrize(("line", "code", "message"), CASES, ids=[case[0] for case in CASES])
def test_a_wrong_input_is_answered_by_a_sentence_and_an_exit_code(
    line: str, code: int, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = contents(folder)
    result = call(*line.split())
    assert result.code == code, result
    assert re.search(message, result.err, re.DOTALL), result
    check_sentence(result.err)
    assert result.out == ""
    assert contents(folder) == before


def test_a_password_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://me:s%40cret-word@127.0.0.1:1/db?patience=1"
    for arguments in (("status", url), ("--debug", "status", url), ("studies", url)):
        result = call(*arguments)
        assert result.code == STORE
        assert "cret-word" not in result.out + result.err
    result = call("status", env={"TRADEWIND_STORAGE": url})
    assert "cret-word" not in result.out + result.err


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = call("--debug", "status", tmp_path / "missing.db")
    assert result.code == NOTHING
    assert "Traceback (most recent call last)" in result.err


def test_a_broken_objective_is_explained_without_our_own_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_objective.py").write_text("def objective(trial):\n    return 1 / 0\n")
    file = write_run_file(tmp_path, 'function = "broken_objective:objective"', trials=9)
    result = call("run", file)
    assert result.code == 1
    assert "failed in the same way" in result.err
    assert "ZeroDivisionError" in result.err
    assert "`tradewind status --errors` shows it in full" in result.err
    assert "Traceback" not in result.err
    for line in ("trial 0 failed:", 'broken_objective.py", line 2, in objective'):
        assert line in call("status", file, "--errors").out
    assert "broken_objective.py" not in call("status", file).out
    (failure,) = call("status", file, "--json").data["failures"]
    assert failure["error"].startswith("Traceback")
