"""URLs of PostgreSQL stores, and passwords that no message may show. No server is needed."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
from typing import NoReturn
from urllib.parse import quote

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed")

from tradewind.errors import StorageError
from tradewind.log import postgres_database
from tradewind.log.postgres import PostgresStore


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """One attempt, and no wait for a name service."""
    monkeypatch.setattr(postgres_database, "FIRST_PATIENCE", 0.0)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)


def unknown(host: str, *args: object, **options: object) -> NoReturn:
    raise socket.gaierror(-2, f"{host} is not known")


@pytest.mark.parametrize("between", ["", "!", "@", ":", "/", "?", "#", "&", "%25", "%zz", "%", " "])
@pytest.mark.parametrize("where", ["127.0.0.1:1/db", "no.such.host/db", "127.0.0.1:x/db"])
def test_no_message_shows_a_password(between: str, where: str) -> None:
    shown = []
    try:
        store = PostgresStore(f"postgresql://user:zq7{between}xq8@{where}")
        shown.append(repr(store))
        store.names()
    except (StorageError, ValueError) as error:
        shown += [repr(error), repr(error.__cause__), repr(error.__context__)]
    assert len(shown) > 1
    assert "zq7" not in "".join(shown)
    assert "xq8" not in "".join(shown)


def test_a_password_in_the_query_is_not_shown() -> None:
    store = PostgresStore("postgresql://127.0.0.1:1/db?user=me&password=s3cret")
    with pytest.raises(StorageError) as error:
        store.names()
    assert "s3cret" not in repr(store) + str(error.value)


def test_a_store_shows_where_it_is() -> None:
    store = PostgresStore("postgresql://me:s3cret@db.example:5433/studies")
    assert repr(store) == "<store in PostgreSQL at db.example:5433, database 'studies'>"


def test_a_server_that_is_not_there_is_named() -> None:
    store = PostgresStore("postgresql://me:s3cret@127.0.0.1:1/studies")
    with pytest.raises(StorageError, match=r"PostgreSQL at 127\.0\.0\.1:1, .* cannot"):
        store.names()


def test_a_pickled_store_contains_the_password() -> None:
    store = PostgresStore("postgresql://me:s3cret@db.example:5433/studies")
    assert "s3cret" in pickle.loads(pickle.dumps(store)).database._conninfo


@pytest.mark.parametrize("url", ["", "mysql://host/db", "host=localhost", "postgresql:/db"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must begin with postgresql://"):
        PostgresStore(url)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="must be text"):
        PostgresStore(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pool_size must be at least 1"):
        PostgresStore("postgresql://host/db", pool_size=0)


@pytest.mark.parametrize(
    "password", ["p@x", "@", "p@", "p@@x", "p/x", "p%40@x", "p?x@y", "%", "p%zz"]
)
def test_a_password_with_special_characters_gets_its_hint(password: str) -> None:
    with pytest.raises(ValueError, match="write special characters as %-codes: @ as %40") as error:
        PostgresStore(f"postgresql://user:{password}@host/db")
    assert f":{password}@" not in str(error.value)
    PostgresStore(f"postgresql://user:{quote(password, safe='')}@host/my%40db?host=%40socket")


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ValueError, match=r"no option 'sslmod' \(did you mean 'sslmode'\?\)"):
        PostgresStore("postgresql://me:s3cret@host/db?connect_timeout=3&sslmod=require")
    for hidden in ("postgresql://me:s/3?cret=1@host/db", "postgresql://host/db?password=s3&cret=1"):
        with pytest.raises(ValueError, match="cannot be read") as error:
            PostgresStore(hidden)
        assert "cret" not in str(error.value)


def test_without_psycopg_the_package_is_named() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from tradewind.log.stores import open_store\n"
        "try: open_store('postgresql://host/db')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'psycopg[binary,pool]'" in done.stdout
