"""A bank whose database crashes, whose connections are killed and whose requests are cancelled.

Money is conserved, no transfer is half done, one that was reported as done is done, and no request gets a
row of another.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal

import pytest
from citius import pg
from pg_rig import Server

ACCOUNTS, BALANCE = 20, 1000


class Bank:
    """Transfers by several clients, each with its own log of what was reported."""

    def __init__(self, pool: pg.Pool, seed: int) -> None:
        self.pool, self.random = pool, random.Random(seed)
        self.done: list[int] = []
        self.unknown: list[int] = []
        self.refused: list[int] = []
        self.mixed: list[object] = []
        self.numbers = iter(range(10**9))
        self.is_over = False

    async def open(self) -> None:
        await self.pool.execute("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)")
        await self.pool.execute(
            "CREATE TABLE transfer (number int PRIMARY KEY, amount int NOT NULL)"
        )
        rows = ((number, BALANCE) for number in range(ACCOUNTS))
        assert await self.pool.copy_in("COPY account FROM STDIN", rows) == ACCOUNTS

    async def transfer(self, number: int) -> None:
        one, two = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randrange(1, 50)
        add = "UPDATE account SET balance = balance + $1 WHERE id = $2"
        async with self.pool.transaction() as tx:
            # In the order of their numbers, so that two transfers do not wait for each other.
            for account, change in sorted(((one, -amount), (two, amount))):
                assert await tx.execute(add, change, account) == 1
            await tx.execute("INSERT INTO transfer VALUES ($1, $2)", number, amount)

    async def client(self) -> None:
        while not self.is_over:
            number = next(self.numbers)
            limit = self.random.choice([0.002, 0.01, 30])
            try:
                async with asyncio.timeout(limit):
                    await self.transfer(number)
            except (TimeoutError, pg.StatementLost):
                # Cancelled or cut off at any moment, the commit included.
                self.unknown.append(number)
            except (pg.ServerError, pg.SessionLost, pg.PoolExhausted):
                self.refused.append(number)
                await asyncio.sleep(0.01)  # a client that is refused does not ask at once
            else:
                self.done.append(number)

    async def reader(self, key: int) -> None:
        """Asks for what only it asks for, among statements that are cancelled."""
        while not self.is_over:
            key += 1000
            with contextlib.suppress(TimeoutError, pg.PostgresError):
                async with asyncio.timeout(self.random.choice([0.001, 0.005, 30])):
                    row = await self.pool.fetch_one(
                        "SELECT $1::int, sum(balance) FROM account", key
                    )
                    if row != (key, ACCOUNTS * BALANCE):
                        self.mixed.append((key, row))
            await asyncio.sleep(0)

    async def run(self, harm) -> None:
        clients = [self.client() for _ in range(8)] + [self.reader(n) for n in range(4)]
        tasks = [asyncio.create_task(client) for client in clients]
        try:
            await harm(self)
            # What has been harmed works again.
            n_done = len(self.done)
            async with asyncio.timeout(40):
                while len(self.done) < n_done + 20:
                    await asyncio.sleep(0.01)  # a look at a condition
        finally:
            self.is_over = True
            results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in results if result is not None] == []

    async def check(self) -> None:
        total = await self.pool.fetch_value("SELECT sum(balance) FROM account")
        kept = {row[0] for row in await self.pool.fetch("SELECT number FROM transfer")}
        assert self.mixed == []
        assert total == ACCOUNTS * BALANCE
        assert set(self.done) <= kept
        assert kept <= set(self.done) | set(self.unknown)
        assert kept.isdisjoint(self.refused)
        assert await self.pool.fetch_value("SELECT pg_current_xact_id_if_assigned()") is None


async def progress(bank: Bank, count: int) -> None:
    """Until so many more transfers are done."""
    goal = len(bank.done) + count
    async with asyncio.timeout(40):
        while len(bank.done) < goal:
            await asyncio.sleep(0.01)  # a look at a condition


async def cancelled_requests(bank: Bank) -> None:
    await progress(bank, 300)


async def killed_connections(bank: Bank) -> None:
    for _ in range(10):
        await progress(bank, 15)
        with contextlib.suppress(pg.PostgresError):
            await bank.pool.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND backend_type = 'client backend' ORDER BY random() LIMIT 2"
            )


def crashes(server: Server):
    async def harm(bank: Bank) -> None:
        for number in (signal.SIGQUIT, signal.SIGINT, signal.SIGQUIT):
            await progress(bank, 20)
            await asyncio.to_thread(server.stop, number)
            await asyncio.to_thread(server.start)

    return harm


def conserve(server: Server, kind: str, rounds: int) -> None:
    harm = {
        "cancelled": cancelled_requests, "killed": killed_connections, "crashed": crashes(server),
    }[kind]  # fmt: skip

    async def main() -> None:
        async with pg.Pool(server.dsn, size=4, wait_s=20) as pool:
            bank = Bank(pool, seed=len(kind))
            await bank.open()
            for _ in range(rounds):
                bank.is_over = False
                await bank.run(harm)
                await bank.check()
            assert len(bank.unknown) > 0

    asyncio.run(main())


KINDS = ["cancelled", "killed", "crashed"]


@pytest.mark.parametrize("kind", KINDS)
def test_money_is_conserved(own_server, kind: str) -> None:
    conserve(own_server, kind, rounds=1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_money_is_conserved_for_minutes(own_server, kind: str) -> None:
    conserve(own_server, kind, rounds=20)
