"""The report as one HTML text, and the files of the page for the dashboard.

The page draws itself with the scripts in assets/. In a report they stand in the text, and the
content security policy names exactly them by their hashes; the dashboard serves them as files.
Neither may load anything else. Data is embedded as JSON and never becomes markup.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from functools import cache
from importlib import resources
from typing import Any

from tradewind.charts.palette import Theme, css_variables

SCRIPTS = (  # in the order in which they are loaded
    *("dom.js", "format.js", "scales.js", "axes.js", "marks.js", "strands.js", "numbers.js"),
    *("store.js", "walk.js", "chart.js", "theme.js", "filter.js", "table.js", "steps.js"),
    *("choice.js", "answer.js", "sections.js", "page.js"),
)
ASSETS = ("page.html", "style.css", *SCRIPTS)

_REPORT_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
_THEMES: dict[Theme, str] = {"light": ":root", "dark": ':root[data-theme="dark"]'}


def write_page(data: dict[str, Any], *, title: str) -> str:
    """The report of a study: one HTML text that needs no other file and no network."""
    style, script = stylesheet(), "".join(_text(name) for name in SCRIPTS)
    policy = _REPORT_POLICY.format(script=_hash(script), style=_hash(style))
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>'
    body = (
        f'<script type="application/json" id="data">{embedded(data)}</script>\n'
        f"<script>{script}</script>"
    )
    return _filled(title=title, head=head, body=body)


def asset(name: str) -> bytes:
    """A file of the page as the dashboard serves it; only names in `ASSETS` exist."""
    if name not in ASSETS:
        raise ValueError(f"the page consists of {', '.join(ASSETS)}, but got {name!r}")
    if name == "page.html":
        scripts = "\n".join(f'<script src="/assets/{one}" defer></script>' for one in SCRIPTS)
        link = '<link rel="stylesheet" href="/assets/style.css">'
        return _filled(title="Tradewind", head=link, body=scripts).encode()
    return (stylesheet() if name == "style.css" else _text(name)).encode()


def embedded(data: Any) -> str:
    """Data as JSON that can stand within a script element: it has no `<`, `>`, `&` and no letter
    beyond ASCII, so it can neither end the element nor begin another. NaN is refused."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return re.sub("[<>&]", lambda sign: _ESCAPES[sign.group()], text)


@cache
def stylesheet() -> str:
    """The style of the page, with the colours of both themes."""
    text = _text("style.css")
    for theme in _THEMES:
        colours = (f"{name}: {colour};" for name, colour in css_variables(theme).items())
        text = text.replace(f"/* palette: {theme} */", "\n  ".join(colours))
    light, dark = (_block(text, selector) for selector in _THEMES.values())
    system = "@media (prefers-color-scheme: dark) {\n:root:not([data-theme]) {\n" + dark + "}\n}"
    paper = "@media print {\n:root:root:root {\n" + light + "}\n}"
    return text.replace("/* again: dark */", system).replace("/* again: light */", paper)


def _block(text: str, selector: str) -> str:
    """What a rule of the style sheet holds."""
    start = text.index(f"{selector} {{\n") + len(selector) + 3
    return text[start : text.index("}", start)]


def _filled(**parts: str) -> str:
    """The skeleton with its parts, in one pass: what stands in a part is not looked at again."""
    parts["title"] = html.escape(parts["title"].encode("utf-8", "replace").decode())
    return re.sub(r"\{\{(\w+)\}\}", lambda name: parts[name.group(1)], _text("page.html"))


@cache
def _text(name: str) -> str:
    return resources.files("tradewind.charts").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    """As a browser computes it, which has turned every line end into a newline."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
