"""Numbers in tables: nothing is lost, and points stand below each other."""

from __future__ import annotations

import pytest

from tradewind.cli.tables import aligned, cost, cost_label, named_cost


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.84, 0.8435, 0.08082], ["0.8400", "0.8435", "0.08082"]),
        ([9.5, 12.34567, 1234.5], ["   9.500", "  12.35", "1234"]),
        ([-0.5, 5.442e-5, None], ["-0.5000", " 5.442e-05", " -"]),
        ([], []),
    ],
)
def test_values_of_a_column_are_aligned(values: list[float | None], texts: list[str]) -> None:
    assert aligned(values) == texts


@pytest.mark.parametrize(
    ("unit", "label", "text", "named"),
    [
        ("s", "cost", "2.76 s", "2.8 s"),
        ("bytes", "cost", "0.00276 kB", "0.00276 kB"),
        ("money", "cost (money)", "2.76", "2.8 (money)"),
        ("", "cost", "2.76", "2.8"),
    ],
)
def test_costs_have_three_digits_and_their_unit(
    unit: str, label: str, text: str, named: str
) -> None:
    assert (cost_label(unit), cost(2.7601, unit), named_cost(2.7601, unit)) == (label, text, named)
    assert cost(None, unit) == "-"
