"""The colours of all renderers, by role and theme.

Hues are those of Okabe and Ito, which colour-blind people can tell apart, darkened or lightened
until they stand out from the page. Roles also differ by their markers and dashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tradewind.charts.chart import Role

Theme: TypeAlias = Literal["light", "dark"]


@dataclass(frozen=True)
class Palette:
    """The colours of one theme: `roles` of marks, the text, softer text, the grid, the page, and
    the ends of the scale for worse and better trials."""

    roles: dict[Role, str]
    text: str
    soft: str
    grid: str
    page: str
    low: str
    high: str


PALETTES: dict[Theme, Palette] = {
    "light": Palette(
        roles={
            "main": "#0072b2",
            "chosen": "#c94f00",
            "frontier": "#00825e",
            "muted": "#8a94a0",
            "second": "#a3568a",
            "bad": "#b3261e",
        },
        text="#16202b",
        soft="#55606d",
        grid="#eceff2",
        page="#ffffff",
        low="#c9d0d8",
        high="#00518a",
    ),
    "dark": Palette(
        roles={
            "main": "#56b4e9",
            "chosen": "#ff9d4d",
            "frontier": "#2cc295",
            "muted": "#77869a",
            "second": "#dc94c2",
            "bad": "#ff8a80",
        },
        text="#e6ebf0",
        soft="#9dabb9",
        grid="#1f2934",
        page="#151d26",
        low="#33404d",
        high="#8fd0ff",
    ),
}


def css_variables(theme: Theme) -> dict[str, str]:
    """The colours as variables of a style sheet: `{"--role-main": "#0072b2", …}`."""
    palette = PALETTES[theme]
    roles = {f"--role-{role}": colour for role, colour in palette.roles.items()}
    return roles | {"--shade-low": palette.low, "--shade-high": palette.high}
