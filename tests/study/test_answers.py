"""In words, and is it real: `explain`, `compare`, and `best` where results are noisy."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import create, told
from tradewind.errors import NothingFinished, TrialError
from tradewind.study.words import Scale, cost_amount, number, rounded
from tradewind.types import Usage

LINE = tw.Space({"x": tw.Float(0, 1)})
SIZED = tw.Space({"x": tw.Float(0, 1), "size": tw.TrainSize([0.4, 1.0])})
HARDER = np.array([0.02, -0.01, 0.0, 0.01, -0.02])  # folds differ in difficulty


def folds(mean: float, *noise: float) -> list[float]:
    return (mean + HARDER + np.array(noise or (0.0,) * 5)).tolist()


def added(*results: dict[str, Any], space: tw.Space = LINE, **options: Any) -> tw.Study:
    """A study with these results, at x = 0, 0.1, 0.2 and so on unless they say otherwise."""
    study = create(space, **options)
    for i, result in enumerate(results):
        params = {"x": result.pop("x", i / 10)}
        if space is SIZED:
            params["size"] = result.pop("size", 1.0)
        study.add(params, **result)
    return study


# ---- explain ----


def test_a_choice_is_explained_in_one_sentence() -> None:
    study = added(
        {"value": 0.912, "cost": 12.8},
        {"value": 0.9, "cost": 2.0, "size": 0.4},
        {"value": 0.5, "cost": 1.0},
        space=SIZED,
        goal=tw.Tradeoff(alpha=0.1, reference=10.0),
    )
    explanation = study.explain()
    assert str(explanation) == (
        "Trial 1 is the best trade-off: 0.9 at a cost of 2, on 40% of the data. "
        "Trial 0, which has the best value, scores 1.2 points higher and costs 6.4 times as much, "
        "on all of the data."
    )
    assert (explanation.choice.number, explanation.best_quality.number) == (1, 0)
    assert explanation.comparison.gain == pytest.approx(-0.012)
    assert explanation.comparison.cost_ratio == pytest.approx(2.0 / 12.8)
    assert str(study.explain(tw.Quality())) == (
        "Trial 0 has the best value: 0.912 at a cost of 12.8."
    )


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        (tw.Quality(), "Trial 3 has the best accuracy: 0.9 at a cost of 8."),
        (
            tw.BestUnder(5.0),
            "Trial 2 is the best within a cost of 5: accuracy 0.89 at a cost of 4. Without the "
            "limit, trial 3 scores 1 point higher and costs 2 times as much.",
        ),
        (
            tw.BestUnder(9.0),
            "Trial 3 is the best within a cost of 9: accuracy 0.9 at a cost of 8. It is the best "
            "without the limit, too.",
        ),
        (
            tw.CheapestWithin(0.02),
            "Trial 2 is the cheapest within 2 points of the best accuracy: 0.89 at a cost of 4. "
            "Trial 3, which has the best accuracy, scores 1 point higher and costs 2 times as "
            "much.",
        ),
        (
            tw.Tradeoff(0.01, 100.0),
            "Trial 3 is the best trade-off: accuracy 0.9 at a cost of 8. It also has the best "
            "accuracy.",
        ),
        (
            tw.Knee(),
            "Trial 1 is where the frontier bends: accuracy 0.85 at a cost of 2. Trial 3, which has "
            "the best accuracy, scores 5 points higher and costs 4 times as much.",
        ),
        (
            tw.Frontier(),
            "4 trials are efficient, from trial 0, accuracy 0.5 at a cost of 1, to trial 3, "
            "accuracy 0.9 at a cost of 8. Trial 1 is where the frontier bends: accuracy 0.85 at a "
            "cost of 2.",
        ),
    ],
    ids=repr,
)
def test_the_first_sentence_answers_what_the_goal_asks(goal: tw.Goal, said: str) -> None:
    study = told((0.5, 1.0), (0.85, 2.0), (0.89, 4.0), (0.9, 8.0), metric="accuracy")
    assert str(study.explain(goal)) == said


def test_a_sentence_that_goes_by_belief_shows_belief_and_result() -> None:
    rng, study = np.random.default_rng(0), create(LINE)
    for x in np.linspace(0, 1, 12):
        noise = 0.05 * rng.normal(size=5)
        study.add({"x": x}, folds=(0.8 - (x - 0.5) ** 2 + noise).tolist(), cost=1.0 + x)
    said = str(study.explain(tw.BestUnder(1.3)))
    assert re.search(r": 0\.\d+ \(believed 0\.\d+\) at", said)
    assert re.search(r"trial \d+, believed to be the best \(0\.\d+\), scores", said)


def test_what_comes_closest_is_said_with_units_if_nothing_meets_the_goal() -> None:
    study = told((0.5, 3.0), (0.9, 2.3), metric="accuracy")
    measured = [replace(trial, usage=Usage(9.0)) for trial in study.trials]
    study = create(metric="accuracy")
    study.add_trials(measured)
    said = r"no finished trial is within 2 s: trial 1 comes closest, with accuracy 0\.9 in 2\.3 s$"
    asked = [study.best_for, study.best_result_for, study.explain]
    for ask in (*asked, lambda goal: study.leaderboard(goal=goal)):
        with pytest.raises(tw.errors.NothingQualifies, match=said):
            ask(tw.BestUnder(2.0))


def test_a_better_trial_that_was_below_the_limit_by_luck_is_named() -> None:
    study = create(LINE)
    for x, cost in ((0.0, 0.9), (0.0, 1.1), (0.2, 1.7), (0.5, 3.0), (0.51, 2.95), (0.9, 4.6)):
        study.add({"x": x}, x, cost=cost)
    said = str(study.explain(tw.BestUnder(3.0)))
    assert said.startswith("Trial 2 is the best within a cost of 3: 0.2 at a cost of 1.7. ")
    why = r" Trial 4, 0\.51 at a cost of 3, is not chosen: .* probability of only \d\d%\. Without"
    assert re.search(why, said), said
    assert "not chosen" not in str(study.explain(tw.BestUnder(3.0, confidence=0.5)))


def test_the_uncertainty_is_said_where_folds_give_one() -> None:
    study = added(
        {"folds": folds(0.912, 0.01, 0, 0, 0, -0.01), "cost": 12.8},
        {"folds": folds(0.90, 0, 0.01, 0, -0.01, 0), "cost": 2.0},
    )
    comparison = study.explain(tw.Tradeoff(alpha=0.1, reference=10.0)).comparison
    assert comparison.known_from == "folds"
    assert "1.2 ± 1.4 points higher" in str(study.explain(tw.Tradeoff(alpha=0.1, reference=10.0)))


def test_equal_repeats_are_said_without_a_margin() -> None:
    study = added(
        *({"x": 0.1, "value": 0.8, "cost": cost} for cost in (1.0, 1.1)),
        *({"x": 0.5, "value": 0.9, "cost": cost} for cost in (3.0, 3.1)),
        *({"x": 0.7, "value": 0.9, "cost": cost} for cost in (4.0, 4.1)),
    )
    assert "Without the limit, trial 2 scores 10 points higher and costs 2.9 times as" in str(
        study.explain(tw.BestUnder(1.5))
    )
    assert str(study.compare(2, 4)) == (
        "trial 4 scores the same as trial 2 in all of these runs; it costs 1.3 times as much"
    )


def test_losses_and_other_values_are_said_in_their_own_numbers() -> None:
    study = added({"value": 0.5, "cost": 4.0}, {"value": 0.531, "cost": 1.0}, direction="minimize")
    words = str(study.explain(tw.Tradeoff(alpha=1.0, reference=4.0)))
    assert words == (
        "Trial 1 is the best trade-off: a loss of 0.531 at a cost of 1. Trial 0, which has the "
        "lowest loss, has a loss 0.031 lower and costs 4 times as much."
    )
    rewards = added({"value": 250.0, "cost": 4.0}, {"value": 130.0, "cost": 1.0})
    words = str(rewards.explain(tw.Tradeoff(alpha=1000.0, reference=4.0)))
    assert words.endswith(
        "Trial 0, which has the best value, scores 120 higher and costs 4 times as much."
    )


def test_what_is_not_known_is_not_said() -> None:
    assert str(told((0.5, None)).explain()) == (
        "Trial 0 is the only configuration that has finished: 0.5."
    )
    assert str(told((0.5, None), (0.7, None)).explain()) == ("Trial 1 has the best value: 0.7.")
    with pytest.raises(NothingFinished):
        create().explain()


def test_a_raced_trial_is_said_to_be_an_estimate() -> None:
    study = create(LINE)
    study.add({"x": 0.1}, 0.5, folds=[0.5, 0.5], raced=True)
    assert "an estimate: it was stopped after some folds" in str(study.explain())


@pytest.mark.parametrize(
    ("cost", "other", "words"),
    [
        (1.0, 1.01, "costs the same"),
        (0.0, 0.0, "costs the same"),
        (0.0, 2.0, "costs nothing where the other costs 2"),
        (2.0, 0.0, "costs 2 where the other costs nothing"),
        (1.0, 1.04, "costs 4% less"),
        (1.04, 1.0, "costs 4% more"),
        (1.0, 1.1, "costs 1.1 times less"),
        (1.0, 2.5, "costs 2.5 times less"),
        (250.0, 1.0, "costs 250 times as much"),
    ],
)
def test_costs_are_compared_in_words(cost: float, other: float, words: str) -> None:
    study = added({"value": 0.5, "cost": other}, {"value": 0.6, "cost": cost})
    assert str(study.compare(0, 1)).endswith(f"; it {words}")


def test_measured_costs_are_times_and_named_ones_keep_their_name() -> None:
    timed = create(LINE)
    timed.optimize(lambda trial: trial.params["x"], n_trials=2, show_progress=False)
    assert isinstance(timed.trials[0].usage, Usage)
    words = str(timed.compare(0, 1))
    assert any(w in words for w in (" faster", " as long", " longer", "costs the same"))
    paid = create(LINE, cost="money")
    for cost in (1.0, 4.0):
        paid.tell(paid.ask(), cost, cost=cost)
    assert str(paid.compare(0, 1)).endswith("it costs 4 times as much (money)")
    assert str(paid.explain()).endswith("at a cost of 4 (money).")


# ---- compare ----


def test_folds_are_compared_in_pairs() -> None:
    study = added(
        {"folds": folds(0.90, 0.001, 0, 0, 0, -0.001)},
        {"folds": folds(0.92, 0, 0.001, 0, -0.001, 0)},
        {"folds": folds(0.9205, 0.001, 0, 0.001, -0.001, -0.001)},
    )
    clear = study.compare(0, 1)
    assert clear.gain == pytest.approx(0.02)
    assert clear.is_real
    assert clear.probability is not None
    assert clear.probability > 0.999
    assert str(clear) == (
        "trial 1 scores 2 points higher than trial 0, between 1.86 and 2.14 at 90%: "
        "almost surely real"
    )
    unclear = study.compare(1, 2)
    assert unclear.is_real is False
    assert str(unclear).endswith("by these folds, this may be luck")
    back = study.compare(study.trials[1], study.trials[0])
    assert back.gain == -clear.gain
    assert back.interval == pytest.approx(tuple(-b for b in reversed(clear.interval or ())))
    wide, narrow = (study.compare(0, 1, level=level).interval for level in (0.99, 0.5))
    assert wide is not None
    assert narrow is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_folds_of_unequal_number_are_compared_where_both_have_them() -> None:
    study = added({"folds": folds(0.9)}, {"value": 0.8, "folds": [0.82, 0.8], "raced": True})
    assert study.compare(1, 0).gain == pytest.approx(np.mean([0.92 - 0.82, 0.89 - 0.8]))


def test_repeats_tell_what_folds_cannot() -> None:
    study = added(*({"value": v, "x": x} for x, v in [(0.1, 1.0), (0.2, 5.0), (0.3, 1.1)]))
    assert study.compare(0, 1).known_from is None
    assert str(study.compare(0, 1)) == (
        "trial 1 scores 4 higher than trial 0: "
        "nothing is known about the noise, so this may be luck"
    )
    for x, value in [(0.1, 1.2), (0.1, 0.9), (0.2, 5.2)]:
        study.add({"x": x}, value)
    known = study.compare(0, 1)
    assert known.known_from == "repeats"
    assert known.gain == pytest.approx(5.1 - 3.1 / 3)
    assert known.is_real
    assert study.compare(0, 2).known_from == "repeats"  # only one of the two was repeated
    assert study.compare(0, 3).gain == 0.0  # the same configuration


def test_one_estimate_of_the_noise_is_behind_all_answers() -> None:
    rng, study = np.random.default_rng(0), create(LINE)
    for x in rng.uniform(size=12):  # what a model cannot explain is not all noise
        study.add({"x": x}, rng.uniform(0.5, 0.93), cost=2.0)
    for value in (0.936, 0.944):
        study.add({"x": 0.5}, value, cost=2.0)
    pair, *single = study.leaderboard(20)
    assert [len(entry.runs) for entry in (pair, *single)] == [2] + [1] * len(single)
    assert (pair.value.margin(0.9) or 1.0) < 0.03  # not ± 0.12 for a pair that differs by 0.008
    error = pair.value.error or 0.0
    assert [entry.value.error for entry in single] == [pytest.approx(error * 2**0.5)] * len(single)
    believed = study._knowledge.known(None).believed
    assert believed.noise[[0, -1]].tolist() == pytest.approx([2.0 * error**2, error**2])
    unrepeated = study.compare(single[0].trial, single[1].trial)
    assert unrepeated.known_from == "repeats"
    assert unrepeated.difference.error == pytest.approx(2.0 * error)
    value = study.confirm(lambda trial: 0.94, top=1, repeats=1, show_progress=False)[0].value
    assert value is not None
    again = study.leaderboard(1)[0]
    assert value.error == pytest.approx((again.value.error or 0.0) * len(again.runs) ** 0.5)


def test_a_lower_loss_is_a_gain() -> None:
    study = added(
        {"folds": folds(0.5)}, {"folds": folds(0.4, 0, 0.01, 0, 0, -0.01)}, direction="minimize"
    )
    assert study.compare(0, 1).gain == pytest.approx(0.1)
    assert "has a loss 0.1 lower than trial 0" in str(study.compare(0, 1))


def test_what_cannot_be_compared_is_refused() -> None:
    study = told((0.5, 1.0))
    study.ask()
    with pytest.raises(TrialError, match="trial 1 is not among the finished trials"):
        study.compare(0, 1)
    with pytest.raises(TypeError, match="a trial or its number is needed, but got 'best'"):
        study.compare(0, "best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"level must be a number in \(0, 1\), but got 90"):
        study.compare(0, 0, level=90)


def test_equals_are_called_equal() -> None:
    study = added({"value": 0.5}, {"value": 0.5}, {"value": 0.7, "x": 0.0})
    assert str(study.compare(0, 2)) == "trials 0 and 2 have the same configuration"
    assert str(study.compare(2, 2)) == "trial 2 is compared with itself"
    shifted = added({"folds": folds(0.5)}, {"folds": folds(0.7)})
    assert str(shifted.compare(0, 1)).startswith(
        "trial 1 scores 20 points higher than trial 0: almost surely real"
    )
    assert str(study.compare(1, 2)).startswith("trial 2 scores 10 points higher than trial 1")
    losses = added({"value": 0.5}, {"value": 0.5}, direction="minimize")
    assert str(losses.compare(0, 1)).startswith("trial 1 has the same loss as trial 0")


# ---- best ----


def test_the_best_is_not_the_luckiest_where_folds_tell_the_noise() -> None:
    rng, study = np.random.default_rng(0), create(LINE)
    for x in np.linspace(0, 1, 30):
        study.add({"x": x}, folds=(0.9 - (x - 0.5) ** 2 + 0.02 * rng.normal(size=5)).tolist())
    study.add({"x": 0.02}, folds=[0.99, 0.80, 1.0, 0.79, 1.0])  # uncertain, at a bad place
    luckiest = max(study.trials, key=lambda t: t.value or 0.0)
    assert luckiest.number == 30
    assert abs(study.best.params["x"] - 0.5) < 0.15
    assert study.best_value == study.best.value


def test_repeats_take_a_lucky_first_result_back() -> None:
    study = added(*({"value": 0.7 + 0.01 * (i % 3)} for i in range(8)), {"value": 0.85})
    assert study.best.number == 8
    for x, value in [(0.8, 0.69), (0.8, 0.7), (0.8, 0.71), (0.2, 0.77), (0.2, 0.78), (0.2, 0.76)]:
        study.add({"x": x}, value)
    assert study.best.params == {"x": 0.2}
    assert study.best.value == 0.76  # the repeat that is closest to their mean


def test_without_noise_the_best_is_the_best_result() -> None:
    study = added({"value": 0.5}, {"value": 0.9}, {"value": 0.5, "x": 0.0}, {"value": 0.8})
    assert study.best.number == 1


def test_a_frontier_by_belief_shows_the_belief_beside_the_result() -> None:
    study = added(*({"value": 0.9 + 0.01 * (i % 3), "cost": 1.0 + i} for i in range(6)))
    assert study.frontier().believed == {}  # nothing is known about the noise
    study.add({"x": 0.2}, 0.9, cost=3.0)
    frontier = study.frontier()
    numbers = [trial.number for trial in frontier]
    assert list(frontier.believed) == numbers
    boards = {entry.trial.number: entry.believed for entry in study.leaderboard(20)}
    assert all(boards.get(n, b) == b for n, b in frontier.believed.items())
    assert "believed" in repr(frontier)
    assert "believed" in frontier._repr_html_()
    assert "believed" in study._repr_html_()
    assert study.frontier(believed=False).believed == {}


# ---- words ----


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *[(0.0, "0"), (0.0312, "0.031"), (1.24, "1.2"), (12.34, "12.3"), (123.4, "123")],
        *[(9.96, "9.96"), (123456.0, "123000"), (2.5e7, "2.5e+07"), (3.84e-6, "3.84e-06")],
    ],
)
def test_numbers_have_few_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_value_has_as_many_decimals_as_its_error() -> None:
    assert rounded(0.91234, 0.0123) == "0.912"
    assert rounded(12.34, 0.4) == "12.34"
    assert rounded(1234.5, 30.0) == "1234"
    assert rounded(0.5, 0.0) == "0.5"


@pytest.mark.parametrize(
    ("cost", "unit", "text"),
    [
        (2.7e-6, "s", "2.7 µs"),
        (0.012, "s", "12 ms"),
        (0.19, "s", "190 ms"),
        (45, "s", "45 s"),
        (89, "s", "89 s"),
        (90, "s", "1.5 min"),
        (7200, "s", "2 h"),
        (2e5, "s", "2.3 days"),
        (1.9e8, "bytes", "190 MB"),
        (9.999e8, "bytes", "1 GB"),
        (2500, "bytes", "2.5 kB"),
        (3.2, "money", "3.2 (money)"),
        (3.2, "", "3.2"),
    ],
)
def test_a_cost_is_said_with_its_unit(cost: float, unit: str, text: str) -> None:
    assert cost_amount(cost, unit) == text


def test_points_are_for_scores_only() -> None:
    assert Scale.of([0.0, 1.0], maximize=True).amount(0.01) == "1 point"
    assert Scale.of([0.0, 1.0], maximize=True).amount(-0.025) == "2.5 points"
    assert Scale.of([0.0, 1.0], maximize=False).amount(0.01) == "0.01"
    assert Scale.of([0.0, 1.1], maximize=True).amount(0.01) == "0.01"


def test_values_are_called_what_the_user_calls_them() -> None:
    named, loss = Scale(True, True, "accuracy"), Scale(False, False, "log loss")
    assert [it.name for it in (named, loss, Scale(True, True), Scale(False, False))] == [
        *("accuracy", "log loss"),
        *("value", "loss"),
    ]
    assert loss.compared(0.5) == "has 0.5 less log loss than"
    assert Scale(False, False).compared(0.5) == "has a loss 0.5 lower than"
