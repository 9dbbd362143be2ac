"""A PostgreSQL server as the tests of drivers want it, until SIGINT; it prints its host and port.

usage: suite_database.py
"""

from __future__ import annotations

import asyncio
import signal
import sys

from citius import pg
from citius.testing.postgres import Server, find_binaries


async def prepare(dsn: str) -> None:
    """Make what the tests of asyncpg and psycopg ask for."""
    async with pg.Pool(dsn, size=1) as pool:
        await pool.execute("CREATE ROLE postgres SUPERUSER LOGIN")
        for extension in ("hstore", "citext"):
            await pool.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")


def main() -> int:
    """Serve until SIGINT or SIGTERM."""
    binaries = find_binaries()
    if binaries is None:
        print("PostgreSQL is not installed (Debian: apt-get install postgresql)", file=sys.stderr)
        return 2
    server = Server(binaries)
    try:
        server.start(max_connections="200", jit="off")
        asyncio.run(prepare(server.dsn))
        print(server.directory, server.port, flush=True)
        signal.sigwait([signal.SIGINT, signal.SIGTERM])
    finally:
        server.remove()
    return 0


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    sys.exit(main())
