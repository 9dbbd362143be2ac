"""What SQLAlchemy asks of a dialect: how to connect, which types there are, what a lost connection is."""

# SQLAlchemy's dialects have no types of their own.
# pyright: basic

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import event, pool
from sqlalchemy.dialects.postgresql.base import PGDialect, PGExecutionContext
from sqlalchemy.pool.base import ResetStyle

from citius.pg.sqlalchemy.dbapi import DBAPI
from citius.pg.sqlalchemy.types import COLSPECS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import URL, Engine
    from sqlalchemy.pool import ConnectionPoolEntry

    from citius.pg.sqlalchemy.dbapi import Connection


_OF_SCHEMA = "ALTER", "CREATE", "DROP"


class _ExecutionContext(PGExecutionContext):
    def pre_exec(self) -> None:
        connection: Any = self._dbapi_connection.dbapi_connection
        connection.follow_schema()

    def post_exec(self) -> None:
        super().post_exec()
        # Texts are what an application has written itself, as migrations do.
        is_text = self.compiled is None or self.is_text
        if self.isddl or (is_text and self.statement.lstrip()[:6].upper().startswith(_OF_SCHEMA)):
            connection: Any = self._dbapi_connection.dbapi_connection
            connection.change_schema()

    def create_server_side_cursor(self) -> Any:
        return self._dbapi_connection.cursor(server_side=True)


class CitiusDialect(PGDialect):
    """``postgresql+citius``."""

    driver = "citius"
    is_async = True
    has_terminate = True
    supports_statement_cache = True
    supports_server_side_cursors = True
    supports_sane_multi_rowcount = False
    default_paramstyle = "numeric_dollar"
    render_bind_cast = True
    execution_ctx_cls = _ExecutionContext
    colspecs = COLSPECS

    @classmethod
    def import_dbapi(cls) -> Any:
        """The module that PEP 249 describes."""
        return DBAPI()

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        """Have connections know where in the pool they are: one that dies there is not handed out."""

        def give_back(connection: Connection, entry: ConnectionPoolEntry, state: Any) -> None:
            # One that the garbage collector has found is closed.
            if state.asyncio_safe:
                commits = engine.pool._reset_on_return is ResetStyle.reset_commit
                connection.give_back(entry, commits)

        event.listen(engine, "connect", _belong)
        event.listen(engine, "checkout", _take)
        event.listen(engine, "reset", give_back)

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """A pool whose waiting does not block the loop."""
        return pool.AsyncAdaptedQueuePool

    def create_connect_args(self, url: URL) -> tuple[Sequence[Any], dict[str, Any]]:
        """Parameters of a DSN: those of the URL, whose query may say any that libpq has."""
        options: dict[str, Any] = url.translate_connect_args(username="user", database="dbname")
        hosts, ports = self._split_multihost_from_url(url)
        for name, value in url.query.items():
            options[name] = value if isinstance(value, str) else ",".join(value)
        if hosts:
            options["host"] = ",".join(host or "" for host in hosts)
            if ports and any(ports):
                options["port"] = ",".join(str(port or "") for port in ports)
        return (), options

    def get_isolation_level_values(self, dbapi_connection: Connection) -> Sequence[str]:
        """What ``isolation_level`` may be."""
        return (
            "AUTOCOMMIT", "SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED",
        )  # fmt: skip

    def set_isolation_level(self, dbapi_connection: Connection, level: str) -> None:
        """Use it from the next transaction on; one that has begun is rolled back."""
        dbapi_connection.rollback()
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        if not dbapi_connection.autocommit:
            dbapi_connection.isolation_level = level

    def detect_autocommit_setting(self, dbapi_conn: Connection) -> bool:
        """Whether each statement is a transaction of its own."""
        return dbapi_conn.autocommit

    def set_readonly(self, connection: Connection, value: bool) -> None:
        """Make transactions ``READ ONLY``."""
        connection.readonly = value

    def get_readonly(self, connection: Connection) -> bool:
        """Whether they are."""
        return connection.readonly

    def set_deferrable(self, connection: Connection, value: bool) -> None:
        """Make transactions ``DEFERRABLE``."""
        connection.deferrable = value

    def get_deferrable(self, connection: Connection) -> bool:
        """Whether they are."""
        return connection.deferrable

    def do_rollback_twophase(
        self, connection: Any, xid: str, is_prepared: bool = True, recover: bool = False
    ) -> None:
        """Roll back one that was prepared, or has not been."""
        self._end_twophase(connection, "ROLLBACK", xid, is_prepared)

    def do_commit_twophase(
        self, connection: Any, xid: str, is_prepared: bool = True, recover: bool = False
    ) -> None:
        """Commit one that was prepared, or has not been."""
        self._end_twophase(connection, "COMMIT", xid, is_prepared)

    def _end_twophase(self, connection: Any, verb: str, xid: str, is_prepared: bool) -> None:
        ended = connection.connection.dbapi_connection
        if is_prepared:
            ended.execute_alone(f"{verb} PREPARED '{xid}'")
        elif verb == "COMMIT":
            ended.commit()
        else:
            ended.rollback()

    def do_terminate(self, dbapi_connection: Connection) -> None:
        """Close it without waiting."""
        dbapi_connection.terminate()

    def do_ping(self, dbapi_connection: Connection) -> bool:
        """Whether the server answers."""
        dbapi_connection.ping()
        return True

    def is_disconnect(self, e: Exception, connection: Any, cursor: Any) -> bool:
        """Whether the session is gone."""
        return connection is not None and connection.session.is_closed

    def get_driver_connection(self, connection: Connection) -> Any:
        """The session of ``citius.pg``."""
        return connection.session


def _take(connection: Connection, _entry: ConnectionPoolEntry, _proxy: object) -> None:
    connection.take()


def _belong(connection: Connection, entry: ConnectionPoolEntry) -> None:
    connection.belong_to(entry)


dialect = CitiusDialect
