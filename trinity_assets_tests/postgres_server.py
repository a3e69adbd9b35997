"""A real PostgreSQL server of a test's own: a cluster in a temporary directory, on a free port, with a password.

Belongs here: finding Debian's binaries, starting and ending the server, and schemas that keep tests apart. The server
runs as the user ``postgres`` where the tests run as root, which it refuses to do. It does not sync: it must survive
tests, not power failures.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
import sqlalchemy as sa

URL_VARIABLE = "TRINITY_TEST_POSTGRES_URL"
PASSWORD = "pg-hunter22/@:%"  # noqa: S105 - of a server that lives for one test
"""With everything that a URL must quote."""

STARTING_S = 60.0
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "listen_addresses": "127.0.0.1"}


def binaries() -> Path | None:
    """The newest directory of PostgreSQL's programs, where Debian's package puts them; None where there is none."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


def unavailable() -> None:
    """Skip the test, or with ``CI=true``, where a server must be there, fail it."""
    message = f"no PostgreSQL: install Debian's package postgresql, or set {URL_VARIABLE} to a server's URL"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


class PostgresServer:
    """A server while the ``with`` block lasts; it may be stopped and started meanwhile."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._home = Path(tempfile.mkdtemp(prefix="trinity-postgres-"))
        self._data = self._home / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()
        self.url = (
            sa.URL.create("postgresql", "trinity", PASSWORD, "127.0.0.1", self._port, "postgres")
            .render_as_string(hide_password=False)
        )  # fmt: skip

    def __enter__(self) -> Self:
        password = self._home / "password"
        password.write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(password, "postgres")
            shutil.chown(self._home, "postgres")
        made = subprocess.run(
            self._as_user("initdb", "-D", str(self._data), "-U", "trinity", "-A", "scram-sha-256",
                          f"--pwfile={password}", "-E", "UTF8", "--locale=C", "--no-sync"),
            capture_output=True, text=True,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it lets somebody in."""
        settings = _SETTINGS | {"port": str(self._port), "unix_socket_directories": str(self._home)}
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._home / "log").open("ab") as log:
            command = self._as_user("postgres", "-D", str(self._data), *arguments)
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._home)
        deadline = time.monotonic() + STARTING_S
        while True:
            try:
                with connected(self.url):
                    return
            except sa.exc.OperationalError:
                assert self._process.poll() is None and time.monotonic() < deadline, (self._home / "log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        """End it at once, as a crash would: connections break in the middle of what they do."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
            self._process = None

    def _as_user(self, program: str, *arguments: str) -> list[str]:
        command = [str(self._programs / program), *arguments]
        if os.geteuid() != 0:
            return command
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]


def _free_port() -> int:
    """A port below those that the kernel hands out: nobody is given it by chance while the server is down."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    """A connection on which each statement is committed at once."""
    parsed = sa.make_url(url).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(parsed, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        yield connection


@contextlib.contextmanager
def schema_of_its_own(url: str) -> Iterator[str]:
    """The URL of an empty schema on the server at ``url``, which is gone afterwards."""
    name = f"trinity_test_{uuid.uuid4().hex[:12]}"
    with connected(url) as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    try:
        parsed = sa.make_url(url).update_query_dict({"options": f"-csearch_path={name}"})
        yield parsed.render_as_string(hide_password=False)
    finally:
        with connected(url) as connection:
            connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
