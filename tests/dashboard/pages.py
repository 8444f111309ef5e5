"""What the tests of the dashboard share: a study, a picture without figures, and a client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

import tradewind as tw
from tradewind.dashboard import app
from tradewind.dashboard.guard import Access
from tradewind.dashboard.picture import Picture

TOKEN = "a-secret"
SPACE = tw.Space(
    {
        "x": tw.Float(0.0, 1.0),
        "kernel": tw.Categorical(["linear", "poly"]),
        "degree": tw.Int(2, 5, when={"kernel": "poly"}),
    }
)


def make_study(storage: Any, *, name: str = "study", trials: int = 3, **options: Any) -> tw.Study:
    """A study with some finished trials, the better the dearer."""
    study = tw.create_study(
        SPACE, goal=tw.Tradeoff(alpha=0.1), seed=1, storage=storage, name=name, **options
    )
    for number in range(trials):
        x = (number + 1) / (trials + 1)
        study.add({"x": x, "kernel": "linear"}, value=x, cost=10.0 * x)
    return study


def paint(study: tw.Study, *, models: bool = True) -> Picture:
    """What a page shows, without the figures, which need models."""
    keys = ("number", "state", "value", "cost")
    columns = [{"key": k, "title": k, "format": "number", "parameter": False} for k in keys]
    columns += [{"key": n, "title": n, "format": "text", "parameter": True} for n in study.space]
    rows = [
        [t.number, t.state.value, t.value, t.cost, *(t.params.get(n) for n in study.space)]
        for t in study.trials
    ]
    goal = {"name": study.name, "goal": study.goal.describe(), "cost": {"name": study.cost_name}}
    return {"format": 1, "study": goal, "trials": {"columns": columns, "rows": rows}, "charts": {}}


def client(storage: Any, *, token: str | None = TOKEN, **options: Any) -> TestClient:
    """A browser, in a way, at the address of the server."""
    access = Access(token, **options)
    made = app(storage, token=token, access=access, paint=paint)
    return TestClient(made, base_url="http://localhost:8321", raise_server_exceptions=True)


def steer(
    browser: TestClient, verb: str, body: Any, *, name: str = "study", **headers: str
) -> tuple[int, str]:
    """The status of the answer to a command, and what it says."""
    sent = {"x-tradewind-token": TOKEN, "content-type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"content": body} if isinstance(body, (bytes, str)) else {"json": body}
    answer = browser.post(f"/api/study/{name}/{verb}", headers=sent, **given)
    said = answer.json()
    return answer.status_code, said.get("done") or said.get("error")


def database(folder: Path) -> str:
    return str(folder / "runs.db")
