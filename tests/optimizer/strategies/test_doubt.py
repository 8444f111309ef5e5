"""A search that finds out whether results are noisy, and what it does about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tradewind as tw
from tests.studies import create
from tradewind.optimizer.repeats import Noise, noise_of
from tradewind.optimizer.strategies.doubt import Doubt
from tradewind.recipes import auto
from tradewind.strategies import Bayes, GaussianProcess, RandomForest
from tradewind.types import Origin

SQUARE = tw.Space({"x": tw.Float(0, 1), "y": tw.Float(0, 1)})


def smooth(params: Any) -> float:
    return float(-((params["x"] - 0.3) ** 2) - (params["y"] - 0.6) ** 2)


def search(noise: float, *, n: int = 24, seed: int = 0, **options: Any) -> tw.Study:
    def objective(trial: tw.Run) -> dict[str, float]:
        error = noise * float(np.random.default_rng(trial.seed).normal())
        return {"value": smooth(trial.params) + error, "cost": 1.0 + trial.params["x"]}

    study = create(SQUARE, strategy=auto(), seed=seed, **options)
    study.optimize(objective, n, show_progress=False)
    return study


def repeated(study: tw.Study) -> list[tw.Trial]:
    """The trials whose configuration an earlier trial had."""
    trials = study.trials
    return [t for t in trials if any(t.repeats(other) for other in trials[: t.number])]


def with_noisy_results(cost: float) -> tw.Study:
    """A study to which 20 noisy results of random configurations were added."""
    study, rng = create(SQUARE, strategy=auto()), np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.random(2).tolist()
        value = smooth({"x": x, "y": y}) + 0.5 * rng.normal()
        study.add({"x": x, "y": y}, value, cost=cost)
    return study


def is_repeat(study: tw.Study, trial: tw.Trial | tw.Run) -> bool:
    """Whether this is the best of the added configurations, up to rounding."""
    best = max(study.trials[:20], key=lambda t: t.value or -9.0).params
    return dict(trial.params) == pytest.approx(dict(best), rel=1e-9)


def noise_in(study: tw.Study) -> Noise:
    return noise_of(study._session.snapshot()[1])


def test_a_smooth_exact_function_is_never_run_twice_at_the_same_place() -> None:
    assert repeated(search(0.0)) == []


@pytest.mark.parametrize("goal", [tw.Quality(), tw.Tradeoff(0.1), tw.Frontier()], ids=repr)
def test_suspected_noise_is_worth_one_repeat_of_the_best_trial(goal: Any) -> None:
    study = search(0.3, goal=goal)
    (again,) = repeated(study)
    assert again.origin is Origin.MODEL
    earlier = [t for t in study.trials[: again.number] if t.finished]
    first = next(t for t in earlier if t.repeats(again))
    if goal == tw.Quality():
        assert first.value == max(t.value for t in earlier if t.value is not None)
    assert noise_in(study) is Noise.PRESENT


def test_structure_that_looks_like_noise_costs_one_repeat_and_no_more() -> None:
    def rough(trial: tw.Run) -> float:  # exact, but no smooth model can follow it
        return float(np.random.default_rng(int(1e9 * trial.params["x"])).normal())

    study = create(SQUARE, strategy=auto(), seed=0)
    study.optimize(rough, 30, show_progress=False)
    assert len(repeated(study)) == 1
    assert noise_in(study) is Noise.ABSENT


def test_a_repeat_that_is_still_running_is_not_proposed_again() -> None:
    study = with_noisy_results(cost=1.0)
    asked = [study.ask() for _ in range(4)]
    assert [is_repeat(study, trial) for trial in asked] == [True, False, False, False]


def test_a_repeat_that_failed_is_not_tried_again() -> None:
    study = with_noisy_results(cost=1.0)
    first = study.ask()
    assert is_repeat(study, first)
    study.fail(first, "out of memory")
    assert not is_repeat(study, study.ask())


def test_a_repeat_of_an_added_result_is_recognized_although_proposals_are_rounded() -> None:
    study = with_noisy_results(cost=1.0)
    study.tell(study.ask(), value=0.0)
    assert noise_in(study) is Noise.PRESENT
    assert not is_repeat(study, study.ask())


def test_a_repeat_must_fit_into_the_cost_that_is_left() -> None:
    study = with_noisy_results(cost=5.0)
    dear, cheap = study.ask(max_cost=1.0), study.ask(max_cost=9.0)
    assert not is_repeat(study, dear)
    assert is_repeat(study, cheap)


def test_folds_make_a_repeat_needless() -> None:
    def objective(trial: tw.Run) -> dict[str, list[float]]:
        error = 0.3 * np.random.default_rng(trial.seed).normal(size=5)
        return {"folds": (smooth(trial.params) + error).tolist()}

    study = create(SQUARE, strategy=auto(), seed=0)
    study.optimize(objective, 20, show_progress=False)
    assert repeated(study) == []


@pytest.mark.parametrize("workers", [1, 4])
def test_noisy_searches_replay_to_the_last_digit(workers: int) -> None:
    study = create(SQUARE, strategy=auto(), seed=3)

    def objective(trial: tw.Run) -> float:
        return smooth(trial.params) + 0.3 * float(np.random.default_rng(trial.seed).normal())

    runner = tw.runners.SimulatedRunner(workers, duration=lambda t: 1.0 + t.params["x"])
    study.optimize(objective, 24, runner=runner, show_progress=False)
    assert repeated(study)
    assert tw.replay(study).identical


@pytest.mark.parametrize("seed", [2, 3])
def test_among_noisy_results_the_recommendation_is_the_best(seed: int) -> None:
    study = search(0.3, n=30, seed=seed)
    assert repeated(study)
    assert study.recommend().trial == study.best
    assert study.recommend().reason == ""


def test_a_search_without_a_noisy_model_repeats_nothing() -> None:
    study = create(SQUARE, strategy=Bayes(), seed=0)
    study.optimize(
        lambda t: smooth(t.params) + 0.3 * float(np.random.default_rng(t.seed).normal()),
        20,
        show_progress=False,
    )
    assert repeated(study) == []


def test_the_model_for_noise_must_be_a_surrogate() -> None:
    for part in ("noisy", "rough"):
        with pytest.raises(TypeError, match=part):
            Bayes(**{part: "GaussianProcess"})  # type: ignore[arg-type]


def test_the_model_for_noise_is_stored_with_a_study(tmp_path: Any) -> None:
    noisy = GaussianProcess(matter=3, noise_mean=-4.0)
    strategy = Bayes(noisy=noisy, rough=GaussianProcess(length_mean=-1.0))
    tw.create_study(SQUARE, strategy=strategy, storage=tmp_path / "a.db", name="a")
    assert tw.load_study(tmp_path / "a.db", "a").strategy == strategy


# ---- smooth or rough ----


def history_of(
    quality: Any, X: Any, *, handover: Any = None, noise: Any = 0.1, raced: Any = False
) -> Any:
    """A history of noisy results in the unit square."""
    study = create(SQUARE, strategy=auto())
    for row, value in zip(X, quality, strict=True):
        study.add({"x": float(row[0]), "y": float(row[1])}, float(value))
    n = len(quality)
    return replace(
        study._session.snapshot()[1],
        noise=np.broadcast_to(np.asarray(noise, dtype=float), n).copy(),
        raced=np.broadcast_to(np.asarray(raced, dtype=bool), n).copy(),
        handover=handover or {},
    )


def fit(history: Any, doubt: Doubt | None = None) -> Any:
    strategy = auto()
    doubt = doubt or Doubt(strategy.surrogate, strategy.noisy, strategy.rough)
    transform = strategy.output.transform(history.quality, matters_above=np.inf)
    columns, rng = SQUARE.columns, np.random.default_rng(0)
    return doubt.fit(
        history,
        transform,
        noise=Noise.PRESENT,
        finished=len(history.X),
        columns=columns,
        rng=rng,
    )


def results(n: int, waves: float) -> tuple[Any, Any]:
    """Noisy results along a trend, or along this many waves."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    quality = X[:, 0] if waves == 0.0 else np.sin(2 * np.pi * waves * X[:, 0])
    return quality + 0.05 * rng.standard_normal(n), X


@pytest.mark.parametrize(("waves", "chosen"), [(0.0, "noisy"), (3.0, "rough")])
def test_results_decide_whether_they_are_smooth_or_rough(waves: float, chosen: str) -> None:
    found = fit(history_of(*results(40, waves)))
    assert found.handover["chosen"] == chosen
    assert found.noise is Noise.PRESENT
    assert dict(found.model.handover) == found.handover[chosen]


def test_between_two_comparisons_the_choice_stays() -> None:
    rough = history_of(*results(41, 3.0), handover={"chosen": "noisy"})
    assert fit(rough).handover["chosen"] == "noisy"
    smooth = history_of(*results(41, 0.0), handover={"chosen": "rough"})
    assert fit(smooth).handover["chosen"] == "rough"


def test_without_a_rough_surrogate_all_noisy_results_are_smooth() -> None:
    parts = auto()
    found = fit(history_of(*results(40, 3.0)), Doubt(parts.surrogate, parts.noisy))
    assert set(found.handover) == {"noisy"}


def test_surrogates_that_do_not_say_how_probable_results_are_are_not_compared() -> None:
    parts, history = auto(), history_of(*results(40, 3.0))
    assert fit(history, Doubt(parts.surrogate, RandomForest(), parts.rough)).handover["chosen"] == (
        "noisy"
    )


def test_with_many_parameters_the_choice_does_not_depend_on_the_draws() -> None:
    space = tw.Space({f"x{i}": tw.Float(0, 1) for i in range(24)})
    parts, rng = auto(), np.random.default_rng(0)
    study = create(space, strategy=parts)
    for row in rng.random((30, 24)):
        study.add(dict(zip(space, row.tolist(), strict=True)), float(row[0] + 0.3 * rng.normal()))
    doubt = Doubt(parts.surrogate, parts.noisy, parts.rough)
    history = study._session.snapshot()[1]
    transform = parts.output.transform(history.quality, matters_above=np.inf)

    def again(history: Any, seed: int) -> Any:
        return doubt.fit(
            history,
            transform,
            noise=Noise.PRESENT,
            finished=30,
            columns=space.columns,
            rng=np.random.default_rng(seed),
        )

    history = replace(history, handover=again(history, 0).handover)
    found = [again(history, seed) for seed in range(6)]
    assert len({f.handover["chosen"] for f in found}) == 1
    assert len({tuple(f.model.theta) for f in found}) == 6  # and yet each is another guess


def test_how_noisy_a_whole_trial_is_is_learned_and_a_raced_one_is_as_noisy_as_its_folds() -> None:
    quality, X = results(30, 0.0)
    first = np.arange(30) == 0
    plain = fit(history_of(quality, X, noise=1e-9)).model.predict(X).mean
    told = fit(history_of(quality, X, noise=np.where(first, 5e-9, 1e-9)))
    assert told.model.predict(X).mean.tolist() == plain.tolist()
    wild = fit(history_of(quality, X, noise=np.where(first, 100.0, 1e-9)))
    raced = fit(history_of(quality, X, noise=np.where(first, 4.0, 1.0), raced=first))
    for found in (wild, raced):
        assert found.model.predict(X).mean.tolist() != plain.tolist()


def test_a_study_of_rough_noisy_results_replays_past_the_last_comparison() -> None:
    def objective(trial: tw.Run) -> float:
        error = 0.2 * float(np.random.default_rng(trial.seed).normal())
        return float(np.sin(20 * trial.params["x"])) + error

    study = create(SQUARE, strategy=auto(), seed=1)
    study.optimize(objective, 46, show_progress=False)
    assert noise_in(study) is Noise.PRESENT
    assert tw.replay(study).identical
