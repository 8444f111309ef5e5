"""Colours: the same in every renderer, and told apart by everybody."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import numpy as np
import pytest

from tradewind.charts.chart import Role
from tradewind.charts.page import stylesheet
from tradewind.charts.palette import PALETTES, Theme, css_variables

THEMES = list(PALETTES)


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0


def luminance(colour: str) -> float:
    c = rgb(colour)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a: str, b: str) -> float:
    high, low = sorted([luminance(a), luminance(b)], reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_every_role_has_a_colour_of_its_own(theme: Theme) -> None:
    roles = PALETTES[theme].roles
    assert set(roles) == set(get_args(Role))
    assert len(set(roles.values())) == len(roles)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_marks_stand_out_from_the_page(theme: Theme) -> None:
    palette = PALETTES[theme]
    for text in (palette.text, palette.soft):
        assert contrast(text, palette.page) >= 4.5  # WCAG 2.1, AA
    for role in palette.roles.values():
        assert contrast(role, palette.page) >= 3.0  # WCAG 2.1 for graphics


# What people without one kind of cone see (Viénot, Brettel and Mollon, 1999), in linear RGB.
BLIND = {
    "protan": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "deutan": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", BLIND)
def test_colour_blind_people_can_tell_the_main_roles_apart(theme: Theme, kind: str) -> None:
    roles = PALETTES[theme].roles
    seen = {role: np.array(BLIND[kind]) @ rgb(roles[role]) ** 2.2 for role in roles}
    for a, b in combinations(("main", "chosen", "frontier", "muted"), 2):
        assert np.abs(seen[a] - seen[b]).max() > 0.04, (a, b)


@pytest.mark.parametrize("theme", THEMES)
def test_the_page_uses_the_same_colours(theme: Theme) -> None:
    style = stylesheet()
    for name, colour in css_variables(theme).items():
        assert f"{name}: {colour};" in style
