"""What a server does with citius.redis, in coroutines, threads and goroutines; the URL is in REDIS."""

# pyright: basic

import asyncio
import os
import sys

import msgspec
from citius import App
from citius.go import WaitGroup, go
from citius.redis import Redis, gather

redis = Redis(os.environ["REDIS"], timeout_s=float(os.environ.get("TIMEOUT_S", "5")))
app = App(lifespan=redis.lifespan)


class Record(msgspec.Struct):
    id: int
    name: str


@app.get("/record/{id}")
async def record(id: int) -> Record | None:
    return await redis.get_msgpack(f"record:{id}", as_=Record)


@app.post("/record/{id}")
async def store(id: int, name: str) -> bool:
    return await redis.set_msgpack(f"record:{id}", Record(id, name))


@app.get("/echo/{text}")
async def echo(text: str) -> str:
    return (await redis.echo(text)).decode()


@app.get("/several")
async def several() -> list[object]:
    await asyncio.sleep(0.001)
    first = await gather(*(redis.execute("ECHO", n, as_=int) for n in range(5)))
    async with redis.transaction() as tx:
        total = tx.incr("total")
    return [*first, await total > 0]


@app.get("/clients")
async def clients() -> int:
    """Connections, of all reactors."""
    return redis.connections


@app.get("/heard/{text}")
async def heard(text: str) -> str:
    """What is published comes to a subscription of this reactor."""
    async with redis.subscribe(f"news-{text}") as messages:
        await redis.publish(f"news-{text}", text)
        async for message in messages:
            return message.data.decode()
    return ""


@app.get("/big")
async def big() -> bool:
    text = "x" * 3_000_000
    await redis.set("big", text)
    return await redis.get("big", as_=str) == text


@app.get("/wait/{key}")
async def wait(key: str) -> object:
    return str(await redis.blpop(key, timeout=30))


@app.get("/carried")
async def carried() -> list[bool]:
    assert redis._connections is not None
    return [link._reactor is not None for link in redis._connections.links]


@app.get("/thread/{text}", blocking=True)
def in_thread(text: str) -> str:
    return redis.sync.echo(text).decode()


@app.get("/serial/{text}")
def serial(text: str) -> str:
    """A plain function: under gevent in a greenlet; on an event loop it may not wait."""
    return redis.sync.echo(text).decode()


@app.get("/serial-wait/{key}")
def serial_wait(key: str) -> str:
    return str(redis.sync.blpop(key, timeout=30))


@app.get("/goroutines/{text}", blocking=True)
def goroutines(text: str) -> list[str]:
    found = []
    group = WaitGroup()

    def ask(number: int) -> None:
        found.append(redis.sync.echo(f"{text}{number}").decode())
        group.done()

    group.add(5)
    for number in range(5):
        go(ask, number)
    group.wait()
    return sorted(found)


@app.on_shutdown
def late() -> None:
    print("shutdown", file=sys.stderr, flush=True)


# For other servers.
asgi = app.asgi()
