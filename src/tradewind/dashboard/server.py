"""Serving the dashboard from this process until it is told to end."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import re
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from tradewind.checks import suggest, whole
from tradewind.dashboard.connections import Server
from tradewind.dashboard.guard import Access
from tradewind.dashboard.stores import open_shared, place
from tradewind.dashboard.threads import wait_for_threads
from tradewind.errors import NoSuchStudy, StorageError
from tradewind.log.log import Store
from tradewind.study.studies import Storage

_IN_TERMINALS = ("www-browser", "links", "elinks", "lynx", "w3m")
HOST, PORT = "127.0.0.1", 8321
_SOON, _LAST_WORK = 2.0, 10.0  # seconds that figures may still take, unsaid and said


def serve(
    storage: Storage,
    *,
    host: str = HOST,
    port: int = PORT,
    open_browser: bool = True,
    name: str | None = None,
    token: str | None = None,
    read_only: bool = False,
) -> None:
    """Show the studies of a store in the browser, live, until Ctrl-C or SIGTERM.

    With `name`, the page opens with this study. The address that is printed holds a token; pages
    that have it may steer studies, unless `read_only`. Port 0 takes a free one. The server listens
    on this machine only; if you give another `host`, others can reach it, and need the token even
    to read."""
    _check_no_loop()
    store = open_shared(storage)
    if name is not None:
        _check_name(store, name)
    access = access_for(host, _check_token(token), read_only=read_only)
    with _listening(host, _check_port(port)) as listener:
        address = address_of(listener, host, access, name)
        server = Server(store, access)
        try:
            with server.capture_signals():  # from the moment that people are told of Ctrl-C
                _announce(place(store), address, access)
                if open_browser:
                    _open_browser(address)
                server.run(sockets=[listener])
        finally:
            if not wait_for_threads(_SOON):
                print("Figures are being finished. Ctrl-C ends at once.", file=sys.stderr)
                wait_for_threads(_LAST_WORK)


def access_for(host: str, token: str, *, read_only: bool) -> Access:
    """Who may do what on a server that listens at `host`."""
    address = _address(host)
    everywhere = address is not None and address.is_unspecified
    local = host == "localhost" or (address is not None and address.is_loopback)
    names = {_bracketed(str(address or host)).lower()}  # as browsers write it
    if everywhere:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return Access(token, frozenset(names), everywhere, read_only, closed=not local)


def address_of(listener: socket.socket, host: str, access: Access, name: str | None) -> str:
    """What to open in a browser. The token stands behind the #, which browsers do not send."""
    port = listener.getsockname()[1]
    shown = socket.gethostname() if access.any_address else _bracketed(host)
    query = "" if name is None else f"?study={quote(name, safe='')}"
    secret = f"#token={access.token}" if access.can_steer or access.closed else ""
    return f"http://{shown}:{port}/{query}{secret}"


def _check_port(port: int) -> int:
    if whole("port", port, 0) > 65535:
        raise ValueError(f"port must be at most 65535, but got {port}")
    return int(port)


def _check_token(token: str | None) -> str:
    """This token, which an address must be able to hold, or else a new one."""
    if token is None:
        return secrets.token_urlsafe(24)
    if not re.fullmatch(r"[\w.~-]{8,200}", token, re.ASCII):
        raise ValueError(
            "token must have 8 to 200 letters, digits, or any of - . _ ~ (it is not shown here)"
        )
    return token


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "serve() cannot be called where an event loop runs, as in a notebook: "
        "run `tradewind dashboard` in a terminal"
    )


def _check_name(store: Store, name: str) -> None:
    try:
        names = store.names()
    except StorageError:  # the page will say so, and recover
        return
    if name not in names:
        raise NoSuchStudy(
            f"there is no study {name!r} in {place(store)}{suggest(name, names)}; "
            f"it has {', '.join(map(repr, names)) or 'none'}"
        )


def _announce(where: str, address: str, access: Access) -> None:
    if access.closed:
        print(
            "Others can reach this address. What you and they send is not encrypted: anybody "
            "between you can read it, and the token. See docs/dashboard.md for a safer way.",
            file=sys.stderr,
        )
    print(f"Watching {where}")
    print(f"Open {address}")
    if access.can_steer:
        print("Whoever has this address can change these studies. Keep it to yourself.")
    print("Press Ctrl-C to end.", flush=True)


def _open_browser(address: str) -> None:
    """Open the page in a browser with windows. One that runs in this terminal shows no figures."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:  # there is none
        return
    if getattr(browser, "basename", "") not in _IN_TERMINALS:  # a thread, because some wait
        threading.Thread(target=browser.open, args=(address,), daemon=True).start()


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens at this address; ValueError if it cannot be had."""
    if not host.strip():
        raise ValueError("host must be a name or an address; 0.0.0.0 means all of this machine")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host.strip("[]"), port), family=family, backlog=128)
    except (OSError, UnicodeError) as error:  # UnicodeError: no name can be like this
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise ValueError(
                f"port must be free, but something else listens at {host}:{port}: it may be "
                "another dashboard; give another port, or 0 for any that is free"
            ) from None
        raise ValueError(f"cannot listen at {host}:{port}: {error}") from None
    with listener:
        yield listener


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
