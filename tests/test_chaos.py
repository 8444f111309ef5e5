"""A short version of the campaign that `make chaos` runs, and tests of the campaign itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

import tradewind as tw
from tests.chaos.__main__ import report
from tests.chaos.campaign import KINDS, Campaign, Round, plan
from tests.chaos.crew import Crew
from tests.chaos.drive import Task
from tests.chaos.findings import examine
from tests.chaos.site import Site
from tests.chaos.work import Witness, Work, start_daemon, study_at
from tests.studies import environment

slow = pytest.mark.slow
TARGETS = {  # what is needed for a release
    "kills": 2_000,
    "signals": 10_000,
    "cuts": 500,
    "flips": 4_000,
    "restarts": 50,
    "promotions": 5,
    "crowds": 4 * 64,
}
SMALL = {
    "kills": 12,
    "signals": 40,
    "freezes": 2,
    "cuts": 5,
    "restarts": 2,
    "promotions": 1,
    "rollbacks": 1,
    "flips": 30,
    "disks": 4,
    "tears": 2,
    "clocks": 15,
    "crowds": 8,
    "models": 3,
}


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    if request.param == "SQLite":
        return Site(tmp_path, str(tmp_path / "runs.db"))
    server = request.getfixturevalue("postgres_server")
    return Site(tmp_path, server.url(), server)


# ---- the faults ----


@slow
@pytest.mark.parametrize(
    ("kind", "site"),
    [(name, store) for name, kind in KINDS.items() for store in kind.rounds],
    indirect=["site"],
)
def test_nothing_is_lost_whatever_breaks(kind: str, site: Site) -> None:
    found = KINDS[kind].play(site, size=SMALL[kind], seed=0)
    assert found.faults.total() >= SMALL[kind]
    assert found.wrong == 0, found


# ---- the plan ----


def test_the_plan_has_what_a_release_needs() -> None:
    rounds = plan(seed=1)
    sizes: Counter[str] = Counter()
    for round in rounds:
        sizes[round.kind] += round.size
    assert {kind: sizes[kind] for kind in TARGETS} == TARGETS
    assert sizes.keys() == KINDS.keys() == SMALL.keys()
    assert [round.number for round in rounds] == list(range(len(rounds)))
    assert {round.kind for round in rounds[: len(rounds) // 3]} == KINDS.keys()


def test_the_seed_of_a_round_follows_from_the_campaign_and_its_number() -> None:
    assert plan(seed=1) == plan(seed=1)
    seeds = {round.seed for seed in (1, 2) for round in plan(seed)}
    assert len(seeds) == 2 * len(plan(1))


# ---- the campaign ----


@slow
def test_a_campaign_goes_on_with_the_rounds_that_are_missing(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, seed=1)
    first, second, *_ = campaign.missing(["disks"])
    campaign.play(first)
    with open(tmp_path / "rounds.jsonl", "a") as file:
        file.write('{"round": {"number": 3')  # it died while it wrote this
    continued = Campaign(tmp_path)
    assert continued.missing(["disks"])[0] == second
    continued.play(second)
    assert [played.round for played in continued.played()] == [first, second]
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    with pytest.raises(ValueError, match="has the seed 1, but got 2"):
        Campaign(tmp_path, seed=2)


@slow
def test_a_round_that_went_wrong_keeps_its_folder_and_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = Campaign(tmp_path, seed=1)
    assert report(campaign, [*KINDS]) == 0
    campaign.play(Round(900, "disks", "no such store", 1, 1))
    assert "Traceback" in (tmp_path / "round-900" / "round.log").read_text()
    assert report(campaign, [*KINDS]) == 1
    assert f"see {tmp_path / 'round-900'}" in capsys.readouterr().out


@slow
def test_a_campaign_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.chaos", "--state", str(tmp_path), "--kinds", "clocks"]
    campaign = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    try:
        while not [*tmp_path.glob("round-*/*.witness")]:
            assert campaign.poll() is None
            time.sleep(0.05)
        below = psutil.Process(campaign.pid).children(recursive=True)
    finally:
        campaign.kill()
        campaign.wait()
    assert len(below) > 4
    assert psutil.wait_procs(below, timeout=60)[1] == []


# ---- its checks: each can fail ----


def test_a_trial_that_is_not_what_its_witness_saw_is_found(tmp_path: Path) -> None:
    study, witness = study_at(None), Witness(tmp_path / "0.witness")
    study.optimize(Work(seconds=0.0), n_trials=3, callbacks=[witness], show_progress=False)
    assert examine(study, tmp_path).wrong == 0
    (tmp_path / "1.witness").write_text("[7, 0.5]\n[0, 0.25]\n[0, 0.")
    found = examine(study, tmp_path)
    assert (found.lost, found.wrong, found.witnessed) == (2, 2, 5)
    study.tell(study.ask(), 77.0)
    assert examine(study, tmp_path).changed == 1
    study.add(study.trials[0].params, study.trials[0].value)
    assert examine(study, tmp_path).doubled == 1


def test_what_a_dead_driver_has_left_is_run(tmp_path: Path) -> None:
    study = study_at(tmp_path / "runs.db")
    study.ask(lease=0.3)
    found = examine(tw.load_study(tmp_path / "runs.db"), tmp_path)
    assert (found.retried, found.finished, found.wrong) == (1, found.trials, 0)


def test_a_process_that_stays_is_found_and_ended(tmp_path: Path) -> None:
    start_daemon(tmp_path)
    while not [*tmp_path.glob("*.daemon")]:
        time.sleep(0.01)
    crew = Crew(Task("unused", tmp_path))
    assert crew.left(within=0.5) == 1
    assert crew.left(within=5.0) == 0
