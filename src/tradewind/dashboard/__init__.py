"""The dashboard: studies in a browser, live, and the controls to steer them.

    poll (watched.py) -> messages (messages.py) -> the page, over one stream (stream.py)
    the page -> guard.py -> a command (commands.py) -> an event in the study's log

Names are imported when they are first used, because the web server is an extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tradewind.errors import missing

if TYPE_CHECKING:
    from tradewind.dashboard.application import app
    from tradewind.dashboard.server import serve

__all__ = ["app", "serve"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tradewind.dashboard import application, server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise missing("the dashboard", "starlette", "uvicorn") from error
    return {"app": application.app, "serve": server.serve}[name]
