"""A PostgreSQL server of the tests' own: in a temporary directory, on a Unix socket, stopped by its id."""

from __future__ import annotations

import asyncio
import functools
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from citius import pg
from rig import application

PORT = 5432
WAIT_S = 30.0


def find_binaries() -> Path | None:
    """The directory of ``initdb`` and ``postgres``, if there is one."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=_version)
    return versions[-1].parent if versions else None


def _version(path: Path) -> int:
    return int(path.parts[-3]) if path.parts[-3].isdigit() else 0


def unprivileged() -> dict[str, Any]:
    """Arguments of ``Popen`` for a user that PostgreSQL starts as; root is none."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}


class Server:
    """A database cluster that can be started, killed and started again."""

    user = "tester"

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        # Short: the path of a Unix socket has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="pg-"))
        self._as = unprivileged()
        if self._as:
            shutil.chown(self.directory, self._as["user"], self._as["group"])
        self._data = self.directory / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = PORT
        self._settings: dict[str, str] = {}
        self._run(
            "initdb", "-D", str(self._data), "-U", self.user, "-A", "trust", "-E", "UTF8",
            "--locale=C", "--no-sync",
        )  # fmt: skip

    @property
    def dsn(self) -> str:
        return f"host={self.directory} port={self.port} user={self.user} dbname=postgres"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            cwd=self.directory, capture_output=True, text=True, check=False, **self._as,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr

    def trust(self, *lines: str) -> None:
        """Set who may log in how; the last line is for all others."""
        text = "\n".join([*lines, "local all all trust\n"])
        (self._data / "pg_hba.conf").write_text(text)
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    def listen(self) -> None:
        """Listen on a port of 127.0.0.1 too; before ``start``."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._settings["listen_addresses"] = "127.0.0.1"

    def secure(self, certificate: str, key: str, authorities: str) -> None:
        """Listen with TLS; before ``start``."""
        self.listen()
        for name, source in (("crt", certificate), ("key", key), ("root", authorities)):
            path = self._data / f"server.{name}"
            path.write_bytes(Path(source).read_bytes())
            path.chmod(0o600)
            if self._as:
                shutil.chown(path, self._as["user"], self._as["group"])
        self._settings |= {
            "ssl": "on", "ssl_cert_file": "server.crt",
            "ssl_key_file": "server.key", "ssl_ca_file": "server.root",
        }  # fmt: skip

    def start(self, **settings: str) -> None:
        options = (
            {
                "listen_addresses": "",
                "unix_socket_directories": str(self.directory),
                "fsync": "off",
                "max_connections": "40",
                "shared_buffers": "16MB",
                "port": str(self.port),
            }
            | self._settings
            | settings
        )
        arguments = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self._data), *arguments],
                cwd=self.directory, stdout=subprocess.DEVNULL, stderr=log, **self._as,
            )  # fmt: skip
        until = time.monotonic() + WAIT_S
        while subprocess.run(
            [
                str(self._binaries / "pg_isready"),
                "-q",
                "-h",
                str(self.directory),
                "-p",
                str(self.port),
            ],
            check=False,
        ).returncode:
            assert self._process.poll() is None, (self.directory / "log").read_text()
            assert time.monotonic() < until, "PostgreSQL does not start"
            time.sleep(0.05)  # a process is started for each look

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop at once; SIGQUIT without a shutdown of the database, as if it had crashed."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(WAIT_S)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


# An application under `citius serve`; its database is in the variable DSN.
APP = application("postgres_app")


def get(server: Any, path: str) -> tuple[int, bytes]:
    """A response of a server under test: status and content."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def pooled(act: Any = None, **options: Any) -> Any:
    """A test whose pool is open: ``async def test(pool)``."""
    if act is None:
        return functools.partial(pooled, **options)

    def test(server: Server) -> None:
        async def main() -> None:
            async with pg.Pool(server.dsn, **options) as pool:
                await asyncio.wait_for(act(pool), 100)

        asyncio.run(main())

    test.__name__, test.__doc__ = act.__name__, act.__doc__
    return test
