"""What sessions keep while their Redis is killed, stands still, is cut off, and comes back."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from citius import App, Request
from citius.cluster import Cluster
from citius.redis import Redis as OwnClient
from citius.testing import AsyncClient
from citius.web.middleware import RedisStore, StoredSessions, session
from engines_rig import Cable, Redis

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

HOW = ["killed", "paused", "cut off"]


class Outage:
    """A Redis that can be taken away in three ways; what it has is kept."""

    def __init__(self, directory: Path, how: str) -> None:
        self.redis = Redis(directory)
        self.cable = Cable(self.redis)
        self.url = self.cable.url
        self._how = how

    def begin(self) -> None:
        {"killed": self.redis.kill, "paused": self.redis.hang, "cut off": self.cable.cut}[
            self._how
        ]()

    def end(self) -> None:
        {"killed": self.redis.start, "paused": self.redis.go_on, "cut off": self.cable.join}[
            self._how
        ]()

    def close(self) -> None:
        self.cable.close()
        self.redis.close()


@pytest.fixture(params=HOW)
def outage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Outage]:
    made = Outage(tmp_path / "redis", request.param)
    yield made
    made.close()


class Gate:
    """Where a handler waits between reading and changing its session."""

    def __init__(self) -> None:
        self.is_at = asyncio.Event()
        self.may_go = asyncio.Event()

    async def wait(self) -> None:
        self.is_at.set()
        await self.may_go.wait()


def shop(url: str, when_down: Any, gate: Callable[[], Gate], *, is_own: bool) -> App:
    cluster = Cluster(OwnClient(url) if is_own else url, start_wait_s=0.1)
    app = App(cluster=cluster)
    app.middleware(StoredSessions(cluster.sessions(when_down=when_down)))

    @app.post("/login")
    async def login(request: Request) -> str:
        session(request)["user"] = "ann"
        return "in"

    @app.get("/me")
    async def me(request: Request) -> Any:
        return dict(session(request))

    @app.post("/clear")
    async def clear(request: Request) -> str:
        session(request).clear()
        return "out"

    @app.post("/pop")
    async def pop(request: Request) -> str:
        session(request).pop("user", None)
        return "out"

    @app.post("/quiet")
    async def quiet(request: Request) -> str:
        with suppress(Exception):
            session(request)["cart"] = 1
        return "kept"

    @app.post("/rotate")
    async def rotate(request: Request) -> str:
        session(request).rotate()
        return "rotated"

    @app.post("/slow/{what}")
    async def slow(request: Request, what: str) -> str:
        found = session(request)
        assert found.get("user") in (None, "ann")
        await gate().wait()
        if what == "clear":
            found.clear()
        elif what == "again":
            found.clear()
            found["user"] = "eve"
        else:
            found["cart"] = [1]
        return "done"

    return app


def run(steps: Callable[[], Any]) -> None:
    asyncio.run(steps())


async def until_read(client: AsyncClient) -> Any:
    """What the session holds once it can be read."""
    async with asyncio.timeout(20):
        while True:
            response = await client.get("/me")
            changed = await client.post("/quiet")
            if (response.status_code, changed.status_code) == (200, 200):
                return (await client.get("/me")).json()
            await asyncio.sleep(0.02)  # until it serves again


@pytest.mark.parametrize("is_own", [False, True], ids=["url", "client"])
@pytest.mark.parametrize("when_down", ["refuse", "empty"])
def test_no_change_is_pretended_in_an_outage(
    outage: Outage, when_down: Any, *, is_own: bool
) -> None:
    """Scale S2, S3: what the response has said is so afterwards, whatever the handler calls."""

    async def steps() -> None:
        async with AsyncClient(shop(outage.url, when_down, Gate, is_own=is_own)) as client:
            assert (await client.post("/login")).status_code == 200
            cookies = dict(client.cookies)
            outage.begin()
            statuses = {
                path: (await client.post(path)).status_code
                for path in ("/clear", "/pop", "/quiet", "/rotate", "/login")
            }
            assert statuses == dict.fromkeys(statuses, 503)
            assert dict(client.cookies) == cookies
            read = await client.get("/me")
            assert read.status_code == (503 if when_down == "refuse" else 200)
            outage.end()
            # A command that had its 503 may be carried out later; nothing else may have happened.
            found = await until_read(client)
            assert found in ({"user": "ann", "cart": 1}, {"cart": 1})

    run(steps)


@pytest.mark.parametrize("is_own", [False, True], ids=["url", "client"])
def test_an_engine_that_comes_back_during_a_request(outage: Outage, *, is_own: bool) -> None:
    """Scale S2, S3: what was not read is not replaced; what was ended stays so."""
    expected: dict[str, tuple[int, dict[str, str]]] = {
        "clear": (200, {}),
        "again": (200, {"user": "eve"}),
        "cart": (503, {"user": "ann"}),
    }

    async def steps() -> None:
        gate = Gate()
        app = shop(outage.url, "empty", lambda: gate, is_own=is_own)
        for what, (status, found) in expected.items():
            gate = Gate()
            async with AsyncClient(app) as client:
                assert (await client.post("/login")).status_code == 200
                before = dict(client.cookies)
                outage.begin()
                asked = asyncio.ensure_future(client.post(f"/slow/{what}"))
                await gate.is_at.wait()
                outage.end()
                # Until another request finds it there again.
                client.cookies.clear()
                async with asyncio.timeout(20):
                    while (await client.post("/login")).status_code != 200:
                        await asyncio.sleep(0.02)
                client.cookies.clear()
                client.cookies.update(before)
                gate.may_go.set()
                assert (await asked).status_code == status, what
                assert (await client.get("/me")).json() == found, what
                # The identifier from before stands for nothing, or for what it stood for.
                client.cookies.clear()
                client.cookies.update(before)
                old = (await client.get("/me")).json()
                assert old == ({} if status == 200 else {"user": "ann"}), what

    run(steps)


def test_ended_sessions_stay_ended_through_outages(outage: Outage) -> None:
    """Scale S2: of 200 log-outs, begun before, in and after outages, none with a 200 is undone."""

    async def steps() -> None:
        app = shop(outage.url, "empty", Gate, is_own=False)
        said: Counter[int] = Counter()
        cookies: list[str] = []
        ended: list[str] = []
        async with AsyncClient(app) as client:
            for _ in range(200):
                client.cookies.clear()
                assert (await client.post("/login")).status_code == 200
                cookies.append(client.cookies["session"])
            for number, one in enumerate(cookies):
                if number % 50 == 20:
                    outage.begin()
                if number % 50 == 40:
                    outage.end()
                    await asyncio.sleep(1.1)  # so that some succeed again
                client.cookies["session"] = one
                status = (await client.post("/clear")).status_code
                said[status] += 1
                if status == 200:
                    ended.append(one)
            await until_read(client)
            for one in ended:
                client.cookies["session"] = one
                assert (await client.get("/me")).json() == {}
        assert said[200] > 20
        assert said[503] > 20
        assert set(said) == {200, 503}

    run(steps)


def test_a_store_that_could_not_read_is_asked_to_delete_all_the_same() -> None:
    """Scale S2: with a store of one's own, which says `Unreadable`."""
    from citius.errors import ServiceUnavailable
    from citius.web.middleware import Unreadable

    class Store:
        deleted = 0

        async def load(self, key: str) -> Unreadable:
            return Unreadable(ServiceUnavailable("later"))

        async def save(self, key: str, data: bytes, max_age_s: int) -> None: ...

        replace = save

        async def delete(self, key: str) -> None:
            self.deleted += 1

    store = Store()
    app = App()
    app.middleware(StoredSessions(store))

    @app.post("/out")
    async def out(request: Request) -> None:
        session(request).clear()

    async def steps() -> None:
        async with AsyncClient(app) as client:
            client.cookies["session"] = "A" * 43
            response = await client.post("/out")
            assert response.status_code == 204
            assert (
                'session=""' in response.headers["set-cookie"]
                or "Max-Age=0" in (response.headers["set-cookie"])
            )
        assert store.deleted == 1

    run(steps)
    assert isinstance(RedisStore(object()), RedisStore)
