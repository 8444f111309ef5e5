"""Training sizes and races in studies: what is refused, and what may win."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import tradewind as tw
from tests.studies import configure, plain_lines
from tradewind.errors import ConfigError, FormatError, NothingFinished
from tradewind.types import Outcome


class Odd(tw.strategies.RandomSearch):
    """Proposes a training size that there is not."""

    def propose(self, *args: Any, **options: Any) -> Any:
        return replace(super().propose(*args, **options), train_size=7.0)


def test_a_size_that_no_trial_can_have_is_refused_before_it_is_written(tmp_path: Any) -> None:
    where = {"storage": f"{tmp_path}/s.db", "name": "s"}
    study = tw.create_study({"x": (0.0, 1.0)}, strategy=Odd(), seed=0, **where)
    with pytest.raises(ConfigError, match=r"a training size in \(0, 1\]"):
        study.ask()
    again = tw.load_study(**where, strategy="random")
    assert again.ask().train_size == 1.0


def test_an_imported_queue_with_an_impossible_size_is_refused(tmp_path: Any) -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.enqueue({"x": 0.5}, train_size=0.5)
    study.export(tmp_path / "study.jsonl")
    created, enqueued = plain_lines(tmp_path / "study.jsonl")
    lines = [json.dumps(line) for line in (created, enqueued | {"train_size": 5})]
    (tmp_path / "study.jsonl").write_text("\n".join(lines))
    with pytest.raises(FormatError, match="cannot have happened"):
        tw.import_study(tmp_path / "study.jsonl")


def test_the_best_under_a_goal_without_costs_is_one_that_may_win() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, strategy=tw.strategies.Staged(), seed=0)
    study.add({"x": 0.1}, 0.9, cost=1.0, train_size=0.3)
    study.add({"x": 0.2}, 0.5, train_size=1.0)
    assert study.best_for(tw.Tradeoff(0.5, 1.0)).number == 1


def test_a_trial_that_was_raced_is_neither_best_nor_recommended_nor_efficient() -> None:
    space = tw.Space({"x": tw.Float(0, 1)})
    study = tw.create_study(space, seed=0)
    whole = study.add({"x": 0.1}, folds=[0.5, 0.6, 0.7], cost=9.0)
    raced = study.ask()
    study._session.finish(raced.number, Outcome(0.9, 1.0, (0.9, 0.9), raced=True, share=0.5))
    assert study.best.number == study.recommend().trial.number == whole.number  # type: ignore[union-attr]
    assert [t.number for t in study.frontier()] == [whole.number]
    assert study.to_frame()["raced"].tolist() == [False, True]


def test_folds_without_costs_leave_a_trade_off_without_a_rival() -> None:
    study = tw.create_study({"x": (0.0, 1.0)}, seed=0)
    study.tell(study.ask(), folds=[0.5, 0.6])
    assert study.ask().rival is not None
    configure(study._session, goal=tw.Tradeoff(0.3), strategy=study.strategy)
    trial = study.ask()
    assert trial.rival is None
    with pytest.raises(NothingFinished, match="needs costs"):
        study.recommend()
