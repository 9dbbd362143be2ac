"""Everything that an application can break: ``/use/NAME`` takes it, ``/break/NAME`` breaks it."""

# pyright: basic

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import executor_bodies as bodies
from citius import App, NotFound, Request, Response, Templates, defer, pg, redis, sqlite
from citius.cluster import Cluster

here = Path(os.environ["HERE"])
postgres = pg.Pool(os.environ["DSN"], size=1)


def end_the_thread(notice: pg.ServerError) -> None:
    raise SystemExit(1)


synced = pg.Pool(os.environ["DSN"], size=1, on_notice=end_the_thread)
store = redis.Redis(os.environ["REDIS"])
lite = sqlite.Pool(here / "data.db")
templates = Templates(here / "templates", reload=True)
cluster = Cluster()


refreshing: list[asyncio.Task[None]] = []
fail_refresh: list[asyncio.Event] = []


async def refresh(failed: asyncio.Event) -> None:
    """What a lifespan's task group runs as long as the application serves."""
    fail_refresh.append(failed)
    await failed.wait()
    raise RuntimeError("a task of the lifespan")


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for one in (postgres, store, lite):
            await stack.enter_async_context(one.lifespan(app))
        await lite.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER)")
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        refreshing.append(tasks.create_task(refresh(asyncio.Event())))
        yield
        refreshing[0].cancel()


app = App(lifespan=lifespan, cluster=cluster)
app.executor("processes", processes=1, deadline_s=0.5)
app.executor("threads", threads=1, calls_max=4, deadline_s=0.5)
app.executor("standard", lambda: ProcessPoolExecutor(1))
for name in ("processes", "threads", "standard"):
    app.get(f"/use/{name}", executor=name)(bodies.where)
for name in ("processes", "standard"):
    app.get(f"/break/{name}", executor=name)(bodies.crash)
app.get("/break/threads", executor="threads")(bodies.loop)
app.get("/break/stuck", executor="processes")(bodies.loop)
app.get("/use/stuck", executor="processes")(bodies.where)
deferred: list[int] = []
room = app.room("room")
news = app.broadcast("news")
losing = app.room("losing", on_gap=lambda count: sys.exit(1))
cached = cluster.cache("cached", ttl_s=60)
ticks = 0


@app.get("/break/forker")
def kill_forker() -> str:
    executor: Any = app._executors["processes"]._executor
    os.kill(executor._forker.pid, signal.SIGKILL)
    return "killed"


@app.get("/use/forker")
async def use_forker() -> dict:
    executor: Any = app._executors["processes"]._executor
    return await asyncio.wrap_future(executor.submit(bodies.where))


@app.get("/use/postgres")
async def use_postgres() -> int:
    return await postgres.fetch_value("SELECT 1")


@app.get("/break/postgres")
async def break_postgres() -> int:
    return await postgres.fetch_value("SELECT pg_terminate_backend(pg_backend_pid())")


@app.get("/use/redis")
async def use_redis() -> bool:
    return bool(await store.execute("PING"))


@app.get("/break/redis")
async def break_redis() -> str:
    killer = await asyncio.create_subprocess_exec(
        "redis-cli", "-u", os.environ["REDIS"], "CLIENT", "KILL", "TYPE", "normal",
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    await killer.wait()
    return "killed"


@app.get("/use/sqlite")
async def use_sqlite() -> int:
    await lite.execute("INSERT INTO t VALUES (1)")
    return await lite.fetch_value("SELECT 1")


@app.get("/break/sqlite")
async def break_sqlite() -> str:
    async with lite.transaction() as transaction:
        await transaction.execute("INSERT INTO t VALUES (2)")
        raise RuntimeError("in a transaction")


@app.get("/use/template")
def use_template(request: Request):
    return templates("page", request)


@app.get("/break/template")
def break_template(request: Request):
    (here / "templates/page").write_text("{% broken")
    try:
        return templates("page", request)
    finally:
        threading.Timer(0.2, (here / "templates/page").write_text, ["page"]).start()


@app.get("/use/deferred")
async def use_deferred(request: Request) -> Response:
    before = len(deferred)
    defer(request, deferred.append, 1)
    # Returned, for what a handler that fails has deferred is not called.
    return Response("ran") if before else Response("none has run yet", 404)


@app.get("/break/deferred")
async def break_deferred(request: Request) -> str:
    def fail() -> None:
        raise SystemExit(1)

    async def fail_async() -> None:
        raise asyncio.CancelledError

    defer(request, fail)
    defer(request, fail_async)
    return "deferred"


@app.get("/use/cache")
async def use_cache() -> str:
    async def make() -> str:
        return "made"

    return await cached.get_or_make("key", make)


@app.get("/break/cache")
async def break_cache() -> str:
    async def make() -> str:
        raise RuntimeError("not made")

    await cached.invalidate("key")
    return await cached.get_or_make("key", make)


@app.get("/use/room")
def use_room() -> int:
    return room.send("hello")


@app.get("/break/room")
def break_room() -> int:
    return room.send(object())  # type: ignore[arg-type]


@app.get("/use/log")
def use_log() -> str:
    logging.getLogger("shop").warning("a line that is there")
    return "logged"


@app.get("/break/log")
def break_log() -> str:
    class Failing(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("a handler of the application")

    root = logging.getLogger()
    handler = Failing()
    root.addHandler(handler)
    try:
        logging.shutdown()
        logging.getLogger("shop").warning("while it is broken")
    finally:
        root.removeHandler(handler)
    return "broken"


@app.get("/use/worker")
def use_worker() -> int:
    return os.getpid()


@app.get("/break/worker")
def break_worker() -> None:
    os._exit(7)


@app.get("/use/lifespan")
async def use_lifespan() -> str:
    if refreshing[0].done():
        raise NotFound("nothing is refreshed any more")
    return "refreshed"


@app.get("/break/lifespan")
async def break_lifespan() -> str:
    fail_refresh[0].set()
    return "told"


@app.get("/use/sync", blocking=True)
def use_sync() -> int:
    return synced.sync.fetch_value("SELECT 1")


@app.get("/break/sync", blocking=True)
def break_sync() -> None:
    synced.sync.execute("DO $$ BEGIN RAISE NOTICE 'ends the thread of the pool'; END $$")


@app.get("/use/loop")
async def use_loop() -> str:
    await asyncio.sleep(0)
    return await asyncio.to_thread(str, "ran")


@app.get("/break/loop")
async def break_loop() -> str:
    asyncio.get_running_loop().stop()
    for task in asyncio.all_tasks():
        task.cancel()
    return "stopped"


@app.get("/follow")
def follow(request: Request):
    response = news.response(request)
    response.headers["x-worker"] = str(os.getpid())
    return response


@app.get("/send")
def send(n: int) -> int:
    return news.send(n)


@app.get("/lose")
def lose(size: int) -> int:
    """Have the other workers told of a gap, at which their ``on_gap`` ends the thread that reads."""
    losing.send("x" * size)
    losing.send("y")
    return losing.missed
