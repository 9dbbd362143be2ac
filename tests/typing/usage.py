"""What users write, as type checkers see it: this file has to be free of errors under both of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal, TypedDict, assert_type

import msgspec
from citius import (
    App,
    Config,
    FormData,
    FromRedis,
    Headers,
    HTTPError,
    MutableHeaders,
    NotFound,
    QueryParams,
    Request,
    Response,
    json_response,
    pg,
    redirect,
)
from citius.http import Client as HttpClient
from citius.http import ReceivedEvent, Timeout
from citius.http import Response as HttpResponse
from citius.redis import Redis, gather
from citius.testing import Client, TestResponse


class Item(msgspec.Struct):
    name: str
    price: float = 0.0


@asynccontextmanager
async def lifespan(app: App) -> AsyncGenerator[None, None]:
    app.state.items = {}
    yield


app = App(lifespan=lifespan)
admin = App()
app.mount("/admin", admin)


class HTTPScope(TypedDict):
    """As asgiref has it: no ``MutableMapping[str, Any]`` to a type checker."""

    type: Literal["http"]
    path: str


async def legacy(
    scope: HTTPScope,
    receive: Callable[[], Awaitable[dict[str, bytes]]],
    send: Callable[[dict[str, bytes]], Awaitable[None]],
) -> None:
    await send({"type": b"http.response.body"})


app.mount("/legacy", legacy)


@app.get("/")
def index() -> str:
    return "Hello"


@app.get("/items/{id:int}")
async def item(id: int, request: Request, verbose: bool = False) -> Item:
    assert_type(request.query, QueryParams)
    assert_type(request.headers, Headers)
    assert_type(request.header("accept"), str | None)
    assert_type(request.header("accept", 7), str | int)
    assert_type(request.json(Item), Item)
    assert_type(request.body(), bytes)
    assert_type(await request.read(), bytes)
    assert_type(request.client, tuple[str, int] | None)
    if id == 0:
        raise NotFound("no such item", headers={"x": "y"})
    return Item("x")


@app.post("/items", blocking=True)
def add(item: Item) -> Response:
    response = Response(item, status_code=201, headers={"location": "/items/1"})
    assert_type(response.headers, MutableHeaders)
    response.headers.set_cookie("seen", "1", max_age_s=60)
    return response


@app.route("/stream", methods=("GET", "POST"), stream=True)
async def stream(request: Request) -> AsyncIterator[bytes]:
    async for piece in request.stream():
        yield piece


@app.get("/count")
def count() -> Iterator[str]:
    yield from ("1", "2")


@app.post("/form")
def form(request: Request) -> Response:
    fields: FormData = request.form()
    return json_response(dict(fields)) if fields else redirect("/")


@app.middleware
async def timing(request: Request, next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await next(request)
    response.headers["x-seen"] = "1"
    return response


@app.middleware
def guard(request: Request, next: Callable[[Request], Response]) -> Response:
    return next(request)


@app.exception_handler(404)
def missing(request: Request, error: HTTPError) -> Response:
    return Response(error.detail, error.status_code)


@app.exception_handler(KeyError)
async def no_key(request: Request, error: KeyError) -> dict[str, str]:
    return {"missing": str(error)}


@app.on_startup
async def connect() -> None: ...


@app.on_shutdown
def disconnect() -> None: ...


# The decorators give back what they got.
assert_type(index(), str)


def test() -> None:
    with Client(app, limits={"body_bytes_max": 1000}) as client:
        answer = client.get("/")
        assert_type(answer, TestResponse)
        assert_type(answer.json(Item), Item)
        with client.stream("POST", "/stream", content=[b"x"]) as streamed:
            for piece in streamed:
                assert_type(piece, bytes)


texts = Redis("redis://localhost", decode_responses=True)
redis = Redis("redis://localhost", size=2)
pool = pg.Pool("postgresql://localhost/shop", size=2)


@app.get("/cached/{id}")
async def cached(id: int, injected: Annotated[Redis[bytes], FromRedis(redis)]) -> Item | None:
    assert_type(await injected.get("k"), bytes | None)
    assert_type(await texts.get("k"), str | None)
    assert_type(await redis.get("k", as_=int), int | None)
    assert_type(await redis.set("k", 1, ex=10), bool)
    assert_type(await texts.mget("a", "b"), list[str | None])
    assert_type(await texts.hgetall("h"), dict[str, str])
    assert_type(await redis.zrange("z", 0, -1), list[bytes])
    assert_type(await gather(redis.incr("n"), redis.get("k")), tuple[int, bytes | None])
    # newcomer C
    counted = pg.gather(pool.execute("SELECT 1"), pool.fetch_one("SELECT 1", as_=Item))
    assert_type(await counted, tuple[int, Item | None])
    assert_type(await pg.gather(*(pool.execute(one) for one in ("a", "b"))), list[int])
    names: dict[str, int] = {}
    await redis.mset(names)
    async with redis.transaction() as tx:
        total = tx.incr("n")
    assert_type(await total, int)
    async with texts.subscribe("news") as messages:
        async for message in messages:
            assert_type(message.data, str)
    async for key in texts.scan(match="item:*"):
        assert_type(key, str)
    return await injected.get_msgpack(f"item:{id}", as_=Item)


@app.get("/serial", blocking=True)
def serial() -> int:
    assert_type(redis.sync.get("k"), bytes | None)
    assert_type(redis.sync.get_json("k", as_=Item), Item | None)
    for key in texts.sync.scan():
        assert_type(key, str)
    with redis.sync.transaction() as tx:
        total = tx.incr("n")
    return total.wait()


def main() -> None:
    app.serve(Config(port=8001, workers=2, limits={"keep_alive_ms": 5000}))


async def calls(client: HttpClient) -> None:
    response = await client.get("/", params={"q": [1, 2]}, timeout=Timeout(2, total=5))
    assert_type(response, HttpResponse)
    assert_type(response.raise_for_status().decode(Item), Item)
    assert_type(response.decode(list[Item]), list[Item])
    await client.post("/", json=Item("x"), auth=("user", "password"))
    await client.post("/", data={"a": 1}, files={"f": ("name", b"", "text/plain")})
    async with client.stream("POST", "/", content=[b"a"]) as streamed:
        async for event in streamed.iter_events():
            assert_type(event, ReceivedEvent)
    assert_type(client.sync.get("/").text, str)
    with client.sync.stream("GET", "/") as lines:
        assert_type(list(lines.iter_lines()), list[str])
