"""What the server lets through: by name, by origin, by token, by form."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.pages import TOKEN, client, database, make_study, steer
from tests.studies import events_of
from tradewind.dashboard.guard import LONGEST_BODY, Access, Guard, Refusal, check
from tradewind.dashboard.server import access_for

JSON = (b"content-type", b"application/json")
RIGHT = [(b"host", b"localhost:8321"), (b"x-tradewind-token", TOKEN.encode()), JSON]


def refusal(
    method: str = "GET", *headers: tuple[bytes, bytes], path: str = "/api/studies", **access: Any
) -> int | None:
    """The status with which a request is refused; None if it is served."""
    token = access.pop("token", TOKEN)
    try:
        check(Access(token, **access), method, path, headers or RIGHT)
    except Refusal as refused:
        return refused.status
    return None


def without(name: bytes, *others: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [*(pair for pair in RIGHT if pair[0] != name), *others]


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1:8321", "[::1]:8321", "LOCALHOST:80"]
)
def test_the_server_answers_to_the_names_of_this_machine(host: str) -> None:
    assert refusal("GET", (b"host", host.encode())) is None


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "evil.example:8321", "127.0.0.1.evil.example"),
        *("", "192.168.0.7", "0.0.0.0", "[::2]", "127.0.0.1@evil.example", "localhost@evil"),
        *("[::1].evil.example", "localhost:1@evil.example", "127.0.0.1:80:80", "[::1", "::1]"),
    ],
)
def test_a_foreign_name_that_was_pointed_at_this_machine_is_refused(host: str) -> None:
    for method in ("GET", "POST"):
        assert refusal(method, *without(b"host", (b"host", host.encode()))) == 421


def test_a_request_has_exactly_one_host() -> None:
    assert refusal("GET", (b"host", b"localhost"), (b"host", b"localhost")) == 421
    assert refusal("GET", (b"accept", b"*/*")) == 421


def test_a_host_that_was_given_is_a_name_of_the_server() -> None:
    headers = [(b"host", b"box.lan:8321")]
    assert refusal("GET", *headers, hosts=frozenset({"box.lan"})) is None
    assert refusal("GET", *headers) == 421


def test_a_server_on_all_interfaces_answers_to_addresses_but_not_to_names() -> None:
    access = access_for("0.0.0.0", "t", read_only=False)
    assert access.closed
    for host, expected in [("10.0.0.7:80", True), ("[fe80::1]", True), ("evil.example", False)]:
        try:
            check(access, "GET", "/", [(b"host", host.encode())])
        except Refusal:
            assert not expected
        else:
            assert expected


@pytest.mark.parametrize("site", ["cross-site", "same-site", "x"])
def test_requests_of_other_sites_are_refused(site: str) -> None:
    other = (b"sec-fetch-site", site.encode())
    assert refusal("GET", *RIGHT, other) == 403
    assert refusal("POST", *RIGHT, other) == 403
    assert refusal("GET", *RIGHT, other, path="/assets/page.js") == 403


def test_a_link_on_another_site_may_open_the_page_but_not_the_data() -> None:
    link = [*RIGHT, (b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", b"navigate")]
    assert refusal("GET", *link, path="/") is None
    assert refusal("GET", *link, path="/api/studies") == 403
    assert refusal("POST", *link, path="/") == 403


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "null", "http://localhost", "http://localhost:9999"),
        *("https://localhost:8321", "http://127.0.0.1:8321", "", "http://localhost:8321.evil"),
    ],
)
def test_a_request_from_another_origin_is_refused(origin: str) -> None:
    given = (b"origin", origin.encode())
    assert refusal("POST", *RIGHT, given) == 403
    assert refusal("POST", *RIGHT, (b"origin", b"http://localhost:8321"), given) == 403
    assert refusal("GET", *RIGHT, given) == 403
    assert refusal("GET", *RIGHT, given, path="/") == 403  # a WebSocket asks for it like this


def test_a_change_from_our_own_page_or_from_a_program_is_served() -> None:
    assert refusal("POST", *RIGHT, (b"origin", b"http://localhost:8321")) is None
    assert refusal("POST", *RIGHT) is None


@pytest.mark.parametrize("token", ["", "a-secre", "a-secret ", "A-SECRET", "ä", "x" * 5000])
def test_a_change_needs_the_token(token: str) -> None:
    given = (b"x-tradewind-token", token.encode())
    assert refusal("POST", *without(b"x-tradewind-token", given)) == 401


def test_a_missing_or_second_token_is_refused() -> None:
    assert refusal("POST", *without(b"x-tradewind-token")) == 401
    assert refusal("POST", *RIGHT, RIGHT[1]) == 401


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_change_must_be_json_which_other_sites_cannot_send_unasked(kind: str) -> None:
    given = (b"content-type", kind.encode())
    assert refusal("POST", *without(b"content-type", given)) == 415
    assert refusal("POST", *without(b"content-type")) == 415


@pytest.mark.parametrize("length", [str(LONGEST_BODY + 1), "-1", "x", "9" * 50, "1e3"])
def test_a_body_that_is_announced_as_too_long_is_refused(length: str) -> None:
    assert refusal("POST", *RIGHT, (b"content-length", length.encode())) == 413


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(method: str) -> None:
    assert refusal(method, *RIGHT) == 405


def test_a_dashboard_for_reading_only_refuses_every_change() -> None:
    assert refusal("POST", *RIGHT, read_only=True) == 403
    assert refusal("POST", *RIGHT, token=None) == 403
    assert refusal("GET", *RIGHT, token=None) is None


def test_reading_over_a_network_needs_the_token_but_the_page_has_no_data() -> None:
    plain = [(b"host", b"localhost")]
    assert refusal("GET", *plain, closed=True) == 401
    assert refusal("GET", *RIGHT, closed=True) is None
    assert refusal("GET", *plain, closed=True, path="/") is None


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_reading_on_this_machine_needs_no_token(host: str) -> None:
    assert not access_for(host, "t", read_only=False).closed


# ---- over HTTP ----


def test_a_refused_change_leaves_the_log_alone(tmp_path: Path) -> None:
    study = make_study(database(tmp_path))
    before = events_of(study)
    with client(database(tmp_path)) as browser:
        for headers in [
            {"x_tradewind_token": "wrong"},
            {"x_tradewind_token": ""},
            {"host": "evil.example"},
            {"origin": "http://evil.example"},
            {"sec_fetch_site": "cross-site"},
            {"content_type": "text/plain"},
        ]:
            assert steer(browser, "pause", {}, **headers)[0] in (401, 403, 415, 421)
        assert steer(browser, "pause", "x" * (LONGEST_BODY + 1))[0] == 413
    assert events_of(study) == before


def test_a_refused_request_is_read_before_it_is_answered() -> None:
    seen: list[str] = []

    async def receive() -> dict[str, Any]:
        seen.append("read")
        return {"type": "http.request", "body": b"{}", "more_body": len(seen) < 3}

    async def send(message: Any) -> None:
        seen.append(message["type"])

    async def app(*_: object) -> None:
        raise AssertionError("it was let through")

    scope = {"type": "http", "method": "POST", "path": "/api/study/a/pause", "headers": RIGHT}
    asyncio.run(Guard(app, Access(None))(scope, receive, send))
    assert seen == ["read"] * 3 + ["http.response.start", "http.response.body"]


def test_a_body_that_grows_too_long_is_refused(tmp_path: Path) -> None:
    make_study(database(tmp_path))
    with client(database(tmp_path)) as browser:
        headers = {"x-tradewind-token": TOKEN, "content-type": "application/json"}
        chunks = (b" " * 1000 for _ in range(100))
        answer = browser.post("/api/study/study/pause", content=chunks, headers=headers)
    assert answer.status_code == 413


@pytest.mark.parametrize("path", ["/", "/api/studies", "/assets/page.js", "/none", "/assets/none"])
def test_every_answer_tells_browsers_what_the_page_may_do(tmp_path: Path, path: str) -> None:
    make_study(database(tmp_path))
    with client(database(tmp_path)) as browser:
        answer = browser.get(path)
    policy = answer.headers["content-security-policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert {"script-src 'self'", "style-src 'self'", "connect-src 'self'"} <= set(policy)
    assert {"form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'"} <= set(policy)
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] in ("no-store", "no-cache")
    forbidden = ("access-control", "set-cookie", "server")
    assert not [name for name in answer.headers if name.startswith(forbidden)]


def test_a_refusal_has_the_same_headers(tmp_path: Path) -> None:
    make_study(database(tmp_path))
    with client(database(tmp_path)) as browser:
        answer = browser.get("/", headers={"host": "evil.example"})
    assert answer.status_code == 421
    assert "default-src 'none'" in answer.headers["content-security-policy"]
