"""Clients that stall cannot hold up the server, and the server says and checks how it is called."""

from __future__ import annotations

import asyncio
import socket
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.pages import TOKEN, database, make_study
from tradewind.dashboard import connections, serve
from tradewind.dashboard import server as server_module
from tradewind.dashboard.connections import Server
from tradewind.dashboard.guard import Access
from tradewind.dashboard.server import access_for
from tradewind.log.stores import open_store

SOON = 0.2  # seconds


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server in a thread, which has little patience."""
    monkeypatch.setattr(connections, "_REQUEST", SOON)
    monkeypatch.setattr(connections, "_READ", SOON)
    make_study(database(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(open_store(database(tmp_path)), Access(TOKEN))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join()


def until_it_ends(client: socket.socket, seconds: float = 60.0) -> bytes:
    """What the server sends until it closes the connection."""
    client.settimeout(seconds)
    found = b""
    try:
        while part := client.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /api/study/study/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
        b"Content-Type: application/json\r\nX-Tradewind-Token: a-secret\r\n\r\n{",
    ],
)
def test_a_request_that_does_not_arrive_is_given_up(port: int, begin: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(begin)
        assert until_it_ends(client) == b""


def test_a_request_after_another_one_is_given_up_too(port: int) -> None:
    one = b"GET /none HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(one + b"\r\n" + one)
        assert until_it_ends(client).count(b"HTTP/1.1 404") == 1


def test_a_client_that_listens_may_take_its_time(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"GET /api/events?study=study HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with pytest.raises(TimeoutError):
            until_it_ends(client, 3 * SOON)


def test_a_client_that_does_not_read_is_cut_off(port: int) -> None:
    def ask_on(client: socket.socket) -> None:
        while True:
            client.sendall(b"GET /assets/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)

    client = socket.create_connection(("127.0.0.1", port), timeout=60)
    with client, pytest.raises(ConnectionError):
        ask_on(client)


# ---- how a server is called ----


def test_an_address_may_be_written_in_another_way_than_browsers_do() -> None:
    access = access_for("2001:DB8:0::7", "t", read_only=False)
    assert access.hosts == {"[2001:db8::7]"}


@pytest.mark.parametrize("token", ["", "short", "with space", "a+b&c=d#e", "ä" * 9, "x" * 201])
def test_a_token_that_an_address_cannot_hold_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(ValueError, match="token must have 8 to 200 letters"):
        serve(tmp_path / "runs.db", token=token, open_browser=False)


@pytest.mark.parametrize("host", ["", " "])
def test_a_host_must_be_named(tmp_path: Path, host: str) -> None:
    with pytest.raises(ValueError, match="host must be a name or an address"):
        serve(tmp_path / "runs.db", host=host, open_browser=False)


def test_a_notebook_is_told_to_use_a_terminal(tmp_path: Path) -> None:
    async def call() -> None:
        with pytest.raises(RuntimeError, match="in a terminal"):
            serve(tmp_path / "runs.db", open_browser=False)

    asyncio.run(call())


@pytest.mark.parametrize(("name", "opens"), [("firefox", True), ("lynx", False)])
def test_a_browser_opens_unless_it_would_take_the_terminal(
    name: str, opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = threading.Event()

    class Browser:
        basename = name

        def open(self, address: str) -> None:
            opened.set()

    monkeypatch.setattr(webbrowser, "get", Browser)
    server_module._open_browser("http://localhost/")
    assert opened.wait(60 if opens else 0.1) is opens
