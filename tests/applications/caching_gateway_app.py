"""A gateway that keeps responses, before the servers in UPSTREAMS."""

# pyright: basic

import os

from citius import App
from citius.http import Client
from citius.http.gateway import HTTPCache

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


@app.get("/cache")
def stats() -> dict[str, int]:
    return cache.stats()
