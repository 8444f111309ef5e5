"""No flipped bit goes unnoticed if it changes anything. `make chaos` flips more of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos import bitflips
from tests.chaos.bitflips import Flips


@pytest.mark.parametrize(
    ("flip", "flips"),
    [
        (bitflips.flip_first_page, 10),
        (bitflips.flip_database, 300),
        (bitflips.flip_write_ahead, 40),
        (bitflips.flip_lines, 200),
    ],
)
def test_a_flipped_bit_is_noticed_or_changes_nothing(
    tmp_path: Path, flip: Callable[..., Flips], flips: int
) -> None:
    found = flip(tmp_path, flips=flips, seed=0)
    assert found.flipped == flips
    assert found.silent == []
    assert found.noticed > flips // 10
