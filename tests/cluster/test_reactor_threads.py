"""A node whose worker has several loops: each seam works on all of them at once."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from citius.cluster import Cluster
from engines_rig import Redis
from rig import Server, application, wait_for
from wspeer import RawSocket

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

APP = application("cluster_app")
THREADS = 3


@pytest.fixture(params=["url", "client", "none"])
def node(request: pytest.FixtureRequest, serve: Callable[..., Server], redis: Redis) -> Server:
    env = {"CLUSTER": "" if request.param == "none" else redis.url}
    if request.param == "client":
        env["OWN_CLIENT"] = "1"
    return serve(APP, "--workers", "1", "--reactor-threads", str(THREADS), env=env)


def test_requests_of_all_loops_share_limits_caches_and_locks(node: Server) -> None:
    with ThreadPoolExecutor(16) as pool:
        statuses = Counter(pool.map(lambda _: node.get("/limited").status, range(200)))
        assert statuses.keys() <= {200, 429}
        assert statuses[200] >= 20
        cached = [node.get for _ in range(60)]
        replies = list(pool.map(lambda get: get("/cached/a"), cached))
        assert {one.status for one in replies} == {200}
        assert len({one.body for one in replies}) == 1
        fences = list(pool.map(lambda _: int(node.get("/once").body), range(30)))
        assert len(set(fences)) == 30


def test_members_on_all_loops_are_there_and_leave(node: Server) -> None:
    names = [f"member-{number}" for number in range(4 * THREADS)]
    sockets = [RawSocket(node, f"/lobby?name={name}").accepted() for name in names]

    def online() -> Any:
        return json.loads(node.get("/online").body)

    for _ in range(4 * THREADS):
        wait_for(lambda: online() == sorted(names), "all")
    for socket in sockets[1:]:
        socket.peer.close()
    for _ in range(4 * THREADS):
        wait_for(lambda: online() == names[:1], "the one that has stayed")
    sockets[0].peer.close()


@pytest.mark.parametrize("own", [{}, {"OWN_CLIENT": "1"}], ids=["url", "client"])
def test_all_loops_serve_while_the_engine_is_not_there_yet(
    serve: Callable[..., Server], redis: Redis, own: dict[str, str]
) -> None:
    redis.kill()
    options = ["--workers", "1", "--reactor-threads", str(THREADS)]
    node = serve(APP, *options, env={"CLUSTER": redis.url, "LIMIT_BURST": "1000", **own})

    def statuses(path: str) -> set[int]:
        with ThreadPoolExecutor(8) as pool:
            return set(pool.map(lambda _: node.get(path).status, range(40)))

    for _ in range(3):
        assert [statuses(path) for path in ("/limited", "/cached/a", "/online")] == [{200}] * 3
        assert statuses("/count") == {503}
        time.sleep(1.1)  # Redis is asked again, by all loops at once
    redis.start()
    for path in ("/limited", "/cached/a", "/online", "/once", "/count"):
        wait_for(lambda path=path: statuses(path) == {200}, path)


def on_loops(cluster: Cluster, *works: Callable[[], Awaitable[None]]) -> None:
    """Run each on a loop of its own, side by side, and close what the cluster has there."""
    errors: list[BaseException] = []

    def go(work: Callable[[], Awaitable[None]]) -> None:
        async def steps() -> None:
            await work()
            await cluster.stop()

        try:
            asyncio.run(asyncio.wait_for(steps(), 30))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=go, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_limit_counts_the_requests_of_all_loops(redis: Redis) -> None:
    cluster = Cluster(redis.url)
    buckets = cluster.buckets()
    assert buckets is not None
    passed: list[bool] = []

    async def take() -> None:
        async def one() -> None:
            taken = await buckets.take(b"all", 3_600_000_000_000, 25)
            assert taken is not None
            passed.append(taken[0])

        for _ in range(10):
            await asyncio.gather(*(one() for _ in range(10)))

    on_loops(cluster, *[take] * THREADS)
    assert Counter(passed) == {True: 25, False: 100 * THREADS - 25}


@pytest.mark.parametrize("url", ["redis", "memory"])
def test_a_value_is_made_once_for_all_loops(redis: Redis, url: str) -> None:
    cluster = Cluster(redis.url if url == "redis" else "memory://")
    cache = cluster.cache("values", type=int)
    makers: list[int] = []
    got: list[int] = []
    all_ask = threading.Barrier(THREADS)

    async def ask() -> None:
        async def make() -> int:
            makers.append(1)
            await asyncio.sleep(0.05)  # the others ask meanwhile
            return len(makers)

        await asyncio.to_thread(all_ask.wait)
        got.extend(await asyncio.gather(*(cache.get_or_make("k", make) for _ in range(20))))

    on_loops(cluster, *[ask] * THREADS)
    assert makers == [1]
    assert got == [1] * 20 * THREADS
