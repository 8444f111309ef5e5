"""Who may ask for what: every request passes here before anything reads it.

The server listens on this machine only, but other web pages that are open in the same browser can
send requests to it. So each request must name this server (a foreign name that was pointed at this
address is refused), must come from our own page, and needs a token to change anything.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from secrets import compare_digest
from typing import Any, TypeAlias

LONGEST_BODY = 64 * 1024  # bytes: a configuration of a thousand parameters fits

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOCAL = ("localhost", "127.0.0.1", "[::1]")
TOKEN = b"x-tradewind-token"
_OWN_SITE = (b"same-origin", b"none")  # none: the user typed the address

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


@dataclass(frozen=True)
class Access:
    """What this server lets through.

    Without a `token`, nobody can change anything. `hosts` are names of this server beside those of
    this machine for itself; with `any_address`, every literal IP address is one, too. With
    `closed`, reading needs the token as well."""

    token: str | None
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    read_only: bool = False
    closed: bool = False

    @property
    def can_steer(self) -> bool:
        return self.token is not None and not self.read_only

    def is_token(self, given: bytes) -> bool:
        """Whether this is the token; it takes equally long for every wrong one."""
        return self.token is not None and compare_digest(given, self.token.encode())


class Refusal(Exception):
    """Why a request is not served, in one sentence, and the status of the answer."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(status, sentence)
        self.status, self.sentence = status, sentence


def check(access: Access, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise a `Refusal` unless this request may be served. `headers` have lower-case names."""
    given: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        given.setdefault(name, []).append(value)
    if method not in ("GET", "POST"):
        raise Refusal(405, "Only GET and POST are answered here.")
    host = _check_host(access, given.get(b"host", []))
    _check_site(host, given, is_page=path == "/" and method == "GET")
    if method == "POST":
        _check_change(access, given)
    elif path.startswith("/api/") and access.closed:
        _check_token(access, given, "read")


def _check_host(access: Access, hosts: list[bytes]) -> bytes:
    name = _host_name(hosts[0].decode("latin-1")) if len(hosts) == 1 else ""
    if name in _LOCAL or name in access.hosts or (access.any_address and _is_address(name)):
        return hosts[0].lower()
    raise Refusal(
        421, "This server is not called that: open it as http://localhost or http://127.0.0.1."
    )


def _check_site(host: bytes, given: dict[bytes, list[bytes]], *, is_page: bool) -> None:
    """Browsers say where a request comes from. A link on another site may open the page, which has
    no data of its own."""
    is_own = all(origin.lower() == b"http://" + host for origin in given.get(b"origin", []))
    is_near = all(site in _OWN_SITE for site in given.get(b"sec-fetch-site", []))
    is_link = is_page and given.get(b"sec-fetch-mode") == [b"navigate"]
    if not is_own or not (is_near or is_link):
        raise Refusal(403, "Requests of other sites are refused.")


def _check_change(access: Access, given: dict[bytes, list[bytes]]) -> None:
    if not access.can_steer:
        raise Refusal(403, "This dashboard is for reading only: start it without --read-only.")
    _check_token(access, given, "change")
    kinds = given.get(b"content-type", [])
    if len(kinds) != 1 or kinds[0].split(b";")[0].strip().lower() != b"application/json":
        raise Refusal(415, "Send JSON, with the content type application/json.")
    length = given.get(b"content-length", [b"0"])[0]
    if not length.isdigit() or len(length) > 9 or int(length) > LONGEST_BODY:
        raise Refusal(413, f"A request may have up to {LONGEST_BODY} bytes.")


def _check_token(access: Access, given: dict[bytes, list[bytes]], what: str) -> None:
    tokens = given.get(TOKEN, [])
    if len(tokens) != 1 or not access.is_token(tokens[0]):
        raise Refusal(
            401,
            f"To {what} something, open the address that the terminal shows: it holds the token.",
        )


def _host_name(host: str) -> str:
    """A Host header without its port, in lower case; empty if it is none."""
    found = re.fullmatch(r"(\[[^]]*\]|[^]:[]*)(:\d*)?", host)
    return "" if found is None else found.group(1).lower()


def _is_address(name: str) -> bool:
    """Whether this is a literal IP address, which no foreign name server can point elsewhere."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class Guard:
    """The outermost layer of the application: refuses, and adds the headers that tell browsers
    what our page may do."""

    def __init__(self, app: App, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, _guarded(send, scope["path"]))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check(self._access, scope["method"], scope["path"], scope["headers"])
        except Refusal as refusal:
            await _read_on(receive)
            await answer(send, refusal)
        else:
            await self._app(scope, receive, send)


async def _read_on(receive: Receive) -> None:
    """Read the body of a refused request, up to the longest that is allowed. If the connection were
    closed before, the client might see that only, and not the answer."""
    size, more = 0, True
    while more and size <= LONGEST_BODY:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)


def _guarded(send: Send, path: str) -> Send:
    """`send`, with our headers in front of every answer."""

    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = b"no-cache" if path.startswith("/assets/") else b"no-store"
            message["headers"] = [
                *message.get("headers", []),
                *_HEADERS,
                (b"cache-control", kept),
            ]
        await send(message)

    return send_guarded


async def answer(send: Send, refusal: Refusal) -> None:
    """Answer with the sentence of a refusal."""
    body = json.dumps({"error": refusal.sentence}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # an unread body must not be taken for the next request
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
