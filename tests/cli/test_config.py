"""Run files: what they say, and what is wrong with them, in which line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.cli.shell import call
from tradewind.cli.config import find_line, read_run_file
from tradewind.cli.exits import UsageFault
from tradewind.errors import TradewindError

WHOLE = """
[study]
name = "a name"
storage = "sub/study.db"
goal = { type = "tradeoff", alpha = 0.1, reference = "1min" }
direction = "minimize"
cost = "cpu"
metric = "log loss"
seed = 7
strategy = "random"

[objective]
command = ["./train", "--depth", "{depth?}", "{params}"]
params = "arguments"
result = "output"
cwd = "."
env = { OMP_NUM_THREADS = "1" }

[space]
kernel = ["linear", "poly"]
C = [1e-4, 1e3, "log"]
depth = { type = "int", low = 2, high = 5, when = { kernel = "poly" } }

[[forbid]]
kernel = "linear"
C = { at_least = 10.0 }

[limits]
trials = 20
timeout = "1h30m"
max_cost = 100
trial_timeout = 60
trial_memory = "2GB"
max_retries = 2

[workers]
count = 4
gpus = [0, 1]
slots_per_gpu = 2
"""

SPACE = '[space]\nx = { type = "float", low = 0, high = 1 }\n'
OBJECTIVE = '[objective]\nfunction = "train:objective"\n'


def read(folder: Path, text: str) -> object:
    path = folder / "tradewind.toml"
    path.write_text(text)
    return read_run_file(path)


def test_a_list_of_two_numbers_is_pointed_out(tmp_path: Path) -> None:
    file = tmp_path / "tradewind.toml"
    lists = (
        'a = [1, 12]\nb = [0, 0.5]\nc = [1, 2, 3]\nd = [3, 1]\ne = ["x", "y"]\nf = [false, true]'
    )
    file.write_text(f"{OBJECTIVE}[space]\n{lists}\n")
    first, second = read_run_file(file).doubts
    assert first == (
        "a is a choice between 1 and 12; for all between them, write "
        'a = { type = "int", low = 1, high = 12 }'
    )
    assert 'b = { type = "float", low = 0, high = 0.5 }' in second


def test_every_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tradewind.toml"
    path.write_text(WHOLE)
    settings = read_run_file(path)
    assert settings.name == "a name"
    assert settings.storage == str(tmp_path / "sub/study.db")
    assert settings.goal == tw.Tradeoff(0.1, 60)
    assert settings.study["metric"] == "log loss"
    assert settings.space == tw.Space(
        {
            "kernel": tw.Categorical(["linear", "poly"]),
            "C": tw.Float(1e-4, 1e3, log=True),
            "depth": tw.Int(2, 5, when={"kernel": "poly"}),
        },
        forbid=[{"kernel": "linear", "C": tw.at_least(10)}],
    )
    assert settings.limits == {
        "trials": 20,
        "timeout": 5400.0,
        "max_cost": 100.0,
        "trial_timeout": 60.0,
        "trial_memory": 2e9,
        "max_retries": 2,
    }
    assert settings.workers == {"count": 4, "gpus": [0, 1], "slots_per_gpu": 2}


@pytest.mark.parametrize(
    ("storage", "found"),
    [
        ("study.db", "{folder}/study.db"),
        ("/tmp/study.db", "/tmp/study.db"),
        ("sqlite:///study.db?synchronous=full", "sqlite:///{folder}/study.db?synchronous=full"),
        ("sqlite:////tmp/study.db", "sqlite:////tmp/study.db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
    ],
)
def test_a_relative_storage_is_beside_the_file(tmp_path: Path, storage: str, found: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(f'[study]\nstorage = "{storage}"\n{OBJECTIVE}{SPACE}')
    assert read_run_file(path).storage == found.format(folder=tmp_path)


WRONG = [
    ("", r"the objective is a function"),
    (OBJECTIVE, r"\[space\] must have the parameters"),
    (SPACE, r"the objective is a function"),
    (f'{OBJECTIVE}command = "x"\n{SPACE}', r"line 1: .*command and function"),
    (
        f"{OBJECTIVE}{SPACE}[limits]\ntrails = 3\n",
        r"line 6: \[limits\] has no key 'trails' \(did you mean 'trials'",
    ),
    (
        f"{OBJECTIVE}{SPACE}[limit]\ntrials = 3\n",
        r"line 5: there is no 'limit' \(did you mean 'limits'",
    ),
    (
        f"trials = 3\n{OBJECTIVE}{SPACE}",
        r"line 1: there is no 'trials' \(it belongs into \[limits\]",
    ),
    (
        f"{OBJECTIVE}{SPACE}[limits]\ntrials = 0\n",
        r"line 6: trials must be a whole number ≥ 1, but got 0",
    ),
    (f'{OBJECTIVE}{SPACE}[limits]\ntrials = "3"\n', r"line 6: trials must be a whole number"),
    (f"{OBJECTIVE}{SPACE}[limits]\ntrials = 3.5\n", r"line 6: trials must be a whole number"),
    (f"{OBJECTIVE}{SPACE}[limits]\ntrials = true\n", r"line 6: trials must be a whole number"),
    (f'{OBJECTIVE}{SPACE}[limits]\ntimeout = "soon"\n', r"line 6: .*must be a number of seconds"),
    (f"{OBJECTIVE}{SPACE}[limits]\ntimeout = -1\n", r"line 6: timeout must be a number > 0"),
    (f"{OBJECTIVE}{SPACE}[limits]\nmax_cost = nan\n", r"line 6: max_cost must be a number > 0"),
    (f"{OBJECTIVE}{SPACE}[limits]\ntrial_memory = 'lots'\n", r"line 6: "),
    (
        f"{OBJECTIVE}{SPACE}[workers]\ncount = 1_000_000\n",
        r"line 6: count must be a whole number from 1 to 4096",
    ),
    (f"{OBJECTIVE}{SPACE}[workers]\ngpus = 1.5\n", r"line 6: gpus must be how many"),
    (f"{OBJECTIVE}{SPACE}[study]\ngoal = 'quick'\n", r"line 6: a goal is quality"),
    (f"{OBJECTIVE}{SPACE}[study]\ngoal = 3\n", r"line 6: a goal is quality"),
    (
        f"{OBJECTIVE}{SPACE}[study]\ndirection = 'max'\n",
        r"line 6: direction must be one of 'maximize', 'minimize'",
    ),
    (f"{OBJECTIVE}{SPACE}[study]\nname = 1979-05-27\n", r"line 6: name must be text"),
    (f"{OBJECTIVE}{SPACE}[study]\nmetric = 3\n", r"line 6: metric must name the quality"),
    (f"{OBJECTIVE}{SPACE}[study]\nseed = -1\n", r"line 6: seed must be a whole number ≥ 0"),
    (f"{OBJECTIVE}{SPACE}[study]\nstrategy = 'bayes'\n", r"line 6: strategy must be one of"),
    (f"study = 3\n{OBJECTIVE}{SPACE}", r"line 1: \[study\] must be a table"),
    ("[objective]\ncommand = [1, 2]\n" + SPACE, r"line 2: command must be text or a list"),
    ('[objective]\ncommand = "x"\nparams = "args"\n' + SPACE, r"line 3: params must be one of"),
    (
        '[objective]\ncommand = "x"\nenv = { A = 1 }\n' + SPACE,
        r"line 3: env must be a table of texts",
    ),
    (
        f'{OBJECTIVE}[space]\nx = {{ type = "float", low = 3, high = 1 }}\n',
        r"line 4: .*'x'.*low < high",
    ),
    (f'{OBJECTIVE}[space.x]\ntype = "flaot"\n', r"line 3: .*'x'.*'type' must be one of"),
    (
        f'{OBJECTIVE}[space]\nx = {{ type = "int", lo = 1, high = 3 }}\n',
        r"line 4: .*needs the key 'low'",
    ),
    (f"{OBJECTIVE}[space]\nx = 3\n", r"line 4: .*'x'.*a parameter is written"),
    (f"{OBJECTIVE}{SPACE}[[forbid]]\ny = 1\n", r"forbid.*'y'"),
    (f"{OBJECTIVE}{SPACE}x = 4\n", r"cannot be read as TOML.*line 5"),
    ("a = [" * 3000 + "\n", r"a line may have|nested too deeply"),
    ("a = " + "[\n" * 3000 + "\n", r"nested too deeply|cannot be read"),
    (".".join("a" * 300) + " = 1\n", r"line 1: a line may have"),
    ("a = 1\n" * 60_000, r"may have \d+ bytes"),
    ("x = " + "9" * 3999 + "\n", r"."),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_run_file_is_answered_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UsageFault, match=message):
        read(tmp_path, text)
    result = call("run", tmp_path / "tradewind.toml")
    assert result.code == 2
    assert "Traceback" not in result.err


def test_a_byte_order_mark_is_no_part_of_a_run_file(tmp_path: Path) -> None:
    text = "[objective]\nfunction = 'm:f'\n[space]\nx = [1, 2, 3]\n"
    (tmp_path / "run.toml").write_text(text, encoding="utf-8-sig")
    assert list(read_run_file(tmp_path / "run.toml").space) == ["x"]


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageFault, match="not UTF-8"):
        read_run_file(path)


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "name",
        "storage",
        "goal",
        "seed",
        "function",
        "command",
        "env",
        "trials",
        "timeout",
        "gpus",
        "x",
    ]
)
TABLES = st.sampled_from(["study", "objective", "limits", "workers", "space", "forbid"])


def toml(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return (
            '"' + "".join(f"\\U{ord(c):08X}" for c in value if not 0xD800 <= ord(c) < 0xE000) + '"'
        )
    return str(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(TABLES, VALUES | st.dictionaries(KEYS, VALUES, max_size=3), max_size=4))
def test_a_run_file_with_any_values_is_read_or_refused_in_a_sentence(
    tmp_path: Path, data: dict[str, object]
) -> None:
    with suppress(TradewindError):
        read(tmp_path, "".join(f"{name} = {toml(value)}\n" for name, value in data.items()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_a_run_file_of_any_bytes_is_refused_in_a_sentence(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(raw)
    with pytest.raises(TradewindError):
        read_run_file(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(WHOLE) - 1), st.characters(codec="ascii"))
def test_a_run_file_with_one_wrong_letter_is_read_or_refused_in_a_sentence(
    tmp_path: Path, at: int, letter: str
) -> None:
    with suppress(TradewindError):
        read(tmp_path, WHOLE[:at] + letter + WHOLE[at + 1 :])


def test_a_key_is_found_in_its_own_table() -> None:
    text = "[a]\nx = 1\n[b]\nx = 2\n[b.c]\ny = 3\n"
    assert find_line(text, ("b", "x")) == 4
    assert find_line(text, ("b", "c", "y")) == 6
    assert find_line(text, ("b", "c")) == 5
    assert find_line(text, ("nothing",)) is None
