"""A dashboard and a driver in processes of their own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue
from typing import Any

import httpx2

from tests.studies import script

SERVE = """
import json, sys
from tradewind.dashboard import serve
serve(sys.argv[1], open_browser=False, **json.loads(sys.argv[2]))
print("ended")
"""

DRIVE = """
import sys, time
import tradewind as tw

def objective(trial):
    time.sleep(float(sys.argv[3]))
    return {"value": trial.params["x"], "cost": 1.0 + 9.0 * trial.params["x"] ** 2}

study = tw.load_study(sys.argv[1], sys.argv[2])
print("driving", flush=True)
study.optimize(objective, n_trials=10_000, show_progress=False)
"""


class Dashboard:
    """A running server: its address, its token, and a client."""

    def __init__(self, storage: str, **options: Any) -> None:
        self.process = script(SERVE, storage, json.dumps({"port": 0, **options}))
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if line.startswith("Press"):
                break
        found = re.search(r"Open (http://\S+?/)(\S*)", "\n".join(self.lines))
        assert found, (self.lines, self.process.stderr and self.process.stderr.read())
        self.url, rest = found.group(1), found.group(2)
        self.address = self.url + rest
        self.port = int(self.url.rstrip("/").rpartition(":")[2])
        self.token = rest.partition("#token=")[2]
        self.http = httpx2.Client(base_url=self.url, timeout=60, trust_env=False)

    def get(self, path: str, **options: Any) -> Any:
        return self.http.get(path, **options)

    def steer(self, verb: str, body: Any, *, name: str = "study") -> tuple[int, str]:
        headers = {"x-tradewind-token": self.token}
        answer = self.http.post(f"/api/study/{name}/{verb}", json=body, headers=headers)
        said = answer.json()
        return answer.status_code, said.get("done") or said["error"]

    @contextmanager
    def events(self, name: str = "study") -> Iterator[Queue[tuple[str, Any]]]:
        """The messages about a study, as they come."""
        after = self.get(f"/api/study/{name}").headers["x-tradewind-stream"]
        found: Queue[tuple[str, Any]] = Queue()
        query = {"study": name, "after": after}
        with self.http.stream("GET", "/api/events", params=query, timeout=60) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert "content-encoding" not in answer.headers
            lines = answer.iter_lines()

            def read() -> None:
                kind = ""
                try:
                    for line in lines:
                        kind = line.removeprefix("event: ") if line.startswith("event") else kind
                        if line.startswith("data: "):
                            found.put((kind, json.loads(line.removeprefix("data: "))))
                except httpx2.HTTPError:
                    pass  # the test or the server has ended the stream
                found.put(("end", None))

            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            yield found
        thread.join(30)

    def tell(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Tell the server to end; its exit code and its last words."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err

    def close(self) -> None:
        self.http.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextmanager
def dashboard(storage: str, **options: Any) -> Iterator[Dashboard]:
    server = Dashboard(storage, **options)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def driver(storage: str, name: str = "study", *, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A process that runs trials of this study, of so many seconds each."""
    process = script(DRIVE, storage, name, seconds)
    assert process.stdout is not None
    assert process.stdout.readline() == "driving\n", process.stderr and process.stderr.read()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
