"""A node of a cluster: rooms, events, and what is kept in the engine at CLUSTER."""

# pyright: basic

import os

from citius import App, Event, Request, Response, WebSocket
from citius.cluster import Cluster
from citius.redis import Redis
from citius.web.middleware import RateLimit, StoredSessions, session

url = os.environ.get("CLUSTER")
cluster = Cluster(
    Redis(url) if url and "OWN_CLIENT" in os.environ else url,
    messages=os.environ.get("CLUSTER_MESSAGES", "").split() or None,
    application="test",
    secret=os.environ.get("CLUSTER_SECRET"),
)
app = App(cluster=cluster)
lobby = app.room("lobby")
log = app.room("log", history=5000)
news = app.broadcast("news", history=5000)
cache = cluster.cache("values", type=str)
online = cluster.presence("lobby", ttl_s=3)
made = 0

only_limited = RateLimit(
    1000, 1, burst=int(os.environ.get("LIMIT_BURST", "20")), key=lambda request: "all",
    only=["/limited"], store=cluster.buckets(),
)  # fmt: skip
app.middleware(only_limited)
app.middleware(StoredSessions(cluster.sessions()))


@app.websocket("/lobby")
async def chat(ws: WebSocket, name: str = "") -> None:
    lobby.join(ws)
    if not name:
        async for message in ws:
            lobby.send(message, exclude=ws)
        return
    async with online.enter(name, {"node": os.getpid()}):
        async for message in ws:
            lobby.send(message)


@app.websocket("/log")
async def follow_log(ws: WebSocket, after: str = "") -> None:
    log.join(ws, after=after or None)
    async for message in ws:
        log.send(message)


@app.get("/news")
async def follow(request: Request) -> Response:
    return news.response(request)


@app.post("/news")
async def publish(request: Request) -> str:
    news.send(Event(request.body().decode()))
    return str(news.missed)


@app.post("/log")
async def publish_to_log(request: Request) -> str:
    return str(log.send(request.body().decode()))


@app.get("/limited")
async def limited() -> str:
    return "in"


@app.get("/cached/{key}")
async def cached(key: str) -> str:
    async def make() -> str:
        global made
        made += 1
        return f"{os.getpid()}-{made}"

    return await cache.get_or_make(key, make, tags=["all"])


@app.post("/invalidate")
async def invalidate() -> None:
    await cache.invalidate("all")


@app.get("/online")
async def who() -> list[str]:
    return sorted(await online.members())


@app.get("/count")
async def count(request: Request) -> int:
    session(request)["n"] = session(request).get("n", 0) + 1
    return session(request)["n"]


@app.get("/once")
async def once() -> int:
    async with cluster.lock("once", ttl_s=3).hold(wait_s=20) as held:
        return held.fence


@app.get("/stats")
async def stats() -> dict[str, object]:
    return {"pid": os.getpid(), **cluster.stats.as_dict(), "is_connected": cluster.is_connected}
