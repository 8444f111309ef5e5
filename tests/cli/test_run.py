"""`init` and `run`: from an empty folder to an answer, interrupted at any time and continued."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tradewind as tw
from tests.cli.shell import FUNCTION, call, execute, make_study, start, write_run_file
from tests.runners.scenes import alive, eventually, written

MODULES = ("objective_of_test", "raising", "leaving", "unreadable", "importing")
SLOW = 'command = ["sh", "-c", "echo $$ >> pids; sleep 600; echo 1", "{params}"]'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run file and its function, and the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in MODULES:
        sys.modules.pop(name, None)
    (tmp_path / "objective_of_test.py").write_text(FUNCTION)
    write_run_file(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_an_empty_folder_leads_to_a_model_a_report_and_a_replay(tmp_path: Path) -> None:
    for command, said in (
        (["init"], "wrote train.py"),
        (["run", "--trials", "6"], "6 finished"),
        (["status"], "6 finished"),
        (["best"], "learning_rate"),
        (["frontier"], "parameters"),
        (["report"], "report.html"),
        (["replay"], "6 proposals: 6 identical"),
        (["export", "-o", "study.csv"], "6 trials"),
    ):
        result = execute(*command, folder=tmp_path)
        assert result.code == 0, result
        assert said in result.out, result
        assert "Traceback" not in result.err
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert len((tmp_path / "study.csv").read_text().splitlines()) == 7


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine")
    result = call("init", tmp_path)
    assert result.code == 2
    assert "exists already, and nothing was written" in result.err
    assert [p.name for p in tmp_path.iterdir()] == ["train.py"]
    assert (tmp_path / "train.py").read_text() == "mine"


def test_init_makes_the_folder(tmp_path: Path) -> None:
    assert call("init", tmp_path / "a" / "b").code == 0
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == [
        "tradewind.toml",
        "train.py",
    ]


def test_a_search_continues_where_it_was_and_ends_at_its_limit(folder: Path) -> None:
    first = call("run", "--trials", "2")
    assert "a new study, 2 to go" in first.err
    second = call("run")
    assert "2 trials done, 2 to go" in second.err
    third = call("run", "--json")
    assert "4 of 4 trials are done; --trials 14 continues" in third.err
    assert third.data["counts"]["finished"] == 4
    assert (first.code, second.code, third.code) == (0, 0, 0)
    whole = tw.load_study(folder / "study.db")
    assert tw.replay(whole).identical


@pytest.mark.slow
def test_several_runs_of_a_file_share_its_trials(folder: Path) -> None:
    runs = [start("run", "--trials", "12", folder=folder) for _ in range(2)]
    for process in runs:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    done = [t for t in tw.load_study(folder / "study.db").trials if t.finished]
    assert 12 <= len(done) <= 13


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_an_objective_that_prints_leaves_the_output_to_json(
    folder: Path, workers: tuple[str, ...]
) -> None:
    says = "    print('epoch 1')\n    os.system('echo epoch 2')\n    x, k"
    (folder / "objective_of_test.py").write_text(
        "import os\nprint('loading')\n" + FUNCTION.replace("    x, k", says)
    )
    preview = execute("run", "--dry-run", "--json", folder=folder)
    assert preview.data["trials"] == 0
    result = execute("run", "--json", *workers, folder=folder)
    assert result.data["counts"]["finished"] == 4
    for said in ("loading", "epoch 1", "epoch 2"):
        assert said in result.err
    plain = execute("run", "--trials", "5", folder=folder)
    assert "epoch 1" in plain.out


def test_an_objective_that_closes_the_output_does_not_keep_it_from_others(folder: Path) -> None:
    (folder / "objective_of_test.py").write_text(
        "import sys\n" + FUNCTION.replace("    x, k", "    sys.stdout.close()\n    x, k")
    )
    result = execute("run", folder=folder)
    assert (result.code, "4 finished" in result.out) == (0, True), result
    assert "Traceback" not in result.err


def test_a_search_in_which_all_trials_failed_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "failing_objective.py").write_text("def objective(trial):\n    return None\n")
    file = write_run_file(tmp_path, 'function = "failing_objective:objective"', trials=2)
    for _ in range(2):  # it is so as well when nothing is left to do
        result = call("run", file, "--json", "--quiet")
        assert result.code == 1
        assert result.data["counts"]["failed"] == 2


def test_a_limit_on_cost_counts_what_was_spent(folder: Path) -> None:
    assert call("run", "--trials", "30", "--max-cost", "12").code == 0
    again = call("run", "--trials", "30", "--max-cost", "12", "--json")
    assert again.code == 0
    assert again.data["spent"] < 20.0
    assert again.data["trials"] < 30


def test_a_run_file_that_contradicts_its_study_says_what_differs(folder: Path) -> None:
    assert call("run").code == 0
    path = folder / "tradewind.toml"
    path.write_text(path.read_text().replace("high = 9", "high = 7"))
    result = call("run")
    assert result.code == 2
    assert "'k' is" in result.err
    assert "another name, or another storage" in " ".join(result.err.split())
    assert "Traceback" not in result.err


def test_the_goal_of_the_file_counts_when_it_continues(folder: Path) -> None:
    assert call("run", "--trials", "3").code == 0
    path = folder / "tradewind.toml"
    path.write_text(path.read_text().replace("seed = 0", 'seed = 0\ngoal = "under:3"'))
    result = call("run", "--json")
    assert result.data["goal"] == "under:3"


def test_a_run_says_that_it_goes_back_to_the_goal_of_the_file(folder: Path) -> None:
    path = folder / "tradewind.toml"
    path.write_text(path.read_text().replace("seed = 0", 'seed = 0\ngoal = "quality"'))
    assert "goal: " not in call("run", "--trials", "2").err
    assert call("goal", "under:3").code == 0
    said = " ".join(call("run", "--trials", "3").err.split())
    was = tw.BestUnder(3).describe()
    assert f"goal: {tw.Quality().describe()}, as tradewind.toml says (it was {was})" in said
    assert "goal: " not in call("run", "--trials", "4").err


def test_a_paused_run_gives_no_advice_for_python(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "tradewind.toml"
    path.write_text(path.read_text().replace("[limits]", '[limits]\ntimeout = "1s"'))
    assert call("run", "--trials", "2").code == 0
    assert call("pause", "--reason", "lunch").code == 0
    result = call("run", "--trials", "3")
    assert "it waits for `tradewind resume`" in result.err
    assert "the study is paused (lunch): the search waits" in caplog.text
    assert "study.resume()" not in caplog.text + result.err
    assert re.search(r"paused +for .*: lunch", call("status").out)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("objective_of_test", "module:function"),
        ("objective of test:objective", "module:function"),
        ("objective_of_tset:objective", "no module .*did you mean 'objective_of_test'"),
        ("objective_of_test:objectiv", "did you mean 'objective'"),
        ("objective_of_test:NUMBER", "must be a function"),
        ("raising:objective", r"raising.py, line 2: ValueError: no data"),
        ("leaving:objective", r"leaving.py, line 1: SystemExit"),
        ("unreadable:objective", r"unreadable.py, line 1: SyntaxError"),
        ("importing:objective", r"importing.py, line 1: ModuleNotFoundError: .*no_such_package"),
        ("os.path:join.nothing", "no 'nothing'"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_explained(
    folder: Path, function: str, message: str
) -> None:
    (folder / "objective_of_test.py").write_text(f"{FUNCTION}\nNUMBER = 3\n")
    (folder / "raising.py").write_text("\nraise ValueError('no data')\n")
    (folder / "leaving.py").write_text("raise SystemExit(3)\n")
    (folder / "unreadable.py").write_text("def (:\n")
    (folder / "importing.py").write_text("import no_such_package\n")
    file = write_run_file(folder, f'function = "{function}"')
    result = call("run", file)
    assert result.code == 2, result
    assert re.search(message, result.err), result
    assert "Traceback" not in result.err
    assert not (folder / "study.db").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ('"no-such-program"', "there is no program 'no-such-program'"),
        ('"./missing"', "there is no program './missing'"),
        ('"mine.sh"', "write ./mine.sh for the file here"),
        ('"./mine.sh"', "may not be run; make it executable: chmod \\+x ./mine.sh"),
        ('"./folder"', "the program './folder' is a folder"),
        ('["sh", "{y}"]', r"\{y\}, which is no parameter"),
        ('["sh", "{x}"]', "'k' does not reach the program"),
        ('["sh", "{"]', "a brace itself is written"),
        ('"sh -c \'open"', "No closing quotation"),
        ('["sh", "{result_file}"]', 'result="file"'),
    ],
)
def test_a_program_that_cannot_work_is_refused_before_a_trial(
    tmp_path: Path, command: str, message: str
) -> None:
    (tmp_path / "mine.sh").write_text("echo 1\n")
    (tmp_path / "folder").mkdir()
    result = call("run", write_run_file(tmp_path, f"command = {command}"))
    assert result.code == 2, result
    assert re.search(message, result.err), result
    assert not (tmp_path / "study.db").exists()


def test_a_dry_run_shows_the_exact_command_and_writes_nothing(tmp_path: Path) -> None:
    shown = ["printf", "%s\\n", "0.5"]
    file = write_run_file(
        tmp_path, f"command = {shown!r}".replace("'", '"').replace("\\\\n", "\\\\n")
    )
    data = call("run", file, "--dry-run", "--json").data
    assert data["command"][:3] == shown
    assert data["command"][3::2] == ["--x", "--k"]
    assert data["environment"]["TRADEWIND_TRIAL"] == "0"
    assert data["exists"] is False
    people = call("run", file, "--dry-run")
    assert "printf" in people.out
    assert "TRADEWIND_SEED=" in people.out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tradewind.toml"]
    done = subprocess.run(data["command"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0.5")


def test_a_dry_run_of_a_function_says_whether_the_study_continues(folder: Path) -> None:
    assert call("run").code == 0
    result = call("run", "--dry-run")
    assert result.code == 0
    assert "continues, 4 trials" in result.out
    assert "objective_of_test:objective" in result.out


def test_a_dry_run_says_limits_with_their_units(folder: Path) -> None:
    path = folder / "tradewind.toml"
    limits = 'trials = 4\ntimeout = "2h"\ntrial_memory = "500MB"\nmax_cost = 50\n'
    text = path.read_text().replace("trials = 4\n", limits)
    path.write_text(text.replace("seed = 0", 'seed = 0\ncost = "money"'))
    out = " ".join(call("run", "--dry-run").out.split())
    assert "trials=4, timeout=2 h, trial_memory=500 MB, max_cost=50 (money)" in out


def test_a_dry_run_says_the_goal_in_the_units_of_the_study(folder: Path) -> None:
    (folder / "objective_of_test.py").write_text("def objective(trial):\n    return 1.0\n")
    path = folder / "tradewind.toml"
    path.write_text(path.read_text().replace("seed = 0", 'seed = 0\ngoal = "under:3ms"'))
    assert call("run").code == 0
    assert "a cost of at most 3 ms" in call("run", "--dry-run").out


# ---- interrupted ----


def finished(folder: Path) -> int:
    try:
        return sum(t.finished for t in tw.load_study(folder / "study.db").trials)
    except tw.errors.StorageError:
        return 0


@pytest.mark.slow
def test_ctrl_c_finishes_the_running_trial_and_the_next_run_continues(folder: Path) -> None:
    (folder / "objective_of_test.py").write_text("import time\n" + FUNCTION.replace(
        "    x, k", "    time.sleep(0.2)\n    x, k"))  # fmt: skip
    process = start("run", "--trials", "20", folder=folder)
    eventually(lambda: finished(folder) >= 2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    done = finished(folder)
    assert not [t for t in tw.load_study(folder / "study.db").trials if t.state.value == "running"]
    again = execute("run", "--trials", str(done + 1), folder=folder)
    assert again.code == 0, again
    assert f"{done} trials done, 1 to go" in again.err
    assert tw.replay(tw.load_study(folder / "study.db")).identical


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_search_is_continued_and_its_program_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    write_run_file(tmp_path, SLOW, trials=2)
    process = start("run", folder=tmp_path)
    pids = written(tmp_path / "pids")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143}[number], err
    assert "Traceback" not in err
    eventually(lambda: not any(map(alive, pids)))
    write_run_file(tmp_path, SLOW.replace("sleep 600; ", ""), trials=2)
    assert execute("run", folder=tmp_path).code == 0
    assert finished(tmp_path) == 2


@pytest.mark.slow
def test_ctrl_c_twice_ends_the_program_at_once(tmp_path: Path) -> None:
    write_run_file(tmp_path, SLOW, trials=2)
    process = start("run", folder=tmp_path)
    pids = written(tmp_path / "pids")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "Ctrl-C again" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    eventually(lambda: not any(map(alive, pids)))
    assert [t.state.value for t in tw.load_study(tmp_path / "study.db").trials] == ["abandoned"]


# ---- steering ----


@pytest.mark.slow
def test_a_study_is_paused_steered_and_resumed_while_it_runs(tmp_path: Path) -> None:
    write_run_file(tmp_path, SLOW, trials=2)
    process = start("run", folder=tmp_path)
    (first, *_) = written(tmp_path / "pids")
    db = tmp_path / "study.db"
    assert call("pause", db, "--reason", "lunch").code == 0
    assert call("status", db, "--json").data["paused"]["reason"] == "lunch"
    assert "is paused already" in call("pause", db).out
    assert call("goal", "under:3", db).code == 0
    assert call("enqueue", db, "-p", "x=0.5", "-p", "k=3").code == 0
    assert call("stop", "0", db, "--reason", "too slow").code == 0
    eventually(lambda: not alive(first))
    time.sleep(0.5)  # nothing may start meanwhile
    assert len(tw.load_study(db).trials) == 1
    assert call("resume", db).code == 0
    eventually(lambda: len((tmp_path / "pids").read_text().split()) == 2)
    trial = tw.load_study(db).trials[1]
    assert trial.params == {"x": 0.5, "k": 3}
    process.kill()
    process.communicate(timeout=60)
    assert tw.load_study(db).goal == tw.BestUnder(3)


# ---- files ----


def test_a_study_moves_through_a_file(folder: Path) -> None:
    assert call("run").code == 0
    assert call("export").code == 0
    moved = call("import", "study.jsonl", "other.db", "--name", "moved")
    assert moved.code == 0, moved
    assert call("replay", "other.db", "--name", "moved").code == 0
    again = call("import", "study.jsonl", "other.db", "--name", "moved")
    assert again.code == 2
    assert "already" in again.err
    assert "choose another name with --name" in " ".join(again.err.split())


def test_a_study_with_any_name_is_exported_into_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_study(tmp_path / "study.db", "../a/b", 1)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert call("export", "../study.db").code == 0
    assert [p.name for p in Path().iterdir()] == ["..-a-b.jsonl"]


def test_a_damaged_file_is_repaired(folder: Path) -> None:
    assert call("run").code == 0
    assert call("export").code == 0
    file = folder / "study.jsonl"
    file.write_text("\n".join(file.read_text().splitlines()[:-2]) + "\n")
    broken = call("status", "study.jsonl")
    assert broken.code == 4
    assert "cut short" in broken.err
    repaired = call("repair", "study.jsonl", "--json")
    assert repaired.code == 0
    assert repaired.data["damaged"] is True
    assert call("status", "study.jsonl").code == 0
    assert call("repair", "study.db", "--json").data["damaged"] is False


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
def test_a_full_disk_is_said_in_a_sentence(folder: Path) -> None:
    assert call("run").code == 0
    for command in ("best", "--help", "--version"):
        with open("/dev/full", "w") as full:
            result = execute(command, folder=folder, stdout=full)
        assert (result.code, result.err) == (4, "error: No space left on device\n")


def test_closed_streams_hinder_nothing(folder: Path) -> None:
    assert call("run").code == 0
    for closed in ((1,), (2,), (0, 1, 2)):

        def close(closed: tuple[int, ...] = closed) -> None:
            for number in closed:
                os.close(number)

        result = execute("status", folder=folder, preexec_fn=close)
        assert (result.code, result.err) == (0, "")


@pytest.mark.slow
def test_an_export_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    make_study(tmp_path / "study.db", n_trials=300)
    limited = f"ulimit -f 64; {sys.executable} -m tradewind export study.db -o study.jsonl"
    done = subprocess.run(
        ["bash", "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4, done
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("study.jsonl*"))


@pytest.mark.slow
def test_the_dashboard_serves_until_it_is_told_to_end(folder: Path) -> None:
    pytest.importorskip("uvicorn")
    assert call("run").code == 0
    options = ("--no-open", "--port", "0", "--read-only", "--token", "t0ken-of-test")
    process = start("dashboard", *options, folder=folder, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    while "http://127.0.0.1" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert "Traceback" not in out
    assert process.returncode == 0


@pytest.mark.skipif(shutil.which("tradewind", path=os.path.dirname(sys.executable)) is None,
                    reason="needs the installed command")  # fmt: skip
def test_the_installed_command_is_the_module(tmp_path: Path) -> None:
    command = os.path.join(os.path.dirname(sys.executable), "tradewind")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tradewind {tw.__version__}\n"
    assert execute("--version", folder=tmp_path).out == done.stdout
