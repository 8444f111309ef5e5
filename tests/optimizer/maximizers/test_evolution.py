"""The operators of the evolution strategy one by one, and what it does with its population."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tradewind.optimizer.maximizers.evolution import (
    MIES,
    Draws,
    Genome,
    Population,
    geometric,
    reflected,
)
from tradewind.space import Bool, Categorical, Float, Int, Ordinal, Space
from tradewind.types import Array

SPACE = Space(
    {
        "kind": Categorical(["a", "b", "c", "d"]),
        "x": Float(0.0, 1.0),
        "k": Int(1, 20),
        "flag": Bool(),
        "lr": Float(1e-5, 1e-1, log=True),
        "width": Ordinal([16, 32, 64]),
        "slope": Float(0.0, 1.0, when={"kind": "a"}),
    }
)
GENOME = Genome.of(SPACE, 10)
REALS = Space({f"x{i}": Float(0.0, 1.0) for i in range(8)})


def rows(n: int, *, space: Space = SPACE, seed: int = 0) -> Array:
    return space.sample(n, rng=np.random.default_rng(seed))


def found(es: MIES, score: Any, space: Space, *, n: int = 4, seed: int = 0) -> Array:
    start = rows(n, space=space, seed=seed)
    return es.maximize(score, space, start=start, rng=np.random.default_rng(seed))


def sphere(X: Array) -> Array:
    value: Array = -((X - 0.37) ** 2).sum(axis=1)
    return value


# ---- mutation ----


@pytest.mark.parametrize("step", [0.05, 0.5, 2.0, 30.0])
def test_geometric_steps_are_whole_even_handed_and_of_the_mean_length_asked_for(
    step: float,
) -> None:
    exponential = np.random.default_rng(0).standard_exponential((2, 200_000, 1))
    steps = geometric(np.full((1, 1), step), exponential)
    assert np.array_equal(steps, np.round(steps))
    assert np.abs(steps).mean() == pytest.approx(step, rel=0.05)
    assert abs(steps.mean()) < 0.02 * max(step, 1.0)


def test_geometric_steps_of_any_length_are_finite() -> None:
    exponential = np.random.default_rng(0).standard_exponential((2, 100, 1))
    assert np.isfinite(geometric(np.full((1, 1), 2.0**50), exponential)).all()


def test_reflection_folds_everything_into_the_unit_interval() -> None:
    x = np.array([-0.25, 0.0, 0.4, 1.0, 1.25, 2.5, -3.75])
    assert reflected(x) == pytest.approx([0.25, 0.0, 0.4, 1.0, 0.75, 0.5, 0.25])


def test_reflection_takes_centres_of_cells_to_centres_of_cells() -> None:
    centres = (np.arange(5) + 0.5) / 5
    cells = reflected(centres + np.arange(-20, 21)[:, None] / 5) * 5 - 0.5
    assert cells == pytest.approx(np.round(cells), abs=1e-9)


def mutated(strategy: list[float], *, n: int = 4000) -> tuple[Array, Array]:
    """n individuals of SPACE as snapped rows before and after a mutation by that strategy."""
    es = MIES(offspring=n, generations=1)
    before = GENOME.population(rows(n), np.random.default_rng(1))
    fixed = Population(before.latent, np.tile(strategy, (n, 1)))
    after = GENOME.mutate(fixed, Draws.of(GENOME, es, np.random.default_rng(2)), 0)
    return SPACE.snap(before.latent[:, GENOME.place]), SPACE.snap(after.latent[:, GENOME.place])


def test_a_small_step_size_moves_reals_a_little_and_a_large_one_far() -> None:
    for sigma in (1e-4, 1e-2):
        before, after = mutated([sigma, 0.1, 0.5])
        length = np.median(np.abs(after[:, 1] - before[:, 1]))
        assert 0.2 * sigma < length < 2.0 * sigma


def test_a_mutated_category_is_any_other_one_equally_often() -> None:
    before, after = mutated([0.1, 0.1, 0.5])
    jump = np.round((after[:, 0] - before[:, 0]) * 4) % 4
    counts = np.bincount(jump.astype(int), minlength=4) / len(jump)
    assert counts[1:] == pytest.approx(np.full(3, counts[1:].mean()), abs=0.03)
    assert counts[0] == pytest.approx(0.5, abs=0.1)


def test_the_mutation_rate_decides_how_many_categories_change() -> None:
    changed = [
        np.mean(np.not_equal(*(m[:, 3] for m in mutated([0.1, 0.1, p])))) for p in (0.1, 0.4)
    ]
    assert changed[0] < 0.25 < changed[1]


def test_integers_settle_on_their_cells_and_use_them_all() -> None:
    _, after = mutated([0.1, 0.3, 0.5])
    assert len(np.unique(np.round(after[:, 2], 9))) == 20
    assert len(np.unique(np.round(after[:, 5], 9))) == 3


def test_strategies_adapt_in_both_directions_and_keep_to_their_bounds() -> None:
    factor = np.exp(np.random.default_rng(0).normal(0.0, 30.0, size=(1000, 3)))
    adapted = GENOME.adapted(np.tile(GENOME.first, (1000, 1)), factor)
    assert (adapted >= GENOME.low).all()
    assert (adapted <= GENOME.high).all()
    assert (adapted < GENOME.first).any(axis=0).all()
    assert (adapted > GENOME.first)[:, :2].any(axis=0).all()


def test_a_factor_multiplies_the_odds_of_a_rate() -> None:
    adapted = GENOME.adapted(np.array([[0.1, 0.1, 0.2]]), np.full((1, 3), 2.0))
    assert adapted[0] == pytest.approx([0.2, 0.2, 1.0 / 3.0])


def test_inactive_coordinates_have_values_that_drift() -> None:
    start = SPACE.encode([{"kind": "b", "x": 0.5, "k": 3, "flag": True, "lr": 1e-3, "width": 16}])
    before = GENOME.population(np.repeat(start, 10, axis=0), np.random.default_rng(0))
    after = GENOME.mutate(before, Draws.of(GENOME, MIES(), np.random.default_rng(1)), 0)
    slope = GENOME.place[6]
    assert len(np.unique(before.latent[:, slope])) == 10
    assert (before.latent[:, slope] != after.latent[:, slope]).all()


# ---- recombination ----


def test_a_child_takes_every_coordinate_from_one_of_its_parents() -> None:
    parents = GENOME.population(rows(4), np.random.default_rng(0))
    draws = Draws.of(GENOME, MIES(), np.random.default_rng(1))
    child = parents.recombine(draws, 3)
    mother, father = (parents.latent[i] for i in draws.pairs[3])
    assert ((child.latent == mother) | (child.latent == father)).all()
    assert not (child.latent == mother).all()


def test_a_child_has_the_middle_of_its_parents_strategies() -> None:
    strategy = np.array([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5], [0.5, 0.6, 0.1], [0.7, 0.8, 0.2]])
    parents = Population(GENOME.population(rows(4), np.random.default_rng(0)).latent, strategy)
    draws = Draws.of(GENOME, MIES(), np.random.default_rng(1))
    mother, father = draws.pairs[3]
    expected = (strategy[mother] + strategy[father]) / 2
    assert parents.recombine(draws, 3).strategy == pytest.approx(expected)


# ---- the run ----


def test_the_published_strategy_is_4_10_with_500_generations() -> None:
    assert MIES() == MIES(parents=4, offspring=10, generations=500, patience=None)


def test_every_generation_scores_its_offspring_and_nothing_else() -> None:
    sizes = []

    def score(X: Array) -> Array:
        sizes.append(len(X))
        return sphere(X)

    found(MIES(offspring=7, generations=200), score, REALS, n=6)
    assert sizes == [6] + [7] * 200


def test_parents_that_are_missing_from_the_start_are_drawn() -> None:
    sizes = []

    def score(X: Array) -> Array:
        sizes.append(len(X))
        return sphere(X)

    found(MIES(parents=5, generations=0), score, REALS, n=2)
    assert sizes == [5]


def test_the_best_ever_seen_is_returned_though_its_line_has_died_out() -> None:
    calls = []
    seen = []

    def score(X: Array) -> Array:  # everything is worse in each later generation
        calls.append(len(X))
        seen.append(X.copy())
        value: Array = np.sin(9.0 * X.sum(axis=1)) - len(calls)
        return value

    row = found(MIES(generations=30), score, REALS)
    start = seen[0]
    assert np.array_equal(row, start[np.argmax(np.sin(9.0 * start.sum(axis=1)))])


def test_parents_come_from_the_offspring_only() -> None:
    """The first parents score best by far: with them among the next ones, no later row could be
    far away; without them the population walks off."""
    start = np.full((4, 8), 0.5)

    def score(X: Array) -> Array:
        return np.where((X == 0.5).all(axis=1), 10.0, X.sum(axis=1))

    rows_seen: list[Array] = []
    MIES(generations=300).maximize(
        lambda X: (rows_seen.append(X), score(X))[1],  # type: ignore[func-returns-value]
        REALS,
        start=start,
        rng=np.random.default_rng(0),
    )
    assert rows_seen[-1].mean() > 0.95


def test_steps_shrink_until_the_optimum_is_met_closely() -> None:
    for seed in range(3):
        assert sphere(found(MIES(), sphere, REALS, seed=seed)[None])[0] > -1e-10


def test_an_integer_on_a_log_scale_moves_as_reals_do() -> None:
    space = Space({"n": Int(1, 1000, log=True), "k": Int(1, 1000), "x": Float(0.0, 1.0)})
    assert Genome.of(space, 10).counts == (2, 1, 0)


def test_an_integer_on_a_log_scale_is_found_among_very_many() -> None:
    space = Space({"n": Int(1, 2**40, log=True), "x": Float(0.0, 1.0)})
    goal = space.encode([{"n": 123_456, "x": 0.2}])[0]

    def score(X: Array) -> Array:
        value: Array = -((X - goal) ** 2).sum(axis=1)
        return value

    config = space.decode(found(MIES(), score, space)[None])[0]
    assert config["n"] == pytest.approx(123_456, rel=1e-3)


def test_patience_ends_a_search_that_finds_nothing_better() -> None:
    calls = []

    def score(X: Array) -> Array:
        calls.append(len(X))
        return np.zeros(len(X))

    found(MIES(patience=20), score, SPACE)
    assert len(calls) == 1 + 20


def test_patience_does_not_end_a_search_that_still_finds_better() -> None:
    calls = []

    def score(X: Array) -> Array:
        calls.append(len(X))
        return np.full(len(X), float(len(calls)))

    found(MIES(patience=2, generations=50), score, SPACE)
    assert len(calls) == 1 + 50


def scored_while_nothing_else_may_be_proposed(generations: int) -> list[Array]:
    """The rows of every generation when only the start, the middle of REALS, is allowed."""
    seen: list[Array] = []

    def score(X: Array) -> Array:
        seen.append(X)
        return np.where((X == 0.5).all(axis=1), 0.0, -np.inf)

    es = MIES(generations=generations)
    es.maximize(score, REALS, start=np.full((4, 8), 0.5), rng=np.random.default_rng(0))
    return seen[1:]


def test_offspring_that_are_all_forbidden_leave_their_parents_in_place() -> None:
    last = scored_while_nothing_else_may_be_proposed(300)[-1]
    assert np.abs(last - 0.5).mean() < 0.2  # one mutation away, not three hundred


def test_every_generation_has_its_own_random_numbers() -> None:
    generations = np.array(scored_while_nothing_else_may_be_proposed(300))
    assert len(np.unique(generations.reshape(300, -1), axis=0)) == 300


@pytest.mark.parametrize(
    "wrong",
    [{"parents": 0}, {"parents": 11}, {"offspring": 3}, {"generations": -1}, {"patience": 0}],
)
def test_settings_that_make_no_strategy_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        MIES(**wrong)
