"""Of several hosts one that is silent costs its time once, not for each new session."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from citius import pg
from citius.databases import silent
from pg_rig import Server


class Silent:
    """Takes connections, says nothing, and counts them."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setblocking(False)
        self.port = self._server.getsockname()[1]
        self._taken: list[socket.socket] = []

    def count(self) -> int:
        """How many there have been."""
        while True:
            try:
                self._taken.append(self._server.accept()[0])
            except BlockingIOError:
                return len(self._taken)

    def close(self) -> None:
        for one in (self._server, *self._taken):
            one.close()


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    monkeypatch.setattr(silent, "_since", {})
    made = Silent()
    yield made
    made.close()


async def lose_all(pool: pg.Pool, n: int) -> None:
    """End the sessions of a pool, and wait until it has others."""
    before = set(pool.open_sessions)
    for session in before:
        session.close()
    async with asyncio.timeout(20):
        while len(set(pool.open_sessions) - before) < n:
            await asyncio.sleep(0.01)  # a look at a condition


def test_a_silent_host_is_asked_once(server: Server, deaf: Silent) -> None:
    dsn = (
        f"host=127.0.0.1,{server.directory} port={deaf.port},{server.port} user={server.user} "
        "dbname=postgres sslmode=disable connect_timeout=3"
    )

    async def main() -> None:
        async with pg.Pool(dsn, size=1) as pool:
            assert deaf.count() == 1
            for _ in range(3):
                await lose_all(pool, 1)
                assert await pool.fetch_value("SELECT 1") == 1
            assert deaf.count() == 1

    asyncio.run(main())


def test_a_silent_host_is_asked_when_no_other_is_what_is_wanted(
    server: Server, deaf: Silent
) -> None:
    dsn = (
        f"host=127.0.0.1,{server.directory} port={deaf.port},{server.port} user={server.user} "
        "dbname=postgres sslmode=disable connect_timeout=3 target_session_attrs=standby"
    )

    async def main() -> None:
        for number in (1, 2):
            with pytest.raises(pg.PostgresError, match="something else"):
                await pg.Pool(dsn, size=1).open()
            assert deaf.count() == number

    asyncio.run(main())


def test_the_order_is_as_before_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silent, "_since", {})

    def itself(place: Any) -> Any:
        return place

    silent.note("a")
    assert silent.in_order("abc", itself) == ["b", "c", "a"]
    silent.note("b")
    assert silent.in_order("abc", itself) == ["c", "a", "b"]
    silent.forget("a")
    assert silent.in_order("abc", itself) == ["a", "c", "b"]
    monkeypatch.setattr(silent, "LAST_S", 0.0)
    assert silent.in_order("abc", itself) == ["a", "b", "c"]
    for number in range(3000):
        silent.note(number)
    assert len(silent._since) == 1024
