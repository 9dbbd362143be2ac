"""What contestants ask: started, filled and stopped by the lab, never a contestant's CPU time.

A contestant names what it needs (``services = ["postgresql"]``, ``["redis"]``), and gets where it is in its
environment (``DATABASE_URL``: a database of one cluster; ``REDIS_URL``; ``UPSTREAM_URL`` and its like: a
service over HTTP; ``ORIGIN_URL``: the server behind a gateway). One server of each serves a whole run, so
that all contestants find the same data; a workload that writes has a table of its own, and its check asks the
database what that says (``query``). It runs beside the load generator. What the service itself costs is
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
from typing import TYPE_CHECKING, Any

from citius_lab.definitions import certificate
from citius_lab.definitions.contestants import citius_command
from citius_lab.definitions.services import (
    DATABASES,
    ServiceName,
    haproxy,
    postgresql_binaries,
    redis_server,
)
from citius_lab.definitions.workloads import code_of
from citius_lab.errors import LaunchError
from citius_lab.paths import folder
from citius_lab.processes import launch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

# It has no types.
msgpack: Any = import_module("msgpack")


class Postgresql:
    """A cluster in a temporary directory; its databases are filled when they are first asked for.

    It listens on 127.0.0.1 alone, on a free port, and asks for a password that is made for it.

    Args:
        cpus: CPUs that it may use; all if empty.

    Raises:
        LaunchError: It does not start.
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
        self._filled: set[ServiceName] = set()
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

    def environment(self, name: ServiceName) -> dict[str, str]:
        """Return what a contestant's environment says of one of its databases, which is made if need be.

        Raises:
            LaunchError: Its tables cannot be made.
        """
        database = DATABASES[name]
        if name not in self._filled:
            self._sql("postgres", f"CREATE DATABASE {database}")
            self._sql(database, (folder("workloads") / f"{database}.sql").read_text())
            self._filled.add(name)
        return {
            "DATABASE_URL": f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"
        }

    def query(self, sql: str) -> list[list[int]]:
        """Return the rows of a statement whose columns are integers, asked in the contract's database.

        Raises:
            LaunchError: The statement failed.
        """
        text = self._sql(DATABASES["postgresql"], sql, "-A", "-t", "-F", " ")
        return [[int(number) for number in line.split()] for line in text.splitlines()]

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

    def _sql(self, database: str, text: str, *options: str) -> str:
        words = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port))
        return self._run("psql", *words, *options, "-U", USER, "-d", database, text=text)

    def _run(self, program: str, *arguments: str, text: str = "") -> str:
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
        return done.stdout


class _OneProcess:
    """A service that is one process with a temporary directory, where it is ready when its ports are open."""

    _folder: Path
    _process: launch.Guarded

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def stop(self) -> None:
        """End it at once and remove what it wrote."""
        self._process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_until_it_accepts(self, name: str, *ports: int) -> None:
        deadline = time.monotonic() + START_S
        while not all(map(launch.port_in_use, ports)):
            if self._process.ended() is not None or time.monotonic() > deadline:
                said = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise LaunchError(f"{name} does not start; the end of its log:\n{said}")
            time.sleep(0.02)


class Redis(_OneProcess):
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
            self._wait_until_it_accepts("Redis", self.port)
            self._fill()
        except BaseException:
            self.stop()
            raise

    def environment(self) -> dict[str, str]:
        """Return what a contestant's environment says of it."""
        return {"REDIS_URL": f"redis://:{self._password}@127.0.0.1:{self.port}/0"}

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


class Upstream(_OneProcess):
    """A service over HTTP that responds to ``/profiles/17`` with an object of JSON, from its configuration.

    HAProxy on three free ports of 127.0.0.1: clear text, TLS with HTTP/1.1, TLS with HTTP/2. It is no
    contestant's library, and cheaper than any of them.

    Args:
        cpus: CPUs that it may use; all if empty.

    Raises:
        LaunchError: It does not start.
    """

    def __init__(self, cpus: Iterable[int]) -> None:
        program = haproxy()
        if program is None:
            raise LaunchError("HAProxy is not installed: no haproxy (Debian: haproxy)")
        self._folder = Path(tempfile.mkdtemp(prefix="citius-lab-upstream-"))
        certificate.make(self._folder)
        self._cert, key = certificate.paths(self._folder)
        both = self._folder / "both.pem"
        both.touch(0o600)
        both.write_text(self._cert.read_text() + key.read_text())
        self.ports = tuple(launch.free_port() for _ in range(3))
        plain, tls, h2 = self.ports
        config = self._folder / "haproxy.cfg"
        config.write_text(UPSTREAM.format(plain=plain, tls=tls, h2=h2, pem=both, profile=PROFILE))
        with (self._folder / "log").open("ab") as log:
            self._process = launch.Guarded(
                [program, "-db", "-q", "-f", str(config)],
                cwd=self._folder, cpus=cpus, stdout=log.fileno(),
            )  # fmt: skip
        try:
            self._wait_until_it_accepts("HAProxy", *self.ports)
        except BaseException:
            self.stop()
            raise

    def environment(self) -> dict[str, str]:
        """Return what a contestant's environment says of it."""
        plain, tls, h2 = self.ports
        return {
            "UPSTREAM_URL": f"http://127.0.0.1:{plain}",
            "UPSTREAM_TLS_URL": f"https://127.0.0.1:{tls}",
            "UPSTREAM_H2_URL": f"https://127.0.0.1:{h2}",
            "SSL_CERT_FILE": str(self._cert),
        }


class Origin(_OneProcess):
    """The server behind gateways, ``contestants/shared/gateway/origin.py`` on Citius.

    Args:
        cpus: CPUs that it may use; all if empty.

    Raises:
        LaunchError: It does not start.
    """

    def __init__(self, cpus: Iterable[int]) -> None:
        program = citius_command()
        if program is None:
            raise LaunchError("no citius in the contestants' environment (pip install citius)")
        self._folder = Path(tempfile.mkdtemp(prefix="citius-lab-origin-"))
        self.port = launch.free_port()
        app = folder("contestants") / "shared/gateway/origin.py"
        words = [program, "serve", f"{app}:app", "--host", "127.0.0.1", "--port", str(self.port)]
        with (self._folder / "log").open("ab") as log:
            self._process = launch.Guarded(
                [*words, "--workers", "1", "--no-access-log", "--log-level", "warning"],
                cwd=self._folder, cpus=cpus, stdout=log.fileno(),
            )  # fmt: skip
        try:
            self._wait_until_it_accepts("the origin server", self.port)
        except BaseException:
            self.stop()
            raise

    def environment(self) -> dict[str, str]:
        """Return what a contestant's environment says of it."""
        return {"ORIGIN_URL": f"http://127.0.0.1:{self.port}"}


class Services:
    """The services of one run, started when a contestant first needs one; a context manager."""

    def __init__(self, cpus: Iterable[int]) -> None:
        self._cpus = tuple(cpus)
        self._cluster: Postgresql | None = None
        self._others: dict[ServiceName, Redis | Upstream | Origin] = {}

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *_: object) -> None:
        for service in self._others.values():
            service.stop()
        self._others.clear()
        if self._cluster is not None:
            self._cluster.stop()
            _running.remove(self._cluster)
            self._cluster = None

    def environment(self, names: Iterable[ServiceName]) -> dict[str, str]:
        """Start what is not there yet; return what a contestant's environment says of them.

        Raises:
            LaunchError: One does not start.
        """
        found: dict[str, str] = {}
        for name in names:
            if (kind := OTHERS.get(name)) is not None:
                if name not in self._others:
                    self._others[name] = kind(self._cpus)
                found |= self._others[name].environment()
            else:
                if self._cluster is None:
                    self._cluster = Postgresql(self._cpus)
                    _running.append(self._cluster)
                found |= self._cluster.environment(name)
        return found

    def pids(self, names: Iterable[ServiceName]) -> tuple[int, ...]:
        """Return the processes that started the named services."""
        services = {self._others.get(name, self._cluster) for name in names}
        return tuple(service.pid for service in services if service is not None)


_running: list[Postgresql] = []


def query(sql: str) -> list[list[int]]:
    """Return the rows of a statement, whose columns are integers, in the database that contestants use.

    Raises:
        LaunchError: There is none, or the statement failed.
    """
    if not _running:
        raise LaunchError(
            "PostgreSQL does not run: a workload whose check asks it needs the service"
        )
    return _running[-1].query(sql)


def unprivileged() -> list[str]:
    """Return the words that run a command as another user than root, which PostgreSQL refuses."""
    if os.getuid() != 0:
        return []
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOGROUP}", "--clear-groups"]


# Each but the databases, which are of one cluster.
OTHERS: dict[ServiceName, type[Redis | Upstream | Origin]] = {
    "redis": Redis,
    "upstream": Upstream,
    "origin": Origin,
}
USER = "bench"
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
# Objects of about 150 bytes; the number is that of the path, so that no two requests need be alike.
UPSTREAM = """
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 5s
    timeout http-keep-alive 600s
frontend profiles
    bind 127.0.0.1:{plain}
    bind 127.0.0.1:{tls} ssl crt {pem} alpn http/1.1
    bind 127.0.0.1:{h2} ssl crt {pem} alpn h2
    http-request set-var(txn.id) path,field(3,/)
    http-request return status 404 unless {{ path_reg ^/profiles/[0-9]+$ }}
    http-request return status 200 content-type application/json lf-string '{profile}'
"""
PROFILE = (
    '{"id":ID,"name":"Name ID","email":"name.ID@services.example","street":"ID Long Street",'
    '"city":"Springfield","is_active":true,"score":ID.5}'
).replace("ID", "%[var(txn.id)]")
