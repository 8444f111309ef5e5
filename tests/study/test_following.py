"""Following a study that others work on."""

from __future__ import annotations

from pathlib import Path

import tradewind as tw
from tradewind.study.following import Follower

SPACE = tw.Space({"x": tw.Float(0.0, 1.0)})


def two_views(tmp_path: Path, **options: object) -> tuple[tw.Study, Follower]:
    """A study, and a follower of the same study in another session."""
    storage = str(tmp_path / "runs.db")
    study = tw.create_study(SPACE, seed=0, storage=storage, **options)  # type: ignore[arg-type]
    return study, Follower(tw.load_study(storage))


def test_a_look_finds_what_has_changed_since_the_last_one(tmp_path: Path) -> None:
    study, follower = two_views(tmp_path)
    first, second = study.ask(), study.ask()
    assert [t.number for t in follower.look().changed] == [0, 1]
    study.tell(second, 0.5, cost=1.0)
    assert [(t.number, t.value) for t in follower.look().changed] == [(1, 0.5)]
    assert follower.look().changed == []
    study.abandon(first)
    follower.look()
    assert {k: n for k, n in follower.counts().items() if n} == {"finished": 1, "abandoned": 1}


def test_waiting_and_running_trials_are_known(tmp_path: Path) -> None:
    study, follower = two_views(tmp_path)
    trial = study.ask()
    follower.look()
    assert ([t.trial for t in follower.running()], follower.waiting()) == ([0], [])
    study.requeue(trial)
    follower.look()
    assert (follower.running(), follower.waiting()) == ([], [0])


def test_the_end_of_a_trial_is_expected_once_when_it_starts(tmp_path: Path) -> None:
    study, follower = two_views(tmp_path)
    study._session.clock = lambda: 100.0
    first = study.ask()
    study._session.clock = lambda: 130.0
    study.tell(first, 0.5, cost=30.0)
    study._session.clock = lambda: 200.0
    trial = study.ask()
    follower.look()
    (before,) = follower.running()
    assert before.expected_end == 230.0
    study.add({"x": 0.5}, 0.5, cost=1e6)  # later results do not move it
    follower.look()
    assert follower.running() == [before]
    follower.predict({trial.number: 60.0})
    assert follower.running()[0].expected_end == 260.0
    assert follower.unpredicted() == []


def test_another_goal_is_followed_but_never_written(tmp_path: Path) -> None:
    study, follower = two_views(tmp_path)
    study.tell(study.ask(), 0.5, cost=30.0)
    follower.look()
    study.change_goal(tw.BestUnder(40.0))
    news = follower.look()
    assert news.may_choose
    assert follower.study.goal == tw.BestUnder(40.0)
    assert not follower.look().may_choose
    assert follower.state.position == news.position
