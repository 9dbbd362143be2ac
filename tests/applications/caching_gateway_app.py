"""A gateway that keeps responses, before the servers in UPSTREAMS."""

# pyright: basic

import os
import time

from citius import App
from citius.http import Client
from citius.http.gateway import HTTPCache
from citius.http.gateway.entries import Entry
from citius.http.gateway.stores import Mark, MemoryResponses


class LateStore(MemoryResponses):
    """Another process keeps its response, and is done, right after the first look for a URL."""

    async def find(self, key, fields):
        found = await super().find(key, fields)
        if found.entry is None:
            other = Entry(200, [("cache-control", "max-age=9")], b"", (), time.monotonic())
            other.set_body(b"of another process")
            self.keep(key, other, Mark(), lambda: None)
        return found


client = Client(os.environ["UPSTREAMS"].split()[0])
app = App(lifespan=client.lifespan)
if url := os.environ.get("REDIS_URL"):
    cache = HTTPCache(redis=url, entry_bytes_max=50_000)
else:
    cache = HTTPCache(bytes_max=100_000, entry_bytes_max=50_000)
app.forward("/c/{rest:path}", client, cache=cache)
app.forward("/large/{rest:path}", client, cache=HTTPCache(entry_bytes_max=16 << 20))
app.forward(
    "/own/{rest:path}", client, cache=HTTPCache(), headers={"authorization": "of the gateway"}
)
late = HTTPCache()
late.store = LateStore(1 << 20)
app.forward("/late/{rest:path}", client, cache=late)


@app.get("/to")
def to() -> str:
    return os.environ["UPSTREAMS"]


@app.get("/cache")
def stats() -> dict[str, int]:
    return cache.stats()
