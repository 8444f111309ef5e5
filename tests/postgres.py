"""A PostgreSQL server for the tests. It starts when a test first needs it, lives in a temporary
folder, and can be reached only through a socket in that folder."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

USER = "tester"
PLACES = (  # where packages install the programs, if they are not on the path
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Fedora, Red Hat
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/opt/local/lib/postgresql*/bin",
)


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    for place in PLACES:
        folders += sorted(Path("/").glob(place.lstrip("/")), reverse=True)
    for folder in folders:
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    return None


def ordinary_user() -> dict[str, Any]:
    """Options that run a subprocess as an ordinary user: PostgreSQL refuses to run as root."""
    if os.name != "posix" or os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return {}


class Server:
    """A running server for up to `connections` clients. `url()` creates an empty schema in it."""

    def __init__(self, bin: Path, *, connections: int = 60) -> None:
        self._connections = connections
        self._bin = bin
        self._as = ordinary_user()
        self.folder = Path(tempfile.mkdtemp(prefix="twpg-"))
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self._make()
        self.start()

    def _make(self) -> None:
        options = ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-U", USER]
        self._run(self._bin / "initdb", "-D", self.folder / "data", *options)

    def start(self) -> None:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "max_connections": str(self._connections),
            "shared_buffers": "16MB",
        }
        command = [str(self._bin / "postgres"), "-D", str(self.folder / "data")]
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, **self._as
            )
        deadline = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "server.log").read_text(errors="replace"))
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends all connections. SIGQUIT is a crash; the next start recovers from it."""
        self._process.send_signal(how)
        self._process.wait(timeout=60)

    def freeze(self) -> None:
        """Stop every process of the server in its tracks. Its connections stay open."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        server = psutil.Process(self._process.pid)
        for process in (server, *server.children()):  # the server first: it starts the others
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def remove(self) -> None:
        if self._process.poll() is None:
            self.thaw()
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, *, schema: str | None = None) -> str:
        """The URL of a schema; without a name, of a new and empty one."""
        import psycopg

        if schema is None:
            schema = f"s{secrets.token_hex(6)}"
            with psycopg.connect(self._url(), autocommit=True) as db:
                db.execute(f"CREATE SCHEMA {schema}".encode())
        return f"{self._url()}&options={quote(f'-csearch_path={schema}')}"

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement as the administrator."""
        import psycopg

        with psycopg.connect(self._url(), autocommit=True) as db:
            cursor = db.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def _url(self) -> str:
        return f"postgresql://{USER}@/postgres?host={quote(str(self.folder))}"

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self._url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, *command: str | Path) -> None:
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **self._as,
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)


class Standby(Server):
    """A server that follows another one, until it is promoted. It may be stopped meanwhile, and
    then lags behind."""

    def __init__(self, primary: Server) -> None:
        self._primary = primary
        super().__init__(primary._bin, connections=primary._connections)

    def promote(self) -> None:
        """Become a server of its own, which can be written to."""
        self.execute("SELECT pg_promote()")

    def catch_up(self) -> None:
        """Wait until everything that is in the primary server is here."""
        ((there,),) = self._primary.execute("SELECT pg_current_wal_lsn()")
        deadline = time.monotonic() + 60
        while self.execute("SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", (there,)) != [(False,)]:
            if time.monotonic() > deadline:
                raise RuntimeError("the standby server does not catch up")
            time.sleep(0.02)

    def lag(self) -> None:
        """Receive nothing more from the primary server."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.execute("SELECT pg_reload_conf()")
        while self.execute("SELECT FROM pg_stat_wal_receiver"):
            time.sleep(0.02)

    def take_over(self) -> None:
        """Let the primary server crash, and take its place and its address. This server is gone
        then, and the primary has its data."""
        self._primary.stop(signal.SIGQUIT)
        self.promote()
        self.stop()
        shutil.rmtree(self._primary.folder / "data")
        shutil.move(self.folder / "data", self._primary.folder / "data")
        self._primary.start()
        self.remove()

    def _make(self) -> None:
        where = ["-D", self.folder / "data", "-h", self._primary.folder, "-U", USER]
        self._run(self._bin / "pg_basebackup", *where, "-R", "--checkpoint=fast", "--no-sync")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One server per test process."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    bin = programs()
    if bin is None:
        pytest.skip("PostgreSQL's server programs are not installed")
    server = Server(bin)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres_server: Server) -> str:
    """A new, empty schema for one test."""
    return postgres_server.url()
