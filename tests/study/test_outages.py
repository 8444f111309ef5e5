"""Searches that outlast outages of a real server, which is stopped, restarted or frozen under
them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tradewind as tw
from tests.postgres import Server
from tests.proxy import Proxy
from tests.studies import create, events_of, score, states
from tradewind.engine.lookout import Lookout
from tradewind.errors import StorageError
from tradewind.log.events import Requeued
from tradewind.types import State

Faults = dict[str, Callable[[Server, Proxy], None]]


@pytest.fixture
def server(postgres_server: Server) -> Iterator[Server]:
    yield postgres_server
    postgres_server.thaw()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with Proxy(server.folder) as proxy:
        yield proxy


def restart(server: Server, proxy: Proxy) -> None:
    server.stop()
    time.sleep(0.5)
    server.start()


def freeze(server: Server, proxy: Proxy) -> None:
    server.freeze()
    time.sleep(2.5)
    server.thaw()


def silence(server: Server, proxy: Proxy) -> None:
    proxy.freeze()
    time.sleep(2.5)
    proxy.thaw()


def cut(server: Server, proxy: Proxy) -> None:
    for _ in range(50):
        proxy.cut_after(300)
        time.sleep(0.02)


FAULTS: Faults = {"restarted": restart, "frozen": freeze, "silent": silence, "cut": cut}


def slow_score(trial: Any) -> Any:
    time.sleep(0.05)
    return score(trial)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_search_with_workers_outlasts_an_outage(
    server: Server, proxy: Proxy, postgres_url: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is shorter than the outage. No trial is lost, doubled or run again."""
    monkeypatch.setattr("tradewind.log.postgres_database.SILENCE", 1.0)
    study = create(storage=proxy.url(postgres_url))
    disturb = threading.Timer(0.5, FAULTS[fault], (server, proxy))
    disturb.start()
    study.optimize(slow_score, 40, n_workers=2, lease=1.0, patience="1m", show_progress=False)
    disturb.join()
    assert states(study) == ["finished"] * 40
    assert [t.value for t in study.trials] == [score(t)["value"] for t in study.trials]
    assert [e for e in events_of(study) if isinstance(e, Requeued)] == []
    assert tw.replay(study).identical


@pytest.mark.slow
def test_results_of_a_search_that_ran_out_of_patience_are_recorded_by_the_next(
    server: Server, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    study = create(storage=f"{postgres_url}&patience=0.2")
    gate = tmp_path / "gate"

    def objective(trial: Any) -> Any:
        (tmp_path / f"{trial.number}.started").touch()
        while not gate.exists():
            time.sleep(0.01)
        return score(trial)

    def end() -> None:
        while len(list(tmp_path.glob("*.started"))) < 2:
            time.sleep(0.01)
        time.sleep(0.3)  # for the trial that is proposed ahead
        server.stop()
        gate.touch()

    stop = threading.Thread(target=end)
    stop.start()
    with pytest.raises(StorageError, match="wait in") as raised:
        study.optimize(objective, 9, n_workers=2, patience="2s", show_progress=False)
    stop.join()
    server.start()
    again = tw.load_study(postgres_url)
    running = [t.number for t in again.trials if t.state is State.RUNNING]
    assert len(running) == 2  # both had a result
    again.optimize(score, 4, show_progress=False)
    assert str(tmp_path) in str(raised.value)
    assert [again.trials[n].state for n in running] == [State.FINISHED] * 2
    assert all(t.value == score(t)["value"] for t in again.trials if t.finished)
    assert [e for e in events_of(again) if isinstance(e, Requeued) and e.number in running] == []
    assert list((tmp_path / "tradewind").iterdir()) == []


@pytest.mark.slow
def test_the_first_driver_back_does_not_take_the_trials_of_others_for_lost(
    server: Server, postgres_url: str
) -> None:
    mine, yours = create(storage=postgres_url), tw.load_study(postgres_url)
    trial = yours.ask(lease=2.0)  # somebody who renews the lease only after the outage
    server.freeze()
    thaw = threading.Timer(3.0, server.thaw)
    thaw.start()
    assert mine.ask(lease=2.0).number == 1
    thaw.join()
    yours.beat(trial, 60.0)
    assert mine.ask(lease=2.0).number == 2
    assert yours.tell(trial, 1.0, cost=1.0).retries == 0


@pytest.mark.slow
def test_a_driver_that_does_not_come_back_after_an_outage_loses_its_trials(
    server: Server, postgres_url: str
) -> None:
    mine, yours = create(storage=postgres_url), tw.load_study(postgres_url)
    trial = yours.ask(lease=4.0)
    mine._session.ask(lease=1.0, keep=True)
    with Lookout(mine._session, 1.0):  # this notices the outage
        server.freeze()
        time.sleep(5.0)
        server.thaw()
        asked = [mine.ask() for _ in range(2)]
        assert trial.number not in [t.number for t in asked]
        while trial.number not in [t.number for t in asked]:
            time.sleep(0.1)
            asked.append(mine.ask())
            assert len(asked) < 100
    assert asked[-1].retries == 1
