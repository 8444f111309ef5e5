"""Predicting, planning and insight, asked of a study."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import MIXED, create, quick, score
from tradewind.errors import ConfigError, NothingFinished
from tradewind.plain import write_json
from tradewind.study.forecast import Forecast
from tradewind.study.predictions import Interval
from tradewind.types import Usage

SIZED = tw.Space({"x": tw.Float(0, 1), "size": tw.TrainSize([0.25, 0.5, 1.0])})


def sized(n: int = 20, **options: Any) -> tw.Study:
    """Value x + size, cost 8·size, almost without noise."""
    study = create(SIZED, **options)
    study.optimize(
        lambda t: {"value": t.params["x"] + t.train_size, "cost": 8.0 * t.train_size},
        n_trials=n,
        show_progress=False,
    )
    return study


# ---- predict ----


@pytest.mark.parametrize("make", [create, quick], ids=["random", "bayes"])
def test_any_study_predicts_quality_and_cost(make: Any) -> None:
    study = make()
    study.optimize(score, n_trials=25, show_progress=False)
    params = {"x": 0.4, "k": 5}
    (found,) = study.predict(params)
    assert found.params == params
    assert found.train_size == 1.0
    assert found.value == pytest.approx(0.04, abs=0.02)
    assert found.cost == pytest.approx(3.0, rel=0.1)
    assert found.value_low < found.value < found.value_high
    assert found.cost_low < found.cost < found.cost_high
    assert found.score == found.value
    assert re.fullmatch(r"\S+ \(\S+ to \S+\) at a cost of \S+ \(\S+ to \S+\)", str(found))


def test_one_configuration_a_trial_or_a_list_of_both() -> None:
    study = sized()
    one, trial = {"x": 0.5, "size": 0.5}, study.trials[3]
    together, apart = study.predict([one, trial]), [*study.predict(one), *study.predict(trial)]
    assert [it.params for it in together] == [it.params for it in apart]
    assert [it.value for it in together] == pytest.approx([it.value for it in apart])
    assert study.predict([]) == []
    assert study.predict(study.recommend())[0].params == study.recommend().params


@pytest.mark.parametrize(
    ("ask", "header", "line"),
    [
        (
            lambda study: study.predict([{"x": 0.5}, {"x": 0.7}]),
            r" +accuracy +cost +training size  parameters",
            r"1\.\d+ \(1\.\d+ to 1\.\d+\) +[78]\S*( \(.*\))? in money +100%  x=0\.5, size=1",
        ),
        (
            lambda study: study.importance(),
            r"parameter +share of quality  share of cost",
            r" +\w+ +\d+% \(\d+% to \d+%\)  \d+% \(\d+% to \d+%\)",
        ),
        (
            lambda study: study.partial_dependence("x", points=2),
            r"x +accuracy  cost",
            r"0 +0\.\d+ \(0\.\d+ to 0\.\d+\) +3\.\d+( \(.*\))? in money",
        ),
    ],
    ids=["predict", "importance", "partial_dependence"],
)
def test_an_answer_is_printed_as_a_table(ask: Any, header: str, line: str) -> None:
    answer = ask(sized(12, cost="money", metric="accuracy"))
    assert repr(answer) == str(answer)
    first, *lines = str(answer).splitlines()
    assert re.fullmatch(header, first), first
    assert re.fullmatch(line, lines[0]), lines[0]
    assert len(lines) == 2
    if isinstance(answer, list):
        assert len(str(answer[:1]).splitlines()) == 2
        assert len(repr(answer[0]).splitlines()) == 1
        assert answer == list(answer)


def test_a_wider_level_gives_wider_intervals() -> None:
    study = sized(10)
    narrow, wide = (study.predict({"x": 0.5}, level=level)[0] for level in (0.5, 0.99))
    assert narrow.value == wide.value
    assert wide.value_low < narrow.value_low < narrow.value_high < wide.value_high


def test_a_loss_is_predicted_as_a_loss() -> None:
    gain, loss = sized(15), create(SIZED, direction="minimize")
    for trial in gain.trials:
        loss.add(trial.params, -trial.value, cost=trial.cost)  # type: ignore[operator]
    (up,), (down,) = (study.predict({"x": 0.5}) for study in (gain, loss))
    assert (down.value, down.value_low, down.value_high) == pytest.approx(
        (-up.value, -up.value_high, -up.value_low)
    )
    assert down.score == pytest.approx(up.score)


def test_the_score_is_that_of_the_goal() -> None:
    study = sized(goal=tw.Tradeoff(alpha=1.0, reference=8.0))
    (found,) = study.predict({"x": 0.5, "size": 1.0})
    assert found.score == pytest.approx(found.value - found.cost / 8.0)
    (cheap,) = study.predict({"x": 0.5, "size": 1.0}, goal=tw.BestUnder(4.0))
    assert cheap.score is None  # beyond the limit, a score only puts trials in order
    (kept,) = study.predict({"x": 0.5, "size": 0.25}, goal=tw.BestUnder(4.0, confidence=0.5))
    assert kept.score == kept.value


def test_a_missing_size_is_the_largest_and_a_given_one_replaces_all() -> None:
    study = sized()
    assert study.predict({"x": 0.5})[0].train_size == 1.0
    (small,) = study.predict({"x": 0.5, "size": 1.0}, train_size=0.25)
    assert (small.train_size, small.params["size"]) == (0.25, 0.25)
    assert small.cost == pytest.approx(2.0, rel=0.2)
    with pytest.raises(ConfigError, match=r"cannot predict .* 'size' must be one of"):
        study.predict({"x": 0.5}, train_size=0.3)


def test_without_a_size_parameter_the_trials_of_one_size_are_learned_from() -> None:
    study = create()
    for i, x in enumerate(np.linspace(0, 1, 16)):
        small = i % 2 == 0
        study.add({"x": x, "k": 3}, x - 5.0 * small, train_size=0.5 if small else 1.0)
    full, half = (study.predict({"x": 0.5, "k": 3}, train_size=s)[0] for s in (None, 0.5))
    assert (full.train_size, half.train_size) == (1.0, 0.5)
    assert (full.value, half.value) == pytest.approx((0.5, -4.5), abs=0.2)
    assert full.cost is full.cost_low is full.cost_high is None
    with pytest.raises(NothingFinished, match="of the same training size to learn from"):
        study.predict({"x": 0.5, "k": 3}, train_size=0.3)


def test_predictions_extrapolate_the_cost_to_all_data() -> None:
    space = tw.Space({"x": tw.Float(0, 1), "size": tw.TrainSize([0.1, 0.2, 0.3, 1.0])})
    study = create(space)
    rng = np.random.default_rng(0)
    for i, x in enumerate(rng.random(18)):
        size = [0.1, 0.2, 0.3][i % 3]
        study.add({"x": x, "size": size}, x, cost=(1 + x) * size * np.exp(0.05 * rng.normal()))
    (found,) = study.predict({"x": 0.5, "size": 1.0})
    assert found.cost == pytest.approx(1.5, rel=0.3)
    assert found.cost_low < 1.5 < found.cost_high


@pytest.mark.parametrize(
    ("configs", "error", "message"),
    [
        ({"x": 2.0}, ConfigError, r"cannot predict .* must be from 0.0 to 1.0, but got 2.0"),
        ({}, ConfigError, r"'x' is active and must be given"),
        (5, TypeError, "configs must be a configuration, a trial, or a list of them, but got 5"),
        ([5], TypeError, "configs must be configurations or trials, but one of them is 5"),
        ("x", TypeError, "configs must be a configuration"),
    ],
)
def test_what_cannot_be_predicted(configs: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sized(6).predict(configs)


def test_a_few_trials_are_needed() -> None:
    study = create(SIZED)
    with pytest.raises(NothingFinished, match="no trial of this study has finished"):
        study.predict({"x": 0.5})
    study.add({"x": 0.5, "size": 1.0}, 1.0)
    for ask in (study.importance, lambda: study.predict({"x": 0.5})):
        with pytest.raises(NothingFinished, match=r"at least 5 finished trials .* there are 1"):
            ask()
    with pytest.raises(ValueError, match=r"level must be a number in \(0, 1\), but got 90"):
        study.predict({"x": 0.5}, level=90)


def test_asking_changes_nothing() -> None:
    study = sized(8)
    before = study._session.state.position
    study.predict({"x": 0.5})
    study.forecast(5)
    study.importance()
    study.partial_dependence("x")
    assert study._session.read_state().position == before


# ---- forecast ----


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((3.1, 2.9, 3.4), "3.1 (2.9 to 3.4)"),
        ((1.23, 1.21, 1.24), "1.23 (1.21 to 1.24)"),
        ((11.01, 10.98, 11.04), "11.01 (10.98 to 11.04)"),
        ((15.0, 14.9999, 15.0001), "15"),
        ((0.0, 0.0, 0.0), "0"),
    ],
)
def test_an_interval_has_as_many_digits_as_tell_its_ends_apart(
    ends: tuple[float, float, float], text: str
) -> None:
    assert str(Interval(*ends)) == text


def about(value: float) -> Interval:
    """What is certain, up to rounding."""
    return Interval(*(pytest.approx(value),) * 3)


def timed(n: int, **options: Any) -> tw.Study:
    """Trials that took 10 seconds and cost 2."""
    source, study = create(), create(**options)
    source.optimize(score, n_trials=n, show_progress=False)
    study.add_trials(replace(t, cost=2.0, usage=Usage(wall=10.0)) for t in source.trials)
    return study


def test_before_a_trial_has_finished_nothing_is_known() -> None:
    study = create()
    study.fail(study.ask(), "broken")
    found = study.forecast(10)
    assert found == Forecast(10, 1, 0, None, None, None, None)
    assert str(found) == "Nothing is known about durations and costs yet: no trial has finished."


@pytest.mark.parametrize(("workers", "seconds"), [(1, 100.0), (4, 30.0), (20, 10.0)])
def test_the_rest_takes_as_long_as_the_busiest_worker(workers: int, seconds: float) -> None:
    found = timed(6).forecast(10, n_workers=workers)
    assert found.duration == about(seconds)
    assert found.cost == about(20.0)
    assert found.next_duration is not None
    assert found.next_duration.value == pytest.approx(10.0, rel=1e-3)
    assert found.next_cost is not None
    assert found.next_cost.value == pytest.approx(2.0, rel=1e-3)


def test_a_forecast_is_a_sentence() -> None:
    text = str(replace(timed(6).forecast(10), next_duration=None, next_cost=None))
    took, spent = "1.7 min", "20 s"
    assert text == f"10 more trials will take about {took} and cost about {spent}."
    assert str(timed(6).forecast()).startswith("The next trial will take about 10 s (")


def test_the_next_trial_is_unknown_until_a_few_have_finished() -> None:
    found = timed(3).forecast(2)
    assert found.next_duration is None
    assert found.duration == about(20.0)


def test_the_next_trial_of_a_stage_is_like_those_of_the_stage() -> None:
    study = create(strategy=tw.recipes.wang2015(fractions=(0.25, 1.0), trials=8, k=3))
    expected = []
    for n in (6, 8):
        study.optimize(lambda t: {"value": t.params["x"], "cost": 8.0 * t.train_size}, n_trials=n)
        found = study.forecast().next_cost
        assert found is not None
        expected.append(found.value)
    assert expected == pytest.approx([2.0, 8.0], rel=0.01)


def test_the_forecast_of_the_rest_holds_what_then_happens() -> None:
    inside = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        study = create()
        costs = np.exp(rng.standard_normal(40))
        for params, cost in zip(
            study.space.decode(study.space.sample(20, rng=rng)), costs, strict=False
        ):
            study.add(params, 0.5, cost=float(cost))
        cost = study.forecast(20).cost
        assert cost is not None
        inside.append(cost.low <= costs[20:].sum() <= cost.high)
    assert np.mean(inside) >= 0.8


def test_a_trial_with_folds_costs_all_its_trainings() -> None:
    study = create()

    def objective(trial: Any) -> dict[str, Any]:
        return {"folds": [0.5, 0.6, 0.7], "cost": 2.0}

    study.optimize(objective, n_trials=4, show_progress=False)
    found = study.forecast(2).cost
    assert found is not None
    assert found.value == pytest.approx(2 * sum(t.cost * t.trainings for t in study.trials) / 4)  # type: ignore[operator]


def test_costs_without_durations_are_forecast_alone() -> None:
    study = create()
    for x in np.linspace(0, 1, 8):
        study.add({"x": x, "k": 3}, x, cost=3.0)
    found = study.forecast(2)
    assert found.duration is None or found.duration.high < 1.0  # adding them took no time
    assert found.cost == about(6.0)


def test_peak_memory_is_forecast_for_the_next_trial_but_not_added_up() -> None:
    study = create(cost="memory")
    for x in np.linspace(0, 1, 8):
        study.add({"x": x, "k": 3}, x, cost=1.9e8)
    found = study.forecast(10)
    assert found.cost is None
    assert str(found).startswith("The next trial will cost about 190 MB (")


def test_a_cost_with_a_name_is_forecast_by_its_name() -> None:
    study = create(cost="money")
    study.add({"x": 0.5, "k": 3}, 0.5, cost=3.0)
    found = study.forecast(1)
    assert str(found).endswith("cost about 3 in money.")


# ---- insight ----


def mixed(n: int = 60) -> tw.Study:
    def objective(trial: Any) -> dict[str, float]:
        p = trial.params
        return {
            "value": 2.0 * p["momentum"] + 0.2 * p.get("degree", 0),
            "cost": p["C"] ** 0.2 * trial.train_size,
        }

    study = create(MIXED)
    study.optimize(objective, n_trials=n, show_progress=False)
    return study


def test_importance_says_what_moves_quality_and_what_moves_cost() -> None:
    found = {it.name: it for it in mixed().importance()}
    assert next(iter(found)) == "momentum"
    assert set(found) == set(MIXED.names)
    assert re.fullmatch(
        r"momentum: quality \d+% \(.*\), cost 0% \(0% to \d%\)", str(found["momentum"])
    )
    quality = {name: it.quality.total.value for name, it in found.items()}
    assert quality["kernel"] > 0.1  # it switches the degree on
    assert max(quality[name] for name in ("C", "width", "train_size")) < 0.05
    cost = {name: it.cost.total.value for name, it in found.items() if it.cost is not None}
    assert cost["C"] + cost["train_size"] == pytest.approx(1.0, abs=0.05)
    for it in found.values():
        for share in (it.quality.alone, it.quality.total):
            assert 0.0 <= share.low <= share.value <= share.high <= 1.0
    assert write_json([asdict(it) for it in found.values()])  # plain data


def test_partial_dependence_follows_the_function() -> None:
    study = mixed()
    found = study.partial_dependence("momentum", points=5)
    assert found.values == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    rise = found.value[-1].value - found.value[0].value
    assert rise == pytest.approx(2.0, abs=0.1)
    size = study.partial_dependence("train_size")
    assert size.values == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert size.cost is not None
    assert size.cost[-1].value / size.cost[0].value == pytest.approx(5.0, rel=0.1)
    degree = study.partial_dependence("degree")
    assert degree.values == [2, 3, 4, 5]
    assert degree.value[-1].value - degree.value[0].value == pytest.approx(0.6, abs=0.15)
    for it in (*found.value, *degree.value):
        assert it.low <= it.value <= it.high
    assert write_json(asdict(found))


def test_a_loss_depends_on_a_parameter_in_its_own_sign() -> None:
    study = create(direction="minimize")
    for x in np.linspace(0, 1, 12):
        study.add({"x": x, "k": 1 + round(100 * x) % 9}, 5.0 * x)
    found = study.partial_dependence("x", points=2)
    assert found.cost is None
    assert [it.value for it in found.value] == pytest.approx([0.0, 5.0], abs=0.3)
    assert study.importance()[0].cost is None


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown parameter 'y': this space has"):
        sized(6).partial_dependence("y")
    with pytest.raises(ValueError, match="points must be a whole number ≥ 2, but got 1"):
        sized(6).partial_dependence("x", points=1)


def test_nothing_moves_results_that_are_all_equal() -> None:
    study = tw.create_study(tw.Space({"x": tw.Float(0, 1), "y": tw.Float(0, 1)}), seed=0)
    for x in np.linspace(0, 1, 8):
        study.add({"x": float(x), "y": 1.0 - float(x) ** 2}, value=0.5, cost=1.0 + float(x))
    for it in study.importance():
        assert (it.quality.total.value, it.quality.total.low, it.quality.total.high) == (0, 0, 1)
        assert it.cost is not None
    assert max(it.cost.total.value for it in study.importance() if it.cost) > 0.3
