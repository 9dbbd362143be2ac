"""Databases that contestants need: started, filled and stopped by the lab, never a contestant's CPU time.

A contestant names them (``services = ["postgresql"]``, ``["redis"]``), and gets where they are in its
environment (``DATABASE_URL``, ``REDIS_URL``). One server of each serves a whole run, so that all contestants
find the same data; no workload writes. It runs beside the load generator. What the service itself costs is
recorded apart.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from citius_lab import launch
from citius_lab.definitions import folder
from citius_lab.errors import LaunchError
from citius_lab.workloads import code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import BinaryIO

# It has no types.
msgpack: Any = import_module("msgpack")

ServiceName = Literal["postgresql", "redis"]


def missing(names: Iterable[str]) -> str | None:
    """Return why a service cannot be started on this machine, ``None`` if all can."""
    if "postgresql" in names and postgresql_binaries() is None:
        return "needs PostgreSQL's initdb and postgres (Debian: postgresql)"
    if "redis" in names and redis_server() is None:
        return "needs redis-server (Debian: redis-server)"
    return None


def redis_server() -> str | None:
    """Return the program, Redis' or Valkey's."""
    return shutil.which("redis-server") or shutil.which("valkey-server")


class Service(Protocol):
    """A database that runs."""

    @property
    def pid(self) -> int:
        """The process that started all others of it."""
        ...

    def environment(self) -> dict[str, str]:
        """Return what a contestant's environment says of it."""
        ...

    def stop(self) -> None:
        """End it at once and remove what it wrote."""
        ...


def postgresql_binaries() -> Path | None:
    """Return the directory of ``initdb`` and ``postgres``, the newest where there are several."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/postgres")
    numbered = [(int(path.parts[-3]), path) for path in versions if path.parts[-3].isdigit()]
    return max(numbered)[1].parent if numbered else None


class Postgresql:
    """A cluster in a temporary directory, with the tables of ``lab/workloads/db.sql``.

    It listens on 127.0.0.1 alone, on a free port, and asks for a password that is made for it.

    Args:
        cpus: CPUs that it may use; all if empty.

    Raises:
        LaunchError: It does not start, or its tables cannot be made.
    """

    def __init__(self, cpus: Iterable[int]) -> None:
        binaries = postgresql_binaries()
        if binaries is None:
            raise LaunchError("PostgreSQL is not installed: no initdb (Debian: postgresql)")
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="citius-lab-pg-"))
        self._password = secrets.token_hex(16)
        self.port = launch.free_port()
        self._process: launch.Guarded | None = None
        try:
            self._start(cpus)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The process that started all others of the cluster."""
        assert self._process is not None, "it has been started"
        return self._process.pid

    @property
    def url(self) -> str:
        """Where contestants find it."""
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{DATABASE}"

    def environment(self) -> dict[str, str]:
        """Return what a contestant's environment says of it."""
        return {"DATABASE_URL": self.url}

    def stop(self) -> None:
        """End it at once and remove what it wrote."""
        if self._process is not None:
            self._process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self, cpus: Iterable[int]) -> None:
        data, password = self._folder / "data", self._folder / "password"
        password.write_text(self._password)
        for path in (self._folder, password) if unprivileged() else ():
            shutil.chown(path, NOBODY, NOGROUP)
        self._run(
            "initdb", "-D", str(data), "-U", USER, "-A", "scram-sha-256", "--pwfile", str(password),
            "-E", "UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        settings = SETTINGS | {"unix_socket_directories": str(self._folder)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        words = [str(self._binaries / "postgres"), "-D", str(data), "-p", str(self.port), *options]
        with (self._folder / "log").open("ab") as log:
            self._process = launch.Guarded(
                [*unprivileged(), *words], cwd=self._folder, cpus=cpus, stdout=log.fileno()
            )
        self._wait_until_it_accepts()
        self._sql("postgres", f"CREATE DATABASE {DATABASE}")
        self._sql(DATABASE, (folder("workloads") / "db.sql").read_text())

    def _wait_until_it_accepts(self) -> None:
        deadline = time.monotonic() + START_S
        while not self._accepts():
            assert self._process is not None, "it has been started"
            if self._process.ended() is not None or time.monotonic() > deadline:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise LaunchError(f"PostgreSQL does not start; the end of its log:\n{said}")
            time.sleep(0.05)

    def _accepts(self) -> bool:
        ready = str(self._binaries / "pg_isready")
        words = [ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(words, check=False).returncode == 0

    def _sql(self, database: str, text: str) -> None:
        words = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port))
        self._run("psql", *words, "-U", USER, "-d", database, text=text)

    def _run(self, program: str, *arguments: str, text: str = "") -> None:
        done = subprocess.run(
            [*unprivileged(), str(self._binaries / program), *arguments],
            cwd=self._folder,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PGPASSWORD": self._password, "LC_ALL": "C.UTF-8"},
        )
        if done.returncode != 0:
            raise LaunchError(f"PostgreSQL: {program} failed: {done.stderr.strip()[-800:]}")


class Redis:
    """A server in a temporary directory, with the contract's records as MessagePack: ``record:0`` to ``999``.

    It listens on 127.0.0.1 alone, on a free port, and asks for a password that is made for it. It writes no
    file.

    Args:
        cpus: CPUs that it may use; all if empty.

    Raises:
        LaunchError: It does not start.
    """

    def __init__(self, cpus: Iterable[int]) -> None:
        program = redis_server()
        if program is None:
            raise LaunchError("Redis is not installed: no redis-server (Debian: redis-server)")
        self._folder = Path(tempfile.mkdtemp(prefix="citius-lab-redis-"))
        self._password = secrets.token_hex(16)
        self.port = launch.free_port()
        settings = (
            "bind 127.0.0.1",
            f"port {self.port}",
            'save ""',
            f"requirepass {self._password}",
        )
        config = self._folder / "redis.conf"
        config.touch(0o600)
        config.write_text("\n".join((*settings, "io-threads 1", "")))
        with (self._folder / "log").open("ab") as log:
            self._process = launch.Guarded(
                [program, str(config)], cwd=self._folder, cpus=cpus, stdout=log.fileno()
            )
        try:
            self._wait_until_it_accepts()
            self._fill()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def environment(self) -> dict[str, str]:
        """Return what a contestant's environment says of it."""
        return {"REDIS_URL": f"redis://:{self._password}@127.0.0.1:{self.port}/0"}

    def stop(self) -> None:
        """End it at once and remove what it wrote."""
        self._process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_until_it_accepts(self) -> None:
        deadline = time.monotonic() + START_S
        while not launch.port_in_use(self.port):
            if self._process.ended() is not None or time.monotonic() > deadline:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise LaunchError(f"Redis does not start; the end of its log:\n{said}")
            time.sleep(0.02)

    def _fill(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=START_S) as made:
            replies = made.makefile("rb")
            _command(made, replies, b"AUTH", self._password.encode())
            for number, record in enumerate(code_of("transfer-data").records()):
                value: bytes = msgpack.packb(record, use_bin_type=True)
                _command(made, replies, b"SET", f"record:{number}".encode(), value)


def _command(made: socket.socket, replies: BinaryIO, *words: bytes) -> None:
    """Do a command of Redis whose reply is OK."""
    parts = (b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    made.sendall(b"*%d\r\n%s" % (len(words), b"".join(parts)))
    if (reply := replies.readline()) != b"+OK\r\n":
        raise LaunchError(
            f"Redis: {words[0].decode()} failed: {reply.decode(errors='replace').strip()}"
        )


class Services:
    """The services of one run, each started when a contestant first needs it; a context manager."""

    def __init__(self, cpus: Iterable[int]) -> None:
        self._cpus = tuple(cpus)
        self._started: dict[str, Service] = {}

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *_: object) -> None:
        for service in self._started.values():
            service.stop()
        self._started.clear()

    def environment(self, names: Iterable[str]) -> dict[str, str]:
        """Start what is not there yet; return what a contestant's environment says of them.

        Raises:
            LaunchError: One does not start.
        """
        found: dict[str, str] = {}
        for name in names:
            if name not in self._started:
                self._started[name] = KINDS[name](self._cpus)
            found |= self._started[name].environment()
        return found

    def pids(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the processes that started the named services."""
        return tuple(self._started[name].pid for name in names if name in self._started)


def unprivileged() -> list[str]:
    """Return the words that run a command as another user than root, which PostgreSQL refuses."""
    if os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOGROUP}", "--clear-groups"]


KINDS: dict[str, Callable[[Iterable[int]], Service]] = {"postgresql": Postgresql, "redis": Redis}
USER = "bench"
DATABASE = "bench"
NOBODY, NOGROUP = "nobody", "nogroup"
START_S = 30.0
# What a benchmark of the applications needs: nothing waits for a disk, nothing else runs beside it.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "autovacuum": "off",
    "jit": "off",
}
