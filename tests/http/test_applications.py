"""``Client(app=…)``: applications in this process, of all three interfaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from citius import App, Request
from citius.http import Client, ReadError, ReadTimeout, Timeout, TotalTimeout

events: list[str] = []


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    events.append("start")
    yield
    events.append("stop")


native = App(lifespan=lifespan)


@native.get("/items/{number}")
def item(number: int) -> dict[str, int]:
    return {"number": number}


@native.post("/echo")
async def echo(request: Request) -> bytes:
    return b"".join([piece async for piece in request.stream()])


@native.get("/host")
def host(request: Request) -> str:
    return f"{request.scheme} {request.host}"


@native.get("/slow")
async def slow() -> None:
    await asyncio.sleep(60)


@native.get("/fails")
def fails() -> None:
    raise LookupError("of the application's own")


@native.get("/pieces")
async def pieces() -> AsyncIterator[bytes]:
    for _ in range(3):
        await asyncio.sleep(0)
        yield b"x" * 1000


async def asgi(scope, receive, send) -> None:
    if scope["type"] == "lifespan":
        assert (await receive())["type"] == "lifespan.startup"
        scope["state"]["word"] = "state"
        events.append("start")
        await send({"type": "lifespan.startup.complete"})
        assert (await receive())["type"] == "lifespan.shutdown"
        events.append("stop")
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = b""
    while True:
        message = await receive()
        body += message["body"]
        if not message["more_body"]:
            break
    await send(
        {"type": "http.response.start", "status": 201, "headers": [(b"x-path", scope["raw_path"])]}
    )
    if scope["path"] == "/cut":
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        return
    if scope["path"] == "/slow":
        # Longer than the client waits.
        await asyncio.sleep(60)
    for part in (scope["state"]["word"].encode(), scope["query_string"], body):
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def wsgi(environ, start_response) -> list[bytes]:
    start_response("201 Created", [("x-path", environ["PATH_INFO"])])
    return [
        environ["QUERY_STRING"].encode(),
        environ["wsgi.input"].read(),
        environ.get("HTTP_X_A", "").encode(),
    ]


@pytest.fixture(autouse=True)
def cleared() -> None:
    events.clear()


async def test_native() -> None:
    async with Client("http://a:81", app=native) as client:
        assert (await client.get("/items/7")).json() == {"number": 7}
        assert (await client.get("/items/x")).status_code == 422
        assert (await client.get("/host")).text == "http a:81"
        assert (await client.get("https://b/host")).text == "https b"
        assert (await client.post("/echo", json=[1])).content == b"[1]"

        async def sent() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"y" * 10_000

        assert len((await client.post("/echo", content=sent())).content) == 1_000_000
        async with client.stream("GET", "/pieces") as response:
            assert len(await response.read()) == 3000
        assert (await client.get("/fails")).status_code == 500
        assert events == ["start"]
    assert events == ["start", "stop"]


async def test_times_of_a_native_application() -> None:
    async with Client("http://a", app=native) as client:
        with pytest.raises(ReadTimeout, match="0.05"):
            await client.get("/slow", timeout=Timeout(read=0.05))
        with pytest.raises(TotalTimeout):
            await client.get("/slow", timeout=Timeout(total=0.05))
        assert (await client.get("/items/1")).status_code == 200


async def test_asgi() -> None:
    async with Client("http://a", app=asgi) as client:
        response = await client.post("/x%20y?q=1", json=2)
        assert (response.status_code, response.content) == (201, b"stateq=12")
        assert response.headers["x-path"] == "/x%20y"
        async with client.stream("GET", "/") as streamed:
            assert [piece async for piece in streamed.iter_bytes()] == [b"state"]
        with pytest.raises(ReadError, match="in the middle"):
            await client.get("/cut")
        with pytest.raises(ReadTimeout):
            await client.get("/slow", timeout=Timeout(read=0.05))
        assert events == ["start"]
    assert events == ["start", "stop"]


async def test_wsgi() -> None:
    async with Client("http://a", app=wsgi) as client:
        response = await client.post(
            "/x%20y?q=1", content=b"body", headers=[("X-A", "1"), ("X-A", "2")]
        )
        assert (response.status_code, response.content) == (201, b"q=1body1,2")
        assert response.headers["x-path"] == "/x y"


def test_what_is_no_application() -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match="application"):
            await Client("http://a", app=1).get("/")

    asyncio.run(main())


async def content_that_fails() -> AsyncIterator[bytes]:
    yield b"a"
    raise LookupError("of the content")


@pytest.mark.parametrize("app", [native, asgi], ids=["native", "asgi"])
async def test_content_that_fails_ends_the_request(app: object) -> None:
    """A native application waited for the rest, and the caller for `read` seconds."""
    wrong: list[object] = [b"a", 5]
    async with Client("http://test", app=app, timeout=30) as client:
        async with asyncio.timeout(10):
            with pytest.raises(LookupError, match="of the content"):
                await client.post("/echo", content=content_that_fails())
            with pytest.raises(TypeError, match="not 'int'|got int"):
                await client.post("/echo", content=wrong)  # pyright: ignore[reportArgumentType]
