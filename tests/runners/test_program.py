"""Programs as objectives: what they get, what they answer, and how they end."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tradewind as tw
from tests.runners.scenes import alive, eventually, run_script, written
from tests.runners.trials import trial
from tradewind.bounds import MESSAGE
from tradewind.runners.evaluate import evaluate
from tradewind.runners.program import Program
from tradewind.runners.program_command import Command
from tradewind.runners.program_output import Output, read_result
from tradewind.runners.run import Run
from tradewind.runners.runner import Failure
from tradewind.types import Outcome, Usage

PARAMS = {"C": 1e-05, "k": 3, "kernel": "a b", "flag": True, "nothing": None}


def sh(script: str, **options: Any) -> Program:
    """A program of the shell. Its braces are braces."""
    return Program(["sh", "-c", script.replace("{", "{{").replace("}", "}}")], **options)


def outcome(program: Program, **fields: Any) -> Outcome:
    result, _ = evaluate(program, trial(**fields))
    assert isinstance(result, Outcome), result
    return result


def failure(program: Program, **fields: Any) -> str:
    result, _ = evaluate(program, trial(**fields))
    assert isinstance(result, Failure), result
    return result.error


def filled(command: Any, params: dict[str, Any] = PARAMS, **options: Any) -> list[str]:
    call = Program(command, **options).invocation(Run(trial(params=params)), "/f")
    return list(call.arguments)


# ---- what the program gets ----


def test_parameters_are_appended_as_pairs_without_a_placeholder() -> None:
    assert filled("train --fast --seed={seed}") == [
        *("train", "--fast", "--seed=1000"),
        *("--C", "1e-05", "--k", "3", "--kernel", "a b", "--flag", "true"),
    ]


def test_placeholders_are_filled_in_without_a_shell() -> None:
    hostile = {"x": "$(touch /tmp/x); `id` | 'a\"", "y": "*"}
    assert filled(["p", "{x}", "--y={y}"], hostile) == ["p", hostile["x"], "--y=*"]
    assert outcome(Program(["printf", "%s\\n", "{x}"]), params={"x": "0.5"}).value == 0.5


def test_an_argument_without_text_is_left_out_with_its_option() -> None:
    params = {"x": 1}
    assert filled("p --degree {degree?} {x}", params) == ["p", "1"]
    assert filled("p --degree={degree?} {x}", params) == ["p", "1"]
    assert filled("p --verbose --degree={degree?} {x}", params) == ["p", "1"]
    assert filled("p a{degree?} {x}", params) == ["p", "1"]
    assert filled("{d?} {x}", params) == ["1"]


def test_braces_are_doubled() -> None:
    assert filled(["awk", "{{print {x}}}"], {"x": 2}) == ["awk", "{print 2}"]


@pytest.mark.parametrize("name", ["number", "seed", "data_seed", "train_size", "device", "params"])
def test_every_built_in_placeholder_has_a_text(name: str) -> None:
    assert filled(["p", f"{{{name}}}", "{params}"], {})[1]


def test_a_parameter_wins_over_a_built_in_name() -> None:
    assert filled(["p", "{seed}", "{params}"], {"seed": 5})[1] == "5"


def test_all_parameters_are_one_argument_as_json() -> None:
    assert json.loads(filled(["p", "{params}"])[1]) == PARAMS


def test_a_parameter_that_does_not_reach_the_program_is_an_error() -> None:
    with pytest.raises(ValueError, match="'k' does not reach the program"):
        filled(["p", "{C}"], {"C": 1.0, "k": 2})


def test_a_placeholder_that_is_no_parameter_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"\{kernl\}.*did you mean 'kernel'"):
        filled(["p", "{kernl}"])


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("", "must begin with a program"),
        ([], "must begin with a program"),
        ([""], "must begin with a program"),
        ("p 'open", "No closing quotation"),
        (["p", 3], "text or a list of texts"),
        (b"p", "text or a list of texts"),
        (["p", "{"], "placeholders"),
        (["p", "a}"], "placeholders"),
        (["p", "{}"], "placeholders"),
        (["p", "{result_file}"], 'result="file"'),
    ],
)
def test_a_wrong_command_is_refused_when_it_is_written(command: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        Program(command)


@pytest.mark.parametrize(
    "options", [{"params": "args"}, {"result": "json"}, {"cwd": 3}, {"env": {"A": 1}}, {"env": 3}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match="must be"):
        Program("p", **options)


def test_the_environment_has_the_trial_and_on_request_the_parameters(tmp_path: Path) -> None:
    show = sh(f"env > {tmp_path}/env; echo 1", params="environment", env={"MINE": "x"})
    outcome(show, params={**PARAMS, "max depth": 4}, number=3, train_size=0.4)
    lines = (tmp_path / "env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines if "=" in line)
    assert env["TRADEWIND_PARAM_C"] == "1e-05"
    assert env["TRADEWIND_PARAM_MAX_DEPTH"] == "4"
    assert "TRADEWIND_PARAM_NOTHING" not in env
    assert env["TRADEWIND_TRIAL"] == "3"
    assert env["TRADEWIND_SEED"] == "1003"
    assert env["TRADEWIND_TRAIN_SIZE"] == "0.4"
    assert env["TRADEWIND_DEVICE"] == "cpu"
    assert env["MINE"] == "x"
    assert env["PATH"] == os.environ["PATH"]


def test_two_parameters_cannot_share_a_variable() -> None:
    error = failure(sh("echo 1", params="environment"), params={"a b": 1, "a_b": 2})
    assert "TRADEWIND_PARAM_A_B stands for two" in error


def test_parameters_and_result_may_be_files() -> None:
    script = 'cat {params_file} > "$TRADEWIND_RESULT_FILE.copy"; cp {params_file} {result_file}'
    program = Program(["sh", "-c", script], params="file", result="file")
    found = outcome(program, params={"value": 0.5, "note": "é\ud800", "none": None})
    assert found.value == 0.5
    assert found.attributes == {"note": "é\ud800", "none": None}


def test_the_folder_of_the_files_is_removed(tmp_path: Path) -> None:
    program = Program(
        ["sh", "-c", f"dirname {{params_file}} > {tmp_path}/folder; echo 1"], params="file"
    )
    outcome(program)
    assert not Path((tmp_path / "folder").read_text().strip()).exists()


def test_a_program_runs_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("#!/bin/sh\ncat number\n")
    (tmp_path / "train").chmod(0o755)
    (tmp_path / "number").write_text("0.25")
    assert outcome(Program(["./train"], cwd=tmp_path)).value == 0.25


# ---- results ----


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("echo 0.5", 0.5),
        ("echo .5", 0.5),
        ("echo -1e-3", -0.001),
        ("printf 0.5", 0.5),
        ("echo '  7  '", 7.0),
        ("echo '{\"value\": 0.5}'", 0.5),
        ("echo 1; echo 2; echo done", 2.0),
        ("echo 9; echo '{\"value\": 0.5}'; echo epoch 3", 0.5),
        ("printf '10%%\\r50%%\\r0.5\\r\\n'", 0.5),
        ("echo '{\"folds\": [0.25, 0.75]}'", 0.5),
        ("printf '\\000\\377\\376 garbage\\n0.5\\n\\377\\n'", 0.5),
        ("head -c 100000 /dev/urandom; echo; echo 0.5", 0.5),
        ("head -c 20000000 /dev/zero; echo; echo 0.5", 0.5),
        ("yes | head -c 20000000; echo 0.5", 0.5),
        ("yes 1 | head -c 1000000; echo 0.5", 0.5),
        ("yes error | head -c 20000000 >&2; echo 0.5", 0.5),
    ],
)
def test_the_last_number_or_object_of_the_output_is_the_result(script: str, value: float) -> None:
    assert outcome(sh(script)).value == value


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("true", "it printed nothing"),
        ("echo '[1] 0.5'", r"last line was '\[1\] 0.5'"),
        ("echo done", "last line was 'done'"),
        ("echo oops >&2", "(?s)printed nothing.*oops"),
        ("echo nan", "value must be a finite number"),
        ("echo 0.5; echo -inf", "value must be a finite number"),
        ("echo '{\"value\": NaN}'", "numbers must be finite"),
        ("echo '{\"value\": 1e999}'", "numbers must be finite"),
        ("echo \"{'value': 0.5}\"", "double quotes"),
        ("echo '{'; echo '\"value\": 1'; echo '}'", "on one line"),
        ('echo \'{"value": 1, "value": 2}\'', "appears twice"),
        ("echo '{}'", "needs a value or folds"),
        ('echo \'{"value": "high"}\'', "value must be a finite number"),
        ('echo \'{"value": true, "cost": -1}\'', "cost"),
        ("yes '{' | head -c 6000 | tr -d '\\n'; echo", "must be a number or a JSON object"),
        ("exit 3", "^the program ended with exit code 3$"),
        ("echo 0.5; echo no memory >&2; exit 1", "^the program ended with exit code 1: no memory"),
        ("echo to stdout; exit 2", "exit code 2: to stdout"),
        ("kill -SEGV $$", "was killed by SIGSEGV"),
        ("kill -KILL $$", "was killed by SIGKILL, perhaps for memory"),
    ],
)
def test_anything_else_is_a_failed_trial_with_the_reason(script: str, error: str) -> None:
    found = failure(sh(script))
    assert re.search(error, found), found
    assert "Traceback" not in found


def test_an_error_shows_the_last_lines_only() -> None:
    found = failure(sh("seq 1000000 >&2; exit 1"))
    assert found.endswith("\n1000000")
    assert len(found) < 1000


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (Program("no-such-program"), "there is no such program"),
        (Program("./missing"), "there is no such program"),
        (Program("true", cwd="/nowhere"), "there is no /nowhere"),
        (Program("/etc/passwd"), "Permission denied"),
        (Program(["true", "a\0b"]), "null"),
    ],
)
def test_a_program_that_cannot_start_is_a_failed_trial(program: Program, error: str) -> None:
    assert error in failure(program)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"echo 1\n", "a script must begin with a line such as #!/bin/sh"),
        (b"#!/no/such/shell\n", "its first line is '#!/no/such/shell', and there is no such"),
        (b"#!/bin/sh\r\necho 1\r\n", r"its first line is '#!/bin/sh\r', and there is no such"),
    ],
)
def test_a_script_without_an_interpreter_is_explained(
    tmp_path: Path, text: bytes, error: str
) -> None:
    script = tmp_path / "script"
    script.write_bytes(text)
    script.chmod(0o755)
    assert error in failure(Program("./script", cwd=tmp_path))
    assert error in failure(Program(str(script)))


def test_an_argument_that_is_too_long_is_a_failed_trial() -> None:
    assert "cannot be started" in failure(Program("true {x}"), params={"x": "a" * 3_000_000})


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ("true", "has not written it"),
        ("mkdir $TRADEWIND_RESULT_FILE", "Is a directory|it is a folder|folder"),
        ("ln -s /etc/passwd $TRADEWIND_RESULT_FILE", "it is a link"),
        ("mkfifo $TRADEWIND_RESULT_FILE", "it is a FIFO"),
        ("echo nothing > $TRADEWIND_RESULT_FILE", "neither a JSON object nor a number"),
        ("head -c 9000000 /dev/zero > $TRADEWIND_RESULT_FILE", "up to 1048576 bytes"),
    ],
)
def test_a_result_file_may_be_anything(script: str, error: str) -> None:
    assert re.search(error, failure(sh(script, result="file")))


def test_the_peak_memory_is_that_of_the_program() -> None:
    perl = Program(["perl", "-e", "$x = 'a' x 3e8; print '0.5'"])
    found = outcome(perl, params={}, cost_name="memory")
    assert found.cost is not None
    assert 3e8 < found.cost < 2e9


def test_the_cpu_time_of_children_counts() -> None:
    burn = "perl -e '$x += $_ for 1 .. 8000000'"
    result, usage = evaluate(sh(f"{burn}; {burn} & wait; echo 1"), trial(cost_name="cpu"))
    assert isinstance(result, Outcome)
    assert usage.cpu is not None
    assert result.cost == usage.cpu > 0.05


def test_what_else_is_returned_is_kept() -> None:
    found = outcome(sh('echo \'{"value": 1, "cost": 2, "costs": {"money": 3}, "f1": [0.5]}\''))
    assert (found.cost, found.costs, found.attributes) == (2.0, {"money": 3.0}, {"f1": [0.5]})


# ---- reading output in any pieces ----


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_the_result_does_not_depend_on_how_the_output_is_cut(raw: bytes, sizes: list[int]) -> None:
    text = raw.replace(b"7", b"\n").replace(b"8", b'\n{"value": 1}').replace(b"9", b"\n0.5\n")
    whole, pieces = Output(), Output()
    whole.feed(text)
    at = 0
    while at < len(text):
        size = sizes[at % len(sizes)]
        pieces.feed(text[at : at + size])
        at += size
    whole.close()
    pieces.close()
    lines = [line.strip(b" \t") for line in text.replace(b"\r", b"\n").split(b"\n")]
    marks = (b"{", *(bytes([c]) for c in b"0123456789+-.nNiI"))
    assert pieces.candidate == whole.candidate
    assert whole.candidate is None or whole.candidate in [line.strip() for line in lines]
    if whole.candidate is None:
        assert not any(line.startswith(b"{") for line in lines if line.startswith(marks))


def test_a_line_without_an_end_takes_bounded_memory() -> None:
    output = Output()
    for _ in range(100):
        output.feed(b"{" + b"a" * 100_000)
    assert len(output._line) == MESSAGE + 1
    output.close()
    with pytest.raises(tw.errors.ProgramFailed, match="up to 1048576 bytes"):
        read_result(output.candidate or b"", "it")


# ---- how it ends ----

FAMILY = "sleep 600 & echo $! > {file}.part; setsid sleep 600 & sleep 0.2; echo $! >> {file}.part; "


def family(file: Path, then: str) -> Program:
    """A program with a child in its group and one in a session of its own."""
    script = (
        FAMILY.replace("{file}", str(file)) + f"echo $$ >> {file}.part; mv {file}.part {file}; "
    )
    return sh(script + then)


def test_what_a_program_leaves_behind_does_not_keep_its_trial(tmp_path: Path) -> None:
    assert outcome(sh(f"sleep 600 & echo $! > {tmp_path}/pid; echo 0.5")).value == 0.5
    (pid,) = written(tmp_path / "pid")
    eventually(lambda: not alive(pid))


@pytest.mark.parametrize("workers", [None, 1])
def test_a_timeout_ends_the_whole_family(tmp_path: Path, workers: int | None) -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0, strategy="random")
    limit = {"timeout": 3.0} if workers is None else {"trial_timeout": 2.0}
    program = family(tmp_path / "pids", "trap '' TERM; sleep 600; sleep 600")
    study.optimize(program, n_trials=1, n_workers=workers, show_progress=False, **limit)
    pids = written(tmp_path / "pids")
    assert len(pids) == 3
    eventually(lambda: not any(map(alive, pids)))
    assert not study.trials[0].finished


CODE = """
import sys, tradewind as tw
from tests.runners.test_program import family
from pathlib import Path
study = tw.create_study({{"x": (0.0, 1.0)}}, seed=0, strategy="random")
program = family(Path({file!r}), "sleep 600")
study.optimize(program, n_trials=1, n_workers={workers}, show_progress=False)
"""


@pytest.mark.parametrize("workers", [None, 1])
def test_ctrl_c_twice_ends_the_whole_family(tmp_path: Path, workers: int | None) -> None:
    file = tmp_path / "pids"
    code = CODE.format(file=str(file), workers=workers)
    process = run_script(tmp_path / "script.py", code, stderr=subprocess.PIPE)
    pids = written(file)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "Ctrl-C again" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    eventually(lambda: not any(map(alive, pids)))


def test_a_killed_driver_with_workers_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    process = run_script(tmp_path / "script.py", CODE.format(file=str(file), workers=1))
    pids = written(file)
    process.kill()
    process.communicate(timeout=60)
    eventually(lambda: not any(map(alive, pids)))


def test_an_abandoned_trial_ends_its_program(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0, strategy="random")

    def abandon() -> None:
        written(file)
        study.abandon(0, "enough")

    thread = threading.Thread(target=abandon)
    thread.start()
    program = sh(f"test -e {file} && echo 0.5 && exit; {FAMILY.replace('{file}', str(file))} "
                 f"mv {file}.part {file}; sleep 600")  # fmt: skip
    study.optimize(program, n_trials=1, n_workers=1, show_progress=False)
    thread.join()
    pids = written(file)
    eventually(lambda: not any(map(alive, pids)))


# ---- where it runs ----


def test_it_is_a_value_that_pickles() -> None:
    program = Program("p --x {x}", params="arguments", cwd=Path("/tmp"), env={"A": "1"})
    assert pickle.loads(pickle.dumps(program)) == program
    assert pickle.loads(cloudpickle.dumps(program)) == program
    assert hash(program) == hash(Program("p --x {x}", cwd="/tmp", env={}))
    with pytest.raises(AttributeError):
        program.command = ("q",)  # type: ignore[misc]


def test_it_runs_in_several_worker_processes() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0, strategy="random")
    study.optimize(
        tw.Program(["printf", "%s\\n", "{x}"]), n_trials=6, n_workers=2, show_progress=False
    )
    assert [t.value for t in study.trials] == [t.params["x"] for t in study.trials]


def test_it_runs_in_a_thread() -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(evaluate(sh("echo 0.5"), trial())[0]))
    thread.start()
    thread.join()
    assert found[0].value == 0.5


C_TRAINER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    double x = 0, y = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--x")) x = atof(argv[i + 1]);
        if (!strcmp(argv[i], "--y")) y = atof(argv[i + 1]);
    }
    printf("training\n{\"value\": %.17g, \"cost\": %.17g}\n", x - y * y, 1.0 + x);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_a_trainer_in_c_is_tuned(tmp_path: Path) -> None:
    (tmp_path / "trainer.c").write_text(C_TRAINER)
    subprocess.run(["gcc", "-o", "trainer", "trainer.c"], cwd=tmp_path, check=True)
    study = tw.create_study({"x": (0.0, 1.0), "y": (-1.0, 1.0)}, seed=0, strategy="random")
    study.optimize(Program(["./trainer"], cwd=tmp_path), n_trials=5, show_progress=False)
    for t in study.trials:
        assert t.value == t.params["x"] - t.params["y"] ** 2  # no digit was lost on the way
        assert t.cost == 1.0 + t.params["x"]


# ---- checks against a space ----


def test_a_command_is_checked_against_the_parameters_of_a_space() -> None:
    command = Command.parse(["p", "{C}", "{degree?}"], as_arguments=True)
    command.check(["C", "degree"], sometimes={"degree"})
    with pytest.raises(ValueError, match=r"no parameter \(did you mean 'C1'"):
        command.check(["C1", "degree"], sometimes=set())
    with pytest.raises(ValueError, match=r"write \{C\?\}"):
        command.check(["C", "degree"], sometimes={"C"})


def test_a_usage_is_measured_for_a_failed_program_too() -> None:
    result, usage = evaluate(sh("exit 1"), trial())
    assert isinstance(result, Failure)
    assert isinstance(usage, Usage)
    assert result.seconds == usage.wall


def test_the_python_of_the_tests_is_a_program_too() -> None:
    program = Program([sys.executable, "-c", "import sys; print(len(sys.argv))", "--"])
    assert outcome(program, params={"a": 1}).value == 4.0
