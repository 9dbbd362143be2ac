"""Compiled handlers that call Redis and PostgreSQL, of the library in the variable LIBRARY."""

import contextlib
import os
from collections.abc import AsyncGenerator

from citius import App, load_handlers
from citius.go import share
from citius.pg import Pool
from citius.redis import Redis

redis = Redis(os.environ["REDIS"], name="cache", timeout_s=60.0)
pool = Pool(os.environ["DSN"], size=2)


@contextlib.asynccontextmanager
async def lifespan(_app: App) -> AsyncGenerator[None]:
    async with redis, pool:
        yield


app = App() if "CLOSED" in os.environ else App(lifespan=lifespan)
share("cache", redis)
if "CLOSED" not in os.environ:
    share("db", pool)
handlers = load_handlers(os.environ["LIBRARY"])
for name in ("redis", "pg", "many"):
    app.post("/" + name, compiled=handlers[name], serial=True)
    app.post("/pool/" + name, compiled=handlers[name], serial=True, pool=True)
    app.post("/turn/" + name, compiled=handlers[name])


@app.get("/alive")
def alive():
    return "yes"
