"""The server as a process: it says where it is, ends when it is told to, and lives with its
store."""

from __future__ import annotations

import gzip
import signal
import socket
import time
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

import tradewind as tw
from tests.dashboard.pages import database, make_study
from tests.dashboard.serving import Dashboard, dashboard, driver
from tests.postgres import Server
from tradewind.dashboard import serve
from tradewind.dashboard.server import access_for, address_of
from tradewind.errors import NoSuchStudy, StorageError

pytestmark = pytest.mark.slow

FINISHING = "Figures are being finished. Ctrl-C ends at once.\n"  # on a slow machine


def until(messages: Queue[tuple[str, Any]], text: str) -> str:
    """The first message in which this text stands."""
    while True:
        kind, data = messages.get(timeout=60)
        assert kind != "end"
        if text in str(data):
            return kind


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One server for the tests that do not end it."""
    path = database(tmp_path_factory.mktemp("server"))
    make_study(path)
    with dashboard(path) as found:
        yield found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_quietly_even_while_pages_are_open(
    tmp_path: Path, number: signal.Signals
) -> None:
    make_study(database(tmp_path))
    with dashboard(database(tmp_path)) as server, server.events() as messages:
        code, said = server.tell(number)
        while messages.get(timeout=60)[0] != "end":
            pass
    assert (code, said) == (0, "ended\n")


def test_the_token_is_said_once_in_the_address_behind_the_hash(server: Dashboard) -> None:
    assert len(server.token) >= 32
    assert "\n".join(server.lines).count(server.token) == 1
    assert server.address == f"http://127.0.0.1:{server.port}/#token={server.token}"


def test_the_server_cannot_be_reached_from_elsewhere(server: Dashboard) -> None:
    with socket.socket() as other:
        other.settimeout(5)
        assert other.connect_ex(("127.0.0.2", server.port)) != 0


def test_the_page_and_its_data_are_compressed(server: Dashboard) -> None:
    for path in ["/", "/assets/page.js", "/assets/live.js", "/api/study/study"]:
        answer = server.get(path)
        assert answer.headers["content-encoding"] == "gzip", path
        plain = server.get(path, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.status_code == answer.status_code == 200
    assert gzip.compress(plain.content)


def test_a_file_that_has_not_changed_is_not_sent_again(server: Dashboard) -> None:
    tag = server.get("/assets/page.js").headers["etag"]
    again = server.get("/assets/page.js", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")


def test_every_file_of_the_page_is_there_and_no_other(server: Dashboard) -> None:
    text = server.get("/").text
    names = [part.partition('"')[0] for part in text.split("/assets/")[1:]]
    assert {"page.js", "live.js", "begin.js", "style.css", "live.css"} <= set(names)
    assert all(server.get(f"/assets/{name}").status_code == 200 for name in names)
    for path in ["/assets/../page.py", "/assets/%2e%2e%2fpage.py", "/assets/page.py", "/x"]:
        assert server.get(path).status_code == 404


@pytest.mark.parametrize("name", ["a/b", "..", "<b>&\"'", "λ \n?#%", "study/pause"])
def test_a_study_may_have_any_name(tmp_path: Path, name: str) -> None:
    make_study(database(tmp_path), name=name)
    with dashboard(database(tmp_path)) as server:
        assert server.get("/api/studies").json()["studies"][0]["name"] == name
        found = server.get("/api/study", params={"name": name})
        assert found.json()["study"]["name"] == name
        headers = {"x-tradewind-token": server.token}
        answer = server.http.post(
            "/api/study/pause", params={"name": name}, json={}, headers=headers
        )
    assert answer.status_code == 200
    assert tw.load_study(database(tmp_path), name).paused is not None


def test_messages_arrive_while_a_driver_in_another_process_works(server: Dashboard) -> None:
    storage = server.get("/api/studies").json()["storage"]
    server.steer("resume", {})
    with server.events() as messages, driver(storage, seconds=0.3):
        until(messages, "running")
        until(messages, "'rows': {")
        status, _ = server.steer("pause", {"reason": "enough for now"})
        assert status == 200
        assert until(messages, "enough for now") == "status"


def test_a_page_that_reads_slowly_does_not_hold_up_others(server: Dashboard) -> None:
    server.steer("resume", {})
    with server.http.stream("GET", "/api/events", params={"study": "study"}), server.events() as it:
        assert server.steer("pause", {"reason": "still answers"})[0] == 200
        until(it, "still answers")


def test_a_dashboard_for_reading_only_shows_no_token_and_refuses_changes(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))
    with dashboard(database(tmp_path), read_only=True) as server:
        assert server.token == ""
        about = server.get("/api/studies").json()
        assert (about["can_steer"], about["may_steer"]) == (False, False)
        assert server.steer("pause", {})[0] == 403
    assert study.paused is None


def test_studies_in_postgresql_are_shown_and_steered(postgres_url: str) -> None:
    study = make_study(postgres_url)
    with dashboard(postgres_url, name="study") as server, server.events() as messages:
        assert "?study=study#token=" in server.address
        assert len(server.get("/api/study/study").json()["trials"]["rows"]) == 3
        trial = study.ask()
        until(messages, f"[{trial.number}, 'running'")
        assert server.steer("stop", {"trial": trial.number})[0] == 200
        until(messages, "abandoned")
    assert study.trials[trial.number].error == "stopped from the dashboard"


def test_a_database_that_does_not_answer_is_said_and_comes_back(
    postgres_server: Server, postgres_url: str
) -> None:
    make_study(postgres_url)
    with dashboard(postgres_url) as server, server.events() as messages:
        until(messages, "importance")
        postgres_server.freeze()
        try:
            until(messages, "cannot be reached")
            status, said = server.steer("pause", {})
            assert status == 503
            assert "cannot be reached" in said
        finally:
            postgres_server.thaw()
        until(messages, "'away': {'=': None}")
        deadline = time.monotonic() + 60
        while server.steer("pause", {})[0] != 200:
            assert time.monotonic() < deadline


def test_a_store_without_a_study_is_shown_and_waits(tmp_path: Path) -> None:
    with dashboard(database(tmp_path)) as server:
        assert server.get("/api/studies").json()["studies"] == []
        assert server.get("/api/study/study").status_code == 404
        make_study(database(tmp_path))
        assert server.get("/api/study/study").status_code == 200


# ---- what cannot be served ----


def test_a_port_that_is_taken_is_an_error_that_says_so(tmp_path: Path) -> None:
    make_study(database(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"port must be free.*:{port}.*give another port"):
            serve(database(tmp_path), port=port, open_browser=False)


def test_an_address_that_cannot_be_had_is_an_error(tmp_path: Path) -> None:
    make_study(database(tmp_path))
    with pytest.raises(ValueError, match="cannot listen"):
        serve(database(tmp_path), host="no such host.invalid", port=0, open_browser=False)
    for port in (-1, 70_000, 3.5):
        with pytest.raises(ValueError, match="port must be"):
            serve(database(tmp_path), port=port, open_browser=False)  # type: ignore[arg-type]


def test_a_name_that_is_not_there_is_an_error_that_lists_what_is(tmp_path: Path) -> None:
    make_study(database(tmp_path), name="reviews")
    with pytest.raises(NoSuchStudy, match=r"review.*did you mean 'reviews'"):
        serve(database(tmp_path), name="review", open_browser=False)


def test_a_study_in_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRADEWIND_STORAGE", raising=False)
    with pytest.raises(StorageError, match="in memory"):
        serve(None, open_browser=False)


def test_an_address_for_others_names_the_machine_and_always_has_a_token() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        access = access_for("0.0.0.0", "secret", read_only=True)
        address = address_of(listener, "0.0.0.0", access, "a b")
    assert address.startswith(f"http://{socket.gethostname()}:")
    assert address.endswith("/?study=a%20b#token=secret")


def test_others_are_warned_of(tmp_path: Path) -> None:
    make_study(database(tmp_path))
    with dashboard(database(tmp_path), host="127.0.0.1") as server:
        server.tell()
    with dashboard(database(tmp_path), host="0.0.0.0") as server:
        assert server.http.get(f"http://127.0.0.1:{server.port}/api/studies").status_code == 401
        _, said = server.tell()
    assert "not encrypted" in said


def test_a_server_that_computes_figures_ends_quietly(tmp_path: Path) -> None:
    make_study(database(tmp_path), trials=60)
    with dashboard(database(tmp_path)) as server:
        server.get("/api/study/study")  # the figures are computed from now on
        code, said = server.tell()
    assert (code, said.removesuffix(FINISHING)) == (0, "ended\n")
