"""Random operations of all kinds of parties on the same channels: no value is lost or received twice."""

from __future__ import annotations

import http.client
import importlib.util
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rig import Server, application

HERE = Path(__file__).parent
# Compiled ones do most: they are the fastest.
SHARES = {"reactor": 30, "pool": 30, "async": 6, "serial": 6, "blocking": 6, "thread": 6}
CHANNELS = 4
# All that block at once have a thread each.
OPTIONS = ("--reactor-threads", "2", "--blocking-threads", "16")


@pytest.fixture(scope="session")
def parties_path(tmp_path_factory: pytest.TempPathFactory, build_c: Callable[..., Path]) -> Path:
    return build_c(HERE / "parties.c", tmp_path_factory.mktemp("c") / "parties.so")


@pytest.fixture
def parties(parties_path: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    if importlib.util.find_spec("greenlet") is None:
        pytest.skip("serial handlers need greenlet")
    servers: list[Server] = []

    def start(capacities: str, *options: str) -> Server:
        env = {"PARTIES_LIBRARY": str(parties_path), "PARTIES_CAPACITIES": capacities}
        arguments = [str(application("parties_app")), "--port", "0", *options]
        servers.append(Server(arguments, env, tmp_path).wait_ready())
        return servers[-1]

    yield start
    for server in servers:
        server.kill()


def ask(server: Server, path: str, timeout_s: float) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
    finally:
        connection.close()
    assert answer.status == 200, (path, answer.status, body, server.err)
    return int(body)


def run_parties(server: Server, values: int, seed: int, timeout_s: float) -> dict[str, int]:
    """Values that each kind has received."""
    dice = random.Random(seed)

    def seeded() -> int:
        return dice.randrange(1, 1 << 40)

    share = values // (2 * sum(SHARES.values()))
    ranges, first = [], 0
    for kind, parts in SHARES.items():
        for _ in range(2):
            ranges.append((kind, first, share * parts))
            first += share * parts
    receivers = {f"/reactor/drains?count={n}": "reactor" for n in range(CHANNELS)}
    for kind in SHARES:
        receivers |= {f"/{kind}/receives?seed={seeded()}": kind for _ in range(2)}
    with ThreadPoolExecutor(len(receivers) + len(ranges)) as threads:
        received = {path: threads.submit(ask, server, path, timeout_s) for path in receivers}
        sent = [
            threads.submit(ask, server, f"/{path}&seed={seeded()}", timeout_s)
            for path in (
                f"{kind}/sends?first={begin}&count={count}" for kind, begin, count in ranges
            )
        ]
        try:
            assert sum(done.result() for done in sent) == first
        finally:
            assert server.get("/close").status == 200
        by_kind = dict.fromkeys(SHARES, 0)
        for path, done in received.items():
            by_kind[receivers[path]] += done.result()
    assert sum(by_kind.values()) == first
    assert ask(server, f"/received/1?count={first}", timeout_s) == first, (
        f"seed {seed}: {ask(server, f'/received/0?count={first}', timeout_s)} values are lost"
    )
    assert first > values * 0.9
    return by_kind


@pytest.mark.parametrize("capacities", ["0,0,0,0", "0,1,3,100"])
def test_nothing_is_lost_or_doubled_between_all_kinds_of_parties(
    parties: Callable[..., Server], capacities: str
) -> None:
    server = parties(capacities, *OPTIONS)
    by_kind = run_parties(server, 20_000, random.randrange(1 << 30), 60)
    assert all(by_kind.values()), by_kind


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_in_ten_million_operations(
    parties: Callable[..., Server],
) -> None:
    # A send and a receive are two operations.
    server = parties("0,1,3,100", *OPTIONS)
    by_kind = run_parties(server, 5_600_000, random.randrange(1 << 30), 1800)
    assert all(by_kind.values()), by_kind
