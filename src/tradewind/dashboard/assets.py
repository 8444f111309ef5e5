"""The files of the page: those of the report, and those that make it live."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib import resources

from tradewind.charts import page

LIVE = ("live.css", "live.js", "form.js", "steer.js", "together.js", "begin.js")  # in this order
PAGE = "page.html"

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


@dataclass(frozen=True)
class Asset:
    """A file: its kind, what is in it, the same compressed, and a tag that changes with it."""

    kind: str
    body: bytes
    packed: bytes
    tag: str


def assets() -> dict[str, Asset]:
    """All files by name. Nothing else is ever served as a file."""
    found = {name: page.asset(name) for name in page.ASSETS}
    for name in LIVE:
        found[name] = resources.files("tradewind.charts").joinpath("assets", name).read_bytes()
    found[PAGE] = _with_live_files(found[PAGE])
    return {name: _asset(name, body) for name, body in found.items()}


def _with_live_files(html: bytes) -> bytes:
    styles = [f'<link rel="stylesheet" href="/assets/{n}">' for n in LIVE if n.endswith(".css")]
    scripts = [f'<script src="/assets/{n}" defer></script>' for n in LIVE if n.endswith(".js")]
    head, body = "\n".join([*styles, "</head>"]), "\n".join([*scripts, "</body>"])
    return html.replace(b"</head>", head.encode(), 1).replace(b"</body>", body.encode(), 1)


def _asset(name: str, body: bytes) -> Asset:
    kind = f"{_KINDS[name.rpartition('.')[2]]}; charset=utf-8"
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return Asset(kind, body, gzip.compress(body, 6, mtime=0), tag)
