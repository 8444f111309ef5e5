"""A short version of the campaign that `make chaos` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos import campaign, signals

pytestmark = pytest.mark.slow


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "SQLite":
        return str(tmp_path / "runs.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


def test_nothing_is_lost_when_drivers_and_workers_are_killed(storage: str, tmp_path: Path) -> None:
    done, found = campaign.killed(storage, tmp_path, kills=5, drivers=2, seed=0)
    assert found.good, found
    assert found.witnessed > 0
    assert done["orphan"] == 0


@pytest.mark.parametrize(("strategy", "each"), [("random", 25), ("auto", 6)])
def test_a_crowd_of_drivers_shares_a_study(
    storage: str, tmp_path: Path, strategy: str, each: int
) -> None:
    found = campaign.crowded(storage, tmp_path, strategy=strategy, drivers=4, each=each)
    assert found.good, found
    assert found.finished == found.trials == 4 * each


def test_clocks_that_jump_cost_time_but_no_trial(tmp_path: Path) -> None:
    found = campaign.crowded(
        str(tmp_path / "runs.db"), tmp_path, strategy="random", drivers=3, each=15, clock=True
    )
    assert found.good, found


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    full, found = campaign.full_disk(tmp_path, times=4)
    assert full == 4
    assert found.good, found


def test_a_torn_write_leaves_a_study_that_goes_on(tmp_path: Path) -> None:
    times, whole = campaign.torn(tmp_path, times=2, seed=0)
    assert times == whole


def test_every_search_ends_as_its_signals_ask(storage: str, tmp_path: Path) -> None:
    counts, found = signals.storm(storage, tmp_path, signals=60, seed=0)
    assert counts["unheard"] == counts["untidy"] == 0, counts
    assert counts["signals"] >= 60
    assert found.good, found
