"""`citius.testing.Transport` under httpx's own clients, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from citius import App, Event, Request, Response, event_stream
from citius.testing import Transport


def make() -> App:
    app = App()
    app.state.events = []
    app.on_startup(lambda: app.state.events.append("started"))
    app.on_shutdown(lambda: app.state.events.append("stopped"))

    @app.get("/")
    async def hello(request: Request, name: str = "nobody") -> Any:
        return {
            "name": name,
            "scheme": request.scheme,
            "host": request.host,
            "twice": request.headers.getlist("x-twice"),
            "cookie": request.cookies.get("session"),
        }

    @app.post("/size", stream=True)
    async def size(request: Request) -> int:
        return sum([len(piece) async for piece in request.stream()])

    @app.post("/form")
    def form(request: Request) -> Any:
        data = request.form()
        return {"title": data["title"], "size": len(data.files["file"].file.read())}

    @app.get("/login")
    def login() -> Response:
        response = Response(b"", 303, {"location": "/"})
        response.headers.set_cookie("session", "7")
        return response

    @app.get("/events")
    async def events() -> Response:
        async def made() -> AsyncIterator[Event]:
            for number in range(3):
                yield Event({"number": number})

        return event_stream(made())

    @app.get("/broken")
    def broken() -> None:
        raise ValueError("a defect")

    @app.get("/endless")
    async def endless() -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 1000
            finally:
                app.state.events.append("left")

        return Response(pieces())

    return app


BASE = "https://shop.test"
EXPECTED = {
    "name": "ada",
    "scheme": "https",
    "host": "shop.test",
    "twice": ["1", "2"],
    "cookie": None,
}
TWICE = [("x-twice", "1"), ("x-twice", "2")]


def test_a_synchronous_client() -> None:
    app = make()
    with httpx.Client(transport=Transport(app), base_url=BASE) as client:
        assert client.get("/", params={"name": "ada"}, headers=TWICE).json() == EXPECTED
        assert client.post("/size", content=b"x" * 100_000).json() == 100_000
        assert client.post("/size", content=(b"x" * 1000 for _ in range(50))).json() == 50_000
        assert client.get("/login", follow_redirects=True).json()["cookie"] == "7"
        assert client.get("/none").status_code == 404
        with client.stream("GET", "/events") as response:
            lines = [line for line in response.iter_lines() if line.startswith("data")]
        assert len(lines) == 3
        with client.stream("GET", "/endless") as response:
            assert len(next(response.iter_bytes(1000))) == 1000
        with pytest.raises(ValueError, match="a defect"):
            client.get("/broken")
    assert app.state.events == ["left", "stopped"] or app.state.events[-1] == "stopped"


def test_an_asynchronous_client() -> None:
    app = make()

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 1000

    async def main() -> None:
        async with httpx.AsyncClient(transport=Transport(app), base_url=BASE) as client:
            assert app.state.events == ["started"]
            assert (await client.get("/?name=ada", headers=TWICE)).json() == EXPECTED
            assert (await client.post("/size", content=b"x" * 300_000)).json() == 300_000
            assert (await client.post("/size", content=pieces())).json() == 50_000
            assert (await client.get("/login", follow_redirects=True)).json()["cookie"] == "7"
            several = await asyncio.gather(*(client.get(f"/?name={n}") for n in range(20)))
            assert [one.json()["name"] for one in several] == [str(n) for n in range(20)]
            async with client.stream("GET", "/events") as response:
                lines = [line async for line in response.aiter_lines() if line.startswith("data")]
            assert len(lines) == 3
            async with client.stream("GET", "/endless") as response:
                assert len(await anext(response.aiter_bytes(1000))) == 1000
            async with asyncio.timeout(10):
                while "left" not in app.state.events:
                    await asyncio.sleep(0)
            with pytest.raises(ValueError, match="a defect"):
                await client.get("/broken")

    asyncio.run(main())
    assert app.state.events == ["started", "left", "stopped"]


def test_errors_can_be_responses() -> None:
    transport = Transport(make(), raise_errors=False)
    with httpx.Client(transport=transport, base_url=BASE) as client:
        assert client.get("/broken").status_code == 500

    async def main() -> None:
        transport = Transport(make(), raise_errors=False)
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            assert (await client.get("/broken")).status_code == 500

    asyncio.run(main())


def test_uploads_as_httpx_sends_them() -> None:
    with httpx.Client(transport=Transport(make()), base_url=BASE) as client:
        files = {"file": ("a.bin", b"x" * 1000)}
        response = client.post("/form", data={"title": "t"}, files=files)
        assert response.json() == {"title": "t", "size": 1000}


def test_without_a_block_there_are_no_hooks() -> None:
    app = make()
    client = httpx.Client(transport=Transport(app), base_url=BASE)
    assert client.get("/").status_code == 200
    assert app.state.events == []
    client.close()
