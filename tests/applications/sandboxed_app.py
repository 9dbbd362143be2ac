"""What applications do, each if the environment says where: databases, processes, files, uploads."""

# pyright: basic

import asyncio
import os
import tempfile
import zoneinfo
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

from citius import App, UploadFile, pg, sqlite
from citius.redis import Redis

pools = {}
if dsn := os.environ.get("DSN"):
    pools["pg"] = pg.Pool(dsn, size=1, wait_s=5)
if url := os.environ.get("REDIS"):
    pools["redis"] = Redis(url, timeout_s=5)
if path := os.environ.get("DATABASE"):
    pools["sqlite"] = sqlite.Pool(path)


@asynccontextmanager
async def lifespan(app):
    async with AsyncExitStack() as stack:
        for pool in pools.values():
            await stack.enter_async_context(pool)
        if "sqlite" in pools:
            await pools["sqlite"].script("CREATE TABLE IF NOT EXISTS visit (at TEXT)")
        yield


app = App(lifespan=lifespan)
app.executor("heavy", processes=1, deadline_s=20)
app.static("/files", os.environ.get("FILES", "."))


@app.get("/pg")
async def database() -> int:
    """Its sessions are opened again after one has ended."""
    with suppress(pg.PostgresError):
        await pools["pg"].execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return await pools["pg"].fetch_value("SELECT 42")


@app.get("/redis")
async def store() -> str:
    await pools["redis"].set("a", "b")
    return (await pools["redis"].get("a")).decode()


@app.get("/sqlite")
async def visits() -> int:
    async with pools["sqlite"].transaction() as tx:
        await tx.execute("INSERT INTO visit VALUES (datetime())")
    return await pools["sqlite"].fetch_value("SELECT count(*) FROM visit")


@app.get("/process", executor="heavy")
def process() -> int:
    return os.getppid() != os.getpid() and 42


@app.post("/upload")
async def upload(file: UploadFile) -> int:
    with tempfile.NamedTemporaryFile() as copy:
        content = await file.read()
        Path(copy.name).write_bytes(content)
        return Path(copy.name).stat().st_size


@app.get("/library")
async def library() -> str:
    """Modules, time zones and threads that come late."""
    import xml.dom.minidom

    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    text = await asyncio.to_thread(xml.dom.minidom.parseString, "<a/>")
    root = text.documentElement
    assert root is not None, "the text has an element"
    return f"{zone} {root.tagName}"
