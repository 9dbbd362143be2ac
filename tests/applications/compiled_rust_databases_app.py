"""Handlers of examples/compiled-rust that ask Redis and PostgreSQL."""

import contextlib
import os
from collections.abc import AsyncGenerator

from citius import App, load_handlers
from citius.go import share
from citius.pg import Pool
from citius.redis import Redis

redis, pool = Redis(os.environ["REDIS"]), Pool(os.environ["DSN"], size=2)


@contextlib.asynccontextmanager
async def lifespan(_app: App) -> AsyncGenerator[None]:
    async with redis, pool:
        yield


app = App(lifespan=lifespan)
share("cache", redis)
share("db", pool)
handlers = load_handlers(os.environ["LIBRARY"])
app.post("/visits/{page}", compiled=handlers["visits"], serial=True)
app.get("/sum", compiled=handlers["sum"], serial=True)
app.get("/pool/sum", compiled=handlers["sum"], serial=True, pool=True)
