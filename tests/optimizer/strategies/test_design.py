"""Designs fill the space: evenly, reproducibly, and only where it is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tradewind as tw
from tests.space.generate import spaces
from tradewind.engine.propose import Proposer
from tradewind.goals import Quality
from tradewind.log.state import StudyState
from tradewind.seeds import proposal_rng
from tradewind.strategies import Bayes, Design, RandomSearch, Sampling
from tradewind.types import Origin

CUBE = tw.Space({name: tw.Float(0, 1) for name in "abcde"})
MIXED = tw.Space(
    {
        "C": tw.Float(1e-4, 1e3, log=True),
        "kernel": tw.Categorical(["linear", "poly"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
        "odd": tw.Bool(when={"degree": [3, 5]}),
        "width": tw.Ordinal([32, 64, 128]),
        "train_size": tw.TrainSize(),
    },
    forbid=[{"kernel": "linear", "width": 128}],
)
SAMPLINGS = list(Sampling)


def points(space: tw.Space = CUBE, seed: int = 0, **options: Any) -> np.ndarray:
    return Design(**{"size": 8, **options}).points(space, seed)


def strata(column: np.ndarray, n: int) -> list[int]:
    """How many of the points lie in each of n equal parts."""
    return np.bincount((column * n).astype(int), minlength=n).tolist()


# ---- every design ----


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("size", [1, 2, 5, 8, 17])
def test_a_design_has_its_size(sampling: Sampling, size: int) -> None:
    assert points(size=size, sampling=sampling).shape == (size, 5)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_design_depends_on_the_seed_alone(sampling: Sampling) -> None:
    first = points(MIXED, sampling=sampling, seed=3)
    np.testing.assert_array_equal(points(MIXED, sampling=sampling, seed=3), first)
    assert not np.array_equal(points(MIXED, sampling=sampling, seed=4), first)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_design_leaves_out_what_is_inactive_or_forbidden(sampling: Sampling) -> None:
    rows = points(MIXED, size=64, sampling=sampling)
    np.testing.assert_array_equal(MIXED.snap(rows), rows)
    for config in MIXED.decode(rows):
        assert MIXED.validate(config) == config
        assert ("degree" in config) == (config["kernel"] == "poly")
        assert ("odd" in config) == (config.get("degree") in (3, 5))


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("centre", [False, True])
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), seed=st.integers(0, 2**32), size=st.integers(1, 9))
def test_every_point_of_a_design_is_a_configuration_of_its_space(
    sampling: Sampling, centre: bool, space: tw.Space, seed: int, size: int
) -> None:
    rows = Design(size, sampling, centre=centre).points(space, seed)
    assert rows.shape == (size, len(space))
    for config in space.decode(rows):
        assert space.validate(config) == config


@pytest.mark.parametrize("size", [0, -1, True, 2.5, "8", None])
def test_a_design_has_at_least_one_point(size: Any) -> None:
    with pytest.raises(
        ValueError, match="Design: size must be a whole number from 1 to 100000, but got"
    ):
        Design(size)


@pytest.mark.parametrize("sampling", [None, "halton", 3])
def test_a_sampling_is_one_of_the_list(sampling: Any) -> None:
    with pytest.raises(ValueError, match="'sobol', 'latin', 'random', but got"):
        Design(4, sampling)


def test_a_size_may_be_an_integer_of_numpy() -> None:
    assert Design(np.int64(4)) == Design(4)


def test_a_sampling_may_be_named_by_its_word() -> None:
    assert Design(4, "latin") == Design(4, Sampling.LATIN)


# ---- Sobol, Latin, random ----


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_a_smaller_sobol_design_is_the_beginning_of_the_next_power_of_two(size: int) -> None:
    power = 2 ** int(np.ceil(np.log2(size)))
    np.testing.assert_array_equal(points(size=size), points(size=power)[:size])


@pytest.mark.parametrize("seed", range(5))
def test_a_power_of_two_of_sobol_points_has_one_in_every_part_of_every_range(seed: int) -> None:
    rows = points(size=16, seed=seed)
    for column in rows.T:
        assert strata(column, 16) == [1] * 16


@pytest.mark.parametrize("seed", range(5))
def test_sobol_points_are_even_in_two_dimensions_too(seed: int) -> None:
    rows = points(size=16, seed=seed)[:, :2]
    quarters = (rows * 4).astype(int)
    assert len({tuple(q) for q in quarters}) == 16


def test_sobol_points_share_out_the_categories() -> None:
    space = tw.Space({"c": tw.Categorical(list("abcd")), "b": tw.Bool(), "x": tw.Float(0, 1)})
    configs = space.decode(points(space, size=8))
    assert sorted(str(c["c"]) for c in configs) == sorted("aabbccdd")
    assert sum(bool(c["b"]) for c in configs) == 4


@pytest.mark.parametrize("size", [1, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_a_latin_hypercube_has_one_point_in_every_part_of_every_range(size: int, seed: int) -> None:
    for column in points(size=size, sampling=Sampling.LATIN, seed=seed).T:
        assert strata(column, size) == [1] * size


def test_random_points_are_uniform() -> None:
    for column in points(size=2000, sampling=Sampling.RANDOM).T:
        assert min(strata(column, 4)) > 430
        assert max(strata(column, 4)) < 570


# ---- the centre ----


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_centre_comes_first_if_asked(sampling: Sampling) -> None:
    plain, centred = (points(size=5, sampling=sampling, centre=c) for c in (False, True))
    np.testing.assert_array_equal(centred[0], [0.5] * 5)
    np.testing.assert_array_equal(centred[1:], plain[:4])


def test_the_centre_of_a_mixed_space_is_in_the_middle_of_its_values() -> None:
    space = tw.Space(
        {
            "C": tw.Float(1e-4, 1e4, log=True),
            "n": tw.Int(1, 9),
            "width": tw.Ordinal([32, 64, 128]),
        }
    )
    (first,) = space.decode(points(space, size=1, centre=True))
    assert first == {"C": pytest.approx(1.0), "n": 5, "width": 64}


def test_a_forbidden_centre_gives_way_to_an_allowed_point() -> None:
    space = tw.Space({"a": tw.Int(1, 3), "x": tw.Float(0, 1)}, forbid=[{"a": 2}])
    rows = points(space, size=4, centre=True)
    assert space.allowed(rows).all()


# ---- designs within a study ----


def asked(study: tw.Study, n: int) -> list[dict[str, Any]]:
    return [dict(study.ask().params) for _ in range(n)]


def test_a_study_walks_through_its_design() -> None:
    design = Design(6)
    study = tw.create_study(MIXED, strategy=Bayes(design=design), seed=5)
    assert asked(study, 6) == MIXED.decode(design.points(MIXED, 5))


def test_the_design_does_not_care_what_became_of_its_points() -> None:
    design = Design(6)
    study = tw.create_study(MIXED, strategy=Bayes(design=design), seed=5)
    seen = []
    for n in range(6):
        trial = study.ask()
        seen.append(dict(trial.params))
        if n % 3 == 0:
            study.tell(trial, value=1.0)
        elif n % 3 == 1:
            study.fail(trial)
    assert seen == MIXED.decode(design.points(MIXED, 5))


@pytest.mark.parametrize(
    "parameter",
    [
        tw.Int(1, 64),
        tw.Int(1, 64, log=True),
        tw.Float(0, 1),
    ],
    ids=repr,
)
def test_points_that_were_tried_are_skipped(parameter: Any) -> None:
    space = tw.Space({"n": parameter})
    design = Design(4)
    configs = space.decode(design.points(space, 0))
    study = tw.create_study(space, strategy=Bayes(design=design), seed=0)
    study.add(configs[0], value=1.0)
    study.add(configs[2], value=1.0)
    assert asked(study, 2) == [configs[1], configs[3]]


def test_a_used_up_design_goes_on_at_random() -> None:
    design = Design(2)
    study = tw.create_study(MIXED, strategy=Bayes(design=design), seed=5)
    for params in asked(study, 2):
        assert params in MIXED.decode(design.points(MIXED, 5))
    trial = study.ask()  # nothing has finished: there is no model yet
    assert trial.origin is Origin.DESIGN
    assert trial.params not in MIXED.decode(design.points(MIXED, 5))


# ---- random search ----


def test_random_search_proposes_by_its_stream_alone() -> None:
    history = Proposer(StudyState(CUBE, seed=0, maximize=True)).history(0)
    rngs = (proposal_rng(0, 7), proposal_rng(0, 7), proposal_rng(0, 8))
    a, b, c = (RandomSearch().propose(CUBE, Quality(), history, rng=rng) for rng in rngs)
    assert (a.row == b.row).all()
    assert (a.row != c.row).any()
    assert a.origin is Origin.DESIGN


def test_random_search_is_uniform_over_values() -> None:
    space = tw.Space({"c": tw.Categorical(["a", "b", "c"]), "x": tw.Float(0, 1)})
    study = tw.create_study(space, strategy="random", seed=0)
    drawn = [p["c"] for p in asked(study, 150)]
    assert min(drawn.count(v) for v in "abc") > 30
