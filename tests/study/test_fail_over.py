"""A drill: PostgreSQL crashes, and a standby server that lags behind takes over."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import tradewind as tw
from tests import postgres
from tests.postgres import Server, Standby
from tests.studies import quick, score
from tradewind.errors import LogDiverged, StorageError


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of its own for this test, because it crashes."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = postgres.programs()
    if programs is None or not (programs / "pg_basebackup").is_file():
        pytest.skip("PostgreSQL's server programs are not installed")
    server = Server(programs)
    try:
        yield server
    finally:
        server.remove()


def results(study: tw.Study) -> list[tuple[dict[str, Any], float | None]]:
    return [(dict(t.params), t.value) for t in study.trials if t.finished]


@pytest.mark.slow
def test_a_promoted_standby_that_lags_behind_is_noticed_and_nothing_is_lost(server: Server) -> None:
    url = server.url()
    study = quick(storage=url)
    study.optimize(score, n_trials=5, show_progress=False)
    standby = Standby(server)
    standby.catch_up()
    standby.lag()
    study.optimize(score, n_trials=3, show_progress=False)
    before, asked = results(study), study.ask()

    standby.take_over()
    for action in (study.ask, lambda: study.tell(asked, 0.5, cost=1.0), lambda: study.trials):
        with pytest.raises(LogDiverged, match="a standby promoted"):
            action()
    assert len(results(tw.load_study(url))) == 5
    assert [trial.number for trial in study.restore()] == [5, 6, 7, 8]
    before.append((dict(asked.params), 0.5))  # what could not be told was kept
    assert results(study) == results(tw.load_study(url)) == before

    standby = Standby(server)  # and once more, in the middle of a search
    standby.catch_up()
    standby.lag()

    calls = itertools.count()

    def crash_at_the_third(trial: Any) -> dict[str, float]:
        if next(calls) == 2:
            standby.take_over()
        return score(trial)

    with pytest.raises(StorageError, match="has been replaced while it was open"):
        study.optimize(crash_at_the_third, n_trials=6, show_progress=False)
    study.restore()
    assert results(study)[:9] == before
    assert len(results(study)) >= 11
    study.optimize(score, n_trials=2, show_progress=False)
    again = tw.load_study(url)
    assert results(again) == results(study)
    assert tw.replay(again).identical
