"""The commands that look: what they print for people and for programs, and that they only look."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from pathlib import Path

import pytest

import tests.studies as studies
import tradewind as tw
from tests.cli.shell import call, environment, execute, make_study, start

HOSTILE = "[red]bold[/red] \x1b[2J\u202e<b>\r\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reading") / "study.db"
    study = make_study(path, goal=tw.Tradeoff(0.01, 5.0))
    study.fail(study.ask(), "it broke")
    study.ask()
    study.enqueue({"x": 0.5, "k": 3})
    return path


READING = [
    ("status",),
    ("best",),
    ("best", "--goal", "under:3"),
    ("frontier",),
    ("frontier", "--tolerance", "1%"),
    ("explain",),
    ("explain", "--goal", "within:1%"),
    ("predict", "-p", "x=0.5", "-p", "k=3"),
    ("predict", "--like", "2", "-p", "x=0.1"),
    ("replay",),
    ("studies",),
]


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_an_answer_is_a_table_for_people_and_json_for_programs(
    command: tuple[str, ...], store: Path
) -> None:
    name, *rest = command
    people, programs = call(name, store, *rest), call(name, store, *rest, "--json")
    assert (people.code, programs.code) == (0, 0), people
    assert people.out.strip()
    assert people.err == programs.err == ""
    assert isinstance(programs.data, dict)


KEYS = {
    "status": "study created direction seed goal goal_in_words cost metric unit trials counts "
    "queued spent paused stopped best sentence running failures",
    "best": "study goal unit metric best sentence",
    "frontier": "study cost metric unit frontier",
    "explain": "study goal sentence choice best_quality has_best_quality gain costs configurations",
    "replay": "study verdict proposals counts different sentence",
    "studies": "storage studies",
}


@pytest.mark.parametrize(("command", "keys"), KEYS.items())
def test_the_keys_of_json_are_stable(command: str, keys: str, store: Path) -> None:
    assert list(call(command, store, "--json").data) == keys.split()


def test_status_says_what_stands_in_the_log(store: Path) -> None:
    data = call("status", store, "--json").data
    assert data["counts"] == {
        "waiting": 0,
        "running": 1,
        "finished": 12,
        "failed": 1,
        "abandoned": 0,
    }
    assert data["queued"] == 1
    assert data["goal"] == "tradeoff:0.01@5"
    (failure,) = data["failures"]
    assert failure == {"message": "it broke", "count": 1, "trials": [12], "error": "it broke"}
    assert [r["trial"] for r in data["running"]] == [13]
    study = tw.load_study(store)
    assert data["best"]["trial"] == study.best.number
    assert data["spent"] == pytest.approx(sum(t.cost for t in study.trials if t.cost))


def test_what_comes_closest_is_said_first_if_nothing_meets_the_goal(tmp_path: Path) -> None:
    make_study(tmp_path / "s.db", goal=tw.BestUnder(0.5, confidence=0.5))
    said = "No finished trial is within a cost of 0.5: trial 7 comes closest, with 0."
    for command in (["status"], ["watch", "--once"]):
        out = " ".join(call(*command, tmp_path / "s.db").out.split())
        best = out[out.index("best") :].removeprefix("best:").removeprefix("best").strip()
        assert best.startswith(said)
        assert "comes closest, with 0." in best
    assert " ".join(call("status", tmp_path / "s.db").out.split()).startswith(f"best {said}")
    data = call("status", tmp_path / "s.db", "--json").data
    assert data["best"] is None
    assert data["sentence"].startswith(said)
    asked = call("best", tmp_path / "s.db")
    assert asked.code == 3
    assert "comes closest" in asked.err


def test_the_headline_and_the_box_below_it_agree(store: Path) -> None:
    data = call("best", store, "--goal", "under:3", "--json").data
    headline, box = call("best", store, "--goal", "under:3").out.split("\n\n", 1)
    facts = dict(line.split(maxsplit=1) for line in box.splitlines() if line)
    assert f"{facts['value']} at a cost of {facts['cost']}" in " ".join(headline.split())
    status = " ".join(call("status", store).out.split())
    best = call("status", store, "--json").data["best"]
    assert f"with x={best['params']['x']:.4g}, k={best['params']['k']} study" in status
    assert float(facts["value"]) == pytest.approx(data["best"]["value"], rel=1e-3)


def test_a_running_trial_whose_driver_is_gone_is_called_lost(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study.db", n_trials=1)
    study.ask(lease=600.0)
    study.ask(lease=0.01)
    time.sleep(0.05)
    running = call("status", tmp_path / "study.db", "--json").data["running"]
    assert [one["lost"] for one in running] == [False, True]
    out = call("status", tmp_path / "study.db").out
    assert re.search(r"^ +2 +\d+:\d\d +lost ", out, re.MULTILINE)
    assert "lost: the driver gives no sign of life; the next search runs the trial again" in out


def test_an_overdue_trial_is_explained(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study.db")
    study.ask()
    time.sleep(0.1)  # the others took no time
    out = call("status", tmp_path / "study.db").out
    assert "overdue: it runs longer than trials like it have taken, and goes on" in out


def test_the_score_of_a_prediction_is_explained_or_left_out(store: Path) -> None:
    asked = ("predict", store, "-p", "x=0.5", "-p", "k=3")
    assert "(quality against cost, where a cost of 5 is worth 0.01)" in call(*asked).out
    for goal in ("quality", "under:0.1"):
        assert "score" not in call(*asked, "--goal", goal).out


def test_best_and_frontier_are_those_of_the_study(store: Path) -> None:
    study = tw.load_study(store)
    best = call("best", store, "--goal", "quality", "--json").data["best"]
    assert best["trial"] == study.best_for(tw.Quality()).number
    assert best["params"] == study.best_for(tw.Quality()).params
    listed = call("frontier", store, "--json").data["frontier"]
    assert [e["trial"] for e in listed] == [t.number for t in study.frontier()]


def test_a_number_that_is_not_finite_is_null(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s.db", n_trials=3, goal=tw.Quality())
    study.tell(study.ask(), 1.0, attributes={"deep": [{"x": 1.0}]})
    data = call("best", tmp_path / "s.db", "--json").data
    assert data["best"]["cost"] is None
    assert data["best"]["attributes"] == {"deep": [{"x": 1.0}]}


def test_tables_call_the_quality_what_the_user_calls_it(store: Path, tmp_path: Path) -> None:
    make_study(tmp_path / "named.db", metric="[b]F1[/b]", n_trials=6)
    for command in (("best",), ("frontier",), ("predict", "-p", "x=0.5", "-p", "k=3")):
        name, *rest = command
        for place, said in ((store, "value"), (tmp_path / "named.db", "[b]F1[/b]")):
            result = call(name, place, *rest)
            assert re.search(rf"(^| ){re.escape(said)} ", result.out, re.MULTILINE), result


def test_markup_and_control_characters_of_users_stay_text(tmp_path: Path) -> None:
    space = tw.Space({"[bold]p[/bold]\x1b]0;x\x07": tw.Categorical([HOSTILE, "[/]"])})
    study = tw.create_study(
        space, storage=tmp_path / "s.db", name=HOSTILE.strip(), seed=0, strategy="random"
    )
    for _ in range(6):
        study.tell(study.ask(), 0.5, cost=1.0)
    study.fail(study.ask(), HOSTILE)
    for command in ("status", "best", "frontier", "studies", "explain"):
        result = call(command, tmp_path / "s.db", env={"FORCE_COLOR": "1"})
        assert result.code == 0, result
        text = re.sub(r"\x1b\[[0-9;]*m", "", result.out)  # our own colours
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text), repr(text)
    assert "[red]bold[/red] \\x1b[2J\\u202e<b>" in call("status", tmp_path / "s.db").out
    assert "\\x1b" in call("watch", tmp_path / "s.db", "--once").out


def test_colour_is_for_terminals_that_want_it(store: Path) -> None:
    assert "\x1b" not in call("status", store).out
    assert "\x1b" in call("status", store, env={"FORCE_COLOR": "1"}).out
    assert "\x1b[1m" not in call("status", store, env={"NO_COLOR": "1"}).out


def test_tables_are_as_wide_as_the_terminal(store: Path) -> None:
    narrow = call("frontier", store, env={"COLUMNS": "40"}).out
    assert max(map(len, narrow.splitlines())) <= 40
    assert "…" not in narrow  # folded, never cut


@pytest.mark.slow
def test_an_encoding_without_our_letters_is_enough(store: Path, tmp_path: Path) -> None:
    env = environment(PYTHONIOENCODING="ascii")
    for command in (["status", store], ["frontier", store], ["watch", store, "--once"]):
        result = execute(*command, folder=tmp_path, env=env)
        assert result.code == 0, result
        assert result.out.isascii()


@pytest.mark.slow
def test_looking_leaves_no_trace(store: Path, tmp_path: Path) -> None:
    before = {p.name: p.read_bytes() for p in store.parent.iterdir() if "-" not in p.name}
    for command in ("status", "best", "replay"):
        assert execute(command, store, folder=tmp_path).code == 0
    after = {p.name: p.read_bytes() for p in store.parent.iterdir() if "-" not in p.name}
    assert after == before
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_found_by_variable_by_run_file_and_by_url(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("status", env={"TRADEWIND_STORAGE": str(store)}).code == 0
    assert call("status", f"sqlite:///{store}").code == 0
    (tmp_path / "tradewind.toml").write_text(f'[study]\nstorage = "{store}"\nname = "one"\n')
    assert call("status").code == 0
    assert call("status", "tradewind.toml").code == 0
    (tmp_path / "tradewind.toml").write_text(f'[study]\nstorage = "{store}"\nname = "two"\n')
    assert call("status").code == 3


def test_a_study_is_found_by_its_name(tmp_path: Path) -> None:
    for name in ("first", "second"):
        make_study(tmp_path / "s.db", name, 3)
    assert call("status", tmp_path / "s.db", "--name", "second", "--json").data["study"] == "second"


def test_an_exported_study_can_be_looked_at_and_not_steered(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.jsonl"
    assert call("export", store, "-o", file).code == 0
    assert call("best", file, "--json").data["best"] == call("best", store, "--json").data["best"]
    assert call("replay", file).code == 0
    refused = call("pause", file)
    assert refused.code == 2
    assert "read only" in refused.err


def test_a_strategy_of_ones_own_does_not_hinder_looking(tmp_path: Path) -> None:
    class Mine(studies.RandomSearch):
        pass

    make_study(tmp_path / "s.db", strategy=Mine())
    assert call("status", tmp_path / "s.db").code == 0
    assert call("best", tmp_path / "s.db", "--goal", "knee").code == 0
    assert call("pause", tmp_path / "s.db").code == 0


def test_replay_ends_with_1_if_a_proposal_is_different(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tradewind.study import replay

    monkeypatch.setattr(replay, "_compare", lambda *_: replay.Verdict.DIFFERENT)
    result = call("replay", store, "--json")
    assert result.code == 1
    assert result.data["verdict"] == "different"
    assert result.data["different"]


# ---- watching ----


def test_watch_prints_a_line_for_every_event_where_it_is_piped(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s.db", n_trials=2, metric="F1")
    process = start("watch", "s.db", "--every", "0.1", folder=tmp_path)
    assert process.stdout is not None
    lines = []
    while "2 finished" not in (line := process.stdout.readline()):
        lines.append(line)
    assert sum("finished: F1 " in line for line in lines) == 2
    study.tell(study.ask(), 0.5, cost=1.0)
    study.pause("lunch")
    lines = []
    while not ("paused" in "".join(lines) and "3 finished" in "".join(lines)):
        lines.append(process.stdout.readline())
    process.send_signal(2)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_watch_shows_a_picture_in_a_terminal_until_a_key(tmp_path: Path, key: bytes) -> None:
    make_study(tmp_path / "s.db", n_trials=5)
    terminal, theirs = pty.openpty()
    env = environment(TERM="xterm", LINES="40", COLUMNS="100")
    process = start(
        *("watch", "s.db"), folder=tmp_path, env=env, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True, preexec_fn=lambda: os.login_tty(theirs),
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    until = time.monotonic() + 60
    while b"q ends" not in seen and time.monotonic() < until:
        if select.select([terminal], [], [], 1.0)[0]:
            seen += os.read(terminal, 65536)
    assert b"5 finished" in seen
    os.write(terminal, key)
    while True:  # until the other end is closed
        try:
            if not os.read(terminal, 65536):
                break
        except OSError:
            break
    assert process.wait(60) == 0
    os.close(terminal)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(store: Path, tmp_path: Path) -> None:
    import subprocess

    for command in ("status", "frontier", "watch"):
        line = f"set -o pipefail; python -m tradewind {command} {store} | head -1"
        import sys

        done = subprocess.run(
            ["bash", "-c", line.replace("python", sys.executable)],
            capture_output=True,
            text=True,
            env=environment(),
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1
