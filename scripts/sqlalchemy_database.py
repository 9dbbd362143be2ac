"""A PostgreSQL server as SQLAlchemy's tests want it, until SIGINT; its address is the line that is printed.

usage: sqlalchemy_database.py
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from citius import pg
from pg_rig import Server, find_binaries


async def prepare(dsn: str) -> None:
    """Make what README.unittests.rst of SQLAlchemy asks for."""
    async with pg.Pool(dsn, size=1) as pool:
        for sql in (
            "CREATE SCHEMA test_schema",
            "CREATE SCHEMA test_schema_2",
            "CREATE EXTENSION IF NOT EXISTS hstore",
            "CREATE EXTENSION IF NOT EXISTS citext",
        ):
            await pool.execute(sql)


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    binaries = find_binaries()
    if binaries is None:
        raise SystemExit("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    server = Server(binaries)
    try:
        server.listen()
        server.start(max_prepared_transactions="10", max_connections="200")
        asyncio.run(prepare(server.dsn))
        print(f"{server.user}@127.0.0.1:{server.port}/postgres", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        server.remove()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
