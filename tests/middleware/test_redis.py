"""Sessions and rate limits in a real Redis: over servers, with a Redis that stops, hangs and comes back."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from citius import App, ConfigError, Request
from citius.cluster import EngineAway
from citius.cluster.ownredis import RedisByLoop
from citius.testing import AsyncClient
from citius.web.middleware import RateLimit, RedisBuckets, RedisStore, StoredSessions, session
from rig import Server, wait_for

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)


class Redis:
    """A `redis-server` of one's own, on a socket in a directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "redis.sock"
        self.url = f"unix://{self.path}"
        self._directory = directory
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(self.path), "--save", ""],
            stdout=subprocess.DEVNULL,
            cwd=self._directory,
        )

        def responds() -> bool:
            try:
                with socket.socket(socket.AF_UNIX) as asking:
                    asking.connect(str(self.path))
                    asking.sendall(b"PING\r\n")
                    return asking.recv(100) == b"+PONG\r\n"
            except OSError:
                return False

        wait_for(responds, "redis-server")
        return self.process

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = Redis(tmp_path)
    yield made
    made.process.send_signal(signal.SIGCONT)
    made.stop()


def run(app: App, steps: Callable[[AsyncClient], Any], *clients: Any) -> None:
    async def go() -> None:
        async with AsyncClient(app) as client:
            await steps(client)
        for one in clients:
            await one.close()

    asyncio.run(go())


def by_key(request: Request) -> str:
    return request.header("x-key", "")


# --- rate limits ----------------------------------------------------------------------------------


def limited(client: Any, burst: int = 3, **options: Any) -> App:
    app = App()
    store = RedisBuckets(client, **options)
    app.middleware(RateLimit(5, 3600, burst=burst, key=by_key, store=store))
    app.get("/")(lambda: "x")
    return app


def test_a_burst_and_no_more(redis: Redis) -> None:
    client = RedisByLoop(redis.url)

    async def steps(asked: AsyncClient) -> None:
        responses = [await asked.get("/", headers={"x-key": "a"}) for _ in range(4)]
        assert [response.status_code for response in responses] == [200, 200, 200, 429]
        left = [response.headers["ratelimit"] for response in responses]
        assert left == ['"default";r=2;t=720', '"default";r=1;t=1440', '"default";r=0;t=2160',
                        '"default";r=0;t=720']  # fmt: skip
        assert responses[3].headers["retry-after"] == "720"
        assert (await asked.get("/", headers={"x-key": "b"})).status_code == 200
        assert "ratelimit" not in (await asked.get("/")).headers
        for hostile in ("\xff", "x" * 10_000, "{a}:*"):
            assert (await asked.get("/", headers={"x-key": hostile})).status_code == 200
        (keys,) = await client.pipeline([["KEYS", "*"]])
        assert len(keys) == 5
        assert all(key.startswith(b"rate:default ") and len(key) < 80 for key in keys)
        ttls = await client.pipeline([["PTTL", key] for key in keys])
        assert all(0 < ttl <= 3 * 720_000 + 1 for ttl in ttls)

    run(limited(client), steps, client)


def test_tokens_come_back(redis: Redis) -> None:
    """By the clock of Redis; a request too many takes none."""
    client = RedisByLoop(redis.url)
    buckets = RedisBuckets(client)

    async def take(key: bytes, interval_ns: int) -> tuple[bool, int, int, int]:
        taken = await buckets.take(key, interval_ns, 1)
        assert taken is not None
        return taken

    async def go() -> None:
        hour_ns = 3600 * 1_000_000_000
        assert await take(b"hour", hour_ns) == (True, 0, 0, hour_ns)
        for _ in range(2):
            allowed, left, retry_ns, full_ns = await take(b"hour", hour_ns)
            assert (allowed, left) == (False, 0)
            assert hour_ns - 60 * 1_000_000_000 < retry_ns == full_ns <= hour_ns
        async with asyncio.timeout(20):
            for _ in range(2):
                while not (await take(b"soon", 20_000_000))[0]:
                    await asyncio.sleep(0.01)
        await client.close()

    asyncio.run(go())


LIMITED = """
from citius.web.middleware import RateLimit, RedisBuckets
store = RedisBuckets.from_url(os.environ["STORE"], timeout_s=60)
app.middleware(RateLimit(200, 36000, store=store, key=lambda request: "all"))
@app.get("/")
def limited():
    return "x"
"""


def test_two_servers_count_together_exactly(serve: Callable[..., Server], redis: Redis) -> None:
    servers = [serve(LIMITED, "--workers", "2", env={"STORE": redis.url}) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda n: servers[n % 2].get("/").status, range(300)))
    assert statuses.count(200) == 200
    assert statuses.count(429) == 100


@pytest.mark.parametrize(("when_down", "status"), [("allow", 200), ("refuse", 503)])
def test_limits_of_a_redis_that_is_away(
    redis: Redis, when_down: Any, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = RedisByLoop(redis.url)
    app = limited(client, burst=1, when_down=when_down, timeout_s=20, retry_s=0.0, sync_s=0.0)
    said: list[str] = []
    monkeypatch.setattr("citius.observability.logging.warning", said.append)

    async def steps(asked: AsyncClient) -> None:
        fields = {"x-key": "a"}
        assert (await asked.get("/", headers=fields)).status_code == 200
        assert (await asked.get("/", headers=fields)).status_code == 429
        redis.stop()
        for _ in range(3):
            response = await asked.get("/", headers=fields)
            assert response.status_code == status
            assert "ratelimit" not in response.headers
        if status == 503:
            assert response.headers["retry-after"] == "1"
            assert "not available" in response.json()["detail"]
        redis.start()  # with no memory of the bucket
        async with asyncio.timeout(20):
            while "ratelimit" not in (await asked.get("/", headers=fields)).headers:
                await asyncio.sleep(0.01)
        assert (await asked.get("/", headers=fields)).status_code == 429

    run(app, steps, client)
    # The client has a line of its own for the connection.
    assert [text.split(":")[1] for text in said if text.startswith("rate limits")] == [
        " redis does not serve",
        " redis serves again",
    ]


def test_a_redis_that_hangs_is_asked_once(redis: Redis) -> None:
    client = RedisByLoop(redis.url)
    app = limited(client, when_down="allow", timeout_s=1, retry_s=3600)

    async def steps(asked: AsyncClient) -> None:
        assert (await asked.get("/", headers={"x-key": "a"})).status_code == 200
        redis.process.send_signal(signal.SIGSTOP)
        begun = asyncio.get_running_loop().time()
        for _ in range(100):
            response = await asked.get("/", headers={"x-key": "a"})
            assert response.status_code == 200
        # Once the timeout, not a hundred times.
        assert asyncio.get_running_loop().time() - begun < 15
        redis.process.send_signal(signal.SIGCONT)

    run(app, steps, client)


def test_a_mistake_of_the_script_is_no_500(redis: Redis) -> None:
    """What Redis refuses (it has no memory, say) is as if it were away."""
    client = RedisByLoop(redis.url)
    buckets = RedisBuckets(client, when_down="allow")

    async def go() -> None:
        await client.pipeline([["CONFIG", "SET", "maxmemory", "1"]])
        assert await buckets.take(b"a", 1_000_000, 1) is None
        await client.close()

    asyncio.run(go())


# --- sessions -------------------------------------------------------------------------------------


def with_sessions(client: Any, **options: Any) -> App:
    app = App()
    app.middleware(StoredSessions(RedisStore(client, **options)))

    @app.get("/read")
    async def read(request: Request) -> Any:
        return dict(session(request))

    @app.post("/count")
    async def count(request: Request) -> int:
        session(request)["n"] = session(request).get("n", 0) + 1
        return session(request)["n"]

    @app.post("/logout")
    async def logout(request: Request) -> None:
        session(request).clear()

    return app


SESSIONS = """
from citius.web.middleware import RedisStore, StoredSessions, session
app.middleware(StoredSessions(RedisStore.from_url(os.environ["STORE"])))
@app.get("/count")
async def count(request):
    session(request)["n"] = session(request).get("n", 0) + 1
    return session(request)["n"]
"""


def test_sessions_follow_a_client_over_servers(serve: Callable[..., Server], redis: Redis) -> None:
    servers = [serve(SESSIONS, "--workers", "2", env={"STORE": redis.url}) for _ in range(2)]
    cookie = servers[0].get("/count").headers["set-cookie"].partition(";")[0]
    counts = [servers[n % 2].get("/count", cookie=cookie).body for n in range(6)]
    assert counts == [str(n).encode() for n in range(2, 8)]


@pytest.mark.parametrize(("when_down", "read_status"), [("refuse", 503), ("empty", 200)])
def test_sessions_of_a_redis_that_is_away(redis: Redis, when_down: Any, read_status: int) -> None:
    client = RedisByLoop(redis.url)
    app = with_sessions(client, when_down=when_down, timeout_s=20, retry_s=0.0)

    async def steps(asked: AsyncClient) -> None:
        assert (await asked.post("/count")).json() == 1
        cookies = dict(asked.cookies)
        (keys,) = await client.pipeline([["KEYS", "*"]])
        kept = {key: await client.get(key) for key in keys}
        redis.stop()
        read = await asked.get("/read")
        assert read.status_code == read_status
        if read_status == 200:
            assert read.json() == {}
        # A change, or an end, that was not kept is never pretended.
        assert (await asked.post("/count")).status_code == 503
        if read_status == 503:
            assert (await asked.post("/logout")).status_code == 503
        assert dict(asked.cookies) == cookies
        redis.start()
        other = RedisByLoop(redis.url)
        for key, value in kept.items():
            await other.set(key, value, ex=3600)
        await other.close()
        async with asyncio.timeout(20):
            while (counted := await asked.post("/count")).status_code != 200:
                await asyncio.sleep(0.01)
        assert counted.json() == 2

    run(app, steps, client)


def test_clients_without_a_session_are_served(redis: Redis) -> None:
    client = RedisByLoop(redis.url)
    redis.stop()

    async def steps(asked: AsyncClient) -> None:
        assert (await asked.get("/read")).json() == {}

    run(with_sessions(client), steps, client)


# --- clients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RedisStore, RedisBuckets])
@pytest.mark.parametrize(
    "url", ["redis://:a/b@localhost", "redis://localhost:x", "http://localhost"]
)
def test_a_url_that_is_none_ends_the_start(kind: Any, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        kind.from_url(url)
    assert "a/b" not in str(caught.value)


def test_limits_refuse_a_client_they_cannot_use() -> None:
    with pytest.raises(
        ConfigError, match=r"expected a citius\.redis\.Redis .*RedisBuckets\.from_url"
    ):
        RedisBuckets(object())


def test_clients_of_loops_that_were_closed_are_not_kept() -> None:
    client = RedisByLoop("redis://localhost")

    async def use() -> None:
        client.here()

    for _ in range(3):
        asyncio.run(use())
    assert len(client._clients.all()) == 1


def test_commands_fail_at_once_while_nothing_can_be_connected(redis: Redis) -> None:
    """They do not wait for their own time-out; once Redis is back, they are done."""
    client = RedisByLoop(redis.url, timeout_s=3600)

    async def go() -> None:
        await client.set("a", b"1", ex=3600)
        redis.stop()
        async with asyncio.timeout(60):
            with pytest.raises(EngineAway):
                await client.pipeline([["GET", "a"]])
            redis.start()
            while True:
                with suppress(EngineAway):
                    assert await client.pipeline([["GET", "a"]]) == [None]
                    break
                await asyncio.sleep(0.01)  # until it connects again
        await client.close()

    asyncio.run(go())


def test_sessions_take_a_client_of_redis_py(redis: Redis) -> None:
    redis_py = pytest.importorskip("redis.asyncio", reason="redis-py is not installed")

    async def go() -> None:
        async with redis_py.Redis.from_url(redis.url) as client:
            store = RedisStore(client)
            await store.save("a", b"1", 60)
            await store.replace("none", b"2", 60)
            assert [await store.load(key) for key in ("a", "none")] == [b"1", None]

    asyncio.run(go())


def test_a_store_of_a_url_serves_several_event_loops(redis: Redis) -> None:
    """A worker with reactor threads has one in each: at the same time, and one after the other."""
    store = RedisStore.from_url(redis.url)
    together = threading.Barrier(3)

    async def use(name: str) -> list[Any]:
        await store.save(name, name.encode(), 60)
        together.wait(20)
        found = [await store.load(one) for one in "abc"]
        taken = await RedisBuckets(store._client).take(b"all", 10**12, 2)
        await store.close()
        return [*found, taken]

    async def use_alone(name: str) -> object:
        try:
            return await store.load(name)
        finally:
            await store.close()

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda name: asyncio.run(use(name)), "abc"))
    assert [one[:3] for one in results] == [[b"a", b"b", b"c"]] * 3
    assert sorted(one[3][0] for one in results) == [False, True, True]
    assert asyncio.run(use_alone("a")) == b"a"


def test_programming_errors_are_no_outage() -> None:
    class Broken:
        async def get(self, key: str) -> bytes:
            raise KeyError("a defect of the client")

    with pytest.raises(KeyError):
        asyncio.run(RedisStore(Broken()).load("a"))
