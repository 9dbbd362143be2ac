"""Databases that contestants need: started, filled and stopped by the lab, never a contestant's CPU time.

A contestant names them (``services = ["postgresql"]``), and gets where they are in its environment
(``DATABASE_URL``). One cluster serves a whole run, so that all contestants find the same rows; a workload
that writes has a table of its own, and its check asks the database what that says (``query``). It runs beside
the load generator. What the service itself costs is recorded apart.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from citius_lab import launch
from citius_lab.definitions import folder
from citius_lab.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Iterable

ServiceName = Literal["postgresql"]


def missing(names: Iterable[str]) -> str | None:
    """Return why a service cannot be started on this machine, ``None`` if all can."""
    if "postgresql" in names and postgresql_binaries() is None:
        return "needs PostgreSQL's initdb and postgres (Debian: postgresql)"
    return None


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

    def query(self, sql: str) -> list[list[int]]:
        """Return the rows of a statement whose columns are integers.

        Raises:
            LaunchError: The statement failed.
        """
        text = self._sql(DATABASE, sql, "-A", "-t", "-F", " ")
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


class Services:
    """The services of one run, each started when a contestant first needs it; a context manager."""

    def __init__(self, cpus: Iterable[int]) -> None:
        self._cpus = tuple(cpus)
        self._started: dict[str, Postgresql] = {}

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *_: object) -> None:
        for service in self._started.values():
            _running.remove(service)
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
                self._started[name] = Postgresql(self._cpus)
                _running.append(self._started[name])
            found |= self._started[name].environment()
        return found

    def pids(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the processes that started the named services."""
        return tuple(self._started[name].pid for name in names if name in self._started)


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
