"""What is believed of finished trials, where results are known to be noisy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.studies import create
from tradewind.goals import efficient
from tradewind.optimizer.believed import believed, noise_of_one_result
from tradewind.optimizer.history import History
from tradewind.optimizer.repeats import with_repeats
from tradewind.space import Float, Space
from tradewind.strategies import RandomSearch

LINE = Space({"x": Float(0, 1)})


def seen(*results: tuple[float, float]) -> History:
    """A history of these (x, value), with a cost of 1."""
    study = create(LINE)
    for x, value in results:
        study.add({"x": x}, value, cost=1.0)
    return study._session.snapshot()[1]


def test_results_without_known_noise_count_as_they_are() -> None:
    history = seen((0.1, 1.0), (0.2, 5.0), (0.3, 1.0))
    assert believed(LINE, history) is history


def test_repeats_that_agree_change_nothing_but_the_count() -> None:
    history = seen((0.1, 1.0), (0.1, 1.0), (0.3, 2.0))
    belief = believed(LINE, history)
    assert belief.quality.tolist() == [1.0, 1.0, 2.0]
    assert not belief.noise.any()


def test_repeats_count_as_one_result_and_share_their_cost() -> None:
    history = seen((0.1, 1.0), (0.1, 2.0), (0.3, 1.5))
    history = replace(history, cost=np.array([1.0, 3.0, np.nan]))
    belief = believed(LINE, history)
    assert belief.quality[0] == belief.quality[1]
    assert belief.cost.tolist() == pytest.approx([2.0, 2.0, np.nan], nan_ok=True)
    one = noise_of_one_result(LINE, history)
    assert one is not None
    assert belief.noise.tolist() == pytest.approx([one.std**2 / 2, one.std**2 / 2, one.std**2])


def test_few_repeats_say_less_about_the_noise_than_a_model_does() -> None:
    xs = np.linspace(0, 1, 15).tolist()
    results = [(x, -((x - 0.5) ** 2)) for x in xs]
    few = noise_of_one_result(LINE, seen(*results, (0.5, 0.1)))
    assert few is not None
    assert (few.freedom, few.std < 0.06) == (15.0, True)  # a model of all 16 is surer than one pair
    many = noise_of_one_result(LINE, seen(*results, *((0.5, 0.1 * (i % 2)) for i in range(10))))
    assert many is not None
    assert many.freedom == 10.0
    assert noise_of_one_result(LINE, seen(*results)) is None
    exact = noise_of_one_result(LINE, seen(*results, results[3]))
    assert exact is not None
    assert exact.std == 0.0


def test_repeats_reveal_the_noise_of_the_others() -> None:
    noise = with_repeats(seen((0.1, 1.0), (0.1, 2.0), (0.3, 5.0))).noise
    assert noise.tolist() == pytest.approx([0.5] * 3)
    assert not with_repeats(seen((0.1, 1.0), (0.2, 2.0))).noise.any()


def test_a_lucky_result_is_drawn_towards_its_neighbours() -> None:
    xs = np.linspace(0, 1, 21)
    values = [0.5 + 0.3 * (x == 0.5) for x in xs]  # one lucky trial among equals
    history = seen(*zip(xs.tolist(), values, strict=True))
    noisy = believed(LINE, replace(history, noise=np.full(21, 0.1**2)))
    lucky = int(np.argmax(values))
    assert noisy.quality[lucky] < 0.65
    assert np.abs(np.delete(noisy.quality, lucky) - 0.5).max() < 0.1


def test_no_result_moves_by_more_than_three_standard_errors() -> None:
    xs = np.linspace(0, 1, 21)
    values = [0.5 - 5.0 * (x == 0.5) for x in xs]  # one bad trial, far below what models look at
    history = seen(*zip(xs.tolist(), values, strict=True))
    belief = believed(LINE, replace(history, noise=np.full(21, 0.1**2)))
    assert np.abs(belief.quality - values).max() <= 0.3 + 1e-9
    exact = believed(LINE, replace(history, noise=np.where(xs == 0.5, 0.0, 0.1**2)))
    assert exact.quality[10] == -4.5  # nothing is known about its noise


def test_trials_of_different_sizes_are_believed_apart() -> None:
    study = create(LINE, strategy=RandomSearch())
    for size, level in ((0.3, 0.2), (1.0, 0.8)):
        for x in np.linspace(0, 1, 8):
            study.add({"x": x}, folds=[level, level + 0.02, level + 0.04], train_size=size)
    history = study._session.snapshot()[1]
    belief = believed(LINE, replace(history, noise=np.full(16, 0.02**2)))
    assert belief.quality[:8].tolist() == pytest.approx([0.22] * 8, abs=0.02)
    assert belief.quality[8:].tolist() == pytest.approx([0.82] * 8, abs=0.02)


def test_a_difference_of_belief_below_its_error_decides_nothing() -> None:
    xs = np.linspace(0, 1, 21)
    history = seen(*((x, 0.97 - 0.2 * (x - 0.5) ** 2) for x in xs.tolist()))
    quality, cost = history.quality.copy(), np.full(21, 5.0)
    (cheap, dear), better = (9, 10), 4
    quality[[cheap, dear]], cost[[cheap, dear]] = (0.982, 0.980), (0.138, 0.454)
    noisy = replace(history, quality=quality, cost=cost, noise=np.full(21, 0.01**2))
    belief = believed(LINE, noisy)
    assert belief.quality[cheap] == belief.quality[dear]
    assert efficient(belief.quality, cost)[-1] == cheap
    unchanged = believed(LINE, replace(noisy, cost=np.full(21, np.nan))).quality
    assert 0.0 < unchanged[dear] - unchanged[cheap] < 0.005
    quality[better], cost[better] = 0.99, 0.1  # a lucky result at a bad place
    belief = believed(LINE, replace(noisy, quality=quality, cost=cost))
    assert belief.quality[better] < belief.quality[dear] - 0.01


def test_over_many_searches_the_believed_best_is_better_than_the_luckiest() -> None:
    def regrets(seed: int) -> tuple[float, float]:
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=40)
        truth = -np.square(x - rng.uniform())
        results = truth + 0.1 * rng.normal(size=40)
        history = seen(*zip(x.tolist(), results.tolist(), strict=True))
        belief = believed(LINE, replace(history, noise=np.full(40, 0.1**2)))
        lucky, best = (truth.max() - truth[np.argmax(q)] for q in (results, belief.quality))
        return float(lucky), float(best)

    lucky, best = np.mean([regrets(seed) for seed in range(20)], axis=0)
    assert best < 0.5 * lucky
