"""A chart is plain data."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from tests.charts.samples import CHARTS
from tradewind.charts.chart import Chart


@pytest.mark.parametrize("chart", CHARTS, ids=lambda c: c.name)
def test_a_chart_is_plain_data(chart: Chart) -> None:
    data = chart.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == json.loads(json.dumps(asdict(chart)))


def test_every_layer_says_its_kind() -> None:
    kinds = {layer.kind for chart in CHARTS for panel in chart.panels for layer in panel.layers}
    assert kinds == {"points", "line", "band", "bars", "spans", "strands"}
