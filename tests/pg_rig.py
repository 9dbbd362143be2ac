"""A PostgreSQL server of the tests' own, which can be harmed; ``citius.testing.postgres`` starts it."""

from __future__ import annotations

import asyncio
import functools
import shutil
import signal
from pathlib import Path
from typing import Any

import rig
from citius import pg
from citius.testing import postgres
from citius.testing.postgres import find_binaries, unprivileged
from rig import application

__all__ = ["Server", "find_binaries", "unprivileged"]

WAIT_S = 30.0


class Server(postgres.Server):
    """A server that can be killed and started again, secured, and made to ask for passwords."""

    def __init__(self, binaries: Path) -> None:
        super().__init__(binaries)
        # What was committed survives a crash of the server.
        self.settings["synchronous_commit"] = "on"

    def trust(self, *lines: str) -> None:
        """Set who may log in how; the last line is for all others."""
        text = "\n".join([*lines, "local all all trust\n"])
        (self.data / "pg_hba.conf").write_text(text)
        if self.process is not None:
            self.process.send_signal(signal.SIGHUP)

    def listen(self) -> None:
        """Listen on a port of 127.0.0.1 too; before ``start``."""
        self.port = rig.free_port()
        self.settings["listen_addresses"] = "127.0.0.1"

    def secure(self, certificate: str, key: str, authorities: str) -> None:
        """Listen with TLS; before ``start``."""
        self.listen()
        for name, source in (("crt", certificate), ("key", key), ("root", authorities)):
            path = self.data / f"server.{name}"
            path.write_bytes(Path(source).read_bytes())
            path.chmod(0o600)
            if user := unprivileged():
                shutil.chown(path, user["user"], user["group"])
        self.settings |= {
            "ssl": "on", "ssl_cert_file": "server.crt",
            "ssl_key_file": "server.key", "ssl_ca_file": "server.root",
        }  # fmt: skip


# An application under `citius serve`; its database is in the variable DSN.
APP = application("postgres_app")


def get(server: Any, path: str) -> tuple[int, bytes]:
    """A response of a server under test: status and content."""
    return rig.get(server.port, path)


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
