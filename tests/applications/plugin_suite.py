"""A suite that uses the fixtures of the pytest plugin."""

# pyright: basic

import asyncio
from typing import Annotated

import pytest
from citius import App, Depends


def settings():
    return "real"


@pytest.fixture
def citius_app():
    app = App()
    app.state.started = False

    @app.on_startup
    def start():
        app.state.started = True

    @app.get("/")
    def hello(word: Annotated[str, Depends(settings)]):
        return f"{word} {app.state.started}"

    return app


def test_client(citius_client):
    assert citius_client.get("/").text == "real True"


def test_overrides(citius_overrides, citius_client): ...


def test_overridden(citius_app, citius_overrides):
    from citius.testing import Client

    citius_overrides[settings] = lambda: "false"
    assert Client(citius_app).get("/").text == "false False"


def test_async_client(citius_async_client):
    async def main():
        async with citius_async_client as client:
            assert (await client.get("/")).text == "real True"

    asyncio.run(main())
