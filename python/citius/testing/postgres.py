"""Databases of tests: a server of their own, a database for a session, a transaction for a test.

    from citius.testing.postgres import rolled_back

    @pytest.fixture
    def citius_app(citius_postgres: str) -> Iterator[App]:
        with rolled_back(pool, citius_postgres):
            yield app

``citius_postgres`` is a fixture of ``plugin.py``: the URL of a database that lives as long as the test
session. Within ``rolled_back`` all that a pool of ``citius.pg`` does, from its opening to its closing, is one
transaction that is rolled back. Tests: ``tests/pg/test_testing.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from citius.databases.statements import METHODS
from citius.pg import Pool, Transaction
from citius.pg import dsn as dsns
from citius.pg.copying import CopyOut
from citius.pg.transactions import FAILED

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

VARIABLE = "CITIUS_TEST_POSTGRES"
"""The environment variable with the DSN of a server that tests may make databases in."""

WAIT_S = 30.0


class NoPostgres(RuntimeError):
    """There is no server to test with, and none that could be started."""


# --- a server -----------------------------------------------------------------------------------


def find_binaries() -> Path | None:
    """The directory of ``initdb`` and ``postgres``, if PostgreSQL is installed."""
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
    """A server with a cluster in a temporary directory, on a Unix socket: to be started, and removed."""

    user = "tester"

    def __init__(self, binaries: Path) -> None:
        self._binaries = binaries
        # Short: the path of a Unix socket has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="pg-"))
        self._as = unprivileged()
        if self._as:
            shutil.chown(self.directory, self._as["user"], self._as["group"])
        self.data = self.directory / "data"
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 5432
        self.settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.directory),
            # Tests lose nothing that they would want back.
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "max_connections": "40",
            "shared_buffers": "16MB",
        }
        try:
            self._run(
                "initdb", "-D", str(self.data), "-U", self.user, "-A", "trust", "-E", "UTF8",
                "--locale=C", "--no-sync",
            )  # fmt: skip
        except BaseException:
            self.remove()
            raise

    @property
    def dsn(self) -> str:
        """Where it is."""
        return f"host={self.directory} port={self.port} user={self.user} dbname=postgres"

    @property
    def url(self) -> str:
        """The address of the database as a URL."""
        return f"postgresql://{self.user}@/postgres?host={self.directory}&port={self.port}"

    def start(self, **settings: str) -> None:
        """Start, and wait until it takes connections; ``settings`` are those of ``postgresql.conf``.

        Raises:
            RuntimeError: It does not; with its log.
        """
        options = {**self.settings, "port": str(self.port), **settings}
        arguments = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        log = self.directory / "log"
        with log.open("ab") as file:
            self.process = process = subprocess.Popen[bytes](
                [str(self._binaries / "postgres"), "-D", str(self.data), *arguments],
                cwd=self.directory, stdout=subprocess.DEVNULL, stderr=file, **self._as,
            )  # fmt: skip
        until = time.monotonic() + WAIT_S
        ready = ["pg_isready", "-q", "-h", str(self.directory), "-p", str(self.port)]
        while subprocess.run([str(self._binaries / ready[0]), *ready[1:]], check=False).returncode:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start:\n{log.read_text()}")
            time.sleep(0.05)  # a process is started for each look

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop at once; with SIGQUIT without a shutdown of the database, as if it had crashed."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(WAIT_S)
            self.process = None

    def remove(self) -> None:
        """Stop, and remove the cluster."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            cwd=self.directory, capture_output=True, text=True, check=False, **self._as,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} fails:\n{done.stdout}{done.stderr}")


# --- a database ---------------------------------------------------------------------------------


@contextlib.contextmanager
def database() -> Generator[str]:
    """The URL of an empty database: in the server that ``CITIUS_TEST_POSTGRES`` names, or of its own server.

    Raises:
        NoPostgres: The variable names none, and PostgreSQL is not installed.
    """
    if given := os.environ.get(VARIABLE):
        name = f"citius_test_{secrets.token_hex(6)}"
        asyncio.run(_execute(given, f"CREATE DATABASE {name}"))
        try:
            yield _in_database(given, name)
        finally:
            asyncio.run(_execute(given, f"DROP DATABASE {name} WITH (FORCE)"))
        return
    binaries = find_binaries()
    if binaries is None:
        raise NoPostgres(
            f"tests of the database need PostgreSQL: install it (Debian: apt-get install postgresql), or set "
            f"{VARIABLE} to the DSN of a server in which databases may be made"
        )
    server = Server(binaries)
    try:
        server.start()
        yield server.url
    finally:
        server.remove()


async def _execute(dsn: str, sql: str) -> None:
    async with Pool(dsn, size=1) as pool:
        await pool.core.script(sql, None)


def _in_database(dsn: str, name: str) -> str:
    """``dsn`` with another database."""
    if "://" not in dsn:
        return f"{dsn} dbname={name}"
    head, _, query = dsn.partition("?")
    scheme, _, rest = head.partition("://")
    authority = rest.partition("/")[0]
    return f"{scheme}://{authority}/{name}" + (f"?{query}" if query else "")


# --- a transaction ------------------------------------------------------------------------------


@contextlib.contextmanager
def rolled_back(pool: Pool, dsn: str | None = None) -> Generator[None]:
    """Have all that a pool does, each time it is open, be a transaction that is rolled back at its end.

    Statements and transactions of the application are savepoints in it, so that one that fails fails alone.
    They come one after the other. What is not rolled back: sequences, and ``NOTIFY`` is not sent.

    Args:
        pool: A pool that is not open; it is opened in the block, by the application's lifespan.
        dsn: Where it is opened instead of where it would be.
    """
    targets, is_open = pool.targets, "fetch" in pool.__dict__
    if is_open:
        raise RuntimeError("the pool is open already: a test begins before its application does")
    double = _Double(pool)
    if dsn is not None:
        pool.targets = dsns.parse_all(dsn)
    overridden = {"open": double.open, "close": double.close}
    pool.__dict__.update(overridden)
    try:
        yield
    finally:
        for name in overridden:
            pool.__dict__.pop(name, None)
        pool.targets = targets


_is_inside: ContextVar[bool] = ContextVar("citius.testing.postgres", default=False)


class _Double:
    """What stands in place of some methods of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._outer: Transaction | None = None
        self._of_transactions = self._of_statements = asyncio.Lock()

    async def open(self) -> None:
        pool = self._pool
        await Pool.open(pool)
        self._of_transactions, self._of_statements = asyncio.Lock(), asyncio.Lock()
        self._outer = outer = Transaction(pool)
        outer.runs_inner_hooks = True
        await outer.__aenter__()
        for name in METHODS:
            setattr(pool, name, _method(self, name))
        pool.__dict__["transaction"] = self._transaction
        pool.__dict__["copy_in"] = self._copy_in
        pool.__dict__["copy_out"] = functools.partial(_CopyOut, self, pool)

    async def close(self, **options: Any) -> None:
        outer, self._outer = self._outer, None
        for name in ("transaction", "copy_in", "copy_out"):
            self._pool.__dict__.pop(name, None)
        if outer is not None:
            error = RuntimeError("the end of a test")
            await outer.__aexit__(type(error), error, None)
        await Pool.close(self._pool, **options)

    @property
    def outer(self) -> Transaction:
        """The transaction of the test, or the savepoint that is open in it."""
        if self._outer is None:
            raise self._pool.not_open()
        return self._outer.innermost

    def lock(self) -> asyncio.Lock:
        """What keeps others out: those with a transaction of their own open have passed the first lock."""
        return self._of_statements if _is_inside.get() else self._of_transactions

    async def call(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        async with self.lock(), self.outer.transaction() as savepoint:
            return await getattr(savepoint, name)(*arguments, **options)

    def _transaction(self, **_options: object) -> _Savepoint:
        return _Savepoint(self)

    async def _copy_in(self, sql: str, source: Any) -> int:
        async with self.lock(), self.outer.transaction() as savepoint:
            return await savepoint.copy_in(sql, source)

    @property
    def of_transactions(self) -> asyncio.Lock:
        """The lock of transactions."""
        return self._of_transactions


def _method(double: _Double, name: str) -> Any:
    def call(*arguments: Any, **options: Any) -> _Call:
        return _Call(double, name, arguments, options)

    return call


class _Call:
    """A statement, as ``citius.pg.Call`` has it."""

    def __init__(
        self, double: _Double, name: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self._what = double, name, arguments, options
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        """Begin without waiting for the result."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def __await__(self) -> Generator[Any, Any, Any]:
        return (self._task or self._run()).__await__()

    async def _run(self) -> Any:
        double, name, arguments, options = self._what
        return await double.call(name, arguments, options)


class _Savepoint:
    """A transaction of the application."""

    def __init__(self, double: _Double) -> None:
        self._double = double
        self._transaction: Transaction | None = None
        self._token: Any = None

    async def __aenter__(self) -> Transaction:
        if not _is_inside.get():
            await self._double.of_transactions.acquire()
            self._token = _is_inside.set(True)
        try:
            self._transaction = self._double.outer.transaction()
            return await self._transaction.__aenter__()
        except BaseException:
            self._leave()
            raise

    def place(self) -> Any:
        """Where its statements are executed; for cursors."""
        assert self._transaction is not None
        return self._transaction.place()

    def check_block(self) -> None:
        """Refuse what is done behind its block; for cursors and COPY."""
        assert self._transaction is not None
        self._transaction.check_block()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._transaction is not None
        try:
            await self._transaction.__aexit__(kind, error, trace)
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._token is not None:
            # A generator that is a dependency may be left in another context than it was entered in.
            with contextlib.suppress(ValueError):
                _is_inside.reset(self._token)
            self._token = None
            self._double.of_transactions.release()


class _CopyOut(CopyOut):
    """``COPY … TO STDOUT`` of the application, in a savepoint."""

    def __init__(self, double: _Double, pool: Pool, sql: str) -> None:
        super().__init__(pool, sql)
        self._savepoint = _Savepoint(double)

    async def __aenter__(self) -> Self:
        self._transaction = await self._savepoint.__aenter__()
        return await super().__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await super().__aexit__(kind, error, trace)
        _, session = self._savepoint.place()
        if error is None and (session.load or session.status == FAILED):
            # Left early, or refused by the server: a pool gives its session back, and raises nothing.
            error = RuntimeError("the COPY was not read to its end")
        await self._savepoint.__aexit__(type(error) if error else None, error, trace)
