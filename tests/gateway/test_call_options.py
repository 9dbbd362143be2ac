"""Options that are given with a call: what they cannot be is refused, as it is where clients are made.

``pool.transaction(readonly="no")`` wrote nothing, ``get(url, follow_redirects="no")`` followed, and a value
of the cache with ``tags="user"`` had a tag for each letter, so that invalidating it did nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from citius import App, ConfigError, http, pg, redis, sqlite
from citius.cluster import Cluster
from citius.http.gateway import Upstreams

app = App()
app.get("/")(lambda: "x")

postgres: Any = pg.Pool("postgres://a")
file: Any = sqlite.Pool("/nowhere/file.db")
commands: Any = redis.Redis("redis://a")
client: Any = http.Client(app=app, base_url="http://x")
cache: Any = Cluster().cache("c")
lock: Any = Cluster().lock("l")
upstreams: Any = Upstreams(["http://a"])
NAN = float("nan")


async def make() -> str:
    return "x"


async def held(wait_s: object) -> None:
    async with lock.hold(wait_s=wait_s):
        pass


async def streamed(**options: Any) -> None:
    async with client.stream("GET", "/", **options):
        pass


async def closed(pool: Any, wait_s: object) -> None:
    async with pool:
        await pool.close(wait_s=wait_s)


WRONG: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: client.get("/", follow_redirects="no"),
        "follow_redirects= is True or False, got 'no'",
    ),
    (
        lambda: client.get("/", follow_redirects=None),
        "follow_redirects= is True or False, got None",
    ),
    (lambda: client.get("/", follow_redirects=0), "follow_redirects= is True or False, got 0"),
    (lambda: client.post("/", follow_redirects="false"), "True or False, got 'false'"),
    (lambda: streamed(follow_redirects="no"), "True or False, got 'no'"),
    (lambda: client.get("/", timeout="5"), "timeout= is seconds"),
    (lambda: client.get("/", timeout=NAN), "more than 0 or None, got nan"),
    (lambda: upstreams.drain("http://a", drains="no"), "drains= is True or False"),
    (lambda: postgres.transaction(readonly="no"), "readonly= is True or False, got 'no'"),
    (lambda: postgres.transaction(deferrable="off"), "deferrable= is True or False"),
    (lambda: postgres.transaction(reset=0), "reset= is True or False, got 0"),
    (lambda: postgres.transaction(isolation="snapshot"), "isolation is one of"),
    (lambda: postgres.cursor("SELECT", rows_max=1.5), "rows_max= is a whole number, got 1.5"),
    (lambda: postgres.cursor("SELECT", rows_max="5"), "rows_max= is a whole number, got '5'"),
    (lambda: postgres.cursor("SELECT", rows_max=0), "rows_max must be at least 1"),
    (lambda: postgres.listen("c", queue_max=1.5), "queue_max= is a whole number"),
    (lambda: postgres.listen("c", on_gap="log"), "on_gap= is a function or None"),
    (lambda: file.transaction(readonly="no"), "readonly= is True or False, got 'no'"),
    (lambda: file.transaction(deferrable="off"), "deferrable= is True or False"),
    (lambda: file.transaction(isolation="snapshot"), "isolation is one of"),
    (lambda: file.cursor("SELECT", rows_max=True), "rows_max= is a whole number, got True"),
    (lambda: file.close(wait_s=NAN), "wait_s= is a number, got nan"),
    (lambda: file.close(wait_s=-1), "wait_s must be at least 0, got -1"),
    (lambda: commands.set("k", "v", nx="no"), "nx= is True or False, got 'no'"),
    (lambda: commands.expire("k", 5, gt="no"), "gt= is True or False"),
    (lambda: commands.zadd("k", {"a": 1}, xx=0), "xx= is True or False, got 0"),
    (lambda: commands.zrange("k", 0, 1, desc="no"), "rev= is True or False"),
    (lambda: commands.copy("a", "b", replace="no"), "replace= is True or False"),
    (lambda: commands.getex("a", persist="no"), "persist= is True or False"),
    (lambda: commands.xadd("a", {"a": "b"}, maxlen=5, approximate="no"), "approximate= is True"),
    (lambda: commands.geosearch("k", member="m", radius=1, unit="m", desc="no"), "desc= is True"),
    (lambda: commands.register_script("", is_read_only="no"), "is_read_only= is True or False"),
    (lambda: cache.set("k", "v", tags="user"), r"tags= is a list of texts, tags=\['user'\]"),
    (lambda: cache.get_or_make("k", make, tags="user"), "tags= is a list of texts"),
    (lambda: cache.set("k", "v", ttl_s="5"), "ttl_s= is a number, got '5'"),
    (lambda: cache.set("k", "v", ttl_s=NAN), "ttl_s= is a number, got nan"),
    (lambda: cache.get_or_make("k", make, ttl_s=-1), "ttl_s must be more than 0, got -1"),
    (lambda: held("5"), "wait_s= is a number or None, got '5'"),
    (lambda: held(NAN), "wait_s= is a number or None, got nan"),
    (lambda: held(-1), "wait_s must be at least 0, got -1"),
]


async def awaited(call: Callable[[], Any]) -> None:
    made = call()
    if hasattr(made, "__await__"):
        await made


@pytest.mark.parametrize(("call", "said"), WRONG, ids=range(len(WRONG)))
def test_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=said):
        asyncio.run(awaited(call))


def test_a_client_that_refuses_to_close_is_open(tmp_path: Path) -> None:
    async def run() -> None:
        async with sqlite.Pool(tmp_path / "file.db") as pool:
            with pytest.raises(ConfigError, match=r"wait_s= is a number, got '5'"):
                await pool.close(wait_s="5")  # pyright: ignore[reportArgumentType]
            assert await pool.fetch_value("SELECT 1") == 1

    asyncio.run(run())


RIGHT: list[Callable[[], Any]] = [
    lambda: client.get("/", follow_redirects=True),
    lambda: client.get("/", follow_redirects=False, timeout=5),
    lambda: postgres.transaction(isolation="serializable", readonly=True, deferrable=True),
    lambda: postgres.cursor("SELECT", rows_max=5),
    lambda: file.transaction(readonly=True, deferrable=False),
    lambda: cache.set("k", "v", tags=("user", "7"), ttl_s=5),
    lambda: cache.get_or_make("k", make, tags=iter(["user"]), ttl_s=0.5),
    lambda: held(0),
]


@pytest.mark.parametrize("call", RIGHT, ids=range(len(RIGHT)))
def test_taken(call: Callable[[], Any]) -> None:
    asyncio.run(awaited(call))
