"""The random streams of a study: all different, and the same in every version."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind import seeds

study_seeds = st.integers(0, 2**63 - 1)
numbers = st.integers(0, 2**32 - 1)

NUMBERS = range(300)


def streams(seed: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, ...]]:
    """The first 256 bits of every stream of a study, by what it is for."""
    made: list[np.random.SeedSequence] = []

    class Watched(np.random.SeedSequence):
        def __init__(self, entropy: Any) -> None:
            super().__init__(entropy)
            made.append(self)

    calls: dict[str, Any] = {
        "design": lambda: seeds.design_rng(seed),
        "data": lambda: seeds.data_seed(seed),
    }
    for i in NUMBERS:
        calls[f"proposal {i}"] = lambda i=i: seeds.proposal_rng(seed, i)
        calls[f"queue {i}"] = lambda i=i: seeds.queue_rng(seed, i)
        calls[f"trial {i}"] = lambda i=i: seeds.trial_seed(seed, i)
    with monkeypatch.context() as patch:
        patch.setattr(np.random, "SeedSequence", Watched)
        for call in calls.values():
            call()
    assert len(made) == len(calls)
    return {
        name: tuple(stream.generate_state(8).tolist())
        for name, stream in zip(calls, made, strict=True)
    }


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 4, 5, 299, 2**31, 2**32, 2**32 + 1, 2**63 - 1])
def test_no_two_streams_of_a_study_coincide(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = streams(seed, monkeypatch)
    names: dict[tuple[int, ...], str] = {}
    for name, bits in found.items():
        assert bits not in names, f"{name} is the stream of {names[bits]}"
        names[bits] = name


@given(study_seeds)
def test_the_data_seed_of_old_studies_comes_from_the_stream_of_proposal_2(seed: int) -> None:
    stream = np.random.SeedSequence([seed, 2])
    assert stream.entropy == seeds.proposal_rng(seed, 2).bit_generator.seed_seq.entropy  # type: ignore[attr-defined]
    assert seeds.shared_data_seed(seed) == int(stream.generate_state(1)[0]) % 2**31


@given(study_seeds, numbers)
def test_seeds_fit_into_31_bits(seed: int, number: int) -> None:
    for made in (seeds.trial_seed(seed, number), seeds.data_seed(seed)):
        assert 0 <= made < 2**31


# ---- earlier versions ----

# seed, number, then what earlier versions computed: the trial's seed, the first draw of the
# streams of the proposal, the queue entry and the design, the data seed, the seed of the fold
EARLIER = [
    (
        *(0, 0, 1683718082, 5874934615388537135),
        *(7051311159467521705, 5741945152195388288, 993632895, 477424271),
    ),
    (
        *(0, 1, 901243215, 8206391887579712274),
        *(8212915568382016886, 5741945152195388288, 993632895, 2082207460),
    ),
    (
        *(7, 12, 710350576, 1504032828204132987),
        *(660959925863391677, 277582716229910554, 1009178997, 713435560),
    ),
    (
        *(2147483653, 3, 75461163, 3213083916803784762),
        *(6251137061716208544, 1174490300705001390, 1034764034, 809886928),
    ),
    (
        *(9223372036854775807, 250, 147159491, 3803134310026512248),
        *(6316558996838653757, 2537249192834564298, 1038170047, 1239147100),
    ),
]


def first_draw(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))


@pytest.mark.parametrize(
    ("seed", "number", "trial", "proposal", "queue", "design", "data", "fold"), EARLIER
)
def test_the_streams_are_those_of_earlier_versions(
    seed: int,
    number: int,
    trial: int,
    proposal: int,
    queue: int,
    design: int,
    data: int,
    fold: int,
) -> None:
    assert seeds.trial_seed(seed, number) == trial
    assert first_draw(seeds.proposal_rng(seed, number)) == proposal
    assert first_draw(seeds.queue_rng(seed, number)) == queue
    assert first_draw(seeds.design_rng(seed)) == design
    assert seeds.shared_data_seed(seed) == data
    assert seeds.fold_seed(data, number) == fold
